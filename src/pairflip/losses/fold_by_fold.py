"""Held-out rows of energies that are not quadratic: each support is fitted on the training rows of its fold."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats
from pairflip.losses.base import Fit, FoldCoefficients
from pairflip.supports import ABSENT, distinct_supports

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem
    from pairflip.selection.folds import Folds


class FoldByFold:
    """Judges supports by `loss.fit_rows` on the training rows of a fold, once if several chains chose it."""

    def __init__(self, loss: Any, problem: SubsetProblem, folds: Folds) -> None:
        self._loss, self._problem, self._folds = loss, problem, folds
        everything = np.arange(problem.n_rows)
        self._kept = [np.setdiff1d(everything, left) for left in folds.left_out]
        self._known: dict[tuple[int, bytes], tuple[Fit, Any]] = {}

    @cached_property
    def yy(self) -> Floats:
        """Twice the energies (F,) without chosen columns."""
        nothing = np.zeros((len(self._kept), 1, 0), dtype=np.int64)
        return np.asarray(2.0 * self.judged(nothing)[1][:, 0])

    def _fit(self, fold: int, columns: NDArray[np.int64]) -> tuple[Fit, Any]:
        """The fit of some columns on the training rows of a fold, made once: errors and coefficients both need it."""
        key = fold, columns.tobytes()
        if key not in self._known:
            self._known[key] = self._loss.fit_rows(self._problem, self._kept[fold], columns)
        return self._known[key]

    def _judge(self, fold: int, support: NDArray[np.int64]) -> tuple[Floats, float]:
        """Observed minus predicted on the held-out rows of a fold, and the energy of the support on the others."""
        problem, rows = self._problem, self._folds.rows[fold]
        support = problem.columns_of(support)
        fit, baseline = self._fit(fold, support)
        eta = fit.intercept + problem.X[np.ix_(rows, problem.always)] @ fit.always_coef
        eta = eta + problem.X[np.ix_(rows, support)] @ fit.coef
        if problem.offset is not None:
            eta = eta + problem.offset[rows]
        y = problem.y[rows]
        return np.asarray(self._loss.observed(y) - self._loss.expected(y, eta, baseline)), fit.energy

    def residuals(self, supports: NDArray[np.int64]) -> Floats:
        """Observed minus predicted (C, P) when fold f is predicted by supports[f, c] of (F, C, k).

        With q predictions of a row (C, P q), those of a row together.
        """
        return self.judged(supports)[0]

    def judged(self, supports: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """The same, and the energies (F, C) of the supports on the training rows of their folds."""
        folds, chains, _ = supports.shape
        residuals, energies = None, np.empty((folds, chains))
        for fold in range(folds):
            distinct, _, which, _ = distinct_supports(supports[fold])
            for u, support in enumerate(distinct):
                left, energy = self._judge(fold, support)
                if residuals is None:
                    residuals = np.empty((chains, self._folds.places[-1].stop, *left.shape[1:]))
                residuals[which == u, self._folds.places[fold]], energies[fold, which == u] = left, energy
        assert residuals is not None
        return residuals.reshape(chains, -1), energies

    def without_columns(self) -> Floats:
        """Observed minus predicted (P,) by the constant, or by the forced columns alone."""
        nothing = np.empty((len(self._folds.places), 1, 0), dtype=np.int64)
        return np.asarray(self.judged(nothing)[0][0])

    def fits(self, supports: NDArray[np.int64]) -> FoldCoefficients:
        """Coefficients of columns (F, k), each on the training rows of its fold; 0 for those that are absent."""
        found = [self._fit(f, each[each != ABSENT])[0] for f, each in enumerate(supports)]
        coefs = np.zeros((*supports.shape, *found[0].coef.shape[1:]))
        coefs[supports != ABSENT] = np.concatenate([fit.coef for fit in found])
        return FoldCoefficients(
            coefs, np.stack([fit.always_coef for fit in found]),
            np.stack([np.asarray(fit.intercept, dtype=float) for fit in found]),
        )  # fmt: skip

    def row_errors(self, residuals: Floats) -> Floats:
        """What each held-out row adds to twice cv_error."""
        observed = self._loss.observed(self._problem.y[self._folds.row]).ravel()
        return np.asarray(self._loss.row_errors(observed, observed - residuals))
