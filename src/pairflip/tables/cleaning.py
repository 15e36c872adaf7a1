"""From columns of any kind to finite numbers, leaving out only what was asked to be left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats
from pairflip.tables.errors import MANY, TableError, raise_all
from pairflip.tables.kinds import KINDS, as_numbers, describe, is_boolean, is_plain
from pairflip.tables.marks import READINGS, Marks
from pairflip.tables.odd import no_column_left, odd_columns, odd_target
from pairflip.tables.raw import Change, change
from pairflip.text import listed, plural, quoted

if TYPE_CHECKING:
    import pandas as pd

MISSING = ("drop-rows", "drop-columns")
TOGETHER = 64  # columns copied at a time: fast into rows, and no second copy of the table


def as_target(frame: pd.DataFrame, at: int, name: str, marks: Marks | None) -> tuple[Floats, list[Change]]:
    """The target as numbers."""
    y = as_numbers(frame[at])
    if y is None:
        raise odd_target(frame, at, name, marks)
    return y, change("column", "of true and false, read as 1 and 0", [name] if is_boolean(frame[at]) else [])


def as_candidates(
    frame: pd.DataFrame,
    at: Sequence[int],
    names: Sequence[str],
    drop_text: bool,
    marks: Marks | None = None,
    rows_are_named: bool = False,
) -> tuple[Floats, list[str], list[Change], list[Change]]:
    """The columns to choose from as one array."""
    dtypes = frame.dtypes.tolist()
    odd = {j: frame[j] for j in at if not is_plain(dtypes[j])}
    converted = {j: as_numbers(column) for j, column in odd.items()}
    nonsense = [j for j, values in converted.items() if values is None]
    dropped: list[Change] = []
    if nonsense and not drop_text:
        raise odd_columns(frame, nonsense, names, marks, rows_are_named)
    kinds = {j: describe(odd[j], marks or READINGS[0]) for j in nonsense}
    for kind in KINDS:
        dropped += change("column", f"of {kind} dropped", (names[j] for j in nonsense if kinds[j] == kind))
    left = [j for j in at if converted.get(j, True) is not None]
    if not left:
        raise no_column_left(frame, at, names, kinds, marks)
    X = np.empty((len(frame), len(left)))
    for start in range(0, len(left), TOGETHER):
        block = left[start : start + TOGETHER]
        if any(j in converted for j in block):
            for offset, j in enumerate(block):
                X[:, start + offset] = converted[j] if j in converted else frame[j].to_numpy()
        else:
            X[:, start : start + len(block)] = frame[block].to_numpy(np.float64)
    booleans = [names[j] for j in left if j in odd and is_boolean(odd[j])]
    notes = change("column", "of true and false, read as 1 and 0", booleans)
    return X, [names[j] for j in left], dropped, notes


def without_missing(
    X: Floats, y: Floats, names: list[str], row_names: list[str], target: str, missing: str | None
) -> tuple[Floats, Floats, list[str], list[str], list[Change]]:
    """The same table with every value finite."""
    if missing not in (None, *MISSING):
        raise TableError(f"--missing is {quoted(missing)}; expected 'drop-rows' or 'drop-columns'.")
    lost_y = ~np.isfinite(y)
    if lost_y.all():
        raise TableError(f"The target {quoted(target)} has no values; expected numbers: choose another --target.")
    lost = ~np.isfinite(X)
    columns = np.asarray(lost.any(axis=0))
    if not (columns.any() or lost_y.any()):
        return X, y, names, row_names, []
    rows = lost.any(axis=1) | lost_y
    problems: list[str] = []
    if lost_y.any() and missing != "drop-rows":
        problems.append(
            f"The target {quoted(target)} is missing or infinite in {plural(int(lost_y.sum()), 'row')} "
            f"({listed(_pick(row_names, lost_y))}); expected numbers: remove these rows with --missing drop-rows "
            f"(keeps {int((~rows).sum()):,} of {len(y):,})."
        )
    if missing is None:
        problems += _missing_values(lost, names, rows)
    raise_all(problems)
    if missing == "drop-columns":
        if columns.all():
            raise TableError(
                f"--missing drop-columns leaves none of {plural(len(names), 'column')}, since each has missing "
                "values; expected at least one: use --missing drop-rows or fill them in."
            )
        dropped = change("column", "with missing or infinite values dropped", _pick(names, columns))
        return np.ascontiguousarray(X[:, ~columns]), y, _pick(names, ~columns), row_names, dropped
    if (~rows).sum() < 2:
        raise _too_few_rows(lost, names, rows)
    dropped = change("row", "with missing or infinite values dropped", _pick(row_names, rows))
    return X[~rows], y[~rows], names, _pick(row_names, ~rows), dropped


def _missing_values(lost: NDArray[np.bool_], names: list[str], rows: NDArray[np.bool_]) -> list[str]:
    """What is wrong with columns without any value, and with columns in which some are missing."""
    columns, empty = np.asarray(lost.any(axis=0)), np.asarray(lost.all(axis=0))
    problems = []
    if empty.any():
        problems.append(
            f"{plural(int(empty.sum()), 'column')} of the table without any value: "
            f"{listed(_pick(names, empty), MANY)}; expected numbers: leave them out with --missing drop-columns or "
            "with --drop."
        )
        rows = np.asarray(lost[:, ~empty].any(axis=1))
    some = columns & ~empty
    if some.any():
        n_rows, n_columns = lost.shape
        problems.append(
            f"{plural(int(lost[:, some].sum()), 'value')} missing or infinite in {listed(_pick(names, some), MANY)}; "
            f"expected numbers: --missing drop-rows (keeps {int((~rows).sum()):,} of {plural(n_rows, 'row')}) or "
            f"--missing drop-columns (keeps {int((~columns).sum()):,} of {n_columns:,})."
        )
    return problems


def _too_few_rows(lost: NDArray[np.bool_], names: list[str], rows: NDArray[np.bool_]) -> TableError:
    worst = np.argsort(-lost.sum(axis=0), kind="stable")[:2].tolist()
    return TableError(
        f"--missing drop-rows leaves {plural(int((~rows).sum()), 'row')} of {len(rows):,}; expected at least two: use "
        f"--missing drop-columns, or --drop those with most missing values ({listed(names[j] for j in worst)})."
    )


def _pick(names: Sequence[str], which: NDArray[np.bool_]) -> list[str]:
    return [names[j] for j in np.flatnonzero(which).tolist()]
