"""NumPy files that hold one large array of numbers: it is used as it is, not taken apart into columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats
from pairflip.projection import column_blocks
from pairflip.tables.cleaning import without_missing
from pairflip.tables.columns import select, visible_names
from pairflip.tables.errors import TableError, refuse_damaged, shown_path
from pairflip.tables.raw import Change
from pairflip.text import plural, quoted, row_numbers

LARGE = 1000
"""An archive of fewer columns is read as all other files are."""


@dataclass(frozen=True, eq=False)
class Matrix:
    """An array X (M, N) of numbers with the names of its columns, and the target y (M,) where it stands apart."""

    X: NDArray[Any]
    names: list[str]
    y: NDArray[Any] | None = None
    target: str = "y"


@dataclass(frozen=True, eq=False)
class Numbers:
    """Candidates, target and names, as `Table` has them, and what was left out or is to be said."""

    X: NDArray[Any]
    y: Floats
    names: list[str]
    row_names: list[str]
    target: str
    dropped: list[Change]
    notes: list[Change]
    named: bool


def read_npy(path: Path, target: str | None) -> Matrix:
    """Map a NumPy file of one array (M, N); columns are called x0, x1, ..."""
    X = _mapped(path, "a table of shape (rows, columns)")
    if X.ndim != 2:
        raise TableError(f"{path.name!r} has an array of shape {X.shape}; expected a table of shape (rows, columns).")
    names = [f"x{j}" for j in range(X.shape[1])]
    if target is None or not target.lower().endswith(".npy"):
        return Matrix(X, names)
    file = Path(target).expanduser()
    if not file.is_file():
        raise TableError(f"--target {shown_path(file)} does not exist; expected a NumPy file with one value per row.")
    y = np.array(_mapped(file, "one value per row"))
    if y.shape not in ((len(X),), (len(X), 1)):
        raise TableError(f"{file.name!r} has shape {y.shape} for {len(X)} rows; expected one value per row.")
    return Matrix(X, names, y.reshape(-1), file.stem)


def _mapped(path: Path, what: str) -> NDArray[Any]:
    refusal = f"{path.name!r} cannot be read as a NumPy file of plain numbers; expected what np.save writes: {what}."
    with refuse_damaged(refusal):
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iufb":
        raise TableError(f"{path.name!r} does not hold one array of real numbers; expected {what}.")
    return np.asarray(array)


def from_archive(X: NDArray[Any], y: NDArray[Any] | None, names: list[str]) -> Matrix | None:
    """The arrays of an archive if X is large and plain, otherwise None."""
    if X.shape[1] < LARGE or X.dtype not in (np.float32, np.float64) or (y is not None and y.dtype.kind not in "iufb"):
        return None
    return Matrix(X, names, None if y is None else y.ravel())


def choose(
    matrix: Matrix,
    target: str | None,
    *,
    index: str | None,
    keep: Iterable[str],
    drop: Iterable[str],
    missing: str | None,
) -> Numbers:
    """Target and candidates of a matrix; X is a view of it wherever that is possible."""
    apart = matrix.y is not None
    originals = [matrix.target, *matrix.names] if apart else matrix.names
    names, notes = visible_names(originals)
    target = matrix.target if apart and (target is None or target.lower().endswith(".npy")) else target
    chosen = select(names, target, index=index, keep=keep, drop=drop, originals=originals)
    values: NDArray[Any] = matrix.X
    if matrix.y is not None and chosen.target == 0:
        y = np.asarray(matrix.y, dtype=np.float64)
    else:
        y = np.array(values[:, chosen.target - apart], dtype=np.float64)
    left = [j - apart for j in chosen.candidates if j >= apart]
    X = _columns(values, np.array(left, dtype=np.int64))
    if matrix.y is not None and len(left) < len(chosen.candidates):  # y is one of the candidates: this takes a copy
        X, left = np.column_stack([matrix.y, X]), [-1, *left]
    if X.dtype not in (np.float32, np.float64) or X.shape[1] < LARGE:
        X = np.ascontiguousarray(X, dtype=np.float64)
    named = chosen.index is not None
    rows = row_numbers(len(y)) if chosen.index is None else [f"{v:g}" for v in values[:, chosen.index - apart].tolist()]
    kept = [names[j + apart] for j in left]
    dropped = list(chosen.dropped)
    label = names[chosen.target]
    if not (np.isfinite(y).all() and all(np.isfinite(X[:, part]).all() for part in column_blocks(*X.shape))):
        X, y, kept, rows, lost = without_missing(X, y, kept, rows, label, missing)
        dropped += lost
    return Numbers(X, y, kept, rows, label, dropped, notes, named)


def _columns(X: NDArray[Any], which: NDArray[np.int64]) -> NDArray[Any]:
    """Some columns, without copying them if they are neighbours."""
    if which.size and which[-1] - which[0] + 1 == which.size:
        return X[:, which[0] : which[-1] + 1]
    return X[:, which]


def constant_columns(X: NDArray[Any]) -> list[int]:
    """Columns with a single value."""
    found: list[int] = []
    for part in column_blocks(*X.shape):
        block = X[:, part]
        found += (part.start + np.flatnonzero((block[:1] == block).all(axis=0))).tolist()
    return found


def check_shape(matrix: Matrix, source: str) -> None:
    """Refuse what is no table."""
    if len(matrix.X) < 2:
        raise TableError(f"{source!r} has {plural(len(matrix.X), 'row')}; expected at least two rows.")
    if not matrix.names:
        raise TableError(f"{source!r} has no columns; expected at least one column to choose from.")
    if matrix.y is None and len(matrix.names) < 2:
        raise TableError(f"{source!r} has one column, {quoted(matrix.names[0])}; expected a target and others.")
