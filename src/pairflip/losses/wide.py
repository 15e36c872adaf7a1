r"""Tables too wide for a matrix of all columns, used as they are: float32 or float64, in memory or mapped from a file.

What is kept is a few numbers for each column. With :math:`z_j` the projected column j in rows times the root of their
weights, which is orthogonal to everything forced, row j of G is

.. math:: G_{ij} = \frac{1}{d_i} \sum_m \sqrt{w_m} (X_{mi} - \bar X_i) z_{mj} ,

one pass over the table, a block of columns at a time. Columns of which centring or projecting leaves little are centred
or projected first, since differences of large numbers would not have the digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats
from pairflip.moments import Form
from pairflip.projection import CONSTANT, centre, column_blocks, penalties, project, take_out
from pairflip.rules import Rules
from pairflip.sparse import dense

_DIRECT, _CENTRED, _PROJECTED = 0, 1, 2  # what is done to a block before products are taken
LOST = 64.0  # times a column's own sum of squares: beyond it, more than a digit would be lost
_ORDINARY = 2.0**500  # powers of two beyond which squares and sums might overflow


class WideForm(Form):
    """A `Form` that computes columns and rows of G from the table when they are asked for.

    The table X (M, N) is kept, not copied. `means` (N,) and (q,) are subtracted from X and y first; None: the weighted
    means. Only `rows` take part in anything, all of them by default.
    """

    means: Floats  # (N,): what was subtracted first, in the units of the table
    target_means: Floats  # (q,)
    scale: Floats  # (n,): what each candidate was divided by, in the units of the table
    forced: Floats  # (M, f): what is always in the model
    basis: Floats  # (M, rank): an orthonormal basis of it
    powers: Floats  # (f,): powers of two that forced columns of the table were divided by
    budget: int  # bytes that the matrix may take

    def __init__(
        self,
        X: NDArray[Any],
        y: Floats,
        weight: Floats,
        *,
        always: NDArray[np.int64],
        ridge: float,
        intercept: bool,
        means: tuple[Floats, Floats] | None,
        rows: NDArray[np.int64] | None = None,
    ) -> None:
        self._X, self._rows = X, rows
        y, weight = (y, weight) if rows is None else (y[rows], weight[rows])
        self._weight, self.n_rows = weight, len(y)
        given = None if means is None else (means[0][always], means[1])
        of_forced = project(
            dense(self._values(always)), y, weight,
            always=np.arange(always.size), ridge=ridge, intercept=intercept, means=given,
        )  # fmt: skip
        self.forced, self.basis, self.powers = of_forced.forced, of_forced.basis, of_forced.powers
        self.target_means, self.targets = of_forced.target_means, of_forced.targets
        self.target_scale = np.ones(self.targets.shape[1])
        self.yy = float(np.vdot(self.targets, self.targets))
        self._forced_columns = always.size > 0
        self._blocks = column_blocks(*X.shape)
        self._prepare(always, ridge, None if means is None else means[0])
        self.n_columns, self.dense = int(self.candidates.size), False
        self.diagonal = np.ones(self.n_columns)

    def _prepare(self, always: NDArray[np.int64], ridge: float, means: Floats | None) -> None:
        """One pass over the table: means, norms, inner products with the target; how to treat each block."""
        n = self._X.shape[1]
        self.means = np.empty(n) if means is None else means
        scale, B, keep = np.empty(n), np.empty((self.targets.shape[1], n)), np.empty(n, bool)
        targets = np.ascontiguousarray(self.targets.T)
        penalty = np.zeros(n)  # not touched without ridge, so that it takes no memory
        self._ways = np.zeros(len(self._blocks), np.int8)
        for at, part in enumerate(self._blocks):
            given = None if means is None else means[part]
            columns, powers, centres, raw = centre(self._values(part), self._weight, given)
            spread = np.einsum("jm,jm->j", columns, columns)
            take_out(columns, self.basis)
            norm2 = np.einsum("jm,jm->j", columns, columns)
            keep[part] = norm2 > CONSTANT**2 * raw
            keep[always[(always >= part.start) & (always < part.stop)]] = False
            kept = keep[part]
            if means is None:
                self.means[part] = centres * powers
            if ridge:
                added = penalties(ridge, powers, norm2)
                penalty[part] = added / np.where(kept, norm2 + added, 1.0)
                norm2 = norm2 + added
            norm = np.where(kept, np.sqrt(norm2), 1.0)
            scale[part] = norm * powers
            B[:, part] = (targets @ columns.T) / norm
            odd = np.any((powers[kept] > _ORDINARY) | (powers[kept] < 1.0 / _ORDINARY))
            if odd or np.any(spread[kept] > LOST * norm2[kept]):
                self._ways[at] = _PROJECTED
            elif np.any(raw[kept] > LOST * norm2[kept]):
                self._ways[at] = _CENTRED
        self.candidates = np.flatnonzero(keep)
        if self.candidates.size < n:
            scale, B, penalty = scale[keep], B[:, keep], penalty[keep]
        self.scale, self.B, self.penalty = scale, np.ascontiguousarray(B), penalty
        self._starts = np.searchsorted(self.candidates, [part.start for part in self._blocks] + [n])

    def finish(self, target_scale: Floats, rules: Rules, dense: bool, budget: int) -> None:
        """Divide the targets by their scale (q,), and take up the rules and the memory budget."""
        self.target_scale, self.rules, self.dense, self.budget = target_scale, rules, dense, budget
        self.targets = self.targets / target_scale
        self.B /= target_scale[:, None]
        self.yy = float(np.vdot(self.targets, self.targets))

    def _values(self, which: slice | NDArray[np.int64]) -> NDArray[Any]:
        """Columns of the table on the rows that are used (M, n), as the table holds them."""
        values = self._X[:, which]
        return values if self._rows is None else values[self._rows]

    def columns_of(self, which: NDArray[np.int64]) -> Floats:
        """Projected, scaled columns (n, M), in blocks."""
        result = np.empty((which.size, self.n_rows))
        for part in column_blocks(self.n_rows, which.size):
            at = self.candidates[which[part]]
            columns, powers, _, _ = centre(self._values(at), self._weight, self.means[at])
            take_out(columns, self.basis)
            np.divide(columns, (self.scale[which[part]] / powers)[:, None], out=result[part])
        return result

    @cached_property
    def columns(self) -> Floats:  # type: ignore[override]
        """All columns (n, M): larger than the table. Annealing walks on them; descents and paths do without."""
        return self.columns_of(np.arange(self.n_columns))

    def _positions_by_block(self) -> list[tuple[int, slice, slice]]:
        """How each block is treated, its columns, and the positions of its candidates."""
        ends = zip(self._starts[:-1].tolist(), self._starts[1:].tolist(), strict=True)
        return [
            (way, part, slice(*at))
            for way, part, at in zip(self._ways.tolist(), self._blocks, ends, strict=True)
            if at[0] < at[1]
        ]

    def products(self, vectors: Floats) -> Floats:
        """Inner products (p, n) of all columns with `vectors` (p, M)."""
        vectors = vectors - (vectors @ self.basis) @ self.basis.T  # the columns have nothing of what is forced
        out = np.empty((len(vectors), self.n_columns))
        self._multiply(vectors, out)
        return out

    def _multiply(self, vectors: Floats, out: Sequence[Floats] | Floats) -> None:
        """`products`, into as many arrays (n,)."""
        weighted = np.zeros((len(vectors), self._X.shape[0]))
        weighted[:, slice(None) if self._rows is None else self._rows] = vectors * np.sqrt(self._weight)
        sums = weighted.sum(axis=1)[:, None]
        X, single = self._X, self._X.dtype != np.float64
        buffer = np.empty(0)
        for way, part, at in self._positions_by_block():
            if way == _PROJECTED:
                for row, product in zip(out, vectors @ self.columns_of(np.arange(at.start, at.stop)).T, strict=True):
                    row[at] = product
                continue
            block, means = X[:, part], self.means[part]
            if way == _CENTRED or single:
                if buffer.size != block.size:
                    buffer = np.empty(block.shape, order="F" if X.flags.f_contiguous else "C")
                if way == _CENTRED:
                    np.subtract(block, means, out=buffer)
                else:
                    np.copyto(buffer, block)
                block = buffer
            # One vector as such: a matrix of one row would be copied, and multiplied by a slower routine.
            products = (weighted[0] @ block)[None, :] if len(weighted) == 1 else weighted @ block
            if way == _DIRECT:
                products -= sums * means
            if at.stop - at.start < means.size:
                products = products[:, self.candidates[at] - part.start]
            for row, product in zip(out, products, strict=True):
                np.divide(product, self.scale[at], out=row[at])

    def write_rows(self, which: Sequence[int], out: Sequence[Floats]) -> None:
        """Rows of G into as many arrays (N,), in one pass over the table."""
        self._multiply(self.columns_of(np.array(which)), out)
        for j, row in zip(which, out, strict=True):
            row[j] = self.diagonal[j]

    def on_rows(self, rows: NDArray[np.int64]) -> Floats:
        """All columns on some rows (h, n)."""
        result = np.empty((rows.size, self.n_columns))
        root = np.sqrt(self._weight[rows])[:, None]
        of_table = rows if self._rows is None else self._rows[rows]
        for way, part, at in self._positions_by_block():
            if way == _PROJECTED or self._forced_columns:
                result[:, at] = self.columns_of(np.arange(at.start, at.stop))[:, rows].T
            else:
                which = self.candidates[at]
                values = self._X[:, part][of_table][:, which - part.start]
                result[:, at] = (values - self.means[which]) * root / self.scale[at]
        return result

    def rank(self) -> int:
        """How many columns are linearly independent, to working precision."""
        triangle = np.zeros((0, self.n_rows))
        for part in column_blocks(self.n_rows, self.n_columns):
            more = self.columns_of(np.arange(part.start, part.stop))
            triangle = np.asarray(np.linalg.qr(np.vstack([triangle, more]), mode="r"))
        return int(np.linalg.matrix_rank(triangle))
