"""What the walk would do, asked from outside (for exact tests): every flip of one support at once, and one decision."""

from __future__ import annotations

import numpy as np

from pairflip.engines.base import TIE
from pairflip.engines.numba.algebra import BEYOND, DELICATE, accepts, flip_energy, inflation, rounding
from pairflip.engines.numba.chain import (
    LANES,
    build_table,
    copy_row,
    correlate,
    gather,
    gather_from_columns,
    project,
    refresh,
)
from pairflip.engines.numba.compile import entry
from pairflip.engines.numba.orthogonal import build, energy_of, inflation_of, meet, stays_regular, weigh


@entry
def decide(u, z):
    """Whether the random number u accepts a flip of beta Delta E = z."""
    return accepts(u, z)


@entry
def survey(system, chain, exact, basis, by_table, delta):
    """Fill delta (k, N - k) with Delta E of exchanging slot i with the column at place j outside."""
    k, outside = delta.shape
    P, x, order = chain.P, chain.x, chain.order
    u, v = np.empty(k), np.empty(k)
    ahead, ahead_columns = np.empty(LANES, np.uint64), np.empty((LANES, system.columns.shape[1]))
    ahead_G, ahead_W, ahead_r, ahead_s = (
        np.empty((LANES, k)),
        np.empty((LANES, k)),
        np.empty(LANES),
        np.empty(LANES),
    )
    build(exact, basis, order[:k].copy(), False, order)
    now, inflated, tie = energy_of(exact, basis), inflation_of(basis), TIE * system.yy
    # Of a delicate support P would be NaN; all its flips are decided from the columns below.
    if inflated <= DELICATE:
        refresh(system.G, system.columns, system.b, system.diagonal, system.yy, order, P, x)
    tau = inflated * rounding(inflated, 0.0)
    support_columns = np.empty((k, system.columns.shape[1]))
    if system.G.size == 0:
        for m in range(k):
            copy_row(system.columns, order[m], support_columns, m)
    if by_table:
        build_table(system, chain)
    for place in range(outside):
        j = order[k + place]
        # The same column in every lane: gathering is written for whole sets, and lane 0 alone is read.
        for q in range(LANES):
            ahead[q] = j
        if system.G.size == 0:
            gather_from_columns(system.columns, support_columns, ahead, LANES, ahead_columns, ahead_G)
        else:
            gather(system.G, order, ahead, LANES, k, ahead_G)
        project(P, ahead_G, 1, k, ahead_W)
        correlate(system.b, system.diagonal, x, ahead, 1, k, ahead_G, ahead_W, ahead_r, ahead_s)
        # The same numbers as the table has them, so that a test sees what `walk_table` would see.
        if by_table:
            ahead_r[0], ahead_s[0] = chain.r[j], chain.s[j]
            for m in range(k):
                ahead_W[0, m] = chain.W[m, j]
        for i in range(k):
            hard, energy = inflated > DELICATE, 0.0
            if not hard:
                p, w = P[i, i], ahead_W[0, i]
                low, energy, _, s = flip_energy(x[i], p, ahead_r[0], ahead_s[0], w, tau, system.yy)
                for m in range(k):
                    u[m] = P[i, m]
                    v[m] = ahead_W[0, m] - u[m] * w / p
                v[i] = -1.0
                hard = low == BEYOND or not inflation(P, k, u, v, p, s) <= DELICATE
            if hard:
                meet(exact, basis, i, j, False)
                energy, alpha, s = weigh(exact, basis, i, j, now)
                if not stays_regular(basis, i, j, alpha, s):
                    energy = np.inf
            delta[i, place] = 0.0 if abs(energy) <= tie else energy
