"""The problems of the paper: draws of the planted model, each with its own seeds."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pairflip.datasets import Planted as Drawn
from pairflip.datasets import make_planted
from pairflip.problem import SubsetProblem
from pairflip.theory import Planted

MODEL = Planted(alpha=0.5, rho0=0.1, var_x=10.0, var_noise=0.1)
"""What the problems are drawn from (the paper's parameters)."""


@dataclass(frozen=True, eq=False)
class PlantedProblem:
    """One problem: its table, what is known of its truth, and the seed of its walks."""

    drawn: Drawn
    problem: SubsetProblem
    seed: int

    @property
    def noise_power(self) -> float:
        r""":math:`\|\xi\|^2 / M`."""
        return float(np.mean(self.drawn.noise**2))


def draw(N: int, index: int, seed: int, alpha: float = MODEL.alpha) -> PlantedProblem:
    """Problem number `index` of N columns; equal seeds give equal problems, also with more of them."""
    model = replace(MODEL, alpha=alpha)
    key = (seed, N, round(1000 * alpha), index)
    data_seed, walk_seed = (int(word) for word in np.random.SeedSequence(key).generate_state(2))
    drawn = make_planted(N, model.alpha, model.rho0, model.var_x, model.var_noise, seed=data_seed)
    return PlantedProblem(drawn, SubsetProblem(drawn.X, drawn.y, center=None), walk_seed)


def draw_all(N: int, count: int, seed: int, alpha: float = MODEL.alpha) -> list[PlantedProblem]:
    """The first `count` problems of N columns."""
    return [draw(N, index, seed, alpha) for index in range(count)]
