r"""Information criteria of the final fits, and errors of held-out rows by class, survival time and target.

With :math:`\sigma^2` unknown, the deviance of a fit with energy E on M rows is :math:`M \ln(2E/M)`; with d fitted
coefficients (chosen and forced ones) and N candidates of which k were chosen,

.. math::
    \mathrm{AIC} = M \ln(2E/M) + 2 d, \quad \mathrm{BIC} = M \ln(2E/M) + d \ln M, \quad
    \mathrm{EBIC} = \mathrm{BIC} + 2 \ln \tbinom{N}{k} .

EBIC (Chen & Chen, Biometrika 2008, with gamma = 1) also counts how many supports there were to choose from.

To add a criterion: a function of `FinalFits`, and a call of `register`. Curves, files and tables then have it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from pairflip.engines.base import NOTHING
from pairflip.least_squares import Floats
from pairflip.losses import HeldOutJudge
from pairflip.problem import SubsetProblem
from pairflip.selection.curve import ClassErrors, SizeCurve, SurvivalErrors, TargetErrors
from pairflip.selection.folds import Folds
from pairflip.supports import Ints

HALF = 0.5
"""Rows with a probability above this are put into the second class."""


@dataclass(frozen=True)
class FinalFits:
    """The final fits of all sizes (S,), and the table they come from."""

    energy: Floats
    sizes: Floats
    n_rows: int
    n_candidates: int
    n_forced: int
    yy: float  # y'y after the forced columns were projected out
    likelihood: bool = False  # whether E is half the deviance of a likelihood without a scale: classes and counts
    n_targets: int = 1  # with q targets there are M q residuals and q coefficients for each column
    coefficients: Floats | None = None  # chosen coefficients (S,), where sizes count groups of columns

    @property
    def deviance(self) -> Floats:
        """M ln(2E/M), or 2E for classes and counts; E that is rounding error counts as that fraction of y'y."""
        if self.likelihood:
            return 2.0 * self.energy
        rows = self.n_rows * self.n_targets
        return np.asarray(rows * np.log(np.maximum(2.0 * self.energy, NOTHING * self.yy) / rows))

    @property
    def fitted(self) -> Floats:
        """Number d of fitted coefficients."""
        chosen = self.sizes if self.coefficients is None else self.coefficients
        return self.n_targets * (chosen + self.n_forced)


Criterion = Callable[[FinalFits], Floats]
CRITERIA: dict[str, Criterion] = {}
"""Criteria that were added to the three."""


def register(name: str, criterion: Criterion) -> None:
    """Add a criterion (lower is better) to every curve from now on, as ``curve.criteria[name]``."""
    CRITERIA[name] = criterion


def information_criteria(fits: FinalFits) -> dict[str, Floats]:
    """AIC, BIC, EBIC and registered criteria by name, each (S,)."""
    n, k, deviance, d = fits.n_candidates, fits.sizes, fits.deviance, fits.fitted
    bic = deviance + d * np.log(fits.n_rows)
    ebic = bic + 2.0 * (gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))
    added = {name: criterion(fits) for name, criterion in CRITERIA.items()}
    return {"aic": deviance + 2.0 * d, "bic": bic, "ebic": ebic, **added}


def class_errors(
    observed: Floats, predictions: Floats, weights: Floats, labels: list[str], constant: bool
) -> ClassErrors:
    """Misclassification and, of two classes, AUC over all held-out predictions together, at every size."""
    q = len(labels) if len(labels) > 2 else 1  # of two classes a row has the probability of the event alone
    rows = weights[::q]
    truth, predicted = class_of(observed, q), class_of(predictions, q)
    # Shares alone rank nothing: they differ from fold to fold only because they lack the rows held out.
    areas = [0.5 if constant and s == 0 else auc(observed, p, weights) for s, p in enumerate(predictions) if q == 1]
    return ClassErrors(
        labels=list(labels),
        shares=np.bincount(truth, rows, len(labels)) / rows.sum(),
        misclassified=np.average(predicted != truth, axis=1, weights=rows),
        auc=np.array(areas) if areas else None,
    )


def class_of(probabilities: Floats, q: int) -> Ints:
    """The most probable class (..., P) by the q probabilities of each row (..., P q)."""
    if q == 1:
        return np.asarray(probabilities > HALF, dtype=np.int64)
    each = probabilities.reshape(*probabilities.shape[:-1], -1, q)
    return np.asarray(np.argmax(np.round(each, 12), axis=-1))  # the first of equal ones, however they are rounded


def auc(observed: Floats, predicted: Floats, weights: Floats) -> float:
    """Probability that a row of the event is predicted above another, ties half; not-a-number without both."""
    values, at = np.unique(predicted, return_inverse=True)
    event = np.bincount(at, weights * observed, values.size)
    other = np.bincount(at, weights * (1.0 - observed), values.size)
    pairs = float(event.sum() * other.sum())
    below = np.cumsum(other) - other
    return float(event @ (below + 0.5 * other)) / pairs if pairs > 0 else float("nan")


def roc(observed: Floats, predicted: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Fractions of the other class (false alarms) and of the event (hits) at or above each threshold, from 0 to 1."""
    values, at = np.unique(-predicted, return_inverse=True)
    event = np.cumsum(np.bincount(at, weights * observed, values.size))
    other = np.cumsum(np.bincount(at, weights * (1.0 - observed), values.size))
    return np.append(0.0, other / other[-1]), np.append(0.0, event / event[-1])


def confusion(truth: Ints, predicted: Ints, weights: Floats, n: int) -> Floats:
    """Weights (n, n) of the rows of each class (first index) that were put into each of n classes."""
    table: Floats = np.bincount(n * truth + predicted, weights, n * n).astype(np.float64)
    return table.reshape(n, n)


def survival_errors(
    problem: SubsetProblem, errors: HeldOutJudge, folds: Folds, selected: Sequence[Ints]
) -> SurvivalErrors:
    """Risks and concordance at every size; risks of a fold are counted from the mean of its training rows."""
    row, weights = folds.row, problem.sample_weight[folds.row]
    risks = np.stack([errors.predictors(supports) for supports in selected])
    ranked = [concordance(problem.y[row], risk, weights) for risk in risks]
    return SurvivalErrors(times=problem.y[row, 0], risks=risks, concordance=np.array(ranked))


def concordance(y: Floats, risk: Floats, weights: Floats) -> float:
    """Harrell's C: of pairs whose order is known, the fraction in which the higher risk has the event first.

    The order is known where the earlier time is that of an event (of equal times, an event comes before what is
    censored); equal risks count half, pairs by the product of their weights. Not-a-number where no order is known.
    """
    time, event = y.T
    right = total = 0.0
    for i in np.flatnonzero(event > 0):
        later = (time > time[i]) | ((time == time[i]) & (event == 0))
        lower = np.where(risk[later] < risk[i], 1.0, np.where(risk[later] == risk[i], 0.5, 0.0))
        right += weights[i] * float(weights[later] @ lower)
        total += weights[i] * float(weights[later].sum())
    return right / total if total > 0 else float("nan")


def explained_fraction(y: Floats, residuals: Floats, w: Floats) -> float:
    r""":math:`1 - \sum w r^2 / \sum w (y - \bar y)^2` of held-out rows."""
    if not w.sum() > 0:
        return float("nan")
    total = float(np.sum(w * (y - np.average(y, weights=w)) ** 2))
    return 1.0 - float(np.sum(w * residuals**2)) / total if total > 0 else float("nan")


def target_errors(problem: SubsetProblem, errors: HeldOutJudge, folds: Folds, residuals: Floats) -> TargetErrors:
    """Errors of held-out rows, target by target, at every size."""
    q, row, w = problem.y.shape[1], folds.row, problem.sample_weight[folds.row]
    scaled = residuals.reshape(len(residuals), -1, q)
    plain = scaled * errors.scales[folds.fold]  # in the units of the targets
    r2 = [[explained_fraction(problem.y[row, t], each[:, t], w) for t in range(q)] for each in plain]
    return TargetErrors(
        names=list(problem.target_names),
        cv_error=0.5 * np.einsum("spq,p->sq", scaled**2, w) / w.sum(),
        rmse=np.sqrt(np.einsum("spq,p->sq", plain**2, w) / w.sum()),
        r2=np.array(r2),
        means=errors.means,
        scales=errors.scales,
    )


def in_units(curve: SizeCurve, values: Floats) -> Floats:
    """Observed or predicted values (..., P q) of held-out rows in the units of their targets."""
    if curve.targets is None:
        return values
    fold: Ints = curve.held_out_fold[:: len(curve.targets.names)]
    plain = values.reshape(*values.shape[:-1], fold.size, -1) * curve.targets.scales[fold] + curve.targets.means[fold]
    return np.asarray(plain.reshape(values.shape))
