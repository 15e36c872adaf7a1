"""Tasks on a device: the chains of many folds, sizes and problems in shared launches, judged while it walks on."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

import numpy as np

from pairflip.engines import Engine, Refused, Tick, get_engine
from pairflip.engines.blas import one_blas_thread
from pairflip.engines.choice import failure_note, failures_of
from pairflip.jobs import local_threads, threads_beside_a_device
from pairflip.selection import fold_searches, launches
from pairflip.selection.launches import run_seconds
from pairflip.selection.many_folds import AnyOutcome
from pairflip.selection.tasks import Job, Work, batches
from pairflip.selection.walks import Halted, run_batch

_CPU_NS = 2e8  # what a thread takes at a time of what the device cannot hold
_AHEAD = 4000  # answers that wait to be judged: a device that is much faster than the judges waits for them


def find_device(engine: str | Engine, works: Sequence[Work]) -> Engine | None:
    """The engine that takes whole batches, if that was asked for ("auto": if it is worth it), otherwise None."""
    anneals = works[0].selection.anneals
    asked = engine if anneals or engine == "auto" else works[0].device
    if asked == "auto":
        asked = "cuda" if _worth_waking(works) else None
    device = None if asked is None else get_engine(asked)
    if device is None or not device.prefers_many:
        return None
    return device if anneals or fold_searches.why_not(device, works) is None else None


def _worth_waking(works: Sequence[Work]) -> bool:
    """Whether there is so much to do that a device, if there is one, is faster."""
    from pairflip.engines.cuda import WORTH_CHAINS, WORTH_SECONDS, why_unavailable

    chains, seconds = sum(map(_chains, works)), sum(map(run_seconds, works))
    return chains >= WORTH_CHAINS and seconds >= WORTH_SECONDS and why_unavailable() is None


def _chains(work: Work) -> int:
    return work.chains * len(work.folds) * len(work.sizes)


class Device:
    """A device that walks the chains of many folds, sizes and problems in shared launches.

    Where it fails in the middle (out of memory, or gone), the CPU does the rest, and the notes of the result say so.
    """

    n_jobs: int | None = 0

    def __init__(self, engine: Any, judges: int | None) -> None:
        self.name: str = engine.name
        self._engine, self._judges = engine, judges
        self._rescued: dict[int, str] = {}
        self._refused: dict[int, dict[int, str]] = {}

    def notes(self, work: Work) -> list[str]:
        """Sizes that the device cannot hold, and what it failed to do."""
        failed, reasons = self._rescued.get(id(work)), defaultdict[str, list[int]](list)
        if failed is None or id(work) in self._refused:
            for size, reason in self._refusals(work).items():
                reasons[reason.rstrip(".")].append(size)
        held = [f"walked on the CPU: sizes {', '.join(map(str, sizes))} ({why})" for why, sizes in reasons.items()]
        return held if failed is None else [*held, failed]

    def _refusals(self, work: Work) -> dict[int, str]:
        """Why the device does not hold some sizes, asked once: it may be gone later. It searches all sizes or none."""
        if id(work) not in self._refused:
            self._refused[id(work)] = launches.refusals(self._engine, work) if work.selection.anneals else {}
        return self._refused[id(work)]

    def outcomes(self, jobs: Sequence[Job], tick: Tick | None) -> Iterator[tuple[int, Sequence[AnyOutcome]]]:
        """The jobs together, judged by threads while the device walks on."""
        with one_blas_thread():  # once for all that is judged: each asks for it, too, which then takes no time
            yield from _DeviceRun(self._engine, jobs, self._judges, self._rescue, self._refusals).outcomes(tick)

    def _rescue(self, work: Work, reason: str) -> None:
        self._rescued[id(work)] = reason


class _DeviceRun:
    """Jobs on their way: a thread prepares, and each lane of the engine has one that walks and asks the judges."""

    def __init__(
        self, engine: Any, jobs: Sequence[Job], n_jobs: int | None,
        rescue: Callable[[Work, str], None], refused: Callable[[Work], dict[int, str]],
    ) -> None:  # fmt: skip
        self._engine, self._jobs, self._n_jobs, self._rescue, self._refused = engine, jobs, n_jobs, rescue, refused
        self._lost: str | None = None
        self._events: SimpleQueue[tuple[str, int, Future[Any] | None]] = SimpleQueue()
        self._lanes: SimpleQueue[int] = SimpleQueue()
        self._stop = False
        # The same steps, prepare, walk and judge, for annealing and for searches.
        self._way: Any = launches if jobs[0][0].selection.anneals else fold_searches

    def outcomes(self, tick: Tick | None) -> Iterator[tuple[int, Sequence[AnyOutcome]]]:
        """(job, outcomes) of all tasks; `tick` hears of flips, and like these from the thread that asks."""
        lanes = int(getattr(self._engine, "lanes", 1))
        for lane in range(lanes):
            self._lanes.put(lane)
        parts, more, walking, judging = self._way.launches(self._jobs), True, 0, 0
        prepared = deque[Future[Any]]()
        threads, few = local_threads(self._n_jobs), threads_beside_a_device(self._n_jobs, len(self._jobs))
        with (
            ThreadPoolExecutor(1, thread_name_prefix="pairflip-ahead") as preparer,
            ThreadPoolExecutor(lanes, thread_name_prefix="pairflip-lane") as walkers,
            ThreadPoolExecutor(threads, thread_name_prefix="pairflip") as searchers,
            ThreadPoolExecutor(few, thread_name_prefix="pairflip-judge") as judges,
        ):
            try:
                self._get_ready()
                while more or prepared or walking or judging:
                    # What comes next is prepared while the device is busy: it does not wait for that.
                    while more and len(prepared) < lanes:
                        batch = next(parts, None)
                        more = batch is not None
                        if batch is not None:
                            prepared.append(preparer.submit(self._prepare, batch))
                    # One more for each lane than can walk: a lane that is done goes on without waiting for this thread.
                    while prepared and walking < 2 * lanes and judging < _AHEAD:
                        self._follow("walked", 0, walkers.submit(self._walk, prepared.popleft(), searchers, judges))
                        walking += 1
                    if not (walking or judging):
                        continue
                    what, number, future = self._events.get()
                    if what == "flips":
                        if tick is not None:
                            tick(number)
                        continue
                    assert future is not None
                    if what == "walked":
                        walking, judging = walking - 1, judging + future.result()
                    else:
                        judging -= 1
                        yield number, future.result()
            except BaseException:
                self._stop = True
                for work, _ in self._jobs:
                    work.stop.wanted = True
                for pool in (preparer, walkers, searchers, judges):
                    pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _get_ready(self) -> None:
        """Have the engine prepare for all sizes while the first walks are prepared."""
        if hasattr(self._engine, "get_ready") and self._way is launches:
            sizes = {(size, work.problem.gram.n_columns) for work, _ in self._jobs for size in work.sizes}
            with self._minding_failures():
                self._engine.get_ready(sorted(sizes))

    @contextmanager
    def _minding_failures(self) -> Iterator[None]:
        """Have the device that fails be lost, not the run."""
        try:
            yield
        except Exception as error:
            # It was asked whether it holds the work; to be refused now, another program must have taken its memory.
            if not isinstance(error, (*failures_of(self._engine), Refused)):
                raise
            self._lost = failure_note(error)

    def _follow(self, what: str, number: int, future: Future[Any]) -> None:
        future.add_done_callback(lambda done: self._events.put((what, number, done)))

    def _prepare(self, batch: Any) -> tuple[Any, Any, Any]:
        """What the device is asked, what it cannot hold, and what can be done before it walks."""
        if self._lost is not None:
            for job, _ in batch:
                self._rescue(self._jobs[job][0], self._lost)
            return [], [(job, launches.tasks_of(table)) for job, table in batch], None
        held, too_large = [], []
        for job, table in batch:
            refused = np.isin(table[:, 0], list(self._refused(self._jobs[job][0])))
            held.append((job, table[~refused]))
            if refused.any():
                too_large.append((job, launches.tasks_of(table[refused])))
        planned, on_cpu = self._way.prepare(self._engine, self._jobs, held)
        on_cpu, packed = on_cpu + too_large, None
        if planned:
            with self._minding_failures():
                packed = self._way.pack(self._engine, self._jobs, planned)
        return planned, on_cpu, packed

    def _walk(self, prepared: Future[Any], searchers: ThreadPoolExecutor, judges: ThreadPoolExecutor) -> int:
        """Walk one batch; returns how many answers were handed to the judges.

        Parameters
        ----------
        prepared
            As `_prepare` gives it.
        searchers
            Threads for what is walked here, without the interpreter: all there are.
        judges
            Threads for answers that are complete.
        """
        planned, on_cpu, packed = prepared.result()
        left = dict(enumerate(planned))

        def ready(at: int, walked: Any) -> None:
            each = left.pop(at)
            pool = judges if self._way.is_complete(walked) else searchers
            self._follow("judged", each.job, pool.submit(self._way.judge, self._jobs[each.job][0], each, walked))

        if self._lost is None and planned:
            lane = self._lanes.get()
            try:
                with self._minding_failures():
                    self._way.walk(self._engine, self._jobs, planned, packed, ready, self._heard, lane)
            finally:
                self._lanes.put(lane)
        handed = len(planned) - len(left)
        for each in left.values():
            self._rescue(self._jobs[each.job][0], str(self._lost))
            on_cpu.append((each.job, each.tasks))
        for job, tasks in on_cpu:
            work = self._jobs[job][0]
            for some in batches(work, tasks, _CPU_NS):
                self._follow("judged", job, searchers.submit(run_batch, work, some, "numba"))
                handed += 1
        return handed

    def _heard(self, flips: int) -> None:
        if self._stop:
            raise Halted
        self._events.put(("flips", flips, None))
