"""Work in progress on disk: an append-only journal that a killed run resumes from.

One line of the journal (`sealed`) for each chain. Nothing in it is taken on trust: a line must carry its seal, and the
energy in it must still be the one that its support has in its fold. The chain of a line that is not used is walked
again, with the same result.
"""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.blas import one_blas_thread
from pairflip.least_squares import Floats
from pairflip.manifest import JournalError, check_same, claim, clear_errors, read_manifest, refuse_files
from pairflip.moments import Form
from pairflip.sealed import JournalWarning, SealedLines, run_key
from pairflip.selection.journal_lines import Address, ChainRecord, chains_of, from_line, to_line
from pairflip.selection.tasks import Task, Work
from pairflip.selection.walks import Outcome, training_form

__all__ = ["Found", "Journal", "JournalError", "JournalWarning", "merge_journals", "run_key"]

_ROUNDING = 1e-8
"""As a fraction of y'y: energies of one support computed in two ways, or on two machines, differ by less than this."""


@dataclass
class Found:
    """What is known so far: for every (size, fold, chain) its support and energy, and the course of some."""

    pieces: dict[tuple[int, int], list[Outcome]] = field(default_factory=dict)
    steps: dict[Address, list[list[float]]] = field(default_factory=dict)

    def add(self, outcome: Outcome) -> None:
        """Take in what a task found."""
        size, fold, first, _ = outcome.task
        self.pieces.setdefault((size, fold), []).append(outcome)
        for chain, course in enumerate(outcome.steps, start=first):
            self.steps[size, fold, chain] = course.tolist()

    def put(self, chain: ChainRecord) -> None:
        """Take in one chain."""
        size, fold, number = chain.address
        supports, energies = np.array([chain.support], dtype=np.int64), np.array([chain.energy])
        piece = Outcome(Task(size, fold, number, number + 1), supports, energies, np.empty((0, 2, 0)))
        self.pieces.setdefault((size, fold), []).append(piece)
        if chain.steps is not None:
            self.steps[chain.address] = chain.steps

    def clear(self) -> None:
        """Forget everything."""
        self.pieces.clear()
        self.steps.clear()

    @property
    def done(self) -> set[Address]:
        """Addresses of the finished chains."""
        return {
            (size, fold, chain)
            for (size, fold), pieces in self.pieces.items()
            for piece in pieces
            for chain in range(piece.task.first, piece.task.last)
        }

    def cell(self, size: int, fold: int, chains: int) -> tuple[NDArray[np.int64], Floats]:
        """Supports (chains, k) and energies (chains,) of one size in one fold."""
        supports, energies = self.cells(size, (fold,), chains)
        return supports[0], energies[0]

    def cells(self, size: int, folds: Sequence[int], chains: int) -> tuple[NDArray[np.int64], Floats]:
        """Supports (F, chains, k) and energies (F, chains) of one size in some folds."""
        pieces = [piece for fold in folds for piece in _in_order(self.pieces[size, fold], chains)]
        supports, energies = (np.concatenate(parts) for parts in zip(*((p[1], p[2]) for p in pieces), strict=True))
        return supports.reshape(len(folds), chains, size), energies.reshape(len(folds), chains)


def _in_order(pieces: list[Outcome], chains: int) -> list[Outcome]:
    """Pieces in the order of their chains, each chain once (a journal may hold it twice)."""
    if len(pieces) == 1 and pieces[0].energies.size == chains:
        return pieces
    known = {
        chain: piece._replace(supports=piece.supports[i : i + 1], energies=piece.energies[i : i + 1])
        for piece in pieces
        for i, chain in enumerate(range(piece.task.first, piece.task.last))
    }
    return [known[chain] for chain in range(chains)]


class Journal(SealedLines):
    """The journal in `folder` of a run with this `identity` (settings and data hash); made if there is none."""

    def read(self, work: Work) -> Found:
        """All finished chains of any writer that `work` asks for; lines that cannot be used are counted."""
        found, self.dropped = Found(), 0
        by_fold: dict[int, list[ChainRecord]] = defaultdict(list)
        for line in self.lines():
            chain = from_line(line, self._key)
            if chain is None:
                self.dropped += 1
            elif _asked(chain.address, work):
                by_fold[chain.address[1]].append(chain)
        for fold, chains in by_fold.items():
            right = _judged(training_form(work, fold), chains)
            self.dropped += len(chains) - len(right)
            for chain in right:
                found.put(chain)
        return found

    def write(self, outcomes: Iterable[Outcome]) -> None:
        """Append finished tasks: they survive whatever happens to this process next."""
        self.append(to_line(chain, self._key) for outcome in outcomes for chain in chains_of(outcome))


def merge_journals(
    target: str | os.PathLike[str],
    sources: Iterable[str | os.PathLike[str]],
    identity: dict[str, Any] | None = None,
) -> int:
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
    folder, copied = Path(target), 0
    places = [Path(source) for source in ([sources] if isinstance(sources, (str, os.PathLike)) else sources)]
    whose = "this run"
    refuse_files(folder)
    if identity is None and places:
        identity, whose = read_manifest(places[0]), f"journal {str(places[0])!r}"
    if identity is None:
        return 0
    for source in places:
        check_same(source, identity, whose)
    claim(folder, identity, whose)
    for source in places:
        for path in sorted(source.glob("tasks-*.jsonl")):
            there = folder / path.name
            if there.exists() and there.stat().st_size >= path.stat().st_size:
                continue
            with clear_errors(folder):
                part = folder / f".{path.name}.part"
                shutil.copyfile(path, part)
                os.replace(part, there)
            copied += 1
    return copied


def _asked(address: Address, work: Work) -> bool:
    """Whether a chain belongs to this run, or to one of the same settings with other sizes or more chains."""
    size, fold, chain = address
    return size in work.sizes and fold < len(work.folds) and chain < work.chains_of(size, fold)


@one_blas_thread()
def _judged(form: Form, chains: list[ChainRecord]) -> list[ChainRecord]:
    """The chains of one fold whose energy is that of their support there, by QR; each support is judged once."""
    known: dict[tuple[int, ...], float] = {}

    def energy(support: tuple[int, ...]) -> float:
        if support not in known:
            columns = np.array(support, dtype=np.int64)
            at = np.minimum(form.positions(columns), form.n_columns - 1)
            there = (
                form.n_columns > 0
                and np.array_equal(form.candidates[at], columns)
                and np.unique(columns).size == columns.size
            )
            known[support] = form.energy(at) if there else np.nan  # else: not columns to choose from in this fold
        return known[support]

    room = _ROUNDING * form.yy
    return [chain for chain in chains if abs(energy(tuple(chain.support)) - chain.energy) <= room]
