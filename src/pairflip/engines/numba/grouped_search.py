"""Chains and paths in whole groups of columns: kernels where the Gram matrix can decide, the columns where it cannot.

A chain descends from where it starts (a given support, or its random one), then is kicked: some units of its lowest
support are replaced and it descends again; every few rounds it starts anew at random. Random numbers are addressed by
(key, round, place), as everywhere. Every energy that is compared or told comes from QR on the columns.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import EQUAL, RankTooSmall, Steps, Tick, WalkPlan, WalkResult, is_lower
from pairflip.engines.numba.cholesky import MINIMUM
from pairflip.engines.numba.grouped import (
    begin_at_random,
    find_addition,
    kick,
    new_place,
    walk_down,
)
from pairflip.engines.numba.grouped_annealing import anneal_grouped, kernel_form
from pairflip.engines.numba.rounds import Found, InThreads, RoundSearcher, Support, hear, path_of, walk_chains
from pairflip.gram import Gram
from pairflip.losses.grouped import GroupedForm

_FLIPS = 1000  # of a descent in one call, far more than it takes
_CHECKED = 200  # flips that are judged one by one, at most

_NONE = np.zeros(0, np.int64)


class GroupedSearcher(RoundSearcher):
    """Searches supports of up to `largest` units of one form; not for two threads at a time."""

    own_round = 0x67726F75

    def __init__(self, form: GroupedForm, largest: int, tick: Tick) -> None:
        self._form, self._n, self._tick = form, form.n_columns, tick
        self._kernels = kernel_form(form)
        self._room = new_place(self._kernels, largest)

    def down(self, support: Support) -> Found:
        """The minimum that is reached from a support (not a singular one), and its energy."""
        k, place = support.size, self._room
        place.support[:k] = support
        while walk_down(self._kernels, place, k, _FLIPS) != MINIMUM:
            at = place.support[:k].copy()
            better = self._flip_by_columns(at, self._form.energy(np.sort(at)))
            self._tick(k)
            if better is None:
                break
            place.support[:k] = better
        self._tick(k)
        best = np.sort(place.support[:k])
        return best, self._form.energy(best)

    def larger(self, support: Support, barred: Support = _NONE) -> Support | None:
        """One unit more, the best one beside those `barred`; None where no support is that large.

        A wide unit may leave no room for others: where all depend on the support, narrow ones take its place.
        """
        k = support.size
        self._room.support[:k] = support
        unit = int(find_addition(self._kernels, self._room, k, barred))
        if unit >= 0 and np.isfinite(self._form.energy(np.append(support, unit))):  # small dependences add up
            return np.append(support, unit)
        found = self._add_by_columns(support, barred)
        return self._form.regular(k + 1) if found is None else found

    def smaller(self, support: Support) -> Support:
        """One unit less: the one that is missed least."""
        without = [np.delete(support, i) for i in range(support.size)]
        return without[int(np.argmin([self._form.energy(other) for other in without]))]

    def _random(self, k: int, key: NDArray[np.uint32]) -> Support:
        """The first units of the random order of a key, and the best ones where too few are independent."""
        seated = int(begin_at_random(self._kernels, self._room, k, key))
        return self._filled(self._room.support[:seated].copy(), k, _NONE)

    def _kicked(self, best: Support, key: NDArray[np.uint32], round_: int, least: int, most: int) -> Support:
        """The support after some of its units were replaced."""
        k, place = best.size, self._room
        place.support[:k] = best
        seated = int(kick(self._kernels, place, k, key, round_, least, most))
        gone = np.setdiff1d(best, place.support[:seated])
        return self._filled(place.support[:seated].copy(), k, gone)

    def _filled(self, support: Support, k: int, barred: Support) -> Support:
        """The support with the best units added until there are k; `barred` ones where there is no other choice."""
        while support.size < k:
            more = self.larger(support, barred)
            if more is None and barred.size:
                more, barred = self.larger(support), _NONE
            if more is None:
                raise RankTooSmall(k, self._form.rank(), self._form.objective)
            support = more
        return support

    def _flip_by_columns(self, support: Support, now: float) -> Support | None:
        """The support after the best flip that lowers the energy `now`, by QR; None where there is none."""
        gains = np.empty((support.size, self._n))
        for i in range(support.size):
            others = np.delete(support, i)
            gains[i] = self._form.gains(others) - 2.0 * (self._form.energy(others) - now)
            gains[i, support] = -np.inf
        worth = np.flatnonzero(gains.ravel() > EQUAL * now)  # only what may be lower by more than rounding
        for at in worth[np.argsort(-gains.ravel()[worth], kind="stable")][:_CHECKED]:
            other = support.copy()
            other[at // self._n] = at % self._n
            if is_lower(self._form.energy(np.sort(other)), now, self._form.yy):
                return other
        return None

    def _add_by_columns(self, support: Support, barred: Support) -> Support | None:
        """The support with the best unit that leaves it regular, by QR; None where there is none."""
        gains = self._form.gains(support)
        gains[barred] = -np.inf
        which = np.flatnonzero(np.isfinite(gains))
        for h in which[np.argsort(-gains[which], kind="stable")]:
            other = np.append(support, h)
            if np.isfinite(self._form.energy(np.sort(other))):
                return other
        return None


def walk_grouped(form: Gram, plan: WalkPlan, tick: Tick, in_threads: InThreads) -> WalkResult:
    """The chains of one plan: annealing, then (or instead) descents.

    Parameters
    ----------
    form : GroupedForm
        What is searched.
    plan : WalkPlan
        Its chains.
    tick : callable
        Hears of flips and descents as they are done.
    in_threads : callable
        Calls a function with (first, last) for parts of all chains.
    """
    assert isinstance(form, GroupedForm)
    grouped = form
    form.matrix  # noqa: B018 - formed before there are threads
    walked = None
    if plan.betas.size:
        walked = anneal_grouped(form, plan, tick, in_threads)
        if plan.descent is None:
            return walked
        plan = replace(plan, starts=walked.best_support)
    down = walk_chains(form, plan, lambda: GroupedSearcher(grouped, plan.k, tick), in_threads)
    if walked is None:
        return down
    return replace(down, energy=walked.energy, accepted=walked.accepted, refreshes=walked.refreshes)


def grouped_path(form: Gram, largest: int, passes: int, tick: Tick | None) -> Steps:
    """Supports of sizes 1 to `largest`, and their energies.

    Parameters
    ----------
    form : GroupedForm
        What is searched.
    largest : int
        Largest number of units.
    passes : int
        As in `Engine.path`.
    tick : callable or None
        Hears of descents as they are done.
    """
    assert isinstance(form, GroupedForm)
    grouped = form
    return path_of(form, largest, passes, lambda size: GroupedSearcher(grouped, size, hear(tick)))
