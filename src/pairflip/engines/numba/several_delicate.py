r"""Delicate flips with several targets, decided from the columns.

The orthonormal basis Q of a support, its dual vectors and what is independent of them are those of one target
(`orthogonal`); here the targets Y (q, M) stand beside it: :math:`Q Y^T`, the rests :math:`E = Y - Y Q^T Q`, and for an
entering column its products with these. With h and :math:`\alpha` as there,

.. math::
    \Delta E = \tfrac12 \left(|Q Y^T h|^2 - |E q + \alpha \, Q Y^T h|^2 / s'\right).

Q Y' and E are computed anew for every support, so that only the basis turns by rounding.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.engines.numba.compile import entry, kernel
from pairflip.engines.numba.delicate import judge_by
from pairflip.engines.numba.orthogonal import append, dot, load, meet, new_basis, new_version, project_out, take
from pairflip.engines.numba.rules import may_flip
from pairflip.gram import Gram
from pairflip.least_squares import SINGULAR, Floats


class ExactSeveral(NamedTuple):
    """As `orthogonal.Exact`, with the targets (q, M) and the rules; `target` is the first of them, for its length."""

    vectors: Any
    target: Any
    root: Any
    targets: Any
    rules: Any
    ruled: bool


class SeveralBasis(NamedTuple):
    """As `orthogonal.Basis`, for a target that is zero, and beside it QY (q, k), E (q, length), products met (N, q)."""

    Q: Any
    T: Any
    Qy: Any
    e: Any
    inflated: Any
    h: Any
    q: Any
    c: Any
    a: Any
    met_c: Any
    met_s: Any
    met_r: Any
    met: Any
    version: Any
    loaded: Any
    tilted: Any
    QY: Any
    E: Any
    met_R: Any


def few_rows(form: Gram) -> tuple[Floats, Floats]:
    """Columns (N, M) and targets (M, q); N + q rows carry all products, so that of many more one QR leaves these."""
    columns, targets, n = form.columns, form.targets, form.n_columns
    if targets.shape[0] > 2 * (n + targets.shape[1]):
        triangle: Floats = np.asarray(np.linalg.qr(np.column_stack([columns.T, targets]), mode="r"))
        columns, targets = triangle[:, :n].T, triangle[:, n:]
    return np.ascontiguousarray(columns), targets


def for_judging_several(form: Gram, k: int) -> tuple[ExactSeveral, SeveralBasis]:
    """The columns, and memory for supports of k."""
    (columns, targets), (q, n) = few_rows(form), form.B.shape
    ridge = bool(form.penalty.any())
    root = np.sqrt(form.penalty) if ridge else np.empty(0)
    basis = new_basis(k, n, targets.shape[0], ridge=ridge)
    basis.Qy[:], basis.e[:] = 0.0, 0.0
    across = np.ascontiguousarray(targets.T)
    exact = ExactSeveral(columns, across[0], root, across, form.rules, form.rules.any)
    return exact, SeveralBasis(*basis, np.empty((q, k)), np.empty((q, basis.e.size)), np.empty((n, q)))


@kernel
def set_targets(exact, basis):
    """Q Y' and E of the support whose basis is there."""
    for t in range(exact.targets.shape[0]):
        for m in range(basis.e.size):
            basis.E[t, m] = exact.targets[t, m] if m < exact.target.size else 0.0
        project_out(basis.Q, basis.Qy.size, basis.E[t], basis.QY[t])


@kernel
def build_several(exact, basis, candidates, choose, order):
    """The basis of the support in the first places of `order`, which was chosen before (`first_order`)."""
    k = basis.Qy.size
    for m in range(k):
        load(exact, order[m], m, basis.q)
        append(basis, m, project_out(basis.Q, m, basis.q, basis.c))
    basis.tilted[0] = 0.0
    set_targets(exact, basis)
    new_version(basis)
    return k


@kernel
def energy_of_several(exact, basis):
    """E of the support."""
    total = 0.0
    for t in range(basis.E.shape[0]):
        total += dot(basis.E[t], basis.E[t])
    return 0.5 * total


@kernel
def may_several(exact, order, k, i, j):
    """Whether column j may take slot i."""
    return not exact.ruled or may_flip(exact.rules, order, k, i, j)


@kernel
def meet_several(exact, basis, i, j, anew):
    """c, |q|^2 and q.E of column j for slot i; see `orthogonal.meet`."""
    meet(exact, basis, i, j, anew)
    if basis.loaded[0] == j:
        for t in range(basis.E.shape[0]):
            basis.met_R[j, t] = dot(basis.q, basis.E[t])


@kernel
def weigh_several(exact, basis, i, j, now):
    """(Delta E, alpha, s') of taking column j, just met, into slot i; infinite when it is singular."""
    T, QY, h, k = basis.T, basis.QY, basis.h, basis.Qy.size
    norm, alpha = basis.inflated[i] ** 0.5, 0.0
    for m in range(k):
        h[m] = T[i, m] / norm
        alpha += h[m] * basis.met_c[j, m]
    s = basis.met_s[j] + alpha * alpha
    if s <= SINGULAR:
        return np.inf, alpha, s
    lost, gained = 0.0, 0.0
    for t in range(QY.shape[0]):
        left = 0.0
        for m in range(k):
            left += h[m] * QY[t, m]
        r = basis.met_R[j, t] + alpha * left
        lost += left * left
        gained += r * r
    return 0.5 * (lost - gained / s), alpha, s


@kernel
def take_several(exact, basis, i):
    """Put the column in q, c into slot i (h as `weigh_several` left it)."""
    take(exact, basis, i)
    set_targets(exact, basis)


@entry
def judge_several(exact, basis, memory, clocks, plan, output, yy, budget):
    """Walk about `budget` flips on, or until the chain's support is calm; returns (status, flips done)."""
    return judge_by(
        exact, basis, memory, clocks[0], plan, output, yy, budget,
        build_several, energy_of_several, may_several, meet_several, weigh_several, take_several,
    )  # fmt: skip
