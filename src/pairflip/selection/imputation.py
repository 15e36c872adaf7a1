"""Whether the choice of columns depends on how missing values were filled."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from pairflip.preparation import take_rows
from pairflip.problem import SubsetProblem
from pairflip.search.best_subset import best_subset
from pairflip.selection.curve import SizeCurve
from pairflip.selection.settings import Selection
from pairflip.selection.verdict import size_to_show

IMPUTATIONS = 3


def with_imputations(
    curve: SizeCurve, problem: SubsetProblem, selection: Selection, engine: Any, n_jobs: int | None
) -> SizeCurve:
    """The curve with the fact ``imputed``: of how many tables with noise in filled values the same columns are best."""
    size = size_to_show(curve)
    if problem.preparation is None or size == 0:
        return curve
    from sklearn.base import clone

    from pairflip.preprocessing import imputers

    raw = np.asarray(take_rows(problem.raw, np.flatnonzero(problem.sample_weight > 0)))
    missing = int(np.count_nonzero(raw != raw))
    if not missing or not imputers(problem.preprocess):
        return curve
    same = 0
    for number in range(IMPUTATIONS):
        other, noisy = copy(problem), clone(problem.preprocess)
        for each in imputers(noisy):
            each.set_params(noise=1.0, random_state=IMPUTATIONS * selection.seed + number)
        other.preparation = replace(problem.preparation, transformer=noisy)
        other = other.rebuilt(slice(None))
        how: dict[str, Any] = {"effort": selection.effort, "seed": selection.seed, "prove": selection.prove}
        trace = best_subset(other, size, engine=engine, n_jobs=n_jobs, **how)
        same += set(trace.best_names) == {curve.names[j] for j in curve.supports[curve.at(size)]}
    return replace(curve, facts={**curve.facts, "imputed": {"missing": missing, "same": same, "of": IMPUTATIONS}})
