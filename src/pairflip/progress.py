"""What is shown during long work: how long it may take, and a bar where there is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_SHORT_S = 2.0
_MODEL = 0.65, 2.4
"""Real time divided by that of the cost models, lowest and highest: on ten tables 0.7 to 1.7, mostly about 1.4."""


def expected_time(seconds: float, threads: int) -> str | None:
    """What to say before long work: ``this takes about 2 to 6 min on 4 threads``; None for short work.

    It is a range, because the cost model knows the size of a table and not how hard its search is.
    """
    low, high = (factor * seconds for factor in _MODEL)
    if high < _SHORT_S:
        return None
    first, unit = _rounded(low)
    last, last_unit = _rounded(high)
    span = f"{first} {unit} to {last} {last_unit}" if unit != last_unit else f"{first} to {last} {unit}"
    return f"this takes about {span} on {threads} thread{'s' * (threads != 1)}"


def _rounded(seconds: float) -> tuple[int, str]:
    """A duration in its unit, to one digit (two below 20)."""
    for size, unit in ((3600.0, "h"), (60.0, "min"), (1.0, "s")):
        if seconds >= 1.5 * size or unit == "s":
            number = max(1, round(seconds / size))
            return number if number < 20 else int(float(f"{number:.1g}")), unit
    raise AssertionError("not reached")


@dataclass(frozen=True)
class Bar:
    """A bar on the terminal: call it with units of work, from any thread; `say` changes what stands before it."""

    advance: Callable[[int], None]
    say: Callable[[str], None]

    def __call__(self, amount: int) -> None:
        """So many units of work were done."""
        self.advance(amount)


@contextmanager
def progress_bar(title: str, total: int | None, show: bool | None) -> Iterator[Bar | None]:
    """Show a progress bar on standard error while the block runs."""
    if not (sys.stderr.isatty() if show is None else show):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=console.is_terminal) as bar:
        task = bar.add_task(title, total=total)
        yield Bar(lambda amount: bar.advance(task, amount), lambda text: bar.update(task, description=text))
