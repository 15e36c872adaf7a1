"""Bad usage in our own words: what was given, what is expected.

Which library reads the arguments, and how it puts things, differs between versions of Typer; what an option takes
stands in the signature of its command, so the sentences are made from there.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from typer.core import TyperCommand


class PlainFlags:
    """A command whose help has nothing behind options that take no value, where Typer would write ``<bool>``."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options and arguments, as Click has them."""
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for each in found:
            if getattr(each, "is_flag", False) and each.metavar is None:
                each.metavar = ""
        return found


class PlainCommand(PlainFlags, TyperCommand):
    """One of the commands."""


def usage_sentence(error: Any) -> str | None:
    """One sentence about a value that cannot be used or is missing; None where the library's own words will do."""
    message = str(error.format_message()).rstrip()
    context, parameter = getattr(error, "ctx", None), getattr(error, "param", None)
    extra = re.fullmatch(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", message)
    if extra:
        named = context is not None and any(each.name == "target" for each in context.command.params)
        hint = "; put names with spaces in quotes, as in --target 'gene 1'" if named else ""
        return f"{extra[1]!r} was not expected here{hint}."
    if context is None or parameter is None:
        return None
    kind, info = annotation(context.command, parameter)
    if type(error).__name__ == "MissingParameter":
        name = option_name(parameter)
        text = str(getattr(info, "help", None) or "a value").rstrip(".")
        wanted = expected_words(kind, info) if name.startswith("-") else text[0].lower() + text[1:]
        return f"{name} is missing; expected {wanted or text}."
    wanted = expected_words(kind, info)
    if wanted is None:
        return None
    given = _given(error)
    what = "has a value that cannot be used" if given is None else f"is {_shown(given)}"
    return f"{option_name(parameter)} {what}{_from_config(context, parameter)}; expected {wanted}."


def option_name(parameter: Any) -> str:
    """The option as people write it, ``--drop-text``; an argument in capitals, as in the help."""
    longest: str = max(parameter.opts, key=len)
    return longest if longest.startswith("-") else str(parameter.metavar or longest).upper()


def expected_words(kind: Any, info: Any) -> str | None:
    """What an option or argument takes, in words; None for what takes any text."""
    if kind is int or kind is float:
        word = "a whole number" if kind is int else "a number"
        return word if getattr(info, "min", None) is None else f"{word}, at least {info.min}"
    if isinstance(kind, type) and issubclass(kind, Enum):
        *others, last = [repr(str(each.value)) for each in kind]
        return f"{', '.join(others)} or {last}" if others else last
    return "the name of a file or folder" if kind is Path else None


def annotation(command: Any, parameter: Any) -> tuple[Any, Any]:
    """(type of one value, what Typer was told about it) from the signature of the function behind the command."""
    function = inspect.unwrap(command.callback)
    hint = get_type_hints(function, include_extras=True).get(parameter.name)
    info = None
    while hint is not None:
        if get_origin(hint) is Annotated:
            hint, info = get_args(hint)
        elif get_origin(hint) in (Union, UnionType):
            hint = next(each for each in get_args(hint) if each is not type(None))
        elif get_origin(hint) is list:
            (hint,) = get_args(hint)
        else:
            break
    return hint, info


def _given(error: Any) -> Any:
    """The value that was refused."""
    details = getattr(error.__cause__, "errors", None)
    if callable(details):
        found: Sequence[Any] = details()
        return found[0].get("input") if found else None
    quoted = re.match(r"(?:Value )?('[^']*'|\S+) is not ", str(error.message))
    return None if quoted is None else quoted[1].strip("'")


def _shown(value: Any) -> str:
    from pairflip.text import quoted

    text = str(value)
    return text if re.fullmatch(r"[+-]?[\d.]+([eE][+-]?\d+)?|nan|inf", text) else quoted(text)


def _from_config(context: Any, parameter: Any) -> str:
    """Where the value stands, if not on the command line."""
    from pairflip.tables.errors import shown_path

    source = context.get_parameter_source(parameter.name)
    config = context.params.get("config")
    return f" in {shown_path(config)}" if config is not None and getattr(source, "name", "") == "DEFAULT_MAP" else ""
