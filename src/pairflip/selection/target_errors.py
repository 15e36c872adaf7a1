"""Several targets, one by one: errors of their held-out rows, and their coefficients (those of classes, too)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats
from pairflip.losses.held_out import HeldOutErrors
from pairflip.problem import SubsetProblem
from pairflip.selection.curve import SizeCurve
from pairflip.selection.folds import Folds
from pairflip.selection.records import TargetErrors
from pairflip.selection.verdict import explained_fraction


def target_errors(problem: SubsetProblem, errors: HeldOutErrors, folds: Folds, residuals: Floats) -> TargetErrors:
    """Errors of held-out rows, target by target."""
    q, row, w = problem.y.shape[1], folds.row, problem.sample_weight[folds.row]
    left = residuals.reshape(len(residuals), -1, q)
    plain = left * errors.scales[folds.fold]  # in the units of the targets
    r2 = [[explained_fraction(problem.y[row, t], each[:, t], w) for t in range(q)] for each in plain]
    return TargetErrors(
        names=list(problem.target_names),
        cv_error=0.5 * np.einsum("spq,p->sq", left**2, w) / w.sum(),
        rmse=np.sqrt(np.einsum("spq,p->sq", plain**2, w) / w.sum()),
        r2=np.array(r2),
        means=errors.means,
        scales=errors.scales,
    )


def in_units(curve: SizeCurve, values: Floats) -> Floats:
    """Observed or predicted values (..., P q) of held-out rows in the units of their targets."""
    if curve.targets is None:
        return values
    fold: NDArray[np.int64] = curve.held_out_fold[:: len(curve.targets.names)]
    plain = values.reshape(*values.shape[:-1], fold.size, -1) * curve.targets.scales[fold] + curve.targets.means[fold]
    return np.asarray(plain.reshape(values.shape))


class TargetCoefficients(NamedTuple):
    """One line: coefficients (q) of a column; `kind` and `place` are as in `coefficients.Coefficient`."""

    column: str
    kind: str
    coefficients: list[float]
    place: int


def target_coefficients(curve: SizeCurve, size: int) -> list[TargetCoefficients]:
    """The constants, forced columns, then the chosen ones."""
    at = curve.at(size)
    rows = [TargetCoefficients("", "intercept", curve.intercepts[at].tolist(), -1)]
    for kind, which, coefs in (
        ("always", curve.always, curve.always_coefs[at]),
        ("selected", curve.supports[at], curve.coefs[at]),
    ):
        pairs = zip(which.tolist(), coefs.tolist(), strict=True)
        rows += [TargetCoefficients(curve.names[j], kind, values, j) for j, values in pairs]
    return rows
