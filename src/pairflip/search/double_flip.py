r"""Exchange two columns at once, the best of all ways: what pair flips one at a time may never find.

A support can be the best of all its single flips and still not the best: a deep, narrow minimum elsewhere shares
k - 2 columns with it. For a support S, all exchanges of slots (a, b) with columns (i, j) cost O(N^2 k^2): with
W, r, s as in the flip algebra and :math:`R_{ij} = G_{ij} - G_{iS} W_j`, removing the two slots gives

.. math::
    R'_{ij} = R_{ij} + w_i^T Q w_j, \quad r'_i = r_i + w_i^T Q x_{ab}, \quad Q = (P_{ab,ab})^{-1}, \ w_i = W_{ab,i},

and the pair (i, j) then lowers :math:`2E` by :math:`r'^T R'^{-1} r'` over its two elements.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pairflip.distinct import distinct_supports
from pairflip.engines.base import is_lower
from pairflip.engines.numba.compile import entry
from pairflip.gram import Gram
from pairflip.least_squares import SINGULAR, Floats

_OPERATIONS = 2e8


def improve(gram: Gram, supports: NDArray[np.int64], energies: Floats) -> tuple[NDArray[np.int64], float] | None:
    """The best support that double flips reach from the lowest of `supports` (candidate positions), if better.

    As many supports are tried as a count of operations affords (some hundredths of a second); None where not even one
    is affordable, or where nothing better is found.
    """
    k = supports.shape[1]
    affordable = int(_OPERATIONS / (gram.n_columns**2 * k * k / 2.0)) if gram.dense and k >= 2 else 0
    if not affordable or gram.n_columns < k + 2:
        return None
    first = distinct_supports(supports).first
    lowest = first[np.argsort(energies[first], kind="stable")][: min(affordable, 32)]
    best, best_energy = supports[lowest[0]], float(energies[lowest[0]])
    start_energy = best_energy
    for index in lowest:
        support = supports[index]
        while True:
            flipped = best_double_flip(gram, support)
            energy = gram.energy(flipped)
            if is_lower(energy, best_energy, gram.yy):
                best, best_energy, support = flipped, energy, flipped
            else:
                break
    return (best, best_energy) if best_energy < start_energy else None


def best_double_flip(gram: Gram, support: NDArray[np.int64]) -> NDArray[np.int64]:
    """The lowest of all supports that differ from `support` (candidate positions) in two columns."""
    outside = np.setdiff1d(np.arange(gram.n_columns), support)
    rows = gram.matrix[np.ix_(support, outside)]
    P = np.linalg.inv(gram.matrix[np.ix_(support, support)])
    x, W = P @ gram.b[support], P @ rows
    r = gram.b[outside] - x @ rows
    s = gram.diagonal[outside] - np.einsum("mj,mj->j", rows, W)
    a, b, i, j = _search(gram.matrix, rows, P, x, W, r, s, outside)
    flipped = support.copy()
    flipped[[a, b]] = outside[i], outside[j]
    return np.sort(flipped)


@entry
def _search(G, rows, P, x, W, r, s, outside):  # type: ignore[no-untyped-def]
    """Slots (a, b) and places outside (i, j) of the double flip with the lowest energy."""
    k, n = rows.shape
    pairs = k * (k - 1) // 2
    slots, Q, y = np.empty((pairs, 2), np.int64), np.empty((pairs, 3)), np.empty((pairs, 2))
    # What the other columns have when the two are gone: r' and the diagonal of R'.
    r_without, s_without = np.empty((pairs, n)), np.empty((pairs, n))
    p = 0
    for a in range(k):
        for b in range(a + 1, k):
            determinant = P[a, a] * P[b, b] - P[a, b] * P[a, b]
            q_aa, q_bb, q_ab = P[b, b] / determinant, P[a, a] / determinant, -P[a, b] / determinant
            y_a, y_b = q_aa * x[a] + q_ab * x[b], q_ab * x[a] + q_bb * x[b]
            slots[p, 0], slots[p, 1], y[p, 0], y[p, 1] = a, b, y_a, y_b
            Q[p, 0], Q[p, 1], Q[p, 2] = q_aa, q_ab, q_bb
            for j in range(n):
                w_a, w_b = W[a, j], W[b, j]
                r_without[p, j] = r[j] + y_a * w_a + y_b * w_b
                s_without[p, j] = s[j] + q_aa * w_a * w_a + 2.0 * q_ab * w_a * w_b + q_bb * w_b * w_b
            p += 1
    best, found = -np.inf, (0, 1, 0, 1)
    for i in range(n - 1):
        R_i = G[outside[i]][outside[i + 1 :]]
        for m in range(k):
            R_i -= W[m, i] * rows[m, i + 1 :]
        for p in range(pairs):
            r_i, s_i = r_without[p, i], s_without[p, i]
            if s_i <= SINGULAR:
                continue
            a, b = slots[p]
            u, v = Q[p, 0] * W[a, i] + Q[p, 1] * W[b, i], Q[p, 1] * W[a, i] + Q[p, 2] * W[b, i]
            own = r_i * r_i / s_i - (y[p, 0] * x[a] + y[p, 1] * x[b])
            each, slope, bar = 1.0 / s_i, r_i / s_i, best - own
            W_a, W_b, r_j, s_j = W[a, i + 1 :], W[b, i + 1 :], r_without[p, i + 1 :], s_without[p, i + 1 :]
            # Is any column better than the best so far? Without a division, and so for several columns at a time.
            better = 0
            for j in range(R_i.size):
                shared = R_i[j] + u * W_a[j] + v * W_b[j]
                left, rest = s_j[j] - each * shared * shared, r_j[j] - slope * shared
                better += (rest * rest > bar * left) & (left > SINGULAR)
            if not better:
                continue
            for j in range(R_i.size):
                shared = R_i[j] + u * W_a[j] + v * W_b[j]
                left, rest = s_j[j] - each * shared * shared, r_j[j] - slope * shared
                if left > SINGULAR and own + rest * rest / left > best:
                    best, found = own + rest * rest / left, (a, b, i, i + 1 + j)
    return found
