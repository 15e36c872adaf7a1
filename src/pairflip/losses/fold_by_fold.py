"""Held-out rows of losses that fit one support of one fold at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pairflip.distinct import distinct_supports
from pairflip.least_squares import Floats


class FoldByFold(ABC):
    """Judges supports by fitting each of them on the training rows of its fold, once if several chains chose it.

    Parameters
    ----------
    places : sequence of slice
        Where the residuals of each fold stand among those of all held-out rows.
    """

    def __init__(self, places: Sequence[slice]) -> None:
        self._places = places

    @abstractmethod
    def _judge(self, fold: int, support: NDArray[np.int64]) -> tuple[Floats, float]:
        """Observed minus predicted on the held-out rows of a fold, and the energy of the support on the others."""

    def residuals(self, supports: NDArray[np.int64]) -> Floats:
        """Observed minus predicted (C, P) when fold f is predicted by supports[f, c] of (F, C, k)."""
        return self.judged(supports)[0]

    def judged(self, supports: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """The same, and the energies (F, C) of the supports on the training rows of their folds."""
        folds, chains, _ = supports.shape
        residuals, energies = np.empty((chains, self._places[-1].stop)), np.empty((folds, chains))
        for fold in range(folds):
            distinct, _, which, _ = distinct_supports(supports[fold])
            for u, support in enumerate(distinct):
                own = which == u
                residuals[own, self._places[fold]], energies[fold, own] = self._judge(fold, support)
        return residuals, energies

    def without_columns(self) -> Floats:
        """Observed minus predicted (P,) by the constant, or by the forced columns alone."""
        nothing = np.empty((len(self._places), 1, 0), dtype=np.int64)
        return np.asarray(self.judged(nothing)[0][0])
