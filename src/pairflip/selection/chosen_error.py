r"""The error of the size that was chosen, corrected for the choosing (bootstrap bias-corrected cross validation).

The lowest of several errors is low by luck, too. Held-out predictions of all sizes are at hand, so the choice can be
repeated without a new search: draw the rows with replacement, choose a size by the errors of the rows drawn, and take
the error of that size on the rows that were not drawn (Tsamardinos, Greasidou & Borboudakis, Machine Learning 107,
2018). The mean over many draws is the corrected error.

The spread of these errors is the basis of the interval. It is taken on a logarithmic scale, because errors are
positive, and widened by :math:`1 + c / U` for U rows: with few rows the spread is itself too small more often than too
large. Large errors are rare, so a sample that lacks them is more likely than one that has too many: the upper end is
wider, by :math:`1 + a\, g` with :math:`g = \mathrm{skewness} / \sqrt U` of the rows' errors (0 to 1). For
:math:`R^2`, whose numerator and denominator share these rows, the interval is symmetric on the logarithmic scale. The
constants were chosen by simulation (docs/decisions/029-the-error-of-what-was-chosen.md).
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
from pairflip.selection.verdict import by_unit, choose, chosen_size, single_rows, variance_of_target

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
    """The corrected error of the size that is chosen; None if rows are too few to say."""
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
