"""What can be reproduced, and how much is computed for it: a scale is a value, and its cost is known beforehand."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from pairflip.search.schedule import Schedule

PARTS = ("fig1", "fig2", "fig3", "table1", "table2", "section3")
TABLES = frozenset({"table1", "table2"})
FILES = frozenset(
    {f"{part}.{kind}" for part in PARTS for kind in ("csv", "svg", "png")} | {"theory.csv", "run.json", "verdict.json"}
)
"""What a result folder may hold."""
TARGET = "target_M_B"
"""The column of the supernova table that is predicted."""
SUPERNOVA_SIZES = (1, 2, 3, 4, 5)
SHOWN = (0.05, 0.1, 0.15)
"""Sizes rho = K / N of figure 1."""


def parts_of(name: str, data: Path | None) -> tuple[str, ...]:
    """The parts that a word names; only the tables need data."""
    if name == "all":
        return PARTS
    if name not in PARTS:
        raise ValueError(f"{name!r} cannot be reproduced; expected one of {', '.join(PARTS)} or all.")
    if name in TABLES and data is None:
        raise ValueError(f"{name} needs the supernova table; expected --data TABLE.csv with the column {TARGET!r}.")
    return (name,)


@dataclass(frozen=True)
class RunScale:
    """Numbers of problems, of columns and of seeds."""

    name: str
    annealed: tuple[tuple[int, int], ...]  # (columns N, problems) of figures 1 and 2
    rhos: tuple[float, ...]  # sizes of figure 2
    crossvalidated: tuple[tuple[int, int], ...]  # (columns N, problems) of figure 3, every left-out row annealed
    loo_rhos: tuple[float, ...]  # sizes of figure 3
    loo_objective: tuple[int, int, int]  # (columns, problems, chains) of section III
    loo_alphas: tuple[float, ...]  # its rows per column M / N
    loo_sizes: tuple[int, ...]  # its numbers of columns selected
    supernova: tuple[tuple[int, int], ...]  # (chains, seeds) of the tables


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


def sizes_of(rhos: Sequence[float], N: int) -> list[int]:
    """Numbers of columns K, the nearest to rho N, each once and at least 1."""
    return sorted({max(1, int(rho * N + 0.5)) for rho in rhos})


@dataclass(frozen=True)
class Cost:
    """Attempted flips, and the seconds that one CPU core needs for them by a cost model."""

    flips: float = 0.0
    seconds: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.flips + other.flips, self.seconds + other.seconds)

    def __str__(self) -> str:
        minutes = self.seconds / 60
        time = f"{minutes:.0f} min" if 2 <= minutes < 120 else f"{minutes / 60:.0f} h"
        return f"{self.flips:.2g} flips, about {f'{self.seconds:.0f} s' if minutes < 2 else time} on one CPU core"


def annealing_cost(N: int, sizes: Sequence[int], chains: int) -> Cost:
    """Cost of annealing so many chains of each size with the paper's schedule."""
    flips = float(Schedule.paper().flips(N).sum())
    nanoseconds = sum(flips * (45.0 + k + k * k / 20.0) + 1e5 for k in sizes)
    return Cost(flips * chains * len(sizes), 1e-9 * chains * nanoseconds)


def cost(scale: RunScale, parts: Collection[str], table: tuple[int, int] | None = None) -> Cost:
    """Cost of the parts; `table` is the number of rows and columns of the supernova table, where there is one."""
    total = Cost()
    if "fig3" in parts:
        for N, count in scale.crossvalidated:
            total += annealing_cost(N, sizes_of(scale.loo_rhos, N), count * (N // 2 + 1))
    if ("fig1" in parts or "fig2" in parts) and not ("fig3" in parts and scale.annealed == scale.crossvalidated):
        for N, count in scale.annealed:
            total += annealing_cost(N, sizes_of(scale.rhos, N), count)
    if "section3" in parts:  # a flip takes O(M k)
        N, problems, chains = scale.loo_objective
        flips = float(Schedule.paper().flips(N).sum()) * problems * chains
        nanoseconds = [250.0 + a * N * (1.0 + k / 5.0) for a in scale.loo_alphas for k in scale.loo_sizes]
        total += Cost(flips * len(nanoseconds), 1e-9 * flips * sum(nanoseconds))
    if table is not None:  # every left-out row, chain and seed
        chains = (table[0] + 1) * sum(chains * seeds for chains, seeds in scale.supernova)
        total += annealing_cost(table[1], SUPERNOVA_SIZES, chains)
    return total
