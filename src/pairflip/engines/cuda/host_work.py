"""What the host does for the groups of a batch while the device walks: packs the next ones, hands on answers.

Short walks take the device less time than that, so it is done during the long ones before them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.cuda.batch import WalkPart, group_bytes
from pairflip.engines.cuda.packing import Packed
from pairflip.engines.together import ManyWalked, ManyWalks

_AHEAD = 4
"""Groups that are packed while others walk: a few, for what is packed takes memory of the host."""
_FIRST = 2
"""Groups that are packed before the first one walks."""


class HostWork:
    """The groups of a batch that are not walked yet, and what was walked last.

    Parameters
    ----------
    together
        All walks.
    groups
        Parts of them that are walked together.
    free
        Bytes of device memory that can be had.

    Attributes
    ----------
    needed
        Bytes of device memory that the largest group takes.
    free
        As given.
    """

    def __init__(self, together: Sequence[ManyWalks], groups: Sequence[list[WalkPart]], free: int) -> None:
        self.needed, self.free = max((group_bytes(together, group) for group in groups), default=0), free
        self._together = together
        self._ready: Callable[[int, ManyWalked], None] = _nobody
        self._left, self._packed = list(groups), dict[int, Packed]()
        self._open_parts = Counter(part.walks for group in groups for part in group)
        self._pieces: dict[int, list[tuple[WalkPart, ManyWalked]]] = defaultdict(list)
        self._walked: tuple[Packed, NDArray[np.uint8]] | None = None
        while len(self._packed) < min(_FIRST, len(self._left)):
            self.go_on()

    def hand_to(self, ready: Callable[[int, ManyWalked], None]) -> None:
        """Give the number of each walk and its result, from now on, to somebody, once all its parts are there."""
        self._ready = ready
        for at, each in enumerate(self._together):
            if not self._open_parts[at]:
                ready(at, ManyWalked.room(each))

    @property
    def following(self) -> list[ManyWalks]:
        """One walk of each group that is left, in their order."""
        return [self._together[group[0].walks] for group in self._left]

    def take(self, at: int) -> Packed:
        """One of the groups that are left."""
        group = self._left.pop(at)
        return self._packed.pop(id(group), None) or Packed(self._together, group)

    def go_on(self) -> None:
        """One piece of work; it takes less than a launch of long walks."""
        if self._walked is not None:
            self.hand_on()
        elif len(self._packed) < _AHEAD:
            for group in self._left:
                if id(group) not in self._packed:
                    self._packed[id(group)] = Packed(self._together, group)
                    break

    def keep(self, packed: Packed, told: NDArray[np.uint8]) -> None:
        """Answers of a group, to be handed on soon."""
        self.hand_on()
        self._walked = packed, told

    def hand_on(self) -> None:
        """Hand on the answers that were kept last, if that was not done."""
        if self._walked is None:
            return
        (packed, told), self._walked = self._walked, None
        answers = packed.answers.split(told, packed.rows, packed.walks)
        for part, found in zip(packed.parts, answers, strict=True):
            at, pieces = part.walks, self._pieces[part.walks]
            pieces.append((part, found))
            self._open_parts[at] -= 1
            if not self._open_parts[at]:
                self._ready(at, _whole(self._together[at], self._pieces.pop(at)))


def _nobody(at: int, walked: ManyWalked) -> None:
    raise AssertionError("walks have begun, and nobody waits for them")


def _whole(walks: ManyWalks, pieces: list[tuple[WalkPart, ManyWalked]]) -> ManyWalked:
    """One result from those of its parts."""
    if len(pieces) == 1:
        return pieces[0][1]
    whole = ManyWalked.room(walks)
    for part, walked in pieces:
        whole.put(part.forms, part.chains, walked)
    return whole
