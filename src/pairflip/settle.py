"""What the chains of a walk found, judged by QR on the columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import WalkResult
from pairflip.gram import Gram
from pairflip.least_squares import Floats

_TIE = 1e-10
NOTHING = 1e-20
"""An energy this small beside that of y is rounding error: the support explains y exactly."""


def settle(gram: Gram, walked: WalkResult) -> tuple[NDArray[np.int64], Floats]:
    """The better of each chain's last and best support (chains, k), as candidate positions, and their energies."""
    known: dict[bytes, float] = {}

    def energy(support: NDArray[np.int64]) -> float:
        key = support.tobytes()
        if key not in known:
            known[key] = gram.energy(support)
        return known[key]

    supports = walked.support.copy()
    energies = np.array([energy(s) for s in supports])
    for c, other in enumerate(walked.best_support):
        if energy(other) < energies[c] - _TIE * gram.yy:
            supports[c], energies[c] = other, energy(other)
    return supports, energies


def reaches(energies: Floats, bound: float, yy: float) -> NDArray[np.bool_]:
    """Which energies are as low as `bound`; rounding does not decide."""
    return np.asarray(energies <= bound * (1 + _TIE) + NOTHING * yy)


def first_best(energies: Floats, yy: float) -> int:
    """The first chain with the lowest energy; rounding does not decide between equal ones."""
    return int(np.argmax(reaches(energies, float(energies.min()), yy)))
