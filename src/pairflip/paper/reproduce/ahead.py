"""What other processes do while a device walks: the theory, and section III.

In threads, the many small arrays of the theory would wait for each other, and for what judges the device's answers.
Results are the same; where processes cannot be started, everything is computed here when it is asked for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairflip.least_squares import Floats
from pairflip.paper.reproduce import own, typical
from pairflip.paper.reproduce.fig1 import warm_steps
from pairflip.paper.reproduce.own import Factors, Truth
from pairflip.paper.reproduce.typical import Levels
from pairflip.paper.reproduce.walks import MODEL, SCHEDULE, PlantedProblem


class Ahead:
    """Other processes, if there are to be any, and what they have been asked."""

    def __init__(self, processes: int) -> None:
        self._pool: Any = None
        self._theory: list[tuple[tuple[PlantedProblem, ...], Callable[[], SolvedTheory]]] = []
        if processes:
            from joblib.externals.loky import ProcessPoolExecutor

            self._pool = ProcessPoolExecutor(processes, initializer=_step_back)

    def __enter__(self) -> Ahead:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, kill_workers=True)  # at the end of the process they are gone

    def call(self, function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
        """Have a function called; what is returned gives its result."""
        if self._pool is None:
            return lambda: function(*arguments)
        future = self._pool.submit(function, *arguments)

        def result() -> Any:
            try:
                return future.result()
            except BrokenProcessPool:  # killed, for want of memory perhaps
                return function(*arguments)

        return result

    def solve_theory(self, problems: Sequence[PlantedProblem], sizes: Sequence[int], shown: Sequence[int]) -> None:
        """Have the theory of some problems solved."""
        if self._pool is None:
            return
        M, N = problems[0].drawn.X.shape
        truth = own.truth_of(problems)
        for k in sorted({*sizes, *shown}):
            self._theory.append((tuple(problems), self.call(solve_size, truth, N, M, k, k in shown)))

    def solve_curves(self) -> None:
        """Have the curves of the theory solved, at many sizes."""
        if self._pool is not None:
            for rho in typical.DENSE:
                self._theory.append(((), self.call(solve_levels, rho, MODEL.alpha)))

    def know_theory(self) -> None:
        """Wait for the theory; whoever asks for it then is given it."""
        for problems, result in self._theory:
            solved = result()
            for rho, alpha, levels in solved.levels:
                typical.remember(rho, alpha, levels)
            for betas, rho, alpha, factors in solved.factors:
                own.remember(problems, betas, rho, alpha, factors)
            for steps, rho, alpha, epsilon in solved.cooling:
                typical.remember_cooling(steps, rho, alpha, epsilon)
        self._theory.clear()


def _step_back() -> None:
    """Leave the processor to whoever feeds the device, and one thread to BLAS."""
    if hasattr(os, "nice"):
        os.nice(10)
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)


@dataclass(frozen=True)
class SolvedTheory:
    """What the theory says at one size, with what it was asked."""

    levels: tuple[tuple[float, float, Levels], ...]
    factors: tuple[tuple[tuple[float, ...], float, float, Factors], ...] = ()
    cooling: tuple[tuple[Floats, float, float, Floats], ...] = ()


def solve_levels(rho: float, alpha: float) -> SolvedTheory:
    """The levels at one size."""
    return SolvedTheory(((rho, alpha, typical.levels(rho, alpha)),) if rho < alpha else ())


def solve_size(truth: Truth, N: int, M: int, k: int, shown: bool) -> SolvedTheory:
    """All that figures 1 to 3 ask of the theory at one size."""
    rho, alpha, one_less = k / N, M / N, (M - 1) / N
    levels = typical.levels(rho, alpha)
    asked = [own.own_betas(levels.at_beta)]
    cooling: tuple[Any, ...] = ()
    if shown:
        betas = np.array(SCHEDULE.betas)
        asked.append(tuple(betas[warm_steps(betas, levels.at_beta)].tolist()))
        cooling = ((betas, rho, alpha, typical.cooling(betas, rho, alpha)),)
    factors = tuple((betas, rho, alpha, own.solve_factors(truth, betas, rho, alpha)) for betas in asked)
    return SolvedTheory(((rho, alpha, levels), (rho, one_less, typical.levels(rho, one_less))), factors, cooling)
