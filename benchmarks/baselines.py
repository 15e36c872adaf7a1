"""Two ways to do the paper's flip without our algebra; both walk exactly the chain our engines walk.

(a) NumPy: least squares of the k columns, solved anew at every flip.
(b) Numba: the paper's O(M k + k^2) flip, which keeps the inverse of the k x k Gram matrix and recomputes the inner
    products of the entering column with the support from the table; no N x N matrix, no table, no early stop.
"""

import numpy as np
from numba import njit

from pairflip.engines.numba.draws import draw_flips
from pairflip.philox import flip_draws


def numpy_walk(columns, target, order, k, betas, flips, key, most):
    """Baseline (a) for the first `most` flips; returns the number of accepted ones."""
    ones, zeros = order[:k].copy(), order[k:].copy()

    def energy(support):
        design = columns[support].T
        solution = np.linalg.lstsq(design, target, rcond=None)[0]
        residual = target - design @ solution
        return 0.5 * residual @ residual

    now, accepted = energy(ones), 0
    for t, (i, j, u) in enumerate(zip(*flip_draws(key, 0, most, k, zeros.size), strict=True)):
        flipped = ones.copy()
        flipped[i] = zeros[j]
        then = energy(flipped)
        if then <= now or u <= np.exp(-betas[t // flips] * (then - now)):
            ones[i], zeros[j] = zeros[j], ones[i]
            now, accepted = then, accepted + 1
    return accepted


@njit(fastmath={"reassoc", "contract", "nsz"}, error_model="numpy", nogil=True)
def paper_walk(columns, b, inverse, order, k, betas, flips, key0, key1):
    """Baseline (b): walks `order` in place from inv(G_SS); returns the number of accepted flips."""
    n_columns, n_rows = columns.shape
    P, x = inverse.copy(), np.dot(inverse, b[order[:k]])
    g, v, u = np.empty(k), np.empty(k), np.empty(k)
    block = 128
    slot, position, uniform = np.empty(block, np.int32), np.empty(block, np.int32), np.empty(block)
    t, accepted = 0, 0
    for beta in betas:
        end = t + flips
        while t < end:
            n = min(block, end - t)
            draw_flips(t, n, key0, key1, k, n_columns - k, slot, position, uniform)
            for q in range(n):
                i, place = slot[q], k + position[q]
                j = order[place]
                entering = columns[j]
                r, s = b[j], 1.0
                for m in range(k):
                    column, total = columns[order[m]], 0.0
                    for row in range(n_rows):
                        total += column[row] * entering[row]
                    g[m] = total
                for m in range(k):
                    row_m, total = P[m], 0.0
                    for l in range(k):
                        total += row_m[l] * g[l]
                    v[m] = total
                    s -= total * g[m]
                    r -= x[m] * g[m]
                p, x_i, w = P[i, i], x[i], v[i]
                r += x_i * w / p
                s += w * w / p
                if s <= 1e-10:
                    continue
                delta = 0.5 * (x_i * x_i / p - r * r / s)
                if delta <= 0.0 or uniform[q] <= np.exp(-beta * delta):
                    accepted += 1
                    x_j = r / s
                    for m in range(k):
                        u[m] = P[i, m]
                        v[m] -= u[m] * (w / p)
                    v[i] = -1.0
                    for m in range(k):
                        a, c, row_m = -u[m] / p, v[m] / s, P[m]
                        for l in range(k):
                            row_m[l] += a * u[l] + c * v[l]
                        x[m] += a * x_i - v[m] * x_j
                    for m in range(k):
                        P[i, m] = -v[m] / s
                        P[m, i] = -v[m] / s
                    P[i, i] = 1.0 / s
                    x[i] = x_j
                    order[i], order[place] = j, order[i]
            t += n
    return accepted
