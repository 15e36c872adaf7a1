"""Blocks of rows as users give them, column by column: arrays, data frames, Arrow tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.text import plural, quoted


class Rows(NamedTuple):
    """Some rows of a table, column by column: N candidates, then q targets; their weights, or None."""

    columns: Sequence[NDArray[Any]]
    weight: NDArray[Any] | None = None

    @property
    def size(self) -> int:
        """How many rows there are."""
        return len(self.columns[0])

    def checked(self) -> Rows:
        """These rows, if their weights can be used."""
        weight = self.weight
        if weight is not None and (weight.shape != (self.size,) or not np.all(np.isfinite(weight) & (weight >= 0))):
            raise ValueError("its weights are not one finite number >= 0 for each row; expected these.")
        return self

    def some(self, part: slice) -> Rows:
        """Neighbouring rows."""
        return Rows([values[part] for values in self.columns], None if self.weight is None else self.weight[part])


class Reader:
    """Blocks as users give them: (X, y) or (X, y, weights), or tables in which `targets` are columns.

    The first block says which columns there are; all others must have them, in the same order.
    """

    def __init__(
        self,
        names: Sequence[str] | None = None,
        target_names: Sequence[str] | None = None,
        targets: Sequence[str] | None = None,
        weights: str | None = None,
    ) -> None:
        self._given, self._given_targets, self._by_name, self._weights = names, target_names, targets, weights
        self.columns: Sequence[str] = []
        self.targets: Sequence[str] = []
        self.number = 0

    def read(self, block: Any) -> Rows:
        """The rows of a block."""
        if isinstance(block, Rows):  # from files, whose columns are known
            self.columns, self.targets = self._given or [], self._given_targets or []
            return block.checked()
        self.number += 1
        try:
            return self._read(block)
        except (ValueError, TypeError) as error:
            raise type(error)(f"block {self.number}: {error}") from None

    def _read(self, block: Any) -> Rows:
        if self._by_name is not None:
            labels = _labels(block)
            for name in (*self._by_name, *([] if self._weights is None else [self._weights])):
                if labels is None or name not in labels:
                    raise ValueError(f"it has no column {quoted(name)}; expected tables with the same named columns.")
            assert labels is not None
            by_label = {name: _column(block, labels.index(name)) for name in labels}
            target_names: Sequence[str] | None = list(self._by_name)
            names: Sequence[str] | None = [name for name in labels if name not in {*self._by_name, self._weights}]
            columns, targets = [by_label[name] for name in names or ()], [by_label[name] for name in self._by_name]
            weight = None if self._weights is None else by_label[self._weights]
        else:
            if not isinstance(block, (tuple, list)) or not 2 <= len(block) <= 3:
                raise TypeError(
                    f"it is a {type(block).__name__}; expected (X, y) or (X, y, sample_weight), or tables together "
                    "with y, the name of the target's column."
                )
            (columns, names), (targets, target_names) = _columns(block[0], "X"), _columns(block[1], "y")
            names, target_names = self._given or names, self._given_targets or target_names
            weight = None if len(block) < 3 or block[2] is None else np.asarray(block[2], dtype=np.float64)
        self._check(columns, names, targets, target_names)
        labelled = zip((*self.columns, *self.targets), (*columns, *targets), strict=True)
        rows = Rows([_checked(name, values, columns[0].size) for name, values in labelled], weight)
        return rows.checked()

    def _check(self, columns: Any, names: Any, targets: Any, target_names: Any) -> None:
        """Remember the columns of the first block, and refuse others."""
        if not columns:
            raise ValueError("it has no columns; expected at least one candidate.")
        if not self.columns:
            labels = [f"x{j}" for j in range(len(columns))] if names is None else list(map(str, names))
            target_labels = [f"y{t}" for t in range(len(targets))] if target_names is None else list(target_names)
            if (len(labels), len(target_labels)) != (len(columns), len(targets)):
                raise ValueError(
                    f"{plural(len(labels), 'name')} and {plural(len(target_labels), 'name')} of targets are given for "
                    f"{plural(len(columns), 'column')} and {plural(len(targets), 'target')}; expected one for each."
                )
            if len(set(labels)) < len(labels):
                raise ValueError("several columns have the same name; expected names that tell columns apart.")
            self.columns, self.targets = labels, target_labels
        elif (len(columns), len(targets)) != (len(self.columns), len(self.targets)):
            raise ValueError(
                f"it has {plural(len(columns), 'column')} and {plural(len(targets), 'target')}; expected "
                f"{len(self.columns):,} and {len(self.targets)}, as in the first block."
            )
        elif names is not None and list(map(str, names)) != list(self.columns):
            at = next(j for j, name in enumerate(names) if str(name) != self.columns[j])
            raise ValueError(
                f"its column {at + 1} is {quoted(str(names[at]))}; expected {quoted(self.columns[at])}, as in the "
                "first block."
            )


def _labels(table: Any) -> list[str] | None:
    """Names of the columns of a data frame or an Arrow table."""
    if hasattr(table, "column_names"):
        return [str(name) for name in table.column_names]
    return [str(name) for name in table.columns] if hasattr(table, "columns") else None


def _column(table: Any, j: int) -> NDArray[Any]:
    """A column of a data frame (pandas, polars) or an Arrow table, missing values as not-a-number."""
    if hasattr(table, "column_names"):
        return np.asarray(table.column(j).to_numpy(zero_copy_only=False))
    values = table.iloc[:, j] if hasattr(table, "iloc") else table[:, j]
    if getattr(values.dtype, "na_value", None) is not None and hasattr(values, "isna") and values.isna().any():
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(values)


def _columns(table: Any, what: str) -> tuple[list[NDArray[Any]], Sequence[str] | None]:
    """The columns of an array or a data frame, and their names where it has some."""
    labels = _labels(table)
    if labels is not None:
        return [_column(table, j) for j in range(len(labels))], labels
    values = np.asarray(table)
    if values.ndim == 1 and what == "y":
        return [values], None
    if values.ndim != 2:
        raise ValueError(f"{what} has shape {values.shape}; expected a table of shape (rows, columns).")
    return list(values.T), None


def _checked(name: str, values: NDArray[Any], n_rows: int) -> NDArray[Any]:
    """A column as numbers, one for each row."""
    if values.shape != (n_rows,):
        raise ValueError(f"{quoted(name)} has shape {values.shape} beside {plural(n_rows, 'row')}; expected as many.")
    if values.dtype.kind in "mMc":
        kind = "complex numbers" if values.dtype.kind == "c" else "dates or durations"
        raise ValueError(f"{quoted(name)} holds {kind}; expected real numbers.")
    if values.dtype.kind in "iufb":
        return values
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        at, bad = next((i, v) for i, v in enumerate(values.tolist()) if not _is_number(v))
        raise ValueError(
            f"{quoted(name)} holds {quoted(str(bad))} in row {at + 1:,} of the block; expected numbers: leave the "
            "column out, or encode it."
        ) from None


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return value is None
    return True


def joined(parts: Sequence[Rows]) -> Rows:
    """The rows of several parts together."""
    if len(parts) == 1:
        return parts[0]
    columns = [np.concatenate(each) for each in zip(*(part.columns for part in parts), strict=True)]
    if all(part.weight is None for part in parts):
        return Rows(columns)
    weights = [np.ones(part.size) if part.weight is None else part.weight for part in parts]
    return Rows(columns, np.concatenate(weights))


def in_parts(stream: Iterable[Rows], step: int) -> Iterator[list[Rows]]:
    """The same rows, as many at a time (at the end perhaps fewer), whatever blocks they came in."""
    pending, size = list[Rows](), 0
    for rows in stream:
        at = 0
        while rows.size - at:
            part = rows.some(slice(at, at + step - size))
            pending.append(part)
            size, at = size + part.size, at + part.size
            if size == step:
                yield pending
                pending, size = [], 0
    if pending:
        yield pending
