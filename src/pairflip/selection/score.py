"""What many problems are compared by: held-out errors and final energies alone, without all else that a curve says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pairflip.engines.blas import one_blas_thread
from pairflip.least_squares import Floats
from pairflip.losses.held_out import mean_and_error
from pairflip.selection.assemble import anneal_curves, final_fit, of_size
from pairflip.selection.curve import AnnealCurves
from pairflip.selection.journal import Found
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


@one_blas_thread()  # more would round differently
def scores(work: Work, found: Found) -> Scores:
    """Held-out errors and final energies of all sizes, the numbers of `assemble` that do not need a curve."""
    folds, errors = work.folds, work.errors
    energies = np.array([final_fit(work, found, size)[0].energy for size in work.sizes])
    residuals = np.stack([of_size(work, found, errors, size).residuals for size in work.sizes])
    weights = work.problem.sample_weight[folds.row]
    cv_error, _ = mean_and_error(errors.row_errors(residuals), weights, folds.unit)
    course = anneal_curves(work, found)
    own = AnnealCurves(betas=course.betas[1:], energy=course.energy[1:], acceptance=course.acceptance[1:])
    return Scores(work.sizes, cv_error, energies, own)
