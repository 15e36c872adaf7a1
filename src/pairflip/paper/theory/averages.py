r"""Averages over a Gaussian of the probability to be selected, which has a steep edge.

With :math:`z \sim N(0, 1)` and the probability :math:`p(z) = 1 / (1 + e^{\kappa - w z^2 / 2})` that a site is
selected, everything the theory needs of one Gaussian component is a function of :math:`(w, \kappa)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Floats = NDArray[np.float64]

ORDER = 24
"""Gauss-Legendre nodes per panel: accurate to 1e-13; 8 are enough where only signs matter."""

_EDGE = np.array([-36.0, -8.0, 0.0, 8.0, 36.0])  # logits: outside of them p is 0 or 1 to rounding
_GAUSS = np.array([0.25, 0.5, 0.75])
_TAIL = 100.0  # exp(-50) is nothing


@cache
def _legendre(order: int) -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(order)
    return nodes, weights


@dataclass(frozen=True)
class Nodes:
    r"""Quadrature points z > 0 (last axis), their weights :math:`2 \phi(z) dz`, and logits of p there."""

    z2: Floats
    weight: Floats
    logit: Floats


def place_nodes(w: Floats, kappa: Floats, order: int = ORDER) -> Nodes:
    r"""Quadrature points: panels around the edge :math:`\theta = \sqrt{2 \kappa / w}` and over the Gaussian.

    The edge is :math:`1 / (w \theta)` wide. Points are kept as distances :math:`\delta` from it, so that the logit
    :math:`w \delta (2 \theta + \delta) / 2` has no rounding error of the size of :math:`\kappa`.
    """
    nodes, weights = _legendre(order)
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
    flat = (*w.shape, -1)
    delta, weight = delta.reshape(flat), (half * weights).reshape(flat)
    z = origin[..., None] + delta
    logit = 0.5 * w[..., None] * delta * (origin[..., None] + z) + base[..., None]
    z2 = z * z
    return Nodes(z2, weight * np.sqrt(2.0 / np.pi) * np.exp(-0.5 * z2), logit)


def both(null: Floats, true: Floats) -> Floats:
    """Two rows: null columns, true columns."""
    return np.stack([null, true])


@dataclass(frozen=True)
class Moments:
    r"""Averages over z of p, of :math:`\bar p = 1 - p` and of the slope :math:`s = p \bar p`, as arrays.

    Derivatives follow from :math:`\partial_\kappa p = -s` and :math:`\partial_w p = s z^2 / 2`.
    """

    w: Floats
    p: Floats
    p2z2: Floats
    miss_z2: Floats
    miss2_z2: Floats
    s: Floats
    s_z2: Floats
    s_z4: Floats
    sp_z2: Floats
    sp_z4: Floats

    def part(self, index: int) -> Moments:
        """The averages of one component, where `w` has one row per component."""
        return Moments(*(getattr(self, name)[index] for name in self.__dataclass_fields__))


def moments(w: Floats, kappa: Floats, order: int = ORDER) -> Moments:
    r"""All averages that the equations and their derivatives need."""
    at = place_nodes(w, kappa, order)
    p, miss = expit(at.logit), expit(-at.logit)
    c = at.weight
    cs = c * p * miss
    cs_z2 = cs * at.z2
    csp_z2 = cs_z2 * p
    c_z2 = c * at.z2
    return Moments(
        w=w,
        p=(c * p).sum(-1),
        p2z2=(c_z2 * p * p).sum(-1),
        miss_z2=(c_z2 * miss).sum(-1),
        miss2_z2=(c_z2 * miss * miss).sum(-1),
        s=cs.sum(-1),
        s_z2=cs_z2.sum(-1),
        s_z4=(cs_z2 * at.z2).sum(-1),
        sp_z2=csp_z2.sum(-1),
        sp_z4=(csp_z2 * at.z2).sum(-1),
    )


def selected(w: Floats, kappa: Floats, order: int = ORDER) -> tuple[Floats, Floats]:
    r"""Averages of p and of p (1 - p): the fraction selected, and minus its derivative with respect to kappa."""
    at = place_nodes(w, kappa, order)
    p = expit(at.logit)
    chosen = at.weight * p
    return chosen.sum(-1), (chosen * (1.0 - p)).sum(-1)


def powers(w: Floats, kappa: Floats, order: int) -> tuple[Floats, Floats, Floats]:
    r"""Averages of :math:`p^2 z^2`, :math:`\bar p z^2` and :math:`\bar p^2 z^2`."""
    at = place_nodes(w, kappa, order)
    p, c_z2 = expit(at.logit), at.weight * at.z2
    missed = c_z2 * (1.0 - p)
    return (c_z2 * p * p).sum(-1), missed.sum(-1), (missed * (1.0 - p)).sum(-1)


def entropy_and_response(w: Floats, kappa: Floats) -> tuple[Floats, Floats]:
    r"""Averages of the binary entropy of p and of the squared response :math:`(p + w s z^2)^2`."""
    at = place_nodes(w, kappa)
    p, miss = expit(at.logit), expit(-at.logit)
    size = np.abs(at.logit)
    small = np.exp(-size)
    binary_entropy = np.log1p(small) + size * small / (1.0 + small)
    response = p + w[..., None] * p * miss * at.z2
    return (at.weight * binary_entropy).sum(-1), (at.weight * response**2).sum(-1)
