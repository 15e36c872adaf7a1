"""``python -m pairflip`` and the console script: Ctrl-C is one line from the first moment on."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pairflip.interrupt import leave

if TYPE_CHECKING:
    from types import TracebackType


def main() -> None:
    """Run the command line; until a command begins, Ctrl-C ends the process."""
    try:
        import signal

        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # it may also be ignored, in the background
            signal.signal(signal.SIGINT, leave)
        from pairflip.cli import app
    except KeyboardInterrupt:
        leave()
    try:
        app(prog_name="pairflip")
    finally:
        if signal.getsignal(signal.SIGINT) is leave:  # its words are not true any more
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        _keep_quiet_about_a_device_that_is_gone()  # not before: Typer has a hook of its own


def _keep_quiet_about_a_device_that_is_gone() -> None:
    """Have CuPy show no traceback for every piece of memory that it cannot free: the result said once what happened.

    It does so when the interpreter ends, where hooks can count on nothing but what they hold themselves.
    """
    show, show_error = sys.unraisablehook, sys.excepthook

    def is_of_cupy(kind: type[BaseException]) -> bool:
        return kind.__module__.startswith("cupy")

    def unraisable(what: sys.UnraisableHookArgs) -> None:
        if not is_of_cupy(what.exc_type):
            show(what)

    def error(kind: type[BaseException], value: BaseException, where: TracebackType | None) -> None:
        if not is_of_cupy(kind):
            show_error(kind, value, where)

    sys.unraisablehook, sys.excepthook = unraisable, error


if __name__ == "__main__":
    main()
