r"""Simulated annealing in whole groups of columns: one unit out, one in, O(K^2 d) for each flip.

The algebra is that of `grouped`, for one flip at a time from P = inv(G_SS). An accepted flip changes P by two blocks:
with :math:`U = P_{:i} L_i^{-T}` the old unit leaves (:math:`P - U U^T`), with C the block of the new one and
:math:`T = G_{hS} P`, it enters (:math:`P + T^T C^{-1} T`, bordered by :math:`-T^T C^{-1}` and :math:`C^{-1}`). Rounding
is budgeted as everywhere (`DRIFT`). Flips that rounding might decide are judged from the columns: those from or to
supports that are nearly singular, and those that hardly change the energy.

Every unit has as many places in P as the widest one; `active` lists those that are in use.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.engines.base import BETTER, DRIFT, EPSILON
from pairflip.engines.numba.cholesky import CALM, THIN, add_pivot, invert
from pairflip.engines.numba.compile import entry, kernel, template
from pairflip.engines.numba.draws import accepts, draw_flips
from pairflip.engines.numba.grouped import Grouped, solve_small

CLOSE = 1e-9
"""Changes of energy within this fraction of y'y are judged from the columns: they may be none."""
BLOCK = 256
"""Flips whose random numbers are drawn together."""
AT_END, TO_BE_JUDGED, GO_ON = 0, 1, 2
CLOCK, STEP, DRAWN, REFRESHES, IS_CALM, HOW_MANY = range(6)
NOW, BEST, ROUNDING = range(3)


class GroupedChain(NamedTuple):
    """Memory of one chain of k units, w columns in the widest.

    `ones` (k,), `zeros` (U - k,), `best` (k,); `column`, `x` (k w,), `P`, `factor` (k w, k w), `active`, `listed`
    (k w,); for one flip `g`, `T` (w, k w), `L`, `C` (w, w), `V` (w, w), `c`, `t`, `z` (w,), `U` (k w, w); draws `slot`,
    `position`, `uniform` (BLOCK,); counts and numbers of the chain `whole`, `real`.
    """

    ones: Any
    zeros: Any
    best: Any
    column: Any
    x: Any
    P: Any
    factor: Any
    active: Any
    listed: Any
    g: Any
    T: Any
    L: Any
    C: Any
    V: Any
    c: Any
    t: Any
    z: Any
    U: Any
    slot: Any
    position: Any
    uniform: Any
    whole: Any
    real: Any


def new_chain(form: Grouped, k: int) -> GroupedChain:
    """Memory for a chain of k units."""
    n, w = form.start.size - 1, int(np.diff(form.start).max(initial=1))
    kw = k * w
    return GroupedChain(
        ones=np.zeros(k, np.int64), zeros=np.zeros(n - k, np.int64), best=np.zeros(k, np.int64),
        column=np.zeros(kw, np.int64), x=np.zeros(kw),
        P=np.zeros((kw, kw)), factor=np.zeros((kw, kw)), active=np.zeros(kw, np.int64),
        listed=np.zeros(kw, np.int64), g=np.zeros((w, kw)), T=np.zeros((w, kw)), L=np.zeros((w, w)),
        C=np.zeros((w, w)), V=np.zeros((w, w)), c=np.zeros(w), t=np.zeros(w), z=np.zeros(w), U=np.zeros((kw, w)),
        slot=np.zeros(BLOCK, np.int64), position=np.zeros(BLOCK, np.int64), uniform=np.zeros(BLOCK),
        whole=np.zeros(6, np.int64), real=np.zeros(3),
    )  # fmt: skip


@kernel
def list_places(form, chain):
    """Which places are in use, and the column at each; how many there are."""
    w, count = chain.c.size, 0
    for i in range(chain.ones.size):
        first = form.start[chain.ones[i]]
        for a in range(form.start[chain.ones[i] + 1] - first):
            chain.active[count] = i * w + a
            chain.column[i * w + a] = first + a
            chain.listed[count] = first + a
            count += 1
    chain.whole[HOW_MANY] = count
    return count


@kernel
def inflation(chain):
    """The largest variance inflation factor of the support."""
    top = 0.0
    for q in range(chain.whole[HOW_MANY]):
        top = max(top, chain.P[chain.active[q], chain.active[q]])
    return top


@template
def refresh(form, chain):
    """P, x and the energy of the support anew; not calm where the Gram matrix cannot tell."""
    K = list_places(form, chain)
    chain.whole[IS_CALM] = 0
    chain.whole[REFRESHES] += 1
    chain.real[ROUNDING] = 0.0
    for q in range(K):
        if not add_pivot(form.G, chain.factor, chain.listed, q, chain.listed[q]) > 0.5 / CALM:
            return
    # The inverse of the listed columns fills the first K rows; places lie further on or there, so it moves backwards.
    top = invert(chain.factor, chain.P, K)
    for q in range(K - 1, -1, -1):
        for l in range(K - 1, -1, -1):
            chain.P[chain.active[q], chain.active[l]] = chain.P[q, l]
    energy = form.yy
    for q in range(K):
        total = 0.0
        for l in range(K):
            total += chain.P[chain.active[q], chain.active[l]] * form.b[chain.listed[l]]
        chain.x[chain.active[q]] = total
        energy -= total * form.b[chain.listed[q]]
    if top <= CALM:
        chain.whole[IS_CALM] = 1
        chain.real[NOW] = 0.5 * energy


@template
def evaluate(form, chain, i, h):
    """Delta E of the flip of slot i and unit h, and the smallest pivot of the unit."""
    w, K, first = chain.c.size, chain.whole[HOW_MANY], form.start[h]
    d, own = form.start[h + 1] - first, form.start[chain.ones[i] + 1] - form.start[chain.ones[i]]
    for a in range(d):
        G_a, g_a, T_a = form.G[first + a], chain.g[a], chain.T[a]
        for q in range(K):
            g_a[q] = G_a[chain.listed[q]]
        r = form.b[first + a]
        for q in range(K):
            p, total = chain.P[chain.active[q]], 0.0
            for l in range(K):
                total += g_a[l] * p[chain.active[l]]
            T_a[q] = total
            r -= g_a[q] * chain.x[chain.active[q]]
        chain.t[a] = r
        for b in range(a + 1):
            total = G_a[first + b]
            for q in range(K):
                total -= T_a[q] * chain.g[b, q]
            chain.C[a, b] = total
    offset = 0
    for j in range(i):
        offset += form.start[chain.ones[j] + 1] - form.start[chain.ones[j]]
    lost = 0.0
    for a in range(own):  # the factor of P_ii, then c and V
        for b in range(a + 1):
            t = chain.P[i * w + a, i * w + b]
            for l in range(b):
                t -= chain.L[a, l] * chain.L[b, l]
            chain.L[a, b] = np.sqrt(t) if a == b else t / chain.L[b, b]
        t = chain.x[i * w + a]
        for l in range(a):
            t -= chain.L[a, l] * chain.c[l]
        chain.c[a] = t / chain.L[a, a]
        lost += chain.c[a] * chain.c[a]
        for e in range(d):
            t = chain.T[e, offset + a]
            for l in range(a):
                t -= chain.L[a, l] * chain.V[l, e]
            chain.V[a, e] = t / chain.L[a, a]
    for a in range(own):
        for e in range(d):
            chain.t[e] += chain.V[a, e] * chain.c[a]
            for f in range(e + 1):
                chain.C[e, f] += chain.V[a, e] * chain.V[a, f]
    gain, least, _ = solve_small(chain.C, chain.t, chain.z, d, form.yy)
    return 0.5 * (lost - gain), least


@template
def move(form, chain, i, position):
    """Make the flip that was just evaluated: P and x change by two blocks."""
    w, K, h = chain.c.size, chain.whole[HOW_MANY], chain.zeros[position]
    d, own = form.start[h + 1] - form.start[h], form.start[chain.ones[i] + 1] - form.start[chain.ones[i]]
    P, U, T, C = chain.P, chain.U, chain.T, chain.C
    for q in range(K):
        p = chain.active[q]
        for l in range(own):
            t = P[p, i * w + l]
            for m in range(l):
                t -= chain.L[l, m] * U[p, m]
            U[p, l] = t / chain.L[l, l]
            chain.x[p] -= U[p, l] * chain.c[l]
        for a in range(d):
            for l in range(own):
                T[a, q] -= chain.V[l, a] * U[p, l]
    for q in range(K):  # T becomes inv(L_C) T
        for a in range(d):
            for l in range(a):
                T[a, q] -= C[a, l] * T[l, q]
            T[a, q] /= C[a, a]
            chain.x[chain.active[q]] -= T[a, q] * chain.z[a]
    for q in range(K):
        p = chain.active[q]
        if p // w != i:
            for l in range(q + 1):
                s = chain.active[l]
                if s // w != i:
                    t = P[p, s]
                    for m in range(own):
                        t -= U[p, m] * U[s, m]
                    for a in range(d):
                        t += T[a, q] * T[a, l]
                    P[p, s] = t
                    P[s, p] = t
    for a in range(d - 1, -1, -1):  # inv(L_C') of T, of the unit matrix, and of z
        for q in range(K):
            p = chain.active[q]
            if p // w != i:
                t = T[a, q]
                for l in range(a + 1, d):
                    t += C[l, a] * P[p, i * w + l]
                P[p, i * w + a] = -t / C[a, a]
        t = chain.z[a]
        for l in range(a + 1, d):
            t -= C[l, a] * chain.x[i * w + l]
        chain.x[i * w + a] = t / C[a, a]
    for q in range(K):
        p = chain.active[q]
        if p // w != i:
            for a in range(d):
                P[i * w + a, p] = P[p, i * w + a]
    for b in range(d):  # inv(C), column by column
        for a in range(d):
            t = 1.0 if a == b else 0.0
            for l in range(a):
                t -= C[a, l] * chain.g[l, 0]
            chain.g[a, 0] = t / C[a, a]
        for a in range(d - 1, -1, -1):
            t = chain.g[a, 0]
            for l in range(a + 1, d):
                t -= C[l, a] * P[i * w + l, i * w + b]
            P[i * w + a, i * w + b] = t / C[a, a]
    chain.zeros[position], chain.ones[i] = chain.ones[i], h
    list_places(form, chain)


@kernel
def keep_best(chain, yy):
    """Remember the support if it is the best so far."""
    if chain.real[NOW] < chain.real[BEST] - BETTER * yy:
        chain.real[BEST] = chain.real[NOW]
        for i in range(chain.ones.size):
            chain.best[i] = chain.ones[i]


@entry
def begin(form, chain):
    """Compute all that belongs to the first support."""
    refresh(form, chain)


@entry
def advance(form, chain, key, betas, ends, energy, accepted, budget):
    """Attempt flips until the chain ends, one is to be judged from the columns, or so many are done."""
    k, whole, real = chain.ones.size, chain.whole, chain.real
    for _ in range(budget):
        while whole[STEP] < ends.size and whole[CLOCK] >= ends[whole[STEP]]:
            whole[STEP] += 1
        if whole[STEP] == ends.size:
            return AT_END
        if whole[CLOCK] >= whole[DRAWN]:
            draw_flips(
                whole[CLOCK], BLOCK, key[0], key[1], k, chain.zeros.size, chain.slot, chain.position, chain.uniform
            )
            whole[DRAWN] = whole[CLOCK] + BLOCK
        at = whole[CLOCK] - whole[DRAWN] + BLOCK
        if whole[IS_CALM] == 0:
            return TO_BE_JUDGED
        i, position = chain.slot[at], chain.position[at]
        delta, least = evaluate(form, chain, i, chain.zeros[position])
        if least < THIN or abs(delta) <= CLOSE * form.yy:
            return TO_BE_JUDGED
        if accepts(chain.uniform[at], betas[whole[STEP]] * delta):
            move(form, chain, i, position)
            real[NOW] += delta
            accepted[whole[STEP]] += 1
            top = inflation(chain)
            real[ROUNDING] += EPSILON * top
            if top > CALM or not real[ROUNDING] <= DRIFT:
                refresh(form, chain)
            keep_best(chain, form.yy)
        energy[whole[STEP]] += real[NOW]
        whole[CLOCK] += 1
    return GO_ON


@entry
def survey(form, chain, delta, to_be_judged):
    """Fill delta (k, U - k) with Delta E of every flip of the support; which of them the columns must judge."""
    refresh(form, chain)
    for i in range(delta.shape[0]):
        for j in range(delta.shape[1]):
            to_be_judged[i, j] = True
            if chain.whole[IS_CALM] == 1:
                delta[i, j], least = evaluate(form, chain, i, chain.zeros[j])
                to_be_judged[i, j] = least < THIN or abs(delta[i, j]) <= CLOSE * form.yy


@entry
def go_on_from(form, chain, now, moved):
    """After a flip that the columns decided: the support is new, or as it was."""
    if moved:
        refresh(form, chain)
    chain.real[NOW] = now
    keep_best(chain, form.yy)
