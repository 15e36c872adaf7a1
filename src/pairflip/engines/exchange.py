r"""Replica exchange: walkers at a ladder of temperatures, neighbours of which trade places.

Between two rounds of flips, walkers a and b at neighbouring inverse temperatures trade places with probability
:math:`\min(1, e^{(\beta_a - \beta_b)(E_a - E_b)})`, in even rounds the first and second, third and fourth ..., in odd
ones the others, which keeps the product of their distributions. A walker keeps its random numbers wherever it stands;
those of the exchanges of a ladder are addressed by round and place under the key of its first walker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats
from pairflip.philox import STREAM_EXCHANGES, uniforms


@dataclass(frozen=True)
class LadderResult:
    """What happened on one ladder of R inverse temperatures in D rounds.

    `supports` (R, D, k) and `energies` (R, D): by place on the ladder, at the end of each round. `accepted` (R,): flips
    that were accepted at a place; `traded` (R - 1,): how often neighbours traded places, of `tried` (R - 1,) times;
    `trips`: how often a walker went from the hottest to the coldest place and back.
    """

    supports: NDArray[np.int32]
    energies: Floats
    accepted: NDArray[np.int64]
    traded: NDArray[np.int64]
    tried: NDArray[np.int64]
    trips: int


Walk = Callable[[int, int, float], tuple[NDArray[np.int64], float, int]]
"""(walker, round, beta) -> its support after the flips of the round, energy, and how many flips were accepted."""


def run_ladder(betas: Floats, rounds: int, k: int, key: NDArray[np.uint32], walk: Walk) -> LadderResult:
    """Let the walkers of one ladder walk and trade places.

    Parameters
    ----------
    betas : (R,)
        Inverse temperatures, ascending.
    rounds : int
        How often all walkers walk.
    k : int
        Number of columns of a support.
    key : (2,)
        Of the random numbers of the exchanges.
    walk : callable
        Makes the flips of one walker in one round.
    """
    n = betas.size
    supports, energies = np.zeros((n, rounds, k), np.int32), np.zeros((n, rounds))
    accepted, traded, tried = (
        np.zeros(n, np.int64),
        np.zeros(max(n - 1, 0), np.int64),
        np.zeros(max(n - 1, 0), np.int64),
    )
    who, heading, trips = np.arange(n), np.zeros(n, np.int64), 0  # heading: 1 to the cold end, -1 back from it
    drawn = uniforms(key, np.arange(rounds * n), STREAM_EXCHANGES).reshape(rounds, n)
    for round_ in range(rounds):
        for place in range(n):
            support, energies[place, round_], count = walk(int(who[place]), round_, float(betas[place]))
            supports[place, round_] = support
            accepted[place] += count
        lower = np.arange(round_ % 2, n - 1, 2)
        gain = (betas[lower + 1] - betas[lower]) * (energies[lower + 1, round_] - energies[lower, round_])
        # Underflow is a refusal; a gain above 0 is an acceptance whatever the number.
        yes = drawn[round_, lower] <= np.exp(np.minimum(gain, 0.0))
        tried[lower] += 1
        traded[lower[yes]] += 1
        who[lower[yes]], who[lower[yes] + 1] = who[lower[yes] + 1], who[lower[yes]]
        if n > 1:
            trips += int(heading[who[0]] == -1)
            heading[who[0]] = 1
            heading[who[-1]] = -1 if heading[who[-1]] == 1 else heading[who[-1]]
    return LadderResult(supports, energies, accepted, traded, tried, trips)
