"""Held-out errors along the annealing of every fold, gathered chain by chain until a `Surface` can be made of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats
from pairflip.losses.held_out import mean_and_error
from pairflip.selection.surface import Surface, Warmer
from pairflip.selection.tasks import Work
from pairflip.selection.walks import temperatures

Cell = tuple[int, int]
"""(size, fold)"""


@dataclass
class Along:
    """Residuals of held-out rows at all temperatures: of each cell the mean over its `chains`, and that of the squares.

    A cell's chains are added up in their order once all are there, so that nothing depends on who finished first; then
    only the two means (2, steps, H) are kept.
    """

    chains: int
    means: dict[Cell, Floats] = field(default_factory=dict)
    _waiting: dict[Cell, dict[int, Floats]] = field(default_factory=dict)

    def add(self, cell: Cell, first: int, residuals: Floats) -> None:
        """Take in residuals (n, steps, H) of the chains of a cell from the one numbered `first` on.

        Parameters
        ----------
        cell : (size, fold)
            Where the chains walked.
        first : int
            Number of the first of them.
        residuals : (n, steps, H)
            Observed minus predicted, in the unit of the target.
        """
        if cell in self.means:
            return  # a journal may hold a chain twice
        known = self._waiting.setdefault(cell, {})
        known.update(enumerate(residuals, start=first))
        if len(known) == self.chains:
            every = np.stack([known[chain] for chain in range(self.chains)])
            self.means[cell] = np.stack([every.mean(axis=0), (every**2).mean(axis=0)])
            del self._waiting[cell]

    def of_size(self, size: int, folds: int) -> Floats:
        """Both means (2, steps, P) of all held-out rows, fold by fold."""
        return np.concatenate([self.means[size, fold] for fold in range(folds)], axis=2)

    def clear(self) -> None:
        """Forget everything."""
        self.means.clear()
        self._waiting.clear()


def surface_of(work: Work, along: Along) -> Surface:
    """Errors at every size and temperature, of single supports and of predictions averaged over the chains.

    Parameters
    ----------
    work : Work
        The run.
    along : Along
        What its folds found.
    """
    weights, unit = work.problem.sample_weight[work.folds.row], work.folds.unit
    averaged, single = _Errors(weights, unit), _Errors(weights, unit)
    for size in work.sizes:
        residual, square = along.of_size(size, len(work.folds))
        averaged.add(residual**2)
        single.add(square)
    absolute = temperatures(work, work.problem.gram, work.sizes)
    return Surface(
        sizes=np.array(work.sizes, dtype=np.int64),
        betas=np.array(work.schedule.betas),
        unit=work.schedule.unit,
        absolute_betas=np.stack([absolute[size] for size in work.sizes]),
        chains=work.chains,
        cv_error=np.stack(single.error),
        cv_error_se=np.stack(single.error_se),
        averaged_error=np.stack(averaged.error),
        averaged_error_se=np.stack(averaged.error_se),
        warmer=single.warmer(),
        averaged_warmer=averaged.warmer(),
    )


class _Errors:
    """Errors of one kind, size by size; of the squares only those of the best and of the last step are kept."""

    def __init__(self, weights: Floats, unit: NDArray[np.int64]) -> None:
        self._weights, self._unit = weights, unit
        self.error: list[Floats] = []
        self.error_se: list[Floats] = []
        self._best: list[Floats] = []
        self._last: list[Floats] = []

    def add(self, squares: Floats) -> None:
        """Take in squared errors (T, P) of the next size."""
        error, error_se = mean_and_error(squares, self._weights, self._unit)
        self.error.append(error)
        self.error_se.append(error_se)
        self._best.append(squares[error.argmin()].copy())
        self._last.append(squares[-1].copy())

    def warmer(self) -> Warmer:
        """What is gained by stopping before the last step: at each size, and over all of them."""
        best, last = np.stack(self._best), np.stack(self._last)
        lowest = int(np.argmin([error.min() for error in self.error]))
        coldest = int(np.argmin([error[-1] for error in self.error]))
        differences = np.vstack([last - best, (last[coldest] - best[lowest])[None]])
        gain, gain_se = mean_and_error(differences, self._weights, self._unit)
        return Warmer(gain[:-1], gain_se[:-1], float(gain[-1]), float(gain_se[-1]))
