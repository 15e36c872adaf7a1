r"""The saddle-point equations in scaled unknowns, and Newton's method for many points at once.

The unknowns :math:`(\kappa, \tau^2, a)` are traded for :math:`\kappa`, :math:`u = b \tau^2` and
:math:`g = \sigma_x^2 / \tau^2`. Local fields in units of tau are Gaussian with variance 1 (null columns) and
:math:`v = 1 + g` (true ones), and with averages at w = u and w = u v

.. math::
    0 &= (1 - \rho_0) \langle p \rangle_u + \rho_0 \langle p \rangle_{uv} - \rho, \\
    0 &= F = (1 - \rho_0) \langle p^2 z^2 \rangle_u + \rho_0 [1 + v \langle \bar p^2 z^2 \rangle_{uv}
         - 2 \langle \bar p z^2 \rangle_{uv}] + g \sigma_\xi^2 / \sigma_x^2 - \alpha, \\
    0 &= T u g / \sigma_x^2 - a, \qquad a = \alpha - \rho - u V / \tau^2 .

The first two do not contain the temperature: their solutions are curves in the plane (ln u, ln g), drawn once
for all temperatures, along which the third equation gives the temperature.

Averages over :math:`z \sim N(0, 1)` are of the probability :math:`p(z) = 1 / (1 + e^{\kappa - w z^2 / 2})` that a
column is selected, which has a steep edge; :math:`\bar p = 1 - p`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, ndtri

from pairflip.paper.theory.model import Planted

Floats = NDArray[np.float64]

ORDER = 24
"""Gauss-Legendre nodes per panel: accurate to 1e-13; 8 are enough where only signs matter."""

leggauss = cache(np.polynomial.legendre.leggauss)
_EDGE = np.array([-36.0, -8.0, 0.0, 8.0, 36.0])  # logits: outside of them p is 0 or 1 to rounding
_GAUSS = np.array([0.25, 0.5, 0.75])
_TAIL = 100.0  # exp(-50) is nothing


class Nodes(NamedTuple):
    r"""Quadrature points z > 0 (last axis), their weights :math:`2 \phi(z) dz`, and logits of p there."""

    z2: Floats
    weight: Floats
    logit: Floats


def place_nodes(w: Floats, kappa: Floats, order: int = ORDER) -> Nodes:
    r"""Quadrature points: panels around the edge :math:`\theta = \sqrt{2 \kappa / w}` and over the Gaussian.

    The edge is :math:`1 / (w \theta)` wide. Points are kept as distances :math:`\delta` from it, so that the logit
    :math:`w \delta (2 \theta + \delta) / 2` has no rounding error of the size of :math:`\kappa`.
    """
    nodes, weights = leggauss(order)
    theta2 = 2.0 * np.maximum(kappa, 0.0) / w
    theta = np.sqrt(theta2)
    # Below w = 1 selection is spread over the bulk, not sitting at the edge, which may then lie far out.
    tail2 = np.where(w < 1.0, np.minimum(theta2 + _TAIL, _TAIL / np.maximum(1.0 - w, 1e-300)), theta2 + _TAIL)
    z_max = np.sqrt(tail2)
    # Where the edge lies beyond the Gaussian, distances are taken from the end of the range instead.
    far = theta > z_max
    origin, base = np.minimum(theta, z_max), np.where(far, 0.5 * w * tail2 - kappa, np.maximum(-kappa, 0.0))
    shift2 = 2.0 * _EDGE / w[..., None]
    root = np.sqrt(np.maximum(theta2[..., None] + shift2, 0.0))
    from_edge = shift2 / np.where(root > 0.0, theta[..., None] + root, 1.0)
    edge = np.where((root > 0.0) & ~far[..., None], from_edge, root - origin[..., None])
    low, high = -origin[..., None], (z_max - origin)[..., None]
    breaks = np.concatenate([low, edge, _GAUSS * z_max[..., None] - origin[..., None], high], axis=-1)
    breaks = np.sort(np.clip(breaks, low, high), axis=-1)
    half = 0.5 * np.diff(breaks, axis=-1)[..., None]
    delta = breaks[..., :-1, None] + half * (nodes + 1.0)
    flat = (*w.shape, delta.shape[-2] * delta.shape[-1])
    delta, weight = delta.reshape(flat), (half * weights).reshape(flat)
    z = origin[..., None] + delta
    logit = 0.5 * w[..., None] * delta * (origin[..., None] + z) + base[..., None]
    z2 = z * z
    return Nodes(z2, weight * np.sqrt(2.0 / np.pi) * np.exp(-0.5 * z2), logit)


def both(null: Floats, true: Floats) -> Floats:
    """Two rows: null columns, true columns."""
    return np.stack([null, true])


class Averages(NamedTuple):
    r"""Averages over z of p, of :math:`\bar p = 1 - p` and of the slope :math:`s = p \bar p`, as arrays.

    Derivatives follow from :math:`\partial_\kappa p = -s` and :math:`\partial_w p = s z^2 / 2`.
    """

    p: Floats
    p2z2: Floats
    miss_z2: Floats
    miss2_z2: Floats
    s: Floats
    s_z2: Floats
    s_z4: Floats
    sp_z2: Floats
    sp_z4: Floats


def averages(w: Floats, kappa: Floats, order: int = ORDER) -> list[Averages]:
    """All averages that the equations and their derivatives need, of null and of true columns (the rows of w)."""
    at = place_nodes(w, kappa, order)
    p, miss = expit(at.logit), expit(-at.logit)
    s = at.weight * p * miss
    z2, s_z2 = at.weight * at.z2, s * at.z2
    sp_z2 = s_z2 * p
    of_p = at.weight * p, z2 * p * p, z2 * miss, z2 * miss * miss
    of_slope = s, s_z2, s_z2 * at.z2, sp_z2, sp_z2 * at.z2
    return [Averages(*each) for each in zip(*(terms.sum(-1) for terms in (*of_p, *of_slope)), strict=True)]


def selected(w: Floats, kappa: Floats, order: int = ORDER) -> tuple[Floats, Floats]:
    r"""Averages of p and of p (1 - p): the fraction selected, and minus its derivative with respect to kappa."""
    at = place_nodes(w, kappa, order)
    p = expit(at.logit)
    chosen = at.weight * p
    return chosen.sum(-1), (chosen * (1.0 - p)).sum(-1)


def entropy_and_response(w: Floats, kappa: Floats) -> tuple[Floats, Floats]:
    r"""Averages of the binary entropy of p and of the squared response :math:`(p + w s z^2)^2`."""
    at = place_nodes(w, kappa)
    p, miss = expit(at.logit), expit(-at.logit)
    size = np.abs(at.logit)
    small = np.exp(-size)
    binary_entropy = np.log1p(small) + size * small / (1.0 + small)
    response = p + w[..., None] * p * miss * at.z2
    return (at.weight * binary_entropy).sum(-1), (at.weight * response**2).sum(-1)


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


def joined(parts: list[Points]) -> Points:
    """All points, one part after the other."""
    return Points(*(np.concatenate([getattr(each, x) for each in parts]) for x in ("kappa", "U", "G", "step")))


def between(one: Points, two: Points, t: Floats | float) -> Points:
    """Points on the chords from `one` (t = 0) to `two` (t = 1)."""
    return points(*(getattr(one, x) + t * (getattr(two, x) - getattr(one, x)) for x in ("kappa", "U", "G")))


class Residuals(NamedTuple):
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
    null, true = averages(both(u, u * v), both(at.kappa, at.kappa), order)
    null_curve, true_curve = null.s_z4 - 2.0 * null.sp_z4, true.s_z4 - 2.0 * true.sp_z4
    V = (1.0 - r0) * null.s_z2 + r0 * v * true.s_z2
    missed = true.s_z4 - true.sp_z4
    size = (1.0 - r0) * null.p + r0 * true.p - rho
    noise = (1.0 - r0) * null.p2z2 + r0 * (1.0 + v * true.miss2_z2 - 2.0 * true.miss_z2) + g * ratio - model.alpha
    size_gradient = -(1.0 - r0) * null.s - r0 * true.s, 0.5 * u * V, 0.5 * r0 * u * g * true.s_z2
    noise_gradient = (
        -2.0 * (1.0 - r0) * null.sp_z2 + 2.0 * r0 * (v * (true.s_z2 - true.sp_z2) - true.s_z2),
        u * ((1.0 - r0) * null.sp_z4 + r0 * v * (true.s_z4 - v * missed)),
        g * (r0 * (true.miss2_z2 + u * (true.s_z4 - v * missed)) + ratio),
    )
    d_gradient = (
        -u * ((1.0 - r0) * (null.s_z2 - 2.0 * null.sp_z2) + r0 * v * (true.s_z2 - 2.0 * true.sp_z2)),
        u * V + 0.5 * u * u * ((1.0 - r0) * null_curve + r0 * v * v * true_curve),
        g * u * r0 * (true.s_z2 + 0.5 * u * v * true_curve),
    )
    gradients = (np.stack(each, axis=-1) for each in (size_gradient, noise_gradient, d_gradient))
    return Residuals(size, noise, u * V, *gradients)


Third = Callable[[Points, Residuals, NDArray[np.int64]], tuple[Floats, Floats]]
"""The last equation and its gradient, at the points of that index."""


def _newton(rho: float, model: Planted, start: Points, third: Third) -> Points:
    """Newton's method on all points at once."""
    result = points(start.kappa, start.U, start.G)
    active = np.arange(result.kappa.size)
    for _ in range(MAX_STEPS):
        at = result[active]
        residual = residuals(rho, model, at)
        value, gradient = third(at, residual, active)
        matrix = np.stack([residual.size_gradient, residual.noise_gradient, gradient], axis=-2)
        right = np.stack([residual.size, residual.noise, value], axis=-1)
        scale = np.maximum(np.abs(matrix).max(axis=-1), 1e-300)
        matrix, right = matrix / scale[..., None], right / scale
        usable = np.isfinite(matrix).all(axis=(-1, -2)) & np.isfinite(right).all(axis=-1)
        matrix[~usable], right[~usable] = np.eye(3), np.nan
        try:
            move = -np.linalg.solve(matrix, right[..., None])[..., 0]
        except np.linalg.LinAlgError:
            move = -(np.linalg.pinv(matrix) @ right[..., None])[..., 0]
        relative = np.abs(move)
        relative[:, 0] /= 1.0 + np.abs(at.kappa)
        size = relative.max(axis=-1)
        damp = np.minimum(1.0, 1.0 / np.maximum(size, 1e-300))
        for values, change in zip((result.kappa, result.U, result.G), move.T, strict=True):
            values[active] += damp * change
        # Rounding stops the steps from shrinking: a small step that is not smaller than the last one is the last.
        last = (size < 1e-14) | ((size < TOLERANCE) & (size >= 0.5 * at.step)) | ~(size < np.inf)
        result.step[active] = np.where(np.isnan(size), np.inf, size)
        active = active[~last]
        if not active.size:
            break
    return result


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

    def thermal(at: Points, residual: Residuals, active: NDArray[np.int64]) -> tuple[Floats, Floats]:
        a = temperature[active] * np.exp(at.U + at.G) / model.var_x
        gradient = residual.d_gradient + np.stack([np.zeros_like(a), a, a], axis=-1)
        return a + residual.d - slack, gradient

    return _newton(rho, model, start, thermal)


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
