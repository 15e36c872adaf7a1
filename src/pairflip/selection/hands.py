"""Who does the work: threads, whatever joblib is configured for, or a device. All take tasks and yield outcomes."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from pairflip.engines import Tick, get_engine
from pairflip.engines.blas import one_blas_thread
from pairflip.selection.device import Device, find_device
from pairflip.selection.tasks import Job, Task, Work, batches
from pairflip.selection.walks import Outcome, run_batch


class Hands(Protocol):
    """What hands out tasks.

    Attributes
    ----------
    name : str
        Of the engine that walks.
    n_jobs : int or None
        Threads or workers that do the tasks; 0 is a device, whose time is not foreseen.
    """

    name: str
    n_jobs: int | None

    def notes(self, work: Work) -> list[str]:
        """What a reader should know about how these tasks are done."""
        ...

    def outcomes(self, jobs: Sequence[Job], tick: Tick | None) -> Iterator[tuple[int, Sequence[Outcome]]]:
        """(job, outcomes) of all tasks, as they are finished, in any order."""
        ...


class Workers:
    """Threads of this process, or whatever joblib is configured for: processes, Dask, Ray."""

    def __init__(self, name: str, n_jobs: int | None) -> None:
        self.name, self.n_jobs = name, n_jobs

    def notes(self, work: Work) -> list[str]:
        """Nothing out of the ordinary."""
        return []

    def outcomes(self, jobs: Sequence[Job], tick: Tick | None) -> Iterator[tuple[int, Sequence[Outcome]]]:
        """The jobs one after the other, each by all workers."""
        for index, (work, tasks) in enumerate(jobs):
            for outcomes in run_all(work, tasks, self.n_jobs):
                yield index, outcomes


def choose_hands(works: Sequence[Work], n_jobs: int | None) -> Hands:
    """A device if that was asked for ("auto": if it is worth it), otherwise workers; `works` have tasks left."""
    device = find_device(works[0].engine, works) if works else None
    if device is not None:
        return Device(device, n_jobs)
    name = get_engine(works[0].engine).name if works else ""
    return Workers(name, n_jobs)


_BATCH_NS = 2e7  # threads: often enough for a smooth display, and little is lost when the run is killed
_REMOTE_BATCH_NS = 3e9  # a cluster: seconds, so that the scheduler has little to do
_ROUND = 8  # batches per worker


def run_all(work: Work, tasks: Sequence[Task], n_jobs: int | None) -> Iterator[list[Outcome]]:
    """Outcomes of all tasks, batch by batch as they are finished, in any order."""
    if not tasks:
        return
    if work.problem.form.dense and work.problem.loss.squared:
        with one_blas_thread():
            _ = work.problem.form.matrix  # formed once, before threads or other machines ask for it
    try:
        yield from _hand_out(work, tasks, n_jobs)
    except BaseException:
        work.stop.wanted = True
        raise


def _hand_out(work: Work, tasks: Sequence[Task], n_jobs: int | None) -> Iterator[list[Outcome]]:
    """Hand tasks out to whatever joblib is configured for."""
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
        with one_blas_thread():  # once for all batches: each of them asks for it, too, which then takes no time
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


_ATTEMPTS = 3
_PATIENCE_S = 300.0  # no worker, or nothing at all finished, for so long: what is out is lost
_LOOK_S = 2.0  # how often we ask for the workers while nothing comes
_WAIT_S = 0.02


def run_on_dask(backend: Any, work: Work, batches: Sequence[list[Task]]) -> Iterator[list[Outcome]]:
    """Outcomes of all batches as they are finished; what the cluster loses is handed out again, but not for ever."""
    from distributed import CancelledError, KilledWorker

    backend.effective_n_jobs(-1)  # joblib's way to wait for the first worker, and its words where none comes
    with backend.retrieval_context():  # inside a worker: others may use its place while we wait
        run = _Run(backend.client, work, backend.submit_kwargs)
        run.send(batches)
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


class _Run:
    """Batches under way: `out` has each one by the key of its future. What is not waited for any more, Dask drops."""

    def __init__(self, client: Any, work: Work, options: dict[str, Any]) -> None:
        from distributed import as_completed

        self.out: dict[str, list[Task]] = {}
        self._client, self._work, self._options = client, work, options
        self._data: Any = None
        self._times: Counter[Task] = Counter()
        ready: Any = as_completed  # it has no types
        self._results = ready([], loop=client.loop, with_results=True, raise_errors=False)
        self._longest = 0.0

    def send(self, batches: Sequence[list[Task]]) -> None:
        """Hand batches out, and the data with them where the cluster does not have these (any more)."""
        import dask

        if not batches:
            return
        if self._client.status == "closed":
            raise _gave_up("is gone")
        self._times.update(batch[0] for batch in batches)
        if max(self._times.values()) > _ATTEMPTS:
            raise _gave_up(f"lost {len(batches)} batches of work {_ATTEMPTS} times")
        if self._data is None or self._data.status in ("error", "cancelled", "lost"):
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):  # it is sent once
                self._data = self._client.submit(_hold, self._work, pure=False)
        futures = self._client.map(run_batch, [self._data] * len(batches), batches, pure=False, **self._options)
        self.out.update((future.key, batch) for future, batch in zip(futures, batches, strict=True))
        self._results.update(futures)
        self._longest = max(self._longest, *(self._seconds(batch) for batch in batches))

    def wait(self) -> list[tuple[Any, Any]]:
        """Futures that are done, with their results; nothing if everything was handed out again."""
        began = looked = time.monotonic()
        seen = began
        while not self._results.has_ready():
            time.sleep(_WAIT_S)
            now = time.monotonic()
            if now - looked < _LOOK_S:
                continue
            looked = now
            if self._client.ncores():
                seen = now
            elif now - seen > _PATIENCE_S:
                raise _gave_up(f"has had no workers for {_PATIENCE_S:.0f} s")
            # Twenty times the cost model's guess, which knows neither the workers' speed nor what else they do.
            if now - began > _PATIENCE_S + 20.0 * self._longest:
                self._again()
                return []
        done: list[tuple[Any, Any]] = self._results.next_batch(block=False)
        return done

    def _again(self) -> None:
        """Hand out again everything that has not come back."""
        batches = list(self.out.values())
        self._results.clear()
        self.out.clear()
        self._data = None
        self.send(batches)

    def _seconds(self, batch: Sequence[Task]) -> float:
        return 1e-9 * sum(self._work.nanoseconds(task.size, task.last - task.first) for task in batch)


def _hold(work: Work) -> Work:
    """The data, where a worker keeps them."""
    return work


def _gave_up(what: str) -> RuntimeError:
    return RuntimeError(
        f"the cluster {what}; see to its workers (memory, time limits) and run the same again: with a journal, only "
        "the rest is done."
    )
