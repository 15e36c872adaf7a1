"""``python -m pairflip`` and the console script: Ctrl-C is one line from the first moment on."""

import sys

from pairflip.interrupt import listen, stop_listening

TYPE_CHECKING = False  # of typing, which takes longer to load than Python itself
if TYPE_CHECKING:
    from types import TracebackType


def main() -> None:
    """Run the command line."""
    listen()
    from pairflip.cli import app

    try:
        app(prog_name="pairflip")
    finally:
        stop_listening()
        _keep_quiet_about_a_device_that_is_gone()  # not before: Typer has a hook of its own


def _keep_quiet_about_a_device_that_is_gone() -> None:
    """Have CuPy show no traceback for every piece of memory that it cannot free: the result said once what happened.

    It does so when the interpreter ends, where hooks can count on nothing but what they hold themselves.
    """
    show, show_error = sys.unraisablehook, sys.excepthook

    def is_of_cupy(kind: type[BaseException]) -> bool:
        return kind.__module__.startswith("cupy")

    def unraisable(what: "sys.UnraisableHookArgs") -> None:
        if not is_of_cupy(what.exc_type):
            show(what)

    def error(kind: type[BaseException], value: BaseException, where: "TracebackType | None") -> None:
        if not is_of_cupy(kind):
            show_error(kind, value, where)

    sys.unraisablehook, sys.excepthook = unraisable, error


if __name__ == "__main__":
    main()
