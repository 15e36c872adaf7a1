"""The replica theory's errors at a size, and the measured errors of n problems beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed

from pairflip.least_squares import Floats
from pairflip.paper.reproduce.finite_sample import factors
from pairflip.paper.reproduce.problems import MODEL, Annealed
from pairflip.paper.reproduce.verdict import Limit, extrapolate, mean_and_bar
from pairflip.paper.theory.curves import at_point, curve_over_beta
from pairflip.paper.theory.model import Planted
from pairflip.paper.theory.states import solve

CURVE_RHOS = sorted((*(round(0.005 * i, 4) for i in range(2, 41)), 0.0625, 0.1175, 0.1225, 0.1275))
"""Sizes of the theory's curves in figures 2 and 3."""


@dataclass(frozen=True)
class Levels:
    """Errors of the theory at one size."""

    epsilon_inf: float  # at temperature zero: a formal value, and a lower bound
    epsilon_g_inf: float
    epsilon_at: float  # at the AT point
    epsilon_g_at: float
    at_beta: float  # inverse temperature of the AT point
    zero_energy: bool  # whether the formal solution at temperature zero fits all rows exactly


def model_at(alpha: float) -> Planted:
    """The model with this many rows per column."""
    return replace(MODEL, alpha=alpha)


def theory_at(rho: float, alpha: float) -> Levels:
    """The theory's errors at the size rho = K / N of problems with alpha = M / N."""
    return _levels(round(rho, 12), model_at(alpha))


@cache
def _levels(rho: float, model: Planted) -> Levels:
    ground, at = solve(np.inf, rho, model), at_point(rho, model)
    errors = ground.epsilon, ground.epsilon_g, at.state.epsilon, at.state.epsilon_g
    return Levels(*errors, at.beta, bool(ground.zero_energy))


def cooling(betas: Floats, rho: float, alpha: float) -> Floats:
    """The theory's training error while cooling."""
    return curve_over_beta(betas, rho, model_at(alpha)).epsilon


def table(alpha: float) -> list[dict[str, Any]]:
    """Rows of theory.csv: the levels at many sizes, for the curves of figures 2 and 3."""
    rows = []
    for rho in CURVE_RHOS:
        if rho < alpha:
            level = theory_at(rho, alpha)
            row = {"rho": rho, "theory_inf": level.epsilon_inf, "theory_at": level.epsilon_at}
            row |= {"theory_g_inf": level.epsilon_g_inf, "theory_g_at": level.epsilon_g_at}
            rows.append(row | {"at_temperature": 1.0 / level.at_beta, "zero_energy": level.zero_energy})
    return rows


@dataclass(frozen=True, eq=False)
class SizePoints:
    """An error of n problems at S sizes of N columns."""

    N: int
    sizes: tuple[int, ...]
    values: Floats  # (n, S)
    matched: Floats  # (n, S): divided by the factors of the problems' own coefficients and noise
    levels: tuple[Levels, ...]  # the theory at the number of rows that was annealed

    @property
    def rhos(self) -> Floats:
        """K / N."""
        return np.asarray(self.sizes) / self.N

    def rows(self, error: str) -> list[dict[str, Any]]:
        """What figures 2 and 3 have in common: one row for each size, with the name of the error."""
        mean, bar = mean_and_bar(self.values)
        matched, matched_bar = mean_and_bar(self.matched)
        return [
            {
                "N": self.N,
                "k": k,
                "rho": k / self.N,
                "problems": self.values.shape[0],
                error: mean[at],
                "error_bar": bar[at],
                f"matched_{error}": matched[at],
                "matched_error_bar": matched_bar[at],
            }
            for at, k in enumerate(self.sizes)
        ]


def points_of(annealed: Annealed, quantity: Literal["epsilon", "epsilon_g"], n_jobs: int | None = None) -> SizePoints:
    """A measured error at every size, with the theory's levels beside it."""
    values = annealed.reached if quantity == "epsilon" else annealed.loo_error
    assert values is not None
    alpha = annealed.M / annealed.N
    annealed_alpha = (annealed.M - (quantity == "epsilon_g")) / annealed.N

    def at_size(k: int) -> tuple[Levels, Floats]:
        rho = k / annealed.N
        # The factor is a ratio: one row less changes it by a few parts in 1,000, and both figures share it.
        betas = tuple(theory_at(rho, alpha).at_beta / over for over in (30.0, 8.0, 3.0, 1.0))
        return theory_at(rho, annealed_alpha), getattr(factors(annealed.problems, betas, rho, alpha), quantity)[:, -1]

    by_size = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(at_size)(k) for k in annealed.sizes)
    matched = values / np.stack([factor for _, factor in by_size], axis=1)
    return SizePoints(annealed.N, annealed.sizes, values, matched, tuple(level for level, _ in by_size))


def common_rhos(all_points: Sequence[SizePoints]) -> list[float]:
    """Sizes rho that every N has."""
    return sorted(set.intersection(*({round(float(rho), 6) for rho in each.rhos} for each in all_points)))


def limit_at(all_points: Sequence[SizePoints], rho: float, level: str) -> Limit:
    """Matched error over a level of the theory, minus 1, extrapolated in 1 / N."""
    ratios = []
    for each in all_points:
        at = int(np.argmin(np.abs(each.rhos - rho)))
        ratios.append(mean_and_bar(each.matched[:, at] / getattr(each.levels[at], level) - 1.0))
    values, bars = zip(*((float(mean), float(bar)) for mean, bar in ratios), strict=True)
    return extrapolate([each.N for each in all_points], values, bars)
