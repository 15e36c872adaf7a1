"""Executors: tasks are handed to threads, joblib's workers, Dask or a device, and what comes back goes to the journal.

`search_grids` is the one loop that every search of a selection goes through.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from pairflip.blas import one_blas_thread
from pairflip.engines import Engine, get_engine
from pairflip.jobs import check_jobs
from pairflip.journal_file import MANIFEST, Folder
from pairflip.search.best_subset import BY_COLUMNS
from pairflip.selection.device import Device, Job, find_device
from pairflip.selection.journal import Journal
from pairflip.selection.progress import SelectionProgress, Show
from pairflip.selection.tasks import Grid, Outcome, Results, Task, batches, missing, n_chains
from pairflip.selection.worker import Stop, run_batch

_BATCH_NS = 2e7  # threads: often enough for a smooth display, and little is lost when the run is killed
_REMOTE_BATCH_NS = 3e9  # a cluster: seconds, so that the scheduler has little to do
_ROUND = 8  # batches per worker


class Execution(NamedTuple):
    """Who does the searches of a selection, where they are kept and shown; and which rows belong together."""

    engine: str | Engine = "auto"
    n_jobs: int | None = None
    journal: Folder | None = None
    progress: Show = False
    groups: ArrayLike | None = None

    def below(self, *names: str) -> Execution:
        """The same for a later step, whose journal is a folder in this one; none where that was removed meanwhile."""
        kept = self.journal is not None and (Path(self.journal) / MANIFEST).exists()
        return self._replace(journal=Path(self.journal, *names) if self.journal is not None and kept else None)


class Searched(NamedTuple):
    """A grid whose chains are all there."""

    number: int  # of the grid
    results: Results
    engine: str
    notes: list[str]  # what a reader of the result should know about how it was computed


def search_grid(
    grid: Grid, execution: Execution, *, shard: tuple[int, int] = (1, 1), first_folds: int | None = None
) -> Results:
    """What all chains of one grid find, or those of a shard of it."""
    journal, n_jobs, progress = execution.journal, execution.n_jobs, execution.progress
    (searched,) = search_grids([grid], [journal], n_jobs, progress, shard=shard, first_folds=first_folds)
    return searched.results


def search_grids(
    grids: Sequence[Grid],
    folders: Sequence[Folder | None],
    n_jobs: int | None,
    progress: Show,
    *,
    shard: tuple[int, int] = (1, 1),
    first_folds: int | None = None,
) -> Iterator[Searched]:
    """Do what the journals do not hold yet, and yield each grid when all its chains are there."""
    check_jobs(n_jobs)
    if progress not in (True, False, None, "log", "late"):
        raise ValueError(f"progress is {progress!r}; expected True, False, None, 'log' or 'late'.")
    with ExitStack() as stack:
        journals, known = [], []
        for grid, folder in zip(grids, folders, strict=True):
            journal = None if folder is None else stack.enter_context(Journal(folder, grid, first_folds))
            journals.append(journal)
            known.append(Results(grid) if journal is None else journal.read(grid))
        jobs: list[Job] = [(results.grid, missing(results, shard)) for results in known]
        remaining = [n_chains(tasks) for _, tasks in jobs]
        engine = find_device([grid for grid, tasks in jobs if tasks])
        device = None if engine is None else Device(engine, jobs, n_jobs)
        show = None
        if len(grids) == 1:
            show = stack.enter_context(SelectionProgress(known[0], jobs[0][1], progress, folders[0]))

        complete: list[tuple[int, list[Outcome]]] = [(n, []) for n, chains in enumerate(remaining) if chains == 0]
        stream = _run_jobs(jobs, n_jobs) if device is None else device.outcomes(None if show is None else show.tick)
        with closing(stream):
            for number, outcomes in chain(complete, stream):
                results, journal = known[number], journals[number]
                if journal is not None and outcomes:  # on disk first
                    journal.write(outcomes)
                for outcome in outcomes:
                    results.add(outcome)
                if show is not None and outcomes:
                    show.advance(outcomes)
                remaining[number] -= n_chains([outcome.task for outcome in outcomes])
                if remaining[number] > 0:
                    continue
                grid = grids[number]
                by_columns = not grid.problem.form.dense and grid.problem.loss.quadratic
                notes = [BY_COLUMNS] if by_columns else []
                notes += [] if device is None else device.notes(number)
                if journal is not None:
                    journal.close()  # what became of it belongs into the notes of the result
                    notes += journal.notes
                name = get_engine(grid.engine).name if device is None else device.name
                known[number] = Results(grid)  # of many problems, not all results are kept
                yield Searched(number, results, name, notes)


def _run_jobs(jobs: Sequence[Job], n_jobs: int | None) -> Generator[tuple[int, list[Outcome]], None, None]:
    """(job, outcomes) of all tasks by whatever joblib is configured for, job after job, tasks in any order."""
    from joblib.parallel import get_active_backend

    backend: Any = get_active_backend(prefer="threads")[0]
    threads = getattr(backend, "uses_threads", False)
    streams = threads or getattr(backend, "supports_return_generator", False)
    for number, (grid, tasks) in enumerate(jobs):
        if not tasks:
            continue
        if grid.problem.form.dense and grid.problem.loss.squared:
            with one_blas_thread():
                _ = grid.problem.form.matrix  # formed once, before threads or other machines ask for it
        pieces = batches(grid, tasks, _BATCH_NS if threads else _REMOTE_BATCH_NS)
        if hasattr(backend, "client") and hasattr(backend, "submit_kwargs"):  # that of Dask
            stream = _run_on_dask(backend, grid, pieces)
        else:
            stream = _run_by_joblib(grid, pieces, n_jobs, streams)
        with closing(stream):
            for outcomes in stream:
                yield number, outcomes


def _run_by_joblib(
    grid: Grid, pieces: list[list[Task]], n_jobs: int | None, streams: bool
) -> Generator[list[Outcome], None, None]:
    """Outcomes as they are finished; by rounds where a backend gives results only when all are there (Ray)."""
    from joblib import Parallel, delayed, effective_n_jobs

    stop = Stop()
    how = {"n_jobs": n_jobs, "prefer": "threads", "batch_size": 1}
    if not streams:
        with Parallel(**how) as parallel:
            step = _ROUND * max(1, int(effective_n_jobs(n_jobs)))
            for first in range(0, len(pieces), step):
                yield from parallel(delayed(run_batch)(grid, batch, stop) for batch in pieces[first : first + step])
        return
    calls = (delayed(run_batch)(grid, batch, stop) for batch in pieces)
    results = Parallel(**how, return_as="generator_unordered")(calls)
    try:
        with one_blas_thread():  # once for all batches: each of them asks for it, too, which then takes no time
            for outcomes in results:  # noqa: UP028  ("yield from" would close the results before we can)
                yield outcomes
    finally:  # whoever takes the results may have failed or been interrupted
        stop.wanted = True
        with warnings.catch_warnings(action="ignore"):  # joblib's, that results are not used
            results.close()


# Dask -----------------------------------------------------------------------------------------------------------------

_ATTEMPTS = 3
_PATIENCE_S = 300.0  # no worker, or nothing at all finished, for so long: what is out is lost
_LOOK_S = 2.0  # how often we ask for the workers while nothing comes
_WAIT_S = 0.02


def _run_on_dask(backend: Any, grid: Grid, pieces: Sequence[list[Task]]) -> Generator[list[Outcome], None, None]:
    """Outcomes of all batches as they are finished; what the cluster loses is handed out again, but not for ever."""
    from distributed import CancelledError, KilledWorker

    backend.effective_n_jobs(-1)  # joblib's way to wait for the first worker, and its words where none comes
    with backend.retrieval_context():  # inside a worker: others may use its place while we wait
        run = DaskRun(backend.client, grid, backend.submit_kwargs)
        run.send(pieces)
        while run.out:
            lost = []
            for future, result in run.wait():
                batch = run.out.pop(future.key)
                if isinstance(result, list):
                    yield result
                    continue
                error = result[1] if isinstance(result, tuple) else result
                if not isinstance(error, (CancelledError, KilledWorker)):
                    raise error
                lost.append(batch)
            run.send(lost)


class DaskRun:
    """Batches under way: `out` has each one by the key of its future. What is not waited for any more, Dask drops."""

    def __init__(self, client: Any, grid: Grid, options: dict[str, Any]) -> None:
        from distributed import as_completed

        self.out: dict[str, list[Task]] = {}
        self._client, self._grid, self._options = client, grid, options
        self._data: Any = None
        self._times: Counter[Task] = Counter()
        ready: Any = as_completed  # it has no types
        self._results = ready([], loop=client.loop, with_results=True, raise_errors=False)

    def send(self, pieces: Sequence[list[Task]]) -> None:
        """Hand batches out, and the data with them where the cluster does not have these (any more)."""
        import dask

        if not pieces:
            return
        if self._client.status == "closed":
            raise _gave_up("is gone")
        self._times.update(batch[0] for batch in pieces)
        if max(self._times.values()) > _ATTEMPTS:
            raise _gave_up(f"lost {len(pieces)} batches of work {_ATTEMPTS} times")
        if self._data is None or self._data.status in ("error", "cancelled", "lost"):
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):  # it is sent once
                self._data = self._client.submit(_hold, self._grid, pure=False)
        futures = self._client.map(run_batch, [self._data] * len(pieces), pieces, pure=False, **self._options)
        self.out.update((future.key, batch) for future, batch in zip(futures, pieces, strict=True))
        self._results.update(futures)

    def wait(self) -> list[tuple[Any, Any]]:
        """Futures that are finished, with their results; nothing if everything was handed out again."""
        began = looked = seen = time.monotonic()
        longest = 1e-9 * max(
            sum(self._grid.chain_ns[task.size] * (task.last - task.first) for task in batch)
            for batch in self.out.values()
        )
        while not self._results.has_ready():
            time.sleep(_WAIT_S)
            time_now = time.monotonic()
            if time_now - looked < _LOOK_S:
                continue
            looked = time_now
            if self._client.ncores():
                seen = time_now
            elif time_now - seen > _PATIENCE_S:
                raise _gave_up(f"has had no workers for {_PATIENCE_S:.0f} s")
            # Twenty times the cost model's guess, which knows neither the workers' speed nor what else they do.
            if time_now - began > _PATIENCE_S + 20.0 * longest:
                pieces = list(self.out.values())
                self._results.clear()
                self.out.clear()
                self._data = None
                self.send(pieces)
                return []
        finished: list[tuple[Any, Any]] = self._results.next_batch(block=False)
        return finished


def _hold(grid: Grid) -> Grid:
    """The data, where a worker keeps them."""
    return grid


def _gave_up(reason: str) -> RuntimeError:
    return RuntimeError(
        f"the cluster {reason}; see to its workers (memory, time limits) and run the same again: with a journal, only "
        "the rest is done."
    )
