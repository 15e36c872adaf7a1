"""Labels: a target of classes, and columns of categories, which become columns of 0 and 1 that belong together.

The most frequent category, or the one that is asked for, has no column: it is the reference with which the coefficients
of the others compare. A column may be read so if it has at least two and at most `MOST_LEVELS` different values, each
of them in at least `FEWEST_ROWS` rows: what has more is free text or names of the rows, and a value of a single row
says nothing that the row itself does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pairflip.least_squares import Floats
from pairflip.tables.columns import fresh_name, matching, separate_names
from pairflip.tables.errors import TableError
from pairflip.tables.kinds import as_numbers, describe, is_number, is_plain
from pairflip.tables.raw import Change, Raw
from pairflip.text import label_text, listed, plural, quoted

if TYPE_CHECKING:
    import pandas as pd

MOST_LEVELS = 20
FEWEST_ROWS = 2
KIND = "of categories, read as columns of 0 and 1"
NO_CATEGORY = "missing"
"""The category of rows that have none, where these rows are kept and are enough for a category."""


@dataclass(frozen=True, eq=False)
class Category:
    """A column of categories."""

    name: str
    level_of: dict[str, str]  # the level that each of the columns of 0 and 1 stands for

    @classmethod
    def of(cls, name: str, labels: Iterable[str | None], taken: set[str]) -> Category:
        """The category with all `labels` as levels; its columns have names that are not `taken`."""
        levels = sorted_labels({label for label in labels if label is not None})
        return cls(name, {fresh_name(f"{name}={level}", taken): level for level in levels})

    def without(self, reference: str) -> Category:
        """The category without the column of its reference."""
        return replace(self, level_of={name: level for name, level in self.level_of.items() if level != reference})

    def note(self, reference: str, asked: bool, gaps: int = 0, filled: str | None = None) -> Change:
        """What a reader is told of a category without its reference; so many `gaps` are `filled` with a level."""
        columns = f"{plural(len(self.level_of), 'column')} of 0 and 1 ({listed(self.level_of)})"
        together = ", chosen together" if len(self.level_of) > 1 else ""
        why = "as asked" if asked else "the most frequent"
        says = f"the categories of {quoted(self.name)} were read as {columns}{together}; "
        says += f"{quoted(reference)}, {why}, is the reference"
        if gaps and filled is not None:
            says += f"; {filled_words(gaps, filled)}"
        return Change("column", KIND, (self.name,), says)

    def without_level(self, rows: int) -> str:
        """What is wrong where so many rows have no category."""
        return (
            f"The column {quoted(self.name)} has no category in {plural(rows, 'row')}; expected one in each: --missing "
            "drop-rows leaves these rows out, or write a word such as 'unknown' there."
        )


def filled_words(gaps: int, filled: str) -> str:
    """What becomes of so many rows without a category."""
    return f"{plural(gaps, 'row')} without one {'counts' if gaps == 1 else 'count'} as {quoted(filled)}"


def most_frequent(category: Category, counts: Sequence[float]) -> str:
    """The level in most rows, the first of several; `counts` are those of all levels. Rows without one do not count."""
    rows = {level: n for level, n in zip(category.level_of.values(), counts, strict=True) if level != NO_CATEGORY}
    return max(rows, key=lambda level: rows[level])


def find_references(asked: Iterable[str], categories: Iterable[Category]) -> dict[str, str]:
    """The references that are asked for as ``column=category``, by column."""
    known = {f"{each.name}={level}": (each.name, level) for each in categories for level in each.level_of.values()}
    found: dict[str, str] = {}
    for text in separate_names(asked, list(known)):
        if text not in known:
            fix = f"there are {listed(known)}." if known else "read the column with --categories."
            raise TableError(f"--reference {quoted(text)} is not a category; expected column=category: {fix}")
        column, level = known[text]
        if found.setdefault(column, level) != level:
            raise TableError(f"--reference names two categories of {quoted(column)}; expected one of them.")
    return found


def indicators(labels: Sequence[str | None], levels: Iterable[str]) -> Floats:
    """0 and 1 (M, L): NaN in rows without a category, 0 everywhere in rows of one that is not among the levels."""
    equal: Floats = (np.array(labels, dtype=object)[:, None] == np.array([*levels], dtype=object)).astype(np.float64)
    equal[[label is None for label in labels]] = np.nan
    return equal


def column_labels(column: pd.Series[Any]) -> list[str | None]:
    """The label of each row as text, None where there is none: numbers in their shortest form, words without spaces."""
    numbers = None if column.dtype.kind == "b" else as_numbers(column)
    if numbers is not None and column.dtype != object:
        return [label_text(value) if np.isfinite(value) else None for value in numbers.tolist()]
    gone = column.isna().tolist()
    return [None if lost else label_text(value).strip() for value, lost in zip(column.tolist(), gone, strict=True)]


def sorted_labels(labels: set[str]) -> list[str]:
    """Labels sorted: as numbers if all of them are numbers, else as words."""
    try:
        return sorted(labels, key=float)
    except ValueError:
        return sorted(labels)


def as_classes(labels: list[str | None], target: str) -> tuple[Floats, list[str]]:
    """Numbers of the classes (M,), from 0, NaN where a label is missing; and the labels, two or more."""
    classes = sorted_labels({label for label in labels if label is not None})
    if len(classes) < 2:
        has = f"one class only ({listed(classes)})" if classes else "no values"
        raise TableError(f"The target {quoted(target)} has {has}; expected classes: choose another --target.")
    return np.array([np.nan if label is None else float(classes.index(label)) for label in labels]), classes


def labels_of(column: pd.Series[Any], otherwise: str | None = None) -> list[str | None]:
    """The category of each row as text, `otherwise` where there is none."""
    return [label or otherwise for label in column_labels(column)]


def why_not(labels: Sequence[str | None]) -> str | None:
    """Why values cannot be read as categories, in words that follow the name of the column; None where they can."""
    counts = Counter(label for label in labels if label is not None)
    if len(counts) > MOST_LEVELS:
        return f"has {len(counts):,} different values; expected at most {MOST_LEVELS} categories"
    if len(counts) < 2:
        return f"has {plural(len(counts), 'value')}; expected at least two categories"
    rare = [label for label, times in counts.items() if times < FEWEST_ROWS]
    if rare:
        return (
            f"has {quoted(rare[0])} in one row only; expected each category in at least {FEWEST_ROWS} rows: join it "
            "with another, or leave the row out"
        )
    return None


def may_be_categories(raw: Raw, at: int) -> bool:
    """Whether a column of text may be read as categories."""
    return describe(raw.frame[at], raw.reading) == "text" and why_not(labels_of(raw.frame[at])) is None


def may_be_classes(raw: Raw, at: int) -> bool:
    """Whether a target of text is meant as classes: categories, none of which is a number."""
    words = {label for label in labels_of(raw.frame[at]) if label is not None}
    return may_be_categories(raw, at) and not any(is_number(word, raw.reading) for word in words)


def find_categories(
    raw: Raw, candidates: Sequence[int], asked: Iterable[str] | Literal[True], keep_gaps: bool = False
) -> dict[int, Category]:
    """The columns that are to be read as categories, by position; rows without one may be kept as a category."""
    names = raw.names
    if asked is True:
        text = [j for j in candidates if not is_plain(raw.frame.dtypes[j]) and as_numbers(raw.frame[j]) is None]
        wanted = {j for j in text if may_be_categories(raw, j)}
    else:
        wanted = matching(asked, names, "--categories")
        for j in sorted(wanted - set(candidates)):
            raise TableError(
                f"--categories names {quoted(names[j])}, which is not among the columns to choose from; expected "
                "one of them."
            )
    categories: dict[int, Category] = {}
    taken = set(names)
    for j in sorted(wanted):
        labels = labels_of(raw.frame[j])
        reason = why_not(labels)
        if reason is not None:
            raise TableError(f"The column {quoted(names[j])} of --categories {reason}.")
        own = [NO_CATEGORY] if keep_gaps and labels.count(None) >= FEWEST_ROWS else []
        categories[j] = Category.of(names[j], [*labels, *own], taken)
    return categories
