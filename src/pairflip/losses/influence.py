r"""What single rows contribute to the coefficients of a fit, and the standard errors that follow from it.

Coefficients are, to first order, :math:`c = L r` of what rows leave, r (m,), with the hat matrix :math:`H = F F^T`.
*Ordinary* errors suppose that all rows have the same noise; for squared error they are
:math:`s^2 L L^T, s^2 = r^T r / (m - \mathrm{tr} H)`. *Robust* ones take every row's residual for its noise, enlarged
for what the row itself has drawn the fit towards it (HC3, MacKinnon & White, J. Econometrics 29, 1985):
:math:`\sum_i L_i L_i^T (r_i / (1 - H_{ii}))^2`. *Clustered* ones do the same with groups of rows, whose noise may be
shared: :math:`\sum_g u_g u_g^T, u_g = L_g (1 - H_{gg})^{-1} r_g` (CR3, Bell & McCaffrey, Survey Methodology 28, 2002).
All are those of columns that were fixed before the target was seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats, orthonormal_basis

if TYPE_CHECKING:
    from pairflip.losses.base import Fit
    from pairflip.problem import SubsetProblem

_ALONE = 1e-9  # of 1 - H: rows that determine a coefficient alone leave nothing to tell its error from
_TOUCHED = 1e-9  # of the largest contribution to a coefficient


class Influence(NamedTuple):
    """Ordinary errors (d,) of the constant, the forced and the chosen coefficients, and what m rows contribute."""

    ordinary: Floats  # not-a-number where there is no such coefficient, or where rows are too few
    by_row: Floats  # L (d, m)
    residual: Floats  # r (m,)
    hat: Floats  # F (m, p)


def robust_errors(influence: Influence) -> Floats:
    """HC3 errors (d,); not-a-number for coefficients that a single row determines."""
    by_row, residual, unit = _scaled(influence)
    free = 1.0 - np.einsum("mp,mp->m", influence.hat, influence.hat)
    alone = free <= _ALONE
    errors = unit * np.linalg.norm(by_row * (residual / np.where(alone, 1.0, free)), axis=1)
    return np.where(_touched(by_row[:, alone]), np.nan, errors)


def clustered_errors(influence: Influence, groups: NDArray[np.int64]) -> Floats:
    """CR3 errors (d,) with groups (m,) of rows; not-a-number for coefficients that a single group determines."""
    by_row, residual, unit = _scaled(influence)
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=groups[order[:1]] - 1))
    total, undetermined = np.zeros(len(by_row)), np.zeros(len(by_row), dtype=bool)
    for rows in np.split(order, starts[1:]):
        left, values, _ = np.linalg.svd(influence.hat[rows], full_matrices=False)
        free = 1.0 - values**2
        alone = free <= _ALONE
        undetermined |= _touched(by_row[:, rows] @ left[:, alone])
        # Along each direction of the hat matrix, 1 / free in place of 1.
        factor = np.where(alone, 0.0, values**2 / np.where(alone, 1.0, free))
        own = residual[rows]
        total += (by_row[:, rows] @ (own + left @ (factor * (left.T @ own)))) ** 2
    return np.where(undetermined, np.nan, unit * np.sqrt(total))


def _scaled(influence: Influence) -> tuple[Floats, Floats, Floats]:
    """L (d, m) and r (m,) scaled to at most 1, so that no square overflows, and the units (d,) of the errors.

    These are not-a-number where there is no ordinary error.
    """
    size = np.max(np.abs(influence.by_row), axis=1, initial=0.0)
    size[~(size > 0)] = 1.0
    unit = float(np.max(np.abs(influence.residual), initial=0.0)) or 1.0
    units = np.where(np.isnan(influence.ordinary), np.nan, unit * size)
    return influence.by_row / size[:, None], influence.residual / unit, units


def _touched(contributions: Floats) -> NDArray[np.bool_]:
    """Which coefficients (d,) some contributions (d, n), of at most 1, are not negligible for."""
    return np.asarray(np.max(np.abs(contributions), axis=1, initial=0.0) > _TOUCHED)


# Squared error --------------------------------------------------------------------------------------------------------


def _of_squares(by_row: Floats, residual: Floats, hat: Floats, n_rows: int) -> Influence:
    """With ordinary errors from the residuals; not-a-number where no rows are left to estimate the noise from."""
    influence, room = Influence(np.zeros(len(by_row)), by_row, residual, hat), n_rows - float(np.sum(hat**2))
    by_row, residual, unit = _scaled(influence)
    noise = np.linalg.norm(residual) / np.sqrt(room) if room > _ALONE else np.nan
    return influence._replace(ordinary=noise * unit * np.linalg.norm(by_row, axis=1))


def of_columns(problem: SubsetProblem, fit: Fit) -> Influence:
    """Of a fit by least squares where columns are chosen one by one.

    With a ridge term A = Z'WZ + penalty, errors are those of the shrunken coefficients, and d is the trace of the hat
    matrix; how far shrinking moves them is not in it.
    """
    # Coefficients that are zero because of their sign have no errors; the others have those of a fit without them.
    nonzero = (fit.coef != 0) | (problem.limits.signs is None)
    columns = np.concatenate([problem.always, fit.support[nonzero]]).astype(np.int64)
    forced, constant, y = problem.always.size, problem.center is not None, problem.y[problem.sample_weight > 0]
    scaled, unit, means, norms, w = scaled_columns(problem, columns)
    Z, root = scaled * norms + means, np.sqrt(w)
    scaled = root[:, None] * scaled
    chosen, penalty = scaled[:, forced:], np.zeros(columns.size)
    if problem.ridge:
        penalty[forced:] = np.minimum(problem.ridge / unit[forced:] / norms[forced:] / unit[forced:], 1e300)
        penalty[forced:] /= norms[forced:]
    if problem.shrinkage:  # in units of what forced columns leave of a chosen one
        rest = chosen - scaled[:, :forced] @ (np.linalg.pinv(scaled[:, :forced]) @ chosen)
        penalty[forced:] += problem.shrinkage * np.einsum("mj,mj->j", rest, rest)
    inverse = np.linalg.pinv(scaled.T @ scaled + np.diag(penalty), hermitian=True)
    coef = np.concatenate([fit.always_coef, fit.coef[nonzero]])
    scale = float(np.max(np.abs(y))) or 1.0
    residual = scale * root * ((y - fit.intercept) / scale - Z @ (coef * unit / scale))
    by_column = (inverse @ scaled.T) / norms[:, None]
    hat = np.column_stack([root / np.sqrt(w.sum()) * constant, scaled @ _root(inverse)])
    by_row = np.full((1 + forced + fit.support.size, y.size), np.nan)
    by_row[0] = root / w.sum() - means @ by_column if constant else np.nan
    by_row[1:][np.append(np.ones(forced, dtype=bool), nonzero)] = by_column / unit[:, None]
    return _of_squares(by_row, residual, hat, problem.rows_present)


def of_units(problem: SubsetProblem, fit: Fit) -> Influence:
    """Of a fit by least squares where columns are chosen in groups.

    Coordinates in the bases of the groups are A D'y with D their columns and A the inverse of D'D and ridge terms;
    coefficients are linear in them. What is always in the model is fitted to what they leave.
    """
    form: Any = problem.form
    at = problem.slots(fit.support)
    present, root = problem.sample_weight > 0, np.sqrt(problem.sample_weight)
    constant = problem.center is not None
    forced = np.hstack([np.ones((problem.n_rows, int(constant))), problem.values(problem.always)]) * root[:, None]
    norms = np.linalg.norm(forced, axis=0)
    norms[norms == 0] = 1.0
    inverse = np.linalg.pinv(forced / norms) / norms[:, None]
    design = form.columns[form.places(at)].T  # rows of the ridge come last
    columns, target = design[: problem.n_rows], form.target[: problem.n_rows]
    A = np.linalg.inv(design.T @ design)
    by_chosen = form.to_table(at, problem.scale)[1] @ A @ columns.T
    by_forced = inverse - inverse @ (root[:, None] * problem.values(fit.support)) @ by_chosen
    by_row = np.vstack([by_forced if constant else np.vstack([np.full((1, len(root)), np.nan), by_forced]), by_chosen])
    hat = np.hstack([orthonormal_basis(forced), columns @ _root(A)])
    residual = target - columns @ (A @ (columns.T @ target))
    return _of_squares(by_row[:, present], residual[present], hat[present], problem.rows_present)


def _root(inverse: Any) -> Any:
    """R (p, p) with R R' = `inverse`, which is positive semi-definite."""
    values, vectors = np.linalg.eigh(inverse)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def scaled_columns(problem: SubsetProblem, columns: NDArray[np.int64]) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Columns (m, d) of the rows present, less their means where there is a constant, over their norms.

    Also their units (d,), by which they were divided first so that no square overflows, the means and norms (d,) in
    these units, and the weights (m,) of the rows.
    """
    present = problem.sample_weight > 0
    Z, w = problem.values(columns, np.flatnonzero(present)).astype(np.float64), problem.sample_weight[present]
    unit = np.max(np.abs(Z), axis=0, initial=0.0)
    unit[unit == 0] = 1.0
    Z = Z / unit
    means = np.average(Z, axis=0, weights=w) if problem.center is not None else np.zeros(columns.size)
    Z = Z - means
    norms = np.sqrt(w @ Z**2)
    norms[norms == 0] = 1.0
    return Z / norms, unit, means, norms, w
