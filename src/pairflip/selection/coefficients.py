r"""Coefficients of a final fit with what is known of their errors.

Two things, neither of them a confidence interval. *Ordinary standard errors*,

.. math:: s^2 (Z^T W Z)^{-1}, \quad s^2 = \sum_m w_m e_m^2 / (M - d)

with Z the chosen and forced columns and the constant, d of them, are those of columns that were fixed before the target
was seen. The columns were chosen because they fit, so coefficients are too large on average and these errors too small.
For classes and counts they are those of maximum likelihood, from the inverse of the Hessian of E.

The *spread over half-samples* that selected the column includes the choice of its companions. A half-sample has half of
the rows but shares them with the whole: where the choice does not change, its standard deviation is about the ordinary
standard error (the delete-half jackknife), so that the two can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats
from pairflip.losses import Fit
from pairflip.problem import SubsetProblem
from pairflip.selection.curve import SizeCurve
from pairflip.selection.records import StandardErrors

NAN = float("nan")


class Coefficient(NamedTuple):
    """One line: `kind` is selected, always or intercept; not-a-number where something is not known.

    `frequency` is the fraction of the half-samples that selected the column; `coef_5` and `coef_95` are quantiles of
    its coefficient over these; `place` is its index in the table, -1 for the constant.
    """

    column: str
    kind: str
    coefficient: float
    standard_error: float
    frequency: float
    coef_5: float
    coef_95: float
    place: int


def coefficient_rows(curve: SizeCurve, size: int) -> list[Coefficient]:
    """The constant, forced columns, then the chosen ones."""
    at, errors, halves = curve.at(size), curve.standard_errors, curve.stability
    known = halves is not None and size in halves.sizes
    rows = [
        Coefficient(
            "", "intercept", float(curve.intercepts[at]), NAN if errors is None else float(errors.intercepts[at]),
            NAN, NAN, NAN, -1,
        )
    ]  # fmt: skip
    for i, j in enumerate(curve.always.tolist()):
        error = NAN if errors is None else float(errors.always[at, i])
        rows.append(Coefficient(curve.names[j], "always", float(curve.always_coefs[at, i]), error, NAN, NAN, NAN, j))
    for i, j in enumerate(curve.supports[at].tolist()):
        error = NAN if errors is None else float(errors.chosen[at][i])
        unit = j if curve.units is None else int(curve.units.first[j])
        seen = (
            (halves.frequency(unit, size), *halves.spread(unit, size)) if known and halves is not None else (NAN,) * 3
        )
        rows.append(Coefficient(curve.names[j], "selected", float(curve.coefs[at][i]), error, *seen, j))
    return rows


def standard_errors(problem: SubsetProblem, fits: Sequence[Fit]) -> StandardErrors:
    """Of all final fits; not-a-number where no rows are left to estimate the noise from."""
    every = [_of_fit(problem, fit) for fit in fits]
    forced = problem.always.size
    return StandardErrors(
        chosen=tuple(errors[1 + forced :] for errors in every),
        always=np.stack([errors[1 : 1 + forced] for errors in every]),
        intercepts=np.array([errors[0] for errors in every]),
    )


def _of_carrying(problem: SubsetProblem, fit: Fit) -> Floats:
    """Where some coefficients are zero because of their sign: of the others, these left out; not-a-number for them."""
    carrying = fit.coef != 0
    smaller = Fit(fit.support[carrying], fit.coef[carrying], fit.intercept, fit.always_coef, fit.energy)
    known, first = _of_fit(problem, smaller), 1 + problem.always.size
    errors = np.full(first + carrying.size, NAN)
    errors[:first] = known[:first]
    errors[first:][carrying] = known[first:]
    return errors


def _of_fit(problem: SubsetProblem, fit: Fit) -> Floats:
    """Standard errors of the constant, the forced and the chosen coefficients of one fit.

    With a ridge term A = Z'WZ + penalty, they are those of the shrunken coefficients, :math:`A^{-1} Z^T W Z A^{-1}`,
    and d is the trace of the hat matrix; how far shrinking moves them is not in it.
    """
    if not problem.loss.squared or problem.units is not None:
        return problem.loss.standard_errors(problem, fit.support)
    if (fit.coef == 0).any() and problem.limits.signs is not None:
        return _of_carrying(problem, fit)
    which = np.concatenate([problem.always, fit.support]).astype(np.int64)
    present, constant = problem.sample_weight > 0, problem.center is not None
    unknown = np.full(1 + which.size, NAN)
    Z, w, y = problem.X[np.ix_(present, which)].astype(np.float64), problem.sample_weight[present], problem.y[present]
    unit = np.max(np.abs(Z), axis=0, initial=0.0)
    unit[unit == 0] = 1.0
    Z = Z / unit
    means = np.average(Z, axis=0, weights=w) if constant else np.zeros(which.size)
    root = np.sqrt(w)
    columns = (Z - means) * root[:, None]
    norms = np.linalg.norm(columns, axis=0)
    norms[norms == 0] = 1.0
    columns = columns / norms
    form = columns.T @ columns
    forced = problem.always.size
    chosen = columns[:, forced:]
    penalty = np.zeros(which.size)
    if problem.ridge:
        penalty[forced:] = np.minimum(problem.ridge / unit[forced:] / norms[forced:] / unit[forced:], 1e300)
        penalty[forced:] /= norms[forced:]
    if problem.shrinkage:  # in units of what forced columns leave of a chosen one
        rest = chosen - columns[:, :forced] @ (np.linalg.pinv(columns[:, :forced]) @ chosen)
        penalty[forced:] += problem.shrinkage * np.einsum("mj,mj->j", rest, rest)
    inverse = np.linalg.pinv(form + np.diag(penalty), hermitian=True)
    fitted = float(np.sum(inverse * form)) + constant
    if y.size - fitted <= 1e-9:
        return unknown
    coef = np.concatenate([fit.always_coef, fit.coef])
    scale = float(np.max(np.abs(y))) or 1.0
    residual = (y - fit.intercept) / scale - Z @ (coef * unit / scale)
    noise = scale**2 * float(w @ residual**2) / (y.size - fitted)
    spread: NDArray[np.float64] = (inverse @ form @ inverse) / np.outer(norms, norms)
    of_constant = np.sqrt(noise * (1.0 / w.sum() + float(means @ spread @ means))) if constant else NAN
    return np.append(of_constant, np.sqrt(np.maximum(noise * np.diag(spread), 0.0)) / unit)
