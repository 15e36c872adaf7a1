"""What a group of walks is told, as the kernel reads it: one row of a table for each problem, all else packed once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.cuda.answers import GroupAnswers
from pairflip.engines.cuda.batch import WalkPart, cost, queue
from pairflip.engines.cuda.device import WALK
from pairflip.engines.cuda.staging import upload_joined
from pairflip.engines.together import ManyWalks

_FIELDS: Any = WALK.fields


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
    parts, walks : list
        The parts, and the walks that each belongs to.
    table : (P,) of `WALK`
        The rows; addresses are offsets until `upload`.
    k : (P,)
        Of each row.
    tasks : (chains, 2)
        As `queue` gives them.
    answers : GroupAnswers
        Where the answers go.
    rows : list of slice
        Which rows each part has.
    """

    def __init__(self, together: Sequence[ManyWalks], parts: Sequence[WalkPart]) -> None:
        self.parts, self.walks = list(parts), [together[part.walks] for part in parts]
        self._counts = [part.forms.stop - part.forms.start for part in parts]
        ends = np.cumsum(self._counts)
        self.rows = [slice(int(end) - count, int(end)) for end, count in zip(ends, self._counts, strict=True)]
        self._doubles, self._wholes, self._keys = _Packer(np.float64), _Packer(np.int64), _Packer(np.uint32)
        self.table = np.zeros(int(ends[-1]), WALK)
        self._nothing_left_out = np.zeros(self.table.size, dtype=bool)
        for number, (walks, part, rows) in enumerate(zip(self.walks, parts, self.rows, strict=True)):
            self._fill(number, walks, part, rows)

        def each(values: list[Any]) -> Any:
            return np.repeat(values, self._counts)

        self.k = self.table["k"].astype(np.int64)
        chains = each([part.chains.stop - part.chains.start for part in parts])
        self.tasks = queue(each([cost(walks.forms.root, walks) for walks in self.walks]), chains)
        self._no_record = ~each([walks.record for walks in self.walks])
        courses = each([walks.course for walks in self.walks])
        self.answers = GroupAnswers(chains, self.table["steps"].astype(np.int64), self.k, ~self._no_record, courses)
        for name, begin in self.answers.offsets.items():
            self.table[name] = begin

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

    def upload(self, matrices: Sequence[int], room: int) -> list[Any]:
        """Send everything to the device and turn offsets into addresses; what was sent lives until the kernel ends.

        Parameters
        ----------
        matrices
            Address of the matrix of each part.
        room
            Address of the memory for the answers.
        """
        doubles, wholes = _sent.send("doubles", self._doubles), _sent.send("wholes", self._wholes)
        keys = self._keys.upload()
        begins = dict.fromkeys(self.answers.offsets, room)
        begins |= dict.fromkeys(("b", "unit", "left_out", "betas", "coldest"), doubles.data.ptr)
        begins |= {"ends": wholes.data.ptr, "keys": keys.data.ptr}
        # All at once: whatever numpy does for long arrays, it waits for the interpreter afterwards.
        words = self.table.view(np.uint64).reshape(self.table.size, -1)
        added = np.zeros(words.shape[1], np.uint64)
        for name, begin in begins.items():
            added[_FIELDS[name][1] // 8] = begin
        words += added
        self.table["left_out"][self._nothing_left_out] = 0
        for name in ("record", "record_energy"):
            self.table[name][self._no_record] = 0
        self.table["G"] = np.repeat(np.array(matrices, np.uint64), self._counts)
        return [doubles, wholes, keys]


def _coldest(betas: NDArray[np.float64]) -> NDArray[np.float64]:
    """The lowest beta (..., steps) of each step and all that follow."""
    return np.asarray(np.minimum.accumulate(betas[..., ::-1], axis=-1)[..., ::-1])
