"""How kernels are compiled.

Sums may be reordered and contracted (so they vectorize); infinities and NaN keep their meaning; a division
by zero is an infinity, not an exception. Compiled code is kept beside the package for later processes.
"""

from __future__ import annotations

from typing import Any

from numba import njit

_njit: Any = njit
_common: Any = {"error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz"}}

entry = _njit(cache=True, nogil=True, **_common)
"""Called from Python."""
kernel = _njit(cache=True, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, **_common)
"""Called from other kernels only."""
inlined = _njit(forceinline=True, **_common)
"""Part of its caller, so that the compiler sees which arrays cannot overlap."""
