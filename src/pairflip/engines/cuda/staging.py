"""Transfers of a lane through pages that it locked once, and device memory that it keeps.

While a kernel runs, the driver may have an allocation wait for it, and so may a transfer from or to ordinary memory;
transfers from and to locked pages that are there already do not wait for other queues.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock, local
from typing import Any

import numpy as np
from numpy.typing import NDArray

PIECE = 2**23
"""Bytes of a piece of locked memory."""
_OUTGOING = 3
"""Pieces for uploads, filled in turn; a fourth one is for downloads. CuPy locks powers of two of bytes."""
_APART = 256
"""Uploads begin at multiples of so many bytes."""
_SLOTS = 2**27
"""Bytes that are kept beside what the walks of a group take: the slots of running chains, the queue."""


class Staging:
    """Locked memory of one lane."""

    def __init__(self) -> None:
        import cupy

        size = (_OUTGOING + 1) * PIECE
        try:
            memory = np.frombuffer(cupy.cuda.alloc_pinned_memory(size), np.uint8, size)
        except cupy.cuda.runtime.CUDARuntimeError:  # the system locks no more pages: ordinary ones are slower
            memory = np.empty(size, np.uint8)
        *self._pieces, self._incoming = memory.reshape(_OUTGOING + 1, PIECE)
        self._views = [piece.data for piece in self._pieces]
        self._sent = [cupy.cuda.Event(disable_timing=True) for _ in self._pieces]
        self._turn = self._filled = 0
        # Two: one who fetches waits for the walks of the lane, and another who shares it may send meanwhile.
        self._sending, self._fetching = Lock(), Lock()

    def send(self, parts: Sequence[NDArray[np.uint8]], there: Any) -> None:
        """Copy bytes, end to end, to the device; whoever calls may change them afterwards."""
        with self._sending:
            self._filled = begin = min(PIECE, -(-self._filled // _APART) * _APART)
            for part in parts:
                while part.size:
                    if self._filled == PIECE:
                        there = self._send_piece(begin, there)
                        self._turn, self._filled, begin = (self._turn + 1) % _OUTGOING, 0, 0
                        self._sent[self._turn].synchronize()
                    size = min(part.size, PIECE - self._filled)
                    # Not by numpy, which would let go of the interpreter for each of hundreds of parts.
                    self._views[self._turn][self._filled : self._filled + size] = part[:size].data
                    self._filled, part = self._filled + size, part[size:]
            self._send_piece(begin, there)

    def _send_piece(self, begin: int, there: Any) -> Any:
        """Send what was filled from `begin`; returns the memory of the device that follows."""
        size = self._filled - begin
        if size:
            there[:size].set(self._pieces[self._turn][begin : self._filled])
            self._sent[self._turn].record()
        return there[size:]

    def fetch(self, there: Any, into: Sequence[tuple[int, NDArray[Any]]]) -> None:
        """Copy numbers, which may be wider here, from the device: there[first:] to each (first, array) of `into`.

        Arrays that are neighbours there come in one transfer, as far as a piece holds them.
        """
        most = PIECE // there.dtype.itemsize
        staged = self._incoming.view(there.dtype)
        begin = end = 0
        waiting: list[NDArray[Any]] = []

        def fetch_waiting() -> None:
            there[begin:end].get(out=staged[: end - begin])  # this waits for the lane
            at = 0
            for part in waiting:
                part[...] = staged[at : at + part.size]
                at += part.size
            waiting.clear()

        with self._fetching:
            for first, array in into:
                for at in range(0, array.size, most):
                    part = array[at : at + most]
                    if waiting and (first + at != end or end + part.size - begin > most):
                        fetch_waiting()
                    if not waiting:
                        begin = first + at
                    waiting.append(part)
                    end = first + at + part.size
            if waiting:
                fetch_waiting()


class _Here(local):
    """What this thread transfers through; None: it is on no lane, and CuPy does as it likes."""

    staging: Staging | None = None


_here = _Here()


@contextmanager
def through(staging: Staging) -> Iterator[None]:
    """Have the transfers of this thread go through the locked memory of a lane."""
    before, _here.staging = _here.staging, staging
    try:
        yield
    finally:
        _here.staging = before


def upload(array: NDArray[Any]) -> Any:
    """An array on the device, in its own order of rows and columns."""
    if array.flags.fnc:
        return upload(array.T).T
    return upload_joined([array]).reshape(array.shape)


def upload_joined(arrays: Sequence[NDArray[Any]]) -> Any:
    """Numbers of several arrays of one type, end to end, on the device."""
    import cupy

    flat = [np.ascontiguousarray(array).reshape(-1) for array in arrays]
    if _here.staging is None:
        return cupy.asarray(flat[0] if len(flat) == 1 else np.concatenate(flat))
    there = cupy.empty(sum(array.size for array in flat), flat[0].dtype)
    if there.size:
        _here.staging.send([array.view(np.uint8) for array in flat], there.view(np.uint8))
    return there


def download(there: Any) -> NDArray[Any]:
    """A flat array of the device, here."""
    into = np.empty(there.shape, there.dtype)
    download_into(there, [(0, into)])
    return into


def download_into(there: Any, into: Sequence[tuple[int, NDArray[Any]]]) -> None:
    """As `Staging.fetch`."""
    if _here.staging is not None:
        _here.staging.fetch(there, into)
        return
    for first, array in into:
        array[...] = there[first : first + array.size].get()


def reserve(needed: int, free: int) -> None:
    """Have CuPy keep device memory for this lane in one piece, of which it then takes what groups ask for.

    A quarter is added for the gaps between them. Powers of two: memory that is kept after a larger piece was asked for
    is no more than that piece.

    Parameters
    ----------
    needed
        Bytes that the largest group takes.
    free
        Bytes of device memory that can be had; the lane keeps at most a fifth of them.
    """
    import cupy

    wanted: int = 1 << (needed + needed // 4 + _SLOTS - 1).bit_length()
    try:
        cupy.cuda.alloc(min(wanted, free // 5))  # given back at once
    except cupy.cuda.memory.OutOfMemoryError:
        return  # groups may still find what they need
