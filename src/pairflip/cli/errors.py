"""How a command that could not do its work ends: one sentence on standard error and an exit code that means something.

0 done; 1 failed, or a bug; 2 bad usage or bad input; 130 interrupted.
"""

from __future__ import annotations

import _thread
import errno
import os
import shlex
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import typer
from typer.core import TyperGroup

from pairflip.cli.usage import PlainFlags, usage_sentence
from pairflip.interrupt import CODE, interrupted
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
    with _interrupts(sentence) as pressed, _warnings():
        try:
            yield
        except (typer.Exit, typer.Abort):
            raise
        except BaseException as error:
            if pressed or isinstance(error, KeyboardInterrupt):  # what Ctrl-C stopped may raise another error
                code, message = CODE, sentence()
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
def _interrupts(sentence: Callable[[], str]) -> Iterator[list[int]]:
    """Ctrl-C raises KeyboardInterrupt, and is noted in the list; a second one ends the process at once.

    Python drops an exception that is raised while an object is being freed, or while a module's lock is: such a
    KeyboardInterrupt is raised again a moment later.
    """
    pressed: list[int] = []
    again: list[threading.Timer] = []
    show = sys.unraisablehook

    def press(number: int, _: Any) -> None:
        if again:
            again.clear()
        else:
            pressed.append(number)
        if len(pressed) > 1:
            say(sentence())
            os._exit(CODE)
        raise KeyboardInterrupt

    def dropped(what: sys.UnraisableHookArgs) -> None:
        if issubclass(what.exc_type, KeyboardInterrupt) and pressed:
            again[:] = [threading.Timer(0.01, _press_again)]
            again[0].daemon = True
            again[0].start()
        else:
            show(what)

    before = signal.getsignal(signal.SIGINT)
    if before is None or before is signal.SIG_IGN or threading.current_thread() is not threading.main_thread():
        yield pressed
        return
    signal.signal(signal.SIGINT, press)
    sys.unraisablehook = dropped
    try:
        yield pressed
    finally:
        for timer in again:  # the work ended before
            timer.cancel()
        sys.unraisablehook = show
        signal.signal(signal.SIGINT, before)


def _press_again() -> None:
    """Send the signal of Ctrl-C to the main thread, from another one."""
    if hasattr(signal, "pthread_kill"):  # it also ends a wait of the main thread
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()


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
        """Run the command that the arguments name; the parameters are those of Click's `BaseCommand.main`.

        Parameters
        ----------
        args : sequence of str, optional
            Arguments; those of the process if not given.
        prog_name, complete_var, windows_expand_args
            Passed on to Click.
        standalone_mode : bool
            Whether to end the process with the exit code; otherwise it is returned.
        **extra
            Passed on to Click.
        """
        typed = list(sys.argv[1:] if args is None else args)
        for stream in (sys.stdout, sys.stderr):  # a terminal that lacks a character shows its escape
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        try:
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra, obj=typed)
        except (KeyboardInterrupt, typer.Abort):  # before a command had begun
            say(interrupted())
            code = CODE
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
