r"""What a curve supports: does anything predict, how many columns to recommend, and what errors to expect.

Rules and constants were chosen by simulation (`python -m benchmarks honesty`, docs/decisions/020 and 029).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri

from pairflip.least_squares import Floats
from pairflip.selection.criteria import auc, concordance
from pairflip.selection.curve import SizeCurve

UNCERTAIN = 0.3
"""Where a smaller fraction of many chains reached the best set of their fold, the search is uncertain at that size."""
CLEAR = 1.0
"""How many standard errors the error must be lower than that of the mean for columns to be called predictive ..."""
CHANCE = 0.05
"""... and what fraction of shuffled targets may be fitted as well."""
LEVEL = 0.9
DRAWS = 1000
WIDER = 15.0
"""The interval is widened by 1 + WIDER / U for U independent rows."""
UPWARD = 1.5
"""The upper end of the error is wider by 1 + UPWARD g, see above."""
FEWEST = 10
"""Independent rows (or blocks of rows) below which nothing is said."""
MOST_UNITS = 2000
"""More independent rows are drawn in random groups, so that the time does not grow with their number."""
_TOGETHER = 2**22  # numbers of a draw that are in memory at a time
_AUC_DRAWS = 200


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


# The error of the size that was chosen --------------------------------------------------------------------------------


@dataclass(frozen=True)
class ChosenError:
    """Error of the chosen size on new rows, corrected for having chosen it."""

    size: int
    error: float  # half the mean squared error (or deviance), as `SizeCurve.cv_error`
    low: float  # ends of its interval
    high: float
    told: float  # `cv_error` at that size, before the correction
    variance: float  # half the variance (or mean deviance) of the target: what errors are compared with for `r2`
    level: float = LEVEL  # nominal probability of the interval
    squares: bool = True  # whether errors are squared errors
    factor: float = 1.0  # how many times larger or smaller the error over the variance may be: the interval of `r2`
    ranked: tuple[float, float, float] | None = None  # AUC of two classes or concordance, and ends of its interval
    ranking: str = ""  # what that is called

    @property
    def auc(self) -> tuple[float, float, float] | None:
        """The area under the ROC curve on new rows, and the ends of its interval; None without two classes."""
        return self.ranked if self.ranking == "auc" else None

    @property
    def rmse(self) -> tuple[float, float, float]:
        """Root mean square error in the unit of the target, and the ends of its interval; nan for other errors."""
        if not self.squares:
            return float("nan"), float("nan"), float("nan")
        value, low, high = np.sqrt(2.0 * np.array([self.error, self.low, self.high])).tolist()
        return value, low, high

    @property
    def r2(self) -> tuple[float, float, float]:
        """Fraction of the variance that is explained, and the ends of its interval, the lower end first."""
        if not self.variance > 0:
            return float("nan"), float("nan"), float("nan")
        share, low, high = (1.0 - self.error * f / self.variance for f in (1.0, self.factor, 1.0 / self.factor))
        return share, low, high

    def to_json(self) -> dict[str, Any]:
        """Plain numbers by name."""
        values = {"error": (self.error, self.low, self.high)}
        values |= {"rmse": self.rmse, "r2": self.r2} if self.squares else {"explained_deviance": self.r2}
        if self.ranked is not None:
            values[self.ranking] = self.ranked
        record: dict[str, Any] = {"size": self.size, "level": self.level}
        for name, (value, low, high) in values.items():
            record |= {name: value, f"{name}_interval": [low, high]}
        return record


def chosen_error(curve: SizeCurve, *, level: float = LEVEL, draws: int = DRAWS, seed: int = 0) -> ChosenError | None:
    r"""The corrected error of the size that is chosen; None if rows are too few to say.

    The lowest of several errors is low by luck, too. Held-out predictions of all sizes are at hand, so the choice can
    be repeated without a new search: draw the rows with replacement, choose a size by the errors of the rows drawn, and
    take the error of that size on the rows that were not drawn (bootstrap bias-corrected cross validation, Tsamardinos,
    Greasidou & Borboudakis, Machine Learning 107, 2018). The mean over many draws is the corrected error.

    The interval comes from the spread of these errors on a logarithmic scale, widened by :math:`1 + c / U` for U rows,
    because of few rows the spread is too small more often than too large. Large errors are rare and missing from many
    samples: the upper end is wider, by :math:`1 + a\, g` with :math:`g = \mathrm{skewness} / \sqrt U` of the rows'
    errors. For :math:`R^2`, whose numerator and denominator share these rows, the interval is symmetric on that scale.
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"level is {level}; expected a number between 0 and 1, for instance 0.9.")
    size = chosen_size(curve)
    predictions = curve.predictions[None] if curve.ridge_predictions is None else curve.ridge_predictions
    sums, total = by_unit(curve, curve.row_errors(predictions))
    if total.size < FEWEST:
        return None
    group = np.arange(total.size)
    if total.size > MOST_UNITS:  # rows in no order, put together, vary as much
        group = np.random.default_rng([seed, total.size]).permutation(total.size) % MOST_UNITS
        order, starts = np.argsort(group, kind="stable"), np.searchsorted(np.sort(group), np.arange(MOST_UNITS))
        sums, total = np.add.reduceat(sums[..., order], starts, axis=-1), np.add.reduceat(total[order], starts)
    scores, choices, outside = _outside_scores(
        sums, total, curve.sizes, single_rows(curve), draws, np.random.default_rng(seed)
    )
    error = float(scores.mean())
    quantile, spread = float(ndtri(0.5 + level / 2.0)), 0.0
    if np.all(scores > 0):
        spread = quantile * float(np.std(np.log(scores))) * (1.0 + WIDER / total.size)
    errors, weights = by_unit(curve, curve.row_errors(curve.predictions[curve.at(size)]))
    off = errors / weights - np.mean(errors / weights)
    scale = float(np.sqrt(np.mean(off**2)))
    skewness = max(0.0, float(np.mean((off / scale) ** 3))) if scale > 0 else 0.0
    return ChosenError(
        size=size,
        error=error,
        low=error * float(np.exp(-spread)),
        high=error * float(np.exp((1.0 + UPWARD * skewness / np.sqrt(off.size)) * spread)),
        told=float(curve.cv_error[curve.at(size)]),
        variance=0.5 * variance_of_target(curve),
        level=level,
        squares=curve.loss.squared,
        factor=float(np.exp(spread)),
        ranked=None
        if curve.ranked is None
        else _outside_rank(curve, predictions, choices, outside[:, group], quantile),
        ranking=curve.loss.words.ranking,
    )


def _outside_rank(
    curve: SizeCurve, predictions: Floats, choices: NDArray[np.int64], outside: NDArray[np.bool_], quantile: float
) -> tuple[float, float, float] | None:
    """Mean AUC, or concordance, of what is chosen by the rows drawn, on rows that were not drawn, and an interval.

    The interval is made on the logit scale. `choices` (draws, 2) are ridge and size, `outside` (`_AUC_DRAWS`, U) the
    units that were not drawn. Risks are known for the ridge that was chosen, and hardly depend on it.
    """
    some = curve.weights > 0
    unit = np.unique(curve.held_out_unit[some], return_inverse=True)[1]
    observed, weights = curve.observed[some], curve.weights[some]
    rank: Callable[[Floats, Floats, Floats], float] = auc
    if curve.survival is not None:
        observed, rank = np.column_stack([curve.survival.times, curve.observed])[some], concordance
        predictions = np.broadcast_to(curve.survival.risks, predictions.shape)
    areas = np.array(
        [
            rank(observed[rows], predictions[ridge, size][some][rows], weights[rows])
            for (ridge, size), rows in zip(choices[: len(outside)], outside[:, unit], strict=True)
        ]
    )
    areas = areas[np.isfinite(areas)]
    if areas.size < len(outside) // 2:  # hardly any draw leaves rows of both classes
        return None
    middle, spread = logit(np.clip(areas.mean(), 1e-3, 1 - 1e-3)), np.std(logit(np.clip(areas, 1e-2, 1 - 1e-2)))
    low, high = expit(middle - quantile * spread), expit(middle + quantile * spread)
    return float(areas.mean()), float(low), float(high)


def _outside_scores(
    sums: Floats, total: Floats, sizes: NDArray[np.int64], single: bool, draws: int, rng: np.random.Generator
) -> tuple[Floats, NDArray[np.int64], NDArray[np.bool_]]:
    """Half the mean squared error, on the units that were not drawn, of what is chosen by those that were (draws,).

    Where there are several ridge terms, the one with the lowest error at any size is chosen first, as it was. Also the
    choices (draws, 2), ridge and size; and of the first draws, which units were not drawn (`_AUC_DRAWS`, U).
    """
    n, scores, choices, not_drawn = total.size, [], [], []
    squares = sums**2 / total
    step = max(1, _TOGETHER // (n + sums.shape[0] * sums.shape[1]))
    for first in range(0, draws, step):
        counts = rng.multinomial(n, np.full(n, 1.0 / n), size=min(step, draws - first)).astype(np.float64)
        weight = (counts @ total)[:, None, None]
        mean = np.einsum("bu,rsu->brs", counts, sums, optimize=True) / weight
        spread = np.einsum("bu,rsu->brs", counts, squares, optimize=True) / weight - mean**2
        every = np.arange(len(counts))
        ridge = np.argmin(mean.min(axis=2), axis=1)
        error = np.sqrt(np.maximum(spread[every, ridge], 0.0) / (n - 1))
        at = choose(mean[every, ridge], error, sizes, single)
        outside = (counts == 0).astype(np.float64)
        weight_outside = outside @ total
        some = weight_outside > 0
        scores.append(0.5 * np.einsum("bu,bu->b", outside, sums[ridge, at])[some] / weight_outside[some])
        choices.append(np.stack([ridge, at], axis=1))
        not_drawn.append(counts[: max(0, _AUC_DRAWS - first)] == 0)
    return np.concatenate(scores), np.concatenate(choices), np.concatenate(not_drawn)
