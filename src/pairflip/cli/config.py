"""Options from a TOML file: the same names as on the command line, which takes precedence.

Paths in the file are relative to the folder of the file, so a `run.toml` works from any folder.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import typer

from pairflip.cli.errors import annotation, expected_words, plain_errors

_NOT_SETTINGS = ("config", "force", "as_json", "quiet", "shard", "merge", "out")


def use_config(context: typer.Context, value: Path | None) -> Path | None:
    """Take the file's values as defaults of the other options (called before they are read)."""
    if value is None or context.resilient_parsing:
        return value
    with plain_errors():
        context.default_map = read_config(value, context.command)
    return value


def read_config(path: Path, command: Any) -> dict[str, Any]:
    """Values by the name of the parameter of `command`; a key that is not an option is an error."""
    import tomllib

    known = {_key(p): p for p in command.params if p.name not in ("config", "help")}
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ValueError(f"--config {str(path)!r} cannot be read ({error.strerror}); expected a TOML file.") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"--config {str(path)!r} is not a TOML file ({error}); expected lines like seed = 0."
        ) from None
    values: dict[str, Any] = {}
    for key, value in given.items():
        name = key.replace("_", "-")
        if name not in known:
            near = difflib.get_close_matches(name, known, 2, 0.6)
            some = f"expected some of {', '.join(list(known)[:12])} and so on (the options that --help lists)"
            hint = f"perhaps {' or '.join(near)}" if near else some
            raise ValueError(f"--config {str(path)!r} has the unknown key {key!r}; {hint}.")
        checked = _checked(path, key, value, known[name], command)
        if annotation(command, known[name])[0] is Path:  # relative to the folder of the file
            folder = path.parent
            checked = [str(folder / each) for each in checked] if isinstance(checked, list) else str(folder / checked)
        values[known[name].name] = checked
    return values


def _key(parameter: Any) -> str:
    """The option as people write it, without dashes: ``drop-text``."""
    longest: str = max(parameter.opts, key=len)
    return longest.lstrip("-").replace("_", "-")


def _checked(path: Path, key: str, value: Any, parameter: Any, command: Any) -> Any:
    """A value of the kind that its option takes; what a text means is decided later, as for options that were typed."""
    kind, info = annotation(command, parameter)
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if isinstance(value, Mapping):
        raise ValueError(f"--config {str(path)!r} has a table [{key}]; expected lines like {key} = ... at the top.")
    if getattr(parameter, "is_flag", False):
        wanted, fits = "true or false", isinstance(value, bool)
    elif getattr(parameter, "multiple", False):
        value = [value] if isinstance(value, str) else value
        wanted = "a list of texts"
        fits = isinstance(value, list) and all(isinstance(item, str) for item in value)
    elif key == "sizes" and isinstance(value, list):
        wanted, fits = "numbers of columns", value != [] and all(type(item) is int for item in value)
    elif kind in (int, float):
        wanted = str(expected_words(kind, info))
        fits = isinstance(value, str) or (number and (kind is float or value == value // 1))
    elif kind is Path:
        wanted, fits = f"{expected_words(kind, info)} in quotes", isinstance(value, str)
    else:
        wanted, fits = "a text or a number", isinstance(value, str) or number
    if not fits:
        raise ValueError(f"--config {str(path)!r} has {key} = {json.dumps(value, default=str)}; expected {wanted}.")
    return ",".join(map(str, value)) if key == "sizes" and isinstance(value, list) else value


def run_settings(context: typer.Context, used: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Options for run.toml in a folder, in the order of the help, as texts, numbers and lists of texts."""
    settings: dict[str, Any] = {}
    for parameter in context.command.params:
        name = str(parameter.name)
        if name not in used or name in _NOT_SETTINGS:
            continue
        value, is_path = used[name], annotation(context.command, parameter)[0] is Path
        if is_path and value is not None:  # relative, so that both may be moved together; links are followed
            path = Path(value)
            value = str(path.parent.resolve() / path.name)
            with suppress(ValueError):  # on another drive
                value = os.path.relpath(value, folder.resolve())
        elif isinstance(value, (list, tuple)):
            value = [str(item) for item in value]
        elif value is not None and not isinstance(value, (bool, int, float)):
            value = str(value)
        settings[_key(parameter).replace("-", "_")] = value
    return settings


def config_text(command: str, settings: Mapping[str, Any]) -> str:
    """Settings as TOML that `read_config` reads, below a comment; those that are None or empty are left out."""
    import tomli_w

    given = {name.replace("_", "-"): value for name, value in settings.items() if value not in (None, [], ())}
    text = tomli_w.dumps(given).encode("utf-8", "replace").decode()  # file names may hold halves of surrogate pairs
    return (
        f"# The settings of this result. Again: pairflip {command} --config run.toml --out another-folder\n"
        f"# Paths are relative to the folder of this file.\n{text}"
    )
