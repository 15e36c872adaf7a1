"""How a command ends that could not do its work: one sentence on standard error and an exit code that means something.

0 done; 1 failed, or a bug; 2 bad usage or bad input; 130 interrupted.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import typer
from typer.core import TyperGroup

from pairflip.cli.names import one_line
from pairflip.cli.usage import usage_sentence

DEBUG = "PAIRFLIP_DEBUG"


def say(message: str) -> None:
    """One line on standard error."""
    typer.echo(f"pairflip: {one_line(message)}", err=True)


@contextmanager
def plain_errors(interrupted: str = "interrupted; nothing was written.") -> Iterator[None]:
    """Turn what went wrong into one sentence and an exit code; `interrupted` is the sentence after Ctrl-C.

    With PAIRFLIP_DEBUG=1 in the environment the traceback of a bug is shown, too.
    """
    try:
        yield
    except (typer.Exit, typer.Abort):
        raise
    except KeyboardInterrupt:
        say(interrupted)
        raise typer.Exit(130) from None
    except (ValueError, TypeError) as error:
        _show_traceback()
        say(str(error))
        raise typer.Exit(2) from None
    except OSError as error:
        if error.errno == errno.EPIPE:  # the reader of our output has had enough
            raise
        _show_traceback()
        where = f"{os.fsdecode(error.filename)!r}: " if error.filename is not None else ""
        say(f"{where}{str(error.strerror or error).rstrip('.')}.")
        raise typer.Exit(2) from None
    except MemoryError:
        say("there is not enough memory for this; try fewer columns (--keep), or fewer chains or jobs at a time.")
        raise typer.Exit(1) from None
    except Exception as error:
        _show_traceback()
        say(
            f"this is a bug: {type(error).__name__}: {error}. Please report it, with what {DEBUG}=1 in the "
            "environment shows."
        )
        raise typer.Exit(1) from None


def _show_traceback() -> None:
    if os.environ.get(DEBUG, "0") not in ("", "0"):
        import traceback

        traceback.print_exc()


class PlainGroup(TyperGroup):
    """The commands; bad usage is one sentence, too, and `ctx.obj` is the list of arguments as typed."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command that the arguments name."""
        typed = list(sys.argv[1:] if args is None else args)
        for stream in (sys.stdout, sys.stderr):  # a terminal that lacks a character shows its escape
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        try:
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra, obj=typed)
        except (KeyboardInterrupt, typer.Abort):  # before a command had begun
            say("interrupted; nothing was written.")
            code = 130
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
    """End the process though threads are still at work.

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
