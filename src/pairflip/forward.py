r"""Forward selection: a quick support of every size, which sets the scale of temperatures."""

from __future__ import annotations

import numpy as np

from pairflip.gram import Gram
from pairflip.least_squares import SINGULAR


def forward_energies(gram: Gram, k: int) -> list[float]:
    r"""Energies that forward selection leaves with 0, 1, ..., k columns (fewer if no more are independent).

    Each step takes the column with the largest :math:`r_j^2 / s_j`: what it shares with the residual over what of it
    is not in the chosen ones. The ridge term is left out: only a scale is wanted.
    """
    residual = gram.target.copy()
    free = np.einsum("jm,jm->j", gram.columns, gram.columns)
    chosen: list[int] = []
    basis = np.empty((0, residual.size))
    energies = [0.5 * float(residual @ residual)]
    for _ in range(k):
        shared = gram.columns @ residual
        usable = free > SINGULAR
        usable[chosen] = False
        if not usable.any():
            break
        gain = np.where(usable, shared**2 / np.where(usable, free, 1.0), -1.0)
        best = int(np.argmax(gain))
        chosen.append(best)
        direction = gram.columns[best] - (gram.columns[best] @ basis.T) @ basis
        direction -= (direction @ basis.T) @ basis
        direction /= np.sqrt(direction @ direction)
        basis = np.vstack([basis, direction])
        free -= (gram.columns @ direction) ** 2
        residual -= direction * (direction @ residual)
        energies.append(0.5 * float(residual @ residual))
    return energies


def scale_of(energies: list[float]) -> float:
    """The last of forward selection's energies; where that is nothing, a part of what it left before."""
    return max(energies[-1], 0.01 * energies[-2], 1e-9 * energies[0])


def greedy_scale(gram: Gram, k: int) -> float:
    """Energy that forward selection leaves at size k, never zero."""
    return scale_of(forward_energies(gram, k))
