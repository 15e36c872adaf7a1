r"""An orthonormal basis of the columns of a support, for energies that rounding must not decide.

Q (K, L) is the basis, T (K, K) are the coordinates of the dual vectors, :math:`A_l = \sum_m T_{lm} Q_m` with
:math:`X_l \cdot A_m = \delta_{lm}`, so that :math:`G_{SS}^{-1} = T T^T` and the variance inflation factor of slot l is
:math:`|T_l|^2`. The ridge is one more row for each slot, which holds :math:`\sqrt{\lambda_j}` of the column in that
slot.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.engines.numba.compile import apart, template


class Exact(NamedTuple):
    """A problem by its columns: `vectors` (D + q, L), the targets after the columns; `root` (D,) of the ridge or (0,).

    With a ridge, vectors end with a zero for each slot. Unit u, what enters and leaves together, is columns `start[u]`
    to `start[u + 1]` - 1; `rules` between units matter if `ruled`.
    """

    vectors: Any
    root: Any
    start: Any
    rules: Any
    ruled: bool


class Basis(NamedTuple):
    """Memory: Q, T, and `rest` (1 + q, L), what the basis leaves of the last vector and of the targets.

    `inflated` (K + 1, K + 1): inflations of the first n columns in row n, and the largest of them at its end; `c`
    (K,): coordinates of the last vector.
    """

    Q: Any
    T: Any
    rest: Any
    inflated: Any
    c: Any


class Chosen(NamedTuple):
    """Units `at` (k,) taken so far, `built` (k,) those in the basis, and which units are to be judged (U,)."""

    at: Any
    built: Any
    seen: Any


def most_columns(start: Any, k: int) -> int:
    """How many columns k units have at the most."""
    return int(np.sort(np.diff(start))[-k:].sum())


def new_basis(exact: Exact, k: int) -> tuple[Basis, Chosen]:
    """Memory for supports of k units, none of them chosen yet."""
    K, (rows, length) = most_columns(exact.start, k), exact.vectors.shape
    rest, inflated, c = np.empty((1 + rows - exact.start[-1], length)), np.zeros((K + 1, K + 1)), np.empty(K)
    basis = Basis(np.empty((K, length)), np.empty((K, K)), rest, inflated, c)
    return basis, Chosen(np.zeros(k, np.int64), np.full(k, -1, np.int64), np.zeros(exact.start.size - 1, np.uint8))


@apart
def beside(exact, basis, j, n):
    """What the first n vectors of the basis leave of vector j: its squared norm.

    A column becomes vector n of the basis, and `inflated` says what that inflates; what is left of a target is put
    into `rest`.
    """
    Q, T, c, inflated, rest, L = basis.Q, basis.T, basis.c, basis.inflated, basis.rest, basis.rest.shape[1]
    D = exact.vectors.shape[0] - rest.shape[0] + 1
    at = max(j - D + 1, 0)
    for t in range(L):
        rest[at, t] = exact.vectors[j, t]
    if j < exact.root.size:
        rest[at, L - T.shape[0] + n] = exact.root[j]
    for m in range(n):
        c[m] = 0.0
    for m in range(2 * n):  # once leaves a rest that is not orthogonal when little is left; twice is enough (Kahan)
        total, m = 0.0, m % n
        for t in range(L):
            total += Q[m, t] * rest[at, t]
        for t in range(L):
            rest[at, t] -= total * Q[m, t]
        c[m] += total
    s = 0.0
    for t in range(L):
        s += rest[at, t] * rest[at, t]
    if j < D:
        scale, largest = 1.0 / s**0.5, 1.0 / s
        for l in range(n):
            total = 0.0
            for m in range(l, n):
                total += T[l, m] * c[m]
            T[l, n] = -total * scale
            inflated[n + 1, l] = inflated[n, l] + T[l, n] * T[l, n]
            largest = max(largest, inflated[n + 1, l])
        T[n, n], inflated[n + 1, n] = scale, 1.0 / s
        inflated[n + 1, T.shape[0]] = largest if largest < np.inf else np.inf  # nor anything that is not a number
        for t in range(L):
            Q[n, t] = rest[at, t] * scale
    return s


@template
def build(exact, basis, chosen, depth):
    """An orthonormal basis of the columns of the first `depth` units chosen, as far as it is new; their number."""
    at, built, start, n, new = chosen.at, chosen.built, exact.start, 0, False
    for m in range(depth):
        new = new or built[m] != at[m]
        built[m] = at[m]
        for j in range(start[at[m]], start[at[m] + 1]):
            if new:
                beside(exact, basis, j, n)
            n += 1
    for m in range(depth, built.size):
        built[m] = -1
    return n


@template
def set_rests(exact, basis, n):
    """What the first n vectors of the basis leave of each target, into `rest`; the sum of its squares."""
    whole, q = 0.0, basis.rest.shape[0] - 1
    for t in range(q):
        whole += beside(exact, basis, exact.vectors.shape[0] - q + t, n)
    return whole
