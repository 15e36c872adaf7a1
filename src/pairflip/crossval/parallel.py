"""Handing tasks to workers: threads here, or whatever joblib is configured for."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from numbers import Integral
from typing import Any

from pairflip.crossval.on_dask import run_on_dask
from pairflip.crossval.tasks import Task, Work, batches
from pairflip.crossval.walks import Outcome, run_batch
from pairflip.engines.blas import one_blas_thread

_BATCH_NS = 2e7  # threads: often enough for a smooth display, and little is lost when the run is killed
_REMOTE_BATCH_NS = 3e9  # a cluster: seconds, so that the scheduler has little to do
_ROUND = 8  # batches a worker


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
        yield from _hand_out(work, tasks, n_jobs)
    except BaseException:
        work.stop.wanted = True
        raise


def _hand_out(work: Work, tasks: Sequence[Task], n_jobs: int | None) -> Iterator[list[Outcome]]:
    """To whatever joblib is configured for."""
    from joblib.parallel import get_active_backend

    backend: Any = get_active_backend(prefer="threads")[0]
    here = getattr(backend, "uses_threads", False)
    pieces = batches(work, tasks, _BATCH_NS if here else _REMOTE_BATCH_NS)
    if hasattr(backend, "client") and hasattr(backend, "submit_kwargs"):  # that of Dask
        yield from run_on_dask(backend, work, pieces)
    elif here or getattr(backend, "supports_return_generator", False):
        yield from _stream(work, pieces, n_jobs)
    else:
        yield from _rounds(work, pieces, n_jobs)


def _stream(work: Work, pieces: list[list[Task]], n_jobs: int | None) -> Iterator[list[Outcome]]:
    from joblib import Parallel, delayed

    parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator_unordered", batch_size=1)
    results = parallel(delayed(run_batch)(work, batch) for batch in pieces)
    try:
        for outcomes in results:  # noqa: UP028  ("yield from" would close the results before we can)
            yield outcomes
    except GeneratorExit:  # whoever takes the results has failed or was interrupted
        work.stop.wanted = True
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


def workers(n_jobs: int | None) -> int:
    """How many tasks are worked on at a time: threads here, or those of a cluster."""
    from joblib import cpu_count, effective_n_jobs
    from joblib.parallel import get_active_backend

    count = max(1, int(effective_n_jobs(n_jobs)))
    here = getattr(get_active_backend(prefer="threads")[0], "uses_threads", False)
    return min(count, int(cpu_count())) if here else count


def local_threads(n_jobs: int | None) -> int:
    """Threads of this process for `n_jobs`: None is one, -1 all cores."""
    from joblib import cpu_count

    if n_jobs is None:
        return 1
    return max(1, cpu_count() + 1 + n_jobs) if n_jobs < 0 else n_jobs
