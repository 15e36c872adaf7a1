"""Options from a TOML file: the same names as on the command line, which takes precedence.

Paths in the file are relative to the folder of the file, so a `run.toml` works from any folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from pairflip.cli.usage import annotation, expected_words

_NOT_SETTINGS = ("config", "force", "as_json", "quiet", "shard", "merge", "out")
_INPUTS = ("data", "journal", "column_groups")
_PATHS = ("data", "journal", "merge", "out", "result", "column-groups")


def use_config(context: typer.Context, value: Path | None) -> Path | None:
    """Take the file's values as defaults of the other options (called before they are read)."""
    if value is None or context.resilient_parsing:
        return value
    from pairflip.cli.errors import plain_errors

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
            raise ValueError(_unknown(path, key, list(known)))
        checked = _checked(path, key, value, known[name], command)
        values[known[name].name] = _relative_to_file(path, checked) if name in _PATHS else checked
    return values


def _relative_to_file(config: Path, value: Any) -> Any:
    """Paths as they are meant in a file: relative to its folder."""
    if isinstance(value, list):
        return [_relative_to_file(config, item) for item in value]
    return str(config.parent / value) if isinstance(value, str) else value


def path_from(folder: Path, path: Path) -> str:
    """How a file in `folder` writes a path, so that both may be moved together; links on the way are followed."""
    path = Path(path)  # older versions of typer keep strings in the context
    target = path.parent.resolve() / path.name
    try:
        return os.path.relpath(target, folder.resolve())
    except ValueError:  # on another drive
        return str(target)


def _key(parameter: Any) -> str:
    """The option as people write it, without dashes: ``drop-text``."""
    longest: str = max(parameter.opts, key=len)
    return longest.lstrip("-").replace("_", "-")


def _unknown(path: Path, key: str, known: list[str]) -> str:
    import difflib

    near = difflib.get_close_matches(key.replace("_", "-"), known, 2, 0.6)
    some = f"expected some of {', '.join(known[:12])} and so on (the options that --help lists)"
    hint = f"perhaps {' or '.join(near)}" if near else some
    return f"--config {str(path)!r} has the unknown key {key!r}; {hint}."


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
    used = {**used, **{name: path_from(folder, used[name]) for name in _INPUTS if used.get(name) is not None}}

    def plain(value: Any) -> Any:
        if value is None or isinstance(value, (bool, int, float)):
            return value
        return [str(item) for item in value] if isinstance(value, (list, tuple)) else str(value)

    known = [each for each in context.command.params if each.name in used and each.name not in _NOT_SETTINGS]
    return {_key(each).replace("-", "_"): plain(used[str(each.name)]) for each in known}


def settings_comment(command: str) -> str:
    """What run.toml says of itself."""
    return (
        f"The settings of this result. Again: pairflip {command} --config run.toml --out another-folder\n"
        "Paths are relative to the folder of this file."
    )


def config_text(settings: Mapping[str, Any], comment: str) -> str:
    """Settings as TOML that `read_config` reads, below a comment; those that are None or empty are left out."""
    import tomli_w

    given = {
        name.replace("_", "-"): _writable(value)
        for name, value in settings.items()
        if value is not None and value not in ([], ())
    }
    return "".join(f"# {line}\n" for line in comment.splitlines()) + tomli_w.dumps(given)


def _writable(value: Any) -> Any:
    """Texts without halves of surrogate pairs (from file names that are not UTF-8), which no TOML file can hold."""
    if isinstance(value, (list, tuple)):
        return [_writable(item) for item in value]
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
