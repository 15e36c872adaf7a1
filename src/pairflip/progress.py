"""What is shown during long work: a bar where there is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


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
