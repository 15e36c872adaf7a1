r"""What a curve supports: does anything predict, how many columns to recommend, and what errors to expect.

The rules were chosen by simulation (`python -m benchmarks honesty`, docs/decisions/020-what-is-recommended.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats
from pairflip.selection.curve import SizeCurve

UNCERTAIN = 0.3
"""Where a smaller fraction of many chains reached the best set of their fold, the search is uncertain at that size."""
CLEAR = 1.0
"""How many standard errors the error must be lower than that of the mean for columns to be called predictive ..."""
CHANCE = 0.05
"""... and what fraction of shuffled targets may be fitted as well."""


@dataclass(frozen=True)
class HeldOut:
    """How held-out rows are predicted at a size."""

    size: int
    rmse: float  # in the unit of the target
    r2: float  # one minus the squared error (for classes and counts: the deviance) over that of the mean


def held_out(curve: SizeCurve, size: int) -> HeldOut:
    """Root mean square error and R2 of the held-out predictions, rows weighted; below 0 the mean predicts better."""
    predictions, w = curve.predictions[curve.at(size)], curve.weights
    rmse = float(np.sqrt(np.average((curve.observed - predictions) ** 2, weights=w)))
    error, total = float(np.average(curve.row_errors(predictions), weights=w)), variance_of_target(curve)
    return HeldOut(size, rmse, 1.0 - error / total if total > 0 else float("nan"))


def explained_fraction(y: Floats, residuals: Floats, w: Floats) -> float:
    r""":math:`1 - \sum w r^2 / \sum w (y - \bar y)^2` of held-out rows."""
    if not w.sum() > 0:
        return float("nan")
    total = float(np.sum(w * (y - np.average(y, weights=w)) ** 2))
    return 1.0 - float(np.sum(w * residuals**2)) / total if total > 0 else float("nan")


def variance_of_target(curve: SizeCurve) -> float:
    """Variance of the targets that were held out, rows weighted; for classes and counts, their mean deviance.

    With an offset, that of the mean rate; for survival times, that of the model without columns.
    """
    if "error_of_the_mean" in curve.facts:
        return float(curve.facts["error_of_the_mean"])
    mean = np.full(curve.observed.size, np.average(curve.observed, weights=curve.weights))
    return float(np.average(curve.row_errors(mean), weights=curve.weights))


def by_unit(curve: SizeCurve, values: Floats) -> tuple[Floats, Floats]:
    """Weighted sums (..., U) of what held-out rows have (..., P), and weights (U,), over independent units."""
    unit, n = curve.held_out_unit, int(curve.held_out_unit.max()) + 1
    total, rows = np.bincount(unit, curve.weights, n), (curve.weights * values).reshape(-1, unit.size)
    sums = np.stack([np.bincount(unit, row, n) for row in rows]).reshape(*values.shape[:-1], n)
    return np.asarray(sums[..., total > 0]), np.asarray(total[total > 0])


def difference(curve: SizeCurve, worse: int, better: int) -> tuple[float, float]:
    r"""How much lower cv_error is at one size than at another, and the standard error of that difference.

    Rows are compared with themselves: the spread of :math:`\frac12 (r_\mu^2 - r'^2_\mu)` (or of the difference of half
    their deviances) over the independent units.
    """
    errors = curve.row_errors(curve.predictions[[curve.at(worse), curve.at(better)]])
    sums, total = by_unit(curve, 0.5 * (errors[0] - errors[1]))
    means, weight = sums / total, total / total.sum()
    mean = float(weight @ means)
    return mean, float(np.sqrt(weight @ (means - mean) ** 2 / max(1, means.size - 1)))


def predicts(curve: SizeCurve) -> bool:
    """Whether some number of columns predicts clearly better than none, so that it may be called a finding.

    Three conditions. Few shuffled targets are fitted as well, because the lowest of many errors is low by luck: how
    often depends on the table, and the shuffles know it. Held-out errors are lower than without columns by more than a
    standard error of that difference. And the error is still lower once it is corrected for the choice of the size. For
    two classes, a few rows with extreme probabilities must not decide: the log loss is lower, and the corrected AUC is
    above one half; for survival times, the corrected concordance is.
    """
    best = curve.best_size
    if best == 0:
        return False
    if 0 not in curve.sizes:  # a curve of version 0.1
        return held_out(curve, best).r2 > 0
    gain, error = difference(curve, 0, best)
    two_classes = curve.classes is not None and not curve.classes.several
    if gain <= (0.0 if two_classes else CLEAR * error) or curve.facts.get("p_value", 0.0) > CHANCE:
        return False
    corrected = curve.corrected
    if corrected is not None and corrected.ranked is not None:
        return corrected.ranked[0] > 0.5
    return corrected is None or corrected.error < min(float(curve.cv_error[curve.at(0)]), corrected.variance)


def recommended_size(curve: SizeCurve) -> int:
    """The number of columns to keep: 0 if nothing predicts.

    With folds of several rows, the size with the lowest error; it had the lower true error in simulations. When single
    rows are left out, the lowest error is often low by luck, and the one-standard-error size had the lower true error.
    """
    return chosen_size(curve) if predicts(curve) else 0


def chosen_size(curve: SizeCurve) -> int:
    """The number of columns that `recommended_size` takes where columns predict at all."""
    return int(curve.sizes[choose(curve.cv_error, curve.cv_error_se, curve.sizes, single_rows(curve))])


def choose(mean: Floats, error: Floats, sizes: NDArray[np.int64], single: bool) -> Any:
    """Indices (...) of the sizes that are recommended by errors (..., S), where columns predict at all."""
    some = np.where(sizes > 0, mean, np.inf)
    best = np.argmin(some, axis=-1)[..., None]
    if not single:
        return best[..., 0]
    limit = np.take_along_axis(mean, best, axis=-1) + np.take_along_axis(error, best, axis=-1)
    return np.argmax(some <= limit, axis=-1)


def single_rows(curve: SizeCurve) -> bool:
    """Whether every row was left out alone, once."""
    return bool(curve.n_folds == np.unique(curve.held_out_rows).size == curve.held_out_rows.size // curve.n_outputs)


def size_to_show(curve: SizeCurve) -> int:
    """The recommended size; where nothing predicts, the size above 0 with the lowest error, since 0 has no columns."""
    recommended = recommended_size(curve)
    tried = [int(k) for k in np.sort(curve.sizes) if k > 0]
    if recommended or not tried:
        return recommended
    return min(tried, key=lambda k: float(curve.cv_error[curve.at(k)]))


def sizes_by_repetition(curve: SizeCurve) -> list[int]:
    """The size with the lowest error in each repetition of the folds; empty where every row is held out once."""
    row, q = curve.held_out_rows, curve.n_outputs
    times, rest = divmod(row.size, q * np.unique(row).size)
    if rest or times < 2 or curve.n_folds % times:
        return []
    repetition = curve.held_out_fold // (curve.n_folds // times)
    if np.unique(np.stack([repetition, row]), axis=1).shape[1] * q != row.size:  # splits that the user gave
        return []
    errors = curve.weights * curve.row_errors(curve.predictions)
    sums = np.stack([np.bincount(repetition, each, times) for each in errors])
    return [int(size) for size in curve.sizes[np.argmin(sums, axis=0)]]


def baseline(curve: SizeCurve) -> str:
    """What predicts at size 0, in words."""
    if curve.always.size:
        return "forced columns alone"
    if curve.classes is not None:
        return "class frequencies alone"
    if curve.survival is not None:
        return "same risk for every row"
    return "mean alone" if curve.settings.get("center", "fold") is not None else "zero for every row"


def least_agreement(curve: SizeCurve) -> float:
    """Fraction of the chains that must agree for a search to count as certain; 0 for one chain, which tells nothing.

    The chain that reached the best set always agrees with itself, so of few chains a larger fraction must agree.
    """
    chains = curve.chain_cv_error.shape[1]
    return max(UNCERTAIN, 1.2 / chains) if chains > 1 else 0.0


def uncertain(curve: SizeCurve, size: int) -> bool:
    """Whether so few chains agree at this size that better columns may have been missed."""
    return bool(curve.agreement[curve.at(size)] < least_agreement(curve))
