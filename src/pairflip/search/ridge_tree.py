r"""Branch and bound with the ridge bound: the branch with the lowest bound first, one column in or out at a time.

Every branch drops and fixes columns by its own bound before it is divided. Where few columns are left, the compiled
branch and bound of `exhaustive` looks at what remains, from the columns, so that no support counts by a relaxation.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import EQUAL, NOTHING
from pairflip.engines.blas import one_blas_thread
from pairflip.least_squares import Floats
from pairflip.moments import Form
from pairflip.search.branch_and_bound import Node, branch_seconds, branch_supports
from pairflip.search.exhaustive import Lowest, Question, gather
from pairflip.search.ridge_bound import ridge_bound, ridge_form

Positions = NDArray[np.int64]
_ROUNDS = 4  # forms of fewer and fewer columns at the root
_FLOPS = 5e9  # in a second, of the interior-point method
_PATIENCE = 4.0  # times the time of one bound: what the compiled search of a branch may take
_MOST = 20_000  # of its branches
LARGEST = 128
"""Columns beyond which the compiled branch and bound does not come first."""
_MANY = 0.9  # of the columns: if more are left, a new form is not worth its time
_LITTLE = 1e-3  # weights below this are not kept


@dataclass(order=True, frozen=True)
class _Branch:
    """Supports that have all `fixed` columns and others of the `free` ones (bits), with weights to begin with."""

    bound: float
    number: int
    fixed: Positions = field(compare=False)
    free: NDArray[np.uint8] = field(compare=False)
    at: Positions = field(compare=False)
    weights: NDArray[np.float32] = field(compare=False)


def bound_seconds(n: int, dimensions: int) -> float:
    """Time of one bound by a cost model: about eight steps, each with two products of n columns."""
    return 1e-3 + 8.0 * (4.0 * n * dimensions**2 + dimensions**3) / _FLOPS


class RidgeTree:
    """Branch and bound for a question whose gram passes `can_bound`, k >= 2.

    Attributes
    ----------
    columns : (n,)
        Positions of the columns that are left.
    nodes, looked : int
        Bounds computed, and supports looked at one by one.
    """

    def __init__(self, asked: Question) -> None:
        gram, self.asked = asked.form, asked
        self.columns = np.arange(gram.n_columns)
        self.nodes = self.looked = self._numbered = self._told = 0
        self._limit, self._lowest = asked.limit, np.full(asked.wanted, np.inf)
        self._found: list[Lowest] = []
        with one_blas_thread():
            self._narrow(self.columns, gram.columns if gram.dense else gram.columns_of(self.columns), gram.target)
        weights = np.full(self.columns.size, asked.k / self.columns.size)
        self._open = [self._branch(0.0, np.zeros(0, np.int64), self.columns, weights)]
        self._first = np.inf

    @property
    def reach(self) -> float:
        """2E up to which supports matter, by the rule of `limit_of`."""
        limit = self._limit * (1.0 + 2.0 * EQUAL) + 2.0 * NOTHING * self.asked.form.yy
        return max(limit, float(self.asked.levels[-1])) if self.asked.levels.size else limit

    @property
    def bound(self) -> float:
        """No support that was not looked at has a 2E below this."""
        return self._open[0].bound if self._open else np.inf

    @property
    def done(self) -> bool:
        """Whether every support was looked at or ruled out."""
        return self.bound > self.reach

    def walk(self, until: float = np.inf, most: float = np.inf) -> bool:
        """Whether all is done, before it is time or `most` bounds were computed; Ctrl-C counts as the end of time."""
        try:
            with one_blas_thread():
                while not self.done and self.nodes < most and time.perf_counter() < until:
                    for child in self._divided(self._open[0]):
                        heappush(self._open, child)
                    heappop(self._open)  # only now, and before its children: an interrupted branch stays open
                    self._tell()
        except KeyboardInterrupt:
            self.asked.interrupted = True
        return self.done

    def gathered(self) -> Lowest:
        """What was found."""
        return replace(gather(self.asked, self._found), looked=self.looked, complete=self.done, bound=self.bound)

    def _narrow(self, keep: Positions, columns: Floats, target: Floats) -> None:
        """Go on with some columns only: the form of fewer columns than rows has a larger diagonal."""
        if target.size > 1.2 * (keep.size + 1):  # N + 1 rows carry all inner products
            triangle = np.asarray(np.linalg.qr(np.column_stack([columns.T, target]), mode="r"))
            columns, target = triangle[:, :-1].T, np.ascontiguousarray(triangle[:, -1])  # one kernel for both
        self._table, self._target = np.ascontiguousarray(columns), target
        self._penalty = self.asked.form.penalty[keep]
        self.columns = keep
        self._form = ridge_form(self._table, target, self._penalty)

    def _branch(self, bound: float, fixed: Positions, free: Positions, weights: Floats) -> _Branch:
        bits = np.zeros(self.columns.size, bool)
        bits[free] = True
        large = weights > _LITTLE
        self._numbered += 1
        start = free[large], weights[large].astype(np.float32)
        return _Branch(bound, self._numbered, fixed, np.packbits(bits), *start)

    def _divided(self, branch: _Branch) -> list[_Branch]:
        """The branches of a branch, none if all its supports are ruled out or looked at."""
        k, is_root = self.asked.k, branch.number == 1
        fixed, free = branch.fixed, np.flatnonzero(np.unpackbits(branch.free, count=self.columns.size))
        weights, stiffness, bound = np.zeros(self.columns.size), np.zeros(free.size), branch.bound
        weights[branch.at] = branch.weights
        for _ in range(_ROUNDS if is_root else 1):
            if fixed.size >= k or fixed.size + free.size <= k:
                break
            said = ridge_bound(self._form, k, self.reach, fixed, free, weights[free])
            self.nodes += 1
            bound = max(bound, said.bound)
            if bound > self.reach:
                return []
            weights[free] = said.weights
            left = ~said.dropped & ~said.taken
            fixed, free, stiffness = np.append(fixed, free[said.taken]), free[left], said.stiffness[left]
            keep = np.union1d(fixed, free)
            if not is_root or keep.size > _MANY * self.columns.size:
                break
            # What the root drops never comes back.
            self._narrow(self.columns[keep], self._table[keep], self._target)
            fixed, free, weights = np.searchsorted(keep, fixed), np.searchsorted(keep, free), weights[keep]
        if fixed.size > k or fixed.size + free.size < k or self._searched(fixed, free):
            return []
        z = weights[free]
        gain = stiffness * z * np.cbrt(1.0 - z)  # what either side adds to the bound; leaving out should add more
        at = int(np.argmax(gain if gain.any() else np.minimum(z, 1.0 - z)))
        rest, others = np.delete(free, at), np.delete(z, at)
        return [self._branch(bound, np.append(fixed, free[at]), rest, others), self._branch(bound, fixed, rest, others)]

    def _searched(self, fixed: Positions, free: Positions) -> bool:
        """Whether the compiled branch and bound could look at all supports of a branch in little time."""
        asked, k = self.asked, self.asked.k
        if fixed.size == k:
            fixed, free = fixed[:-1], fixed[-1:]
        which = np.union1d(fixed, free)
        if which.size > max(LARGEST, k):
            return False
        seconds = _PATIENCE * bound_seconds(free.size, self._form.V.shape[1])
        most = min(seconds / branch_seconds(which.size, 1.0), _MOST)
        form = Form(self._table[which], self._target, self._penalty[which], which, dense=True)
        question = Question(form, k, asked.wanted, self._limit, asked.levels)
        root = Node(np.searchsorted(which, fixed).tolist(), np.searchsorted(which, free).tolist(), 0.0)
        found = branch_supports(question, most, root)
        if found is None:
            return False
        self.looked += found.looked
        if found.supports.size or found.counts.any():
            supports = self.columns[which[found.supports]]
            self._found.append(Lowest(supports, found.doubled, found.counts, overflow=found.overflow))
            self._lowest = np.sort(np.concatenate([self._lowest, found.doubled]))[: asked.wanted]
            self._limit = min(self._limit, float(self._lowest[-1]))
        return True

    def _tell(self) -> None:
        """How far the lowest bound has come from the first to what is asked for, in thousandths."""
        tick, bound = self.asked.tick, min(self.bound, self.reach)
        self._first = min(self._first, bound)
        way = self.reach - self._first
        so_far = int(1000 * (bound - self._first) / way) if way > 0 else 1000
        if tick is not None and so_far > self._told:
            tick(so_far - self._told)
            self._told = so_far
