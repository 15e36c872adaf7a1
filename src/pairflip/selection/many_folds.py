"""One size in many folds at once: whole arrays in place of a record for each fold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats
from pairflip.selection.tasks import ALL_ROWS, Task, Work
from pairflip.selection.walks import Outcome


class FoldsOutcome(NamedTuple):
    """The same of chains `first` to `last` - 1 of one size in several folds (F,): supports (F, C, k), energies (F, C).

    A device finds hundreds of thousands of supports in a minute; nothing is done for each of them in Python.
    """

    size: int
    folds: NDArray[np.int64]
    first: int
    last: int
    supports: NDArray[np.int64]
    energies: Floats

    @property
    def n_chains(self) -> int:
        """Chains, in all folds."""
        return self.folds.size * (self.last - self.first)

    def covers(self, work: Work) -> bool:
        """Whether these are all chains of all folds."""
        return self.n_chains == len(work.folds) * work.chains

    def by_fold(self) -> Iterator[Outcome]:
        """Fold by fold."""
        for fold, supports, energies in zip(self.folds.tolist(), self.supports, self.energies, strict=True):
            yield Outcome(Task(self.size, fold, self.first, self.last), supports, energies, np.empty((0, 2, 0)))


AnyOutcome = Outcome | FoldsOutcome
"""What a task found, or one size of many folds."""


class ManyFolds:
    """What is known of sizes whose folds were walked together."""

    def __init__(self) -> None:
        self._known: dict[int, list[FoldsOutcome]] = {}

    def add(self, outcome: FoldsOutcome) -> None:
        """Take in some folds of a size."""
        self._known.setdefault(outcome.size, []).append(outcome)

    def clear(self) -> None:
        """Forget everything."""
        self._known.clear()

    def cells(self, size: int, folds: Sequence[int], chains: int) -> tuple[NDArray[np.int64], Floats] | None:
        """Supports (F, C, k) and energies (F, C) of some folds of a size; None if these are not all that is known.

        Parameters
        ----------
        size : int
            Which size.
        folds : sequence of int
            Which folds, in ascending order.
        chains : int
            How many chains each has.
        """
        known = self._known.get(size)
        if known is None or any(each.energies.shape[1] != chains for each in known):
            return None
        every = np.concatenate([each.folds for each in known])
        order = np.argsort(every)
        if not np.array_equal(every[order], folds):
            return None
        supports, energies = ([getattr(each, name) for each in known] for name in ("supports", "energies"))
        return np.concatenate(supports)[order], np.concatenate(energies)[order]

    def take_apart(
        self, pieces: dict[tuple[int, int], list[Outcome]], size: int | None = None, folds: Sequence[int] = ()
    ) -> None:
        """Move what is known of a size (None: of all) to `pieces`, fold by fold, unless it has none of these folds.

        Parameters
        ----------
        pieces : dict
            What is known of each (size, fold).
        size : int or None
            Which size.
        folds : sequence of int
            Which folds are asked for; none of them means all.
        """
        if len(folds) == 1 and folds[0] == ALL_ROWS:
            return
        for each in list(self._known) if size is None else [size]:
            for outcome in self._known.pop(each, ()):
                for piece in outcome.by_fold():
                    pieces.setdefault(piece.task[:2], []).append(piece)
