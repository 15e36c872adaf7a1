"""The problems of the paper, drawn from the planted model, and their annealings: all that figures 1 to 3 need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pairflip.blas import one_blas_thread
from pairflip.datasets import PlantedTable, make_planted
from pairflip.least_squares import Floats
from pairflip.losses.held_out import mean_and_error
from pairflip.paper.theory.model import Planted
from pairflip.problem import SubsetProblem
from pairflip.search.best_subset import anneal
from pairflip.search.schedule import Schedule
from pairflip.selection.executors import search_grids
from pairflip.selection.settings import as_selection
from pairflip.selection.tasks import Results, plan_work

MODEL = Planted(alpha=0.5, rho0=0.1, var_x=10.0, var_noise=0.1)
"""What the problems are drawn from (the paper's parameters)."""
SCHEDULE = Schedule.paper()
Say = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class PlantedProblem:
    """One problem: its table with the truth, what is searched, and the seed of its chains."""

    drawn: PlantedTable
    problem: SubsetProblem
    seed: int


@one_blas_thread()  # more would round differently
def draw_all(N: int, count: int, seed: int, alpha: float = MODEL.alpha) -> list[PlantedProblem]:
    """The problems number 0 to `count` - 1; a problem does not depend on how many are drawn."""
    model, problems = replace(MODEL, alpha=alpha), []
    for index in range(count):
        key = (seed, N, round(1000 * alpha), index)
        table_seed, chain_seed = (int(word) for word in np.random.SeedSequence(key).generate_state(2))
        drawn = make_planted(N, model.alpha, model.rho0, model.var_x, model.var_noise, seed=table_seed)
        problems.append(PlantedProblem(drawn, SubsetProblem(drawn.X, drawn.y, center=None), chain_seed))
    return problems


@dataclass(frozen=True, eq=False)
class Annealed:
    """What annealing found on n problems of N columns and M rows, for S sizes and T temperatures."""

    N: int
    M: int
    problems: tuple[PlantedProblem, ...]
    sizes: tuple[int, ...]
    cooling: Floats  # (n, S, T): epsilon = E / M averaged over the flips of each temperature
    reached: Floats  # (n, S): epsilon of the best support
    loo_error: Floats | None = None  # (n, S): the paper's LOOE, every left-out row annealed

    def part(self, sizes: Sequence[int], count: int) -> Annealed | None:
        """The annealings of these sizes on the first problems; None where some of them are missing."""
        if not set(sizes) <= set(self.sizes) or len(self.problems) < count:
            return None
        at = [self.sizes.index(k) for k in sizes]
        loo = None if self.loo_error is None else self.loo_error[:count, at]
        arrays = self.cooling[:count, at], self.reached[:count, at], loo
        return Annealed(self.N, self.M, self.problems[:count], tuple(sizes), *arrays)


def anneal_all(problems: Sequence[PlantedProblem], sizes: Sequence[int], engine: Any, n_jobs: int | None) -> Annealed:
    """Anneal every problem once for every size, with the paper's schedule; too few chains for a GPU."""
    from joblib import Parallel, delayed

    cpu_engine = "numba" if engine in ("auto", "cuda") else engine

    def one(sample: PlantedProblem, k: int) -> tuple[Floats, float]:
        trace = anneal(sample.problem, k, SCHEDULE, chains=1, seed=sample.seed, engine=cpu_engine, polish=False)
        return trace.energy[0], float(trace.energies[0])

    traces = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(one)(s, k) for s in problems for k in sizes)
    (M, N), shape = problems[0].drawn.X.shape, (len(problems), len(sizes))
    cooling = np.array([energy for energy, _ in traces]).reshape(*shape, -1) / M
    reached = np.array([best for _, best in traces]).reshape(shape) / M
    return Annealed(N, M, tuple(problems), tuple(sizes), cooling, reached)


def cross_validate(
    problems: Sequence[PlantedProblem],
    sizes: Sequence[int],
    engine: Any,
    n_jobs: int | None,
    journal: Path | None = None,
    say: Say = lambda _: None,
) -> Annealed:
    """Anneal every problem, and each of its left-out rows, once for every size; a GPU gets all of them at once."""
    (M, N), count = problems[0].drawn.X.shape, len(problems)
    cooling, reached, loo = np.empty((count, len(sizes), len(SCHEDULE))), *np.empty((2, count, len(sizes)))
    selection = as_selection(sizes, {"cv": "loo", "schedule": SCHEDULE, "chains": 1, "polish": False, "prove": False})
    grids = [plan_work(each.problem, replace(selection, seed=each.seed), engine, None) for each in problems]
    folders = [None if journal is None else journal / f"loo-N{N}" / f"{index:04d}" for index in range(count)]
    for finished, searched in enumerate(search_grids(grids, folders, n_jobs, False), start=1):
        index = searched.number
        cooling[index], reached[index], loo[index] = _scores(searched.results)
        if finished % max(1, -(-count // 4)) == 0:
            say(f"N = {N}: {finished} of {count} problems cross-validated")
    return Annealed(N, M, tuple(problems), tuple(sizes), cooling / M, reached / M, loo)


@one_blas_thread()
def _scores(results: Results) -> tuple[Floats, Floats, Floats]:
    """Energies along the cooling (S, T), energies of what was found (S,) and LOO errors (S,), with one chain each.

    The same numbers as in a whole `SizeCurve`, which would take longer than a device walks.
    """
    grid, problem = results.grid, results.grid.problem
    errors, weights = problem.loss.held_out(problem, grid.folds), problem.sample_weight[grid.folds.row]
    residuals = np.stack([errors.judged(results.of(size)[0])[0][0] for size in grid.sizes])
    loo, _ = mean_and_error(errors.row_errors(residuals), weights, grid.folds.unit)
    reached = [problem.fit(results.of(size, final=True)[0][0, 0]).energy for size in grid.sizes]
    return np.stack([results.steps[size, 0][0] for size in grid.sizes]), np.array(reached), loo
