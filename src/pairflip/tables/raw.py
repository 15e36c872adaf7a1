"""A table as its file holds it, before any column is chosen or any value judged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pairflip.tables.changes import Change

if TYPE_CHECKING:
    import pandas as pd

# Besides what pandas takes for missing (empty, NA, N/A, NaN, null, None, #N/A ...): Weka, SAS, spreadsheets.
MISSING_WORDS = ("?", ".", "-", "na", "n.a.", "N.A.", "NaT", "#DIV/0!", "#NAME?", "#NUM!", "#REF!", "#VALUE!")


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
    """

    frame: pd.DataFrame
    names: list[str]
    row_names: list[str] | None = None
    notes: list[Change] = field(default_factory=list)
