"""Cholesky factors of the Gram matrix of a few columns, for groups and signs."""

from __future__ import annotations

import numpy as np

from pairflip.engines.numba.compile import kernel

MINIMUM, DOUBT = 0, 1
CALM = 1e4
"""Inflation up to which the Gram matrix is asked: Schur complements then have errors of some 1e-11."""
THIN = 1e-4
"""A column of which less than this is independent of the others is judged from the columns."""
LOST = 1e-11
"""What rounding may have changed of a Schur complement."""
GRAY = 1e-8
"""Changes of energy within this fraction of tr Y'Y are judged from the columns."""
SEATED = 1e-6
"""Random supports take columns of which at least this is independent of those before."""


@kernel
def invert(L, P, k):
    """P = inv(L L') of the first k; the largest diagonal element."""
    for a in range(k):  # inv(L) into the lower part of P
        for b in range(a, k):
            t = 1.0 if b == a else 0.0
            for l in range(a, b):
                t -= L[b, l] * P[l, a]
            P[b, a] = t / L[b, b]
    top = 0.0
    for a in range(k):
        for b in range(a, k):
            t = 0.0
            for l in range(b, k):
                t += P[l, a] * P[l, b]
            P[a, b] = t  # reads rows l >= b of columns a and b: those below the diagonal, not yet overwritten
        top = max(top, P[a, a])
    for a in range(k):
        for b in range(a):
            P[a, b] = P[b, a]
    return top


@kernel
def add_pivot(G, L, support, k, column):
    """Row k of the Cholesky factor for one column more; its squared pivot."""
    for a in range(k):
        t = G[column, support[a]]
        for l in range(a):
            t -= L[k, l] * L[a, l]
        L[k, a] = t / L[a, a]
    pivot = G[column, column]
    for l in range(k):
        pivot -= L[k, l] * L[k, l]
    L[k, k] = np.sqrt(max(pivot, 0.0))
    return pivot


@kernel
def optimistic(square, s, yy):
    """The most that a column may gain, given what rounding leaves open."""
    top = np.sqrt(max(square, 0.0)) + LOST * np.sqrt(yy)
    return top * top / max(s - 2.0 * LOST, LOST)
