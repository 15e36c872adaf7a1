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
SEARCHING, FINAL = 1e-7, 1e-14
"""A step that promises less than this fraction of E is the last one, and squares what is left to gain."""


def newton(
    loss: Likelihood, rows: Any, D: Floats, offset: Floats, penalty: Floats, theta: Floats,
    close: float = FINAL, bound: float = np.inf,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Energies (T,) and coefficients (T, p, q) of the columns D (T, p, m), from the coefficients `theta`.

    A fit that is plainly going to stay above `bound` is given up with an energy above it.
    """
    count, p, q = theta.shape
    energies, theta, active, half = np.empty(count), theta.copy(), np.arange(count), 0.5 * penalty[:, None]
    if p == 0:
        return np.asarray(loss.derivatives(rows, np.broadcast_to(offset, (count, *offset.shape)))[0]), theta

    def at(D: Floats, theta: Floats) -> tuple[Floats, Floats, Floats]:
        value, gradient, hessian = loss.system(rows, D, offset + D.transpose(0, 2, 1) @ theta)
        gradient = gradient - penalty[:, None] * theta
        return value + np.sum(half * theta * theta, axis=(1, 2)), gradient, hessian

    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        here, (value, gradient, hessian) = theta, at(D, theta)
        rounding = _ROUNDING * (np.abs(value) + np.einsum("tcc->t", hessian[:, 0, :, 0]))
        for _ in range(_STEPS):
            size = p * q
            H = hessian.reshape(-1, size, size)
            diagonal = np.arange(size)
            H[:, diagonal, diagonal] *= 1.0 + _FLOOR
            H[:, diagonal, diagonal] += np.repeat(penalty, q) + 1e-280
            step = np.linalg.solve(H, gradient.reshape(-1, size, 1)).reshape(gradient.shape)
            promised = 0.5 * np.sum(gradient * step, axis=(1, 2))
            last = (promised <= np.maximum(close * np.abs(value), rounding)) | ~np.isfinite(promised)
            last |= (promised < 0.05 * value) & (value - 2.0 * promised > bound)
            if last.any():
                own = active[last]
                energies[own], theta[own] = (value - promised)[last], (here + step)[last]
                if last.all():
                    return energies, theta
                go = ~last
                D, active, rounding, here, step, value = D[go], active[go], rounding[go], here[go], step[go], value[go]
            then, part = at(D, here + step), np.ones(value.size)
            for _ in range(_HALVINGS):
                bad = ~(then[0] <= value + rounding)
                if not bad.any():
                    break
                part[bad] *= 0.5
                then = at(D, here + part[:, None, None] * step)
            bad = ~(then[0] <= value + rounding)  # rounding hides what is left to gain
            own = active[bad]
            energies[own], theta[own] = value[bad], here[bad]
            go = ~bad
            here, D, active, rounding = (here + part[:, None, None] * step)[go], D[go], active[go], rounding[go]
            value, gradient, hessian = (each[go] for each in then)
            if not active.size:
                return energies, theta
    energies[active], theta[active] = value, here
    return energies, theta
