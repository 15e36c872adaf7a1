"""What a comparison found: one record for each method, one for each of its sizes."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

if TYPE_CHECKING:
    from os import PathLike

    import pandas as pd
    from matplotlib.axes import Axes

KIND, SCHEMA = "pairflip comparison", 1
NAN = float("nan")


@dataclass(frozen=True)
class MethodSize:
    """A method at one size; what is not known is NaN."""

    size: int | None  # number of columns; None for a method that has no sizes
    cv_error: float = NAN  # half the mean squared error of held-out rows
    cv_error_se: float = NAN
    energy_per_row: float = NAN  # training error of the folds, averaged
    energy: float = NAN  # training energy on all rows
    seconds: float = NAN  # CPU seconds in all folds and on all rows: of this size, or, with `path`, of all sizes
    overlap: float = NAN  # fraction of our columns of that size (of our chosen size) that are in this support, too
    columns: tuple[int, ...] = ()  # the support on all rows
    note: str = ""  # why there are no numbers
    detail: str = ""  # what the method chose on all rows besides columns, in words


@dataclass(frozen=True)
class MethodResult:
    """A method: what it found, or why it found nothing."""

    name: str  # in options
    title: str  # in tables
    about: str  # what it does
    rows: tuple[MethodSize, ...] = ()  # one for each size, or a single one
    chosen: int | None = None  # size with the lowest cv_error, 0 (no columns) among them; None: without sizes
    cv_error: float = NAN  # of the chosen size
    cv_error_se: float = NAN
    difference: float = NAN  # how much higher that is than ours at our chosen size, rows compared with themselves
    difference_se: float = NAN
    seconds: float = NAN  # CPU seconds of the search, in all folds and on all rows, for all sizes
    path: bool = True  # whether all sizes came from one search
    note: str = ""  # why there is no result

    @property
    def sized(self) -> bool:
        """Whether it has a row for each size."""
        return any(row.size is not None for row in self.rows)

    def at(self, size: int) -> MethodSize | None:
        """Its row of a size, if it has one."""
        return next((row for row in self.rows if row.size == size), None)


@dataclass(frozen=True)
class Comparison:
    """Several methods on the same folds of one table.

    Attributes
    ----------
    methods : tuple of MethodResult
        In the order in which they were run.
    reference : str
        Name of the method that others are compared with, ours; empty if none of ours was run.
    sizes : tuple of int
        Numbers of columns.
    without, without_se : float
        cv_error without columns (the mean alone, or the forced columns alone), and its standard error.
    variance : float
        Half the variance of the held-out targets, rows weighted: R2 is 1 - cv_error / variance.
    names : list of str
        Of the columns of the table.
    n_rows, n_folds : int
        Of the table, and of the cross validation.
    folds, seed, data_hash, version
        How folds were made, the seed, and what names data and program.
    interrupted : bool
        Whether Ctrl-C ended it before all methods were run.
    """

    methods: tuple[MethodResult, ...]
    reference: str
    sizes: tuple[int, ...]
    without: float
    without_se: float
    names: list[str]
    n_rows: int
    n_folds: int
    folds: str
    seed: int
    data_hash: str
    version: str
    interrupted: bool = False
    variance: float = NAN

    def rmse_and_r2(self, cv_error: float) -> dict[str, float]:
        """Root mean square error and explained fraction of the variance of held-out rows, by name."""
        r2 = 1.0 - cv_error / self.variance if self.variance > 0 else NAN
        return {"rmse": float(np.sqrt(2.0 * cv_error)), "r2": float(r2)}

    def __getitem__(self, name: str) -> MethodResult:
        """A method by its name."""
        for method in self.methods:
            if method.name == name:
                return method
        raise KeyError(
            f"{name!r} is not a method of this comparison; expected {', '.join(m.name for m in self.methods)}."
        )

    @property
    def finished(self) -> tuple[MethodResult, ...]:
        """The methods that have a result."""
        return tuple(method for method in self.methods if np.isfinite(method.cv_error))

    def to_pandas(self) -> pd.DataFrame:
        """One row for each method and size."""
        import pandas as pd

        lines = [
            {"method": method.name, "size": row.size, **self.rmse_and_r2(row.cv_error), **asdict(row)}
            | {"chosen": row.size == method.chosen and np.isfinite(row.cv_error)}
            | {"columns": [self.names[j] for j in row.columns], "note": row.note or method.note}
            for method in self.methods
            for row in method.rows or (MethodSize(None),)
        ]
        return pd.DataFrame(lines).astype({"size": "Int64", "chosen": bool})

    def summary_table(self) -> pd.DataFrame:
        """One row for each method: chosen size, error there, its difference from ours, seconds."""
        import pandas as pd

        wanted = ["cv_error", "cv_error_se", "difference", "difference_se", "seconds", "note"]
        lines = [
            {"method": method.name, "chosen": method.chosen, **self.rmse_and_r2(method.cv_error)}
            | {name: getattr(method, name) for name in wanted}
            for method in self.methods
        ]
        return pd.DataFrame(lines).astype({"chosen": "Int64"})

    def to_json(self) -> dict[str, Any]:
        """Plain values; what is not a number is None."""
        from pairflip.selection.curve_file import plain

        return {"kind": KIND, "schema": SCHEMA, **plain(self)}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Comparison:
        """The comparison of a record that `to_json` made."""
        if not isinstance(record, dict) or record.get("kind") != KIND or record.get("schema") != SCHEMA:
            raise ValueError("this JSON is not a pairflip comparison; expected what Comparison.save wrote.")
        methods = tuple(
            _made(MethodResult, {**of, "rows": tuple(_made(MethodSize, row) for row in of["rows"])})
            for of in record["methods"]
        )
        return cast(Comparison, _made(cls, {**record, "methods": methods, "sizes": tuple(record["sizes"])}))

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to one JSON file; `Comparison.load` reads it back."""
        from pairflip.report.save import write_whole

        write_whole(path, (json.dumps(self.to_json(), allow_nan=False) + "\n").encode(), "the comparison")

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Comparison:
        """Read a comparison that `save` wrote."""
        try:
            return cls.from_json(json.loads(Path(path).read_text(encoding="utf-8")))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise ValueError(f"{os.fspath(path)!r} is not what Comparison.save wrote; expected such a file.") from None

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the RMSE against size, all methods, on `ax` or in a new pyplot figure."""
        from pairflip.report.notebook import plot

        return plot(self, ax)

    def _repr_html_(self) -> str:
        """The sentence, the figures and the table, for notebooks."""
        from pairflip.report.notebook import comparison_html

        return comparison_html(self)

    def summary(self) -> str:
        """What `print(comparison)` shows: a sentence, then one line for each method."""
        from pairflip.report.compared import summary

        return summary(self)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        names = ", ".join(method.name for method in self.methods)
        return f"Comparison({names}; {self.n_rows} rows, {len(self.names)} columns, {self.n_folds} folds)"


def _made(kind: Any, values: dict[str, Any]) -> Any:
    """A record of its fields; a float that is null in the file is NaN."""
    numbers = {field.name for field in fields(kind) if field.type == "float"}
    values = {"variance": None, "detail": "", **values}  # older comparisons have none
    given = {field.name: values[field.name] for field in fields(kind)}
    if "columns" in given:
        given["columns"] = tuple(given["columns"])
    return kind(**{name: NAN if value is None and name in numbers else value for name, value in given.items()})
