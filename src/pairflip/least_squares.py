r"""Least squares on the columns of one support, by QR: where every reported number comes from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SINGULAR = 1e-10
"""A support is singular when less than this fraction of a column's squared norm is independent of the others.

In other words: when some diagonal element of inv(G_SS), the column's variance inflation factor, exceeds
1 / SINGULAR. This is a property of the support, not of the flip that would lead there, so the chain
stays reversible.
"""


def orthonormal_basis(columns: Floats) -> Floats:
    """Orthonormal basis (M, rank) of `columns` (M, f); (M, 0) when there are none."""
    if columns.shape[1] == 0:
        return np.zeros((columns.shape[0], 0))
    norms = np.sqrt(np.einsum("mf,mf->f", columns, columns))
    u, s, _ = np.linalg.svd(columns / np.where(norms > 0, norms, 1.0), full_matrices=False)
    return np.asarray(u[:, s > 1e-12 * max(float(s[0]), 1e-300)])


def factor(columns: Floats, target: Floats, penalty: Floats) -> tuple[Floats, Floats, Floats, Floats] | None:
    """(design, target, Q, R) with the ridge penalty as extra rows, or None when the support is singular."""
    if penalty.any():
        columns = np.vstack([columns, np.diag(np.sqrt(penalty))])
        target = np.concatenate([target, np.zeros((penalty.size, *target.shape[1:]))])
    q, r = np.linalg.qr(columns)
    if r.shape[0] < r.shape[1] or np.min(np.abs(np.diag(r)), initial=1.0) ** 2 <= SINGULAR:
        return None
    inverse = np.linalg.inv(r)
    if np.max(np.einsum("lm,lm->l", inverse, inverse), initial=0.0) >= 1.0 / SINGULAR:
        return None
    return columns, target, q, r


def qr_energy(columns: Floats, target: Floats, penalty: Floats) -> float:
    r""":math:`\frac12 \min_x \|y - X_S x\|^2 + \frac12 \sum_l \lambda_l x_l^2` of (M, k) columns; inf if singular."""
    factors = factor(columns, target, penalty)
    if factors is None:
        return float("inf")
    _, t, q, _ = factors
    residual = t - q @ (q.T @ t)
    residual -= q @ (q.T @ residual)
    return 0.5 * float(np.vdot(residual, residual))


def qr_several(columns: Floats, targets: Floats, penalty: Floats) -> tuple[Floats, Floats] | None:
    """Coefficients (k, q) and energies (q,) of several targets, with one step of refinement; None if singular."""
    from scipy.linalg import solve_triangular

    factors = factor(columns, targets, penalty)
    if factors is None:
        return None
    design, t, q, r = factors
    x: Floats = np.zeros((penalty.size, targets.shape[1]))
    if penalty.size:
        x = solve_triangular(r, q.T @ t)
        x += solve_triangular(r, q.T @ (t - design @ x))
    residual = t - design @ x
    return x, 0.5 * np.einsum("mq,mq->q", residual, residual)
