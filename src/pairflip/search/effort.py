"""Method and effort: one dial for those who do not want to know about chains and schedules.

The effort is counted in work that a cost model foresees, not in measured time, so the same seed gives the same result
on every machine; only an effort in seconds depends on the clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pairflip.engines.base import Descent
from pairflip.gram import Gram

Method = Literal["auto", "anneal", "descend"]
METHODS = ("auto", "anneal", "descend")


@dataclass(frozen=True)
class Effort:
    """How much a search may spend on one size of one problem.

    Parameters
    ----------
    name
        As the user says it.
    seconds
        On one core, by the cost model.
    passes
        Of the path: one goes up, further ones down and up in turn.
    chains, kicks
        The first wave of chains and the kicks of each; later waves have four times as many kicks.
    clock
        Whether `seconds` are measured rather than foreseen.
    few
        Kicks times columns that are affordable in any case.
    """

    name: str
    seconds: float
    passes: int
    chains: int
    kicks: int
    clock: bool = False
    few: int = 0

    def descent(self, k: int) -> Descent:
        """What a chain of size k does: at least `kicks` rounds, more where supports are small and kicks cheap."""
        kicks = max(self.kicks, self.few // k)
        return Descent(kicks, pool=12 if kicks > 24 or k <= 6 else max(2, kicks // 4))


EFFORTS = {
    "quick": Effort("quick", 0.02, 2, 2, 6),
    "normal": Effort("normal", 1.0, 4, 4, 25),
    "thorough": Effort("thorough", 15.0, 8, 4, 100),
}
FOLD_EFFORTS = {
    "quick": Effort("quick", 0.0, 1, 1, 0),
    "normal": Effort("normal", 0.0, 4, 2, 2, few=60),
    "thorough": Effort("thorough", 0.0, 6, 6, 100, few=400),
}
"""In a fold there is one wave, the same for every size, so that folds can be compared and nothing depends on luck."""
FINAL_EFFORTS = {
    "quick": Effort("quick", 0.0, 2, 2, 4),
    "normal": Effort("normal", 0.0, 4, 4, 60),
    "thorough": Effort("thorough", 0.0, 8, 6, 400),
}
"""On all rows: more, because nothing averages over what is missed there."""


def as_method(method: Any) -> Method:
    """A method by name."""
    if isinstance(method, str) and method in METHODS:
        return method  # type: ignore[return-value]
    raise ValueError(f"method is {method!r}; expected one of {', '.join(map(repr, METHODS))}.")


def as_effort(effort: Any) -> Effort:
    """An effort by name, or so many seconds by the clock."""
    if isinstance(effort, Effort):
        return effort
    if isinstance(effort, str) and effort in EFFORTS:
        return EFFORTS[effort]
    number = isinstance(effort, (int, float, np.integer, np.floating)) and not isinstance(effort, bool)
    if number and np.isfinite(effort) and effort > 0:
        return Effort(f"{float(effort):g} s", float(effort), 4, 4, 25, clock=True)
    raise ValueError(f"effort is {effort!r}; expected 'quick', 'normal', 'thorough' or a number of seconds above 0.")


def kick_nanoseconds(gram: Gram, k: int, *, shaky: bool) -> float:
    """Cost model: what one kick and the descent after it take on one core; `shaky` supports are judged by columns."""
    n = gram.n_columns
    table = 4e3 + n * k * (18.0 + 0.22 * k)
    if not shaky:
        return table
    rows = min(int(gram.target.size), n + 1)
    return table + 6.0 * (4e5 + 1.0 * n * rows * k)


@dataclass(frozen=True)
class Wave:
    """Some chains that are walked together: descents with kicks, or annealing before that."""

    chains: int
    kicks: int
    anneal: bool = False


def waves(effort: Effort, kick_ns: float, anneal_ns: float | None) -> Iterator[Wave]:
    """Wave after wave until the effort is spent; who asks for no more has seen enough.

    Parameters
    ----------
    effort
        What may be spent.
    kick_ns
        Cost of one kick.
    anneal_ns
        Cost of one annealing, or None where there is to be none. The third wave anneals, if that takes less than a
        third of the effort.
    """
    left, kicks, number = 1e9 * effort.seconds, effort.kicks, 0
    while True:
        number += 1
        if number == 3 and anneal_ns is not None:
            chains = int(min(8, left / 3.0 / anneal_ns)) if not effort.clock else 4
            if chains >= 2:
                left -= chains * anneal_ns
                yield Wave(chains, effort.kicks, anneal=True)
                continue
        # At first several chains, which may agree; a long chain finds more than several short ones.
        chains = effort.chains if number <= 2 else 2
        cost = chains * kicks * kick_ns
        if number > 1 and cost > left and not effort.clock:
            kicks = int(left / (2.0 * kick_ns))
            if kicks < 2 * effort.kicks:
                return
            yield Wave(2, kicks)
            return
        left -= cost
        yield Wave(chains, kicks)
        kicks *= 4
        if effort.clock:
            kicks = min(kicks, max(effort.kicks, int(0.05e9 * effort.seconds / kick_ns)))
