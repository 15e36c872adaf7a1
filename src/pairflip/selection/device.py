"""Tasks on a device: it walks the chains of many folds, sizes and problems, and threads judge while it walks on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

from pairflip.engines import Engine, Tick, get_engine
from pairflip.engines.blas import one_blas_thread
from pairflip.engines.choice import failure_note, failures_of
from pairflip.engines.together import ManyWalked
from pairflip.jobs import threads_beside_a_device
from pairflip.selection.launches import Planned, judge, launches, prepare, refusals, run_seconds
from pairflip.selection.many_folds import AnyOutcome
from pairflip.selection.tasks import Job, Work, batches
from pairflip.selection.walks import run_batch

_CPU_NS = 2e8  # what a thread takes at a time of what the device cannot hold


def find_device(engine: str | Engine, works: Sequence[Work]) -> Engine | None:
    """The engine that takes whole batches, if that was asked for ("auto": if it is worth it), otherwise None."""
    if not works[0].selection.anneals or (engine == "auto" and not _worth_waking(works)):
        return None
    device = get_engine("cuda" if engine == "auto" else engine)
    return device if device.prefers_many else None


def _worth_waking(works: Sequence[Work]) -> bool:
    """Whether there is so much to do that a device, if there is one, is faster."""
    from pairflip.engines.cuda import WORTH_CHAINS, WORTH_SECONDS, why_unavailable

    chains = sum(work.chains * len(work.folds) * len(work.sizes) for work in works)
    return chains >= WORTH_CHAINS and sum(map(run_seconds, works)) >= WORTH_SECONDS and why_unavailable() is None


class Device:
    """A device that walks the chains of many folds, sizes and problems in shared launches.

    Where it fails in the middle (out of memory, or gone), the CPU does the rest, and the notes of the result say so.
    """

    n_jobs: int | None = 0

    def __init__(self, engine: Any, judges: int | None) -> None:
        self.name: str = engine.name
        self._engine, self._judges = engine, judges
        self._refused: dict[int, dict[int, str]] = {}
        self._rescued: dict[int, str] = {}
        self._lost: str | None = None

    def notes(self, work: Work) -> list[str]:
        """Sizes that the device cannot hold, and what it failed to do."""
        reasons = defaultdict[str, list[int]](list)
        for size, reason in self._refusals(work).items():
            reasons[reason.rstrip(".")].append(size)
        held = [f"walked on the CPU: sizes {', '.join(map(str, sizes))} ({why})" for why, sizes in reasons.items()]
        return [*held, *filter(None, [self._rescued.get(id(work))])]

    def _refusals(self, work: Work) -> dict[int, str]:
        """Why the device does not hold some sizes, asked once: it may be gone later."""
        if id(work) not in self._refused:
            self._refused[id(work)] = refusals(self._engine, work)
        return self._refused[id(work)]

    def outcomes(self, jobs: Sequence[Job], tick: Tick | None) -> Iterator[tuple[int, Sequence[AnyOutcome]]]:
        """(job, outcomes) of all tasks: this thread has the device walk, others judge and prepare the next batch."""
        refused = [self._refusals(work) for work, _ in jobs]
        finished: SimpleQueue[Future[Any]] = SimpleQueue()
        asked: dict[Future[Any], int] = {}
        few = threads_beside_a_device(self._judges, len(jobs))

        def ask(job: int, how: Callable[..., Any], *what: Any) -> None:
            future = judges.submit(how, jobs[job][0], *what)
            asked[future] = job
            future.add_done_callback(finished.put)

        def judged(until_all: bool = False) -> Iterator[tuple[int, Any]]:
            while asked and (until_all or not finished.empty()):
                future = finished.get()
                yield asked.pop(future), future.result()

        with (
            one_blas_thread(),
            ThreadPoolExecutor(1, thread_name_prefix="pairflip-ahead") as ahead,
            ThreadPoolExecutor(few, thread_name_prefix="pairflip-judge") as judges,
        ):
            try:
                prepared = (ahead.submit(prepare, jobs, refused, batch) for batch in launches(jobs))
                following = next(prepared, None)
                while following is not None:
                    (planned, on_cpu), following = following.result(), next(prepared, None)
                    left = dict(enumerate(planned))
                    for at, walked in self._walk(planned, tick):
                        each = left.pop(at)
                        ask(each.job, judge, each, walked)
                        yield from judged()
                    self._rescued |= {id(jobs[each.job][0]): str(self._lost) for each in left.values()}
                    for job, tasks in (*on_cpu, *((each.job, each.tasks) for each in left.values())):
                        for some in batches(jobs[job][0], tasks, _CPU_NS):
                            ask(job, run_batch, some, "numba")
                yield from judged(until_all=True)
            except BaseException:
                for work, _ in jobs:
                    work.stop.wanted = True
                for pool in (ahead, judges):
                    pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _walk(self, planned: Sequence[Planned], tick: Tick | None) -> Iterator[tuple[int, ManyWalked]]:
        """The number of each and where its chains went, until the device fails."""
        if self._lost is None and planned:
            try:
                yield from self._engine.walk_many([each.walks for each in planned], tick=tick)
            except failures_of(self._engine) as error:
                self._lost = failure_note(error)
