r"""The saddle-point equations in scaled unknowns, and Newton's method for many points at once.

The unknowns :math:`(\kappa, \tau^2, a)` are traded for :math:`\kappa`, :math:`u = b \tau^2` and
:math:`g = \sigma_x^2 / \tau^2`. Local fields in units of tau are Gaussian with variance 1 (null columns) and
:math:`v = 1 + g` (true ones), and with averages of :mod:`pairflip.paper.theory.averages` at w = u and w = u v

.. math::
    0 &= (1 - \rho_0) \langle p \rangle_u + \rho_0 \langle p \rangle_{uv} - \rho, \\
    0 &= F = (1 - \rho_0) \langle p^2 z^2 \rangle_u + \rho_0 [1 + v \langle \bar p^2 z^2 \rangle_{uv}
         - 2 \langle \bar p z^2 \rangle_{uv}] + g \sigma_\xi^2 / \sigma_x^2 - \alpha, \\
    0 &= T u g / \sigma_x^2 - a, \qquad a = \alpha - \rho - u V / \tau^2 .

The first two do not contain the temperature: their solutions are curves in the plane (ln u, ln g), drawn once
for all temperatures, along which the third equation gives the temperature.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from pairflip.paper.theory.averages import ORDER, Floats, both, moments, powers, selected
from pairflip.paper.theory.model import Planted

MAX_STEPS = 60
TOLERANCE = 1e-9
"""Newton's last step, relative, below which a point counts as converged (most end at 1e-13)."""


@dataclass(frozen=True)
class Points:
    r"""Points (kappa, U = ln u, G = ln g), as arrays; `step` is Newton's last relative step."""

    kappa: Floats
    U: Floats
    G: Floats
    step: Floats

    @property
    def converged(self) -> NDArray[np.bool_]:
        """Where Newton's method arrived."""
        return np.asarray(self.step < TOLERANCE)

    def __getitem__(self, index: slice | list[int] | NDArray[Any]) -> Points:
        return Points(self.kappa[index], self.U[index], self.G[index], self.step[index])


def points(kappa: ArrayLike, U: ArrayLike, G: ArrayLike) -> Points:
    r"""Points that Newton's method has not improved yet."""
    k, u, g = np.broadcast_arrays(*(np.atleast_1d(np.asarray(each, dtype=np.float64)) for each in (kappa, U, G)))
    return Points(k.copy(), u.copy(), g.copy(), np.full(k.shape, np.inf))


@dataclass(frozen=True)
class Residuals:
    r"""Residuals of the first two equations and :math:`d = u V / \tau^2`, with their gradients (..., 3)."""

    size: Floats
    noise: Floats
    d: Floats
    size_gradient: Floats
    noise_gradient: Floats
    d_gradient: Floats


def residuals(rho: float, model: Planted, at: Points, order: int = ORDER) -> Residuals:
    """Residuals of the equations at the points, and their gradients with respect to (kappa, U, G)."""
    r0, ratio = model.rho0, model.var_noise / model.var_x
    u, g = np.exp(at.U), np.exp(at.G)
    v = 1.0 + g
    mean = moments(both(u, u * v), both(at.kappa, at.kappa), order)
    null, true = mean.part(0), mean.part(1)
    null_curve, true_curve = null.s_z4 - 2.0 * null.sp_z4, true.s_z4 - 2.0 * true.sp_z4
    V = (1.0 - r0) * null.s_z2 + r0 * v * true.s_z2
    missed = true.s_z4 - true.sp_z4
    size = (1.0 - r0) * null.p + r0 * true.p - rho
    noise = (1.0 - r0) * null.p2z2 + r0 * (1.0 + v * true.miss2_z2 - 2.0 * true.miss_z2) + g * ratio - model.alpha
    return Residuals(
        size,
        noise,
        u * V,
        np.stack(
            [
                -(1.0 - r0) * null.s - r0 * true.s,
                0.5 * u * ((1.0 - r0) * null.s_z2 + r0 * v * true.s_z2),
                0.5 * r0 * u * g * true.s_z2,
            ],
            axis=-1,
        ),
        np.stack(
            [
                -2.0 * (1.0 - r0) * null.sp_z2 + 2.0 * r0 * (v * (true.s_z2 - true.sp_z2) - true.s_z2),
                u * ((1.0 - r0) * null.sp_z4 + r0 * v * (true.s_z4 - v * missed)),
                g * (r0 * (true.miss2_z2 + u * (true.s_z4 - v * missed)) + ratio),
            ],
            axis=-1,
        ),
        np.stack(
            [
                -u * ((1.0 - r0) * (null.s_z2 - 2.0 * null.sp_z2) + r0 * v * (true.s_z2 - 2.0 * true.sp_z2)),
                u * V + 0.5 * u * u * ((1.0 - r0) * null_curve + r0 * v * v * true_curve),
                g * u * r0 * (true.s_z2 + 0.5 * u * v * true_curve),
            ],
            axis=-1,
        ),
    )


Third = Callable[[Points, Residuals, NDArray[np.int64]], tuple[Floats, Floats]]
"""The last equation and its gradient, at the points of that index."""


def _newton(rho: float, model: Planted, start: Points, third: Third) -> Points:
    """Newton's method on all points at once; `third(at, residuals)` gives the last equation and its gradient."""
    kappa, U, G = start.kappa.copy(), start.U.copy(), start.G.copy()
    step = np.full(kappa.shape, np.inf)
    active = np.arange(kappa.size)
    for _ in range(MAX_STEPS):
        at = Points(kappa[active], U[active], G[active], step[active])
        found = residuals(rho, model, at)
        value, gradient = third(at, found, active)
        matrix = np.stack([found.size_gradient, found.noise_gradient, gradient], axis=-2)
        right = np.stack([found.size, found.noise, value], axis=-1)
        scale = np.maximum(np.abs(matrix).max(axis=-1), 1e-300)
        matrix, right = matrix / scale[..., None], right / scale
        usable = np.isfinite(matrix).all(axis=(-1, -2)) & np.isfinite(right).all(axis=-1)
        matrix[~usable], right[~usable] = np.eye(3), np.nan
        try:
            move = -np.linalg.solve(matrix, right[..., None])[..., 0]
        except np.linalg.LinAlgError:
            move = -(np.linalg.pinv(matrix) @ right[..., None])[..., 0]
        size = np.stack(
            [np.abs(move[:, 0]) / (1.0 + np.abs(at.kappa)), np.abs(move[:, 1]), np.abs(move[:, 2])], axis=-1
        ).max(axis=-1)
        damp = np.minimum(1.0, 1.0 / np.maximum(size, 1e-300))
        kappa[active] += damp * move[:, 0]
        U[active] += damp * move[:, 1]
        G[active] += damp * move[:, 2]
        # Rounding stops the steps from shrinking: a small step that is not smaller than the last one is the last.
        done = (size < 1e-14) | ((size < TOLERANCE) & (size >= 0.5 * at.step)) | ~(size < np.inf)
        step[active] = size
        active = active[~done]
        if not active.size:
            break
    return Points(kappa, U, G, np.where(np.isnan(step), np.inf, step))


def onto_curve(rho: float, model: Planted, start: Points, direction: Floats) -> Points:
    """Move points onto the curve F = 0, within the plane of each point."""

    def plane(at: Points, _: Residuals, active: NDArray[np.int64]) -> tuple[Floats, Floats]:
        d = direction[active]
        value = d[:, 0] * (at.U - start.U[active]) + d[:, 1] * (at.G - start.G[active])
        return value, np.stack([np.zeros_like(value), d[:, 0], d[:, 1]], axis=-1)

    return _newton(rho, model, start, plane)


def at_temperature(rho: float, model: Planted, start: Points, temperature: Floats) -> Points:
    """Solutions of all three equations at given temperatures."""
    slack = model.alpha - rho

    def thermal(at: Points, found: Residuals, active: NDArray[np.int64]) -> tuple[Floats, Floats]:
        a = temperature[active] * np.exp(at.U + at.G) / model.var_x
        gradient = found.d_gradient + np.stack([np.zeros_like(a), a, a], axis=-1)
        return a + found.d - slack, gradient

    return _newton(rho, model, start, thermal)


def noise_residual(model: Planted, U: Floats, G: Floats, kappa: Floats, order: int) -> Floats:
    """F without its gradient, to look at its sign."""
    u, g = np.exp(U), np.exp(G)
    v = 1.0 + g
    p2z2, miss_z2, miss2_z2 = powers(both(u, u * v), both(kappa, kappa), order)
    true = 1.0 + v * miss2_z2[1] - 2.0 * miss_z2[1]
    noise = g * model.var_noise / model.var_x
    return np.asarray((1.0 - model.rho0) * p2z2[0] + model.rho0 * true + noise - model.alpha)


def solve_kappa(rho: float, model: Planted, U: Floats, G: Floats, start: Floats, order: int) -> Floats:
    r"""The kappa at which the mean of p is rho: Newton's method on the logit, inside a bracket.

    A mean of p is at least :math:`1/(1 + e^\kappa)`, and below rho once null and true columns with
    probability above rho / 2 are rarer than rho / 2, which gives the bracket. It stops when Newton's steps are
    small enough to see signs: every point that matters is improved later, together with u and g.
    """
    u = np.exp(U)
    v = 1.0 + np.exp(G)
    w, weight = both(u, u * v), np.array([1.0 - model.rho0, model.rho0])
    target = np.log(rho) - np.log1p(-rho)
    low = np.full(U.shape, -target)
    high = 0.5 * u * v * ndtri(rho / 4.0) ** 2 + np.log(2.0 / rho)
    kappa = np.clip(start, low, high)
    for _ in range(MAX_STEPS):
        p_both, s_both = selected(w, both(kappa, kappa), order)
        p, s = weight @ p_both, np.maximum(weight @ s_both, 1e-300)
        inside = np.clip(p, 1e-300, 1.0 - 1e-16)
        excess = np.log(inside) - np.log1p(-inside) - target
        move = excess * inside * (1.0 - inside) / s
        if np.all(np.abs(move) <= 1e-2 * (1.0 + np.abs(kappa))):
            return np.asarray(kappa + move)
        low, high = np.where(excess > 0, kappa, low), np.where(excess > 0, high, kappa)
        trial = kappa + move
        kappa = np.where((trial > low) & (trial < high), trial, 0.5 * (low + high))
    return np.asarray(kappa)
