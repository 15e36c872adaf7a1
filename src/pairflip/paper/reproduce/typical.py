"""What the replica theory says of the problems: epsilon over beta, both errors at the AT point and at T = 0."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pairflip.least_squares import Floats
from pairflip.paper.reproduce.walks import MODEL
from pairflip.paper.theory import Planted, at_point, curve_over_beta, solve


def model_at(alpha: float) -> Planted:
    """The model with this many rows per column."""
    return replace(MODEL, alpha=alpha)


@dataclass(frozen=True)
class Levels:
    r"""Errors of the theory at one size.

    Attributes
    ----------
    epsilon_inf, epsilon_g_inf
        At temperature zero: formal values; the first is a lower bound.
    epsilon_at, epsilon_g_at
        At the AT point.
    at_beta
        Inverse temperature of the AT point.
    zero_energy
        Whether the formal solution at temperature zero fits all rows exactly.
    """

    epsilon_inf: float
    epsilon_g_inf: float
    epsilon_at: float
    epsilon_g_at: float
    at_beta: float
    zero_energy: bool


def levels(rho: float, alpha: float) -> Levels:
    """The theory's errors at the size rho = K / N of problems with alpha = M / N."""
    asked = round(rho, 12), model_at(alpha)
    if asked not in _LEVELS:
        _LEVELS[asked] = _levels(*asked)
    return _LEVELS[asked]


_LEVELS: dict[tuple[float, Planted], Levels] = {}
_COOLING: dict[tuple[bytes, float, Planted], Floats] = {}


def remember(rho: float, alpha: float, found: Levels) -> None:
    """Levels that were solved elsewhere."""
    _LEVELS[round(rho, 12), model_at(alpha)] = found


def remember_cooling(betas: Floats, rho: float, alpha: float, epsilon: Floats) -> None:
    """Training errors while cooling that were solved elsewhere."""
    _COOLING[betas.tobytes(), rho, model_at(alpha)] = epsilon


def _levels(rho: float, model: Planted) -> Levels:
    ground, at = solve(np.inf, rho, model), at_point(rho, model)
    return Levels(
        ground.epsilon, ground.epsilon_g, at.state.epsilon, at.state.epsilon_g, at.beta, bool(ground.zero_energy)
    )


def cooling(betas: Floats, rho: float, alpha: float) -> Floats:
    r"""The theory's training error while cooling."""
    known = _COOLING.get((betas.tobytes(), rho, model_at(alpha)))  # the same for every N
    return curve_over_beta(betas, rho, model_at(alpha)).epsilon if known is None else known


DENSE = (*(round(0.005 * i, 4) for i in range(2, 41)), 0.0625, 0.1175, 0.1225, 0.1275)
"""Sizes of the curves."""


def table(alpha: float) -> list[dict[str, Any]]:
    """Rows of theory.csv: the levels at many sizes, for the curves of figures 2 and 3."""
    rows = []
    for rho in sorted(DENSE):
        if rho < alpha:
            level = levels(rho, alpha)
            rows.append(
                {
                    "rho": rho,
                    "theory_inf": level.epsilon_inf,
                    "theory_at": level.epsilon_at,
                    "theory_g_inf": level.epsilon_g_inf,
                    "theory_g_at": level.epsilon_g_at,
                    "at_temperature": 1.0 / level.at_beta,
                    "zero_energy": level.zero_energy,
                }
            )
    return rows
