"""Options that belong together, declared once: a dataclass in a command's signature stands for its fields.

Typer makes a command line of a signature, so that every option has to be a parameter. The command

    def fit(*, table: TableOptions, search: Annotated[SearchOptions, Without("polish")], k: K) -> None:

is given to Typer as `expanded(fit)`, which takes every field of the two dataclasses but one, in their order, and calls
`fit` with both of them filled; a field that is left out keeps its default.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints


class Without:
    """Beside a dataclass of options: these are not among those of the command."""

    def __init__(self, *names: str) -> None:
        self.names = names


def expanded(function: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer is to see it: with the fields of its dataclasses of options as parameters."""
    hints = get_type_hints(function, include_extras=True)
    parameters: list[inspect.Parameter] = []
    subjects: dict[str, tuple[type, list[str]]] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        kind, left_out = _subject(hints[name])
        if kind is None:
            parameters.append(_parameter(name, hints[name], parameter.default))
        else:
            taken = [each for each in _fields(kind) if each.name not in left_out]
            parameters += taken
            subjects[name] = kind, [each.name for each in taken]

    def command(**given: Any) -> None:
        filled = {
            name: kind(**{option: given.pop(option) for option in taken}) for name, (kind, taken) in subjects.items()
        }
        function(**given, **filled)

    look: Any = command
    look.__name__, look.__doc__, look.__module__ = function.__name__, function.__doc__, function.__module__
    look.__signature__ = inspect.Signature(parameters)
    look.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


def _subject(hint: Any) -> tuple[type | None, tuple[str, ...]]:
    """The dataclass that a parameter stands for (None: it is one option), and which of its fields are left out."""
    kind, *beside = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    if not isinstance(kind, type) or not is_dataclass(kind):
        return None, ()
    left_out = tuple(name for each in beside if isinstance(each, Without) for name in each.names)
    unknown = set(left_out) - {each.name for each in fields(kind)}
    if unknown:
        raise TypeError(f"{kind.__name__} has no option {min(unknown)!r} to leave out; expected names of its fields.")
    return kind, left_out


def _fields(kind: type) -> list[inspect.Parameter]:
    """The fields of a dataclass as parameters."""
    hints = get_type_hints(kind, include_extras=True)
    empty = inspect.Parameter.empty
    return [
        _parameter(each.name, hints[each.name], empty if each.default is MISSING else each.default)
        for each in fields(kind)
    ]


def _parameter(name: str, hint: Any, default: Any) -> inspect.Parameter:
    """A parameter that is given by its name, so that those without defaults may stand anywhere."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
