r"""Sparse tables (SciPy), used as they are: columns are centred and projected by low-rank terms (`pairflip.sparse`).

Columns of which centring or projecting leaves little are computed first, since differences of large numbers would not
have the digits. Those that centring leaves little of have hardly any zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats
from pairflip.losses.wide import LOST, WideForm
from pairflip.projection import CONSTANT, centre, column_blocks, penalties, powers_of_two, take_out
from pairflip.sparse import DenseRows, SparseRows, dense

Ints = NDArray[np.int64]


class Centred(NamedTuple):
    """The columns of a sparse table, as they are and less their means and what is always in the model."""

    table: Any  # (M, N): columns divided by powers of two; those that centring changes most are centred
    powers: Floats  # (N,)
    means: Floats  # (N,): of the divided columns
    rest: Floats  # (N,): what is still to be subtracted from each column of `table`, 0 or its mean
    raw: Floats  # (N,): weighted sums of squares of the divided columns
    spread: Floats  # (N,): the same less the means
    norm2: Floats  # (N,): the same without what `basis` explains
    projected: NDArray[np.bool_]  # (N,): of which `basis` explains nearly all


def centred(X: Any, weight: Floats, means: Floats | None, basis: Floats) -> Centred:
    """Centre the columns of X (M, N) on their weighted means (None) or on others, beside an orthonormal `basis`."""
    from scipy.sparse import csc_array

    powers, lengths = powers_of_two(X), np.diff(X.indptr)
    table = csc_array((X.data / np.repeat(powers, lengths), X.indices, X.indptr), shape=X.shape)
    sums, raw = weight @ table, weight @ table.power(2)
    small: Floats = sums / float(weight.sum()) if means is None else means / powers
    spread = raw - 2.0 * small * sums + float(weight.sum()) * small**2
    norm2 = spread - np.einsum("fj,fj->j", *2 * (_shares(table, weight, small, basis),))
    shifted, projected = (raw > 0) & ~(spread * LOST > raw), (raw > 0) & ~(norm2 * LOST > raw)
    odd, filled = np.flatnonzero(shifted | projected), []
    for part in column_blocks(X.shape[0], odd.size):
        at = odd[part]
        columns, _, small[at], _ = centre(X[:, at].toarray(), weight, None if means is None else means[at])
        spread[at] = np.einsum("jm,jm->j", columns, columns)
        varies = shifted[at] & (spread[at] > CONSTANT**2 * raw[at])
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.where(weight > 0, columns[varies] / np.sqrt(weight), 0.0)
        filled.append(csc_array(values.T))
        shifted[at] = varies
        take_out(columns, basis)
        norm2[at] = np.einsum("jm,jm->j", columns, columns)
    if shifted.any():
        table = _replaced(table, np.flatnonzero(shifted), filled)
    return Centred(table, powers, small, np.where(shifted, 0.0, small), raw, spread, norm2, projected)


def _shares(table: Any, weight: Floats, rest: Floats, basis: Floats) -> Floats:
    """Inner products (f, N) of `basis` with the centred columns, rows times the root of their weights."""
    weighted = (basis * np.sqrt(weight)[:, None]).T
    return np.asarray(weighted @ table - np.multiply.outer(weighted.sum(axis=1), rest))


def _replaced(table: Any, at: Ints, columns: list[Any]) -> Any:
    """A sparse table with other columns in the places `at`."""
    from scipy.sparse import hstack

    others = np.setdiff1d(np.arange(table.shape[1]), at)
    order = np.argsort(np.concatenate([others, at]), kind="stable")
    return hstack([table[:, others], *columns], format="csc")[:, order]


class SparseForm(WideForm):
    """A `Form` of a sparse table: its matrix is formed from sparse products where it fits the memory budget."""

    table: SparseRows  # the projected, scaled columns

    def _prepare(self, always: Ints, ridge: float, means: Floats | None) -> None:
        """Means, norms, and the low-rank term; `table` has what columns are."""
        X = self._X if self._rows is None else self._X[self._rows]
        given = centred(X, self._weight, means, self.basis)
        self.means = given.means * given.powers if means is None else means
        keep = given.norm2 > CONSTANT**2 * given.raw
        keep[always] = False
        self.candidates = at = np.flatnonzero(keep)
        root, norm2, powers = np.sqrt(self._weight), given.norm2[at], given.powers[at]
        added = penalties(ridge, powers, norm2)
        norm = np.sqrt(norm2 + added)
        self.penalty, self.scale = added / norm**2, norm * powers
        table, rest = given.table[:, at], given.rest[at]
        projected = np.flatnonzero(given.projected[at])
        shares = _shares(table, self._weight, rest, self.basis)
        table.data *= root[table.indices]
        if projected.size:
            table = _replaced(table, projected, self._projected(at[projected]))
            shares[:, projected], rest[projected] = 0.0, 0.0
        table.data /= np.repeat(norm, np.diff(table.indptr))
        self.table = SparseRows(table, np.column_stack([root, self.basis]), np.vstack([rest, shares]) / norm)
        self.B = self.table.products(np.ascontiguousarray(self.targets.T))

    def _projected(self, which: Ints) -> list[Any]:
        """Columns of the table (divided by powers of two), centred and without what is always in the model."""
        from scipy.sparse import csc_array

        blocks = []
        for part in column_blocks(self.n_rows, which.size):
            columns, _, _, _ = centre(dense(self._values(which[part])), self._weight, self.means[which[part]])
            take_out(columns, self.basis)
            blocks.append(csc_array(columns.T))
        return blocks

    def on_columns(self, columns: Ints) -> SparseForm:
        """Make these columns of the table the candidates; those of which nothing is left are columns of zeros."""
        from scipy.sparse import csc_array

        at = np.minimum(np.searchsorted(self.candidates, columns), self.candidates.size - 1)
        known = self.candidates[at] == columns
        if not known.all():
            at = np.where(known, at, self.n_columns)  # a column of zeros after the others
            A, (rank, n) = self.table.by_column, self.table.right.shape
            A = csc_array((A.data, A.indices, np.append(A.indptr, A.nnz)), shape=(self.n_rows, n + 1))
            self.table = SparseRows(A, self.table.left, np.hstack([self.table.right, np.zeros((rank, 1))]))
            self.B = np.hstack([self.B, np.zeros((len(self.B), 1))])
        self.table, self.B = self.table.with_columns(at), self.B[:, at]
        self.penalty, self.scale = np.zeros(columns.size), np.ones(columns.size)
        self.candidates, self.n_columns, self.diagonal = columns, columns.size, np.ones(columns.size)
        return self

    @cached_property
    def columns(self) -> Floats:  # type: ignore[override]
        """All columns (n, M) as an array, where that is no larger than the memory that the matrix may take."""
        needed = 8 * self.n_columns * self.n_rows
        if needed > 2 * self.budget:
            raise ValueError(
                f"all {self.n_columns:,} columns of the sparse table are needed as ordinary numbers here (by annealing "
                f"without the matrix, or by whole groups of columns), which take {needed:,} bytes; expected fewer "
                f"columns, another method, or memory_budget={needed}."
            )
        return self.columns_of(np.arange(self.n_columns))

    @cached_property
    def matrix(self) -> Floats:
        """G (n, n) from sparse products."""
        G = self.table.gram()
        np.fill_diagonal(G, self.diagonal)
        return G

    def columns_of(self, which: Ints) -> Floats:
        """Projected, scaled columns (n, M)."""
        return self.table.columns(which)

    def on_rows(self, rows: Ints) -> Floats:
        """All columns on some rows (h, n)."""
        return self.table.on_rows(rows)

    def rows_of(self, rows: Ints) -> DenseRows | SparseRows:
        """The same, for products with these rows alone."""
        return self.table.some(rows)

    def products(self, vectors: Floats) -> Floats:
        """Inner products (p, n) of all columns with `vectors` (p, M)."""
        return self.table.products(vectors)

    def write_rows(self, which: Sequence[int], out: Sequence[Floats]) -> None:
        """Rows of G into as many arrays (N,)."""
        formed = "matrix" in self.__dict__
        rows = self.matrix[np.array(which)] if formed else self.products(self.columns_of(np.array(which)))
        for j, row, values in zip(which, out, rows, strict=True):
            row[:] = values
            row[j] = self.diagonal[j]

    def rank(self) -> int:
        """How many columns are linearly independent, to working precision."""
        if not self.dense:
            return super().rank()
        return int(np.linalg.matrix_rank(self.matrix - np.diag(self.penalty), hermitian=True))
