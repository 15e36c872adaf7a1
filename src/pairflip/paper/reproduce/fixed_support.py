r"""Annealing of the fixed-support leave-one-out error (section III of the paper; its LOOE2 times M):

.. math:: E_\mathrm{loo}(S) = \tfrac12 \sum_\mu \left(\frac{e_\mu}{1 - h_\mu}\right)^2 .

This is half the sum of squared errors at each row of the fit of the *same* support on all other rows; e are the
residuals on all rows, and h is the diagonal of the hat matrix of the columns of S.

A flip is evaluated in O(M k) from the dual vectors :math:`A_l` of the support (in its span, with
:math:`A_l \cdot X_m = \delta_{lm}`). Slot i alone contributes the direction :math:`a = A_i` to the span. An entering
column j contributes :math:`q = X_j - \sum_l G_{lj} A_l + a \, (a \cdot X_j) / |a|^2`, the part of it that the other
slots do not explain. So :math:`e_\mu` becomes :math:`e_\mu + a_\mu (a \cdot y) / |a|^2 - q_\mu (q \cdot y) / |q|^2`,
and :math:`h_\mu` becomes :math:`h_\mu - a_\mu^2 / |a|^2 + q_\mu^2 / |q|^2`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.numba.compile import entry, kernel
from pairflip.least_squares import SINGULAR, Floats
from pairflip.philox import chain_keys, flip_draws, start_order
from pairflip.search.schedule import Schedule

SATURATED = 1e-8
"""A row whose leverage exceeds 1 - SATURATED dictates its own fit: it has no leave-one-out error."""


def loo_energy(X: Floats, y: Floats, support: NDArray[np.int64]) -> float:
    """E_loo of some columns of X (M, N) by QR; infinite when they are singular or make some row's leverage 1."""
    columns = X[:, support] / np.linalg.norm(X[:, support], axis=0)
    Q, R = np.linalg.qr(columns)
    rest = 1.0 - np.einsum("ml,ml->m", Q, Q)
    if np.min(np.abs(np.diag(R))) ** 2 <= SINGULAR or np.min(rest) <= SATURATED:
        return float("inf")
    left_out = (y - Q @ (Q.T @ y)) / rest
    return 0.5 * float(left_out @ left_out)


def anneal_loo(
    X: Floats, y: Floats, k: int, schedule: Schedule, chains: int, seed: int
) -> tuple[NDArray[np.int64], float]:
    """Sorted support (k,) with the lowest E_loo that annealing found, and that energy by QR."""
    n = X.shape[1]
    columns = np.ascontiguousarray((X / np.linalg.norm(X, axis=0)).T)
    G, betas, flips = columns @ columns.T, np.array(schedule.betas), schedule.flips(n)
    ends = []
    for key in chain_keys(seed, k, None, np.arange(chains)):
        draws = flip_draws(key, 0, int(flips.sum()), k, n - k)
        support = np.sort(_walk(columns, G, y, k, start_order(key, n), betas, flips, *draws)[0])
        ends.append((loo_energy(X, y, support), support))
    energy, support = min(ends, key=lambda each: each[0])
    return support, energy


@entry
def _walk(
    X: Any, G: Any, y: Any, k: Any, order: Any, betas: Any, flips: Any, slots: Any, positions: Any, uniforms: Any
) -> Any:
    """The support (k,) of the lowest E_loo that a chain met on columns X (N, M) of norm 1, and that E_loo."""
    A, e, h, q = np.empty((k, y.size)), np.empty(y.size), np.empty(y.size), np.empty(y.size)
    t, best = 0, order[:k].copy()
    energy = lowest = _rebuild(X, G, y, order, A, e, h, q)
    for step in range(betas.size):
        for _ in range(flips[step]):
            i, place, u = slots[t], k + positions[t], uniforms[t]
            t += 1
            proposed = _after_flip(X, G, y, order, A, e, h, q, i, order[place])
            if not u <= np.exp(-betas[step] * max(proposed - energy, 0.0)):
                continue
            order[i], order[place] = order[place], order[i]
            _empty(y, A, e, h, q, i)
            _fill(X, G, y, order, A, e, h, q, i)
            energy = proposed
            if energy < lowest:
                lowest = energy
                for l in range(k):
                    best[l] = order[l]
        energy = _rebuild(X, G, y, order, A, e, h, q)  # ends the rounding of the flips so far
    return best, lowest


@kernel
def _rebuild(X: Any, G: Any, y: Any, order: Any, A: Any, e: Any, h: Any, q: Any) -> Any:
    """Dual vectors A (k, M), residuals e and leverages h of the support, slot by slot; returns E_loo."""
    energy = 0.0
    for m in range(y.size):
        e[m], h[m] = y[m], 0.0
        for l in range(A.shape[0]):
            A[l, m] = 0.0
    for i in range(A.shape[0]):
        _fill(X, G, y, order, A, e, h, q, i)
    for m in range(y.size):
        energy += (e[m] / (1.0 - h[m])) ** 2
    return 0.5 * energy


@kernel
def _fill(X: Any, G: Any, y: Any, order: Any, A: Any, e: Any, h: Any, q: Any, i: Any) -> None:
    """Let column order[i] into slot i, whose dual vector is zero."""
    j = order[i]
    for m in range(y.size):
        q[m] = X[j, m]
    for l in range(A.shape[0]):
        g = G[order[l], j]
        for m in range(y.size):
            q[m] -= g * A[l, m]
    norm = _turn(y, e, h, q, 1.0)
    for l in range(A.shape[0]):
        seen = 1.0 if l == i else 0.0
        for m in range(y.size):
            seen -= A[l, m] * X[j, m]
        seen /= norm
        for m in range(y.size):
            A[l, m] += q[m] * seen


@kernel
def _empty(y: Any, A: Any, e: Any, h: Any, q: Any, i: Any) -> None:
    """Let the column in slot i leave; its dual vector becomes zero."""
    for m in range(y.size):
        q[m] = A[i, m]
    _turn(y, e, h, q, -1.0)
    for l in range(A.shape[0]):
        along = 0.0
        for m in range(y.size):
            along += A[l, m] * q[m]
        for m in range(y.size):
            A[l, m] -= q[m] * along


@kernel
def _turn(y: Any, e: Any, h: Any, q: Any, sign: Any) -> Any:
    """Add (sign 1) the direction q to the span, or remove it (-1); q gets norm 1, and its norm is returned."""
    norm, y_part = 0.0, 0.0
    for m in range(y.size):
        norm += q[m] * q[m]
    norm = norm**0.5
    for m in range(y.size):
        q[m] /= norm
        y_part += q[m] * y[m]
    for m in range(y.size):
        e[m] -= sign * y_part * q[m]
        h[m] += sign * q[m] * q[m]
    return norm


@kernel
def _after_flip(X: Any, G: Any, y: Any, order: Any, A: Any, e: Any, h: Any, q: Any, i: Any, j: Any) -> Any:
    """E_loo with column j in slot i, in O(M k); infinite where it is singular or has a row of leverage 1."""
    a, p, w, a_y, s, q_y = A[i], 0.0, 0.0, 0.0, 0.0, 0.0
    for m in range(y.size):
        q[m] = X[j, m]
        p += a[m] * a[m]
        w += a[m] * X[j, m]
        a_y += a[m] * y[m]
    for l in range(A.shape[0]):
        g = G[order[l], j] - (w / p if l == i else 0.0)
        for m in range(y.size):
            q[m] -= g * A[l, m]
    for m in range(y.size):
        s += q[m] * q[m]
        q_y += q[m] * y[m]
    if s <= SINGULAR:
        return np.inf
    out, into, a_scale, q_scale, energy, saturated = a_y / p, q_y / s, 1.0 / p, 1.0 / s, 0.0, 0
    for m in range(y.size):
        rest = 1.0 - h[m] + a[m] * a[m] * a_scale - q[m] * q[m] * q_scale
        saturated += rest <= SATURATED
        left_out = (e[m] + a[m] * out - q[m] * into) / rest
        energy += left_out * left_out
    return np.inf if saturated else 0.5 * energy
