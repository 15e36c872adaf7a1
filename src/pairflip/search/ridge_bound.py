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
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import EPSILON
from pairflip.least_squares import Floats
from pairflip.moments import Form
from pairflip.search.exhaustive import LEAST

STEPS = 40
"""Most steps of the interior-point method for one bound."""
_INSIDE = 0.05  # of the way to equal weights: where the method begins if it is given weights
_CLOSE = 0.02  # of what is missing to the upper bound: more sharpness than this is not worth a step
_TINY = 1e-10  # of y'y: closer than this is close enough
_EDGE = 1e-13  # weights do not come closer to 0 and 1
_SURE = 0.01  # weights this close to 0 or 1 are not between
_LARGE = 2000  # columns beyond which looking for a better diagonal takes too long
_MEMORY = 2**28  # bytes that the columns may take where their inner products would take too many


@dataclass(frozen=True)
class RidgeForm:
    r"""Some columns of a problem, with :math:`G - D - V V^T` positive semidefinite.

    Attributes
    ----------
    V : (n, D)
        A factor: the columns themselves, or, of fewer columns than rows, one that leaves more to the diagonal.
    d, b : (n,)
        The diagonal D, positive, and :math:`X^T y`.
    yy : float
        :math:`y^T y`.
    rounding : float
        Relative error of inner products.
    """

    V: Floats
    d: Floats
    b: Floats
    yy: float
    rounding: float


@dataclass(frozen=True)
class RidgeBound:
    """What one relaxation says of the supports that hold all fixed columns, and others of the free ones.

    Attributes
    ----------
    bound : float
        None of them has a 2E below this.
    relaxed : float
        2E of the relaxation at `weights`; no other u gives a larger bound than that.
    weights : (n,)
        z of the free columns.
    dropped, taken : (n,)
        Which free columns are in no support, and which are in every one, whose 2E is at most the upper bound.
    stiffness : (n,)
        Second derivative of the relaxation along each weight between 0 and 1, the others following; 0 elsewhere.
    """

    bound: float
    relaxed: float
    weights: Floats
    dropped: NDArray[np.bool_]
    taken: NDArray[np.bool_]
    stiffness: Floats


def can_bound(gram: Form) -> bool:
    """Whether there is one target, no rules, enough of a ridge term for every column, and memory for the columns."""
    held = gram.dense or 8 * gram.n_columns * gram.n_rows <= _MEMORY
    return gram.plain and held and gram.yy > 0.0 and bool(np.all(gram.penalty >= LEAST))


def ridge_form(columns: Floats, target: Floats, penalty: Floats) -> RidgeForm:
    """The form of some columns."""
    n, rows = columns.shape
    rounding = 8.0 * (n + rows) * EPSILON
    b, yy, d = columns @ target, float(target @ target), penalty
    V = columns
    if n < min(rows, _LARGE):
        A = columns @ columns.T
        spare = _spare(A)
        own, vectors = np.linalg.eigh(A - np.diag(spare))
        # V V' may be larger than Q by what clipping adds, and by rounding: as much is taken off the diagonal.
        diagonal = penalty + spare - max(-float(own[0]), 0.0) - rounding * max(float(own[-1]), 1.0)
        if np.all(diagonal > 0.5 * penalty):
            V, d = vectors * np.sqrt(np.maximum(own, 0.0)), diagonal
    return RidgeForm(np.ascontiguousarray(V), d, b, yy, rounding)


def _spare(A: Floats) -> Floats:
    r"""A diagonal that can be subtracted from A, which stays positive semidefinite: :math:`\lambda_{min}` of
    :math:`S A S` times :math:`S^{-2}`, for S = 1 or, where that gives more, :math:`S^2 = diag(A^{-1})`.
    """
    own, vectors = np.linalg.eigh(A)
    if own[0] <= 1e-10:
        return np.zeros(len(A))
    inverse = np.einsum("jl,jl,l->j", vectors, vectors, 1.0 / own)
    scale = np.sqrt(inverse)
    scaled = float(np.linalg.eigvalsh(A * scale[:, None] * scale)[0]) / inverse
    return np.full(len(A), own[0]) if len(A) * own[0] >= scaled.sum() else np.asarray(scaled)


def ridge_bound(
    form: RidgeForm,
    k: int,
    upper: float,
    fixed: NDArray[np.int64],
    free: NDArray[np.int64],
    start: Floats | None = None,
    steps: int = STEPS,
) -> RidgeBound:
    """Bound 2E of all supports of k columns, the fixed ones among them."""
    state = _Relaxation(form, k, fixed, free)
    n, m = free.size, k - fixed.size
    z = _begin(start, n, m)
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


def _begin(start: Floats | None, n: int, m: int) -> Floats:
    """Weights between 0 and 1 with sum m, near those of `start`."""
    equal = np.full(n, m / n)
    if start is None:
        return equal
    z = np.clip(start, 0.0, 1.0)
    total = float(z.sum())
    z = z * (m / total) if total >= m else z + (1.0 - z) * ((m - total) / (n - total))
    return np.asarray((1.0 - _INSIDE) * z + _INSIDE * equal)


class _Relaxation:
    """The relaxation of one node: u, the a of all columns and the Newton step at some weights."""

    def __init__(self, form: RidgeForm, k: int, fixed: NDArray[np.int64], free: NDArray[np.int64]) -> None:
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
        self._base = self.form.yy - float(self.u @ self.u)
        self.relaxed = self._base - float(np.sum(along**2 / self._d)) - float(z @ a)

    def bound(self) -> tuple[float, Floats, NDArray[np.int64]]:
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
        ahead, behind = _reach(dz, z, above), _reach_up(ds, s, dt, t)
        left = float((s + behind * ds) @ (z + ahead * dz)) + float((t + behind * dt) @ (above - ahead * dz))
        centre = mu * min((left / (2.0 * z.size * mu)) ** 3, 1.0)
        dz, dnu, ds, dt = direction(centre - ds * dz, centre + dt * dz)
        ahead, behind = 0.99 * _reach(dz, z, above), 0.99 * _reach_up(ds, s, dt, t)
        return z + ahead * dz, nu + behind * dnu, s + behind * ds, t + behind * dt


def _reach(dz: Floats, z: Floats, above: Floats) -> float:
    """How far along dz the weights stay between 0 and 1, at most 1."""
    with np.errstate(divide="ignore", over="ignore"):
        return float(
            min(1.0, np.min(-z / dz, where=dz < 0, initial=1.0), np.min(above / dz, where=dz > 0, initial=1.0))
        )


def _reach_up(ds: Floats, s: Floats, dt: Floats, t: Floats) -> float:
    """How far both multipliers stay positive, at most 1."""
    with np.errstate(divide="ignore", over="ignore"):
        return float(min(1.0, np.min(-s / ds, where=ds < 0, initial=1.0), np.min(-t / dt, where=dt < 0, initial=1.0)))
