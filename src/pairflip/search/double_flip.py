r"""Exchange two columns at once, the best of all ways: what pair flips one at a time may never find.

A support can be the best of all its single flips and still not the best: a deep, narrow minimum elsewhere shares
k - 2 columns with it. For a support S, all exchanges of slots (a, b) with columns (i, j) cost O(N^2 k^2): with
W, r, s as in the flip algebra and :math:`R_{ij} = G_{ij} - G_{iS} W_j`, removing the two slots gives

.. math::
    R'_{ij} = R_{ij} + w_i^T Q w_j, \quad r'_i = r_i + w_i^T Q x_{ab}, \quad Q = (P_{ab,ab})^{-1}, \ w_i = W_{ab,i},

and the pair (i, j) then lowers :math:`2E` by :math:`r'^T R'^{-1} r'` over its two elements.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pairflip.distinct import distinct_supports
from pairflip.engines.base import is_lower
from pairflip.gram import Gram
from pairflip.least_squares import Floats

_OPERATIONS = 2e8
"""Of all supports that are tried, N^2 k^2 / 2 each."""


def improve(gram: Gram, supports: NDArray[np.int64], energies: Floats) -> tuple[NDArray[np.int64], float] | None:
    """The best support that double flips reach from the lowest of `supports` (candidate positions), if better.

    As many supports are tried as a count of operations affords (some hundredths of a second); None where not even one
    is affordable, or where nothing better is found.
    """
    k = supports.shape[1]
    affordable = int(_OPERATIONS / (gram.n_columns**2 * k * k / 2.0)) if gram.dense and k >= 2 else 0
    if not affordable or gram.n_columns < k + 2:
        return None
    first = distinct_supports(supports).first
    lowest = first[np.argsort(energies[first], kind="stable")][: min(affordable, 32)]
    best, best_energy = supports[lowest[0]], float(energies[lowest[0]])
    start_energy = best_energy
    for index in lowest:
        support = supports[index]
        while True:
            flipped = best_double_flip(gram, support)
            energy = gram.energy(flipped)
            if is_lower(energy, best_energy, gram.yy):
                best, best_energy, support = flipped, energy, flipped
            else:
                break
    return (best, best_energy) if best_energy < start_energy else None


def best_double_flip(gram: Gram, support: NDArray[np.int64]) -> NDArray[np.int64]:
    """The lowest of all supports that differ from `support` (candidate positions) in two columns."""
    from pairflip.engines.numba.double_flips import find_double_flip

    outside = np.setdiff1d(np.arange(gram.n_columns), support)
    rows = gram.matrix[np.ix_(support, outside)]
    P = np.linalg.inv(gram.matrix[np.ix_(support, support)])
    x, W = P @ gram.b[support], P @ rows
    r = gram.b[outside] - x @ rows
    s = gram.diagonal[outside] - np.einsum("mj,mj->j", rows, W)
    a, b, i, j = find_double_flip(gram.matrix, rows, P, x, W, r, s, outside)
    flipped = support.copy()
    flipped[[a, b]] = outside[i], outside[j]
    return np.sort(flipped)
