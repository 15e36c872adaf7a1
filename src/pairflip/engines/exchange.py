r"""Replica exchange: walkers at a ladder of temperatures, neighbours of which trade places.

Between two rounds of flips, walkers a and b at neighbouring inverse temperatures trade places with probability
:math:`\min(1, e^{(\beta_a - \beta_b)(E_a - E_b)})`, in even rounds the first and second, third and fourth ..., in odd
ones the others, which keeps the product of their distributions. A walker keeps its random numbers wherever it stands;
those of the exchanges of a ladder are addressed by round and place under the key of its first walker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats
from pairflip.philox import STREAM_EXCHANGES, uniforms


@dataclass(frozen=True)
class LadderPlan:
    """Ladders to walk on one problem: L of them, each with R walkers of k columns."""

    k: int
    betas: Floats  # (R,): inverse temperatures of the places, ascending
    rounds: int
    flips: int  # of each walker in each round
    keys: NDArray[np.uint32]  # (L, R, 2): of the walkers' random numbers

    def drawn(self, ladder: int) -> Floats:
        """Random numbers (D, R) of the exchanges of a ladder, under the key of its first walker."""
        shape = self.rounds, self.betas.size
        return uniforms(self.keys[ladder, 0], np.arange(shape[0] * shape[1]), STREAM_EXCHANGES).reshape(shape)


@dataclass(frozen=True)
class LadderResult:
    """What happened on one ladder of R inverse temperatures in D rounds, by place on the ladder."""

    supports: NDArray[np.int32]  # (R, D, k) at the end of each round
    energies: Floats  # (R, D)
    accepted: NDArray[np.int64]  # (R,): flips that were accepted at a place
    traded: NDArray[np.int64]  # (R - 1,): how often neighbours traded places
    tried: NDArray[np.int64]  # (R - 1,): of how many times
    trips: int  # how often a walker went from the hottest to the coldest place and back


Walk = Callable[[int, Floats], tuple[Any, Any, Any]]
"""(round, beta of each walker) -> their supports (R, k) and energies (R,) after the round, and accepted flips (R,)."""


def run_ladder(plan: LadderPlan, ladder: int, walk: Walk) -> LadderResult:
    """Let the walkers of one ladder walk and trade places."""
    betas, rounds, k, n = plan.betas, plan.rounds, plan.k, plan.betas.size
    supports, energies = np.zeros((n, rounds, k), np.int32), np.zeros((n, rounds))
    accepted, places = np.zeros((n, rounds), np.int64), np.zeros((rounds, n), np.int64)
    who = np.arange(n)
    drawn = plan.drawn(ladder)
    for round_ in range(rounds):
        places[round_] = who
        walker_betas = np.empty(n)
        walker_betas[who] = betas
        supports[:, round_], energies[:, round_], accepted[:, round_] = walk(round_, walker_betas)
        lower = np.arange(round_ % 2, n - 1, 2)
        gain = energies[who[lower + 1], round_] - energies[who[lower], round_]
        gain *= betas[lower + 1] - betas[lower]
        # Underflow is a refusal; a gain above 0 is an acceptance whatever the number.
        yes = drawn[round_, lower] <= np.exp(np.minimum(gain, 0.0))
        who[lower[yes]], who[lower[yes] + 1] = who[lower[yes] + 1], who[lower[yes]]
    walkers, at = places.T, np.arange(rounds)
    tried = np.array([len(range(lower % 2, rounds - 1, 2)) for lower in range(n - 1)], dtype=np.int64)
    traded = (places[:-1, :-1] == places[1:, 1:]).sum(axis=0) if n > 1 else np.zeros(0)
    heading, trips = np.zeros(n, np.int64), 0  # 1: to the cold end, -1: back from it
    for first, last in places[1:, [0, -1]].tolist() if n > 1 else ():
        trips += int(heading[first] == -1)
        heading[first] = 1
        heading[last] = -1 if heading[last] == 1 else heading[last]
    by_place = supports[walkers, at], energies[walkers, at], accepted[walkers, at].sum(axis=1)
    return LadderResult(*by_place, traded.astype(np.int64), tried, trips)
