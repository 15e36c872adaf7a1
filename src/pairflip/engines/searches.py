"""Many searches as whole arrays: descents with kicks, and paths, on many problems that share one matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import Descent, Pair, WalkPlan
from pairflip.engines.together import Forms, Numbers
from pairflip.least_squares import Floats

NO_FLIPS = np.zeros(0), np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class ManyDescents:
    """C chains of descents and kicks of one size on each of F problems.

    Attributes
    ----------
    forms : Forms
        The problems.
    which : (F,)
        Which of them are searched.
    k : int
        Size of the supports.
    keys : (F, C, 2)
        Of the chains.
    descent : Descent
        What each of them does.
    starts : (F, C, k) or None
        Supports from which they descend; None: random ones.
    """

    forms: Forms
    which: Numbers
    k: int
    keys: NDArray[np.uint32]
    descent: Descent
    starts: Numbers | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Of the answers: problems, chains of each."""
        return self.keys.shape[0], self.keys.shape[1]

    def pair(self, at: int, chain: int) -> Pair:
        """One chain, for engines that walk chain by chain."""
        start = None if self.starts is None else self.starts[at, chain][None]
        plan = WalkPlan(self.k, *NO_FLIPS, self.keys[at, chain][None], start, self.descent)
        return self.forms.gram(int(self.which[at])), plan


@dataclass(frozen=True, eq=False)
class ManyPaths:
    """A path up to `k` columns on each of F problems.

    Attributes
    ----------
    forms : Forms
        The problems.
    which : (F,)
        Which of them.
    k : int
        The largest size.
    passes : int
        As in `Engine.path`.
    """

    forms: Forms
    which: Numbers
    k: int
    passes: int

    @property
    def shape(self) -> tuple[int, int]:
        """Of the answers: problems, one path each."""
        return self.which.size, 1


ManySearches = ManyDescents | ManyPaths


@dataclass(frozen=True, eq=False)
class ManyFound:
    """What searches found; nothing of those that were given up has a meaning.

    Attributes
    ----------
    supports : (F, C, k) or (F, 1, k, k)
        Columns, ascending: of each chain, or of each size m of a path in [..., m - 1, :m].
    energies : (F, C) or (F, 1, k)
        Their energies.
    given_up : (F, C)
        Where rounding would have decided.
    """

    supports: Numbers
    energies: Floats
    given_up: NDArray[np.bool_]

    @classmethod
    def room(cls, asked: ManySearches) -> ManyFound:
        """Empty arrays for the answers."""
        more = (asked.k,) if isinstance(asked, ManyPaths) else ()
        shape = asked.shape
        return cls(np.zeros((*shape, *more, asked.k), np.int64), np.zeros((*shape, *more)), np.ones(shape, bool))

    def left(self) -> list[tuple[int, int]]:
        """(problem, chain) of what was given up."""
        return [(at, chain) for at, chain in np.argwhere(self.given_up).tolist()]
