"""How much is computed: a scale is a value, and its cost is known before it is run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pairflip.search.schedule import Schedule

SHOWN = (0.05, 0.1, 0.15)
"""Sizes rho = K / N of figure 1."""


@dataclass(frozen=True)
class RunScale:
    """Numbers of problems, of columns and of seeds.

    Attributes
    ----------
    annealed, rhos
        (columns N, problems) of figures 1 and 2, and sizes rho of figure 2.
    crossvalidated, loo_rhos
        The same of figure 3, where every left-out row is annealed.
    loo_objective, loo_alphas, loo_sizes
        (columns, problems, chains) of section III, its rows per column M / N, its numbers of columns selected.
    supernova
        (chains, seeds) of the tables.
    """

    name: str
    annealed: tuple[tuple[int, int], ...]
    rhos: tuple[float, ...]
    crossvalidated: tuple[tuple[int, int], ...]
    loo_rhos: tuple[float, ...]
    loo_objective: tuple[int, int, int]
    loo_alphas: tuple[float, ...]
    loo_sizes: tuple[int, ...]
    supernova: tuple[tuple[int, int], ...]


_TWENTY = tuple(round(0.01 * i, 2) for i in range(1, 21))

PAPER = RunScale(
    name="paper",
    annealed=((100, 100), (200, 100), (400, 100)),
    rhos=_TWENTY,
    crossvalidated=((100, 100), (200, 100), (400, 100)),
    loo_rhos=_TWENTY,
    loo_objective=(100, 20, 4),
    loo_alphas=(0.5, 1.0, 2.0),
    loo_sizes=(1, 2, 4, 6, 8, 10, 12, 15, 20, 25, 30),
    supernova=((1, 20), (4, 5), (16, 5), (64, 5)),
)
QUICK = RunScale(
    name="quick",
    annealed=((100, 40), (200, 32), (400, 16)),
    rhos=(0.02, 0.03, 0.05, 0.07, 0.1, 0.12, 0.15, 0.2),
    crossvalidated=((40, 80), (80, 40), (120, 24)),
    loo_rhos=(0.025, 0.05, 0.075, 0.1, 0.125, 0.15, 0.2),
    loo_objective=(100, 8, 1),
    loo_alphas=(0.5, 1.0, 2.0),
    loo_sizes=(2, 5, 8, 10, 15, 20, 30),
    supernova=((1, 10), (4, 4)),
)
SCALES = {scale.name: scale for scale in (QUICK, PAPER)}


def sizes_of(rhos: tuple[float, ...], N: int) -> list[int]:
    """Numbers of columns K, the nearest to rho N, each once and at least 1."""
    return sorted({max(1, int(rho * N + 0.5)) for rho in rhos})


def get_ready(engine: Any, scale: RunScale) -> None:
    """Have a device's kernels for figure 3 compiled, or loaded, in threads of their own."""
    engine.get_ready([(k, N) for N, _ in scale.crossvalidated for k in sizes_of(scale.loo_rhos, N)])


@dataclass(frozen=True)
class Cost:
    """Attempted flips, and the seconds one CPU core needs for them by a cost model."""

    flips: float = 0.0
    seconds: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.flips + other.flips, self.seconds + other.seconds)

    def __str__(self) -> str:
        minutes = self.seconds / 60
        time = f"{self.seconds:.0f} s" if minutes < 2 else f"{minutes:.0f} min" if minutes < 120 else (
            f"{minutes / 60:.0f} h"
        )  # fmt: skip
        return f"{self.flips:.2g} flips, about {time} on one CPU core"


def walks_cost(N: int, sizes: list[int], walks: int) -> Cost:
    """Cost of annealings with the paper's schedule."""
    flips = float(Schedule.paper().flips(N).sum())
    nanoseconds = sum(flips * (45.0 + k + k * k / 20.0) + 1e5 for k in sizes)
    return Cost(flips * walks * len(sizes), 1e-9 * walks * nanoseconds)


def planted_cost(scale: RunScale, folds: bool) -> Cost:
    """Cost of the planted problems, with every left-out row annealed or not."""
    if not folds:
        return sum((walks_cost(N, sizes_of(scale.rhos, N), n) for N, n in scale.annealed), Cost())
    return sum(
        (walks_cost(N, sizes_of(scale.loo_rhos, N), n * (N // 2 + 1)) for N, n in scale.crossvalidated),
        Cost(),
    )


def section3_cost(scale: RunScale) -> Cost:
    """Cost of annealing the fixed-support error, O(M k) per flip."""
    N, problems, chains = scale.loo_objective
    flips = float(Schedule.paper().flips(N).sum())
    walks = problems * chains
    nanoseconds = sum(flips * (250.0 + a * N * (1.0 + k / 5.0)) for a in scale.loo_alphas for k in scale.loo_sizes)
    return Cost(flips * walks * len(scale.loo_alphas) * len(scale.loo_sizes), 1e-9 * walks * nanoseconds)


def supernova_cost(scale: RunScale, rows: int, columns: int, sizes: list[int]) -> Cost:
    """Cost of the tables: every left-out row, size, chain and seed."""
    walks = int(np.sum([chains * seeds for chains, seeds in scale.supernova])) * (rows + 1)
    return walks_cost(columns, sizes, walks)
