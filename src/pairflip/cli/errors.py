"""How a command that could not do its work ends: one sentence on standard error and an exit code that means something.

0 done; 1 failed, or a bug; 2 bad usage or bad input; 130 interrupted, 143 by SIGTERM.
"""

from __future__ import annotations

import errno
import os
import shlex
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import typer
from typer.core import TyperGroup

from pairflip import interrupt
from pairflip.cli.usage import PlainFlags, usage_sentence
from pairflip.interrupt import interrupted
from pairflip.text import one_line

DEBUG = "PAIRFLIP_DEBUG"


def typed(context: typer.Context) -> str:
    """The command as it was typed."""
    return shlex.join(["pairflip", *(context.obj or [])])


def say(message: str) -> None:
    """One line on standard error."""
    typer.echo(f"pairflip: {one_line(message)}", err=True)


@contextmanager
def plain_errors(sentence: Callable[[], str] = interrupted) -> Iterator[None]:
    """Turn what went wrong into one sentence and an exit code; `sentence` gives the one shown after Ctrl-C.

    With PAIRFLIP_DEBUG=1 in the environment the traceback of a bug is shown as well.
    """
    with _warnings():
        try:
            interrupt.sentence = lambda: one_line(sentence())
            yield
        except (typer.Exit, typer.Abort):
            raise
        except BaseException as error:
            if interrupt.received or isinstance(error, KeyboardInterrupt):  # what it stopped may raise another error
                interrupt.stop_listening()
                code, message = interrupt.exit_code(), interrupt.sentence()
            elif isinstance(error, Exception) and getattr(error, "errno", None) != errno.EPIPE:
                _show_traceback()
                code, message = _verdict(error)
            else:  # the program that reads our output has stopped reading
                raise
            say(message)
            raise typer.Exit(code) from None


def _verdict(error: Exception) -> tuple[int, str]:
    """Exit code and sentence of an error."""
    if isinstance(error, (ValueError, TypeError)):
        return 2, str(error)
    if isinstance(error, OSError):
        where = f"{os.fsdecode(error.filename)!r}: " if error.filename is not None else ""
        return 2, f"{where}{str(error.strerror or error).rstrip('.')}."
    if isinstance(error, MemoryError):
        return 1, "there is not enough memory for this; try fewer columns (--keep), or fewer chains or jobs at a time."
    return 1, (
        f"this is a bug: {type(error).__name__}: {error}. Please report it, with what {DEBUG}=1 in the environment "
        "shows."
    )


@contextmanager
def _warnings() -> Iterator[None]:
    """Our own warnings are one line on standard error, like all our messages."""
    show = warnings.showwarning

    def plain(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
        if category.__module__.partition(".")[0] == "pairflip":
            say(str(message))
        else:
            show(message, category, *where, **more)

    warnings.showwarning = plain
    try:
        yield
    finally:
        warnings.showwarning = show


def _show_traceback() -> None:
    if os.environ.get(DEBUG, "0") not in ("", "0"):
        import traceback

        traceback.print_exc()


class PlainGroup(PlainFlags, TyperGroup):
    """The commands; bad usage is also one sentence, and `ctx.obj` is the list of arguments as typed."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command that the arguments name; the parameters are those of Click's `BaseCommand.main`."""
        typed = list(sys.argv[1:] if args is None else args)
        interrupt.sentence = interrupted
        for stream in (sys.stdout, sys.stderr):  # a terminal that lacks a character shows its escape
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        try:
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra, obj=typed)
        except (KeyboardInterrupt, typer.Abort):  # before a command had begun, or after its end
            say(interrupt.sentence())
            code = interrupt.exit_code()
        except Exception as error:
            if not standalone_mode or not hasattr(error, "format_message"):
                raise
            code = _show_usage_error(error)
        if not standalone_mode:
            return code
        if code and args is None:
            _leave_now(code)
        sys.exit(code or 0)


def _leave_now(code: int) -> None:
    """End the process although threads are still at work.

    After Ctrl-C or an error the walks stop within milliseconds, but the end of the interpreter does not wait for them,
    and a thread that returns from compiled code into an interpreter that is gone aborts the process.
    """
    if threading.active_count() > 1:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


def _show_usage_error(error: Any) -> int:
    """One sentence instead of a box, and where help is; without any arguments it is the help itself."""
    message = str(error.format_message())
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(message, err=True)
    else:
        context = getattr(error, "ctx", None)
        path = "pairflip" if context is None else context.command_path
        say(f"{usage_sentence(error) or message.rstrip()} ({path} --help shows what can be given.)")
    return int(error.exit_code)
