"""Points over the size: a measured error of n problems, and the theory's levels beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from joblib import Parallel, delayed

from pairflip.least_squares import Floats
from pairflip.paper.reproduce import typical
from pairflip.paper.reproduce.own import factors, own_betas
from pairflip.paper.reproduce.typical import Levels
from pairflip.paper.reproduce.verdict import Limit, extrapolate, mean_and_bar
from pairflip.paper.reproduce.walks import Walks


@dataclass(frozen=True, eq=False)
class SizePoints:
    """An error of n problems (n, S) at S sizes of N columns; `matched` is divided by the problems' own factors.

    `levels` is the theory at the number of rows that the walks had.
    """

    N: int
    sizes: tuple[int, ...]
    values: Floats
    matched: Floats
    levels: tuple[Levels, ...]

    @property
    def rhos(self) -> Floats:
        """K / N."""
        return np.asarray(self.sizes) / self.N


def points_of(walks: Walks, quantity: Literal["epsilon", "epsilon_g"], n_jobs: int | None = None) -> SizePoints:
    """A measured error at every size, with the theory's levels beside it."""
    values = walks.reached if quantity == "epsilon" else walks.loo_error
    assert values is not None
    alpha = walks.M / walks.N
    walked_alpha = (walks.M - (quantity == "epsilon_g")) / walks.N

    def own(k: int) -> tuple[Levels, Floats]:
        rho = k / walks.N
        # The factor is a ratio: one row less changes it by a few parts in 1,000, and both figures share it.
        betas = own_betas(typical.levels(rho, alpha).at_beta)
        return typical.levels(rho, walked_alpha), getattr(factors(walks.problems, betas, rho, alpha), quantity)[:, -1]

    found = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(own)(k) for k in walks.sizes)
    matched = values / np.stack([factor for _, factor in found], axis=1)
    return SizePoints(walks.N, walks.sizes, values, matched, tuple(level for level, _ in found))


def common_rhos(all_points: Sequence[SizePoints]) -> list[float]:
    """Sizes rho that every N has."""
    sets = [{round(float(rho), 6) for rho in each.rhos} for each in all_points]
    return sorted(set.intersection(*sets))


def limit_at(all_points: Sequence[SizePoints], rho: float, level: str) -> Limit:
    """Matched error over a level of the theory, minus 1, extrapolated in 1 / N."""
    values, bars = [], []
    for each in all_points:
        at = int(np.argmin(np.abs(each.rhos - rho)))
        theory = getattr(each.levels[at], level)
        mean, bar = mean_and_bar(each.matched[:, at] / theory - 1.0)
        values.append(float(mean))
        bars.append(float(bar))
    return extrapolate([each.N for each in all_points], values, bars)
