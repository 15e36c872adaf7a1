r"""Branch and bound over supports: a group of them is ruled out when all its columns together do not fit well enough.

The tree is first opened a little, the most promising node first, until there are enough open nodes for all threads;
each is then walked by `engines.numba.branching`. A node is (columns that are in, columns that may be); no support in
between has a lower 2E than all of them together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.blas import one_blas_thread
from pairflip.engines.base import EPSILON, EQUAL, INFLATION
from pairflip.engines.numba import announce_compilation
from pairflip.least_squares import Floats
from pairflip.moments import Form
from pairflip.search.exhaustive import Lowest, Question, Workspaces, augmented, gather, run_pieces

_PARTS = 64  # open nodes that are handed out
_FIRST_BRANCHES = 20_000.0  # a tree of fewer branches is walked by one thread
_LARGEST = 300  # columns: a thread takes up to N^3 / 3 numbers


class Node(NamedTuple):
    """Columns that are in and those that may be, and a lower bound on 2E of every support in between."""

    inside: list[int]
    free: list[int]
    bound: float


class _Factor(NamedTuple):
    """Inverse factor T (n, n) of some columns, the targets in its coordinates z (n, q), 2E with all of them."""

    T: Floats
    z: Floats
    doubled: float


def branch_seconds(n: int) -> float:
    """Time of one branch on one core, by a cost model."""
    return 1e-9 * (1000.0 + 1.2 * n * n)


def can_branch(form: Form) -> bool:
    """Whether there are bounds at all: more rows than columns, or a ridge; and columns few enough for the memory."""
    n = form.n_columns
    bounded = n < form.target.size or bool(form.penalty.any())
    return form.dense and bounded and n <= _LARGEST and not form.grouped


@one_blas_thread()
def branch_supports(question: Question, most: float = np.inf, root: Node | None = None) -> Lowest | None:
    """The lowest supports; None if all columns together are singular, or more than `most` branches would be needed.

    `root`: where to begin, if some columns are known to be in or out; its bound is not used.
    """
    form, k = question.form, question.k
    if not can_branch(form) or k < 2:
        return None
    from pairflip.engines.numba.branching import FREE, TAKEN, BranchPlan, branch

    announce_compilation(branch)
    work = Workspaces(question)
    columns = work.columns
    root = Node([], list(range(form.n_columns)), 0.0) if root is None else root
    whole = _factor(columns, root.inside + root.free)
    if whole is None:
        return None
    trace = float(np.sum(whole.T**2))
    errors = 64.0 * EPSILON * form.n_columns * (1.0 + trace) ** 0.5, 512.0 * k * EPSILON * (1.0 + trace)
    _ = form.matrix  # formed once, before threads ask for it

    def walk(nodes: list[Node], most: float, *, tell: bool) -> tuple[list[bool], int]:
        """Which of some nodes could be finished with so many branches altogether, and supports looked at."""
        looked = np.zeros((len(nodes), 2))

        def one(at: int) -> bool:
            inside, free, _ = nodes[at]
            factor = _factor(columns, inside + free)
            assert factor is not None  # all columns together are not singular
            with work.piece() as (exact, basis, chosen, _, lowest):
                tree, n, dimensions = work.tree(), len(free), len(factor.z)
                tree.T[0, :n], tree.Z[0] = 0.0, 0.0
                # The columns that are in stand first, and only the rows of the others are needed.
                tree.T[0, :n, :dimensions], tree.Z[0, :, :dimensions] = factor.T[len(inside) :], factor.z.T
                tree.columns[0, :n], tree.count[0, FREE], tree.count[0, TAKEN] = free, n, len(inside)
                tree.doubled[0] = factor.doubled
                chosen.at[: len(inside)] = np.array(inside, dtype=np.int64)
                plan = BranchPlan(form.yy, *errors, most / len(nodes))
                args = form.matrix, work.B, exact, basis, chosen, lowest, tree, plan
                return bool(branch(*args, looked[at], work.stop))

        finished = run_pieces(question, list(range(len(nodes))), one, work.stop, tell=tell)
        return finished, int(looked[:, 0].sum())

    root = root._replace(bound=whole.doubled)
    nodes, short = [root], most if question.simple else min(most, _FIRST_BRANCHES)
    finished, looked = walk(nodes, short, tell=False)
    if not (all(finished) or work.stop[0] or question.simple or most <= _FIRST_BRANCHES):
        work.parts.clear()
        work.stop[0] = 0
        reach = max([question.limit, *question.levels[-1:]]) * (1.0 + 2.0 * EQUAL) + errors[0] * form.yy
        nodes = open_nodes(columns, k, root, reach)
        finished, looked = walk(nodes, most, tell=True)
    if all(finished):
        return gather(question, work.parts, looked)
    if not work.stop[0]:  # there were too many branches
        return None
    bound = min(node.bound for node, ended in zip(nodes, finished, strict=True) if not ended)
    return gather(question, work.parts, looked, False, bound - errors[0] * form.yy)


def open_nodes(columns: Any, k: int, root: Node, reach: float) -> list[Node]:
    """Nodes for all threads, if there are so many, which together hold every support with a 2E of at most `reach`."""
    nodes, closed = [root], list[Node]()
    while nodes and len(nodes) + len(closed) < _PARTS:
        nodes.sort(key=lambda node: (node.bound, node.inside))
        node = nodes.pop(0)
        missing = k - len(node.inside)
        factor = _factor(columns, node.inside + node.free)
        if missing <= 1 or len(node.free) <= missing + 1 or factor is None:
            closed.append(node)
            continue
        T = factor.T[len(node.inside) :]
        cost = np.sum((T @ factor.z) ** 2, axis=1) / np.einsum("jd,jd->j", T, T)
        order = np.array(node.free)[np.argsort(-cost, kind="stable")].tolist()
        cost = np.sort(cost)[::-1]
        for m in range(missing - 1):
            bound = factor.doubled + float(cost[m])
            if bound <= reach and len(order) - m - 1 >= missing - m:
                nodes.append(Node(node.inside + order[:m], order[m + 1 :], bound))
        nodes.append(Node(node.inside + order[: missing - 1], order[missing - 1 :], factor.doubled))
    return nodes + closed


def _factor(columns: Any, positions: list[int]) -> _Factor | None:
    """The factor of some columns together; None if they are singular."""
    rows, targets = augmented(columns, positions)
    q, r = np.linalg.qr(rows.T)
    if r.shape[0] < r.shape[1] or np.min(np.abs(np.diag(r))) ** 2 * INFLATION <= 1.0:
        return None
    T = np.linalg.inv(r)
    if np.max(np.einsum("jd,jd->j", T, T)) * 10.0 > INFLATION:
        return None
    z = q.T @ targets
    rest = targets - q @ z
    return _Factor(T, z, float(np.vdot(rest, rest)))
