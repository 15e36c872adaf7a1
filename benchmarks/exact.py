"""Exhaustive search of the best subset of up to four columns, as a yardstick."""

import numpy as np
from numba import njit

TOLERANCE = 1e-9


@njit(cache=True, fastmath=True, error_model="numpy")
def sweep(G, b, c):
    """Inner products of what is left of every column and of y once column c is projected out."""
    n = b.size
    G_left, b_left = np.empty((n, n)), np.empty(n)
    for i in range(n):
        a = G[i, c] / G[c, c]
        b_left[i] = b[i] - a * b[c]
        for j in range(n):
            G_left[i, j] = G[i, j] - a * G[c, j]
    return G_left, b_left


@njit(cache=True, fastmath=True, error_model="numpy")
def best_pair(G, b, first):
    """Largest reduction of the squared residual by two columns, both from `first` on."""
    best, best_i, best_j = 0.0, -1, -1
    for i in range(first, b.size):
        if G[i, i] <= TOLERANCE:
            continue
        own, mate, mate_j = b[i] * b[i] / G[i, i], 0.0, -1
        for j in range(i + 1, b.size):
            a = G[i, j] / G[i, i]
            r, s = b[j] - a * b[i], G[j, j] - a * G[i, j]
            gain = r * r / max(s, 1e-300) if s > TOLERANCE else 0.0
            if gain > mate:
                mate, mate_j = gain, j
        if own + mate > best:
            best, best_i, best_j = own + mate, i, mate_j
    return best, best_i, best_j


@njit(cache=True)
def lowest_support(G, b, k):
    """The best k columns (2 <= k <= 4): every subset is looked at."""
    best, chosen = -1.0, np.zeros(k, np.int64)
    if k == 2:
        _, chosen[0], chosen[1] = best_pair(G, b, 0)
        return chosen
    for c in range(b.size):
        if G[c, c] <= TOLERANCE:
            continue
        G_c, b_c = sweep(G, b, c)
        gain_c = b[c] * b[c] / G[c, c]
        if k == 3:
            gain, i, j = best_pair(G_c, b_c, c + 1)
            if gain_c + gain > best and j >= 0:
                best = gain_c + gain
                chosen[0], chosen[1], chosen[2] = c, i, j
            continue
        for d in range(c + 1, b.size):
            if G_c[d, d] <= TOLERANCE:
                continue
            G_d, b_d = sweep(G_c, b_c, d)
            gain, i, j = best_pair(G_d, b_d, d + 1)
            total = gain_c + b_c[d] * b_c[d] / G_c[d, d] + gain
            if total > best and j >= 0:
                best = total
                chosen[0], chosen[1], chosen[2], chosen[3] = c, d, i, j
    return chosen
