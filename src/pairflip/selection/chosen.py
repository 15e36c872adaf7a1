r"""The error of the size that was chosen, corrected for the choosing (bootstrap bias-corrected cross validation).

The lowest of several errors is low by luck, too. Held-out predictions of all sizes are at hand, so the choice can be
repeated without a new search: draw the rows with replacement, choose a size by the errors of the rows drawn, and take
the error of that size on the rows that were not drawn (Tsamardinos, Greasidou & Borboudakis, Machine Learning 107,
2018). The mean over many draws is the corrected error.

The spread of these errors is the basis of the interval. It is taken on a logarithmic scale, because errors are
positive, and widened by :math:`1 + c / U` for U rows: with few rows the spread is itself too small more often than too
large. The constant c was chosen by simulation (docs/decisions/029-the-error-of-what-was-chosen.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from pairflip.least_squares import Floats
from pairflip.selection.curve import SizeCurve
from pairflip.selection.verdict import choose, recommended_size, single_rows, variance_of_target

LEVEL = 0.9
DRAWS = 1000
WIDER = 18.0
"""The interval is widened by 1 + WIDER / U for U independent rows."""
FEWEST = 10
"""Independent rows (or blocks of rows) below which nothing is said."""
_TOGETHER = 2**22  # numbers of a draw that are in memory at a time


@dataclass(frozen=True)
class ChosenError:
    """Error of the chosen size on new rows, corrected for having chosen it.

    Attributes
    ----------
    size : int
        Number of columns that was chosen.
    error, low, high : float
        Half the mean squared error (or deviance), as `cv_error`, and the ends of its interval.
    told : float
        `cv_error` at that size, before the correction.
    variance : float
        Half the variance of the target (for classes and counts, half its mean deviance): what the errors are compared
        with for `r2`.
    level : float
        Nominal probability of the interval.
    squares : bool
        Whether errors are squared errors.
    """

    size: int
    error: float
    low: float
    high: float
    told: float
    variance: float
    level: float = LEVEL
    squares: bool = True

    @property
    def rmse(self) -> tuple[float, float, float]:
        """Root mean square error in the unit of the target, and the ends of its interval; nan for other errors."""
        if not self.squares:
            return float("nan"), float("nan"), float("nan")
        root = np.sqrt(2.0 * np.array([self.error, self.low, self.high]))
        return float(root[0]), float(root[1]), float(root[2])

    @property
    def r2(self) -> tuple[float, float, float]:
        """Fraction of the variance that is explained, and the ends of its interval, the lower end first."""
        if not self.variance > 0:
            return float("nan"), float("nan"), float("nan")
        share = 1.0 - np.array([self.error, self.high, self.low]) / self.variance
        return float(share[0]), float(share[1]), float(share[2])

    def to_json(self) -> dict[str, Any]:
        """Plain numbers by name."""
        rmse, r2 = self.rmse, self.r2
        errors = {
            "size": self.size,
            "level": self.level,
            "error": self.error,
            "error_interval": [self.low, self.high],
        }
        if not self.squares:
            return errors | {"explained_deviance": r2[0], "explained_deviance_interval": list(r2[1:])}
        return errors | {
            "rmse": rmse[0],
            "rmse_interval": list(rmse[1:]),
            "r2": r2[0],
            "r2_interval": list(r2[1:]),
        }


def chosen_error(curve: SizeCurve, *, level: float = LEVEL, draws: int = DRAWS, seed: int = 0) -> ChosenError | None:
    """The corrected error of the recommended size; None if none is recommended, or rows are too few to say.

    Parameters
    ----------
    curve : SizeCurve
        The result, with held-out predictions of every size.
    level : float
        Nominal probability of the interval, between 0 and 1.
    draws : int
        How often rows are drawn.
    seed : int
        Of these draws.
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"level is {level}; expected a number between 0 and 1, for instance 0.9.")
    size = recommended_size(curve)
    told = curve.predictions[None] if curve.ridge_predictions is None else curve.ridge_predictions
    sums, total = _by_unit(curve, told)
    if size == 0 or total.size < FEWEST:
        return None
    scores = _outside_scores(sums, total, curve.sizes, single_rows(curve), draws, np.random.default_rng(seed))
    error, uncorrected = float(scores.mean()), float(curve.cv_error[curve.at(size)])
    factor = 1.0
    if np.all(scores > 0):
        spread = float(np.std(np.log(scores))) * (1.0 + WIDER / total.size)
        factor = float(np.exp(ndtri(0.5 + level / 2.0) * spread))
    ends = error / factor, error * factor
    about = 0.5 * variance_of_target(curve)
    return ChosenError(size, error, *ends, uncorrected, about, level, curve.loss.squared)


def _by_unit(curve: SizeCurve, told: Floats) -> tuple[Floats, Floats]:
    """Weighted errors (R, S, U) of predictions (R, S, P) and weights (U,), summed over independent units."""
    unit, w = curve.held_out_unit, curve.weights
    n = int(unit.max()) + 1
    total = np.bincount(unit, w, n)
    squares = w * curve.row_errors(told)
    sums = np.apply_along_axis(lambda each: np.bincount(unit, each, n), -1, squares)
    return np.asarray(sums[..., total > 0]), np.asarray(total[total > 0])


def _outside_scores(
    sums: Floats, total: Floats, sizes: NDArray[np.int64], single: bool, draws: int, rng: np.random.Generator
) -> Floats:
    """Half the mean squared error, on the units that were not drawn, of what is chosen by those that were (draws,).

    Where there are several ridge terms, the one with the lowest error at any size is chosen first, as it was.

    Parameters
    ----------
    sums, total : (R, S, U), (U,)
        Squared errors and weights by unit.
    sizes : (S,)
        Numbers of columns.
    single : bool
        Whether single rows were left out, see `choose`.
    draws, rng
        How often, and by which random numbers.
    """
    n, scores = total.size, []
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
        left = outside @ total
        own = np.einsum("bu,bu->b", outside, sums[ridge, at])
        scores.append(0.5 * own[left > 0] / left[left > 0])
    return np.concatenate(scores)
