"""BLAS inside kernels stays on one thread: chains share the cores, and sums of several threads round differently.

Newer versions of threadpoolctl let only one thread of a process change the number of BLAS threads, the first that
tried; what the others ask for is ignored without a word. Here any thread may be the first to begin and the last to end,
so the right is taken at each change.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

_lock = Lock()
_held: list[Any] = []  # one entry for each walk under way; the first holds what to restore


@cache
def _controller() -> Any:
    import scipy.linalg  # noqa: F401  (numba calls scipy's BLAS, so it must be loaded to be limited)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _take_control() -> None:
    """Make this the thread whose limits count (older versions of threadpoolctl ask for nothing of the kind)."""
    for library in _controller().lib_controllers:
        clear = getattr(library, "clear_controlling_thread", None)
        if clear is not None:
            clear(force=True)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread while any walk runs; the last one to end restores what was before the first."""
    with _lock:
        if not _held:
            _take_control()
        _held.append(_held[0] if _held else _controller().limit(limits=1))
    try:
        yield
    finally:
        with _lock:
            limit = _held.pop()
            if not _held:
                _take_control()
                limit.restore_original_limits()
                _take_control()  # and leave the right to whoever comes next
