"""How a command that could not do its work ends: one sentence on standard error and an exit code that means something.

0 done; 1 failed, too little memory, or a bug; 2 bad usage or bad input; 130 interrupted, 143 by SIGTERM.
Typer's words for bad usage differ between its versions, so the sentences are made from the signature of the command.
"""

from __future__ import annotations

import errno
import inspect
import os
import re
import shlex
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from mmap import mmap
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from pairflip import interrupt
from pairflip.text import one_line, quoted

DEBUG = "PAIRFLIP_DEBUG"
_NUMBERS_OF_COLUMNS = ("--sizes", "--k", "--size", "-k")
_SHORT = re.compile("failed to map segment|annot allocate memory|can't start new thread")
"""What libraries, and the system's loader of libraries, say where memory or threads are limited."""
_NEEDED = 2**28  # bytes, about the largest of the libraries


def say(message: str) -> None:
    """One line on standard error."""
    typer.echo(f"pairflip: {one_line(message)}", err=True)


@contextmanager
def plain_errors(journal: Path | None = None, command: str | None = None) -> Iterator[None]:
    """Turn what went wrong into one sentence and an exit code, and warnings of pairflip into sentences.

    After Ctrl-C the sentence says how to resume from the journal. With PAIRFLIP_DEBUG=1 in the environment the
    traceback of a bug is shown as well.
    """
    show_warning = warnings.showwarning

    def show_ours(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
        if category.__module__.partition(".")[0] == "pairflip":
            say(str(message))
        else:
            show_warning(message, category, *where, **more)

    warnings.showwarning = show_ours
    interrupt.sentence = lambda: one_line(interrupt.interrupted(journal, command))
    try:
        yield
    except (typer.Exit, typer.Abort):
        raise
    except BaseException as error:
        if interrupt.received or isinstance(error, KeyboardInterrupt):  # what it stopped may raise another error
            interrupt.stop_listening()
            code, message = interrupt.exit_code(), interrupt.sentence()
        elif isinstance(error, Exception) and getattr(error, "errno", None) != errno.EPIPE:
            if os.environ.get(DEBUG, "0") not in ("", "0"):
                import traceback

                traceback.print_exc()
            code, message = _verdict(error)
        else:  # the program that reads our output has stopped reading
            raise
        say(message)
        raise typer.Exit(code) from None
    finally:
        warnings.showwarning = show_warning


def _verdict(error: Exception) -> tuple[int, str]:
    """Exit code and sentence of an error."""
    if isinstance(error, (ValueError, TypeError)):
        return 2, str(error)
    if _is_shortage(error):
        return 1, interrupt.SHORTAGE
    if isinstance(error, OSError):
        where = f"{os.fsdecode(error.filename)!r}: " if error.filename is not None else ""
        return 2, f"{where}{str(error.strerror or error).rstrip('.')}."
    return 1, (
        f"this is a bug: {type(error).__name__}: {error}. Please report it, with what {DEBUG}=1 in the environment "
        "shows."
    )


def _is_shortage(error: BaseException) -> bool:
    """Whether an error, or one that led to it, says that memory or threads are not to be had, or none are now."""
    each: BaseException | None = error
    while each is not None:
        if isinstance(each, MemoryError) or _SHORT.search(str(each)):
            return True
        each = each.__cause__ or each.__context__
    if getattr(error, "filename", None) is not None:
        return False
    try:  # a library that gets no memory may fail in any way
        mmap(-1, _NEEDED).close()
    except OSError:
        return True
    return False


class PlainFlags:
    """A command whose help has nothing behind options that take no value, where Typer would write ``<bool>``."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options and arguments, as Click has them."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for each in parameters:
            if getattr(each, "is_flag", False) and each.metavar is None:
                each.metavar = ""
        return parameters


class PlainCommand(PlainFlags, TyperCommand):
    """One of the commands."""


class PlainGroup(PlainFlags, TyperGroup):
    """The commands; bad usage is also one sentence, and `ctx.obj` is the command as it was typed."""

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
        typed = shlex.join(["pairflip", *(sys.argv[1:] if args is None else args)])
        interrupt.sentence = interrupt.interrupted
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
            # Searches stop within milliseconds after Ctrl-C or an error, but the interpreter ends before them, and a
            # thread that returns from compiled code into an interpreter that is gone aborts the process. So does a
            # library that was loaded in part.
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError, ValueError):
                    stream.flush()
            os._exit(code)
        sys.exit(code or 0)


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


def usage_sentence(error: Any) -> str | None:
    """One sentence about a value that cannot be used or is missing; None where the library's own words will do."""
    message = str(error.format_message()).rstrip()
    context, parameter = getattr(error, "ctx", None), getattr(error, "param", None)
    extra = re.fullmatch(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", message)
    if extra:
        named = context is not None and any(each.name == "target" for each in context.command.params)
        hint = "; put names with spaces in quotes, as in --target 'gene 1'" if named else ""
        return f"{extra[1]!r} was not expected here{hint}."
    if context is not None and getattr(error, "option_name", None) in _NUMBERS_OF_COLUMNS:
        return _other_option(error.option_name, context)
    if context is None or parameter is None:
        return None
    kind, info = annotation(context.command, parameter)
    name, wanted = option_name(parameter), expected_words(kind, info)
    if type(error).__name__ == "MissingParameter":
        text = str(getattr(info, "help", None) or "a value").rstrip(".")
        wanted = wanted if name.startswith("-") else text[0].lower() + text[1:]
        return f"{name} is missing; expected {wanted or text}."
    if wanted is None:
        return None
    config, where = context.params.get("config"), ""
    if config is not None and getattr(context.get_parameter_source(parameter.name), "name", "") == "DEFAULT_MAP":
        from pairflip.tables.errors import shown_path

        where = f" in {shown_path(config)}"
    return f"{name} {_given_words(error)}{where}; expected {wanted}."


def _other_option(given: str, context: Any) -> str | None:
    """The option that this command has for the number of columns, or of terms, where others are spelled so."""
    known = {option for each in context.command.params for option in each.opts}
    name = next((name for name in _NUMBERS_OF_COLUMNS if name in known), None)
    value = re.search(rf" {given}[ =](\d+)(?= |$)", str(context.obj))
    return name and f"{given} is not an option of this command; expected {name} {value[1] if value else 'N'}."


def _given_words(error: Any) -> str:
    """What is said of the value that was refused."""
    details = getattr(error.__cause__, "errors", None)
    if callable(details):
        problems: Sequence[Any] = details()
        given = problems[0].get("input") if problems else None
    else:
        match = re.match(r"(?:Value )?('[^']*'|\S+) is not ", str(error.message))
        given = None if match is None else match[1].strip("'")
    if given is None:
        return "has a value that cannot be used"
    is_number = re.fullmatch(r"[+-]?[\d.]+([eE][+-]?\d+)?|nan|inf", str(given))
    return f"is {given if is_number else quoted(str(given))}"


def option_name(parameter: Any) -> str:
    """The option as people write it, ``--drop-text``; an argument in capitals, as in the help."""
    longest: str = max(parameter.opts, key=len)
    return longest if longest.startswith("-") else str(parameter.metavar or longest).upper()


def expected_words(kind: Any, info: Any) -> str | None:
    """What an option or argument takes, in words; None for what takes any text."""
    if kind is int or kind is float:
        word = "a whole number" if kind is int else "a number"
        return word if getattr(info, "min", None) is None else f"{word}, at least {info.min}"
    if get_origin(kind) is Literal:
        *others, last = map(repr, get_args(kind))
        return f"{', '.join(others)} or {last}" if others else last
    return "the name of a file or folder" if kind is Path else None


def annotation(command: Any, parameter: Any) -> tuple[Any, Any]:
    """(type of one value, what Typer was told about it) from the signature of the function behind the command."""
    function = inspect.unwrap(command.callback)
    hint, info = get_type_hints(function, include_extras=True).get(parameter.name), None
    if get_origin(hint) is Annotated:
        hint, info = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        hint = next(each for each in get_args(hint) if each is not type(None))
    return (get_args(hint)[0] if get_origin(hint) is list else hint), info
