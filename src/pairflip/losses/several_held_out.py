r"""Held-out rows of several targets, every support fitted again on the training rows of its fold.

Errors are in units of the targets' standard deviations on the training rows: a prediction of row :math:`\mu` and
target t adds :math:`((y_{\mu t} - \hat y_{\mu t}) / \sigma_t)^2`. Predictions of one row stand together, target by
target; nothing here knows of the held-out rows before they are predicted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats, qr_several
from pairflip.losses.fold_by_fold import FoldByFold
from pairflip.losses.fold_fits import FoldCoefficients
from pairflip.losses.several import SeveralTargets, constants, left_of_targets
from pairflip.projection import Projected, project

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem
    from pairflip.selection.folds import Folds


@dataclass(frozen=True)
class _Fold:
    """Training rows of a fold: their targets (m, q) as they are fitted, and the mean and scale (q,) of each."""

    kept: NDArray[np.int64]
    targets: Floats
    mean: Floats
    scale: Floats


class HeldOutSeveral(FoldByFold):
    """Errors of held-out rows; predictions are (row, target) pairs, P q of them.

    `observed` (P q,) are the targets less their mean and divided by their scale, both of the training rows; `means`
    and `scales` (F, q) are these.
    """

    def __init__(self, loss: SeveralTargets, problem: SubsetProblem, folds: Folds) -> None:
        sizes, q = [rows.size for rows in folds.rows], problem.y.shape[1]
        ends = q * np.cumsum(sizes)
        super().__init__([slice(end - q * size, end) for end, size in zip(ends, sizes, strict=True)])
        self._problem, self._folds = problem, folds
        self._training = [self._of_fold(loss, left) for left in folds.left_out]
        self.yy = np.array([float(np.vdot(fold.targets, fold.targets)) for fold in self._training])
        parts = zip(self._training, folds.rows, strict=True)
        self.observed = np.concatenate([((problem.y[rows] - f.mean) / f.scale).ravel() for f, rows in parts])
        self.means = np.stack([fold.mean for fold in self._training])
        self.scales = np.stack([fold.scale for fold in self._training])

    def _of_fold(self, loss: SeveralTargets, left_out: NDArray[np.int64]) -> _Fold:
        problem = self._problem
        kept = np.delete(np.arange(problem.n_rows), left_out)
        weights = problem.sample_weight[kept]
        basis = self._project(kept, np.empty(0, dtype=np.int64)).basis
        targets, scale = left_of_targets(loss, problem, kept, basis)
        return _Fold(kept, targets / scale, weights @ problem.y[kept] / float(weights.sum()), scale)

    def _project(self, kept: NDArray[np.int64], support: NDArray[np.int64]) -> Projected:
        """The forced columns and a support, on some rows."""
        problem = self._problem
        which = np.concatenate([problem.always, support]).astype(np.int64)
        return project(
            problem.X[np.ix_(kept, which)],
            np.zeros(kept.size),
            problem.sample_weight[kept],
            always=np.arange(problem.always.size),
            ridge=problem.ridge,
            intercept=problem.center == "fold",
            means=None if problem.center == "fold" else (problem.means[which], 0.0),
        )

    def _fit(self, fold: int, support: NDArray[np.int64]) -> tuple[Floats, Floats, Floats, float]:
        """Chosen coefficients (k, q), forced ones (a, q), constants (q,) on the training rows; the energy.

        A column that does not vary there has the coefficient 0.
        """
        problem, own, a = self._problem, self._training[fold], self._problem.always.size
        inside = self._project(own.kept, support)
        found = qr_several(inside.columns.T, own.targets, inside.penalty)
        if found is None:  # singular by the rounding of another factorization
            x: Floats = np.asarray(np.linalg.lstsq(inside.columns.T, own.targets, rcond=None)[0], dtype=np.float64)
            energies: Floats = 0.5 * np.sum((own.targets - inside.columns.T @ x) ** 2, axis=0)
        else:
            x, energies = found
        coef = np.zeros((support.size, own.scale.size))
        coef[inside.candidates - a] = x / inside.scale[:, None] * own.scale
        always_coef, intercept = constants(problem, own.kept, support, coef, inside)
        return coef, always_coef, intercept, float(energies.sum())

    def fitted(self, fold: int, support: NDArray[np.int64]) -> tuple[Floats, float]:
        """Coefficients (k, q) of a support on the training rows of a fold, in the units of the table; its energy."""
        coef, _, _, energy = self._fit(fold, support)
        return coef, energy

    def _judge(self, fold: int, support: NDArray[np.int64]) -> tuple[Floats, float]:
        problem, rows = self._problem, self._folds.rows[fold]
        coef, always_coef, intercept, energy = self._fit(fold, support)
        told = (
            intercept + problem.X[np.ix_(rows, support)] @ coef + problem.X[np.ix_(rows, problem.always)] @ always_coef
        )
        return ((problem.y[rows] - told) / self._training[fold].scale).ravel(), energy

    def fits(self, supports: NDArray[np.int64], *, quick: bool = False) -> FoldCoefficients:
        """What each fold predicts with its own columns (F, k): coefficients (F, k, q), (F, a, q) and constants (F, q).

        Parameters
        ----------
        supports : (F, k)
            Columns chosen in each fold.
        quick
            Nothing here: there is one way only.
        """
        every = [self._fit(fold, support) for fold, support in enumerate(supports)]
        coefs, always_coefs, intercepts, _ = zip(*every, strict=True)
        return FoldCoefficients(np.stack(coefs), np.stack(always_coefs), np.stack(intercepts))

    def row_errors(self, residuals: Floats) -> Floats:
        """Squared errors."""
        return np.asarray(residuals**2)
