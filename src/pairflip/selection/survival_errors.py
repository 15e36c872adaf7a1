"""How well survival times are ranked on held-out rows: the concordance of their risks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats
from pairflip.losses import HeldOutJudge
from pairflip.problem import SubsetProblem
from pairflip.selection.folds import Folds
from pairflip.selection.records import SurvivalErrors


def survival_errors(
    problem: SubsetProblem, errors: HeldOutJudge, folds: Folds, selected: Sequence[NDArray[np.int64]]
) -> SurvivalErrors:
    """Errors at every size; risks of a fold are counted from the mean of its training rows."""
    row, fold = folds.row, folds.fold
    weights, risks = problem.sample_weight[row], np.zeros((len(selected), row.size))
    forced = problem.X[np.ix_(row, problem.always)]
    for risk, supports in zip(risks, selected, strict=True):
        fits = errors.fits(supports)
        risk += np.einsum("pk,pk->p", problem.X[row[:, None], supports[fold]], fits.coefs[fold])
        risk += np.einsum("pk,pk->p", forced, fits.always_coefs[fold]) + fits.intercepts[fold]
    ranked = [concordance(problem.y[row], risk, weights) for risk in risks]
    return SurvivalErrors(times=problem.y[row, 0], risks=risks, concordance=np.array(ranked))


def concordance(y: Floats, risk: Floats, weights: Floats) -> float:
    """Harrell's C: of pairs whose order is known, the fraction in which the higher risk has the event first.

    The order is known where the earlier time is that of an event (of equal times, an event comes before what is
    censored); equal risks count half, pairs by the product of their weights. Not-a-number where no order is known.
    """
    time, event = y.T
    right = total = 0.0
    for i in np.flatnonzero(event > 0):
        later = (time > time[i]) | ((time == time[i]) & (event == 0))
        lower = np.where(risk[later] < risk[i], 1.0, np.where(risk[later] == risk[i], 0.5, 0.0))
        right += weights[i] * float(weights[later] @ lower)
        total += weights[i] * float(weights[later].sum())
    return right / total if total > 0 else float("nan")
