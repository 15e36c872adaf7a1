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
    """A problem by its columns: `vectors` (D + q, M), the targets after the columns; `root` (D,) of the ridge or (0,).

    Unit u, what enters and leaves together, is columns `start[u]` to `start[u + 1]` - 1; `rules` between units matter
    if `ruled`.
    """

    vectors: Any
    root: Any
    start: Any
    rules: Any
    ruled: bool


class Basis(NamedTuple):
    """Memory: Q, T, and `rest` (1 + q, L), what the basis leaves of the last vector and of the targets.

    `inflated` (K + 1, K + 1): inflations of the first n columns in row n, and the largest of them at its end; `c`
    (2, K): coordinates of the last vector.
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
    length += K if exact.root.size else 0
    rest, inflated, c = np.empty((1 + rows - exact.start[-1], length)), np.zeros((K + 1, K + 1)), np.empty((2, K))
    basis = Basis(np.empty((K, length)), np.empty((K, K)), rest, inflated, c)
    return basis, Chosen(np.zeros(k, np.int64), np.full(k, -1, np.int64), np.zeros(exact.start.size - 1, np.uint8))


@apart
def beside(exact, basis, j, n):
    """What the first n vectors of the basis leave of vector j: its squared norm.

    A column becomes vector n of the basis, and `inflated` says what that inflates; what is left of a target is put
    into `rest`.
    """
    Q, T, c, inflated, rest, (D, M) = basis.Q, basis.T, basis.c, basis.inflated, basis.rest, exact.vectors.shape
    D -= rest.shape[0] - 1
    at, L = max(j - D + 1, 0), rest.shape[1]
    for t in range(M):
        rest[at, t] = exact.vectors[j, t]
    for t in range(M, L):
        rest[at, t] = 0.0
    if j < exact.root.size:
        rest[at, M + n] = exact.root[j]
    for m in range(n):
        c[0, m] = 0.0
    # Once leaves a rest that is not orthogonal when little is left of it; twice is enough (Kahan, Parlett).
    for _ in range(2):
        for m in range(n):
            total = 0.0
            for t in range(L):
                total += Q[m, t] * rest[at, t]
            c[0, m] += total
            c[1, m] = total
        m = 0
        while m + 4 <= n:  # read and written once for four rows: the loop waits for memory, not for arithmetic
            c_0, c_1, c_2, c_3 = c[1, m], c[1, m + 1], c[1, m + 2], c[1, m + 3]
            for t in range(L):
                rest[at, t] -= c_0 * Q[m, t] + c_1 * Q[m + 1, t] + c_2 * Q[m + 2, t] + c_3 * Q[m + 3, t]
            m += 4
        while m < n:
            c_0 = c[1, m]
            for t in range(L):
                rest[at, t] -= c_0 * Q[m, t]
            m += 1
    s = 0.0
    for t in range(L):
        s += rest[at, t] * rest[at, t]
    if j < D:
        scale, largest = 1.0 / s**0.5, 1.0 / s
        for l in range(n):
            total = 0.0
            for m in range(l, n):
                total += T[l, m] * c[0, m]
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
