"""BLAS inside kernels stays on one thread: chains share the cores already."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

_lock = Lock()
_held: list[Any] = []  # one entry a walk under way; the first holds what to restore


@cache
def _controller() -> Any:
    import scipy.linalg  # noqa: F401  (numba calls scipy's BLAS, so it must be loaded to be limited)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread while any walk runs; the last one to end restores what was before the first."""
    with _lock:
        _held.append(_held[0] if _held else _controller().limit(limits=1))
    try:
        yield
    finally:
        with _lock:
            limit = _held.pop()
            if not _held:
                limit.restore_original_limits()
