r"""Forward selection: a quick support of every size, which sets the scale of temperatures."""

from __future__ import annotations

import numpy as np

from pairflip.least_squares import SINGULAR, Floats
from pairflip.moments import Form


def forward_energies(form: Form, k: int, b: Floats | None = None, yy: float | None = None) -> list[float]:
    r"""Energies that forward selection leaves with 0, 1, ..., k columns (fewer if no more are independent).

    Each step takes the column j with the largest :math:`r_j^2 / s_j` (what it shares with the residual over what of it
    is not in the chosen ones), which lowers the energy by half of that. With q the new row of the Cholesky factor,

    .. math:: q = (G_j - Q_{:j}^T Q) / \sqrt{s_j}, \quad r \to r - q r_j / \sqrt{s_j}, \quad s \to s - q^2 .

    `b` (N,) or (q, N) and `yy` stand for other targets than those of the problem. Several targets count together. A
    column whose coefficient would have the wrong sign when it enters does not enter.
    """
    if b is None:
        b = form.B
    r, s = np.array(b, ndmin=2), form.diagonal.copy()
    usable = s > SINGULAR
    Q = np.empty((0, s.size))
    energies = [0.5 * (form.yy if yy is None else yy)]
    for _ in range(k):
        usable &= s > SINGULAR
        if not usable.any():
            break
        gain = np.where(usable, np.einsum("qn,qn->n", r, r) / np.where(usable, s, 1.0), -1.0)
        if form.signs is not None:
            gain[form.signs * r[0] < 0] *= 0.0
        j = int(np.argmax(gain))
        if gain[j] <= 0.0:
            energies.append(energies[-1])
            continue
        root = np.sqrt(s[j])
        q = (form.row(j) - Q[:, j] @ Q) / root
        Q = np.vstack([Q, q])
        usable[j] = False
        r -= np.outer(r[:, j] / root, q)
        s -= q**2
        energies.append(max(energies[-1] - 0.5 * float(gain[j]), 0.0))
    return energies


def scale_of(energies: list[float]) -> float:
    """The last of forward selection's energies; where that is nothing, a fraction of what it left before.

    Six digits are kept: a temperature needs no more, and rounding errors then change no chain. A target that does not
    vary has no scale, and any will do.
    """
    before = energies[-2] if len(energies) > 1 else energies[-1]
    scale = max(energies[-1], 0.01 * before, 1e-9 * energies[0])
    return float(f"{scale:.6g}") or 1.0


def greedy_scale(form: Form, k: int) -> float:
    """Energy that forward selection leaves at size k, never zero."""
    return scale_of(forward_energies(form, k))
