"""What many problems are compared by: held-out errors and final energies alone, without all else that a curve says."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pairflip.engines.blas import one_blas_thread
from pairflip.least_squares import Floats
from pairflip.losses.base import HeldOutJudge
from pairflip.losses.held_out import mean_and_error
from pairflip.selection.assemble import anneal_curves, final_fit, of_size
from pairflip.selection.journal import Found
from pairflip.selection.records import AnnealCurves
from pairflip.selection.tasks import Work


@dataclass(frozen=True, eq=False)
class Scores:
    """Of S sizes: `cv_error` (S,), `energies` (S,) of the final fits, and how these were annealed, as in a `SizeCurve`.

    There is no size 0.
    """

    sizes: tuple[int, ...]
    cv_error: Floats
    energies: Floats
    annealing: AnnealCurves


class Scoring:
    """The numbers of `assemble` that do not need a curve.

    Held-out errors are told by the Gram matrix where columns are far from dependent, to ten digits at least: a QR for
    each fold and size would be most of what is done beside a device. All else has the same bits.

    Parameters
    ----------
    work : Work
        The selection, fitted to its table.
    found : Found
        What is known of its chains: all of a size when it is judged, all of them in the end.
    """

    def __init__(self, work: Work, found: Found) -> None:
        self._work, self._found = work, found
        self._residuals: dict[int, Floats] = {}
        self._energies: dict[int, float] = {}

    @cached_property
    def _errors(self) -> HeldOutJudge:
        return self._work.problem.loss.held_out(self._work.problem, self._work.folds)

    @one_blas_thread()  # more would round differently
    def judge(self, size: int) -> None:
        """Look at a size, its folds and its final fit, ahead of the others."""
        self._energies[size] = final_fit(self._work, self._found, size)[0].energy
        self._residuals[size] = of_size(self._work, self._found, self._errors, size).residuals

    @one_blas_thread()
    def scores(self) -> Scores:
        """All sizes."""
        work, found, folds = self._work, self._found, self._work.folds
        for size in work.sizes:
            if size not in self._residuals:
                self.judge(size)
        residuals = np.stack([self._residuals[size] for size in work.sizes])
        weights = work.problem.sample_weight[folds.row]
        cv_error, _ = mean_and_error(self._errors.row_errors(residuals), weights, folds.unit)
        energies = np.array([self._energies[size] for size in work.sizes])
        course = anneal_curves(work, found)
        own = AnnealCurves(betas=course.betas[1:], energy=course.energy[1:], acceptance=course.acceptance[1:])
        return Scores(work.sizes, cv_error, energies, own)
