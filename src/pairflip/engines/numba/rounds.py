"""Rounds of descents, the same for every energy that has kernels of its own: chains, and paths over all sizes.

A chain descends from where it starts (a given support, or its random one), then is kicked: some of its lowest support
is replaced and it descends again; every few rounds it starts anew at random. Random numbers are addressed by (key,
round, place), as everywhere. Every energy that is compared or reported comes from QR on the columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import ANEW, Descent, RankTooSmall, Steps, Tick, WalkPlan, WalkResult, is_lower
from pairflip.engines.blas import one_blas_thread
from pairflip.gram import Gram
from pairflip.philox import philox4x32

Support = NDArray[np.int64]
Found = tuple[Support, float]
NONE = np.zeros(0, np.int64)
InThreads = Callable[[Callable[[int, int], None]], None]
"""Calls a function with (first, last) for parts of all chains."""


class RoundSearcher:
    """What a searcher of supports of one form does with its own `down`, `larger`, `smaller`, `_random`, `_kicked`.

    `own_round` is a word in the addresses of its random starts.
    """

    own_round = 0
    _form: Any
    _n: int

    def down(self, support: Support) -> Found:
        """The minimum that is reached from a support, and its energy."""
        raise NotImplementedError

    def larger(self, support: Support, barred: Support = NONE) -> Support | None:
        """One more, the best one beside those `barred`; None where there is none."""
        raise NotImplementedError

    def smaller(self, support: Support) -> Support:
        """One less: the one that is missed least."""
        raise NotImplementedError

    def _random(self, k: int, key: NDArray[np.uint32]) -> Support:
        raise NotImplementedError

    def _kicked(self, best: Support, key: NDArray[np.uint32], round_: int, least: int, most: int) -> Support:
        raise NotImplementedError

    def _packed(self, k: int) -> Support | None:
        """A support of k where none can be reached by adding one; None where there is no way to make one."""
        return None

    def chain(self, k: int, key: NDArray[np.uint32], descent: Descent, start: Support | None) -> Found:
        """The lowest support of a chain, and its energy.

        Parameters
        ----------
        k, key
            Size, and the key of the chain.
        descent : Descent
            How many kicks.
        start : (k,), optional
            Where it begins; by default its random support.
        """
        best, low = self.down(self._random(k, key) if start is None else start)
        least, most = self._sizes_of_kicks(descent, k)
        for round_ in range(1, descent.kicks + 1):
            other = self.down(self._next(best, key, round_, least, most))
            if is_lower(other[1], low, self._form.yy):
                best, low = other
        return best, low

    def _sizes_of_kicks(self, descent: Descent, k: int) -> tuple[int, int]:
        """How many a kick replaces, at least and at most."""
        least, most = descent.columns(k)
        most = max(1, min(most, self._n - k, k))
        return min(least, most), most

    def _next(self, best: Support, key: NDArray[np.uint32], round_: int, least: int, most: int) -> Support:
        """Where a round begins: at random every few rounds, otherwise at the kicked support."""
        if round_ % ANEW:
            return self._kicked(best, key, round_, least, most)
        return self._random(best.size, philox4x32(np.array([round_, 0, 0, self.own_round]), key)[:2].copy())

    def path(self, largest: int, passes: int) -> Steps:
        """Supports of sizes 1 to `largest` (fewer where no more are independent) and their energies.

        The first pass goes up, the next ones down and up in turn, until nothing changes or `passes` are over.
        """
        found: list[Found] = []
        for k in range(1, largest + 1):
            begin = self.larger(found[-1][0] if found else NONE)
            if begin is None:
                begin = self._packed(k)
            if begin is None:
                break
            found.append(self.down(begin) if k < self._n else (np.sort(begin), self._form.energy(np.sort(begin))))
        for round_ in range(1, passes):
            changed, up = False, round_ % 2 == 0
            sizes = range(1, len(found)) if up else range(len(found) - 1, 0, -1)
            for k in sizes:  # from size k to k + 1, or from k + 1 to k
                begin = self.larger(found[k - 1][0]) if up else self.smaller(found[k][0])
                at = k if up else k - 1
                if begin is None or begin.size == self._n:
                    continue
                other = self.down(begin)
                if is_lower(other[1], found[at][1], self._form.yy):
                    found[at], changed = other, True
            if not changed:
                break
        return [support for support, _ in found], np.array([energy for _, energy in found])


def walk_chains(form: Gram, plan: WalkPlan, searcher: Callable[[], Any], in_threads: InThreads) -> WalkResult:
    """The chains of one plan by descents alone, each from its start or from its random support.

    Parameters
    ----------
    form : Gram
        What is searched.
    plan : WalkPlan
        Its chains.
    searcher : callable
        Makes a searcher, which is not for two threads at a time.
    in_threads : callable
        Calls a function with (first, last) for parts of all chains.
    """
    descent, k = Descent() if plan.descent is None else plan.descent, plan.k
    if k > form.n_columns:
        raise RankTooSmall(k, form.n_columns, form.objective)
    supports, energies = np.zeros((plan.chains, k), np.int64), np.zeros(plan.chains)

    def work(first: int, last: int) -> None:
        own = searcher()
        for c in range(first, last):
            start = None if plan.starts is None else plan.starts[c]
            supports[c], energies[c] = own.chain(k, plan.keys[c], descent, start)

    in_threads(work)
    none = np.zeros((plan.chains, 0))
    counts = np.zeros(plan.chains, np.int64)
    return WalkResult(none, none.astype(np.int64), supports, supports.copy(), energies, counts)


def path_of(form: Gram, largest: int, passes: int, searcher: Callable[[int], RoundSearcher]) -> Steps:
    """Supports of sizes 1 to `largest`, and their energies.

    Parameters
    ----------
    form : Gram
        What is searched.
    largest, passes : int
        As in `Engine.path`.
    searcher : callable
        Makes a searcher of supports up to a size.
    """
    largest = min(largest, form.n_columns)
    with one_blas_thread():
        return searcher(largest).path(largest, passes)


def hear(tick: Tick | None) -> Tick:
    """A tick that may be called, also where nobody wants to hear."""
    return (lambda _: None) if tick is None else tick
