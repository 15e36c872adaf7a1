"""Chains and paths in the deviance: what `NumbaEngine` does with classes and counts.

A chain descends from where it starts (a given support, or its random one), then is kicked: m columns of its lowest
support are replaced and it descends again; every few rounds it starts anew at random. Its lowest support is looked at
slot by slot in the end. Random numbers are addressed by (key, round, place), as everywhere.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import ANEW, Descent, Steps, Tick, WalkPlan, WalkResult
from pairflip.engines.blas import one_blas_thread
from pairflip.engines.numba.deviance import DOWN, GROW, KICK, LOWER, RANDOM, SLOTS, TRIED, DevianceTable, Place, search
from pairflip.engines.numba.rounds import InThreads, hear, walk_chains
from pairflip.gram import Gram
from pairflip.losses.likelihood_form import LikelihoodForm

Support = NDArray[np.int64]
_NONE, _NO_KEY = np.zeros(0, np.int64), np.zeros(2, np.uint32)


class DevianceSearcher:
    """Searches supports of up to `largest` columns of one form; not for two threads at a time."""

    def __init__(self, form: LikelihoodForm, largest: int, tick: Tick) -> None:
        f, m = form.forced.shape
        n, p = form.n_columns, f + largest
        self._table = DevianceTable(form.standard, form.forced, form.start, form.rows, form.penalty_weight)
        self._work = form.memory(largest)
        self._place = Place(
            support=np.zeros(largest, np.int64), theta=np.zeros(p), D=np.zeros((p, m)), trial=np.zeros(p),
            penalty=np.zeros(p), A=np.zeros((p, m)), C=np.zeros((p, n)), W=np.zeros((p, n)), r=np.zeros(n),
            s=np.zeros(n), slots=np.zeros(TRIED, np.int64), columns=np.zeros(TRIED, np.int64), gains=np.zeros(TRIED),
            inside=np.zeros(n, np.int8), kept=np.zeros(p), others=np.zeros(p),
        )  # fmt: skip
        self._n, self._tick = n, tick

    def down(self, support: Support) -> tuple[Support, float]:
        """The minimum that is reached from a support, and its energy."""
        return self._search(DOWN, support.size, support)

    def certified(self, support: Support) -> tuple[Support, float]:
        """The same, looked at slot by slot."""
        return self._search(SLOTS, support.size, support)

    def larger(self, support: Support) -> tuple[Support, float]:
        """A minimum of one column more."""
        return self._search(GROW, support.size + 1, support)

    def chain(self, k: int, key: NDArray[np.uint32], descent: Descent, start: Support | None) -> tuple[Support, float]:
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
        if start is None:
            best, low = self._search(RANDOM, k, key=key)
        else:
            best, low = self.down(start)
        least, most = descent.columns(k)
        most = max(1, min(most, self._n - k, k))
        least = min(least, most)
        for round_ in range(1, descent.kicks + 1):
            if round_ % ANEW == 0:
                other = self._search(RANDOM, k, key=_of_round(key, round_))
            else:
                other = self._search(KICK, k, best, key, round_, least, most)
            if other[1] < low - LOWER * low:
                best, low = other
        return self.certified(best)

    def path(self, largest: int, guesses: list[Support], thorough: bool) -> Steps:
        """Supports of sizes 1 to `largest`: the lower of growing the one before and of descending from a guess.

        Parameters
        ----------
        largest : int
            Largest size, at most the number of columns.
        guesses : list of (k,)
            Supports of sizes 1, 2, ...; there may be fewer.
        thorough : bool
            Whether each is looked at slot by slot.
        """
        supports: list[Support] = []
        energies = []
        best = np.zeros(0, np.int64)
        for k in range(1, largest + 1):
            grown = self.larger(best)
            if k <= len(guesses) and not np.array_equal(np.sort(guesses[k - 1]), grown[0]):
                other = self.down(guesses[k - 1])
                grown = other if other[1] < grown[1] - LOWER * grown[1] else grown
            best, low = self.certified(grown[0]) if thorough else grown
            supports.append(best)
            energies.append(low)
        return supports, np.array(energies)

    def _search(
        self, mode: int, k: int, start: Support = _NONE, key: NDArray[np.uint32] = _NO_KEY,
        round_: int = 0, least: int = 1, most: int = 1,
    ) -> tuple[Support, float]:  # fmt: skip
        """What `search` finds, the support sorted."""
        self._place.support[: start.size] = start
        energy = search(self._table, self._place, mode, k, key, round_, least, most, self._work)
        self._tick(k)
        return np.sort(self._place.support[:k]), float(energy)


def _of_round(key: NDArray[np.uint32], round_: int) -> NDArray[np.uint32]:
    """A key of its own for the random start of a later round."""
    from pairflip.philox import philox4x32

    return philox4x32(np.array([round_, 0, 0, 0x64657669]), key)[:2].copy()


def walk_deviance(form: Gram, plan: WalkPlan, tick: Tick, in_threads: InThreads) -> WalkResult:
    """The chains of one plan, each from its start or from its random support.

    Parameters
    ----------
    form : LikelihoodForm
        What is searched.
    plan : WalkPlan
        Its chains.
    tick : callable
        Hears of descents as they are done.
    in_threads : callable
        Calls a function with (first, last) for parts of all chains.
    """
    assert isinstance(form, LikelihoodForm)
    likelihood = form
    return walk_chains(form, plan, lambda: DevianceSearcher(likelihood, plan.k, tick), in_threads)


def deviance_path(form: Gram, largest: int, guesses: list[Support], thorough: bool, tick: Tick | None) -> Steps:
    """Supports of sizes 1 to `largest`, and their energies.

    Parameters
    ----------
    form : LikelihoodForm
        What is searched.
    largest : int
        Largest size.
    guesses : list of (k,)
        The path of the working problem.
    thorough : bool
        Whether each support is looked at slot by slot.
    tick : callable or None
        Hears of descents as they are done.
    """
    assert isinstance(form, LikelihoodForm)
    largest = min(largest, form.n_columns)
    with one_blas_thread():
        return DevianceSearcher(form, largest, hear(tick)).path(largest, guesses, thorough)
