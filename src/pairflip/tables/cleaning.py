"""From columns of any kind to finite numbers, leaving out only what was asked to be left out.

A column that does not fit is refused with what it holds and the shortest fix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats
from pairflip.projection import column_blocks
from pairflip.sparse import is_sparse
from pairflip.tables.categories import may_be_categories, may_be_classes, sorted_labels
from pairflip.tables.errors import MANY, TableError, raise_all
from pairflip.tables.kinds import (
    FEW,
    KINDS,
    Marks,
    as_numbers,
    both_readings,
    describe,
    first_odd,
    is_boolean,
    is_number,
    is_plain,
    possible_marks,
    readings,
    simplest,
)
from pairflip.tables.raw import Change, Raw, change
from pairflip.text import listed, numbered, plural, quoted

if TYPE_CHECKING:
    import pandas as pd

MISSING = ("drop-rows", "drop-columns", "keep")
_EVENLY, _OFTEN = 0.5, 3.0  # spread of how often whole numbers repeat, relative to the mean; the least mean
FEWEST_VALUES, _REPEATED, _LOOKED_AT = 5, 0.9, 1000  # different values; rows whose value others have; columns
TOGETHER = 64  # columns copied at a time: fast into rows, and no second copy of the table
WORDS = ("text", "dates")  # kinds that no option reads as numbers


def as_target(raw: Raw, at: int) -> tuple[Floats, list[Change]]:
    """The target as numbers."""
    y = as_numbers(raw.frame[at])
    if y is None:
        raise odd_target(raw, at)
    booleans = [raw.names[at]] if is_boolean(raw.frame[at]) else []
    notes = change("column", "of true and false, read as 1 and 0", booleans)
    return np.ascontiguousarray(y), notes


def as_candidates(
    raw: Raw, at: Sequence[int], drop_text: bool, rows_are_named: bool = False
) -> tuple[Floats, list[str], list[Change], list[Change]]:
    """The columns to choose from as one array, their names, what was dropped, and what to note."""
    frame, names = raw.frame, raw.names
    dtypes = frame.dtypes.tolist()
    odd = {j: frame[j] for j in at if not is_plain(dtypes[j])}
    converted = {j: as_numbers(column) for j, column in odd.items()}
    nonsense = [j for j, values in converted.items() if values is None]
    dropped: list[Change] = []
    if nonsense and not drop_text:
        raise odd_columns(raw, nonsense, rows_are_named)
    kinds = {j: describe(odd[j], raw.reading) for j in nonsense}
    slips = [j for j in nonsense if kinds[j] == "text" and _is_mostly_numbers(odd[j], raw.reading)]
    for kind in KINDS:
        dropped += change(
            "column", f"of {kind} dropped", (names[j] for j in nonsense if kinds[j] == kind and j not in slips)
        )
    for drop in change("column", "of numbers with text dropped", (names[j] for j in slips)):
        dropped.append(replace(drop, says=f"{drop} ({_first_cell(raw, slips[0])})"))
    numbers = {j: values for j, values in converted.items() if values is not None}
    usable = [j for j in at if j in numbers or j not in odd]
    if not usable:
        raise no_column_left(raw, at, kinds)
    X = np.empty((len(frame), len(usable)))
    for start in range(0, len(usable), TOGETHER):
        block = usable[start : start + TOGETHER]
        X[:, start : start + len(block)] = np.column_stack([numbers[j] if j in numbers else frame[j] for j in block])
    booleans = [names[j] for j in usable if j in odd and is_boolean(odd[j])]
    notes = change("column", "of true and false, read as 1 and 0", booleans)
    return X, [names[j] for j in usable], dropped, notes


def without_missing(
    X: Floats,
    y: Floats,
    names: list[str],
    row_names: list[str],
    target: str,
    missing: str | None,
    used: Sequence[str] = (),
) -> tuple[Floats, Floats, list[str], NDArray[np.bool_], list[Change]]:
    """The same table with every value finite, its names, and which rows are left; what was left out.

    To "keep" leaves NaN in candidates that are not `used` otherwise.
    """
    if missing not in (None, *MISSING):
        raise TableError(f"--missing is {quoted(missing)}; expected 'drop-rows', 'drop-columns' or 'keep'.")
    if is_sparse(X):
        if not (np.isfinite(X.data).all() and np.isfinite(y).all()):
            raise TableError("The sparse matrix or its target has missing or infinite values; expected finite numbers.")
        return X, y, names, np.ones(len(y), dtype=bool), []
    lost_y = ~np.isfinite(y)
    if lost_y.all():
        raise TableError(f"The target {quoted(target)} has no values; expected numbers: choose another --target.")
    if not lost_y.any() and all(np.isfinite(X[:, part]).all() for part in column_blocks(*X.shape)):
        return X, y, names, np.ones(len(y), dtype=bool), []
    lost = ~np.isfinite(X)
    columns, rows = ~np.asarray(lost.any(axis=0)), ~np.asarray(lost.any(axis=1) | lost_y)  # those with every value
    problems: list[str] = []
    if lost_y.any() and missing not in ("drop-rows", "keep"):
        problems.append(
            f"The target {quoted(target)} is missing or infinite in {plural(int(lost_y.sum()), 'row')} "
            f"({listed(_pick(row_names, lost_y))}); expected numbers: remove these rows with --missing drop-rows "
            f"(keeps {int(rows.sum()):,} of {len(y):,})."
        )
    if missing is None:
        problems += _missing_values(lost, names, rows)
    raise_all(problems)
    if missing == "keep":
        beside = np.asarray(lost[:, [name in used for name in names]].any(axis=1) & ~lost_y)
        rows = ~(lost_y | beside)
        columns = ~np.asarray(lost[rows].all(axis=0))
        if not columns.any() or rows.sum() < 2:
            remaining = plural(int(rows.sum()), "row") + ("" if columns.any() else " and no column with a value")
            raise TableError(
                f"--impute leaves {remaining}; expected at least two rows with a target, and values to fill from."
            )
        X = np.where(lost, np.nan, X)
        dropped = change("column", "without any value dropped", _pick(names, ~columns))
        dropped += change("row", "without a target dropped", _pick(row_names, lost_y))
        dropped += change("row", "without a weight, an event or another target dropped", _pick(row_names, beside))
    elif missing == "drop-columns":
        if not columns.any():
            raise TableError(
                f"--missing drop-columns leaves none of {plural(len(names), 'column')}, since each has missing "
                "values; expected at least one: use --missing drop-rows or fill them in."
            )
        rows = np.ones(len(y), dtype=bool)
        dropped = change("column", "with missing or infinite values dropped", _pick(names, ~columns))
    else:
        if rows.sum() < 2:
            worst = np.argsort(-lost.sum(axis=0), kind="stable")[:2].tolist()
            raise TableError(
                f"--missing drop-rows leaves {plural(int(rows.sum()), 'row')} of {len(rows):,}; expected at least two: "
                f"use --missing drop-columns, or --drop those with most missing values "
                f"({listed(names[j] for j in worst)})."
            )
        columns = np.ones(len(names), dtype=bool)
        dropped = change("row", "with missing or infinite values dropped", _pick(row_names, ~rows))
    return X[np.ix_(rows, columns)], y[rows], _pick(names, columns), rows, dropped


def repeated_values(raw: Raw, target: int) -> dict[str, NDArray[np.int64]]:
    """Columns that may say which rows belong together, as codes: text or whole numbers whose values nearly all repeat.

    Many are the rule in tables of counts or zeros and ones, where they say nothing: only some columns are looked at.
    """
    from pandas import factorize

    found = {}
    for j, name in enumerate([] if raw.is_array else raw.names[:_LOOKED_AT]):
        column = raw.frame[j]
        if j == target or column.dtype.kind == "f":
            continue
        codes, values = factorize(column)
        if FEWEST_VALUES <= len(values) <= len(codes) / 2 and codes.min() >= 0:
            counts = np.bincount(codes)
            # Whole numbers that name something repeat about equally often; those that count something do not.
            names = not is_plain(column.dtype) or np.std(counts) < _EVENLY * np.mean(counts) >= _EVENLY * _OFTEN
            if names and np.mean(counts[codes] > 1) >= _REPEATED:
                found[name] = np.asarray(codes, dtype=np.int64)
    return found


def _missing_values(lost: NDArray[np.bool_], names: list[str], rows: NDArray[np.bool_]) -> list[str]:
    """What is wrong with columns without any value and with some, from what is `lost` (M, N) and complete `rows`."""
    columns, empty = np.asarray(lost.any(axis=0)), np.asarray(lost.all(axis=0))
    problems = []
    if empty.any():
        problems.append(
            f"{plural(int(empty.sum()), 'column')} of the table without any value: "
            f"{listed(_pick(names, empty), MANY)}; expected numbers: leave them out with --missing drop-columns or "
            "with --drop."
        )
        rows = ~np.asarray(lost[:, ~empty].any(axis=1))
    some = columns & ~empty
    if some.any():
        n_rows, n_columns = lost.shape
        problems.append(
            f"{plural(int(lost[:, some].sum()), 'value')} missing or infinite in {listed(_pick(names, some), MANY)}; "
            f"expected numbers: --missing drop-rows (keeps {int(rows.sum()):,} of {plural(n_rows, 'row')}), "
            f"--missing drop-columns (keeps {int((~columns).sum()):,} of {n_columns:,}) or --impute median (keeps all)."
        )
    return problems


def _pick(names: Sequence[str], chosen: NDArray[np.bool_]) -> list[str]:
    return [names[j] for j in np.flatnonzero(chosen).tolist()]


def odd_target(raw: Raw, at: int) -> TableError:
    """The error of a target that does not consist of numbers."""
    name = raw.names[at]
    if may_be_classes(raw, at):
        kinds = sorted_labels({str(value).strip() for value in raw.frame[at].dropna()})
        return TableError(
            f"The target {quoted(name)} holds text of {len(kinds)} kinds ({listed(kinds)}); expected numbers: select "
            "and fit take classes (--loss logistic or multinomial), other commands numbers such as 0 and 1."
        )
    return odd_column(raw, at, f"The target {quoted(name)}", "choose another --target or encode it")


def odd_column(raw: Raw, at: int, subject: str, otherwise: str) -> TableError:
    """One column that must hold numbers; `otherwise` is the fix where no other reading makes it numbers."""
    kind = describe(raw.frame[at], raw.reading)
    fix = otherwise if kind in WORDS else how_to_read(raw, at)
    return TableError(f"{subject} holds {kind} ({_first_cell(raw, at)}); expected numbers: {fix}.")


def odd_columns(raw: Raw, bad: Sequence[int], rows_are_named: bool) -> TableError:
    """The error of columns that do not consist of numbers."""
    frame, names = raw.frame, raw.names
    kinds = {j: describe(frame[j], raw.reading) for j in bad[:MANY]}
    words = [j for j, kind in kinds.items() if kind in WORDS]
    fixes = [how_to_read(raw, j) for j in kinds if j not in words][:1]
    may = [] if rows_are_named else [j for j in words if _may_name_rows(frame[j], first=j == 0)]
    label = min(may, key=lambda j: not frame[j].astype(str).is_unique, default=None)  # names are mostly all different
    index = None if label is None else f"--index {quoted(names[label])}"
    if words and fixes:
        fixes.append(
            f"{index} takes row names, --drop-text leaves text out" if index else "--drop-text leaves text out"
        )
    elif words:
        categories = [j for j in words if may_be_categories(raw, j)]
        slips = all(_is_mostly_numbers(frame[j], raw.reading) for j in words)
        about = [names[j] for j in categories]
        fixes.append(_about_words(len(bad), None if label in categories else index, about, slips))
    end = f"; expected numbers: {'; '.join(fixes)}."
    if len(set(kinds.values())) == 1:
        verb = "holds" if len(bad) == 1 else "hold"
        start = f"{plural(len(bad), 'column')} of the table {verb} {kinds[bad[0]]}: "
        end = f" ({_first_cell(raw, bad[0])})" + end
        shown = [quoted(names[j]) for j in kinds]
    else:
        start = f"{plural(len(bad), 'column')} are not numbers: "
        cells = {bad[0]: f", {_first_cell(raw, bad[0])}"}
        shown = [f"{quoted(names[j])} ({kind}{cells.get(j, '')})" for j, kind in kinds.items()]
    more = f" and {len(bad) - len(shown):,} more" if len(bad) > len(shown) else ""
    return TableError(start + ", ".join(shown) + more + end)


def no_column_left(raw: Raw, at: Sequence[int], kinds: dict[int, str]) -> TableError:
    """The error of a table without any column of numbers."""
    commas = [j for j, kind in kinds.items() if kind not in WORDS]
    fix = how_to_read(raw, commas[0]) if commas else "encode some as numbers"
    return TableError(
        f"No column of numbers is left of {plural(len(at), 'column')}, {listed((raw.names[j] for j in at), 2)}; "
        f"expected at least one to choose from: {fix}."
    )


def how_to_read(raw: Raw, at: int) -> str:
    """What to do about commas or points in the numbers of a column; where two readings are possible, both."""
    marks = raw.marks
    if marks is None:
        return "store them as numbers in the file"
    possible = simplest(_settled(raw.frame, at, marks))
    _, value = first_odd(raw.frame[at], marks)
    if not possible:
        given = marks.thousands or ","
        return f"write groups of three digits after each {quoted(given)}, as in 1{given}490, or correct {quoted(value)}"
    if len(possible) == 1:
        return f"read the table {possible[0].instead_of(marks)}"
    return both_readings(value, possible, marks)


def _settled(frame: pd.DataFrame, at: int, marks: Marks) -> list[Marks]:
    """Marks with which column `at` is numbers; of several those that fit the rest of the table, if any do."""
    of_column = [each for each in possible_marks(frame[at]) if each != marks]
    fitting = of_column
    if _has_fractions(frame):
        fitting = [each for each in fitting if each.decimal == marks.decimal]
    texts = [j for j, dtype in enumerate(frame.dtypes) if not is_plain(dtype)]
    for j in texts[:FEW]:
        possible = possible_marks(frame[j])
        fitting = [each for each in fitting if not possible or each in possible]
    return fitting or of_column


def _first_cell(raw: Raw, at: int) -> str:
    """Row and text of the first value of a column that is not a number."""
    row, value = _telling(raw, at)
    return f"{numbered('row', row)}: {quoted(value)}"


def _is_mostly_numbers(column: pd.Series[Any], marks: Marks) -> bool:
    """Whether at least half of the values of a column with text are written as numbers."""
    some = column[column.notna()].iloc[:FEW]
    return 2 * sum(is_number(value, marks) for value in some) >= len(some)


def _telling(raw: Raw, at: int) -> tuple[int, str]:
    """Row and text of the first value that is not a number, if possible of one that has a single meaning."""
    for row, value in enumerate(raw.frame[at].to_numpy(object)):
        if isinstance(value, str) and not is_number(value, raw.reading) and len(simplest(readings([value]))) == 1:
            return row, value
    return first_odd(raw.frame[at], raw.reading)


def _has_fractions(frame: pd.DataFrame) -> bool:
    """Whether numbers were read that have a fraction: then the decimal mark they were read with is the right one."""
    for j, dtype in enumerate(frame.dtypes):
        if is_plain(dtype) and dtype.kind == "f":
            values = frame[j].to_numpy()
            values = values[np.isfinite(values)]
            if (values != np.rint(values)).any():
                return True
    return False


def _about_words(count: int, index: str | None, categories: Sequence[str], slips: bool) -> str:
    """What to do about columns of text and dates."""
    if categories:
        commas = any("," in name for name in categories)
        shown = " --categories ".join(quoted(name, 1000) for name in (categories if commas else [",".join(categories)]))
        them = "it" if count == 1 else "them"
        names = f"take row names with {index}, " if index is not None and count > 1 else ""
        return f"{names}read categories as 0 and 1 with --categories {shown}, or leave {them} out with --drop-text"
    if count == 1:
        leave_out = "leave it out with --drop-text, or encode it"
        if slips:
            return "correct such values or leave them empty, or leave the column out with --drop-text"
        return leave_out if index is None else f"take it as row names with {index}, or {leave_out}"
    if slips:
        return "correct such values or leave them empty, or leave the columns out with --drop-text"
    if index is None:
        return "leave them out with --drop-text, or encode them"
    return f"take one as row names with {index} and leave the others out with --drop-text, or encode them"


def _may_name_rows(column: pd.Series[Any], first: bool) -> bool:
    """Whether a column of words looks like names of the rows and not like numbers with a slip."""
    return not _is_mostly_numbers(column, Marks()) and (first or bool(column[column.notna()].is_unique))
