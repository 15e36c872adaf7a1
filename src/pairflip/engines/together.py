"""Many walks as whole arrays: chains of one size on many problems that share one matrix.

Cross validation asks for hundreds of thousands of short chains. What is done for each of them in Python takes longer
than a device takes to walk it; what is done for one size of all folds of a table does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import Pair, WalkPlan, WalkResult
from pairflip.gram import Gram, HeldOutGram
from pairflip.least_squares import Floats
from pairflip.moments import OneRowOut

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Forms:
    r"""F quadratic forms on one matrix, :math:`G_{ij} d_i d_j - l_i l_j`, each with vectors of its own.

    Attributes
    ----------
    root : Gram
        Whose matrix G is.
    b, unit : (F, N)
        Products of the columns with the target, and d.
    left_out : (F, N) or None
        l; None: nothing is left out.
    yy : (F,)
        y'y.
    gram : callable
        One of them, by its number.
    """

    root: Gram
    b: Floats
    unit: Floats
    left_out: Floats | None
    yy: Floats
    gram: Callable[[int], Gram]

    @classmethod
    def of(cls, gram: Gram) -> Forms:
        """One problem."""
        return cls.of_all([gram])

    @classmethod
    def of_all(cls, grams: Sequence[Gram]) -> Forms:
        """Problems that have the same root."""
        first = grams[0]
        b, yy = np.stack([gram.b for gram in grams]), np.array([gram.yy for gram in grams])
        if isinstance(first, HeldOutGram) and root(first) is not first:
            single: list[Any] = list(grams)
            unit, left_out = np.stack([g.unit for g in single]), np.concatenate([g.left_out for g in single])
            return cls(root(first), b, unit, left_out, yy, grams.__getitem__)
        return cls(first, b, np.stack([gram.diagonal for gram in grams]), None, yy, grams.__getitem__)

    @classmethod
    def without_rows(cls, folds: OneRowOut) -> Forms:
        """Folds that leave out one row each."""
        return cls(folds.problem.gram, folds.b, folds.unit, folds.left_out, folds.yy, folds.gram)


def root(gram: Gram) -> Gram:
    """Whose matrix is walked on: folds that leave out one row share that of all rows, others have their own."""
    if isinstance(gram, HeldOutGram) and gram.left_out.shape[0] == 1:
        return gram.base
    return gram


@dataclass(frozen=True, eq=False)
class ManyWalks:
    """C chains of one size on each of F problems.

    Attributes
    ----------
    forms : Forms
        The problems.
    which : (F,)
        Which of them are walked on.
    k, flips
        As in `WalkPlan`.
    betas : (steps,) or (F, steps)
        Inverse temperatures of all, or of each.
    keys : (F, C, 2)
        Of the chains.
    course : bool
        Whether energies and accepted flips of every step are wanted; otherwise these stay where they are.
    """

    forms: Forms
    which: Numbers
    k: int
    betas: Floats
    flips: NDArray[np.int64]
    keys: NDArray[np.uint32]
    course: bool = False

    @property
    def chains(self) -> int:
        """C."""
        return int(self.keys.shape[1])

    @property
    def steps(self) -> int:
        """Number of temperatures."""
        return int(self.betas.shape[-1])

    def pair(self, at: int) -> Pair:
        """One of the problems, and its chains."""
        betas = self.betas if self.betas.ndim == 1 else self.betas[at]
        plan = WalkPlan(self.k, betas, self.flips, self.keys[at])
        return self.forms.gram(int(self.which[at])), plan

    def pairs(self) -> Iterator[Pair]:
        """Problem by problem, for engines that walk so."""
        return map(self.pair, range(len(self.which)))


@dataclass(frozen=True, eq=False)
class ManyWalked:
    """What the chains did: the fields of `WalkResult` with one more axis (F, C, ...); None: it was not asked for."""

    support: Numbers
    best_support: Numbers
    final_energy: Floats
    refreshes: Numbers
    energy: Floats | None = None
    accepted: Numbers | None = None

    @classmethod
    def of(cls, results: Sequence[WalkResult]) -> ManyWalked:
        """Results of pairs, stacked."""
        return cls._each(lambda name: _stacked([getattr(result, name) for result in results]))

    @classmethod
    def _each(cls, make: Callable[[str], Any]) -> ManyWalked:
        return cls(**{name: make(name) for name in cls.__dataclass_fields__})

    def result(self, at: int) -> WalkResult:
        """That of one problem, where the course was wanted."""
        known = {name: getattr(self, name) for name in self.__dataclass_fields__}
        fields: dict[str, Any] = {name: None if each is None else each[at] for name, each in known.items()}
        return WalkResult(**fields)


def _stacked(arrays: Sequence[Any]) -> Any:
    return None if arrays[0] is None else np.stack(arrays)


def join(pairs: Sequence[Pair]) -> tuple[list[ManyWalks], list[Numbers]]:
    """Pairs of the same kind together, and which pairs each of them holds."""
    kinds: dict[tuple[Any, ...], list[int]] = {}
    for at, (gram, plan) in enumerate(pairs):
        owner = root(gram)
        kind = id(owner), owner is gram, plan.k, id(plan.flips), plan.betas.size, len(plan.keys)
        kinds.setdefault(kind, []).append(at)
    together = []
    for members in kinds.values():
        plans = [pairs[at][1] for at in members]
        forms = Forms.of_all([pairs[at][0] for at in members])
        same = all(plan.betas is plans[0].betas for plan in plans)
        betas = plans[0].betas if same else np.stack([plan.betas for plan in plans])
        keys, flips = np.stack([plan.keys for plan in plans]), plans[0].flips
        which = np.arange(len(members))
        together.append(ManyWalks(forms, which, plans[0].k, betas, flips, keys, course=True))
    return together, [np.array(members) for members in kinds.values()]
