"""The walkers of a ladder: chains of `walk` that are stopped after every round, and go on at another temperature."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import RankTooSmall
from pairflip.engines.numba.chain import System, new_chain
from pairflip.engines.numba.clock import AUTO, RANK_TOO_SMALL, TO_BE_JUDGED, Output, Plan, new_clock
from pairflip.engines.numba.delicate import Memory, judge
from pairflip.engines.numba.walk import advance
from pairflip.gram import Gram


class Walkers:
    """Chains of size k, one for each key, that make `flips` flips in each of `rounds` rounds.

    Parameters
    ----------
    gram : Gram
        The problem.
    k : int
        Number of columns.
    keys : (R, 2)
        Of their random numbers.
    rounds, flips : int
        How many rounds there will be, and flips in each.
    table : (float, int)
        When a table of all columns pays, see `Plan`.
    judging : callable
        Makes what delicate flips need, when they are met.
    """

    def __init__(
        self,
        gram: Gram,
        k: int,
        keys: NDArray[np.uint32],
        rounds: int,
        flips: int,
        table: tuple[float, int],
        judging: Any,
    ) -> None:
        none = np.empty((0, 0))
        G, columns = (gram.matrix, none) if gram.dense else (none, gram.columns)
        self._system = System(G, columns, gram.b, gram.diagonal, gram.yy)
        self._gram, self._k, self._flips, self._new_judge = gram, k, flips, judging
        self._judging: dict[int, tuple[Any, Any]] = {}
        ends = np.arange(1, rounds + 1) * flips
        self._walkers = [
            (
                new_chain(k, gram.n_columns, dense=gram.dense),
                new_clock(0, 1),
                # Temperatures come round by round, so that no chain may be taken for frozen: the coldest is 0.
                Plan(np.zeros(rounds), ends, np.zeros(rounds), keys[r : r + 1], AUTO, *table),
                _output(rounds, k),
            )
            for r in range(len(keys))
        ]

    def walk(self, walker: int, round_: int, beta: float) -> tuple[NDArray[np.int64], float, int]:
        """The flips of one round: support, energy, and accepted flips after it.

        Parameters
        ----------
        walker, round_
            Which walker, and the round, which must be its next one.
        beta
            Inverse temperature.
        """
        chain, clocks, plan, output = self._walkers[walker]
        plan.betas[round_] = beta
        left = self._flips
        while left > 0:
            status, done = advance(self._system, chain, clocks, plan, output, left)
            if status == TO_BE_JUDGED:
                if walker not in self._judging:
                    self._judging[walker] = self._new_judge(self._gram, self._k)
                shared = Memory(chain.order, chain.best, chain.slot, chain.position, chain.uniform)
                status, more = judge(*self._judging[walker], shared, clocks, plan, output, self._gram.yy, left - done)
                done += more
            if status == RANK_TOO_SMALL:
                raise RankTooSmall(self._k, int(output.support[0, 0]))
            left -= done
        energy = float(output.final_energy[0] if clocks["chain"][0] else clocks["energy"][0])
        return np.sort(chain.order[: self._k]).astype(np.int64), energy, int(output.accepted[0, round_])


def _output(rounds: int, k: int) -> Output:
    """Where one walker's steps are written."""
    ends = np.zeros((1, k), np.int64)
    return Output(
        np.zeros((1, rounds)), np.zeros((1, rounds), np.int64), ends, ends.copy(), np.zeros(1), np.zeros(1, np.int64),
        np.zeros((0, 0, k), np.int32), np.zeros((0, 0)),
    )  # fmt: skip
