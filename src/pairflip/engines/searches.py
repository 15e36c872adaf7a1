"""Many searches as whole arrays: descents with kicks, paths, and all pairs, on problems that share one matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import Descent, WalkPlan
from pairflip.engines.together import Forms, Numbers
from pairflip.least_squares import Floats

LISTED = 64
"""Pairs that a list has room for; where more may be the best, it is given up."""
Shapes = tuple[tuple[int, ...], tuple[int, ...]]
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

    @property
    def answer(self) -> Shapes:
        """Of one chain: its support, and its energy."""
        return (self.k,), ()

    def plan(self, at: int, chain: int) -> WalkPlan:
        """One chain, for engines that walk chain by chain."""
        start = None if self.starts is None else self.starts[at, chain][None]
        return WalkPlan(self.k, *NO_FLIPS, self.keys[at, chain][None], start, self.descent)


@dataclass(frozen=True, eq=False)
class OneEach:
    """One question about each of F problems.

    Attributes
    ----------
    forms : Forms
        The problems.
    which : (F,)
        Which of them.
    """

    forms: Forms
    which: Numbers

    @property
    def shape(self) -> tuple[int, int]:
        """Of the answers: problems, one answer each."""
        return self.which.size, 1


@dataclass(frozen=True, eq=False)
class ManyPaths(OneEach):
    """A path up to `k` columns on each problem; `passes` as in `Engine.path`."""

    k: int
    passes: int

    @property
    def answer(self) -> Shapes:
        """Of one path: supports, and energies."""
        return (self.k, self.k), (self.k,)


@dataclass(frozen=True, eq=False)
class ManyPairs(OneEach):
    """All pairs of columns of each problem: which of them may be the best."""

    k: int = 2

    @property
    def answer(self) -> Shapes:
        """Of one list: pairs, and how many there are."""
        return (LISTED, 2), ()


ManySearches = ManyDescents | ManyPaths | ManyPairs


@dataclass(frozen=True, eq=False)
class ManyFound:
    """What searches found; nothing of those that were given up has a meaning.

    Attributes
    ----------
    supports : (F, C, k), (F, 1, k, k) or (F, 1, LISTED, 2)
        Columns, ascending: of each chain, or of each size m of a path in [..., m - 1, :m], or pairs in any order.
    energies : (F, C), (F, 1, k) or (F, 1)
        Their energies; in place of those of pairs, how many there are.
    given_up : (F, C)
        Where rounding would have decided.
    """

    supports: Numbers
    energies: Floats
    given_up: NDArray[np.bool_]

    @classmethod
    def room(cls, asked: ManySearches) -> ManyFound:
        """Empty arrays for the answers."""
        shape, (supports, energies) = asked.shape, asked.answer
        return cls(np.zeros(shape + supports, np.int64), np.zeros(shape + energies), np.ones(shape, bool))

    def left(self) -> list[tuple[int, int]]:
        """(problem, chain) of what was given up."""
        return [(at, chain) for at, chain in np.argwhere(self.given_up).tolist()]
