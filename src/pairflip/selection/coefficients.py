r"""Coefficients of a final fit with what is known of their errors; none of it is a confidence interval.

*Standard errors*, ordinary, robust and clustered ones (`pairflip.losses.influence`), are those of columns fixed before
the target was seen. Columns were chosen because they fit, so coefficients are too large on average and these errors too
small. The *spread over half-samples* that selected the column includes the choice of its companions; where that does
not change, it is about the standard error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pairflip.least_squares import Floats
from pairflip.losses import Fit
from pairflip.losses.influence import clustered_errors, robust_errors
from pairflip.problem import SubsetProblem
from pairflip.selection.curve import SizeCurve, StandardErrors
from pairflip.supports import Ints

NAN = float("nan")


class Coefficient(NamedTuple):
    """One line of the table of coefficients; not-a-number where something is not known."""

    column: str
    kind: str  # selected, always or intercept
    coefficient: float
    standard_error: float  # conditional on the columns, as are the next two
    robust_error: float  # HC3: rows may differ in their noise
    clustered_error: float  # rows of a group may share it
    frequency: float  # fraction of the half-samples that selected the column
    coef_5: float  # quantiles of its coefficient over these
    coef_95: float
    place: int  # index of the column in the table, -1 for the constant


class AllErrors(NamedTuple):
    """Standard errors of all final fits."""

    ordinary: StandardErrors
    robust: StandardErrors | None  # where single rows are known
    clustered: StandardErrors | None  # where rows have groups


class TargetCoefficients(NamedTuple):
    """One line of the table of coefficients, without errors: of several targets, or of three and more classes."""

    column: str
    kind: str
    coefficients: Any  # a number for each target or class; where there is one, that number
    place: int


def target_coefficients(curve: SizeCurve, size: int) -> list[TargetCoefficients]:
    """The constants, forced columns, then the chosen ones."""
    at = curve.at(size)
    rows = [TargetCoefficients("", "intercept", curve.intercepts[at].tolist(), -1)]
    for kind, columns, coefs in (
        ("always", curve.always, curve.always_coefs[at]),
        ("selected", curve.supports[at], curve.coefs[at]),
    ):
        pairs = zip(columns.tolist(), coefs.tolist(), strict=True)
        rows += [TargetCoefficients(curve.names[j], kind, values, j) for j, values in pairs]
    return rows


def coefficient_rows(curve: SizeCurve, size: int) -> list[Coefficient]:
    """The constant, forced columns, then the chosen ones, with what is known of their errors."""
    at, stability = curve.at(size), curve.stability
    rows = target_coefficients(curve, size)
    errors = np.full((3, len(rows)), NAN)
    for line, known in zip(errors, (curve.standard_errors, curve.robust_errors, curve.clustered_errors), strict=True):
        if known is not None:
            line[:] = [known.intercepts[at], *known.always[at], *known.chosen[at]]
    table = []
    for (column, kind, coefficient, place), (ordinary, robust, clustered) in zip(rows, errors.T.tolist(), strict=True):
        spread = NAN, NAN, NAN
        if kind == "selected" and stability is not None and size in stability.sizes:
            unit = place if curve.units is None else int(curve.units.first[place])
            spread = stability.frequency(unit, size), *stability.spread(unit, size)
        table.append(Coefficient(column, kind, coefficient, ordinary, robust, clustered, *spread, place))
    return table


def standard_errors(problem: SubsetProblem, fits: Sequence[Fit], groups: Ints | None = None) -> AllErrors:
    """Standard errors of all final fits, clustered ones where rows (M,) have groups; not-a-number for few rows."""
    every = [problem.loss.influence(problem, fit) for fit in fits]
    ordinary = _by_size(problem, [influence.ordinary for influence in every])
    robust = None
    if problem.condensed is None:
        robust = _by_size(problem, [robust_errors(influence) for influence in every])
    if groups is None:
        return AllErrors(ordinary, robust, None)
    present = groups[problem.sample_weight > 0]
    return AllErrors(ordinary, robust, _by_size(problem, [clustered_errors(each, present) for each in every]))


def _by_size(problem: SubsetProblem, every: Sequence[Floats]) -> StandardErrors:
    """The record of errors of the constant, the forced and the chosen coefficients of each fit."""
    forced = problem.always.size
    return StandardErrors(
        chosen=tuple(errors[1 + forced :] for errors in every),
        always=np.stack([errors[1 : 1 + forced] for errors in every]),
        intercepts=np.array([errors[0] for errors in every]),
    )
