"""Turning what users pass in into checked float64 arrays, with errors that say what to do."""

from __future__ import annotations

import datetime
import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairflip.least_squares import Floats
from pairflip.projection import column_blocks, row_slices
from pairflip.sparse import by_columns, dense, is_sparse
from pairflip.text import numbered, plural, quoted

_DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
_NO_VALUES = ("NAType", "NaTType")  # of pandas
_MANY = 20  # columns that a sentence names
_POLARS_DATES = ("Date", "Datetime", "Duration", "Time")


def _show(names: Sequence[str], at: Iterable[int], most: int = 5) -> str:
    listed = list(at)
    text = ", ".join(repr(names[j]) for j in listed[:most])
    return text + (f" and {len(listed) - most} more" if len(listed) > most else "")


def as_frame(table: Any, name: str = "X") -> Any:
    """An Arrow table (PyArrow) as a frame of pandas, and anything else as it is; frames without rows are refused."""
    if hasattr(table, "collect_schema") and not hasattr(table, "shape"):  # polars
        raise ValueError(f"{name} is a lazy frame, which has no rows yet; expected a table: {name}.collect().")
    return table.to_pandas() if hasattr(table, "column_names") and hasattr(table, "to_pandas") else table


def as_labelled(X: Any, names: Sequence[str] | None = None) -> tuple[NDArray[Any], list[str]]:
    """X as an array or a sparse one (M, N) of any type, and the names of its columns."""
    X = as_frame(X)
    if names is None and hasattr(X, "columns"):
        names = [str(c) for c in X.columns]
    if hasattr(X, "sparse") and all(getattr(dtype, "fill_value", None) == 0 for dtype in X.dtypes):
        X = X.sparse.to_coo()  # a frame of pandas
    raw: Any = X if is_sparse(X) else np.asarray(X)
    if raw.ndim == 2 and is_sparse(raw):
        raw = raw.tocsc()  # other kinds have no rows and columns to take
    if raw.ndim != 2:
        raise ValueError(
            f"X has shape {raw.shape}; expected a table of shape (rows, columns). "
            "A single column is X.reshape(-1, 1), a single row X.reshape(1, -1)."
        )
    n_columns = raw.shape[1]
    labels = [f"x{j}" for j in range(n_columns)] if names is None else [str(name) for name in names]
    if len(labels) != n_columns:
        raise ValueError(
            f"names has {len(labels)} entries but X has {n_columns} columns; expected one name per column."
        )
    return raw, labels


def as_table(
    X: Any, names: Sequence[str] | None = None, *, as_it_is_from: int | None = None, least_rows: int = 2
) -> tuple[NDArray[Any], list[str]]:
    """X as a checked array; a sparse one stays sparse, by columns."""
    X = as_frame(X)
    raw, labels = as_labelled(X, names)
    n_rows, n_columns = raw.shape
    if n_columns == 0:
        raise ValueError("X has no columns; expected at least one candidate column.")
    if n_rows < least_rows:
        least = "one row" if least_rows == 1 else "two rows"
        raise ValueError(f"X has {plural(n_rows, 'row')}; expected at least {least} (n_samples >= {least_rows}).")
    if np.iscomplexobj(raw):
        raise ValueError("Complex data not supported: X holds complex numbers; expected real ones.")
    if is_sparse(raw):
        return _as_sparse_table(raw, labels), labels
    refuse_dates(X, labels)
    try:
        wide = as_it_is_from is not None and n_columns >= as_it_is_from
        table = raw if wide and raw.dtype in (np.float32, np.float64) else np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError):
        bad = [j for j in range(n_columns) if not _is_numeric(raw[:, j])]
        others = [j for j in range(n_columns) if j not in set(bad)]
        gaps = [j for j in others if not np.isfinite(np.asarray(raw[:, j], dtype=np.float64)).all()]
        besides = f" (besides, NaN or infinity in column {_show(labels, gaps, _MANY)})" if gaps else ""
        first = next(i for i in range(n_rows) if not _is_numeric(raw[i : i + 1, bad[0]]))
        raise ValueError(
            f"X holds text or other non-numeric values in column {_show(labels, bad, _MANY)} "
            f"({quoted(str(raw[first, bad[0]]))} in {numbered('row', first)}); expected numbers only: "
            f"drop these columns or encode them{besides}."
        ) from None
    lost = [np.count_nonzero(~np.isfinite(table[:, part]), axis=0) for part in column_blocks(n_rows, n_columns)]
    _refuse_missing(np.concatenate(lost), labels)
    return table, labels


def _as_sparse_table(raw: Any, labels: Sequence[str]) -> Any:
    """A sparse table as checked float64 by columns."""
    table = by_columns(raw.astype(np.float64, copy=False))
    lost = ~np.isfinite(table.data)
    if lost.any():
        column = np.repeat(np.arange(table.shape[1]), np.diff(table.indptr))
        _refuse_missing(np.bincount(column, lost, table.shape[1]), labels)
    return table


def _refuse_missing(missing: NDArray[Any], labels: Sequence[str]) -> None:
    """Refuse a table in which so many values (N,) of columns are not finite."""
    if missing.any():
        count = plural(int(missing.sum()), "value")
        raise ValueError(
            f"X contains NaN or infinity in column {_show(labels, np.flatnonzero(missing).tolist())} ({count}); "
            "expected finite numbers: drop these rows or columns, or impute them."
        )


class ColumnsAbsent(ValueError):
    """New rows lack columns that predict them."""


def as_new_rows(X: Any, names: Sequence[str], used: NDArray[np.int64], needs: str) -> Floats:
    """Some columns of new rows as a checked array (M, U), see `select_columns`."""
    part = select_columns(X, names, used, needs)
    if used.size == 0:
        return np.zeros((part.shape[0], 0))
    return np.asarray(dense(as_table(part, [names[j] for j in used], least_rows=1)[0]), dtype=np.float64)


def select_columns(X: Any, names: Sequence[str], used: NDArray[np.int64], needs: str) -> Any:
    """Some columns of an array with all of them, or of a data frame by their names; `needs` is for the refusal.

    Where names are not unique, only a frame with all columns in their order will do.
    """
    X = as_frame(X)
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        given = [str(name) for name in X.columns]
        place = {name: j for j, name in enumerate(given)}
        missing = [j for j in used if names[j] not in place]
        if missing:
            some = "column" if len(missing) == 1 else "columns"
            raise ColumnsAbsent(f"X lacks the {some} {_show(names, missing, 3)}; expected all columns that {needs}.")
        at = used.tolist()
        if given != list(names):
            at, often, twice = [place[names[j]] for j in used], Counter(given), Counter(names)
            same = next((names[j] for j in used if often[names[j]] > 1 or twice[names[j]] > 1), None)
            if same is not None:
                raise ValueError(f"several columns are called {same!r}; expected names that tell columns apart.")
        return X.iloc[:, at] if hasattr(X, "iloc") else X[:, at]
    part: Any = X if hasattr(X, "shape") else np.asarray(X)
    part = part.tocsc() if is_sparse(part) and len(part.shape) == 2 else part
    if len(part.shape) == 2 and part.shape[1] != len(names):
        raise ValueError(
            f"X has {plural(part.shape[1], 'column')}, but the model was made from {len(names):,}; expected the "
            "same columns in the same order, or a data frame with their names."
        )
    return part if len(part.shape) != 2 or np.array_equal(used, np.arange(len(names))) else part[:, used]


def refuse_dates(X: Any, names: Sequence[str] | None = None) -> None:
    """Refuse dates and durations in X, which NumPy would turn into days or nanoseconds; other faults pass."""
    if is_sparse(X):
        return
    if hasattr(X, "columns") and hasattr(X, "dtypes"):  # a frame: column by column, or numbers would become objects
        names, bad = [str(c) for c in X.columns] if names is None else names, []
        for j, dtype in enumerate(X.dtypes):
            # pandas has kinds as NumPy has, polars names such as Datetime(time_unit='us')
            kind, name = getattr(dtype, "kind", "O"), str(dtype).partition("(")[0]
            column = (X.iloc[:, j] if hasattr(X, "iloc") else X[:, j]) if kind == "O" else ()
            if kind in "mM" or name in _POLARS_DATES or _holds_dates(np.asarray(column)):
                bad.append(j)
    else:
        raw = _as_array(X)
        if raw is None or raw.ndim != 2 or raw.dtype.kind not in "mMO":
            return
        bad = [j for j in range(raw.shape[1]) if _holds_dates(raw[:, j])]
        names = [f"x{j}" for j in range(raw.shape[1])] if names is None else names
    if bad:
        columns, them = ("column", "it") if len(bad) == 1 else ("columns", "them")
        raise ValueError(
            f"X holds dates or durations in {columns} {_show(names, bad)}; expected numbers only: drop {them}, or "
            "count the days since the first one."
        )


def refuse_date_target(y: Any) -> None:
    """Refuse dates and durations in the target."""
    raw = _as_array(y)
    if raw is not None and _holds_dates(raw.reshape(-1)):
        raise ValueError("y holds dates or durations; expected one number per row, such as days since the first one.")


def _as_array(values: Any) -> NDArray[Any] | None:
    try:
        return np.asarray(values)
    except (TypeError, ValueError):  # rows of different lengths, for instance
        return None


def _holds_dates(values: NDArray[Any]) -> bool:
    if values.dtype.kind != "O":
        return values.dtype.kind in "mM"
    return any(isinstance(value, _DATES) or type(value).__name__ == "Period" for value in values)


def _is_numeric(column: NDArray[Any]) -> bool:
    try:
        np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return True


def _one_per_row(y: Any, n_rows: int, entry: str, expected: str) -> NDArray[Any]:
    """The target as (M,) of any type but complex numbers and dates; `entry` is what a row has."""
    raw = dense(y)
    if np.iscomplexobj(raw):
        raise ValueError(f"Complex data not supported: y holds complex numbers; expected {expected}.")
    refuse_date_target(raw)
    raw = raw[:, 0] if raw.ndim == 2 and raw.shape[1] == 1 else raw
    if raw.shape != (n_rows,):
        raise ValueError(f"y has shape {raw.shape} but X has {n_rows} rows; expected one {entry} per row.")
    return raw


def as_target(y: ArrayLike, n_rows: int) -> Floats:
    """Target y as a finite (M,) float64 array."""
    raw = _one_per_row(y, n_rows, "target value", "real ones")
    if not _is_numeric(raw):
        raise ValueError("y holds text or other non-numeric values; expected one number per row.")
    target = np.asarray(raw, dtype=np.float64)
    bad = int((~np.isfinite(target)).sum())
    if bad:
        raise ValueError(
            f"y contains NaN or infinity ({plural(bad, 'value')}); expected finite numbers: drop these rows."
        )
    return target


def n_targets(y: Any) -> int:
    """How many targets y has: the columns of a table of at least two, otherwise one."""
    array = y if hasattr(y, "shape") else _as_array(y)
    shape = () if array is None else array.shape
    return int(shape[1]) if len(shape) == 2 and shape[1] > 1 else 1


def as_targets(y: Any, n_rows: int) -> Floats:
    """Several targets as a finite (M, q) float64 array."""
    names = names_of_targets(y)
    raw = dense(y)
    if raw.shape[0] != n_rows:
        raise ValueError(f"y has shape {raw.shape} but X has {n_rows} rows; expected one row of targets per row of X.")
    targets = np.empty(raw.shape)
    for t, name in enumerate(names):
        try:
            targets[:, t] = as_target(raw[:, t], n_rows)
        except ValueError as error:
            raise ValueError(f"target {name!r}: {error}") from None
    return targets


def names_of_targets(y: Any, given: Sequence[str] | None = None) -> list[str]:
    """Names of several targets: those given, those of a data frame, else ``y0, y1, ...``."""
    if given is not None:
        if len(given) != n_targets(y):
            raise ValueError(
                f"target_names has {len(given)} entries but y has {n_targets(y)} columns; expected one name per target."
            )
        return [str(name) for name in given]
    if hasattr(y, "columns"):
        return [str(name) for name in y.columns]
    return [f"y{t}" for t in range(n_targets(y))]


MOST_CLASSES = 50
"""More different labels than this are hardly classes."""


def as_labels(y: Any, n_rows: int, loss: str) -> tuple[Floats, NDArray[Any]]:
    """Labels of any type as 0, 1, ... (M,), and the labels themselves, sorted: two for "logistic", otherwise more."""
    raw = _one_per_row(y, n_rows, "label", "labels of classes")
    missing = raw != raw if raw.dtype.kind == "f" else np.zeros(n_rows, dtype=bool)
    if raw.dtype.kind == "O":
        missing = np.array([value is None or type(value).__name__ in _NO_VALUES or value != value for value in raw])
    bad = int(np.count_nonzero(missing)) + (int(np.count_nonzero(np.isinf(raw))) if raw.dtype.kind == "f" else 0)
    if bad:
        raise ValueError(f"y contains NaN or infinity ({plural(bad, 'value')}); expected labels: drop these rows.")
    try:
        classes, codes = np.unique(raw, return_inverse=True)
    except TypeError:
        raise ValueError("y mixes labels that cannot be sorted, such as text and numbers; expected one kind.") from None
    least, most = (2, 2) if loss == "logistic" else (3, MOST_CLASSES)
    if not least <= classes.size <= most:
        shown = ", ".join(repr(label) for label in classes[:5].tolist()) + (", ..." if classes.size > 5 else "")
        count = f"one class only ({shown})" if classes.size == 1 else f"{classes.size} different labels ({shown})"
        expected = "two classes" if most == 2 else f"{least} to {most} classes"
        if 1 < classes.size <= MOST_CLASSES:
            expected += f" (loss={'multinomial' if most == 2 else 'logistic'!r} is for these)"
        raise ValueError(f"y has {count} with loss={loss!r}; expected {expected}.")
    return codes.reshape(-1).astype(np.float64), classes


def as_survival(y: Any, n_rows: int) -> Floats:
    """Times and events (M, 2) of two columns, or of a structured array with two fields, the event in either place.

    A field of true and false is the event; otherwise the second one is.
    """
    raw = np.asarray(y)
    if raw.dtype.names is not None:
        fields = sorted(raw.dtype.names, key=lambda name: raw.dtype[name].kind == "b")
        raw = np.column_stack([raw[name].astype(np.float64) for name in fields])
    if raw.ndim != 2 or raw.shape[1] != 2:
        raise ValueError(
            f"y has shape {raw.shape} with loss='cox'; expected two columns: the time, and the event (1) or not (0)."
        )
    time, event = (as_target(column, n_rows) for column in raw.T)
    if (time < 0).any():
        raise ValueError(f"y has the time {time.min():g} with loss='cox'; expected times of 0 or more.")
    odd = event[(event != 0) & (event != 1)]
    if odd.size:
        raise ValueError(f"y has the event {odd[0]:g} with loss='cox'; expected 1 (it happened) or 0 (censored).")
    return np.column_stack([time, event])


def _row_numbers(values: ArrayLike, n_rows: int, name: str, expected: str, each: str) -> Floats:
    """An argument that has a number for each row, as (M,) float64; one number stands for all rows."""
    raw = np.asarray(values)
    if np.iscomplexobj(raw) or _holds_dates(raw.reshape(-1)) or not _is_numeric(raw):
        raise ValueError(f"{name} holds text, complex or other non-numeric values; expected {expected}.")
    numbers = np.array(raw, dtype=np.float64)
    if name == "sample_weight" and numbers.ndim == 0:
        numbers = np.full(n_rows, float(numbers))
    if numbers.shape != (n_rows,):
        raise ValueError(f"{name} has shape {numbers.shape} but X has {n_rows} rows; expected one {each} per row.")
    return numbers


def as_offset(offset: ArrayLike, n_rows: int) -> Floats:
    """An offset as finite (M,) float64."""
    values = _row_numbers(offset, n_rows, "offset", "one number per row", "number")
    if not np.isfinite(values).all() or np.abs(values).max() > 100.0:
        raise ValueError("offset has non-finite entries or entries beyond 100; expected logarithms, such as log(time).")
    return values


def as_weights(weights: ArrayLike | None, n_rows: int) -> Floats:
    """Row weights as (M,) float64, all ones when not given."""
    if weights is None:
        return np.ones(n_rows)
    w = _row_numbers(weights, n_rows, "sample_weight", "numbers >= 0", "weight")
    if not np.isfinite(w).all() or (w < 0).any():
        raise ValueError("sample_weight has negative or non-finite entries; expected finite numbers >= 0.")
    if np.count_nonzero(w) < 2:
        raise ValueError(
            "sample_weight is zero nearly everywhere and leaves fewer than two rows; "
            "expected at least two rows of positive weight."
        )
    return w


def data_hash(names: Iterable[str], X: Any, y: Floats, weights: Floats) -> str:
    """The identity of a table: SHA-256, in hexadecimal, of column names, numbers, target and weights.

    Two files that hold the same numbers have the same one, however they are written; journals, curves and reports carry
    it. A sparse table, of which only values that are not zero are read, has another one than the same dense table.
    """
    digest = hashlib.sha256()
    for name in names:
        digest.update(name.encode("utf-8", "surrogatepass") + b"\0")
    parts = (X.indptr, X.indices, X.data) if is_sparse(X) else (X[part] for part in row_slices(X))
    for array in (np.array(X.shape, "<i8"), *parts, y, weights):
        kind = "<i8" if array.dtype.kind == "i" else "<f8"
        digest.update(np.ascontiguousarray(array, dtype=kind).data)
    return digest.hexdigest()


def find_columns(wanted: Iterable[str | int], names: Sequence[str], giver: str = "always") -> NDArray[np.int64]:
    """Indices of columns given by name or by index; `giver` is who names them, for sentences."""
    if isinstance(wanted, (str, int, np.integer)):
        wanted = [wanted]
    columns: list[int] = []
    for item in wanted:
        if isinstance(item, str):
            if item not in names:
                raise ValueError(
                    f"{giver} names the column {item!r}, which X does not have; expected one of its columns."
                )
            columns.append(names.index(item))
            continue
        if isinstance(item, (bool, np.bool_)) or not isinstance(item, (int, np.integer)):
            raise TypeError(f"{giver} names column {item!r}; expected names or indices of columns of X.")
        if not 0 <= int(item) < len(names):
            column = numbered("column", int(item), given=True)
            raise ValueError(f"{giver} names {column}, but X has column indices 0 to {len(names) - 1}.")
        columns.append(int(item))
    return np.unique(np.asarray(columns, dtype=np.int64))
