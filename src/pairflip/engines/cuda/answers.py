"""Where the chains of a group write what they answer: one piece of device memory, whose front part is fetched.

Plain numpy, so that it is known before the group is on the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.together import ManyWalked, ManyWalks

Numbers = NDArray[np.int64]
_WIDENED = "accepted", "support", "best", "refreshes"
"""Whole numbers that are wider here than on the device."""


class GroupAnswers:
    """Room for the answers of all problems of a group.

    What is wanted lies in front, end to end, so that few transfers bring it, however many parts a group has: each of
    them waits for the interpreter, which those who judge want, too.

    Parameters
    ----------
    chains, steps, k : (P,)
        Of each problem.
    records, courses : (P,)
        Whether supports, and whether energies and accepted flips, of every step are wanted.

    Attributes
    ----------
    wanted, size
        Bytes that are fetched, and that are written.
    offsets
        By the name of a field of the kernel's table: where the answers of each problem begin, in bytes.
    """

    def __init__(
        self, chains: Numbers, steps: Numbers, k: Numbers, records: NDArray[np.bool_], courses: NDArray[np.bool_]
    ) -> None:
        self.size = 0
        self._arrays: dict[str, tuple[np.dtype[Any], int, Numbers]] = {}
        self._wide: dict[str, Numbers] = {}
        by_step, kept = chains * steps, chains * steps * records
        # Doubles first: each begins at a multiple of its size.
        double, whole = np.dtype(np.float64), np.dtype(np.int32)
        energy = self._take("energy", double, by_step * courses)
        final = self._take("final_energy", double, chains)
        record_energy = self._take("record_energy", double, kept)
        accepted = self._take("accepted", whole, by_step * courses)
        support, best = (self._take(name, whole, chains * k) for name in ("support", "best"))
        refreshes, record = self._take("refreshes", whole, chains), self._take("record", whole, kept * k)
        self.wanted = self.size
        self.size = -(-self.size // 8) * 8
        other_energy = self._take("other energy", double, by_step * ~courses)
        other_accepted = self._take("other accepted", whole, by_step * ~courses)
        self.offsets = {
            "energy": np.where(courses, energy, other_energy),
            "accepted": np.where(courses, accepted, other_accepted),
            "final_energy": final,
            "record_energy": record_energy,
            "support": support,
            "best": best,
            "refreshes": refreshes,
            "record": record,
        }

    def _take(self, name: str, dtype: np.dtype[Any], counts: Numbers) -> Numbers:
        """Room for so many numbers of each problem; where they begin."""
        begins = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        first = self.size
        self._arrays[name] = dtype, first, begins
        self.size += dtype.itemsize * int(begins[-1])
        return np.asarray(first + dtype.itemsize * begins[:-1])

    def room(self) -> NDArray[np.uint8]:
        """Memory for what is fetched; that for whole numbers is kept until `split` widens them.

        Every page of it is written here, during a launch: the first time, that takes longer than the transfer.
        """
        self._wide = {name: np.full(self._arrays[name][2][-1], 0, np.int64) for name in _WIDENED}
        return np.full(self.wanted, 0, np.uint8)

    def split(self, told: NDArray[np.uint8], rows: Sequence[slice], walks: Sequence[ManyWalks]) -> list[ManyWalked]:
        """The answers of each part, problems by chains.

        Parameters
        ----------
        told : (wanted,)
            What was fetched, in the memory that `room` gave.
        rows, walks
            Which problems each part has, and what it was.
        """
        arrays = {}
        for name in ("energy", "final_energy", "record_energy", "accepted", "support", "best", "refreshes", "record"):
            dtype, first, begins = self._arrays[name]
            arrays[name] = told[first : first + dtype.itemsize * int(begins[-1])].view(dtype)
        # Once for all parts, which share what is made here until the last of them is judged: for every long array
        # numpy lets go of the interpreter, and has to get it back from those who judge.
        for name in _WIDENED:
            wide = self._wide.pop(name)
            wide[...] = arrays[name]
            arrays[name] = wide
        if 2 * arrays["energy"].nbytes < told.nbytes:  # else as they lie
            # Whoever keeps a few energies would keep all that was fetched.
            arrays |= {name: arrays[name].copy() for name in ("energy", "final_energy")}

        def of(name: str, own: slice, *shape: int) -> Any:
            begins = self._arrays[name][2]
            return arrays[name][begins[own.start] : begins[own.stop]].reshape(own.stop - own.start, *shape)

        results = []
        for own, each in zip(rows, walks, strict=True):
            support, best = (of(name, own, -1, each.k) for name in ("support", "best"))
            more: dict[str, Any] = {}
            if each.course:
                more["energy"] = of("energy", own, -1, each.steps)
                more["accepted"] = of("accepted", own, -1, each.steps)
            if each.record:
                more["record_energy"] = of("record_energy", own, -1, each.steps)
                more["record"] = of("record", own, -1, each.steps, each.k)
                more["record"].sort(axis=-1)
            results.append(ManyWalked(support, best, of("final_energy", own, -1), of("refreshes", own, -1), **more))
        return results
