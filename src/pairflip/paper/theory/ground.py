r"""Zero temperature in closed form: a column is selected when its field exceeds a threshold, :math:`|r| > \theta`.

With :math:`r = \tau t` the threshold in units of tau solves
:math:`\rho = (1 - \rho_0) \operatorname{erfc}(\theta / \sqrt2) + \rho_0 \operatorname{erfc}(\theta / \sqrt{2 v})`,
and :math:`A(c) = \mathbb E[z^2; |z| > c] = \operatorname{erfc}(c / \sqrt2) + 2 c \phi(c)` gives the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scipy.special import erf, erfc, erfcinv

from pairflip.paper.theory.model import Planted

_ROOT2 = math.sqrt(2.0)


def root_between(function: Callable[[float], float], low: float, high: float, **how: Any) -> float:
    """Brent's method, with its options; what it is taken from takes a third of a second to load, so not before."""
    from scipy.optimize import brentq

    return float(brentq(function, low, high, **how))


def _density(c: float) -> float:
    return math.exp(-0.5 * c * c) / math.sqrt(2.0 * math.pi)


def _second_moment(c: float) -> float:
    return float(erfc(c / _ROOT2)) + 2.0 * c * _density(c)


@dataclass(frozen=True)
class Ground:
    r"""Solution at :math:`u = \infty`: g, the threshold in units of tau, a, and the true positive rate."""

    g: float
    threshold: float
    a: float
    true_positive_rate: float


def threshold(rho: float, model: Planted, g: float) -> float:
    r"""The threshold :math:`\theta / \tau` at which a fraction rho of the columns is selected at zero temperature."""
    r0, root = model.rho0, math.sqrt(2.0 * (1.0 + g))
    # In theta / (root of v) the answer lies between those of a table of true columns only and of null ones only.
    top = float(erfcinv(rho)) * root * (1.0 + 1e-12)

    def excess(theta: float) -> float:
        return (1.0 - r0) * float(erfc(theta / _ROOT2)) + r0 * float(erfc(theta / root)) - rho

    return root_between(excess, 0.0, top, xtol=1e-300, rtol=1e-15, maxiter=300)


def _noise(rho: float, model: Planted, G: float) -> float:
    """The second equation, F, at u = infinity."""
    g = math.exp(G)
    v, theta = 1.0 + g, threshold(rho, model, g)
    c = theta / math.sqrt(v)
    # 1 + v <(1-p)^2 z^2> - 2 <(1-p) z^2> of a true column, where p is 0 below the threshold and 1 above it.
    missed = float(erf(c / _ROOT2)) - 2.0 * c * _density(c)
    if c < 0.1:  # the two terms cancel: series of E[z^2; |z| < c]
        missed = math.sqrt(2.0 / math.pi) * c**3 * _series(c * c)
    true = 1.0 + (v - 2.0) * missed
    return (
        (1.0 - model.rho0) * _second_moment(theta) + model.rho0 * true + g * model.var_noise / model.var_x - model.alpha
    )


def _series(c2: float) -> float:
    """Sum over k of (-c^2 / 2)^k / (k! (2 k + 3))."""
    total, term = 0.0, 1.0
    for k in range(12):
        total += term / (2 * k + 3)
        term *= -0.5 * c2 / (k + 1)
    return total


def solve_ground(rho: float, model: Planted, G: float) -> Ground | None:
    r"""The ground state nearest to a guess, or None where there is none with a > 0."""
    for reach in (1e-6, 1e-4, 1e-2, 0.1, 0.5):
        low, high = _noise(rho, model, G - reach), _noise(rho, model, G + reach)
        if (low > 0) != (high > 0):
            g = math.exp(root_between(lambda each: _noise(rho, model, each), G - reach, G + reach, xtol=1e-15))
            break
    else:
        return None
    theta = threshold(rho, model, g)
    root_v = math.sqrt(1.0 + g)
    at_edge = (1.0 - model.rho0) * _density(theta) + model.rho0 * _density(theta / root_v) / root_v
    a = model.alpha - rho - 2.0 * theta * at_edge
    return Ground(g, theta, a, float(erfc(theta / root_v / _ROOT2))) if a > 0 else None


def critical_rho(alpha: float) -> float:
    r"""The rho beyond which noise alone can be fitted exactly: :math:`\mathbb E[z^2; |z| > \theta] = \alpha`.

    There :math:`\tau^2` diverges at zero temperature. From alpha = 1 on there is no such rho (infinite).
    """
    if alpha >= 1.0:
        return math.inf
    c = root_between(lambda each: _second_moment(each) - alpha, 0.0, 40.0, xtol=1e-15)
    return float(erfc(c / _ROOT2))
