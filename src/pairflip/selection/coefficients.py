r"""Coefficients of a final fit with what is known of their errors; neither of the two is a confidence interval.

*Ordinary standard errors*, :math:`s^2 (Z^T W Z)^{-1}` with :math:`s^2 = \sum_m w_m e_m^2 / (M - d)` and Z the d chosen
and forced columns and the constant, are those of columns fixed before the target was seen. Columns were chosen because
they fit, so coefficients are too large on average and these errors too small. The *spread over half-samples* that
selected the column includes the choice of its companions; where that does not change, it is about the standard error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats
from pairflip.losses import Fit
from pairflip.problem import SubsetProblem
from pairflip.selection.curve import SizeCurve, StandardErrors

NAN = float("nan")


class Coefficient(NamedTuple):
    """One line of the table of coefficients; not-a-number where something is not known."""

    column: str
    kind: str  # selected, always or intercept
    coefficient: float
    standard_error: float
    frequency: float  # fraction of the half-samples that selected the column
    coef_5: float  # quantiles of its coefficient over these
    coef_95: float
    place: int  # index of the column in the table, -1 for the constant


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
    at, known, stability = curve.at(size), curve.standard_errors, curve.stability
    rows = target_coefficients(curve, size)
    errors = [NAN] * len(rows)
    if known is not None:
        errors = [known.intercepts[at], *known.always[at], *known.chosen[at]]
    table = []
    for (column, kind, coefficient, place), error in zip(rows, errors, strict=True):
        spread = NAN, NAN, NAN
        if kind == "selected" and stability is not None and size in stability.sizes:
            unit = place if curve.units is None else int(curve.units.first[place])
            spread = stability.frequency(unit, size), *stability.spread(unit, size)
        table.append(Coefficient(column, kind, coefficient, float(error), *spread, place))
    return table


def standard_errors(problem: SubsetProblem, fits: Sequence[Fit]) -> StandardErrors:
    """Standard errors of all final fits; not-a-number where no rows are left to estimate the noise from."""
    every = [_of_fit(problem, fit) for fit in fits]
    forced = problem.always.size
    return StandardErrors(
        chosen=tuple(errors[1 + forced :] for errors in every),
        always=np.stack([errors[1 : 1 + forced] for errors in every]),
        intercepts=np.array([errors[0] for errors in every]),
    )


def _of_fit(problem: SubsetProblem, fit: Fit) -> Floats:
    """Standard errors of the constant, the forced and the chosen coefficients of one fit.

    With a ridge term A = Z'WZ + penalty, they are those of the shrunken coefficients, :math:`A^{-1} Z^T W Z A^{-1}`,
    and d is the trace of the hat matrix; how far shrinking moves them is not in it.
    """
    if not problem.loss.squared or problem.units is not None:
        return problem.loss.standard_errors(problem, fit.support)
    # Coefficients that are zero because of their sign have no errors; the others have those of a fit without them.
    nonzero = (fit.coef != 0) | (problem.limits.signs is None)
    columns = np.concatenate([problem.always, fit.support[nonzero]]).astype(np.int64)
    forced, errors = problem.always.size, np.full(1 + problem.always.size + fit.support.size, NAN)
    constant, y = problem.center is not None, problem.y[problem.sample_weight > 0]
    scaled, unit, means, norms, w = scaled_columns(problem, columns)
    Z, scaled = scaled * norms + means, np.sqrt(w)[:, None] * scaled
    form = scaled.T @ scaled
    chosen = scaled[:, forced:]
    penalty = np.zeros(columns.size)
    if problem.ridge:
        penalty[forced:] = np.minimum(problem.ridge / unit[forced:] / norms[forced:] / unit[forced:], 1e300)
        penalty[forced:] /= norms[forced:]
    if problem.shrinkage:  # in units of what forced columns leave of a chosen one
        rest = chosen - scaled[:, :forced] @ (np.linalg.pinv(scaled[:, :forced]) @ chosen)
        penalty[forced:] += problem.shrinkage * np.einsum("mj,mj->j", rest, rest)
    inverse = np.linalg.pinv(form + np.diag(penalty), hermitian=True)
    fitted = float(np.sum(inverse * form)) + constant
    if y.size - fitted <= 1e-9:
        return errors
    coef = np.concatenate([fit.always_coef, fit.coef[nonzero]])
    scale = float(np.max(np.abs(y))) or 1.0
    residual = (y - fit.intercept) / scale - Z @ (coef * unit / scale)
    noise = scale**2 * float(w @ residual**2) / (y.size - fitted)
    spread: Floats = (inverse @ form @ inverse) / np.outer(norms, norms)
    if constant:
        errors[0] = np.sqrt(noise * (1.0 / w.sum() + float(means @ spread @ means)))
    errors[1:][np.append(np.ones(forced, dtype=bool), nonzero)] = np.sqrt(np.maximum(noise * np.diag(spread), 0)) / unit
    return errors


def scaled_columns(problem: SubsetProblem, columns: NDArray[np.int64]) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Columns (m, d) of the rows present, less their means where there is a constant, over their norms.

    Also their units (d,), by which they were divided first so that no square overflows, the means and norms (d,) in
    these units, and the weights (m,) of the rows.
    """
    present = problem.sample_weight > 0
    Z, w = problem.X[np.ix_(present, columns)].astype(np.float64), problem.sample_weight[present]
    unit = np.max(np.abs(Z), axis=0, initial=0.0)
    unit[unit == 0] = 1.0
    Z = Z / unit
    means = np.average(Z, axis=0, weights=w) if problem.center is not None else np.zeros(columns.size)
    Z = Z - means
    norms = np.sqrt(w @ Z**2)
    norms[norms == 0] = 1.0
    return Z / norms, unit, means, norms, w
