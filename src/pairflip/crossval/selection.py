"""Choosing the number of columns: every fold of every size gets its own annealing."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from pairflip.annealing import as_schedule, check_chains, check_size, count_chains
from pairflip.crossval.assemble import assemble
from pairflip.crossval.curve import SizeCurve
from pairflip.crossval.device import find_device, left_to_cpu, run_on_device
from pairflip.crossval.folds import as_folds
from pairflip.crossval.identity import identity
from pairflip.crossval.journal import Found, Journal
from pairflip.crossval.parallel import check_jobs, run_all
from pairflip.crossval.progress import SelectionProgress, Show, check_show
from pairflip.crossval.tasks import Task, Work, missing, parse_shard
from pairflip.crossval.walks import Outcome
from pairflip.engines import Engine, Tick, get_engine
from pairflip.engines.base import flip_nanoseconds
from pairflip.engines.blas import one_blas_thread
from pairflip.gram import Gram
from pairflip.philox import check_seed
from pairflip.problem import SubsetProblem
from pairflip.schedule import Schedule

_CELL_NS = 5e7  # what the chains of one fold may take by default
DEFAULT_LARGEST = 10


def select_size(
    problem: SubsetProblem,
    sizes: Iterable[int] | None = None,
    cv: Any = "loo",
    schedule: Schedule | Literal["auto", "paper"] = "auto",
    chains: int | None = None,
    seed: int = 0,
    engine: str | Engine = "auto",
    n_jobs: int | None = None,
    journal: str | os.PathLike[str] | None = None,
    progress: Show = None,
    groups: ArrayLike | None = None,
    polish: bool = True,
) -> SizeCurve:
    r"""Choose the number of columns by cross validation in which every fold gets its own annealing.

    What a fold finds depends on its training rows alone: neither the columns that other folds found, nor the
    temperatures, nor any scale come from the rows it is tested on. Size 0 (the mean, or the forced columns alone) is
    always among the results.

    Parameters
    ----------
    problem
        Table and target.
    sizes
        Numbers of columns to try; None: 1 to 10, or as many as the table allows.
    cv
        ``"loo"`` (leave one row out, as in the paper), a number of folds (rows shuffled with a fixed seed), ``"5x10"``
        (10 folds, 5 times with other random folds), ``"blocks:5"`` (5 blocks of neighbouring rows, for tables in the
        order of time), a scikit-learn splitter, or an iterable of (training rows, held-out rows).
    schedule
        ``"auto"``, ``"paper"``, or a `Schedule`; what its unit means in a fold follows from the fold's training rows.
    chains
        Walks for each size and fold, and for each final fit; the one with the lowest training energy counts. None: 8 to
        16 in a fold, by the size of the table, and as many as `anneal` takes for the final fits.
    seed
        Same seed, same curve: for any number of workers, after any resume, with engine "numba" or "reference" (on a GPU
        while no support's variance inflation exceeds about 1e5; docs/decisions/018-delicate-flips.md).
    engine
        ``"auto"``, ``"numba"``, ``"cuda"`` or ``"reference"``.
    n_jobs
        Threads; None is one (or what ``joblib.parallel_config`` says), -1 all cores. Inside
        ``with joblib.parallel_config("dask")`` the same runs on a cluster.
    journal
        Folder in which finished work is kept. Run the same again to resume.
    progress
        True: show progress on standard error; None: only if it is a terminal; False: never; ``"log"``: a bar on a
        terminal, else a line a minute.
    groups
        Labels of the rows for splitters that keep groups together; with ``cv="loo"``, leave one group out.
    polish
        Whether final fits are improved: by what the folds found, and by exchanging two columns at once, as in `anneal`.
        Nothing held out depends on it.
    """
    began = time.perf_counter()
    work, settings = plan_work(problem, sizes, cv, schedule, chains, seed, engine, groups)
    found, notes, walker = _walk(work, settings, journal, (1, 1), n_jobs, progress)
    settings = {**settings, "polish": bool(polish)}
    return assemble(
        work, found, settings=settings, engine=walker, notes=notes, began=began, polish=bool(polish), n_jobs=n_jobs
    )


def run_shard(
    problem: SubsetProblem,
    sizes: Iterable[int] | None = None,
    cv: Any = "loo",
    schedule: Schedule | Literal["auto", "paper"] = "auto",
    chains: int | None = None,
    seed: int = 0,
    engine: str | Engine = "auto",
    n_jobs: int | None = None,
    progress: Show = None,
    groups: ArrayLike | None = None,
    *,
    journal: str | os.PathLike[str],
    shard: str | tuple[int, int],
) -> int:
    """Do one part of a selection, for instance shard="3/64", into a journal; returns the number of chains it holds.

    Afterwards `select_size` with the same arguments and journal has only the rest to do. Shards that could not share a
    folder are joined by `merge_journals`.
    """
    part = parse_shard(shard)
    work, settings = plan_work(problem, sizes, cv, schedule, chains, seed, engine, groups)
    found, *_ = _walk(work, settings, journal, part, n_jobs, progress)
    return len(found.supports)


def identify(
    problem: SubsetProblem,
    sizes: Iterable[int] | None = None,
    cv: Any = "loo",
    schedule: Schedule | Literal["auto", "paper"] = "auto",
    chains: int | None = None,
    seed: int = 0,
    engine: str | Engine = "auto",
    groups: ArrayLike | None = None,
) -> dict[str, Any]:
    """What the journal of `select_size` with the same arguments says of itself, for `merge_journals`."""
    return identity(*plan_work(problem, sizes, cv, schedule, chains, seed, engine, groups))


@one_blas_thread()  # more would round differently
def plan_work(
    problem: SubsetProblem,
    sizes: Iterable[int] | None,
    cv: Any,
    schedule: Schedule | Literal["auto", "paper"],
    chains: int | None,
    seed: int,
    engine: str | Engine,
    groups: ArrayLike | None,
) -> tuple[Work, dict[str, Any]]:
    """The whole task grid, and the settings that determine its result."""
    if not isinstance(problem, SubsetProblem):
        raise TypeError(f"problem is a {type(problem).__name__}; expected a pairflip.SubsetProblem.")
    seed = check_seed(seed)
    get_engine(engine)
    plan = as_schedule(schedule)
    folds = as_folds(cv, problem, groups)
    wanted = check_sizes(problem, sizes, min(problem.rows_present - f.size for f in folds.left_out))
    gram = problem.gram
    total = int(plan.flips(gram.n_columns).sum())
    per_fold = fold_chains(gram, wanted[-1], total) if chains is None else check_chains(chains)
    work = Work(
        problem=problem,
        folds=folds,
        sizes=wanted,
        schedule=plan,
        chains=per_fold,
        final_chains=tuple(count_chains(chains, gram, k, total) for k in wanted),
        seed=seed,
        engine=engine,
    )
    settings = {
        "sizes": list(wanted),
        "cv": folds.how,
        "schedule": {
            "name": plan.name,
            "unit": plan.unit,
            "betas": list(plan.betas),
            "sweeps": list(plan.sweeps),
            "least_flips": plan.least_flips,
        },
        "chains": per_fold,
        "final_chains": list(work.final_chains),
        "seed": seed,
        "center": problem.center,
        "always": [problem.names[j] for j in problem.always],
        "ridge": problem.ridge,
    }
    return work, settings


def fold_chains(gram: Gram, k: int, flips: int) -> int:
    """Chains in a fold by default: what takes about 0.05 s by a cost model, but at least 8 and at most 16.

    With fewer, some folds miss their best columns, and the held-out error comes out too high.
    """
    return int(np.clip(_CELL_NS / (flips * flip_nanoseconds(gram, k)), 8, 16))


def check_sizes(problem: SubsetProblem, sizes: Iterable[int] | None, fewest_rows: int) -> tuple[int, ...]:
    """Sizes, sorted, each once; `fewest_rows` are left in the largest fold's training rows."""
    n = int(problem.candidates.size)
    room = fewest_rows - problem.forced.shape[1]
    if sizes is None:
        return tuple(range(1, max(1, min(DEFAULT_LARGEST, n, room - 1)) + 1))
    if isinstance(sizes, (int, np.integer)):
        raise TypeError(f"sizes is {sizes}; expected several sizes, for instance range(1, {sizes + 1}) or [{sizes}].")
    if isinstance(sizes, str) or not isinstance(sizes, Iterable):
        raise TypeError(f"sizes is {sizes!r}; expected several whole numbers, for instance range(1, 11).")
    given = [size for size in sizes if isinstance(size, bool) or size != 0]  # size 0 is always there
    if not given:
        raise ValueError("sizes is empty; expected at least one number of columns, for instance range(1, 11).")
    allowed = f"from 1 to {max(1, n if problem.ridge > 0 else min(n, room))}"
    for size in given:
        if isinstance(size, (bool, np.bool_)) or not isinstance(size, (int, np.integer)):
            raise TypeError(f"sizes (--sizes) holds {size!r}; expected whole numbers of columns {allowed}.")
    if min(given) < 1:
        raise ValueError(f"sizes (--sizes) holds {min(given)}; expected numbers of columns {allowed}.")
    if max(given) > n:
        columns = "1 candidate column that varies" if n == 1 else f"{n} candidate columns that vary"
        raise ValueError(f"sizes (--sizes) holds {max(given)}, but the table has {columns}; expected sizes {allowed}.")
    wanted = [n if size == n else check_size(problem, size) for size in given]
    largest = max(wanted)
    if largest > room and problem.ridge == 0:
        forced = problem.forced.shape[1]
        beside = f" and {forced} coefficient{'s' * (forced != 1)} fitted anyway" if forced else ""
        raise ValueError(
            f"size {largest} was asked for, but a fold has {fewest_rows} rows to learn from{beside}; "
            f"expected sizes up to {max(room, 0)}."
        )
    return tuple(sorted(set(wanted)))


def _walk(
    work: Work,
    settings: dict[str, Any],
    journal: str | os.PathLike[str] | None,
    shard: tuple[int, int],
    n_jobs: int | None,
    progress: Show,
) -> tuple[Found, Sequence[str], str]:
    """Do what the journal does not hold yet: (all finished chains, remarks, name of the engine)."""
    check_jobs(n_jobs)
    check_show(progress)
    notes: list[str] = []
    if not work.problem.gram.dense:
        notes.append("worked from the columns (the N x N matrix exceeds the memory budget)")
    context = nullcontext() if journal is None else Journal(journal, identity(work, settings))
    with context as kept:
        found = Found() if kept is None else kept.read(work)
        tasks = missing(work, found.done, shard)
        device = find_device(work.engine, [work]) if tasks else None
        notes += left_to_cpu(device, work)
        threads = 0 if device is not None else n_jobs
        with SelectionProgress(work, tasks, found, progress, journal, threads) as show:
            for outcomes in _outcomes(device, work, tasks, n_jobs, show.tick):
                if kept is not None:
                    kept.write(outcomes)
                for outcome in outcomes:
                    found.add(outcome)
                show.advance(outcomes)
    if kept is not None:
        notes += kept.notes
    return found, notes, get_engine(work.engine).name if device is None else device.name


def _outcomes(
    device: Any, work: Work, tasks: Sequence[Task], n_jobs: int | None, tick: Tick
) -> Iterator[list[Outcome]]:
    if device is None:
        yield from run_all(work, tasks, n_jobs)
    else:
        for _, outcomes in run_on_device(device, [(work, tasks)], n_jobs, tick):
            yield outcomes
