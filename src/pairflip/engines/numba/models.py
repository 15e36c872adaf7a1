r"""Models of all sizes, weighed by their energy and size: a walk that adds, drops and flips columns.

With the algebra of `algebra` (:math:`P = G_{SS}^{-1}`, :math:`x = P b_S`, :math:`W_j = P G_{Sj}`, r, s of a column j)

.. math:: E(S + j) = E(S) - r_j^2 / 2 s_j, \quad E(S - i) = E(S) + x_i^2 / 2 P_{ii} .

The logarithm of the weight of a model is `prior[k]` plus :math:`-a E` or :math:`-a \ln(E + c)` (see `search.prior`).
One move in four adds a column, one drops one, two flip a pair; with k columns of n, adding has n - k choices and taking
back k + 1, so that its ratio of acceptance has the factor (n - k) / (k + 1), and the walk is reversible. A model in
which the variance inflation of a column exceeds `INFLATED` has weight zero: that is a property of the model, not of the
move.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import uint64

from pairflip.engines.numba.compile import entry, kernel
from pairflip.engines.numba.draws import LOW, below, draw_start, philox
from pairflip.philox import STREAM_MODELS

MODELS = uint64(STREAM_MODELS)
INFLATED = 1e7
"""Models with a larger variance inflation are left out: half of the digits of a Gram matrix are gone there."""
REFRESH = 64
"""Accepted moves after which P and x are computed anew."""


class ModelSystem(NamedTuple):
    """Inner products of unit-norm columns: G (n, n), b (n,), and half of y'y."""

    G: Any
    b: Any
    empty: float


class ModelWeight(NamedTuple):
    """What a model weighs: `prior` (n + 1,) by size, minus infinity where a size is not allowed; `known`, `a`, `c`.

    For coefficients: `shrink`, and the variance of the noise, `spread` + `slope` E.
    """

    prior: Any
    known: bool
    a: float
    c: float
    shrink: float
    spread: float
    slope: float


class ModelState(NamedTuple):
    """Where a walk stands: `order` (n,), the first k columns of which are in; P, x; `whole`: k, accepted since refresh.

    `real`: the energy; `g`, `W`, `v` (m,) are memory.
    """

    order: Any
    P: Any
    x: Any
    whole: Any
    real: Any
    g: Any
    W: Any
    v: Any


@kernel
def log_weight(weight, energy, k):
    """Logarithm of the weight of a model."""
    E = max(energy, 0.0)
    return weight.prior[k] - weight.a * (E if weight.known else np.log(E + weight.c))


@kernel
def beside(system, order, P, x, k, j, g, W):
    """(r, s, inflation) of column j beside the first k columns of `order`; W = P G_Sj is left in its array."""
    r, s = system.b[j], system.G[j, j]
    for m in range(k):
        g[m] = system.G[j, order[m]]
        r -= g[m] * x[m]
    for m in range(k):
        total = 0.0
        for l in range(k):
            total += P[m, l] * g[l]
        W[m] = total
        s -= g[m] * total
    return r, s, 1.0 / s if s > 0.0 else np.inf


@kernel
def border(P, x, k, W, r, s):
    """P and x with one column more."""
    x_j = r / s
    for m in range(k):
        w = W[m] / s
        for l in range(k):
            P[m, l] += w * W[l]
        P[m, k] = P[k, m] = -w
        x[m] -= x_j * W[m]
    P[k, k] = 1.0 / s
    x[k] = x_j


@kernel
def unborder(P, x, k, i, order):
    """P, x and the order without slot i: the last column takes its place."""
    last = k - 1
    order[i], order[last] = order[last], order[i]
    x[i], x[last] = x[last], x[i]
    for m in range(k):
        P[m, i], P[m, last] = P[m, last], P[m, i]
    for m in range(k):
        P[i, m], P[last, m] = P[last, m], P[i, m]
    p, x_i = P[last, last], x[last]
    for m in range(last):
        u = P[m, last] / p
        for l in range(last):
            P[m, l] -= u * P[last, l]
        x[m] -= u * x_i


@kernel
def renew(system, state):
    """P, x and the energy of the support from G, free of accumulated rounding."""
    order, P, x, k = state.order, state.P, state.x, state.whole[0]
    energy = system.empty
    for m in range(k):
        r, s, _ = beside(system, order, P, x, m, order[m], state.g, state.W)
        border(P, x, m, state.W, r, s)
        energy -= 0.5 * r * r / s
    state.real[0] = energy
    state.whole[1] = 0


@kernel
def try_add(system, weight, state, position, u):
    """One column more, if it is accepted."""
    k, order = state.whole[0], state.order
    n = order.size
    if k >= state.x.size or position >= n - k or weight.prior[k + 1] == -np.inf:
        return False
    j = order[k + position]
    r, s, worst = beside(system, order, state.P, state.x, k, j, state.g, state.W)
    for m in range(k):
        worst = max(worst, state.P[m, m] + state.W[m] * state.W[m] / s)
    if not (s > 0.0 and worst < INFLATED):
        return False
    energy = state.real[0] - 0.5 * r * r / s
    gain = log_weight(weight, energy, k + 1) - log_weight(weight, state.real[0], k) + np.log((n - k) / (k + 1))
    if not (gain >= 0.0 or u <= np.exp(gain)):
        return False
    border(state.P, state.x, k, state.W, r, s)
    order[k], order[k + position] = j, order[k]
    state.whole[0] = k + 1
    state.real[0] = energy
    return True


@kernel
def try_drop(system, weight, state, slot, u):
    """One column less, if it is accepted."""
    k, order = state.whole[0], state.order
    if k == 0 or weight.prior[k - 1] == -np.inf:
        return False
    energy = state.real[0] + 0.5 * state.x[slot] * state.x[slot] / state.P[slot, slot]
    ways = np.log(k / (order.size - k + 1.0))
    gain = log_weight(weight, energy, k - 1) - log_weight(weight, state.real[0], k) + ways
    if not (gain >= 0.0 or u <= np.exp(gain)):
        return False
    unborder(state.P, state.x, k, slot, order)
    state.whole[0] = k - 1
    state.real[0] = energy
    return True


@kernel
def try_flip(system, weight, state, slot, position, u):
    """One column for another, if it is accepted."""
    k, order, P, x = state.whole[0], state.order, state.P, state.x
    if k == 0 or position >= order.size - k:
        return False
    j = order[k + position]
    r, s, _ = beside(system, order, P, x, k, j, state.g, state.W)
    p, x_i, w = P[slot, slot], x[slot], state.W[slot]
    r, s = r + x_i * w / p, s + w * w / p
    if not s > 0.0:
        return False
    worst, v = 1.0 / s, state.v
    for m in range(k):
        v[m] = state.W[m] - P[slot, m] * w / p
        if m != slot:
            worst = max(worst, P[m, m] - P[slot, m] * P[slot, m] / p + v[m] * v[m] / s)
    if not worst < INFLATED:
        return False
    energy = state.real[0] + 0.5 * (x_i * x_i / p - r * r / s)
    gain = log_weight(weight, energy, k) - log_weight(weight, state.real[0], k)
    if not (gain >= 0.0 or u <= np.exp(gain)):
        return False
    g = state.g
    v[slot] = -1.0
    for m in range(k):
        g[m] = P[slot, m]
    for m in range(k):
        for l in range(k):
            P[m, l] += v[m] * v[l] / s - g[m] * g[l] / p
        x[m] -= g[m] * x_i / p + v[m] * r / s
    order[slot], order[k + position] = j, order[slot]
    state.real[0] = energy
    return True


@entry
def begin_models(system, state, key, k):
    """The first k columns, fewer if they are dependent, of the random order of a key."""
    draw_start(key[0], key[1], state.order)
    state.whole[0] = 0
    renew(system, state)
    at = 0
    while state.whole[0] < k and at < state.order.size:
        here = state.whole[0]
        r, s, worst = beside(system, state.order, state.P, state.x, here, state.order[at], state.g, state.W)
        for m in range(here):
            worst = max(worst, state.P[m, m] + state.W[m] * state.W[m] / s)
        if s > 0.0 and worst < 0.1 * INFLATED:
            border(state.P, state.x, here, state.W, r, s)
            state.order[here], state.order[at] = state.order[at], state.order[here]
            state.whole[0] = here + 1
        at += 1
    renew(system, state)


@entry
def walk_models(system, weight, state, key, first, moves, every, records, energies, accepted):
    """Moves `first` to `first` + `moves` - 1; every so many, the support (in no order, -1 behind it) is written."""
    key0, key1, n, row = uint64(key[0]), uint64(key[1]), state.order.size, 0
    for t in range(first, first + moves):
        w0, w1, w2, w3 = philox(uint64(t), MODELS, key0, key1)
        kind = w0 >> uint64(30)
        bits = ((w2 >> uint64(5)) << uint64(26)) | (w3 >> uint64(6))
        u = float(bits + uint64(1)) * 2.0**-53
        k = state.whole[0]
        slot, position = below((w0 << uint64(2)) & LOW, max(k, 1)), below(w1, max(n - k, 1))
        if kind == uint64(0):
            done, what = try_add(system, weight, state, position, u), 0
        elif kind == uint64(1):
            done, what = try_drop(system, weight, state, slot, u), 1
        else:
            done, what = try_flip(system, weight, state, slot, position, u), 2
        accepted[what, 1] += 1
        if done:
            accepted[what, 0] += 1
            state.whole[1] += 1
            if state.whole[1] >= REFRESH:
                renew(system, state)
        if (t + 1) % every == 0:
            for m in range(records.shape[1]):
                records[row, m] = state.order[m] if m < state.whole[0] else -1
            energies[row] = state.real[0]
            row += 1
