"""A table as its file holds it, before any column is chosen or any value judged, and what was changed since."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pairflip.tables.kinds import Marks
from pairflip.text import listed, plural

if TYPE_CHECKING:
    import pandas as pd

# Besides what pandas takes for missing (empty, NA, N/A, NaN, null, None, #N/A ...): Weka, SAS, spreadsheets.
MISSING_WORDS = ("?", ".", "-", "na", "n.a.", "N.A.", "NaT", "#DIV/0!", "#NAME?", "#NUM!", "#REF!", "#VALUE!")

NO_VALUE = ("", "NA", "N/A", "NaN", "nan", "null", "None", "#N/A", "NULL", *MISSING_WORDS)


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
    concerned = tuple(names)
    return [Change(what, why, concerned)] if concerned else []


@dataclass(frozen=True)
class Raw:
    """A file's columns and their names; the last three are filled by `files.read_raw`."""

    frame: pd.DataFrame  # (M, N), columns are labelled 0 to N - 1
    names: list[str]  # N, all different; before `read_raw` has done that, as in the file
    row_names: list[str] | None = None  # M, where the file itself sets them apart
    notes: list[Change] = field(default_factory=list)  # what reading decided
    marks: Marks | None = None  # with which a text table was read; None where numbers are not written in letters
    either: list[int] = field(default_factory=list)  # columns read with decimal commas that might all mark thousands
    index_name: str = ""  # what the file calls the names of its rows
    sheets: tuple[str, ...] = ()  # of a workbook of which none was asked for: the one that was read, then the others
    target: str | None = None  # name of the first column, where the file sets the target apart
    is_array: bool = False  # one array of numbers, none of which number the rows; large ones are used without a copy
    sparse: Any = None  # the same columns but the target, where the file holds a sparse matrix (M, N), by columns
    originals: list[str] = field(default_factory=list)  # names in the file: empty where a column has none
    renamed: list[Change] = field(default_factory=list)
    dropped: list[Change] = field(default_factory=list)  # blank columns

    @property
    def reading(self) -> Marks:
        """How numbers are written in columns of words."""
        return self.marks or Marks()

    def names_in(self, at: int) -> list[str]:
        """A column as names of the rows."""
        return [f"{value:.15g}" for value in self.frame[at]] if self.is_array else texts_of(self.frame[at])


def units_left_out(units: Iterable[str]) -> list[Change]:
    """The remark on a row of units, or none where there is no such row."""
    found = [unit for unit in units if unit not in NO_VALUE]
    says = (
        f"the row below the header holds units or other words ({listed(found)}) and no numbers; it was left out, and "
        "rows count from the next"
    )
    return [Change("row", "of units, left out", tuple(found), says)] if found else []


def names_at_the_front(frame: pd.DataFrame, row_names: Iterable[object]) -> tuple[pd.DataFrame, list[str], Change]:
    """The table without its first column, which has no name and so names the rows."""
    rest = frame.iloc[:, 1:].set_axis(range(frame.shape[1] - 1), axis=1)
    note = Change("column", "without a name at the front, taken as names of the rows", ("",))
    return rest, [str(name) for name in row_names], note


def texts_of(column: pd.Series[Any]) -> list[str]:
    """A column as names, empty where a value is missing."""
    return ["" if missing else str(name) for name, missing in zip(column, column.isna(), strict=True)]
