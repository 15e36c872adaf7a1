r"""The best of all double flips of a support: two slots (a, b) for two columns (i, j) outside.

The algebra is that of `search/double_flip.py`. For most pairs of slots and columns i no j beats the best flip so far;
whether one does needs no division, :math:`r'^2_j > \text{bar} \cdot R'_{jj}`, and is asked of several at a time.
"""

import numpy as np

from pairflip.engines.numba.compile import entry
from pairflip.least_squares import SINGULAR


@entry
def find_double_flip(G, rows, P, x, W, r, s, outside):
    """Slots (a, b) and places outside (i, j) of the double flip with the lowest energy.

    Parameters
    ----------
    G : (N, N)
        The Gram matrix.
    rows, P, x : (k, n), (k, k), (k,)
        Its rows of the support at the columns outside, the inverse of its block, and the coefficients.
    W, r, s : (k, n), (n,), (n,)
        As in the flip algebra, of the columns outside.
    outside : (n,)
        Their positions.
    """
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
