r"""Penalized maximum likelihood of one support by Newton's method (IRLS with step halving), compiled.

With forced columns Z (the constant among them), chosen columns X (standardized), an offset o and row weights w,

.. math:: E = \min_\theta \sum_i w_i\, \ell(y_i, \eta_i) + \tfrac12 \sum_j \lambda_j \theta_j^2, \quad
          \eta = o + (Z\; X)\, \theta .

:math:`\ell` is half the deviance of a row: :math:`\ln(1 + e^\eta) - y \eta` for y of 0 or 1, and
:math:`e^\eta - y - y (\eta - \ln y)` for counts. It is convex, so a step that does not lower E is halved until it does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from pairflip.losses.likelihood import LOGISTIC

_STEPS, _HALVINGS = 100, 40
_CLOSE = 1e-9  # of E: a Newton step that promises less is the last one, and squares what is left

_njit: Any = njit
_common: Any = {"error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz"}}
part_of = _njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **_common)
"""Called by compiled code, and not written out in each of its callers: Newton's method is long."""
entry = _njit(cache=True, nogil=True, **_common)


class Rows(NamedTuple):
    """What is fitted: target, weights and offset (m,); `family` is LOGISTIC or POISSON.

    `constant` is what half the deviance of counts has beside its terms in eta; `rounding` is how far rounding moves E.
    """

    y: Any
    w: Any
    offset: Any
    family: int
    constant: float
    rounding: float


class Workspace(NamedTuple):
    """Memory of a fit of up to p columns on m rows.

    `eta`, `mu`, `v` (m,): linear predictor, mean, and weight in the Hessian; `ahead`, `part` (m,) are for steps; `H`
    (p, p): the Hessian, then its Cholesky factor; `gradient`, `step` (p,).
    """

    eta: Any
    mu: Any
    v: Any
    ahead: Any
    part: Any
    H: Any
    gradient: Any
    step: Any


def workspace(p: int, m: int) -> Workspace:
    """Memory for fits of up to p columns on m rows."""
    eta, mu, v, ahead, part = (np.zeros(m) for _ in range(5))
    return Workspace(eta, mu, v, ahead, part, np.zeros((p, p)), np.zeros(p), np.zeros(p))


@part_of
def weigh_rows(rows: Any, work: Any) -> Any:
    """E without the penalty at `eta`; fills in `mu` and `v`."""
    y, w, eta, mu, v, total = rows.y, rows.w, work.eta, work.mu, work.v, rows.constant
    if rows.family == LOGISTIC:
        for i in range(y.size):
            a = np.exp(-abs(eta[i]))
            b = 1.0 / (1.0 + a)
            mu[i] = b if eta[i] >= 0.0 else a * b
            v[i] = w[i] * a * b * b
            total += w[i] * (max(eta[i], 0.0) + np.log1p(a) - y[i] * eta[i])
    else:
        for i in range(y.size):
            mu[i] = np.exp(eta[i])
            v[i] = w[i] * mu[i]
            total += w[i] * (mu[i] - y[i] * eta[i])
    return total


@part_of
def factor(D: Any, p: Any, penalty: Any, work: Any) -> None:
    """Cholesky factor, into the lower triangle of `H`, of the Hessian at the present weights `v`.

    Parameters
    ----------
    D, p, penalty, work
        As in `newton`.
    """
    H, v, part = work.H, work.v, work.part
    for a in range(p):
        D_a = D[a]
        for i in range(v.size):
            part[i] = D_a[i] * v[i]
        for b in range(a + 1):
            D_b, total = D[b], 0.0
            for i in range(v.size):
                total += part[i] * D_b[i]
            H[a, b] = total
        H[a, a] += penalty[a]
    for a in range(p):
        H_a, whole = H[a], H[a, a]
        for b in range(a):
            H_b, total = H[b], H_a[b]
            for l in range(b):
                total -= H_a[l] * H_b[l]
            H_a[b] = total / H_b[b]
        rest = whole
        for l in range(a):
            rest -= H_a[l] * H_a[l]
        # Forced columns have no penalty: where all rows are certain, nothing would be left of them.
        H_a[a] = max(rest, 1e-13 * whole, 1e-280) ** 0.5


@part_of
def newton(D: Any, p: Any, rows: Any, penalty: Any, theta: Any, work: Any, bound: Any) -> Any:
    """Minimize E over `theta` (p,) from where it is, for the columns D[:p] (p, m); the weights are those of the end.

    Where it is plain that E stays above `bound`, a value above it comes back early.

    Parameters
    ----------
    D, p
        Columns as contiguous rows, and how many of them are fitted.
    rows : Rows
        What is fitted.
    penalty, theta : (p,)
        Ridge terms, and coefficients: where to begin, then the minimum.
    work : Workspace
        Memory.
    bound : float
        See above; infinity to go to the end.
    """
    y, w, offset, m = rows.y, rows.w, rows.offset, rows.y.size
    eta, mu, ahead, H, g, step = work.eta, work.mu, work.ahead, work.H, work.gradient, work.step
    before = work.part
    for i in range(m):
        eta[i] = offset[i]
    cost = 0.0
    for a in range(p):
        D_a, t = D[a], theta[a]
        cost += 0.5 * penalty[a] * t * t
        for i in range(m):
            eta[i] += t * D_a[i]
    now = weigh_rows(rows, work) + cost
    for _ in range(_STEPS):
        factor(D, p, penalty, work)
        for a in range(p):
            D_a, total = D[a], -penalty[a] * theta[a]
            for i in range(m):
                total += D_a[i] * (w[i] * (y[i] - mu[i]))
            g[a] = total
            for l in range(a):
                total -= H[a, l] * step[l]
            step[a] = total / H[a, a]
        for a in range(p - 1, -1, -1):
            total = step[a]
            for l in range(a + 1, p):
                total -= H[l, a] * step[l]
            step[a] = total / H[a, a]
        promised = 0.0
        for i in range(m):
            ahead[i], before[i] = 0.0, eta[i]
        for a in range(p):
            D_a, t = D[a], step[a]
            promised += 0.5 * g[a] * t
            for i in range(m):
                ahead[i] += t * D_a[i]
        if promised < 0.05 * now and now - 2.0 * promised > bound:
            return now - promised
        size, better = 1.0, False
        for _ in range(_HALVINGS):
            cost = 0.0
            for a in range(p):
                t = theta[a] + size * step[a]
                cost += 0.5 * penalty[a] * t * t
            for i in range(m):
                eta[i] = before[i] + size * ahead[i]
            then = weigh_rows(rows, work) + cost
            if then <= now + rows.rounding:
                better = True
                break
            size *= 0.5
        if not better:
            for i in range(m):
                eta[i] = before[i]
            weigh_rows(rows, work)
            return now
        for a in range(p):
            theta[a] += size * step[a]
        now = then
        if promised <= max(_CLOSE * now, rows.rounding):
            break
    return now


@entry
def fit_rows(D: Any, rows: Any, penalty: Any, theta: Any, work: Any) -> Any:
    """E of the columns D (p, m), and `theta` (p,); `work.H` is the factor of the Hessian there.

    Parameters
    ----------
    D, rows, penalty, theta, work
        As in `newton`.
    """
    energy = newton(D, D.shape[0], rows, penalty, theta, work, np.inf)
    factor(D, D.shape[0], penalty, work)
    return energy
