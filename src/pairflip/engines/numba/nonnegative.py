r"""Least squares with signs on a few columns, compiled, from the Gram matrix: who carries, and how much is explained.

The active set method of `pairflip.losses.sign_fit`, with a Cholesky factor of the carrying columns computed anew at
every step. What comes back is :math:`b_S^T x = y^T y - 2 E^+(S)`. Rounding moves it by about the inverse of the
smallest pivot; the caller is told which that was, and asks the columns where it matters.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.engines.base import EPSILON
from pairflip.engines.numba.cholesky import add_pivot, invert
from pairflip.engines.numba.compile import apart, kernel

ENTERS = 1e-11
"""A column carries if its product with the residual exceeds this fraction of the norm of y (see `sign_fit.ENTERS`)."""
LEAST = 1e-8
"""Pivots down to this: what is explained then has seven digits, and the columns have the last word."""
SAFE = 1e9
"""Supports of less inflation are regular for certain, whatever rounding did to it."""
ROUNDS = 10


class Few(NamedTuple):
    """Memory for up to K columns.

    `H`, `L`, `Q` (K, K): G among them, Cholesky factor, an inverse; `c`, `x`, `z` (K,): products with y, coefficients,
    those of the next step; `sign` (K,); `carries`, `refused` (K,): 1 or 0; `who` (K,): places of the carrying ones;
    `members` (K,): which candidates these are.
    """

    H: Any
    L: Any
    Q: Any
    c: Any
    x: Any
    z: Any
    sign: Any
    carries: Any
    refused: Any
    who: Any
    members: Any


def new_few(largest: int) -> Few:
    """Memory for up to so many columns."""
    square, line, whole = (largest, largest), largest, np.int64
    return Few(
        np.zeros(square), np.zeros(square), np.zeros(square), np.zeros(line), np.zeros(line), np.zeros(line),
        np.zeros(line), np.zeros(line, whole), np.zeros(line, whole), np.zeros(line, whole), np.zeros(line, whole),
    )  # fmt: skip


@kernel
def blur(pivot, k):
    """The fraction of y'y by which rounding may have moved what k columns explain: ten times what was seen."""
    return 8.0 * EPSILON * k / pivot


@apart
def inflation(G, few, k):
    """The largest variance inflation of the first k of `members`; infinite where they are dependent for certain.

    It is negative where rounding leaves open whether they are.
    """
    for a in range(k):
        pivot = add_pivot(G, few.L, few.members, a, few.members[a])
        if not pivot > 1e-12:
            return np.inf
        if not pivot > LEAST:
            return -1.0
    top = invert(few.L, few.Q, k)
    return max(top, 1.0) if top < SAFE else -1.0


@kernel
def solve_carrying(few, k):
    """Coefficients z of least squares on the carrying columns, zero for others; the smallest pivot."""
    L, who, p, least = few.L, few.who, 0, 1.0
    for a in range(k):
        few.z[a] = 0.0
        if few.carries[a] == 1:
            who[p] = a
            p += 1
    for a in range(p):
        for b in range(a + 1):
            t = few.H[who[a], who[b]]
            for l in range(b):
                t -= L[a, l] * L[b, l]
            if a > b:
                L[a, b] = t / L[b, b]
            else:
                least = min(least, t)
                if not t > LEAST:
                    return 0.0
                L[a, a] = np.sqrt(t)
    for a in range(p):
        t = few.c[who[a]]
        for l in range(a):
            t -= L[a, l] * few.z[who[l]]
        few.z[who[a]] = t / L[a, a]
    for a in range(p - 1, -1, -1):
        t = few.z[who[a]]
        for l in range(a + 1, p):
            t -= L[l, a] * few.z[who[l]]
        few.z[who[a]] = t / L[a, a]
    return least


@kernel
def drop_wrong(few, k):
    """Columns whose next coefficient has the wrong sign no longer carry; how many these are."""
    dropped = 0
    for a in range(k):
        if few.carries[a] == 1 and few.sign[a] != 0.0 and few.sign[a] * few.z[a] <= 0.0:
            few.carries[a] = 0
            dropped += 1
    return dropped


@kernel
def step_back(few, k):
    """From x towards z as far as signs allow; whether a column had to stop carrying."""
    share = 2.0
    for a in range(k):
        if few.carries[a] == 1 and few.sign[a] != 0.0 and few.sign[a] * few.z[a] <= 0.0:
            back = few.sign[a] * (few.x[a] - few.z[a])
            share = min(share, few.sign[a] * few.x[a] / back if back > 0.0 else 0.0)
    if share > 1.0:
        return False
    for a in range(k):
        wrong = few.sign[a] != 0.0 and few.sign[a] * few.z[a] <= 0.0
        if few.carries[a] == 1:
            back = few.sign[a] * (few.x[a] - few.z[a])
            if wrong and (back <= 0.0 or few.sign[a] * few.x[a] / back <= share):
                few.carries[a] = 0
                few.x[a] = 0.0
            else:
                few.x[a] += share * (few.z[a] - few.x[a])
    return True


@apart
def explain(G, b, yy, signs, few, k):
    """What the first k of `members` explain of y'y, with their signs, and the smallest pivot (0: not to be relied on).

    `x` has the coefficients, `carries` which of them are not zero.
    """
    for a in range(k):
        own = few.members[a]
        few.c[a], few.sign[a], few.carries[a], few.refused[a] = b[own], signs[own], 1, 0
        for l in range(a + 1):
            few.H[a, l] = few.H[l, a] = G[own, few.members[l]]
    pivot = solve_carrying(few, k)
    while pivot > 0.0 and drop_wrong(few, k) > 0:
        pivot = solve_carrying(few, k)
    for a in range(k):
        few.x[a] = few.z[a]
    limit = ENTERS * np.sqrt(yy)
    for _ in range(ROUNDS * k):
        enters, most = -1, limit
        for a in range(k):
            if few.carries[a] == 0 and few.refused[a] == 0:
                t = few.c[a]
                for l in range(k):
                    t -= few.H[a, l] * few.x[l]
                if few.sign[a] * t > most:
                    enters, most = a, few.sign[a] * t
        if enters < 0 or pivot == 0.0:
            break
        few.carries[enters] = 1
        pivot = solve_carrying(few, k)
        while pivot > 0.0 and step_back(few, k):
            pivot = solve_carrying(few, k)
        stays = few.carries[enters]
        for a in range(k):
            few.x[a] = few.z[a]
            if stays == 1:
                few.refused[a] = 0
        if stays == 0:
            few.refused[enters] = 1
    explained = 0.0
    for a in range(k):
        explained += few.c[a] * few.x[a]
    return explained, pivot
