r"""A lower bound on the energies of all supports of k columns, from the ridge term.

Write :math:`G = Q + D` with a diagonal D > 0 (the ridge terms, and what else the columns can spare) and
:math:`Q = V V^T` positive semidefinite. Since :math:`x^T Q x \ge 2 u^T V^T x - u^T u` for every u,

.. math::
    2 E(S) \ge y^T y - u^T u - \sum_{j \in S} a_j, \quad a_j = (b - V u)_j^2 / d_j ,

so that the k largest :math:`a_j` bound all supports at once: every u gives a bound, whoever proposes it. The best one
solves the perspective relaxation, in which columns are in with weights :math:`0 \le z_j \le 1`, :math:`\sum_j z_j = k`:

.. math:: \min_z \max_u \; y^T y - u^T u - \sum_j z_j a_j(u)

(Xie & Deng, SIAM J. Optim. 30, 3359 (2020); Bertsimas & Van Parys, Ann. Stat. 48, 300 (2020)). It is smooth and convex
in z, and its Hessian has the rank of V, so a primal-dual interior-point method takes O(N M^2) for each of about ten
steps. What it leaves open costs sharpness and nothing else: bounds are evaluated at the u it found, and rounded down.

`RidgeTree` is branch and bound with it: the branch with the lowest bound first, one column in or out at a time. Every
branch drops and fixes columns by its own bound before it is divided. Where few columns remain, the compiled branch and
bound looks at what is open, from the columns, so that no support counts by a relaxation.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from pairflip.blas import one_blas_thread
from pairflip.engines.base import EPSILON
from pairflip.least_squares import Floats
from pairflip.moments import Form
from pairflip.search.branch_and_bound import Node, branch_seconds, branch_supports
from pairflip.search.exhaustive import LEAST, Lowest, Question, gather

Positions = NDArray[np.int64]

STEPS = 40
"""Most steps of the interior-point method for one bound."""
_INSIDE = 0.05  # of the way to equal weights: where the method begins if it is given weights
_CLOSE = 0.02  # of what is missing to the upper bound: more sharpness than this is not worth a step
_TINY = 1e-10  # of y'y: closer than this is close enough
_EDGE = 1e-13  # weights do not come closer to 0 and 1
_SURE = 0.01  # weights this close to 0 or 1 are not between
_LARGE = 2000  # columns beyond which looking for a better diagonal takes too long
_MEMORY = 2**28  # bytes that the columns may take where their inner products would take too many
_ROUNDS = 4  # forms of fewer and fewer columns at the root
_FLOPS = 5e9  # in a second, of the interior-point method
_PATIENCE = 4.0  # times the time of one bound: what the compiled search of a branch may take
_MOST = 20_000  # of its branches
LARGEST = 128
"""Columns beyond which the compiled branch and bound does not come first."""
_MANY = 0.9  # of the columns: if more remain, a new form is not worth its time
_LITTLE = 1e-3  # weights below this are not kept


@dataclass(frozen=True)
class RidgeForm:
    """Some columns of a problem, with G - D - V V' positive semidefinite."""

    V: Floats  # (n, D): the columns themselves, or, of fewer columns than rows, a factor that leaves more to D
    d: Floats  # (n,), the diagonal D, positive
    b: Floats  # (n,), X'y
    yy: float
    rounding: float  # relative error of inner products


@dataclass(frozen=True)
class RidgeBound:
    """What one relaxation says of the supports that hold all fixed columns, and others of the n free ones."""

    bound: float  # none of them has a 2E below this
    relaxed: float  # 2E of the relaxation at `weights`; no other u gives a larger bound than that
    weights: Floats  # (n,), z of the free columns
    dropped: NDArray[np.bool_]  # (n,), in no support whose 2E is at most the upper bound
    taken: NDArray[np.bool_]  # (n,), in every such support
    stiffness: Floats  # (n,), second derivative along each weight between 0 and 1, the others following; 0 elsewhere


def can_bound(form: Form) -> bool:
    """Whether there is one target, no rules, enough of a ridge term for every column, and memory for the columns."""
    held = form.dense or 8 * form.n_columns * form.n_rows <= _MEMORY
    return form.plain and held and form.yy > 0.0 and bool(np.all(form.penalty >= LEAST))


def ridge_form(columns: Floats, target: Floats, penalty: Floats) -> RidgeForm:
    """The form of some columns."""
    n, rows = columns.shape
    rounding = 8.0 * (n + rows) * EPSILON
    b, yy, d = columns @ target, float(target @ target), penalty
    V = columns
    if n < min(rows, _LARGE):
        A = columns @ columns.T
        spare = _spare(A)
        values, vectors = np.linalg.eigh(A - np.diag(spare))
        # V V' may be larger than Q by what clipping adds, and by rounding: as much is taken off the diagonal.
        diagonal = penalty + spare - max(-float(values[0]), 0.0) - rounding * max(float(values[-1]), 1.0)
        if np.all(diagonal > 0.5 * penalty):
            V, d = vectors * np.sqrt(np.maximum(values, 0.0)), diagonal
    return RidgeForm(np.ascontiguousarray(V), d, b, yy, rounding)


def _spare(A: Floats) -> Floats:
    r"""A diagonal that can be subtracted from A, which stays positive semidefinite: :math:`\lambda_{min}` of
    :math:`S A S` times :math:`S^{-2}`, for S = 1 or, where that gives more, :math:`S^2 = diag(A^{-1})`.
    """
    values, vectors = np.linalg.eigh(A)
    if values[0] <= 1e-10:
        return np.zeros(len(A))
    inverse = np.einsum("jl,jl,l->j", vectors, vectors, 1.0 / values)
    scale = np.sqrt(inverse)
    scaled = float(np.linalg.eigvalsh(A * scale[:, None] * scale)[0]) / inverse
    return np.full(len(A), values[0]) if len(A) * values[0] >= scaled.sum() else np.asarray(scaled)


def ridge_bound(
    form: RidgeForm,
    k: int,
    upper: float,
    fixed: Positions,
    free: Positions,
    start: Floats | None = None,
    steps: int = STEPS,
) -> RidgeBound:
    """Bound 2E of all supports of k columns, the fixed ones among them."""
    state = _Relaxation(form, k, fixed, free)
    n, m = free.size, k - fixed.size
    z = np.full(n, m / n)
    if start is not None:  # weights between 0 and 1 with sum m, near those given
        near = np.clip(start, 0.0, 1.0)
        total = float(near.sum())
        near = near * (m / total) if total >= m else near + (1.0 - near) * ((m - total) / (n - total))
        z = (1.0 - _INSIDE) * near + _INSIDE * z
    best, dropped, taken = -np.inf, np.zeros(n, bool), np.zeros(n, bool)
    nu, low, high = 0.0, z, z  # multipliers of the sum, of z >= 0 and of z <= 1
    for step in range(steps):
        state.move(z)
        bound, a, order = state.bound()
        last, next_one = a[order[m - 1]], a[order[m]]
        dropped |= bound + (last - a) > upper
        taken |= bound + (a - next_one) > upper
        best, gap = max(best, bound), state.relaxed - bound
        if best > upper or gap <= _TINY * form.yy or (state.relaxed <= upper and gap <= _CLOSE * (upper - best)):
            break
        if step == 0:
            nu, mu = 0.5 * (last + next_one), gap / (2.0 * n)
            low, high = np.maximum(nu - a, 0.0) + mu / z, np.maximum(a - nu, 0.0) + mu / (1.0 - z)
        try:
            moved, nu, low, high = state.step(z, nu, low, high)
        except np.linalg.LinAlgError:  # as close as rounding lets it come
            break
        if not np.isfinite(moved).all():
            break
        z = np.clip(moved, _EDGE, 1.0 - _EDGE)
    return RidgeBound(best, state.relaxed, z, dropped, taken, state.stiffness(z))


class _Relaxation:
    """The relaxation of one node: u, the a of all columns and the Newton step at some weights."""

    def __init__(self, form: RidgeForm, k: int, fixed: Positions, free: Positions) -> None:
        self.form, self.m = form, k - fixed.size
        self.V, self.d, self.b = form.V[free], form.d[free], form.b[free]
        V = form.V[fixed]
        self._V, self._d, self._b = V, form.d[fixed], form.b[fixed]
        self._K = np.eye(form.V.shape[1]) + (V.T / self._d) @ V
        self._right = V.T @ (self._b / self._d)

    def move(self, z: Floats) -> None:
        """K = 1 + V' (z / d) V, and u with K u = V' (z b / d)."""
        from scipy.linalg import cho_factor, cho_solve

        w = z / self.d
        self.K = self._K + (self.V.T * w) @ self.V
        self.u = cho_solve(cho_factor(self.K, check_finite=False), self._right + self.V.T @ (w * self.b))
        self.c = self.b - self.V @ self.u
        a = self.c**2 / self.d
        along = self._b - self._V @ self.u
        self.relaxed = self.form.yy - float(self.u @ self.u) - float(np.sum(along**2 / self._d)) - float(z @ a)

    def bound(self) -> tuple[float, Floats, Positions]:
        """The bound at u, every a rounded up; a (n,) and the places of its elements in descending order."""
        yy, uu = self.form.yy, float(self.u @ self.u)
        error = self.form.rounding * (yy**0.5 + uu**0.5)
        a = (np.abs(self.c) + error) ** 2 / self.d
        fixed = float(np.sum((np.abs(self._b - self._V @ self.u) + error) ** 2 / self._d))
        order = np.argsort(-a, kind="stable")
        total = fixed + float(a[order[: self.m]].sum())
        return yy - uu - total - self.form.rounding * (yy + uu + total), a, order

    def stiffness(self, z: Floats) -> Floats:
        """1 / diagonal of the inverse Hessian of the weights between 0 and 1, whose sum does not change."""
        between, result = np.flatnonzero((z > _SURE) & (z < 1.0 - _SURE)), np.zeros_like(z)
        n = between.size
        if n < 2:
            result[between] = 1.0
            return result
        E = self.V[between] * (self.c[between] / self.d[between])[:, None]
        H = 2.0 * E @ np.linalg.solve(self.K, E.T)
        scale = max(float(np.mean(np.diag(H))), 1e-300)
        system = np.ones((n + 1, n + 1))
        system[:n, :n], system[n, n] = H / scale + 1e-9 * np.eye(n), 0.0
        result[between] = scale / np.maximum(np.diag(np.linalg.inv(system))[:n], 1e-9)
        return result

    def step(self, z: Floats, nu: float, s: Floats, t: Floats) -> tuple[Floats, float, Floats, Floats]:
        r"""One step of Mehrotra's predictor and corrector for :math:`-a + \nu - s + t = 0`, s z = t (1 - z) = \mu."""
        from scipy.linalg import cho_factor, cho_solve

        above, slope = 1.0 - z, -(self.c**2) / self.d
        scale = s / z + t / above
        e = self.c / self.d
        weight = e**2 / scale
        factor = cho_factor(0.5 * self.K + (self.V.T * weight) @ self.V, check_finite=False)
        ratio = e / scale

        def solve(right: Floats) -> Floats:
            """(scale + H)^-1 right, H = 2 e V K^-1 V' e."""
            return np.asarray(right / scale - ratio * (self.V @ cho_solve(factor, self.V.T @ (ratio * right))))

        ones = solve(np.ones_like(z))
        short = self.m - float(z.sum())

        def direction(low: Floats, high: Floats) -> tuple[Floats, float, Floats, Floats]:
            dz = solve(-(slope + nu) + low / z - high / above)
            dnu = (float(dz.sum()) - short) / float(ones.sum())
            dz = dz - dnu * ones
            return dz, dnu, (low - s * z - s * dz) / z, (high - t * above + t * dz) / above

        mu = (float(s @ z) + float(t @ above)) / (2.0 * z.size)
        zero = np.zeros_like(z)
        dz, _, ds, dt = direction(zero, zero)
        ahead, behind = _reach(dz, z, -dz, above), _reach(ds, s, dt, t)
        product = float((s + behind * ds) @ (z + ahead * dz)) + float((t + behind * dt) @ (above - ahead * dz))
        centre = mu * min((product / (2.0 * z.size * mu)) ** 3, 1.0)
        dz, dnu, ds, dt = direction(centre - ds * dz, centre + dt * dz)
        ahead, behind = 0.99 * _reach(dz, z, -dz, above), 0.99 * _reach(ds, s, dt, t)
        return z + ahead * dz, nu + behind * dnu, s + behind * ds, t + behind * dt


def _reach(ds: Floats, s: Floats, dt: Floats, t: Floats) -> float:
    """How far s + step ds and t + step dt both stay positive, at most 1."""
    with np.errstate(divide="ignore", over="ignore"):
        return float(min(1.0, np.min(-s / ds, where=ds < 0, initial=1.0), np.min(-t / dt, where=dt < 0, initial=1.0)))


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
    """Branch and bound for a question whose form passes `can_bound`, k >= 2.

    `columns` (n,) are positions of those that remain; `nodes` bounds were computed, `looked` supports looked at.
    """

    def __init__(self, question: Question) -> None:
        form, self.question = question.form, question
        self.columns = np.arange(form.n_columns)
        self.nodes = self.looked = self._numbered = 0
        self._lowest = np.zeros(0)  # 2E of the best supports so far
        self._parts: list[Lowest] = []
        with one_blas_thread():
            columns, targets = form.few_rows if form.dense else (form.columns_of(self.columns), form.targets)
            self._narrow(self.columns, columns, targets[:, 0])
        weights = np.full(self.columns.size, question.k / self.columns.size)
        self._open = [self._branch(0.0, np.zeros(0, np.int64), self.columns, weights)]

    @property
    def bound(self) -> float:
        """No support that was not looked at has a 2E below this."""
        return self._open[0].bound if self._open else np.inf

    @property
    def finished(self) -> bool:
        """Whether every support was looked at or ruled out."""
        return self.bound > self.question.reach

    def walk(self, until: float = np.inf, most: float = np.inf) -> bool:
        """Whether all is finished before time is up or `most` bounds were computed; Ctrl-C ends the time."""
        first = np.inf
        try:
            with one_blas_thread():
                while not self.finished and self.nodes < most and time.perf_counter() < until:
                    for child in self._divided(self._open[0]):
                        heappush(self._open, child)
                    heappop(self._open)  # only now, and before its children: an interrupted branch stays open
                    reach = self.question.reach
                    bound = min(self.bound, reach)  # progress: how far it has come from the first one
                    first = min(first, bound)
                    self.question.tell((bound - first) / (reach - first) if reach > first else 1.0)
        except KeyboardInterrupt:
            self.question.interrupted = True
        return self.finished

    def gathered(self) -> Lowest:
        """The lowest supports found so far, and the bound for those not looked at."""
        return gather(self.question, self._parts, self.looked, self.finished, self.bound)

    def _narrow(self, keep: Positions, columns: Floats, target: Floats) -> None:
        """Go on with some columns only: the form of fewer columns than rows has a larger diagonal."""
        if target.size > 1.2 * (keep.size + 1):  # N + 1 rows carry all inner products
            triangle = np.asarray(np.linalg.qr(np.column_stack([columns.T, target]), mode="r"))
            columns, target = triangle[:, :-1].T, np.ascontiguousarray(triangle[:, -1])  # one kernel for both
        self._table, self._target = np.ascontiguousarray(columns), target
        self._penalty = self.question.form.penalty[keep]
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
        """The branches with one column in and with it out; none if all supports are ruled out or were searched."""
        k, is_root = self.question.k, branch.number == 1
        fixed, free = branch.fixed, np.flatnonzero(np.unpackbits(branch.free, count=self.columns.size))
        weights, stiffness, bound = np.zeros(self.columns.size), np.zeros(free.size), branch.bound
        weights[branch.at] = branch.weights
        for _ in range(_ROUNDS if is_root else 1):
            if fixed.size >= k or fixed.size + free.size <= k:
                break
            relaxation = ridge_bound(self._form, k, self.question.reach, fixed, free, weights[free])
            self.nodes += 1
            bound = max(bound, relaxation.bound)
            if bound > self.question.reach:
                return []
            weights[free] = relaxation.weights
            undecided = ~relaxation.dropped & ~relaxation.taken
            stiffness = relaxation.stiffness[undecided]
            fixed, free = np.append(fixed, free[relaxation.taken]), free[undecided]
            keep = np.union1d(fixed, free)
            if not is_root or keep.size > _MANY * self.columns.size:
                break
            # What the root drops never comes back.
            self._narrow(self.columns[keep], self._table[keep], self._target)
            fixed, free, weights = np.searchsorted(keep, fixed), np.searchsorted(keep, free), weights[keep]
        if fixed.size > k or fixed.size + free.size < k or self._search_branch(fixed, free):
            return []
        z = weights[free]
        gain = stiffness * z * np.cbrt(1.0 - z)  # what either side adds to the bound; leaving out should add more
        at = int(np.argmax(gain if gain.any() else np.minimum(z, 1.0 - z)))
        rest, others = np.delete(free, at), np.delete(z, at)
        return [self._branch(bound, np.append(fixed, free[at]), rest, others), self._branch(bound, fixed, rest, others)]

    def _search_branch(self, fixed: Positions, free: Positions) -> bool:
        """Whether the compiled branch and bound could look at all supports of a branch in little time."""
        question, k = self.question, self.question.k
        if fixed.size == k:
            fixed, free = fixed[:-1], fixed[-1:]
        open_columns = np.union1d(fixed, free)
        if open_columns.size > max(LARGEST, k):
            return False
        seconds = _PATIENCE * bound_seconds(free.size, self._form.V.shape[1])
        most = min(seconds / branch_seconds(open_columns.size), _MOST)
        form = Form(self._table[open_columns], self._target, self._penalty[open_columns], open_columns, dense=True)
        part = Question(form, k, question.wanted, question.limit, question.levels)
        root = Node(np.searchsorted(open_columns, fixed).tolist(), np.searchsorted(open_columns, free).tolist(), 0.0)
        lowest = branch_supports(part, most, root)
        if lowest is None:
            return False
        self.looked += lowest.looked
        if lowest.supports.size or lowest.counts.any():
            supports = self.columns[open_columns[lowest.supports]]
            self._parts.append(Lowest(supports, lowest.doubled, lowest.counts, overflow=lowest.overflow))
            self._lowest = np.sort(np.append(self._lowest, lowest.doubled))[: question.wanted]
            question.tighten(self._lowest)
        return True
