"""Handing tasks to workers: threads here, or whatever joblib is configured for."""

from __future__ import annotations

import warnings
from asyncio import CancelledError
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError as FutureCancelledError
from contextlib import contextmanager
from multiprocessing import TimeoutError as NothingForLong
from numbers import Integral
from typing import Any

from pairflip.crossval.tasks import Task, Work, batches
from pairflip.crossval.walks import Outcome, halt, run_batch
from pairflip.engines.blas import one_blas_thread

_BATCH_NS = 2e7  # threads: often enough for a smooth display, and little is lost when the run is killed
_REMOTE_BATCH_NS = 3e9  # a cluster: seconds, so that the scheduler has little to do
_ROUND = 8  # batches a worker
_PATIENCE_S = 300.0  # nothing at all was finished for so long: what is out is lost
_ATTEMPTS = 3


def check_jobs(n_jobs: Any) -> None:
    """Refuse what is no number of workers."""
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs is {n_jobs!r}; expected a number of threads, -1 for all cores, or None for one.")


def run_all(work: Work, tasks: Sequence[Task], n_jobs: int | None) -> Iterator[list[Outcome]]:
    """Outcomes of all tasks, batch by batch as they are finished, in any order."""
    if not tasks:
        return
    if work.problem.gram.dense:
        with one_blas_thread():
            _ = work.problem.gram.matrix  # formed once, before threads or other machines ask for it
    try:
        yield from _attempts(work, tasks, n_jobs)
    except BaseException:
        halt(work)
        raise


def _attempts(work: Work, tasks: Sequence[Task], n_jobs: int | None) -> Iterator[list[Outcome]]:
    """Outcomes of all tasks; what a cluster lost (a batch that died with its workers, the data) is handed out anew."""
    done: set[Task] = set()
    for attempt in range(1, _ATTEMPTS + 1):
        with _broadcast(work) as (remote, streams):
            pieces = batches(work, tasks, _REMOTE_BATCH_NS if remote else _BATCH_NS)
            left = [batch for batch in pieces if batch[0] not in done]
            try:
                for outcomes in _stream(work, left, n_jobs, remote) if streams else _rounds(work, left, n_jobs):
                    done.update(outcome.task for outcome in outcomes)
                    yield outcomes
                return
            except _losses(remote):
                lost = sum(batch[0] not in done for batch in pieces)
                if attempt == _ATTEMPTS:
                    raise RuntimeError(
                        f"the cluster lost {lost} batches of work {attempt} times; see to its workers (memory, time "
                        "limits) and run the same again: with a journal, only the rest is done."
                    ) from None


def _losses(remote: bool) -> tuple[type[BaseException], ...]:
    """What a cluster raises when work was lost; nothing of the kind happens to threads."""
    return (CancelledError, FutureCancelledError, TimeoutError, NothingForLong) if remote else ()


def _stream(work: Work, pieces: list[list[Task]], n_jobs: int | None, remote: bool) -> Iterator[list[Outcome]]:
    from joblib import Parallel, delayed

    timeout = None
    if remote:  # joblib waits for ever for a batch that Dask gave up
        longest = max(sum(work.nanoseconds(task.size, task.last - task.first) for task in batch) for batch in pieces)
        timeout = _PATIENCE_S + 20e-9 * longest
    parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator_unordered", batch_size=1, timeout=timeout)
    results = parallel(delayed(run_batch)(work, batch) for batch in pieces)
    try:
        for outcomes in results:  # noqa: UP028  ("yield from" would close the results before we can)
            yield outcomes
    except GeneratorExit:  # whoever takes the results has failed or was interrupted
        halt(work)
        with warnings.catch_warnings(action="ignore"):  # joblib's, that results are not used
            results.close()
        raise


def _rounds(work: Work, pieces: list[list[Task]], n_jobs: int | None) -> Iterator[list[Outcome]]:
    """Some batches at a time, for backends that give results only when all are there (Ray, multiprocessing)."""
    from joblib import Parallel, delayed, effective_n_jobs

    with Parallel(n_jobs=n_jobs, prefer="threads", batch_size=1) as parallel:
        step = _ROUND * max(1, int(effective_n_jobs(n_jobs)))
        for first in range(0, len(pieces), step):
            yield from parallel(delayed(run_batch)(work, batch) for batch in pieces[first : first + step])


@contextmanager
def _broadcast(work: Work) -> Iterator[tuple[bool, bool]]:
    """Whether tasks leave this process, and whether results come one by one.

    To Dask workers the data go once, to all of them: joblib alone would give them to one worker, and they would be
    lost with it. Afterwards they are forgotten: joblib knows them by an address in memory that another object may get.
    """
    from joblib.parallel import get_active_backend

    backend: Any = get_active_backend(prefer="threads")[0]
    known = getattr(backend, "data_futures", None)
    if known is not None and hasattr(backend, "client"):
        known[id(work)] = backend.client.scatter(work, broadcast=True, hash=False)
    try:
        here = getattr(backend, "uses_threads", False)
        yield not here, here or getattr(backend, "supports_return_generator", False)
    finally:
        if known is not None:
            known.pop(id(work), None)


def local_threads(n_jobs: int | None) -> int:
    """Threads of this process for `n_jobs`: None is one, -1 all cores."""
    from joblib import cpu_count

    if n_jobs is None:
        return 1
    return max(1, cpu_count() + 1 + n_jobs) if n_jobs < 0 else n_jobs
