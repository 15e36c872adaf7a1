r"""Branch and bound over supports: a group of them is ruled out when all its columns together do not fit well enough.

The tree is first opened a little, the most promising node first, until there are enough open nodes for all threads;
each is then walked by `engines.numba.branching`. A node is (columns that are in, columns that may be); no support in
between has a lower 2E than all of them together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pairflip.engines.base import EPSILON, EQUAL, INFLATION
from pairflip.engines.blas import one_blas_thread
from pairflip.engines.numba import announce_compilation
from pairflip.gram import Gram
from pairflip.least_squares import Floats
from pairflip.search.exhaustive import Lowest, Question, rooms_of, run_pieces, table_of

_PARTS = 64  # open nodes that are handed out
_FIRST_BRANCHES = 20_000.0  # a tree of fewer branches is walked by one thread
_LARGEST = 300  # columns: a thread takes up to N^3 / 3 numbers


class Node(NamedTuple):
    """Columns that are in and those that may be, and a lower bound on 2E of every support in between."""

    inside: list[int]
    free: list[int]
    bound: float


class _Factor(NamedTuple):
    """Inverse factor T (n, n) of some columns together, y in its coordinates z (n,) or (n, q), 2E with all of them."""

    T: Floats
    z: Floats
    doubled: float


def branch_seconds(n: int, branches: float) -> float:
    """Time of so many branches on one core, by a cost model."""
    return branches * 1e-9 * (1000.0 + 1.2 * n * n)


def can_branch(gram: Gram) -> bool:
    """Whether there are bounds at all: more rows than columns, or a ridge; and columns few enough for the memory."""
    bounded = gram.n_columns < gram.target.size or bool(gram.penalty.any())
    return gram.dense and bounded and gram.n_columns <= _LARGEST


@one_blas_thread()
def branch_supports(asked: Question, most: float = np.inf, root: Node | None = None) -> Lowest | None:
    """The lowest supports; None if all columns together are singular, or more than `most` branches would be needed.

    Parameters
    ----------
    asked
        What is asked.
    most
        Branches after which to give up.
    root
        Where to begin, if some columns are known to be in or out; its bound is not used.
    """
    gram, k = asked.gram, asked.k
    if not can_branch(gram) or k < 2:
        return None
    table = table_of(gram)
    root = Node([], list(range(gram.n_columns)), 0.0) if root is None else root
    whole = _factor(gram, table, root.inside + root.free)
    if whole is None:
        return None
    trace = float(np.sum(whole.T**2))
    errors = 64.0 * EPSILON * gram.n_columns * (1.0 + trace) ** 0.5, 512.0 * k * EPSILON * (1.0 + trace)
    room = rooms_of(asked)
    _ = gram.matrix  # formed once, before threads ask for it

    def walk(nodes: list[Node], most: float, *, tell: bool) -> tuple[list[bool], int]:
        """Which of some nodes could be finished with so many branches altogether, and supports looked at."""
        if not gram.plain:
            from pairflip.engines.numba.several_branching import branch_several as branch
        else:
            from pairflip.engines.numba.branching import branch

        announce_compilation(branch)
        looked = np.zeros((len(nodes), 2))

        def one(at: int) -> bool:
            inside, free, _ = nodes[at]
            factor = _factor(gram, table, inside + free)
            assert factor is not None  # all columns together are not singular
            with room.piece() as (exact, basis, chosen, _, kept):
                tree, columns, dimensions = room.tree(), len(free), len(factor.z)
                tree.T[0, :columns], tree.z[0] = 0.0, 0.0
                # The columns that are in stand first, and only the rows of the others are needed.
                tree.T[0, :columns, :dimensions], tree.z[0, :dimensions] = factor.T[len(inside) :], factor.z
                tree.columns[0, :columns], tree.n[0] = free, columns
                tree.doubled[0], tree.taken[0] = factor.doubled, len(inside)
                chosen.at[: len(inside)] = np.array(inside, dtype=np.int64)
                b = gram.b if gram.plain else np.ascontiguousarray(gram.B.T)
                form = gram.matrix, b, exact, basis, chosen, kept, tree
                return bool(branch(*form, gram.yy, *errors, most / len(nodes), looked[at], room.stop))

        finished = run_pieces(asked, list(range(len(nodes))), one, room.stop, tell=tell)
        return finished, int(looked[:, 0].sum())

    root = root._replace(bound=whole.doubled)
    nodes, short = [root], most if asked.simple else min(most, _FIRST_BRANCHES)
    finished, looked = walk(nodes, short, tell=False)
    if not (all(finished) or room.stop[0] or asked.simple or most <= _FIRST_BRANCHES):
        room.forget()
        reach = max([asked.limit, *asked.levels[-1:]]) * (1.0 + 2.0 * EQUAL) + errors[0] * gram.yy
        nodes = open_nodes(gram, table, k, root, reach)
        finished, looked = walk(nodes, most, tell=True)
    if all(finished):
        return room.gathered(looked, True, 0.0)
    if not room.stop[0]:  # there were too many branches
        return None
    bound = min(node.bound for node, ended in zip(nodes, finished, strict=True) if not ended)
    return room.gathered(looked, False, bound - errors[0] * gram.yy)


def open_nodes(gram: Gram, table: tuple[Floats, Floats], k: int, root: Node, reach: float) -> list[Node]:
    """Nodes for all threads, if there are so many, which together hold every support that may have a 2E of `reach`.

    Parameters
    ----------
    gram, table, k
        Problem, its columns and target, and size.
    root
        Where to begin.
    reach
        Nodes with a larger bound are left out.
    """
    nodes, closed = [root], list[Node]()
    while nodes and len(nodes) + len(closed) < _PARTS:
        nodes.sort(key=lambda node: (node.bound, node.inside))
        node = nodes.pop(0)
        missing = k - len(node.inside)
        factor = _factor(gram, table, node.inside + node.free)
        if missing <= 1 or len(node.free) <= missing + 1 or factor is None:
            closed.append(node)
            continue
        T = factor.T[len(node.inside) :]
        along = (T @ factor.z).reshape(len(T), -1)  # for each target
        cost = np.sum(along**2, axis=1) / np.einsum("jd,jd->j", T, T)
        order = np.array(node.free)[np.argsort(-cost, kind="stable")].tolist()
        cost = np.sort(cost)[::-1]
        for m in range(missing - 1):
            bound = factor.doubled + float(cost[m])
            if bound <= reach and len(order) - m - 1 >= missing - m:
                nodes.append(Node(node.inside + order[:m], order[m + 1 :], bound))
        nodes.append(Node(node.inside + order[: missing - 1], order[missing - 1 :], factor.doubled))
    return nodes + closed


def _factor(gram: Gram, table: tuple[Floats, Floats], which: list[int]) -> _Factor | None:
    """The factor of some columns together; None if they are singular."""
    columns, target = table[0][which], table[1]
    if gram.penalty.any():
        columns = np.hstack([columns, np.diag(np.sqrt(gram.penalty[which]))])
        target = np.concatenate([target, np.zeros((len(which), *target.shape[1:]))])
    q, r = np.linalg.qr(columns.T)
    if r.shape[0] < r.shape[1] or np.min(np.abs(np.diag(r))) ** 2 * INFLATION <= 1.0:
        return None
    T = np.linalg.inv(r)
    if np.max(np.einsum("jd,jd->j", T, T)) * 10.0 > INFLATION:
        return None
    z = q.T @ target
    rest = target - q @ z
    return _Factor(T, z, float(np.vdot(rest, rest)))
