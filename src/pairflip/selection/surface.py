r"""Held-out error over size and temperature: what would be gained by not cooling all the way down.

The folds of a selection are annealed from hot to cold. At the end of every step of the schedule each chain stands at
some support, drawn at (about) that temperature; fitted on the training rows, it predicts the rows held out. Betas of a
scale-free schedule are in units of each fold's own scale, so that steps, not absolute temperatures, are averaged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats

if TYPE_CHECKING:
    import pandas as pd

CLEARLY = 2.0
"""By how many standard errors an error must be lower than that of the coldest supports to be called clearly lower."""


@dataclass(frozen=True)
class Warmer:
    """How much lower the error is at the best temperature than at the last, coldest one, with paired standard errors.

    `gain` and `gain_se` (S,) compare temperatures of the same size. `overall` and `overall_se` compare the lowest error
    of all sizes and temperatures with the lowest one of the coldest supports of any size. The best of so many
    temperatures is best by luck, too: a gain is never negative.
    """

    gain: Floats
    gain_se: Floats
    overall: float
    overall_se: float

    @property
    def clearly(self) -> bool:
        """Whether stopping at the best finite temperature predicts better by more than the noise, over all sizes."""
        return self.overall > CLEARLY * self.overall_se


class SurfacePoint(NamedTuple):
    """A size and a step of the schedule, with its inverse temperature on all rows (`beta`) and its error."""

    size: int
    beta: float
    step: int
    error: float
    error_se: float


@dataclass(frozen=True)
class Surface:
    r"""cv_error over S sizes and T inverse temperatures, the steps of the schedule.

    Attributes
    ----------
    sizes : (S,)
        Numbers of columns, from 1 on.
    betas, unit : (T,), str
        Inverse temperatures as the schedule has them, and what they multiply: ``"greedy"``, energies in units of that
        which forward selection leaves on the same rows, or ``"absolute"``.
    absolute_betas : (S, T)
        What they are on all rows, for `sample`; in a fold they follow from the fold's training rows.
    chains : int
        Walks in each fold.
    cv_error, cv_error_se : (S, T)
        Of single supports drawn at that temperature, the mean over the chains:
        :math:`\frac{1}{2P} \sum_\mu \langle (y_\mu - \hat y_\mu)^2 \rangle`, the paper's :math:`\epsilon_g`.
    averaged_error, averaged_error_se : (S, T)
        Of the mean prediction of the chains, :math:`\frac{1}{2P} \sum_\mu (y_\mu - \langle \hat y_\mu \rangle)^2`:
        never larger, and what one would predict with.
    warmer, averaged_warmer : Warmer
        How much lower both are at the best temperature than at the coldest.
    """

    sizes: NDArray[np.int64]
    betas: Floats
    unit: str
    absolute_betas: Floats
    chains: int
    cv_error: Floats
    cv_error_se: Floats
    averaged_error: Floats
    averaged_error_se: Floats
    warmer: Warmer
    averaged_warmer: Warmer

    @property
    def best(self) -> tuple[int, float]:
        """Size and inverse temperature (on all rows) at which single supports have the lowest error."""
        return self.place()[:2]

    @property
    def averaged_best(self) -> tuple[int, float]:
        """The same for the mean prediction of several chains."""
        return self.place(averaged=True)[:2]

    def place(self, *, averaged: bool = False, coldest: bool = False) -> SurfacePoint:
        """Where the error is lowest; of equal errors the smaller size and the higher temperature count.

        Parameters
        ----------
        averaged : bool
            Whether that of averaged predictions.
        coldest : bool
            Whether only the last temperature is looked at.
        """
        error, spread = (self.averaged_error, self.averaged_error_se) if averaged else (self.cv_error, self.cv_error_se)
        last = self.betas.size - 1
        s, t = np.unravel_index(int(error.argmin()), error.shape) if not coldest else (error[:, last].argmin(), last)
        beta = float(self.absolute_betas[s, t])
        return SurfacePoint(int(self.sizes[s]), beta, int(t), float(error[s, t]), float(spread[s, t]))

    def to_pandas(self) -> pd.DataFrame:
        """One row for each size and temperature."""
        import pandas as pd

        shape = self.cv_error.shape
        return pd.DataFrame(
            {
                "size": np.repeat(self.sizes, shape[1]),
                "step": np.tile(np.arange(shape[1]), shape[0]),
                "beta": np.tile(self.betas, shape[0]),
                "absolute_beta": self.absolute_betas.ravel(),
                "cv_error": self.cv_error.ravel(),
                "cv_error_se": self.cv_error_se.ravel(),
                "averaged_error": self.averaged_error.ravel(),
                "averaged_error_se": self.averaged_error_se.ravel(),
            }
        )
