"""Forward and backward selection: one column at a time, always the one that changes the energy in the best way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pairflip.comparison.registry import Peer, PeerFailed, Supports
from pairflip.comparison.training import Training
from pairflip.least_squares import SINGULAR, Floats


def forward(columns: Floats, target: Floats, most: int) -> list[int]:
    r"""Columns in the order in which they are added: each lowers the energy most, by :math:`r_j^2 / 2 s_j`.

    With an orthonormal basis of the chosen columns, r_j is the product of what is left of column j with the target, and
    s_j its squared norm.
    """
    order: list[int] = []
    r, s, free = columns.T @ target, np.ones(columns.shape[1]), np.ones(columns.shape[1], dtype=bool)
    basis = np.empty((0, columns.shape[0]))
    for _ in range(most):
        free &= s > SINGULAR
        if not free.any():
            break
        j = int(np.argmax(np.where(free, r**2 / np.where(free, s, 1.0), -1.0)))
        q = columns[:, j]
        for _ in range(2):  # a second projection removes what rounding left of the first
            q = q - (basis @ q) @ basis
        q = q / np.linalg.norm(q)
        basis = np.vstack([basis, q])
        shared = q @ columns
        r, s = r - shared * (q @ target), s - shared**2
        free[j] = False
        order.append(j)
    return order


def backward(columns: Floats, target: Floats, least: int) -> dict[int, NDArray[np.int64]]:
    r"""Supports of all sizes from all columns down to `least`: the one is removed that raises the energy least.

    That is by :math:`x_i^2 / 2 P_{ii}` with :math:`P = G^{-1}`; removing it changes P and x by one rank-one term.
    P comes from a QR of the columns.
    """
    rows, count = columns.shape
    r = np.linalg.qr(columns, mode="r")
    if rows < count or np.min(np.abs(np.diag(r))) ** 2 <= SINGULAR:
        why = f"here are {count} columns and {rows} training rows" if rows < count else "here some depend on others"
        raise PeerFailed(f"starts with all columns, which must be independent: {why}")
    inverse = np.linalg.inv(r)
    P = inverse @ inverse.T
    x, left = np.linalg.lstsq(columns, target, rcond=None)[0], np.arange(count)
    found = {count: left}
    while left.size > least:
        i = int(np.argmin(x**2 / np.diag(P)))
        keep = np.delete(np.arange(left.size), i)
        p, row = P[i, i], P[i, keep]
        x = x[keep] - row * (x[i] / p)
        P = P[np.ix_(keep, keep)] - np.outer(row, row / p)
        left = left[keep]
        found[left.size] = left
    return found


def _forward(training: Training, sizes: Sequence[int]) -> Supports:
    order = forward(training.columns, training.target, max(sizes))
    return {k: np.sort(np.array(order[:k], dtype=np.int64)) for k in sizes if k <= len(order)}


def _backward(training: Training, sizes: Sequence[int]) -> Supports:
    return backward(training.columns, training.target, min(sizes))


FORWARD = Peer("forward", "forward selection", "Adds the column that lowers the energy most.", find=_forward)
BACKWARD = Peer(
    "backward", "backward selection", "Starts with all columns and removes the one that is missed least.",
    find=_backward,
)  # fmt: skip
