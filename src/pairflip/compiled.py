"""How kernels are compiled.

Sums may be reordered and contracted (so they vectorize); infinities and NaN keep their meaning; a division
by zero is an infinity, not an exception. Compiled code is kept beside the package for later processes.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from types import FunctionType
from typing import Any

from numba import njit

_njit: Any = njit
_common: Any = {"error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz"}}


def _digest() -> str:
    """Fingerprint of every source a kernel is made of, the constants it imports included."""
    home = Path(__file__).parent
    names = ("compiled.py", "philox.py", "least_squares.py", "rules.py", "engines/base.py", "losses/held_out_kernel.py")
    files = [*(home / name for name in names), *(home / "engines" / "numba").glob("*.py")]
    return sha256(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()


_DIGEST = _digest()


def _cached(**options: Any) -> Callable[[Any], Any]:
    """`njit(cache=True)` whose compiled code is stale when any kernel source changed (numba looks at one file only)."""

    def decorate(function: Any) -> Any:
        try:
            dispatcher = _njit(cache=True, nogil=True, **options, **_common)(function)
        except RuntimeError:  # nowhere to keep compiled code: every process compiles for itself
            return _njit(nogil=True, **options, **_common)(function)
        index = getattr(dispatcher._cache, "_cache_file", None)
        if index is not None:
            # Numba compares the version before it reads on, and an index may name classes that are no more.
            index._version = (index._version, _DIGEST)
        return dispatcher

    return decorate


def with_names(function: Any, name: str, **names: Any) -> Any:
    """The Python function of a kernel under another name, with other functions for some that it calls by name."""
    source = function.py_func
    code = source.__code__.replace(co_name=name, co_qualname=name)  # compiled code is kept by name
    return FunctionType(code, {**source.__globals__, **names})


entry = _cached(no_cfunc_wrapper=True)
"""Called from Python; its compiled code is kept."""
kernel = _njit(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, **_common)
"""Part of its caller: the compiler sees which arrays cannot overlap, and there is one compiled version of it only.

A kernel compiled on its own would be there twice, alone and within its caller, with sums in different orders; which of
them runs, and so the last bits of an energy, would depend on whether the code was just compiled or loaded.
"""
template = _njit(inline="always", **_common)
"""Written out in its caller before anything is compiled: for what would otherwise be an entry, and takes kernels as
arguments. As a kernel it would be optimized twice, alone and within its caller, which takes a third more time.
"""

apart = _njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **_common)
"""Called by other compiled code, seldom, and long: compiled once instead of within each of its callers.

Its last bits may depend on where it was compiled, so nothing that is reported may come from it as it is.
"""
