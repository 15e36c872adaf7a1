"""``python -m pairflip`` and the console script: Ctrl-C is one line from the first moment on."""

from __future__ import annotations

import sys

from pairflip.interrupt import leave


def main() -> None:
    """Run the command line; until a command begins, Ctrl-C ends the process."""
    try:
        import signal

        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # it may also be ignored, in the background
            signal.signal(signal.SIGINT, leave)
        from pairflip.cli import app
    except KeyboardInterrupt:
        leave()
    sys.unraisablehook = _unraisable
    try:
        app(prog_name="pairflip")
    finally:
        if signal.getsignal(signal.SIGINT) is leave:  # its words are not true any more
            signal.signal(signal.SIGINT, signal.SIG_DFL)


def _unraisable(what: sys.UnraisableHookArgs) -> None:
    """Show what an object could not raise when it was freed, but for memory of a device that is gone.

    There is a traceback for every piece of it, and the result has said once what happened.
    """
    if what.exc_type.__module__.partition(".")[0] not in ("cupy", "cupy_backends"):
        sys.__unraisablehook__(what)


if __name__ == "__main__":
    main()
