r"""What an engine needs to know about a problem: inner products of its columns with each other and with y.

With columns scaled to unit norm, :math:`G = X^T X`, :math:`b = X^T y`, the energy of a support S is

.. math:: E(S) = \tfrac12 \left(y^T y - b_S^T G_{SS}^{-1} b_S\right).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats, orthonormal_basis, qr_energy

_BLOCK_BYTES = 2**18  # of a matrix that is changed part by part, each of which stays in the cache


class Gram:
    r"""Unit-norm columns, target, and their inner products.

    Attributes
    ----------
    columns : (N, M)
        Column j of the projected, scaled table, as contiguous row j.
    target : (M,)
        The projected target.
    penalty : (N,)
        Ridge term of each scaled column, part of the diagonal of G.
    b, yy : (N,), float
        :math:`X^T y` and :math:`y^T y`.
    diagonal : (N,)
        Diagonal of G: columns have unit norm, so it is 1.
    dense : bool
        Whether the N x N matrix may be formed (it fits the memory budget).
    candidates : (N,)
        Which columns of the user's table these are.
    objective : {"energy", "deviance", "several", "grouped", "signed"}
        What `energy` is, and so what an engine walks on.
    working : Gram
        The quadratic form itself; another one where `energy` is not quadratic.
    """

    objective = "energy"

    def __init__(
        self, columns: Floats, target: Floats, penalty: Floats, candidates: NDArray[np.int64], *, dense: bool
    ) -> None:
        self.candidates = candidates
        self.columns = columns
        self.target = target
        self.penalty = penalty
        self.b: Floats = columns @ target
        self.yy = float(target @ target)
        self.diagonal: Floats = np.ones(columns.shape[0])
        self.dense = dense

    @property
    def working(self) -> Gram:
        """The quadratic form: this one."""
        return self

    @property
    def n_columns(self) -> int:
        """N, the number of candidate columns."""
        return int(self.b.size)

    @property
    def n_rows(self) -> int:
        """M, the number of rows."""
        return int(self.target.size)

    @property
    def nbytes(self) -> int:
        """Bytes held beside the user's table, without the matrix."""
        return int(self.columns.nbytes)

    def columns_of(self, which: NDArray[np.int64]) -> Floats:
        """Rows `which` of `columns` (n, M), without forming the others where they are not there yet."""
        return np.asarray(self.columns[which])

    def on_rows(self, rows: NDArray[np.int64]) -> Floats:
        """All columns on some rows (h, N)."""
        return np.asarray(self.columns[:, rows].T)

    def products(self, vectors: Floats) -> Floats:
        """Inner products (p, N) of all columns with `vectors` (p, M)."""
        return np.asarray(vectors @ self.columns.T)

    def rank(self) -> int:
        """How many columns are linearly independent, to working precision."""
        return int(np.linalg.matrix_rank(self.columns))

    @cached_property
    def matrix(self) -> Floats:
        """G (N, N), formed at first use."""
        gram: Floats = self.columns @ self.columns.T
        np.fill_diagonal(gram, self.diagonal)
        return gram

    def row(self, j: int) -> Floats:
        """Row j of G (N,), without forming the matrix where that was not done yet."""
        if "matrix" in self.__dict__:
            return np.asarray(self.matrix[j])
        row: Floats = self.columns @ self.columns[j]
        row[j] = self.diagonal[j]
        return row

    def write_rows(self, which: Sequence[int], out: Sequence[Floats]) -> None:
        """Rows of G into as many arrays (N,)."""
        for j, row in zip(which, out, strict=True):
            row[:] = self.row(j)

    def positions(self, support: NDArray[np.int64]) -> NDArray[np.int64]:
        """Positions among the candidates of columns of the table, all of which are candidates."""
        return np.searchsorted(self.candidates, support)

    def energy(self, support: NDArray[np.int64]) -> float:
        """E(S) by QR on the columns, infinite when S is singular."""
        return qr_energy(self.columns_of(support).T, self.target, self.penalty[support])


class HeldOutGram(Gram):
    r"""The same problem without some rows, by subtraction: with D the diagonal of :math:`G - B^T B`,

    .. math:: D^{-1/2} (G - B^T B) D^{-1/2}, \quad D^{-1/2} (b - B^T c), \quad y^T y - c^T c .

    With Q an orthonormal basis of the forced columns (the intercept among them) and H the rows left out, refitting the
    forced columns inside the fold takes :math:`B^T B = X_H^T (I - Q_H Q_H^T)^{-1} X_H`. By Woodbury's identity B is
    :math:`X_H` above :math:`(I - Q_H^T Q_H)^{-1/2} Q_H^T X_H`, and c likewise of y: nothing has the size of the rows
    squared. Columns have unit norm on the remaining rows, so that nothing here depends on the rows left out, not even
    what counts as singular, except by rounding.

    Attributes
    ----------
    left_out : (1, N), or (h + f, N) for h > 1 rows and f forced columns
        :math:`B D^{-1/2}`, so that the matrix is :math:`G_{ij} d_i d_j - \sum_h B'_{hi} B'_{hj}`.
    unit : (N,)
        :math:`d = D^{-1/2}`.
    trust : float
        The smallest fraction of a column's or of y's sum of squares that is left after subtraction: rounding errors
        are larger by its inverse.
    """

    def __init__(self, base: Gram, forced: Floats, forced_basis: Floats, rows: NDArray[np.int64]) -> None:
        self.base = base
        self.rows = rows
        self.candidates = base.candidates
        self._forced = forced
        basis, B, c = forced_basis[rows], base.on_rows(rows), base.target[rows]
        single = rows.size == 1
        shrink, vectors = np.linalg.eigh(1.0 - basis @ basis.T if single else np.eye(basis.shape[1]) - basis.T @ basis)
        fitted = shrink <= 1e-12  # a direction of the forced columns that only the held-out rows see
        root = vectors * np.where(fitted, 0.0, 1.0 / np.sqrt(np.where(fitted, 1.0, shrink)))
        if single:  # one row stays one row, which engines know
            B, c = root.T @ B, root.T @ c
        else:
            inside = root.T @ basis.T
            B, c = np.vstack([B, inside @ B]), np.concatenate([c, inside @ c])
        left = base.diagonal - np.einsum("hj,hj->j", B, B)
        self.yy = max(base.yy - float(c @ c), 0.0)
        of_target = self.yy / base.yy if base.yy > 0 else 1.0
        self.trust = float(min(left.min(initial=1.0), shrink.min(initial=1.0), of_target))
        self.unit: Floats = 1.0 / np.sqrt(np.maximum(left, 1e-300))
        self.left_out: Floats = B * self.unit
        self.penalty = base.penalty * self.unit**2
        self.b = (base.b - B.T @ c) * self.unit
        self.diagonal = np.ones(left.size)
        self.dense = base.dense

    @cached_property
    def matrix(self) -> Floats:
        """G (N, N) as a low-rank change of the matrix of all rows."""
        n, left, single = self.n_columns, self.left_out, self.left_out.shape[0] == 1
        gram: Floats = np.empty((n, n)) if single else left.T @ left
        step = max(1, _BLOCK_BYTES // (8 * n))
        scaled, dropped = np.empty((step, n)), np.empty((step, n))
        for first in range(0, n, step):  # in blocks, so that no second matrix is needed
            part = slice(first, min(first + step, n))
            there, here = gram[part], scaled[: part.stop - first]
            # d_i d_j first: then the matrix is symmetric to the last bit
            np.multiply(self.unit[part, None], self.unit, out=here)
            here *= self.base.matrix[part]
            without = np.multiply(left[0, part, None], left[0], out=dropped[: len(here)]) if single else there
            np.subtract(here, without, out=there)
        np.fill_diagonal(gram, self.diagonal)
        return gram

    def row(self, j: int) -> Floats:
        """Row j of G (N,), without forming the matrix."""
        row: Floats = self.base.row(j) * (self.unit[j] * self.unit) - self.left_out[:, j] @ self.left_out
        row[j] = self.diagonal[j]
        return row

    def write_rows(self, which: Sequence[int], out: Sequence[Floats]) -> None:
        """Rows of G into as many arrays (N,)."""
        self.base.write_rows(which, out)
        for j, row in zip(which, out, strict=True):
            row *= self.unit
            row *= self.unit[j]
            row -= self.left_out[:, j] @ self.left_out
            row[j] = self.diagonal[j]

    @cached_property
    def _inside(self) -> Floats:
        return orthonormal_basis(np.delete(self._forced, self.rows, axis=0))

    def _on_the_rest(self, columns: Floats, unit: Floats) -> Floats:
        columns = np.delete(columns, self.rows, axis=1)
        columns -= (columns @ self._inside) @ self._inside.T
        columns *= unit[:, None]
        return np.ascontiguousarray(columns)

    @cached_property
    def columns(self) -> Floats:  # type: ignore[override]
        """The columns on the remaining rows, forced columns projected out there."""
        return self._on_the_rest(self.base.columns, self.unit)

    @property
    def nbytes(self) -> int:
        """Bytes held beside the problem of all rows, without the matrix."""
        return int(self.left_out.nbytes + (self.columns.nbytes if "columns" in self.__dict__ else 0))

    def columns_of(self, which: NDArray[np.int64]) -> Floats:
        """Rows `which` of `columns`, without forming the others."""
        return self._on_the_rest(self.base.columns_of(which), self.unit[which])

    @cached_property
    def target(self) -> Floats:  # type: ignore[override]
        """The target on the remaining rows, forced columns projected out there."""
        target = np.delete(self.base.target, self.rows)
        return np.asarray(target - self._inside @ (self._inside.T @ target))

    def energy(self, support: NDArray[np.int64]) -> float:
        """E(S) by QR on the columns of S alone, on the remaining rows; infinite when S is singular."""
        return qr_energy(self.columns_of(support).T, self.target, self.penalty[support])


class OverForm(Gram):
    """Another objective over the columns of a form, whose matrix and rows these are.

    Attributes
    ----------
    form : Gram
        Has the columns.
    """

    form: Gram

    def _share(self, form: Gram) -> None:
        """Take over what is the same."""
        self.form = form
        self.candidates, self.penalty, self.diagonal, self.dense = (
            form.candidates, form.penalty, form.diagonal, form.dense,
        )  # fmt: skip

    @property
    def columns(self) -> Floats:  # type: ignore[override]
        """Columns (N, M)."""
        return self.form.columns

    @property
    def nbytes(self) -> int:
        """Bytes held beside the user's table, without the matrix."""
        return self.form.nbytes

    @property
    def matrix(self) -> Floats:
        """G (N, N)."""
        return self.form.matrix

    def columns_of(self, which: NDArray[np.int64]) -> Floats:
        """Some columns (n, M)."""
        return self.form.columns_of(which)

    def row(self, j: int) -> Floats:
        """Row j of G (N,)."""
        return self.form.row(j)

    def write_rows(self, which: Sequence[int], out: Sequence[Floats]) -> None:
        """Rows of G into as many arrays (N,)."""
        self.form.write_rows(which, out)
