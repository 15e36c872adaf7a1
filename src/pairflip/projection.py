r"""From a table and a target to what engines walk on: forced columns projected out, the rest scaled to unit norm.

Two things use it: the problem of all rows, and a fold whose held-out rows dwarf the others, so that the fold cannot be
computed from all rows by subtraction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats, orthonormal_basis
from pairflip.sparse import is_sparse

BYTES = 4 * 2**20
"""Of a block in float64: small enough for the caches, large enough that Python's share does not count."""
CONSTANT = 1e-12
"""A column whose norm after projection is below this fraction of its raw norm is rounding error."""
_SMALLEST, _LARGEST = 1e-300, 1e305
_SMALLEST_TARGET, _LARGEST_TARGET = 1e-140, 1e140


def column_blocks(n_rows: int, n_columns: int) -> list[slice]:
    """All columns, as parts of neighbours."""
    step = max(16, BYTES // (8 * max(n_rows, 1)))
    return [slice(first, min(first + step, n_columns)) for first in range(0, n_columns, step)]


def row_slices(X: NDArray[Any]) -> list[slice]:
    """All rows, as parts of neighbours."""
    step = max(64, BYTES // (8 * max(X.shape[1], 1)))
    return [slice(first, min(first + step, X.shape[0])) for first in range(0, X.shape[0], step)]


def largest_values(X: Any) -> Floats:
    """The largest absolute value (N,) of each column."""
    largest = np.zeros(X.shape[1])
    if is_sparse(X):
        np.maximum.at(largest, np.repeat(np.arange(largest.size), np.diff(X.indptr)), np.abs(X.data))
        return largest
    if X.flags.c_contiguous:
        for part in row_slices(X):
            np.maximum(largest, X[part].max(axis=0, initial=0.0), out=largest)
            np.maximum(largest, -X[part].min(axis=0, initial=0.0), out=largest)
        return largest
    for part in column_blocks(*X.shape):
        block = X[:, part]
        largest[part] = np.maximum(block.max(axis=0, initial=0.0), -block.min(axis=0, initial=0.0))
    return largest


@dataclass(frozen=True)
class Projected:
    """Columns and target after what is always in the model was projected out."""

    columns: Floats  # (n, M): candidate j as contiguous row j; with its ridge term it has norm 1
    targets: Floats  # (M, q): exactly zero where nothing of one is left
    candidates: NDArray[np.int64]  # (n,): columns of the table of which something remains
    scale: Floats  # (n,): what each was divided by, in the units of the table
    penalty: Floats  # (n,): ridge term of each scaled column
    forced: Floats  # (M, f): what was projected out, divided by powers of two, rows times the root of their weights
    means: Floats  # (N,): what was subtracted first
    target_means: Floats  # (q,)
    basis: Floats  # (M, rank): orthonormal basis of the forced columns
    powers: Floats  # (N,): powers of two that columns were divided by before anything was squared


def powers_of_two(X: NDArray[Any]) -> Floats:
    """For each column the power of two (N,) that brings its largest value near 1: dividing by it rounds nothing.

    Squares of what is left neither overflow nor vanish.
    """
    largest = largest_values(X)
    return np.where(largest > 0, np.ldexp(1.0, np.frexp(largest)[1] - 1), 1.0)


def check_range(X: NDArray[Any], y: Floats, names: Sequence[str]) -> None:
    """Refuse magnitudes of X, and of y (M,) or (M, q), that make coefficients or errors too large or too small."""
    largest = largest_values(X)
    odd = np.flatnonzero(((largest > 0) & (largest < _SMALLEST)) | (largest > _LARGEST))
    if odd.size:
        j = int(odd[0])
        raise ValueError(
            f"column {names[j]!r} has values of up to {largest[j]:.2g}, too {'small' if largest[j] < 1 else 'large'} "
            f"to compute with; expected magnitudes between {_SMALLEST:g} and {_LARGEST:g}: express it in another unit."
        )
    for target in np.atleast_2d(y.T):
        top, spread = float(np.max(np.abs(target))), float(np.max(target) / 2 - np.min(target) / 2)
        if top > _LARGEST_TARGET or 0 < spread < _SMALLEST_TARGET:
            size = top if top > _LARGEST_TARGET else spread
            raise ValueError(
                f"y has values of the order of {size:.1g}, and their squares are beyond what a computer can hold; "
                f"expected magnitudes between {_SMALLEST_TARGET:g} and {_LARGEST_TARGET:g}: express y in another unit."
            )


def centre(X: NDArray[Any], weight: Floats, means: Floats | None) -> tuple[Floats, Floats, Floats, Floats]:
    """The columns (n, M) of X, divided by powers of two (n,) and less their means (n,), times the root of the weights.

    Then these powers, the means of the divided columns, and weighted sums of squares (n,) before means were subtracted.
    """
    powers, root = powers_of_two(X), np.sqrt(weight)[:, None]
    columns = np.empty(X.shape[::-1])
    sums, raw = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for part in row_slices(X):  # a part of the rows stays in the cache, and is turned there
        values = np.divide(X[part], powers, order="C")  # the same bits whatever the order of X
        sums += weight[part] @ values
        raw += weight[part] @ (values * values)
        columns[:, part] = values.T
    small: Floats = sums / float(weight.sum()) if means is None else means / powers
    for part in row_slices(X):
        columns[:, part] -= small[:, None]
        columns[:, part] *= root[part].T
    return columns, powers, small, raw


def take_out(columns: Floats, basis: Floats) -> None:
    """Project the orthonormal `basis` (M, f) out of `columns` (n, M), in place and in blocks."""
    for _ in range(2 if basis.shape[1] else 0):  # a second projection removes what rounding left of the first
        shares = columns @ basis
        if columns.shape[0] > columns.shape[1]:
            for part in column_blocks(*columns.shape[::-1]):
                columns[part] -= shares[part] @ basis.T
        else:
            for part in row_slices(columns.T):
                columns[:, part] -= shares @ basis[part].T


def penalties(ridge: float, powers: Floats, norm2: Floats) -> Floats:
    """The ridge in units of columns that were divided by `powers` (n,) and have squared norms `norm2` (n,).

    So that neither overflows; beyond 1e200 times the column all penalties are alike.
    """
    return np.minimum(ridge / powers / powers, 1e200 * norm2) if ridge else 0.0 * norm2


def project(
    X: NDArray[Any],
    y: Floats,
    weight: Floats,
    *,
    always: NDArray[np.int64],
    ridge: float,
    intercept: bool,
    means: tuple[Floats, Floats] | None,
    shrinkage: float = 0.0,
) -> Projected:
    """Take the forced columns out of X (M, N) and the targets y (M, q), and scale the columns that remain."""
    root = np.sqrt(weight)
    columns, powers, small, raw = centre(X, weight, None if means is None else means[0])
    target_means: Floats = weight @ y / float(weight.sum()) if means is None else means[1]
    forced = X[:, always] / powers[always] - small[always]
    if intercept:
        forced = np.hstack([np.ones((X.shape[0], 1)), forced])
    forced = root[:, None] * forced
    basis = orthonormal_basis(forced)
    take_out(columns, basis)
    targets = np.ascontiguousarray(((y - target_means) * root[:, None]).T)
    take_out(targets, basis)
    targets[np.einsum("qm,qm->q", targets, targets) <= CONSTANT**2 * (weight @ y**2)] = 0.0
    norm2 = np.einsum("jm,jm->j", columns, columns)
    keep = norm2 > CONSTANT**2 * raw
    keep[always] = False
    candidates = np.flatnonzero(keep)
    if not keep.all():
        for place, j in enumerate(candidates.tolist()):  # in place: a second copy of the table might not fit
            if place < j:
                columns[place] = columns[j]
        columns, norm2 = columns[: candidates.size], norm2[candidates]
    penalty = penalties(ridge, powers[candidates], norm2) + shrinkage * norm2
    norm = np.sqrt(norm2 + penalty)
    columns /= norm[:, None]
    return Projected(
        columns=columns,
        targets=np.ascontiguousarray(targets.T),
        candidates=candidates,
        scale=norm * powers[candidates],
        penalty=penalty / norm**2,
        forced=forced,
        means=small * powers if means is None else means[0],
        target_means=target_means,
        basis=basis,
        powers=powers,
    )
