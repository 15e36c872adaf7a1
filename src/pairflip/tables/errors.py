"""The error of a table that cannot be used, and the words of its one sentence."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pairflip.text import quoted


class TableError(ValueError):
    """A table cannot be used as asked: one sentence with what was given, what is expected and the shortest fix.

    Where there are several problems, the message numbers them, and `problems` has the sentences.
    """

    def __init__(self, message: str, problems: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.problems = list(problems) or [message]


def close_matches(name: str, names: Sequence[str], most: int = 3) -> list[str]:
    """Names that were probably meant, best first; upper and lower case and spaces at the ends do not count."""
    plain: dict[str, str] = {}
    for each in names:
        plain.setdefault(each.strip().casefold(), each)
    wanted = name.strip().casefold()
    near = difflib.get_close_matches(wanted, [key for key in plain if abs(len(key) - len(wanted)) < 9], most, 0.6)
    return [plain[key] for key in near]


def perhaps(name: str, names: Sequence[str], otherwise: str) -> str:
    """The end of a sentence about a name that does not exist."""
    near = close_matches(name, names)
    return f"perhaps {' or '.join(quoted(each) for each in near)}." if near else otherwise


def shown_path(path: Path) -> str:
    """The path as given, its beginning left out when it is long."""
    text = str(path)
    return repr(text if len(text) <= 60 else f"…{text[-60:]}")


MANY = 20
"""Columns that a sentence names; then it says how many more there are."""


@contextmanager
def noted(problems: list[str]) -> Iterator[None]:
    """Note what is wrong with a table, and go on to look for more."""
    try:
        yield
    except TableError as error:
        problems.extend(error.problems)


def raise_all(problems: Sequence[str]) -> None:
    """Raise one error that has all sentences; none where there are none."""
    if len(problems) == 1:
        raise TableError(problems[0])
    if problems:
        numbered = " ".join(f"({number}) {each}" for number, each in enumerate(problems, 1))
        raise TableError(f"The table has {len(problems)} problems: {numbered}", problems)


@contextmanager
def refuse_damaged(refusal: str) -> Iterator[None]:
    """Turn whatever a library raises while it reads a damaged file into this one sentence."""
    try:
        yield
    except (TableError, OSError):
        raise
    except Exception as error:  # zip, XML, Arrow and NumPy have no common class of errors
        if isinstance(error, MemoryError) and not type(error).__module__.startswith("pyarrow"):
            raise
        raise TableError(refusal) from None


def not_of_kind(path: Path, kind: str) -> str:
    """The sentence of a file that is not what its name says, from its first bytes."""
    with path.open("rb") as handle:
        head = handle.read(512)
    text = head.isascii() and b"\0" not in head and head.strip() != b""
    state = "is empty" if not head else "is a text file" if text else "is damaged or something else"
    fix = "rename it to .csv" if text else "check where it comes from"
    return f"{path.name!r} {state}; expected {kind}, as its name says: {fix}."
