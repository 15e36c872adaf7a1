"""What a selection shows while it runs: chains done, rate, time left, and the error so far."""

from __future__ import annotations

import math
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from multiprocessing import current_process
from threading import current_thread, main_thread
from typing import Any, Literal

import numpy as np

from pairflip.interrupt import interrupted
from pairflip.jobs import workers
from pairflip.progress import expected_time
from pairflip.search.portfolio import first_best
from pairflip.selection.journal import Found
from pairflip.selection.tasks import ALL_ROWS, Task, Work
from pairflip.selection.walks import Outcome

Show = bool | Literal["log", "late"] | None
_BARS = "▁▂▃▄▅▆▇█"
_SHOW_SECONDS = 0.5
_LOG_SECONDS = 60.0
_LATE_SECONDS = 5.0  # what is done by then need not be shown
_following: ContextVar[float | None] = ContextVar("following", default=0.0)


@contextmanager
def followed_by(seconds: float | None) -> Iterator[None]:
    """Within the block, the time that is told includes so many seconds of what comes after it.

    None: no time is told, because one that was told before includes it.
    """
    before = _following.get()
    token = _following.set(None if before is None or seconds is None else before + seconds)
    try:
        yield
    finally:
        _following.reset(token)


def foreseen_seconds(work: Work, chains: Mapping[int, int], folds: int, threads: int) -> float:
    """Seconds that searches take by the cost models."""
    problem, total, longest = work.problem, 0.0, 0.0
    if problem.loss.quadratic:
        total = float(folds) * problem.X.size * min(problem.X.shape)
    for size, count in chains.items():
        chain = work.nanoseconds(size, 1)
        total, longest = total + count * chain, max(longest, chain)
    return 1e-9 * max(total / threads, longest)


def check_show(show: Any) -> None:
    """Refuse a value of `progress` that has no meaning."""
    if show not in (True, False, None, "log", "late"):
        raise ValueError(f"progress is {show!r}; expected True, False, None, 'log' or 'late'.")


def _watched() -> bool:
    """Whether somebody sees what this process says: on a terminal or in a notebook, and not beside other workers."""
    alone = current_process().name == "MainProcess" and current_thread() is main_thread()
    return alone and (sys.stderr.isatty() or "ipykernel" in sys.modules)


class ErrorSoFar:
    """Held-out error of each size over the folds finished so far (a random sample of all folds, hence only a hint)."""

    def __init__(self, work: Work, found: Found) -> None:
        self._work = work
        self._sums = np.zeros((2, len(work.sizes)))
        self._open: dict[tuple[int, int], int] = {}
        self._ready: list[tuple[int, int]] = []
        for size, fold, _ in found.done:
            self._count((size, fold), 1)

    def add(self, outcomes: Sequence[Outcome]) -> None:
        """Note finished chains."""
        for outcome in outcomes:
            self._count((outcome.task.size, outcome.task.fold), outcome.n_chains)

    def _count(self, cell: tuple[int, int], chains: int) -> None:
        if cell[1] == ALL_ROWS:
            return
        left = self._open.pop(cell, self._work.chains) - chains
        if left:
            self._open[cell] = left
        else:
            self._ready.append(cell)

    def update(self, found: Found, seconds: float = 0.02) -> None:
        """Score finished folds, for a limited time."""
        until = time.perf_counter() + seconds
        work = self._work
        while self._ready and time.perf_counter() < until:
            size, fold = self._ready.pop()
            supports, energies = found.cell(size, fold, work.chains)
            best = supports[first_best(energies, work.problem.form.yy)]
            judge = work.problem.loss.held_out(work.problem, work.folds.only(fold))
            residual = judge.residuals(best[None, None, :])[0]
            at = work.sizes.index(size)
            self._sums[0, at] += float(judge.row_errors(residual).sum()) / 2.0
            self._sums[1, at] += residual.size

    def line(self) -> str:
        """The best size so far and a small plot of the curve, or nothing."""
        if len(self._work.sizes) < 2 or not self._sums[1].all():
            return ""
        error = self._sums[0] / self._sums[1]
        spread = float(np.ptp(error)) or 1.0
        plot = "".join(_BARS[round(7 * float(e - error.min()) / spread)] for e in error)
        return f"best size so far {self._work.sizes[int(np.argmin(error))]} {plot}"


class SelectionProgress:
    """One display: a bar on a terminal, one line per minute in a log, or nothing; "late": only of what takes longer.

    `n_jobs` are the threads or workers that do the tasks; 0 is a device, whose time is not foreseen.
    """

    def __init__(
        self,
        work: Work,
        tasks: Sequence[Task],
        found: Found,
        show: Show,
        journal: str | os.PathLike[str] | None,
        n_jobs: int | None,
    ) -> None:
        self._found = found
        self._work, self._tasks, self._n_jobs = work, tasks, n_jobs
        self._journal = journal
        self._total = sum(task.last - task.first for task in tasks)
        self._kept = len(found.done)
        self._done, self._walked = 0, 0.0
        self._flips = int(work.flips.sum())
        self._began = self._shown = time.monotonic()
        self._first: tuple[float, int] | None = None  # when the first chains were done, and how many
        if show == "late":
            self._kind = "late" if _watched() else "none"
        elif show == "log":
            self._kind = "bar" if sys.stderr.isatty() else "log"
        else:
            self._kind = "bar" if (sys.stderr.isatty() if show is None else show) else "none"
        self._error = ErrorSoFar(work, found) if self._kind != "none" else None
        self._bar: Any = None
        self._context: AbstractContextManager[Any] = nullcontext()

    def __enter__(self) -> SelectionProgress:
        if self._kind == "bar" and self._total:
            self._open_bar()
        if self._kept and self._kind not in ("none", "late"):
            self._say(f"resumed: {self._kept} chains were in the journal, {self._total} remain")
        if self._kind not in ("none", "late"):
            self._say_duration()
        return self

    def _open_bar(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("selecting"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("chains, {task.fields[rate]}/s, left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
        )
        console = Console(stderr=True)
        self._context = Progress(*columns, console=console, transient=True)
        self._bar = self._context.__enter__()
        self._bar_task = self._bar.add_task("", total=self._total, rate="?", note="")

    def _say_duration(self) -> None:
        """How long it may take, by the cost model, which knows the compiled engine on CPUs."""
        following = _following.get()
        device = self._n_jobs == 0 or self._work.engine not in ("auto", "numba")
        if not self._tasks or device or following is None:
            return
        threads = workers(self._n_jobs)
        chains: Counter[int] = Counter()
        for task in self._tasks:
            chains[task.size] += task.last - task.first
        folds = len({task.fold for task in self._tasks})
        seconds = foreseen_seconds(self._work, chains, folds, threads)
        text = expected_time(seconds + following, threads)
        if text is not None and expected_time(seconds, threads) is not None:  # otherwise it ends before it is read
            self._say(text)

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        self._context.__exit__(kind, error, traceback)
        if isinstance(error, KeyboardInterrupt) and not error.args:  # the last line of its traceback says what is kept
            error.args = (interrupted(self._journal, "the same call"),)

    def advance(self, outcomes: Sequence[Outcome]) -> None:
        """Count finished tasks."""
        self._done += sum(outcome.n_chains for outcome in outcomes)
        if self._error is not None:
            self._error.add(outcomes)
            self._refresh(self._error)

    def tick(self, flips: int) -> None:
        """Count flips of chains that are under way (a device reports its work before any chain is judged)."""
        self._walked += flips / self._flips
        if self._error is not None:
            self._refresh(self._error)

    def _refresh(self, error: ErrorSoFar) -> None:
        now = time.monotonic()
        if self._first is None and self._done:
            self._first = now, self._done
        if self._kind == "late":
            if now - self._began < _LATE_SECONDS:
                return
            self._kind, self._shown = ("bar" if sys.stderr.isatty() else "log"), -math.inf
            if self._kind == "bar":
                self._open_bar()
        if now - self._shown < (_SHOW_SECONDS if self._kind == "bar" else _LOG_SECONDS):
            return
        self._shown = now
        error.update(self._found)
        done = max(self._done, min(int(self._walked), self._total))
        # The first chains wait for kernels to be compiled, which says nothing about the others.
        since, before = self._first or (self._began, 0)
        rate = (done - before) / max(now - since, 1e-9)
        if self._bar is not None:
            self._bar.update(self._bar_task, completed=done, rate=f"{rate:.3g}" if rate else "?", note=error.line())
            return
        speed = f"after {now - self._began:.0f} s"
        if rate:
            speed = f"{rate:.3g}/s, {(self._total - done) / rate:.0f} s left"
        self._say("; ".join(filter(None, [f"{done} of {self._total} chains, {speed}", error.line()])))

    def _say(self, text: str) -> None:
        print(f"pairflip: {text}", file=sys.stderr, flush=True)
