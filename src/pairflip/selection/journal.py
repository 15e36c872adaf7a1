"""The journal of a selection: finished chains on disk, from which a killed run resumes.

One sealed line (`journal_file`) for each chain. Nothing in it is taken on trust: a line must carry its seal, and the
energy in it must still be the one that its support has in its fold. The chain of a line that is not used is walked
again, with the same result.
"""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from pairflip.blas import one_blas_thread
from pairflip.journal_file import (
    Folder,
    SealedLines,
    check_same,
    claim,
    clear_errors,
    read_manifest,
    refuse_files,
    sealed,
    unsealed,
)
from pairflip.moments import Form
from pairflip.search.effort import work_of
from pairflip.selection.tasks import ALL_ROWS, Grid, Outcome, Results, Task
from pairflip.selection.worker import NO_STEPS, training_form

_ROUNDING = 1e-8
"""As a fraction of y'y: energies of one support computed in two ways, or on two machines, differ by less than this."""
_EXTENT = ["sizes", "chains", "final_chains", "polish", "stability", "stability_at", "null", "outer", "choose"]
_EXTENT += ["predict_with"]
"""How much is walked and what is done afterwards: a chain depends on its own (seed, size, fold, chain) only."""


def identity(grid: Grid, first_folds: int | None = None) -> dict[str, Any]:
    """What a journal's manifest says: everything that a chain depends on apart from its address.

    Sizes and numbers of chains are left out, so a journal can be extended by more of them, or used for fewer; but a
    path depends on the largest size that it runs to, and its chains on what an effort stands for in this version.
    Half-samples have a path for each size, and are known by their `first_folds`, so that more can follow.
    """
    descends, several_ridges = grid.schedule is None, isinstance(grid.settings["ridge"], list)
    unused = [*_EXTENT, "preprocess"] if descends else [*_EXTENT, "preprocess", "method", "effort", "prove"]
    problem, preparation = grid.problem, grid.problem.preparation
    # Preprocessing first: another one makes other data, too.
    manifest: dict[str, Any] = {} if preparation is None else {"preprocess": preparation.text}
    manifest |= {"data": problem.hash, "rows": problem.n_rows, "columns": problem.n_columns}
    manifest |= {name: value for name, value in grid.settings.items() if name not in unused}
    if descends:
        largest = max(grid.sizes) if first_folds is None else None
        manifest |= {"largest_size": largest, "work": work_of(grid.in_fold)}
    if several_ridges:
        manifest["ridge"] = "chosen with the size"  # each has lines of its own, and more may be added later
    folds = grid.folds if first_folds is None else grid.folds.some(range(first_folds))
    return {**manifest, "folds": folds.hash}


class Journal(SealedLines):
    """The journal in a folder of the searches of a grid; made if there is none."""

    def __init__(self, folder: Folder, grid: Grid, first_folds: int | None = None) -> None:
        several_ridges = isinstance(grid.settings["ridge"], list)
        part = f"ridge {grid.problem.shrinkage!r}" if several_ridges else None
        super().__init__(folder, identity(grid, first_folds), part)

    def read(self, grid: Grid) -> Results:
        """All finished chains of any writer that the grid asks for; lines that cannot be used are counted."""
        results, self.dropped = Results(grid), 0
        by_fold: dict[int, list[Outcome]] = defaultdict(list)
        for line in self.lines():
            record = unsealed(line, self._key)
            if record is None:
                self.dropped += 1
                continue
            fold = ALL_ROWS if record["fold"] is None else record["fold"]
            task = Task(record["size"], fold, record["chain"], record["chain"] + 1)
            chains = grid.final_chains.get(task.size, 0) if fold == ALL_ROWS else grid.chains
            # Other sizes and more chains belong to a run of the same settings.
            if task.size in grid.sizes and fold < len(grid.folds) and task.first < chains:
                steps = np.array([record["steps"]]) if "steps" in record else NO_STEPS
                supports = np.array([record["support"]], dtype=np.int64)
                by_fold[fold].append(Outcome(task, supports, np.array([record["energy"]]), steps))
        for fold, outcomes in by_fold.items():
            right = _verified(training_form(grid, fold), outcomes)
            self.dropped += len(outcomes) - len(right)
            for outcome in right:
                results.add(outcome)
        return results

    def write(self, outcomes: Iterable[Outcome]) -> None:
        """Append finished tasks: they survive whatever happens to this process next."""
        lines = []
        for (size, fold, first, last), *arrays in outcomes:
            if np.isinf(arrays[1]).any():  # no support was found, which takes no time to see again
                continue
            supports, energies, steps = (array.tolist() for array in arrays)
            for i, chain in enumerate(range(first, last)):
                record = {
                    "size": size,
                    "fold": None if fold == ALL_ROWS else fold,
                    "chain": chain,
                    "support": supports[i],
                    "energy": energies[i],
                }
                lines.append(sealed(record | ({"steps": steps[i]} if i < len(steps) else {}), self._key))
        self.append(lines)


@one_blas_thread()
def _verified(form: Form, outcomes: list[Outcome]) -> list[Outcome]:
    """The chains of one fold whose energy is that of their support there, by QR; each support is judged once."""
    known: dict[bytes, float] = {}
    right = []
    for outcome in outcomes:
        support, key = outcome.supports[0], outcome.supports.tobytes()
        if key not in known:
            at = np.minimum(form.positions(support), form.n_columns - 1)
            to_choose_from = form.n_columns > 0 and np.array_equal(form.candidates[at], support)
            different = np.unique(support).size == support.size
            known[key] = form.energy(at) if to_choose_from and different else np.nan
        if support.size == outcome.task.size and abs(known[key] - outcome.energies[0]) <= _ROUNDING * form.yy:
            right.append(outcome)
    return right


def merge_journals(target: Folder, sources: Iterable[Folder], identity: dict[str, Any] | None = None) -> int:
    """Join the journals of shards into one folder; returns the number of files copied.

    All must be of the same data and settings; otherwise nothing is written. Running it again copies nothing twice.

    Parameters
    ----------
    target : path
        Folder of the joined journal; made if it is not there.
    sources : paths
        Folders of the journals to join.
    identity : dict, optional
        Data and settings that all of them must have, as `identify` gives them; by default those of the first.
    """
    folder, copied, whose = Path(target), 0, "this run"
    journals = [Path(source) for source in ([sources] if isinstance(sources, (str, os.PathLike)) else sources)]
    refuse_files(folder)
    if identity is None:
        if not journals:
            return 0
        identity, whose = read_manifest(journals[0]), f"journal {str(journals[0])!r}"
    for journal in journals:
        check_same(journal, identity, whose)
    claim(folder, identity, whose)
    for path in (path for journal in journals for path in sorted(journal.glob("tasks-*.jsonl"))):
        copy = folder / path.name
        if copy.exists() and copy.stat().st_size >= path.stat().st_size:
            continue
        with clear_errors(folder):
            part = folder / f".{path.name}.part"
            shutil.copyfile(path, part)
            os.replace(part, copy)
        copied += 1
    return copied
