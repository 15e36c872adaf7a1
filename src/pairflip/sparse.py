r"""Sparse tables (SciPy): how they are kept, and products of their centred columns without an array of all values.

A table A less a low-rank term, :math:`Z = A - L R` with L (M, r) and R (r, N), is never formed: centring and projecting
forced columns out are such terms, and

.. math:: V Z = V A - (V L) R, \qquad Z^T Z = A^T A - P^T R - R^T P, \quad P = L^T A - \tfrac12 L^T L R .
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_BLOCK = 2**21  # numbers of a block, dense, or of products that may be stored
_FEW = 0.1  # of the values that are not zero: of more, products of dense blocks take less time than sparse ones


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix or array of SciPy."""
    return hasattr(X, "tocsc")


def dense(values: Any) -> NDArray[Any]:
    """Some part of a table as an ordinary array."""
    return np.asarray(values.toarray() if is_sparse(values) else values)


def table_bytes(X: Any) -> int:
    """Bytes of a table."""
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) if is_sparse(X) else int(X.nbytes)


def by_columns(X: Any) -> Any:
    """A sparse table as `csc_array` of the same numbers: sorted, each value once, and no stored zeros."""
    from scipy.sparse import csc_array

    table = csc_array(X)
    if not table.has_canonical_format:
        table = table.copy()  # the buffers may be those of the user
        table.sum_duplicates()
    if table.nnz and not table.data.all():
        table = table.copy()
        table.eliminate_zeros()
    return table


class DenseRows:
    """Some rows (h, N) of scaled columns."""

    sparse = False

    def __init__(self, values: Floats) -> None:
        self.values = values

    def products(self, vectors: Floats) -> Floats:
        """Products (p, N) of `vectors` (p, h) with the columns."""
        return np.asarray(vectors @ self.values)

    def gram(self, more: Floats) -> Floats:
        """Inner products (N, N) of the columns, with those of further rows `more` (u, N)."""
        return np.asarray(self.values.T @ self.values + more.T @ more)

    def squares(self) -> Floats:
        """Sums of squares (N,) of the columns."""
        return np.asarray(np.einsum("hj,hj->j", self.values, self.values))

    def weighted_squares(self, weight: Floats) -> Floats:
        """The same with a weight (h,) for each row."""
        return np.asarray(self._squared @ weight)

    @cached_property
    def _squared(self) -> Floats:
        return np.ascontiguousarray(self.values.T**2)

    def columns(self, which: Any) -> Floats:
        """Some columns (..., h), as rows."""
        return np.asarray(self.values.T[which])

    def with_columns(self, which: Ints) -> DenseRows:
        """The same with some of the columns."""
        return DenseRows(self.values.T[which].T)


class SparseRows:
    """The rows A - L R of a sparse table `A` (h, N), with `left` (h, r) and `right` (r, N)."""

    sparse = True

    def __init__(self, A: Any, left: Floats, right: Floats) -> None:
        self._table, self.left, self.right = A, left, right

    @cached_property
    def by_row(self) -> Any:
        """A, quick to take rows from."""
        return self._table.tocsr()

    @cached_property
    def by_column(self) -> Any:
        """A, quick to take columns from."""
        return self._table.tocsc()

    def with_columns(self, which: Ints) -> SparseRows:
        """The same with some of the columns."""
        return SparseRows(self.by_column[:, which], self.left, self.right[:, which])

    def some(self, rows: Ints) -> SparseRows:
        """Some of the rows."""
        return SparseRows(self.by_row[rows], self.left[rows], self.right)

    def on_rows(self, rows: Ints) -> Floats:
        """Some of the rows as an array (h, N)."""
        return np.asarray(self.by_row[rows].toarray() - self.left[rows] @ self.right)

    def columns(self, which: Any) -> Floats:
        """Some columns (..., h), as rows."""
        which = np.asarray(which)
        flat, h = which.ravel(), len(self.left)
        result, step = np.empty((flat.size, h)), max(1, _BLOCK // max(h, 1))
        for part in (slice(at, at + step) for at in range(0, flat.size, step)):
            result[part] = self.by_column[:, flat[part]].T.toarray()
            result[part] -= self.right[:, flat[part]].T @ self.left.T
        return result.reshape(*which.shape, h)

    def products(self, vectors: Floats) -> Floats:
        """Products (p, N) of `vectors` (p, h) with the columns."""
        result: Floats = np.ascontiguousarray(vectors @ self.by_column)
        result -= (vectors @ self.left) @ self.right
        return result

    def squares(self) -> Floats:
        """Sums of squares (N,) of the columns."""
        return self.weighted_squares(np.ones(len(self.left)))

    def weighted_squares(self, weight: Floats) -> Floats:
        """The same with a weight (h,) for each row."""
        A, weighted = self.by_column, self.left * weight[:, None]
        shared = weighted.T @ A - 0.5 * (weighted.T @ self.left) @ self.right
        return np.asarray(weight @ A.power(2) - 2.0 * np.einsum("rj,rj->j", shared, self.right))

    def gram(self, more: Floats | None = None) -> Floats:
        """Inner products (N, N) of the columns, with those of further rows `more` (u, N); symmetric to the last bit."""
        rows, columns, R = self.by_row, self.by_column, self.right
        h, n = rows.shape
        shared = self.left.T @ columns - 0.5 * (self.left.T @ self.left) @ R
        left, right = np.vstack([shared, R]), np.vstack([R, shared])
        filled = columns.nnz > _FEW * h * n
        G = np.zeros((n, n))
        for first in range(0, h if filled else 0, step := max(64, _BLOCK // n)):
            block = rows[first : first + step].toarray()
            G += block.T @ block
        for first in range(0, n, step := max(16, _BLOCK // (8 * n))):
            part = slice(first, min(first + step, n))
            stripe = G[part, first:]
            if not filled:
                stripe[:] = (columns[:, part].T @ rows)[:, first:].toarray()
            stripe -= left[:, part].T @ right[:, first:]
            if more is not None and len(more):
                stripe += more[:, part].T @ more[:, first:]
            corner = stripe[:, : len(stripe)]
            corner[:] = 0.5 * (corner + corner.T)
            G[first:, part] = stripe.T
        return G
