"""What the chains of a walk found, judged by QR on the columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import NOTHING, Descent, WalkPlan, WalkResult, is_lower, reaches
from pairflip.least_squares import Floats
from pairflip.moments import Form

__all__ = ["NOTHING", "descended", "first_best", "first_bests", "is_lower", "reaches", "refine", "settle"]

_TINY = 1e-5  # of y'y: below it, TIE y'y is a visible part of an energy
_AFFORDABLE = 5_000  # flips, some 50 microseconds each


def settle(form: Form, walked: WalkResult) -> tuple[NDArray[np.int64], Floats]:
    """The better of each chain's last and best support (chains, k), as candidate positions, and their energies."""
    known: dict[bytes, float] = {}

    def energy(support: NDArray[np.int64]) -> float:
        key = support.tobytes()
        if key not in known:
            known[key] = form.energy(support)
        return known[key]

    supports = walked.support.copy()
    energies = np.array([energy(s) for s in supports])
    for c, other in enumerate(walked.best_support):
        if is_lower(energy(other), energies[c], form.yy):
            supports[c], energies[c] = other, energy(other)
    return supports, energies


def first_best(energies: Floats, yy: float) -> int:
    """The first chain with the lowest energy; rounding does not decide between equal ones."""
    return int(first_bests(energies[None], np.array([yy]))[0])


def first_bests(energies: Floats, yy: Floats) -> NDArray[np.int64]:
    """The same (F,) for F problems at once: energies (F, chains), y'y (F,)."""
    return np.asarray(np.argmax(reaches(energies, energies.min(axis=1, keepdims=True), yy[:, None]), axis=1))


def descended(form: Form, support: NDArray[np.int64]) -> NDArray[np.int64]:
    """The support that the best flips reach from another (sorted candidate positions)."""
    from pairflip.engines import get_engine

    no_flips, keys = (np.zeros(0), np.zeros(0, dtype=np.int64)), np.zeros((1, 2), np.uint32)
    plan = WalkPlan(support.size, *no_flips, keys, support[None], Descent())
    reached = get_engine("numba").walk([(form, plan)])[0].support[0]
    return reached if is_lower(form.energy(reached), form.energy(support), form.yy) else support


def refine(form: Form, support: NDArray[np.int64]) -> NDArray[np.int64]:
    """The best of all single flips by QR until none lowers the energy, where a support explains nearly all of y.

    While searching, energies within TIE y'y are equal. Where the energy itself is not much more than that, this decides
    between them; it is done if all flips are few enough to be looked at one by one.
    """
    outside, now = np.setdiff1d(np.arange(form.n_columns), support), form.energy(support)
    while now < _TINY * form.yy and support.size * outside.size <= _AFFORDABLE:
        flipped = [np.sort(np.append(np.delete(support, i), j)) for i in range(support.size) for j in outside]
        energies = np.array([form.energy(other) for other in flipped])
        best = first_best(energies, form.yy)
        if not is_lower(energies[best], now, form.yy):
            break
        support, now = flipped[best], float(energies[best])
        outside = np.setdiff1d(np.arange(form.n_columns), support)
    return support
