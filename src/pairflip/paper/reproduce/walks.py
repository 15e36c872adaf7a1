"""The problems of the paper, draws of the planted model, and one annealing of each: all that the figures need."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pairflip.datasets import PlantedTable, make_planted
from pairflip.engines.blas import one_blas_thread
from pairflip.jobs import local_threads
from pairflip.least_squares import Floats
from pairflip.paper.theory import Planted
from pairflip.problem import SubsetProblem
from pairflip.search.best_subset import anneal
from pairflip.search.schedule import Schedule
from pairflip.selection import score_many
from pairflip.selection.assemble import Scores
from pairflip.selection.settings import as_selection

MODEL = Planted(alpha=0.5, rho0=0.1, var_x=10.0, var_noise=0.1)
"""What the problems are drawn from (the paper's parameters)."""

SCHEDULE = Schedule.paper()
Say = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class PlantedProblem:
    """One problem: its table, what is known about its truth, and the seed of its walks."""

    drawn: PlantedTable
    problem: SubsetProblem
    seed: int

    @property
    def noise_power(self) -> float:
        r""":math:`\|\xi\|^2 / M`."""
        return float(np.mean(self.drawn.noise**2))


def draw(N: int, index: int, seed: int, alpha: float = MODEL.alpha) -> PlantedProblem:
    """Draw one problem; equal arguments give equal problems, whatever else is drawn."""
    model = replace(MODEL, alpha=alpha)
    key = (seed, N, round(1000 * alpha), index)
    data_seed, walk_seed = (int(word) for word in np.random.SeedSequence(key).generate_state(2))
    drawn = make_planted(N, model.alpha, model.rho0, model.var_x, model.var_noise, seed=data_seed)
    return PlantedProblem(drawn, SubsetProblem(drawn.X, drawn.y, center=None), walk_seed)


@one_blas_thread()
def draw_all(
    N: int, count: int, seed: int, alpha: float = MODEL.alpha, n_jobs: int | None = None
) -> list[PlantedProblem]:
    """The problems number 0 to `count` - 1."""
    with ThreadPoolExecutor(local_threads(n_jobs)) as pool:
        return list(pool.map(lambda index: draw(N, index, seed, alpha), range(count)))


@dataclass(frozen=True, eq=False)
class Walks:
    r"""What annealing did on n problems of N columns and M rows, for S sizes and T steps.

    Attributes
    ----------
    sizes : (S,)
    betas : (T,)
    cooling : (n, S, T)
        :math:`\epsilon = E / M` averaged over the flips of each step.
    reached : (n, S)
        :math:`\epsilon` of the support found: the better one of the last and of the best on the way.
    loo_error : (n, S), or None
        The paper's LOOE, every left-out row annealed.
    """

    N: int
    M: int
    problems: tuple[PlantedProblem, ...]
    sizes: tuple[int, ...]
    betas: Floats
    cooling: Floats
    reached: Floats
    loo_error: Floats | None = None

    def at(self, size: int) -> int:
        """Position of a size in `sizes`."""
        return self.sizes.index(size)

    def covers(self, sizes: Sequence[int], problems: int) -> bool:
        """Whether all `sizes` were walked, on at least this many problems."""
        return set(sizes) <= set(self.sizes) and len(self.problems) >= problems

    def part(self, sizes: Sequence[int], problems: int) -> Walks:
        """The walks of these sizes on the first problems."""
        keep = [self.at(k) for k in sorted(sizes)]
        loo = None if self.loo_error is None else self.loo_error[:problems, keep]
        return Walks(
            self.N,
            self.M,
            self.problems[:problems],
            tuple(sorted(sizes)),
            self.betas,
            self.cooling[:problems, keep],
            self.reached[:problems, keep],
            loo,
        )


def walk(problems: Sequence[PlantedProblem], sizes: Sequence[int], engine: Any, n_jobs: int | None) -> Walks:
    """Anneal every problem once for every size, with the paper's schedule."""
    from joblib import Parallel, delayed

    walker = "numba" if engine in ("auto", "cuda") else engine

    def one(sample: PlantedProblem, k: int) -> tuple[Floats, float]:
        trace = anneal(sample.problem, k, SCHEDULE, chains=1, seed=sample.seed, engine=walker, polish=False)
        return trace.energy[0], float(trace.energies[0])

    found = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(one)(s, k) for s in problems for k in sizes)
    M, N = problems[0].drawn.X.shape
    shape = (len(problems), len(sizes))
    cooling = np.array([energy for energy, _ in found]).reshape(*shape, -1) / M
    reached = np.array([best for _, best in found]).reshape(shape) / M
    return Walks(N, M, tuple(problems), tuple(sizes), np.array(SCHEDULE.betas), cooling, reached)


Drawn = tuple[Sequence[PlantedProblem], Sequence[int]]
"""Problems of the same shape, and the numbers of columns selected."""


def cross_validate(
    problems: Sequence[PlantedProblem],
    sizes: Sequence[int],
    engine: Any,
    n_jobs: int | None,
    journal: str | os.PathLike[str] | None = None,
    say: Say = lambda _: None,
) -> Walks:
    """Anneal every problem, and each of its left-out rows, once for every size, with the paper's schedule."""
    return cross_validate_all([(problems, sizes)], engine, n_jobs, journal, say)[0]


def cross_validate_all(
    sets: Sequence[Drawn],
    engine: Any,
    n_jobs: int | None,
    journal: str | os.PathLike[str] | None = None,
    say: Say = lambda _: None,
) -> list[Walks]:
    """The same for problems of several shapes, which share what a device does."""
    found = [_Scored(problems, sizes, say) for problems, sizes in sets]
    asked, places = [], []
    folders: list[Path | None] = []
    for each in found:
        for index, sample in enumerate(each.problems):
            how = {"cv": "loo", "schedule": SCHEDULE, "chains": 1, "seed": sample.seed, "polish": False}
            asked.append((sample.problem, as_selection(each.sizes, how)))
            places.append((each, index))
            folders.append(None if journal is None else Path(journal) / f"loo-N{each.N}" / f"{index:04d}")
    for number, scores in score_many(asked, engine=engine, n_jobs=n_jobs, journals=folders):
        each, index = places[number]
        each.take(index, scores)
    return [each.walks() for each in found]


class _Scored:
    """What is known so far of problems of one shape."""

    def __init__(self, problems: Sequence[PlantedProblem], sizes: Sequence[int], say: Say) -> None:
        self.problems, self.sizes, self._say = tuple(problems), tuple(sizes), say
        self._M, self.N = problems[0].drawn.X.shape
        shape = len(problems), len(sizes)
        self._cooling, self._reached, self._loo = np.empty((*shape, len(SCHEDULE))), np.empty(shape), np.empty(shape)
        self._done = 0

    def take(self, index: int, scores: Scores) -> None:
        """Enter one problem."""
        self._cooling[index] = scores.annealing.energy[:, 0] / self._M
        self._reached[index] = scores.energies / self._M
        self._loo[index] = scores.cv_error
        self._done += 1
        n = len(self.problems)
        if self._done % max(1, -(-n // 4)) == 0:
            self._say(f"N = {self.N}: {self._done} of {n} problems cross-validated")

    def walks(self) -> Walks:
        """All problems."""
        numbers = np.array(SCHEDULE.betas), self._cooling, self._reached, self._loo
        return Walks(self.N, self._M, self.problems, self.sizes, *numbers)
