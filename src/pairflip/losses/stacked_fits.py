r"""Coefficients without one row of very many supports at once: what `fold_fits` does one by one, as whole arrays.

Leave-one-out folds of a noisy table choose hundreds of different supports at every size, and a few microseconds of
Python for each array of a few numbers were most of the time. Stacked factorizations are the same LAPACK calls on the
same numbers in the same layout, so that not a bit differs. Supports with any difficulty (dependent columns, a row that
dictates its own fit) are left to `fold_fits`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import SINGULAR, Floats
from pairflip.projection import powers_of_two

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem

Numbers = NDArray[np.int64]
_STACK_BYTES = 8 * 2**20  # of the tables that are factored together


def coefficients_without_one(
    problem: SubsetProblem, supports: Numbers, which: Numbers, row: Numbers, *, safe: NDArray[np.bool_], unseen: float
) -> Iterator[tuple[Numbers, Floats, Floats]]:
    """(folds, coefficients of forced and chosen columns, intercepts) of all folds that are done without difficulty.

    Parameters
    ----------
    problem : SubsetProblem
        Table and target, without a relative ridge.
    supports : (U, k)
        Distinct supports.
    which : (F,)
        The support of each fold.
    row : (F,)
        The row that each fold leaves out.
    safe : (F,)
        Whether the target of a fold may be computed by subtraction.
    unseen : float
        Of a row, 1 - h below which the identity would lose digits.
    """
    n_supports, k = supports.shape
    width = problem.always.size + k + (problem.center == "fold")
    # A table of one chosen column has another layout, and so other bits; there are few such supports anyway.
    if problem.shrinkage or k < 2 or problem.n_rows + k < width:
        return
    counts = np.bincount(which, minlength=n_supports)
    calm = np.bincount(which, ~safe, minlength=n_supports) == 0
    in_order, ends = np.argsort(which, kind="stable"), np.cumsum(counts)
    step = max(1, _STACK_BYTES // (8 * (problem.n_rows + k) * (width + 1)))
    for count in np.unique(counts[calm & (counts > 0)]).tolist():
        alike = np.flatnonzero(calm & (counts == count))  # products of as many rows round alike
        for first in range(0, alike.size, step):
            part = alike[first : first + step]
            folds = in_order[(ends[part] - count)[:, None] + np.arange(count)]
            yield from _of_part(problem, supports[part], folds, row, unseen)


def _of_part(
    problem: SubsetProblem, supports: Numbers, folds: Numbers, row: Numbers, unseen: float
) -> Iterator[tuple[Numbers, Floats, Floats]]:
    """The same for supports (u, k) of n folds (u, n) each."""
    fits, independent = _Stack.of(problem, supports)
    fits, folds = fits[independent], folds[independent]
    q = fits.q[np.arange(len(folds))[:, None], row[folds]]
    inside = 1.0 - np.einsum("unp,unp->un", q, q)
    done = (inside > unseen).all(axis=1)
    if not done.all():
        fits, folds, q, inside = fits[done], folds[done], q[done], inside[done]
    ratio = np.take_along_axis(fits.residual, row[folds], axis=1) / inside
    x = fits.x[:, None] - ratio[:, :, None] * (q @ fits.inverse.transpose(0, 2, 1))
    constant = x.shape[2] - fits.powers.shape[1]  # 1 where a column of ones comes first
    slopes = x[:, :, constant:]
    intercepts = fits.shift[:, -1:] - (slopes @ fits.shift[:, :-1, None])[:, :, 0]
    intercepts = intercepts + (x[:, :, 0] if constant else 0.0)
    coefs = slopes / fits.powers[:, None]
    yield folds.ravel(), coefs.reshape(folds.size, coefs.shape[2]), intercepts.ravel()


@dataclass(frozen=True)
class _Stack:
    """The factors of u supports on all rows, as `fold_fits` has them for one."""

    x: Floats
    q: Floats
    inverse: Floats
    residual: Floats
    powers: Floats
    shift: Floats

    def __getitem__(self, some: NDArray[np.bool_]) -> _Stack:
        if some.all():
            return self
        return _Stack(*(getattr(self, name)[some] for name in self.__dataclass_fields__))

    @classmethod
    def of(cls, problem: SubsetProblem, supports: Numbers) -> tuple[_Stack, NDArray[np.bool_]]:
        """The factors, and which supports (u,) are linearly independent."""
        (n, k), m = supports.shape, problem.n_rows
        forced = np.broadcast_to(problem.always, (n, problem.always.size))
        columns = problem.X.T[np.concatenate([forced, supports], axis=1)].astype(np.float64)
        powers = powers_of_two(columns.transpose(2, 0, 1))
        constant = int(problem.center == "fold")
        # Columns are contiguous here, as those of a single table are: sums over rows then have the same order.
        table = np.empty((n, columns.shape[1] + 1, m))
        np.divide(columns, powers[:, :, None], out=table[:, :-1])
        table[:, -1] = problem.y
        shift = np.zeros(table.shape[:2])
        if problem.center is not None:
            shift = np.multiply(table, problem.sample_weight).sum(axis=2) / problem.sample_weight.sum()
            table -= shift[:, :, None]
        root = np.sqrt(problem.sample_weight)
        whole = np.zeros((n, m + k, constant + table.shape[1]))
        if constant:
            whole[:, :m, 0] = root
        whole[:, :m, constant:] = (table * root).transpose(0, 2, 1)
        if problem.ridge:
            place = np.arange(k)
            penalty = np.sqrt(problem.ridge) / powers[:, problem.always.size :]
            whole[:, m + place, whole.shape[2] - 1 - k + place] = penalty
        design, target = whole[:, :, :-1], whole[:, :, -1:]
        norms = np.linalg.norm(design, axis=1)
        varies = (norms > 0).all(axis=1)
        norms[~varies] = 1.0
        q, r = np.linalg.qr(design / norms[:, None])
        independent = varies & (np.min(np.abs(np.diagonal(r, axis1=1, axis2=2)), axis=1) ** 2 > SINGULAR)
        r[~independent] = np.eye(r.shape[1])
        inverse = np.linalg.inv(r) / norms[:, :, None]
        turned = q.transpose(0, 2, 1)
        x = inverse @ (turned @ target)
        x += inverse @ (turned @ (target - design @ x))
        residual = (target - design @ x)[:, :m, 0]
        return cls(x[:, :, 0], q[:, :m], inverse, residual, powers, shift), independent
