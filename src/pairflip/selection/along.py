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
    row, unit = work.folds.row, work.folds.unit
    weights = work.problem.sample_weight[row]
    squares = np.stack([along.of_size(size, len(work.folds)) for size in work.sizes], axis=1)
    squares[0] **= 2  # of the mean residual; those of single supports were squared before they were averaged
    kinds = [_errors(kind, weights, unit) for kind in squares]
    absolute = temperatures(work, work.problem.gram, work.sizes)
    (averaged, averaged_se, averaged_warmer), (single, single_se, single_warmer) = kinds
    return Surface(
        sizes=np.array(work.sizes, dtype=np.int64),
        betas=np.array(work.schedule.betas),
        unit=work.schedule.unit,
        absolute_betas=np.stack([absolute[size] for size in work.sizes]),
        chains=work.chains,
        cv_error=single,
        cv_error_se=single_se,
        averaged_error=averaged,
        averaged_error_se=averaged_se,
        warmer=single_warmer,
        averaged_warmer=averaged_warmer,
    )


def _errors(squares: Floats, weights: Floats, unit: NDArray[np.int64]) -> tuple[Floats, Floats, Warmer]:
    """cv_error and its standard error (S, T) of squared errors (S, T, P), and how much is gained by stopping early."""
    found = [mean_and_error(of_size, weights, unit) for of_size in squares]
    error, error_se = (np.stack(parts) for parts in zip(*found, strict=True))
    best = error.argmin(axis=1)
    inside = squares[:, -1] - squares[np.arange(len(squares)), best]
    s = int(error.min(axis=1).argmin())
    overall = squares[error[:, -1].argmin(), -1] - squares[s, best[s]]
    gain, gain_se = mean_and_error(np.vstack([inside, overall[None]]), weights, unit)
    return error, error_se, Warmer(gain[:-1], gain_se[:-1], float(gain[-1]), float(gain_se[-1]))
