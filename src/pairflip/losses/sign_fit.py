r"""Least squares on the columns of one support whose coefficients may not have the wrong sign.

.. math:: \min_x \|y - X_S x\|^2 + \sum_l \lambda_l x_l^2 \quad\text{with}\quad \sigma_l x_l \ge 0, \quad
          \sigma_l \in \{1, -1, 0\}

(0: free). At the minimum some coefficients are zero; the others, the *carrying* columns, have those of ordinary least
squares on these columns alone. So one has to know which columns carry; every number then comes from an ordinary QR.
A set of carrying columns is the right one if their coefficients have the right signs and no other column would get a
coefficient of its right sign. It is found by the active set method of Lawson & Hanson (*Solving Least Squares
Problems*, 1974, chapter 23), begun with the columns whose sign is right without any bound.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats, factor

ENTERS = 1e-12
"""A column carries if its product with the residual exceeds this fraction of the norm of y: less is rounding.

Columns have unit norm, and 1e-10 of it at least is independent of the others: not more than 1e-14 y'y is lost.
"""
_ROUNDS = 10  # times the number of columns: far more than it takes

Carrying = NDArray[np.bool_]


def carrying_columns(columns: Floats, target: Floats, signs: NDArray[np.int8]) -> Carrying:
    """Which (k,) columns have a coefficient other than zero at the minimum; free ones always count as such.

    Parameters
    ----------
    columns : (m, k)
        Of unit norm; they may be dependent.
    target : (m,)
        What is fitted.
    signs : (k,)
        1, -1, or 0 for a free coefficient.
    """
    free = signs == 0
    A = columns * np.where(free, 1.0, signs)
    carrying = np.ones(signs.size, dtype=bool)
    x = _solve(A, target, carrying)
    while (wrong := carrying & ~free & (x <= 0)).any():
        carrying &= ~wrong
        x = _solve(A, target, carrying)
    limit, refused = ENTERS * float(np.linalg.norm(target)), np.zeros(signs.size, dtype=bool)
    for _ in range(_ROUNDS * signs.size):
        gradient = np.where(carrying | refused, -np.inf, A.T @ (target - A @ x))
        j = int(np.argmax(gradient))
        if not gradient[j] > limit:
            break
        carrying[j] = True
        then = _solve(A, target, carrying)
        while (wrong := carrying & ~free & (then <= 0)).any():  # as far as signs allow, until all are right
            back = x[wrong] - then[wrong]
            share = np.where(back > 0, x[wrong] / np.where(back > 0, back, 1.0), 0.0)
            x += share.min() * (then - x)
            carrying[np.flatnonzero(wrong)[share <= share.min()]] = False
            x[~carrying] = 0.0
            then = _solve(A, target, carrying)
        x = then
        refused = np.zeros_like(refused) if carrying[j] else refused | (np.arange(signs.size) == j)
    return carrying


def _solve(A: Floats, target: Floats, which: Carrying) -> Floats:
    """Coefficients (k,) of least squares on some of the columns, zero for the others."""
    x = np.zeros(which.size)
    if which.any():
        x[which] = np.linalg.lstsq(A[:, which], target, rcond=None)[0]
    return x


def signed_energy(columns: Floats, target: Floats, penalty: Floats, signs: NDArray[np.int8]) -> tuple[Carrying, float]:
    """Which (k,) of (M, k) columns carry, and the energy of the support; infinite where it is singular.

    Parameters
    ----------
    columns, target, penalty
        As in `least_squares.qr_energy`.
    signs : (k,)
        1, -1, or 0 for a free coefficient.
    """
    factors = factor(columns, target, penalty)
    if factors is None:
        return np.ones(signs.size, dtype=bool), float("inf")
    design, t, q, r = factors
    carrying = np.ones(signs.size, dtype=bool)
    if not np.all((signs == 0) | (signs * np.linalg.solve(r, q.T @ t) > 0)):
        carrying = carrying_columns(r, q.T @ t, signs)
        q = np.linalg.qr(design[:, carrying])[0]
    residual = t - q @ (q.T @ t)
    residual -= q @ (q.T @ residual)
    return carrying, 0.5 * float(residual @ residual)
