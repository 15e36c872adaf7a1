r"""Penalized maximum likelihood of many supports at once by Newton's method with step halving.

With columns D (forced ones and chosen ones, standardized) and an offset o, each of T fits minimizes

.. math:: E = \ell(\eta) + \tfrac12 \sum_a \lambda_a |\theta_a|^2, \quad \eta = o + D^T \theta ,

where :math:`\ell`, half the deviance, is convex, so a step that does not lower E is halved until it does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pairflip.least_squares import Floats

if TYPE_CHECKING:
    from pairflip.losses.likelihood import Likelihood

_STEPS, _HALVINGS = 100, 40
_ROUNDING = 1e-14  # of E and of its curvature: how far rounding moves E
_FLOOR = (
    1e-13  # of the diagonal: forced columns have no penalty, and where all rows are certain nothing is left of them
)
SEARCHING, FINAL = 1e-6, 1e-14
"""A step that promises less than this fraction of E is the last one, and squares what is left to gain."""


def newton(
    loss: Likelihood, rows: Any, D: Floats, offset: Floats, penalty: Floats, theta: Floats,
    close: float = FINAL, bound: float = np.inf,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Energies (T,) and coefficients (T, p, q) of the columns D (T, p, m), from the coefficients `theta`.

    A fit that is plainly going to stay above `bound` is given up with an energy above it.
    """
    count, p, q = theta.shape
    if p == 0:
        return np.asarray(loss.derivatives(rows, np.broadcast_to(offset, (count, *offset.shape)))[0]), theta
    energies, found, active, size = np.empty(count), theta.copy(), np.arange(count), p * q
    ridge, on_diagonal = penalty[:, None], np.repeat(penalty, q) + 1e-280

    def at(D: Floats, theta: Floats) -> tuple[Floats, Floats, Floats]:
        value, gradient, hessian = loss.system(rows, D, offset + D.transpose(0, 2, 1) @ theta)
        push = ridge * theta
        return value + 0.5 * np.einsum("tpq,tpq->t", push, theta), gradient - push, hessian

    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        value, gradient, hessian = at(D, theta)
        rounding = _ROUNDING * (np.abs(value) + np.einsum("tcc->t", hessian[:, 0, :, 0]))
        for _ in range(_STEPS):
            H = hessian.reshape(-1, size, size)
            diagonal = H.reshape(len(H), -1)[:, :: size + 1]
            diagonal *= 1.0 + _FLOOR
            diagonal += on_diagonal
            step = np.linalg.solve(H, gradient.reshape(-1, size, 1)).reshape(gradient.shape)
            promised = 0.5 * np.einsum("tpq,tpq->t", gradient, step)
            last = ~(promised > np.maximum(close * np.abs(value), rounding))
            last |= (promised < 0.05 * value) & (value - 2.0 * promised > bound)
            if last.any():
                own = active[last]
                energies[own], found[own] = (value - promised)[last], (theta + step)[last]
                if last.all():
                    return energies, found
                kept = [each[~last] for each in (D, active, rounding, theta, step, value)]
                D, active, rounding, theta, step, value = kept
            then, part = at(D, theta + step), np.ones((value.size, 1, 1))
            bad = ~(then[0] <= value + rounding)
            for _ in range(_HALVINGS if bad.any() else 0):
                part[bad] *= 0.5
                then = at(D, theta + part * step)
                bad = ~(then[0] <= value + rounding)
                if not bad.any():
                    break
            if bad.any():  # rounding hides what is left to gain
                energies[active[bad]], found[active[bad]] = value[bad], theta[bad]
                D, active, rounding, theta, step, part = (
                    each[~bad] for each in (D, active, rounding, theta, step, part)
                )
                then = then[0][~bad], then[1][~bad], then[2][~bad]
                if not active.size:
                    return energies, found
            theta, (value, gradient, hessian) = theta + part * step, then
    energies[active], found[active] = value, theta
    return energies, found
