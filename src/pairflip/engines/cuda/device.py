"""CuPy: is there a device, what it raises where it fails, kernels compiled for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, wraps
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, ParamSpec

import numpy as np

from pairflip.engines.base import failure_words
from pairflip.engines.cuda.batch import SizeClass

SOURCES = ("algebra.cuh", "state.cuh", "inverse.cuh", "chain.cuh", "course.cuh", "walk.cu")
SLICE_NS = 500_000_000
"""How long one launch may keep the interpreter from showing progress and seeing Ctrl-C."""
_Given = ParamSpec("_Given")


def why_unavailable() -> str | None:
    """Why there is no device to use, in one sentence; None when there is one."""
    if find_spec("cupy") is None:
        return 'the GPU engine needs CuPy: pip install "pairflip[gpu]" (cupy-cuda12x[ctk] with a CUDA 12 driver).'
    try:
        import cupy

        count = device_count()
    except Exception as error:  # CuPy raises its own errors, and import errors of all kinds
        return f"CuPy finds no CUDA device: {failure_words(error)}"
    if not count:
        return "CuPy finds no CUDA device."
    try:
        cupy.cuda.nvrtc.getVersion()
    except Exception as error:  # a driver alone is enough to find a device, and not to compile for it
        return f'CuPy finds no NVRTC, which compiles kernels: pip install "pairflip[gpu]" ({failure_words(error)}).'
    return None


@cache
def device_count() -> int:
    """How many devices there are, asked once: where one is gone later, the CPU does what its engine was asked for."""
    import cupy

    return int(cupy.cuda.runtime.getDeviceCount())


def device_name() -> str:
    """Name of the device, as the driver gives it."""
    import cupy

    return str(cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode())


def free_bytes() -> int:
    """Device memory that can be had: free, or kept by CuPy for later use."""
    import cupy

    return int(cupy.cuda.runtime.memGetInfo()[0] + cupy.get_default_memory_pool().free_bytes())


def failures() -> tuple[type[Exception], ...]:
    """What CuPy raises where a device runs out of memory, fails or is gone, or where a part of CUDA is missing."""
    import cupy

    driver, runtime, nvrtc = cupy.cuda.driver.CUDADriverError, cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.nvrtc
    compiling = nvrtc.NVRTCError, cupy.cuda.compiler.CompileException
    # Named by a module that CuPy loads when a product is asked for: it has raised nothing before.
    cublas = sys.modules.get("cupy_backends.cuda.libs.cublas")
    products = () if cublas is None else (cublas.CUBLASError,)
    return (cupy.cuda.memory.OutOfMemoryError, driver, runtime, *compiling, *products, ImportError)


def gone_is_refused(ask: Callable[_Given, str | None]) -> Callable[_Given, str | None]:
    """Have a function that says why a device cannot do something say so, too, where the device does not answer."""

    @wraps(ask)
    def asked(*given: _Given.args, **named: _Given.kwargs) -> str | None:
        try:
            return ask(*given, **named)
        except failures() as error:
            return f"the device does not answer: {failure_words(error)}."

    return asked


@dataclass(frozen=True)
class Kernel:
    """The compiled kernel of a size class, and the shared memory that a chain needs beside its order."""

    walk: Any
    shared_bytes: int


def source() -> str:
    """The CUDA program, as one text: CuPy keeps what it compiled by the text alone."""
    here = Path(__file__).parent
    return "".join((here / name).read_text(encoding="utf-8") for name in SOURCES)


_lock = Lock()
_compiled: dict[tuple[SizeClass, bool], Future[Kernel]] = {}


@cache
def _compilers() -> ThreadPoolExecutor:
    """NVRTC works without the interpreter's lock: twelve kernels take as long as the longest of them."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="pairflip-nvrtc")


def request(size: SizeClass, far: bool) -> Future[Kernel]:
    """Begin to compile the kernel of a size class, unless that was done; `far`: orders of columns in global memory."""
    with _lock:
        found = _compiled.get((size, far))
        if found is None or (found.done() and found.exception() is not None):
            found = _compiled[size, far] = _compilers().submit(_compile, size, far)
    return found


def _compile(size: SizeClass, far: bool) -> Kernel:
    import cupy

    sizes = {"TILES": size.tiles, "CHAINS": size.chains, "MINBLOCKS": size.blocks, "NEAR_TILES": size.near}
    options = ["-std=c++17", "-lineinfo", *(f"-D{name}={value}" for name, value in sizes.items())]
    module = cupy.RawModule(code=source(), options=(*options, "-DFAR_ORDER") if far else tuple(options))
    size_of = cupy.zeros(1, np.int32)
    module.get_function("shared_bytes")((1,), (1,), (size_of,))
    return Kernel(module.get_function("walk_chains"), int(size_of[0]))
