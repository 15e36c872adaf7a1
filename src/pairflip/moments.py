r"""The quadratic form of a squared-error problem, and the forms of its training sets by subtraction.

With columns Z scaled to unit norm and targets Y, forced columns (the intercept is one) swept out of both,
:math:`G = Z^T Z`, :math:`B = Y^T Z`, the energy of a support S is

.. math:: E(S) = \tfrac12 \operatorname{tr}\left(Y^T Y - B_S G_{SS}^{-1} B_S^T\right) .

Inner products of rows add up: those of a training set are the total minus those of the rows left out. With F an
orthonormal basis of the forced columns on all rows, these rows H take away :math:`A_H^T A_H` of A = [F, Z, Y]; sweeping
the forced columns out of what remains (a Schur complement on their block :math:`K = I - F_H^T F_H`) takes away more:

.. math:: Z_T^T Z_T = G - Z_H^T Z_H - U^T U, \quad U = K^{-1/2} F_H^T Z_H ,

and likewise for B and :math:`Y^T Y`. Nothing has the size of the rows squared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import SINGULAR, Floats, orthonormal_basis, qr_energy, qr_several
from pairflip.rules import Rules, no_rules
from pairflip.sparse import DenseRows, SparseRows

Ints = NDArray[np.int64]
TRUSTED = 0.05
"""A training set is computed by subtraction if at least this fraction of every column and target remains.

Then at most one digit or so is lost.
"""
_CALM = 1e-3  # of G's eigenvalues (at least), and of what is left of targets: no more than three digits are lost
_TALL = 10  # times as many rows as columns: energies are compared on few rows that carry all inner products
_BLOCK_BYTES = 2**18  # of a matrix that is changed part by part, each of which stays in the cache


class Form:
    """Unit-norm columns, targets, and their inner products: what engines search."""

    columns: Floats  # (N, M): column j of the projected, scaled table, as contiguous row j
    targets: Floats  # (M, q): the projected targets, each divided by its `target_scale` (q,)
    penalty: Floats  # (N,): ridge term of each scaled column, part of the diagonal of G
    B: Floats  # (q, N): Y'X
    yy: float  # the trace of Y'Y
    diagonal: Floats  # (N,) of G: columns have unit norm, so it is 1
    dense: bool  # whether the N x N matrix may be formed (it fits the memory budget)
    candidates: Ints  # (N,): columns of the user's table; of units of several columns, the first one of each
    n_columns: int  # N, of candidates
    n_rows: int  # M
    rules: Rules  # which columns may be chosen together
    signs: NDArray[np.int8] | None = None  # (N,): 1, -1 or 0 where coefficients have given signs
    quadratic = True  # whether inner products are the whole truth; otherwise moves are ranked by a form at a fit
    grouped = False  # whether units of several columns enter and leave as a whole
    what = "columns"  # what a support has: columns, or groups
    trust = 1.0  # the smallest fraction of a column or target that is left: rounding is larger by its inverse

    def __init__(
        self,
        columns: Floats,
        targets: Floats,
        penalty: Floats,
        candidates: Ints,
        *,
        dense: bool,
        target_scale: Floats | None = None,
        rules: Rules | None = None,
    ) -> None:
        self.candidates, self.columns = candidates, columns
        targets = targets if targets.ndim == 2 else targets[:, None]
        self.n_columns, self.n_rows = int(candidates.size), len(targets)
        self.target_scale: Floats = np.ones(targets.shape[1]) if target_scale is None else target_scale
        self.targets = targets if target_scale is None else targets / target_scale
        self.penalty = penalty
        self.B = np.ascontiguousarray(self.targets.T) @ columns.T
        self.yy = float(np.vdot(self.targets, self.targets))
        self.diagonal = np.ones(columns.shape[0])
        self.dense = dense
        self.rules = no_rules(candidates.size) if rules is None else rules

    @cached_property
    def target(self) -> Floats:
        """The first target (M,): the only one of most problems."""
        return np.ascontiguousarray(self.targets[:, 0])

    @cached_property
    def b(self) -> Floats:
        """Products (N,) of the columns with the first target."""
        return np.asarray(self.B[0])

    @cached_property
    def squares(self) -> Floats:
        """Sums of squares (q,) of the targets."""
        return np.asarray(np.einsum("mq,mq->q", self.targets, self.targets))

    @property
    def plain(self) -> bool:
        """Whether there is one target, units are columns, and every support is allowed."""
        return self.quadratic and len(self.B) == 1 and not self.grouped and not self.rules.any

    @property
    def working(self) -> Form:
        """The quadratic form: this one."""
        return self

    @property
    def root(self) -> Form:
        """Whose matrix may be searched: folds that leave out one row share that of all rows, others have their own."""
        return self

    @cached_property
    def start(self) -> Ints:
        """Where the columns of each unit begin (U + 1,): every column is a unit."""
        return np.arange(self.n_columns + 1)

    @property
    def widths(self) -> Ints:
        """How many independent columns each unit has (U,)."""
        return np.diff(self.start)

    def places(self, support: Ints) -> Ints:
        """Where the columns of some units are among all columns, one unit after the other."""
        if not self.grouped:
            return support
        return np.concatenate([np.arange(self.start[u], self.start[u + 1]) for u in support] or [np.zeros(0, np.int64)])

    def narrow(self, k: int) -> Ints | None:
        """Some k units that can be chosen together although wide ones leave no room; None where none does so."""
        return None

    def coefficients(self, support: Ints, x: Floats, scale: Floats) -> tuple[Ints, Floats]:
        """Positions (n,) of a support's columns in the table's order, and their coefficients (n, q) in its units.

        `x` are the coefficients of the columns of this form, `scale` is what each of the candidates was divided by.
        """
        return support, x / scale[support][:, None]

    def columns_of(self, which: Ints) -> Floats:
        """Rows `which` of `columns` (n, M), without forming the others where they are not there yet."""
        return np.asarray(self.columns[which])

    def on_rows(self, rows: Ints) -> Floats:
        """All columns on some rows (h, N)."""
        return np.asarray(np.take(self.columns, rows, axis=1).T)

    def rows_of(self, rows: Ints) -> DenseRows | SparseRows:
        """The same, for products with these rows alone."""
        return DenseRows(self.on_rows(rows))

    def products(self, vectors: Floats) -> Floats:
        """Inner products (p, N) of all columns with `vectors` (p, M)."""
        return np.asarray(vectors @ self.columns.T)

    def rank(self) -> int:
        """How many columns are linearly independent, to working precision; all of them with a ridge term each."""
        return self.n_columns if np.all(self.penalty > SINGULAR) else int(np.linalg.matrix_rank(self.columns))

    @cached_property
    def matrix(self) -> Floats:
        """G (N, N), formed at first use."""
        G: Floats = self.columns @ self.columns.T
        np.fill_diagonal(G, self.diagonal)
        return G

    @cached_property
    def few_rows(self) -> tuple[Floats, Floats]:
        """Columns (N, r) and targets (r, q) with the same inner products as these, on few rows where there are many.

        From the Cholesky factor of G where columns are far from dependent and enough of the targets is left; otherwise
        by QR, some rows at a time.
        """
        from scipy.linalg import solve_triangular
        from scipy.linalg.lapack import dpocon, dpotrf

        q, n = self.B.shape
        if self.n_rows <= 1.2 * (n + q):
            return np.ascontiguousarray(self.columns), np.ascontiguousarray(self.targets)
        if self.dense:
            G = self.matrix.copy()
            G.flat[:: n + 1] -= self.penalty
            size = float(np.max(np.sum(np.abs(G), axis=0), initial=0.0))
            root, failed = dpotrf(G.T, lower=1, overwrite_a=1)
            if not failed and dpocon(root, size, uplo="L")[0] * size > _CALM:
                explained = solve_triangular(root, self.B.T, lower=True)
                rest = self.squares - np.einsum("nq,nq->q", explained, explained)
                if np.all(rest > _CALM * self.squares):
                    return np.hstack([root, np.zeros((n, q))]), np.vstack([explained, np.diag(np.sqrt(rest))])
        triangle = np.zeros((0, n + q))
        for first in range(0, self.n_rows, 4 * (n + q)):
            rows = slice(first, first + 4 * (n + q))
            more = np.hstack([self.on_rows(np.arange(self.n_rows)[rows]), self.targets[rows]])
            triangle = np.asarray(np.linalg.qr(np.vstack([triangle, more]), mode="r"))
        return np.ascontiguousarray(triangle[:, :n].T), np.ascontiguousarray(triangle[:, n:])

    def row(self, j: int) -> Floats:
        """Row j of G (N,)."""
        row = np.empty(self.n_columns)
        self.write_rows([j], [row])
        return row

    def write_rows(self, which: Sequence[int], out: Sequence[Floats]) -> None:
        """Rows of G into as many arrays (N,), without forming the matrix."""
        formed = "matrix" in self.__dict__
        for j, row in zip(which, out, strict=True):
            row[:] = self.matrix[j] if formed else self.columns @ self.columns[j]
            row[j] = self.diagonal[j]

    def positions(self, support: Ints) -> Ints:
        """Positions among the candidates of columns of the table, all of which are candidates."""
        return np.searchsorted(self.candidates, support)

    def energy(self, support: Ints) -> float:
        """E(S) by QR on the columns, infinite when S is singular or against the rules."""
        if self.rules.any and not self.rules.allow(support):
            return np.inf
        support = self.places(support)
        if self.dense and self.n_rows > _TALL * (self.n_columns + len(self.B)):
            columns, targets = self.few_rows
            return qr_energy(columns[support].T, targets, self.penalty[support])
        return qr_energy(self.columns_of(support).T, self.targets, self.penalty[support])

    def explained(self, support: Ints) -> Floats:
        """The fraction (q,) of each target, beside what is always in the model, that a support explains."""
        support = self.places(support)
        fit = qr_several(self.columns_of(support).T, self.targets, self.penalty[support])
        rest = np.full(self.squares.size, np.inf) if fit is None else 2.0 * fit[1]
        return 1.0 - rest / np.where(self.squares > 0, self.squares, 1.0)


class TrainingForm(Form):
    r"""The form `base` of all rows without some of them, with a relative ridge :math:`\lambda`, by subtraction:

    .. math:: d_i G_{ij} d_j - \sum_h L_{hi} L_{hj} \quad (i \ne j), \qquad
              d_j^{-2} = (1 + \lambda) (G_{jj} - |Z_{Hj}|^2 - |U_j|^2), \quad L = [Z_H, U] \, d .

    Columns have unit norm on the remaining rows, ridge terms included, so that nothing here depends on the rows left
    out, not even what counts as singular, except by rounding. Without rows to leave out it is `base` with a ridge.
    `forced` (M, f) is always in the model, `basis` (M, rank) is an orthonormal basis of it. With `weight`, the sum of
    the weights of the remaining rows, each target is divided by its standard deviation there.
    """

    def __init__(
        self, base: Form, forced: Floats, basis: Floats, rows: Ints, *, ridge: float = 0.0, weight: float | None = None
    ) -> None:
        self.base, self.rows, self._forced = base, rows, forced
        self.candidates, self.rules, self.dense = base.candidates, base.rules, base.dense
        self.n_columns, self.n_rows = base.n_columns, base.n_rows - rows.size
        T, F, single = base.targets[rows], basis[rows], rows.size == 1
        of_rows = DenseRows(base.on_rows(rows)) if single else base.rows_of(rows)
        self._single: Floats | None = None  # L / d of a single row stays one row
        self._sweep: Floats = np.zeros((0, rows.size))
        shrink = np.ones(1)
        if rows.size:
            shrink, vectors = np.linalg.eigh(1.0 - F @ F.T if single else np.eye(F.shape[1]) - F.T @ F)
            seen = shrink > 1e-12  # otherwise a direction of the forced columns that only the rows left out see
            root = vectors * np.where(seen, 1.0 / np.sqrt(np.where(seen, shrink, 1.0)), 0.0)
            if single:
                self._single, T = of_rows.products(root.T), root.T @ T
                of_rows = DenseRows(self._single)
            else:
                self._sweep = root.T @ F.T
        U, V = of_rows.products(self._sweep), self._sweep @ T
        self._gram: Callable[[], Floats] | None = None  # L'L before it is scaled
        if of_rows.sparse:
            self._gram = partial(of_rows.gram, U)
        elif base.dense and rows.size > base.n_columns:  # gathering so many rows twice would take longer
            self._gram = of_rows.gram(U).copy
        rest = base.diagonal - of_rows.squares() - np.einsum("fj,fj->j", U, U)
        yy = np.maximum(base.squares - np.einsum("hq,hq->q", T, T) - np.einsum("fq,fq->q", V, V), 0.0)
        of_targets = yy / np.where(base.squares > 0, base.squares, 1.0)
        of_targets[base.squares == 0] = 1.0
        self.trust = float(min(rest.min(initial=1.0), shrink.min(initial=1.0), of_targets.min()))
        rest = np.maximum(rest, 1e-300)
        self.unit: Floats = 1.0 / np.sqrt(rest * (1.0 + ridge))  # d
        self.penalty = (base.penalty / rest + ridge) / (1.0 + ridge)
        self.diagonal = np.ones(rest.size)
        self._relative = spread(yy, weight)
        self.target_scale = base.target_scale * self._relative
        self.yy = float(np.sum(yy / self._relative**2))
        self.B = (base.B - of_rows.products(T.T) - V.T @ U) * self.unit / self._relative[:, None]

    @property
    def root(self) -> Form:
        """The form of all rows, where one is left out."""
        return self.base if self.rows.size == 1 else self

    def _left_out(self) -> Floats:
        """L (1, N) of a single row, (h + f, N) of several."""
        if self._single is not None:
            return self._single * self.unit
        h = self.rows.size
        L = np.empty((h + len(self._sweep), self.n_columns))
        L[:h] = self.base.on_rows(self.rows)
        L[h:] = self._sweep @ L[:h]
        L *= self.unit
        return L

    @cached_property
    def left_out(self) -> Floats:
        """L, kept where rows of G are asked for one by one."""
        return self._left_out()

    @cached_property
    def matrix(self) -> Floats:
        """G (N, N) by subtraction from the matrix of all rows."""
        if self._gram is not None:
            G: Floats = self._gram()
        else:
            L = self._left_out()
            G = L.T @ L
        step = max(1, _BLOCK_BYTES // (8 * self.n_columns))
        for first in range(0, self.n_columns, step):  # in blocks, so that no second matrix is needed
            part = slice(first, first + step)
            scaled = self.unit[part, None] * self.unit  # first: then the matrix is symmetric to the last bit
            if self._gram is not None:
                G[part] *= scaled
            scaled *= self.base.matrix[part]
            np.subtract(scaled, G[part], out=G[part])
        np.fill_diagonal(G, self.diagonal)
        return G

    def write_rows(self, which: Sequence[int], out: Sequence[Floats]) -> None:
        """Rows of G into as many arrays (N,)."""
        self.base.write_rows(which, out)
        for j, row in zip(which, out, strict=True):
            row *= self.unit
            row *= self.unit[j]
            if self.rows.size:
                row -= self.left_out[:, j] @ self.left_out
            row[j] = self.diagonal[j]

    @cached_property
    def _inside(self) -> Floats:
        """Orthonormal basis of the forced columns on the remaining rows."""
        return orthonormal_basis(np.delete(self._forced, self.rows, axis=0))

    def _on_the_rest(self, columns: Floats, unit: Floats) -> Floats:
        """Columns (n, M) on the remaining rows, forced columns projected out there, times `unit` (n,)."""
        if not self.rows.size:
            return columns * unit[:, None]
        columns = np.delete(columns, self.rows, axis=1)
        columns -= (columns @ self._inside) @ self._inside.T
        columns *= unit[:, None]
        return np.ascontiguousarray(columns)

    @cached_property
    def columns(self) -> Floats:  # type: ignore[override]
        """The columns on the remaining rows, forced columns projected out there."""
        return self._on_the_rest(self.base.columns, self.unit)

    def columns_of(self, which: Ints) -> Floats:
        """Rows `which` of `columns`, without forming the others."""
        return self._on_the_rest(self.base.columns_of(which), self.unit[which])

    @cached_property
    def _kept(self) -> Ints:
        """Which rows remain."""
        return np.delete(np.arange(self.base.n_rows), self.rows)

    @cached_property
    def _shares(self) -> Floats:
        """Inner products (f, N) of the columns of all rows with the forced columns on the remaining rows."""
        return self._on_all_rows(self._inside.T) if self.rows.size else np.zeros((0, self.n_columns))

    def _on_all_rows(self, vectors: Floats) -> Floats:
        """Inner products (p, N) of the columns of all rows with `vectors` (p, M) on the remaining ones."""
        inside = np.zeros((len(vectors), self.base.n_rows))
        inside[:, self._kept] = vectors
        return self.base.products(inside)

    def on_rows(self, rows: Ints) -> Floats:
        """All columns on some of the remaining rows (h, N)."""
        if not self.rows.size:
            return self.base.on_rows(rows) * self.unit
        return (self.base.on_rows(self._kept[rows]) - self._inside[rows] @ self._shares) * self.unit

    def products(self, vectors: Floats) -> Floats:
        """Inner products (p, N) of all columns with `vectors` (p, M), from the columns of all rows."""
        if self.rows.size:
            return self._on_all_rows(vectors - (vectors @ self._inside) @ self._inside.T) * self.unit
        return self.base.products(vectors) * self.unit

    @cached_property
    def targets(self) -> Floats:  # type: ignore[override]
        """The targets on the remaining rows, forced columns projected out there, divided by their scale."""
        targets = self.base.targets
        if self.rows.size:
            targets = np.delete(targets, self.rows, axis=0)
            targets = targets - self._inside @ (self._inside.T @ targets)
        return np.asarray(targets / self._relative)


def spread(squares: Floats, weight: float | None) -> Floats:
    """Standard deviations (q,) of targets by their `squares` (q,); 1 for one that does not vary, or without weight."""
    if weight is None:
        return np.ones(squares.size)
    return np.where(squares > 0, np.sqrt(squares / weight), 1.0)
