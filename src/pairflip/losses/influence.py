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

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats, factor

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
        directions, values, _ = np.linalg.svd(influence.hat[rows], full_matrices=False)
        free = 1.0 - values**2
        alone = free <= _ALONE
        undetermined |= _touched(by_row[:, rows] @ directions[:, alone])
        # Along each direction of the hat matrix, 1 / free in place of 1.
        inflation = np.where(alone, 0.0, values**2 / np.where(alone, 1.0, free))
        rest = residual[rows]
        total += (by_row[:, rows] @ (rest + directions @ (inflation * (directions.T @ rest)))) ** 2
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


def of_squares(problem: SubsetProblem, fit: Fit) -> Influence:
    """Of a fit by least squares, with ordinary errors where rows are left to estimate the noise from.

    With Q R the chosen columns of the form, ridge terms among the rows, their coefficients are those of R^{-1} Q'; what
    is always in the model is fitted to what they leave. Errors are those of the shrunken coefficients; how far a ridge
    moves them is not in it.
    """
    form, rows, a = problem.form, problem.n_rows, problem.always.size
    present, root = problem.sample_weight > 0, np.sqrt(problem.sample_weight)
    # Coefficients that are zero because of their sign have no errors; the others have those of a fit without them.
    nonzero = (fit.coef != 0) | (problem.limits.signs is None)
    support = fit.support[nonzero]
    at = problem.slots(support)
    places = form.places(at)
    factors = factor(form.columns_of(places).T, form.target, form.penalty[places])
    assert factors is not None  # singular supports have no fit
    _, target, q, r = factors
    chosen = form.coefficients(at, np.linalg.inv(r) @ q[:rows].T, problem.scale)[1]
    inverse, first = pseudo_inverse(problem.forced), int(problem.center == "fold")
    forced = inverse - inverse @ (root[:, None] * (problem.values(support) - problem.means[support])) @ chosen
    by_row = np.full((1 + a + fit.support.size, rows), np.nan)
    by_row[1 : 1 + a] = forced[first:] / problem.powers[:, None]
    by_row[1 + a :][nonzero] = chosen
    hat = np.hstack([problem.forced_basis, q[:rows]])
    if problem.center is not None:
        weight = float(problem.sample_weight.sum())
        of_means = problem.means[problem.always] @ by_row[1 : 1 + a] + problem.means[support] @ chosen
        by_row[0] = (forced[0] if first else root / weight) - of_means
        hat = hat if first else np.column_stack([root / np.sqrt(weight), hat])
    residual = target - q @ (q.T @ target)
    residual -= q @ (q.T @ residual)
    influence = Influence(np.zeros(len(by_row)), by_row[:, present], residual[:rows][present], hat[present])
    scaled, rest, unit = _scaled(influence)
    freedom = problem.rows_present - float(np.sum(influence.hat**2))
    noise = np.linalg.norm(rest) / np.sqrt(freedom) if freedom > _ALONE else np.nan
    return influence._replace(ordinary=noise * unit * np.linalg.norm(scaled, axis=1))


def pseudo_inverse(columns: Floats) -> Floats:
    """The pseudo-inverse (f, M) of `columns` (M, f), whatever their units."""
    norms = np.linalg.norm(columns, axis=0)
    norms[norms == 0] = 1.0
    return np.asarray(np.linalg.pinv(columns / norms) / norms[:, None])


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
