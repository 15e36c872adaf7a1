"""Which columns are the target, the names of the rows and the candidates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pairflip.tables.errors import TableError, perhaps
from pairflip.tables.kinds import is_number, is_plain
from pairflip.tables.raw import Change, change
from pairflip.text import listed, plural, quoted

if TYPE_CHECKING:
    import pandas as pd

FEWEST_NUMBERED = 5
"""Of fewer rows, 1, 2, 3 may be a measurement."""
_UNNAMED = re.compile(r"Unnamed: \d+(\.\d+)*")


@dataclass(frozen=True)
class ChosenColumns:
    """Columns by their role in the analysis, as positions in the file."""

    target: int
    index: int | None  # names of the rows
    candidates: list[int]
    dropped: list[Change]  # columns that were asked to be left out


def fresh_name(name: str, taken: set[str]) -> str:
    """The name, with a number if another column has it already; it is taken from then on."""
    number, fresh = 2, name
    while fresh in taken:
        fresh, number = f"{name} ({number})", number + 1
    taken.add(fresh)
    return fresh


def visible_names(names: Sequence[str]) -> tuple[list[str], list[Change]]:
    """Names that differ: ``a, a`` become ``a, a (2)`` and a column without a name becomes ``column 3``."""
    taken, seen = set(names), set[str]()
    shown: list[str] = []
    for at, name in enumerate(names):
        fresh = name or f"column {at + 1}"
        if fresh in seen or (not name and fresh in taken):
            fresh = fresh_name(fresh, taken)
        seen.add(fresh)
        shown.append(fresh)
    pairs = list(zip(names, shown, strict=True))
    renamed = [fresh for name, fresh in pairs if name and name != fresh]
    notes = change("column", "renamed, since another one has the same name", renamed)
    return shown, notes + change("column", "without a name, called by position", (s for n, s in pairs if not n))


def select(
    names: Sequence[str],
    target: str | None,
    *,
    index: str | None = None,
    keep: Sequence[str] = (),
    drop: Sequence[str] = (),
    originals: Sequence[str] | None = None,
) -> ChosenColumns:
    """Find the columns that are asked for."""
    if target is None:
        raise TableError(
            f"No target is given; expected the column to predict, such as --target {quoted(names[-1])}: the table has "
            f"{plural(len(names), 'column')}, {listed(names)}."
        )
    keep, drop = (separate_names(each, names) for each in (keep, drop))
    y = _find(target, names, "--target")
    at = None if index is None else _find(index, names, "--index")
    if at == y:
        raise TableError(f"--index and --target are both {quoted(target)}; expected two columns.")
    if target in drop:
        raise TableError(f"--drop names the target {quoted(target)}; expected other columns: leave it out of --drop.")
    kept = matching(keep, names, "--keep") if keep else set(range(len(names)))
    gone = matching(drop, names, "--drop") if drop else set()
    others = [j for j in range(len(names)) if j not in (y, at)]
    candidates = [j for j in others if j in kept and j not in gone]
    originals = names if originals is None else originals
    twins = [names[j] for j in candidates if originals[j] == originals[y]]
    if twins:
        raise TableError(
            f"{plural(1 + len(twins), 'column')} of the table are called {quoted(originals[y])}; expected one target: "
            f"leave the other out with --drop {quoted(twins[0])}, or rename it."
        )
    if not candidates:
        why = "--keep and --drop leave no column" if keep or drop else "the table has no other column"
        raise TableError(f"The target is {quoted(target)} and {why}; expected at least one column to choose from.")
    dropped = change("column", "not among those to keep (--keep)", (names[j] for j in others if j not in kept))
    dropped += change("column", "left out as asked (--drop)", (names[j] for j in others if j in kept and j in gone))
    return ChosenColumns(y, at, candidates, dropped)


def numbers_the_rows(column: pd.Series[Any], name: str) -> bool:
    """Whether a first column is an index that pandas saved without a name, or 0, 1, 2, ... or 1, 2, 3, ..."""
    if _UNNAMED.fullmatch(name.strip()):
        return True
    if len(column) < FEWEST_NUMBERED or not is_plain(column.dtype):
        return False
    values = column.to_numpy()
    return bool(values[0] in (0, 1) and np.array_equal(values, values[0] + np.arange(len(values))))


def position(name: str, names: Sequence[str]) -> int | None:
    """Position of a name; spaces at its ends do not count where only one column can be meant."""
    if name in names:
        return names.index(name)
    spaced = [j for j, each in enumerate(names) if each.strip() == name.strip()]
    return spaced[0] if len(spaced) == 1 else None


def _find(name: str, names: Sequence[str], option: str) -> int:
    at = position(name, names)
    if at is not None:
        return at
    hint = perhaps(name, names, f"it has {listed(names)}.")
    if len(names) == 1 and " " in names[0].strip():
        hint = f"it has {quoted(names[0])} only, so separate columns by commas or tabs, and quote names with spaces."
    elif len(names) > 1 and all(is_number(each) for each in names):
        hint = "the first row holds numbers only, so add a row of names above it."
    raise TableError(f"{option} {quoted(name)} is not a column of the table; expected one of its columns: {hint}")


def matching(wanted: Iterable[str], names: Sequence[str], option: str) -> set[int]:
    """Places of the columns that an option names, one by one or by regular expressions between slashes."""
    places: set[int] = set()
    known = {name: j for j, name in enumerate(names)}
    for each in separate_names(wanted, names):
        if each in known:
            places.add(known[each])
        elif _is_expression(each):
            places |= _expression(each, names, option)
        else:
            places.add(_find(each, names, option))
    return places


def separate_names(wanted: Iterable[str], names: Sequence[str]) -> list[str]:
    """Names and expressions one by one: ``a,b`` is two of them unless a column is called so, or it is an expression."""
    separate: list[str] = []
    called = {name.strip() for name in names}
    for each in wanted:
        one = "," not in each or each.strip() in called or (_is_expression(each) and not re.search("/ *, */", each))
        separate += [each] if one else [part.strip() for part in each.split(",")]
    return separate


def _is_expression(text: str) -> bool:
    return len(text) > 2 and text[0] == text[-1] == "/"


def _expression(written: str, names: Sequence[str], option: str) -> set[int]:
    try:
        pattern = re.compile(written[1:-1])
    except re.error as error:
        raise TableError(
            f"{option} {quoted(written)} is not a regular expression ({error.msg}); expected one like /^gene_/."
        ) from None
    places = {j for j, name in enumerate(names) if pattern.search(name)}
    if not places:
        raise TableError(f"{option} {quoted(written)} matches no column; expected at least one of {listed(names)}.")
    return places
