"""What a selection shows while it runs: chains done, rate, time left, and the error so far."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from multiprocessing import current_process
from threading import current_thread, main_thread
from typing import Any, Literal

import numpy as np

from pairflip.interrupt import interrupted
from pairflip.journal_file import Folder
from pairflip.search.portfolio import first_best
from pairflip.selection.tasks import Outcome, Results, Task, n_chains

Show = bool | Literal["log", "late"] | None
_BARS = "▁▂▃▄▅▆▇█"
_SHOW_SECONDS = 0.5
_LOG_SECONDS = 60.0
_LATE_SECONDS = 5.0  # what is done by then need not be shown
_SCORE_SECONDS = 0.02  # for the error so far, each time it is shown


class SelectionProgress:
    """A bar on a terminal, a line a minute in a log, or nothing; "late": only of what takes long."""

    def __init__(self, results: Results, tasks: Sequence[Task], show: Show, journal: Folder | None) -> None:
        self._grid, self._journal = results.grid, journal
        self._results, self._total, self._resumed = results, n_chains(tasks), results.n_chains
        self._sums = np.zeros((2, len(self._grid.sizes)))  # errors and rows of the folds that were scored
        self._scored = np.zeros((len(self._grid.sizes), len(self._grid.folds)), bool)
        self._done, self._walked = 0, 0.0
        self._began = self._shown = time.monotonic()
        self._first: tuple[float, int] | None = None  # when the first chains were done, and how many
        terminal = sys.stderr.isatty()
        if show == "late":  # where somebody sees it: not beside other workers
            alone = current_process().name == "MainProcess" and current_thread() is main_thread()
            self._kind = "late" if alone and (terminal or "ipykernel" in sys.modules) else "none"
        elif show is True or (terminal and show is not False):
            self._kind = "bar"
        else:
            self._kind = "log" if show == "log" else "none"
        self._bar: Any = None
        self._context: AbstractContextManager[Any] = nullcontext()

    def __enter__(self) -> SelectionProgress:
        if self._kind == "bar" and self._total:
            self._open_bar()
        if self._kind in ("bar", "log") and self._resumed:
            _say(f"resumed: {self._resumed} chains were in the journal, {self._total} remain")
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
        self._context = Progress(*columns, console=Console(stderr=True), transient=True)
        self._bar = self._context.__enter__()
        self._bar_task = self._bar.add_task("", total=self._total, rate="?", note="")

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        self._context.__exit__(kind, error, traceback)
        if isinstance(error, KeyboardInterrupt) and not error.args:  # the last line of its traceback says what is kept
            error.args = (interrupted(self._journal, "the same call"),)

    def advance(self, outcomes: Sequence[Outcome]) -> None:
        """Count finished tasks."""
        self._done += n_chains([outcome.task for outcome in outcomes])
        if self._kind != "none":
            self._refresh()

    def tick(self, flips: int) -> None:
        """Count flips of chains that are under way (a device reports its work before any chain is judged)."""
        if self._kind != "none":
            schedule = self._grid.schedule
            assert schedule is not None
            self._walked += flips / int(schedule.flips(self._grid.problem.form.n_columns).sum())
            self._refresh()

    def _refresh(self) -> None:
        """Show what is done, if it is time for that."""
        time_now = time.monotonic()
        if self._first is None and self._done:
            self._first = time_now, self._done
        if self._kind == "late":
            if time_now - self._began < _LATE_SECONDS:
                return
            self._kind, self._shown = ("bar" if sys.stderr.isatty() else "log"), -math.inf
            if self._kind == "bar":
                self._open_bar()
        if time_now - self._shown < (_SHOW_SECONDS if self._kind == "bar" else _LOG_SECONDS):
            return
        self._shown = time_now
        done = max(self._done, min(int(self._walked), self._total))
        # The first chains wait for kernels to be compiled, which says nothing about the others.
        since, before = self._first or (self._began, 0)
        rate = (done - before) / max(time_now - since, 1e-9)
        note = self._best_so_far()
        if self._bar is not None:
            self._bar.update(self._bar_task, completed=done, rate=f"{rate:.3g}" if rate else "?", note=note)
            return
        speed = f"after {time_now - self._began:.0f} s"
        if rate:
            speed = f"{rate:.3g}/s, {(self._total - done) / rate:.0f} s left"
        _say("; ".join(filter(None, [f"{done} of {self._total} chains, {speed}", note])))

    def _best_so_far(self) -> str:
        """The best size by the folds finished so far (a random sample of all, hence only a hint), and a small plot."""
        grid, until = self._grid, time.perf_counter() + _SCORE_SECONDS
        for at, size in enumerate(grid.sizes):
            supports, energies = self._results.of(size)
            for fold in np.flatnonzero(np.isfinite(energies).all(axis=1) & ~self._scored[at]).tolist():
                if time.perf_counter() > until:
                    break
                best = supports[fold, first_best(energies[fold], grid.problem.form.yy)]
                judge = grid.problem.loss.held_out(grid.problem, grid.folds.some([fold]))
                residual = judge.judged(best[None, None, :])[0][0]
                self._sums[:, at] += float(judge.row_errors(residual).sum()) / 2.0, residual.size
                self._scored[at, fold] = True
        if len(grid.sizes) < 2 or not self._sums[1].all():
            return ""
        error = self._sums[0] / self._sums[1]
        spread = float(np.ptp(error)) or 1.0
        plot = "".join(_BARS[round(7 * float(e - error.min()) / spread)] for e in error)
        return f"best size so far {grid.sizes[int(np.argmin(error))]} {plot}"


def _say(text: str) -> None:
    print(f"pairflip: {text}", file=sys.stderr, flush=True)
