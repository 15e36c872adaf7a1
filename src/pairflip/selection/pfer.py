r"""How many columns without effect may pass a threshold of selection frequency: bounds on an expected number.

q columns are selected in each of 2B half-samples of p candidates, and a column passes if it was selected in at least a
fraction :math:`\tau` of them. Let V be the number of columns that pass although their probability to be selected in a
half-sample is at most :math:`\theta = q/p`, that of a column drawn blindly.

*Meinshausen & Buhlmann* (JRSS B 72, 2010, theorem 1), without an assumption on distributions:

.. math:: E[V] \le \frac{q^2}{(2\tau - 1)\, p} .

*Shah & Samworth* (JRSS B 75, 2013, eq. 8), for complementary pairs, if the frequencies of such columns are r-concave:

.. math:: E[V] \le p \min\{D(\theta^2, 2\tau - 1, B, -\tfrac12),\; D(\theta, \tau, 2B, -\tfrac14)\} ,

with D(mean, t, n, r) the largest probability :math:`P(X \ge t)` of an r-concave X on {0, 1/n, ..., 1} of that mean or
a lower one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

_LOWEST, _HIGHEST = 1e-12, 1e9  # of the shift a: a point mass at 0, and uniform
_SHIFTS = 60  # tried in each interval, before the best one is refined
_ROUNDING = 1e-9


@dataclass(frozen=True)
class FalseBound:
    """Bounds on the expected number of columns without effect that pass a threshold; `best` is the lower one.

    Attributes
    ----------
    threshold : float
        Selection frequency that a column must reach.
    worst_case : float
        Meinshausen & Buhlmann's bound; infinite for thresholds up to 1/2.
    r_concave : float
        Shah & Samworth's bound.
    """

    threshold: float
    worst_case: float
    r_concave: float

    @property
    def best(self) -> float:
        """The lower of the two."""
        return min(self.worst_case, self.r_concave)


def false_bound(q: int, p: int, pairs: int, threshold: float) -> FalseBound:
    """Both bounds on the expected number of columns without effect that pass; never more than p."""
    if not 0.5 < threshold <= 1.0:
        raise ValueError(f"threshold is {threshold}; expected a fraction above 0.5 and up to 1, for instance 0.8.")
    blind = q / p
    tail = min(
        r_concave_tail(blind**2, 2.0 * threshold - 1.0, pairs, -0.5),
        r_concave_tail(blind, threshold, 2 * pairs, -0.25),
    )
    return FalseBound(threshold, min(float(p), q * q / ((2.0 * threshold - 1.0) * p)), p * tail)


@lru_cache(maxsize=4096)
def r_concave_tail(mean: float, threshold: float, steps: int, r: float) -> float:
    r"""D: the largest :math:`P(X \ge t)` of an r-concave X on {0, 1/n, ..., 1} whose mean is at most `mean`.

    r-concave (r < 0) means that :math:`f^r` is convex where the probabilities f are positive. The largest tail has
    :math:`f(i) \propto (a + i)^{1/r}` on 0, ..., k and what the mean leaves over on k + 1 (Shah & Samworth, appendix):
    we look through k and a. Thresholds up to twice the mean are not bounded (1).
    """
    center, t = mean * steps, int(np.ceil(threshold * steps - _ROUNDING))
    if center <= 0.0:
        return 0.0
    if t <= int(np.ceil(2.0 * center - _ROUNDING)):
        return 1.0
    if t > steps:
        return 0.0
    upper = _shift(center, t - 1, r)
    best = 0.0
    for k in range(t - 1, steps):
        lower = _shift(center, k + 1, r)
        low, high = np.log(lower), np.log(max(upper, lower))
        for _ in range(3):  # each time around the best one
            shifts = np.linspace(low, high, _SHIFTS)
            tails = _tails(np.exp(shifts), center, k, t, r)
            at, step = int(np.argmax(tails)), (high - low) / (_SHIFTS - 1)
            low, high = max(low, shifts[at] - step), min(high, shifts[at] + step)
            best = max(best, float(tails[at]))
        upper = lower
    return min(1.0, best)


def _shift(center: float, k: int, r: float) -> float:
    """The a for which (a + i)^(1/r) on 0, ..., k has mean `center`; the largest where all have a lower one."""
    from scipy.optimize import brentq

    i = np.arange(k + 1.0)

    def above(log_a: float) -> float:
        f = (np.exp(log_a) + i) ** (1.0 / r)
        return float(f @ i / f.sum() - center)

    if above(np.log(_HIGHEST)) <= 0.0:
        return _HIGHEST
    if above(np.log(_LOWEST)) >= 0.0:
        return _LOWEST
    return float(np.exp(brentq(above, np.log(_LOWEST), np.log(_HIGHEST), xtol=1e-13)))


def _tails(shifts: np.ndarray, center: float, k: int, t: int, r: float) -> np.ndarray:
    """P(X >= t) for each shift: c (a + i)^(1/r) on 0, ..., k, and on k + 1 what makes the mean `center`."""
    i = np.arange(k + 1.0)
    f = (shifts[:, None] + i) ** (1.0 / r)
    c = (k + 1.0 - center) / (f @ (k + 1.0 - i))
    return np.asarray(1.0 - c * f[:, :t].sum(axis=1))
