"""The error of a table that cannot be used, and the words of its one sentence."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from pairflip.text import quoted


class TableError(ValueError):
    """A table cannot be used as asked: one sentence with what was given, what is expected and the shortest fix."""


def counted(count: int, thing: str) -> str:
    """``1 row``, ``2 rows``, ``20,000 columns``."""
    return f"{count:,} {thing}{'s' * (count != 1)}"


def close_matches(name: str, names: Sequence[str], most: int = 3) -> list[str]:
    """Names that `name` may have been meant to be, best first; differences of case and spaces do not count."""
    plain: dict[str, str] = {}
    for each in names:
        plain.setdefault(each.strip().casefold(), each)
    wanted = name.strip().casefold()
    near = difflib.get_close_matches(wanted, [key for key in plain if abs(len(key) - len(wanted)) < 9], most, 0.6)
    return [plain[key] for key in near]


def perhaps(name: str, names: Sequence[str], otherwise: str) -> str:
    """The end of a sentence about a name that does not exist: names like it, or else `otherwise`."""
    near = close_matches(name, names)
    return f"perhaps {' or '.join(quoted(each) for each in near)}." if near else otherwise


def shown_path(path: Path, most: int = 60) -> str:
    """The path as given, its beginning left out when it is long."""
    text = str(path)
    return repr(text if len(text) <= most else f"…{text[-most:]}")
