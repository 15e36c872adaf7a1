"""One chain: its memory, its first support, and the pieces of state each way of flipping needs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.engines.numba.algebra import extend
from pairflip.engines.numba.compile import kernel

LANES = 8
"""Flips evaluated together: those behind an accepted one have to be corrected, so more would waste work."""
BLOCK = 1024
"""Flips drawn at a time, so that random numbers are made in vectors."""
ROW_CACHE_BYTES = 32 * 2**20
"""Memory that a chain may take for Gram rows when there is no G."""


class System(NamedTuple):
    """The problem as kernels see it: G (N, N), or columns (N, M) when G is too large (the other is empty)."""

    G: Any
    columns: Any
    b: Any
    diagonal: Any
    yy: float


class Chain(NamedTuple):
    """Memory of one chain, used again for the next one.

    `order` lists the support in its first k places and the columns outside it after. P, x belong to the
    support; W (k, N), r, s to all columns (the table).
    """

    order: Any
    P: Any
    x: Any
    best: Any
    slot: Any
    position: Any
    uniform: Any
    W: Any
    r: Any
    s: Any
    outside: Any
    cached_rows: Any
    cached_column: Any
    cache_slot: Any


def new_chain(k: int, n_columns: int, *, dense: bool) -> Chain:
    """Uninitialized memory for a chain of size k."""
    # At least the rows of a support, of which a table is built, and that of an entering column, which changes it.
    cached = 0 if dense else max(k + 1, min(256, ROW_CACHE_BYTES // (8 * n_columns)))

    def empty(*shape: int) -> Any:
        return np.empty(shape)

    return Chain(
        order=np.empty(n_columns, np.int32),
        P=empty(k, k),
        x=empty(k),
        best=np.empty(k, np.int32),
        slot=np.empty(BLOCK, np.int32),
        position=np.empty(BLOCK, np.int32),
        uniform=empty(BLOCK),
        W=empty(k, n_columns),
        r=empty(n_columns),
        s=empty(n_columns),
        outside=empty(n_columns),
        cached_rows=empty(cached, n_columns if cached else 0),
        cached_column=np.full(cached, -1, np.int64),
        cache_slot=np.full(n_columns if cached else 0, -1, np.int64),
    )


@kernel
def inner(G, columns, a, b):
    """G_ab of two different columns."""
    if G.size:
        return G[a, b]
    total = 0.0
    for m in range(columns.shape[1]):
        total += columns[a, m] * columns[b, m]
    return total


@kernel
def copy_row(source, i, target, j):
    """Row i of `source` into row j of `target`."""
    for m in range(source.shape[1]):
        target[j, m] = source[i, m]


@kernel
def gram_row(system, chain, j):
    """Row j of G; when only columns are kept, from a small cache of rows computed before."""
    if system.G.size:
        return system.G[j]
    at = chain.cache_slot[j]
    if at < 0:
        at = 0
        while chain.cached_column[at] >= 0 and at + 1 < chain.cached_column.size:
            at += 1
        if chain.cached_column[at] >= 0:  # full: forget one, whichever (j is as good a random number as any)
            at = j % chain.cached_column.size
            chain.cache_slot[chain.cached_column[at]] = -1
        # The diagonal holds the ridge, which the product of the columns does not.
        np.dot(system.columns, system.columns[j], chain.cached_rows[at])
        chain.cached_rows[at, j] = system.diagonal[j]
        chain.cached_column[at] = j
        chain.cache_slot[j] = at
    return chain.cached_rows[at]


@kernel
def start_chain(system, chain, random_order):
    """First support: the first k columns of a random order that stay independent.

    Returns how many there are, -1 when only the columns can tell.
    """
    k, n = chain.x.size, chain.order.size
    order, g = chain.order, np.empty(k)
    found, rest = 0, k
    # Columns passed over go behind the support in the order drawn, as in the reference: places are part of an address.
    for c in random_order:
        added = 0
        if found < k:
            for m in range(found):
                g[m] = inner(system.G, system.columns, order[m], c)
            added = extend(chain.P, found, g, system.diagonal[c])
        if added < 0:
            return -1
        if added:
            order[found] = c
            found += 1
        elif rest < n:
            # (Where fewer than k are found, the others do not all fit behind them; nobody walks from there.)
            order[rest] = c
            rest += 1
    return found


@kernel
def refresh(G, columns, b, diagonal, yy, order, P, x):
    """P, x of the support from G, free of accumulated rounding; returns the energy, NaN if it is too delicate."""
    k = x.size
    # Bordered column by column, like the first support: `extend` also sees where G has lost too much.
    g = np.empty(k)
    for m in range(k):
        for l in range(m):
            g[l] = inner(G, columns, order[m], order[l])
        if extend(P, m, g, diagonal[order[m]]) != 1:
            return np.nan
    energy = yy
    for m in range(k):
        total = 0.0
        for l in range(k):
            total += P[m, l] * b[order[l]]
        x[m] = total
        energy -= total * b[order[m]]
    return 0.5 * energy


@kernel
def build_table(system, chain):
    """W = P G_S:, r, s of every column."""
    k, n = chain.W.shape
    order, W, r, s, outside = chain.order, chain.W, chain.r, chain.s, chain.outside
    rows = np.empty((k, n))
    for m in range(k):
        # Copied: the next row may take this one's place in the cache.
        row = gram_row(system, chain, order[m])
        for j in range(n):
            rows[m, j] = row[j]
    np.dot(chain.P, rows, W)
    for j in range(n):
        r[j] = system.b[j]
        s[j] = system.diagonal[j]
        outside[j] = 1.0
    for m in range(k):
        x_m = chain.x[m]
        for j in range(n):
            r[j] -= x_m * rows[m, j]
            s[j] -= rows[m, j] * W[m, j]
    # Exactly what it is for columns of the support; rounding there would grow with every update.
    for m in range(k):
        c = order[m]
        outside[c], r[c], s[c] = 0.0, 0.0, 0.0
        for l in range(k):
            W[l, c] = 0.0
        W[m, c] = 1.0


@kernel
def gather(G, order, ahead, lanes, k, G_a):
    """Rows G_Sj (of G_a) of the first `lanes` columns j in `ahead`."""
    # Row by row of G, which lies together in memory; unsigned indices spare the test for negative ones.
    for m in range(k):
        c = np.uint64(order[m])
        for q in range(lanes):
            G_a[q, m] = G[c, ahead[q]]


@kernel
def gather_from_columns(columns, support_columns, ahead, lanes, ahead_columns, G_a):
    """The same from the columns, when there is no G."""
    for q in range(lanes):
        for m in range(columns.shape[1]):
            ahead_columns[q, m] = columns[ahead[q], m]
    # Whole sets, which BLAS likes; rows behind `lanes` hold numbers of before, and nobody reads them.
    np.dot(ahead_columns, support_columns.T, G_a)


@kernel
def project(P, G_a, lanes, k, W_a):
    """Rows W_j = P G_Sj (of W_a) of the first `lanes` flips ahead, where they are too few for BLAS."""
    for q in range(lanes):
        for m in range(k):
            total = 0.0
            for l in range(k):
                total += P[m, l] * G_a[q, l]
            W_a[q, m] = total


@kernel
def correlate(b, diagonal, x, ahead, lanes, k, G_a, W_a, r_a, s_a):
    """r_j and s_j of the first `lanes` flips ahead."""
    for q in range(lanes):
        r, s = 0.0, 0.0
        for m in range(k):
            r += G_a[q, m] * x[m]
            s += G_a[q, m] * W_a[q, m]
        r_a[q] = b[ahead[q]] - r
        s_a[q] = diagonal[ahead[q]] - s
