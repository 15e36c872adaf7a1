"""What a group of walks is told, as the kernel reads it: one row of a table for each problem, all else packed once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.cuda.batch import WalkPart, cost
from pairflip.engines.cuda.device import WALK
from pairflip.engines.cuda.staging import upload_joined
from pairflip.engines.together import ManyWalks

Addresses = NDArray[np.uint64]


class _Packer:
    """Arrays laid end to end, for one upload; equal ones (by key) once."""

    def __init__(self, dtype: Any) -> None:
        self._parts: list[NDArray[Any]] = []
        self.offsets: dict[Any, int] = {}
        self._size = 0
        self._dtype: np.dtype[Any] = np.dtype(dtype)

    def add(self, key: Any, array: Callable[[], NDArray[Any]]) -> int:
        """Offset in bytes of an array, which is made where it is not there yet."""
        if key not in self.offsets:
            made = np.asarray(array(), dtype=self._dtype).ravel()
            self.offsets[key] = self._size * self._dtype.itemsize
            self._parts.append(made)
            self._size += made.size
        return self.offsets[key]

    def upload(self) -> Any:
        return upload_joined(self._parts or [np.zeros(1, self._dtype)])


class _Sent(local):
    """What the last group of this thread was told: offsets and memory, by name; None: nothing is kept."""

    last: dict[str, tuple[dict[Any, int], Any]] | None = None

    def send(self, name: str, packer: _Packer) -> Any:
        """Upload what differs from what was told last."""
        if self.last is None:
            return packer.upload()
        if name not in self.last or self.last[name][0] != packer.offsets:
            self.last.pop(name, None)  # before more memory is asked for
            self.last[name] = packer.offsets, packer.upload()
        return self.last[name][1]


_sent = _Sent()


@contextmanager
def keep_what_is_sent() -> Iterator[None]:
    """Have the next groups of this thread use what is on the device already: most differ in their sizes only.

    Problems and schedules are known by their identity: whoever calls holds them until the end.
    """
    _sent.last = {}
    try:
        yield
    finally:
        _sent.last = None


class Packed:
    """The problems of a group, part by part: a row for each, without what is known on the device only.

    Attributes
    ----------
    table : (P,) of `WALK`
        The rows; addresses are offsets until `upload`.
    chains, steps, k : (P,)
        Of each row.
    costs : (P,)
        What one chain costs, in any unit.
    records : (P,)
        Whether supports at the ends of steps are kept.
    rows : list of slice
        Which rows each part has.
    memory : list
        What was uploaded; it must live as long as the kernel runs.
    """

    def __init__(self, together: Sequence[ManyWalks], parts: Sequence[WalkPart]) -> None:
        counts = [part.forms.stop - part.forms.start for part in parts]
        ends = np.cumsum(counts)
        self.rows = [slice(int(end) - count, int(end)) for end, count in zip(ends, counts, strict=True)]
        self._doubles, self._wholes, self._keys = _Packer(np.float64), _Packer(np.int64), _Packer(np.uint32)
        self.table = np.zeros(int(ends[-1]), WALK)
        self.costs, self.chains = np.zeros(self.table.size), np.zeros(self.table.size, np.int64)
        self._nothing_left_out, self.records = np.zeros((2, self.table.size), dtype=bool)
        self.memory: list[Any] = []
        for number, (part, rows) in enumerate(zip(parts, self.rows, strict=True)):
            self._fill(number, together[part.walks], part, rows)
        self.steps, self.k = (self.table[name].astype(np.int64) for name in ("steps", "k"))

    def _fill(self, number: int, walks: ManyWalks, part: WalkPart, rows: slice) -> None:
        """Enter one part."""
        here, forms, n = self.table[rows], walks.forms, walks.forms.root.n_columns
        which = walks.which[part.forms]
        at, steps = np.arange(which.size, dtype=np.uint64), walks.steps
        # By identity: whoever calls holds the problems and schedules for as long as this table lives.
        problems = id(forms), id(walks.which), part.forms.start, part.forms.stop
        add = self._doubles.add
        # All of them, in their order, as in most parts: nothing is copied here.
        some = slice(None) if np.array_equal(which, np.arange(len(forms.yy))) else which
        here["b"] = add((*problems, "b"), lambda: forms.b[some]) + 8 * n * at
        here["unit"] = add((*problems, "unit"), lambda: forms.unit[some]) + 8 * n * at
        if forms.left_out is None:
            self._nothing_left_out[rows] = True
        else:
            left_out = forms.left_out
            here["left_out"] = add((*problems, "left_out"), lambda: left_out[some]) + 8 * n * at
        own = walks.betas.ndim == 2
        betas = walks.betas[part.forms] if own else walks.betas
        # A schedule in absolute temperatures is the same for all problems of a group, whose arrays are not.
        schedule = (id(walks.betas), part.forms.start, part.forms.stop) if own else (betas.tobytes(),)
        here["betas"] = add((*schedule, "betas"), lambda: betas) + (8 * steps * at if own else 0)
        here["coldest"] = add((*schedule, "coldest"), lambda: _coldest(betas)) + (8 * steps * at if own else 0)
        here["ends"] = self._wholes.add(walks.flips.tobytes(), lambda: np.cumsum(walks.flips))
        keys = walks.keys[part.forms, part.chains]
        here["keys"] = self._keys.add(number, lambda: keys) + 8 * keys.shape[1] * at
        here["yy"], here["N"], here["k"], here["steps"] = forms.yy[which], n, walks.k, steps
        self.chains[rows], self.costs[rows] = keys.shape[1], cost(forms.root, walks)
        self.records[rows] = walks.record

    def upload(self, matrices: Sequence[int]) -> None:
        """Send everything to the device and turn offsets into addresses; `matrices` has that of each part."""
        doubles, wholes = _sent.send("doubles", self._doubles), _sent.send("wholes", self._wholes)
        keys = self._keys.upload()
        self.memory += [doubles, wholes, keys]
        for names, memory in (
            (("b", "unit", "left_out", "betas", "coldest"), doubles),
            (("ends",), wholes),
            (("keys",), keys),
        ):
            for name in names:
                self.table[name] += np.uint64(memory.data.ptr)
        self.table["left_out"][self._nothing_left_out] = 0
        for rows, matrix in zip(self.rows, matrices, strict=True):
            self.table["G"][rows] = matrix


def _coldest(betas: NDArray[np.float64]) -> NDArray[np.float64]:
    """The lowest beta (..., steps) of each step and all that follow."""
    return np.asarray(np.minimum.accumulate(betas[..., ::-1], axis=-1)[..., ::-1])
