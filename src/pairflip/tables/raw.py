"""A table as its file holds it, before any column is chosen or any value judged, and what was changed since."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pairflip.tables.marks import Marks
from pairflip.text import listed, plural

if TYPE_CHECKING:
    import pandas as pd

# Besides what pandas takes for missing (empty, NA, N/A, NaN, null, None, #N/A ...): Weka, SAS, spreadsheets.
MISSING_WORDS = ("?", ".", "-", "na", "n.a.", "N.A.", "NaT", "#DIV/0!", "#NAME?", "#NUM!", "#REF!", "#VALUE!")


@dataclass(frozen=True)
class Change:
    """One thing that was done to a table, to be shown in the report.

    Attributes
    ----------
    what : {"column", "row", "sheet", "target"}
        What it was done to.
    why : str
        What was done, or for which reason, such as ``"hold text"``.
    names : tuple of str
        The columns or rows, all of them, as text.
    says : str
        The whole remark, without its full stop, where "2 columns hold text: 'a', 'b'" would not be good English.
    """

    what: str
    why: str
    names: tuple[str, ...]
    says: str = ""

    @property
    def count(self) -> int:
        """How many columns or rows."""
        return len(self.names)

    def __str__(self) -> str:
        return self.says or f"{plural(self.count, self.what)} {self.why}: {listed(self.names)}"


def change(what: str, why: str, names: Iterable[str]) -> list[Change]:
    """One change in a list, or an empty list where it concerns nothing."""
    every = tuple(names)
    return [Change(what, why, every)] if every else []


@dataclass(frozen=True)
class Raw:
    """A file's columns and their names.

    Attributes
    ----------
    frame : DataFrame of M rows and N columns
        Columns are labelled 0 to N - 1.
    names : N names
        Exactly as in the file; empty where a column has none, and possibly not unique.
    row_names : M names, or None
        What the file itself sets apart as names of the rows.
    notes : list of Change
        What reading decided.
    marks : Marks, or None
        Decimal and thousands marks with which a text table was read; None where numbers are not written in letters.
    either : list of int
        Columns read with decimal commas in which every comma might instead mark thousands.
    index_name : str
        What the file calls the names of its rows, if it does.
    sheets : tuple of str
        Sheets of a workbook of which none was asked for: the one that was read, then the others.
    """

    frame: pd.DataFrame
    names: list[str]
    row_names: list[str] | None = None
    notes: list[Change] = field(default_factory=list)
    marks: Marks | None = None
    either: list[int] = field(default_factory=list)
    index_name: str = ""
    sheets: tuple[str, ...] = ()
