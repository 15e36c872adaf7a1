"""Tasks on a Dask cluster, through its own client.

joblib's backend is only asked which client to use. Work that is handed out through it is lost when workers die: a
batch that Dask gives up never comes back, because joblib is told of results and not of errors, so a run waits for
ever; and sending the data ahead to all workers (``scatter(..., broadcast=True)``) fails when one of them dies on the
way, or leaves the scheduler copying to the dead one without end. Dask's own futures say what became of each batch.
The data are the result of a task: where workers die with their copies, the scheduler makes them again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from pairflip.crossval.tasks import Task, Work
from pairflip.crossval.walks import Outcome, run_batch

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
        """Hand batches out, with the data where these are not there (any more)."""
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
        """Futures that are done, with what came of them; nothing if all that is out is handed out again."""
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
            if now - began > _PATIENCE_S + 20.0 * self._longest:
                self._again()
                return []
        done: list[tuple[Any, Any]] = self._results.next_batch(block=False)
        return done

    def _again(self) -> None:
        """Hand out anew all that is out."""
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
