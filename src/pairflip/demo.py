"""The demonstration: best subsets of sizes 1 to 10 of a real table that ships with scikit-learn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pairflip.annealing import anneal
from pairflip.datasets import load_diabetes_products
from pairflip.problem import SubsetProblem
from pairflip.progress import progress_bar


@dataclass(frozen=True)
class BestOfSize:
    """The best support found for one size: its energy, R squared, and how many chains agree on it."""

    k: int
    columns: list[str]
    energy: float
    r_squared: float
    agreement: float
    seconds: float


def run_demo(
    sizes: Iterable[int], seed: int = 0, n_jobs: int | None = -1, progress: bool | None = None
) -> list[BestOfSize]:
    """Anneal the diabetes table with all squares and products (442 x 64) for each size."""
    table = load_diabetes_products()
    problem = SubsetProblem(table.X, table.y, names=table.names)
    wanted = list(sizes)
    anneal(problem, 2, chains=1)  # compile before the clock runs
    rows = []
    with progress_bar("annealing", len(wanted), progress) as advance:
        for k in wanted:
            trace = anneal(problem, k, seed=seed, n_jobs=n_jobs)
            r_squared = 1.0 - 2.0 * trace.best_energy / problem.gram.yy
            rows.append(BestOfSize(k, trace.best_names, trace.best_energy, r_squared, trace.agreement, trace.seconds))
            if advance is not None:
                advance(1)
    return rows
