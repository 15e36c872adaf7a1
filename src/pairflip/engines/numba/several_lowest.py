"""The lowest supports of several targets, or under rules, that an exhaustive search meets; see `lowest`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.engines.base import INFLATION
from pairflip.engines.numba.compile import apart, kernel
from pairflip.engines.numba.lowest import build, keep, take_out
from pairflip.engines.numba.orthogonal import can_append, dot, load, new_basis
from pairflip.engines.numba.rules import clash
from pairflip.gram import Gram


class ExactSeveral(NamedTuple):
    """As `orthogonal.Exact`, with the targets (q, M) and the rules; `target` is the first of them, for its length."""

    vectors: Any
    target: Any
    root: Any
    targets: Any
    rules: Any
    ruled: bool


class SeveralBasis(NamedTuple):
    """As `orthogonal.Basis`, and what is left of the targets, E (q, length)."""

    Q: Any
    T: Any
    e: Any
    inflated: Any
    q: Any
    c: Any
    E: Any


def exact_of(form: Gram) -> ExactSeveral:
    """The columns and targets."""
    columns, targets = form.few_rows
    root = np.sqrt(form.penalty) if form.penalty.any() else np.empty(0)
    across = np.ascontiguousarray(targets.T)
    return ExactSeveral(columns, across[0], root, across, form.rules, form.rules.any)


def new_several_basis(exact: ExactSeveral, k: int) -> SeveralBasis:
    """Memory for supports of k."""
    basis = new_basis(k, exact.target.size, ridge=exact.root.size > 0)
    return SeveralBasis(*basis, np.empty((len(exact.targets), basis.e.size)))


@kernel
def keeps_rules(rules, support, k):
    """Whether k columns may be a support."""
    for i in range(k):
        for l in range(i):
            if clash(rules, support[i], support[l]):
                return False
        for at in range(rules.need_start[support[i]], rules.need_start[support[i] + 1]):
            found = False
            for l in range(k):
                found = found or support[l] == rules.need[at]
            if not found:
                return False
    return True


@kernel
def clashes(exact, support, k, j):
    """Whether candidate j cannot be chosen together with one of the first k columns of a support."""
    if exact.ruled:
        for i in range(k):
            if clash(exact.rules, support[i], j):
                return True
    return False


@apart
def set_rests(exact, basis, depth):
    """What the basis of `depth` columns leaves of each target, into E; the sum of its squares."""
    whole = 0.0
    for t in range(exact.targets.shape[0]):
        for m in range(basis.e.size):
            basis.E[t, m] = exact.targets[t, m] if m < exact.target.size else 0.0
        take_out(basis, depth, basis.E[t])
        whole += dot(basis.E[t], basis.E[t])
    return whole


@apart
def judge_last_several(exact, basis, chosen, kept, last, yy):
    """Supports of the k - 1 columns chosen and one more, of those j < `last` that are marked in `seen`."""
    k, depth, q = chosen.at.size, chosen.at.size - 1, exact.targets.shape[0]
    build(exact, basis, chosen, depth)
    for l in range(depth):
        basis.inflated[l] = 0.0
        for n in range(depth):
            basis.inflated[l] += basis.T[l, n] * basis.T[l, n]
        if not basis.inflated[l] < INFLATION:
            return
    whole = set_rests(exact, basis, depth)
    for j in range(last):
        if not chosen.seen[j]:
            continue
        chosen.at[depth] = j
        if exact.ruled and not keeps_rules(exact.rules, chosen.at, k):
            continue
        load(exact, j, depth, basis.q)
        s = take_out(basis, depth, basis.q)
        if not can_append(exact, basis, depth, s):
            continue
        doubled = whole
        for t in range(q):
            along = dot(basis.q, basis.E[t])
            doubled -= along * along / s
        if doubled < 1e-3 * whole:  # the difference would leave little but rounding
            doubled = 0.0
            for t in range(q):
                along = dot(basis.q, basis.E[t])
                for m in range(basis.q.size):
                    left = basis.E[t, m] - along / s * basis.q[m]
                    doubled += left * left
        keep(kept, chosen.at, doubled, yy)
