"""CuPy: is there a device, kernels compiled for it, matrices on it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, wraps
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any, ParamSpec

import numpy as np

from pairflip.engines.base import failure_words
from pairflip.engines.cuda.batch import LARGEST, NEAR_COLUMNS, SizeClass
from pairflip.engines.cuda.staging import Staging, through, upload, upload_joined
from pairflip.engines.together import root
from pairflip.gram import Gram, HeldOutGram

SOURCES = ("algebra.cuh", "state.cuh", "inverse.cuh", "chain.cuh", "course.cuh", "walk.cu")
# Eight-byte fields first and an even number of four-byte ones: no padding, so that both sides agree.
WALK = np.dtype(
    [(name, np.uint64) for name in ("G", "b", "unit", "left_out", "betas", "coldest", "ends", "energy")]
    + [(name, np.uint64) for name in ("final_energy", "record_energy", "accepted", "support", "best", "refreshes")]
    + [("record", np.uint64), ("keys", np.uint64), ("yy", np.float64)]
    + [(name, np.int32) for name in ("N", "k", "steps", "pauses")]
)
"""`struct Walk` of the kernel."""
_Given = ParamSpec("_Given")


def why_unavailable() -> str | None:
    """Why there is no device to use, in one sentence; None when there is one."""
    if find_spec("cupy") is None:
        return 'the GPU engine needs CuPy: pip install "pairflip[gpu]" (cupy-cuda12x[ctk] with a CUDA 12 driver).'
    try:
        import cupy

        if int(cupy.__version__.split(".")[0]) < 14:  # streams have no priorities there
            return f"the GPU engine needs CuPy 14 or newer, and this is {cupy.__version__}: pip install --upgrade it."
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


@dataclass(frozen=True)
class Kernels:
    """The compiled kernels of a size class."""

    walk: Any
    trade_places: Any
    flip_energies: Any
    acceptance: Any
    shared_bytes: int
    """Shared memory of a chain beside its order."""

    def allow(self, shared: int) -> None:
        """Let the kernel have so much shared memory, if it may not have it yet: several threads launch it."""
        with _lock:
            if self.walk.max_dynamic_shared_size_bytes < shared:
                self.walk.max_dynamic_shared_size_bytes = shared


def source() -> str:
    """The CUDA program, as one text: CuPy keeps what it compiled by the text alone."""
    here = Path(__file__).parent
    return "".join((here / name).read_text(encoding="utf-8") for name in SOURCES)


_lock = Lock()
_compiled: dict[tuple[SizeClass, bool, int], Future[Kernels]] = {}


@cache
def _compilers() -> ThreadPoolExecutor:
    """NVRTC works without the interpreter's lock: twelve kernels take as long as the longest of them."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="pairflip-nvrtc")


def kernels(size: SizeClass, far: bool) -> Kernels:
    """The kernels of a size class for the current device; `far`: orders of columns in global memory."""
    return request(size, far).result()


def request(size: SizeClass, far: bool) -> Future[Kernels]:
    """Begin to compile the kernels of a size class (or to read them from CuPy's cache), unless that was done."""
    import cupy

    device = int(cupy.cuda.Device().id)
    with _lock:
        found = _compiled.get((size, far, device))
        if found is None or (found.done() and found.exception() is not None):
            found = _compiled[size, far, device] = _compilers().submit(_compile, size, far, device)
    return found


def _compile(size: SizeClass, far: bool, device: int) -> Kernels:
    import cupy

    with cupy.cuda.Device(device):
        return _kernels(size, far)


def _kernels(size: SizeClass, far: bool) -> Kernels:
    import cupy

    sizes = {"TILES": size.tiles, "CHAINS": size.chains, "MINBLOCKS": size.blocks, "NEAR_TILES": size.near}
    options = ["-std=c++17", "-lineinfo", *(f"-D{name}={value}" for name, value in sizes.items())]
    module = cupy.RawModule(code=source(), options=(*options, "-DFAR_ORDER") if far else tuple(options))
    size_of = cupy.zeros(1, np.int32)
    module.get_function("shared_bytes")((1,), (1,), (size_of,))
    names = "walk_chains", "trade_places", "flip_energies", "acceptance"
    walk, trade, energies, acceptance = map(module.get_function, names)
    return Kernels(walk, trade, energies, acceptance, int(size_of[0]))


_streams: dict[tuple[int, int], tuple[Any, Staging]] = {}
_in_use: set[tuple[int, int]] = set()
_opening = Lock()


@contextmanager
def on_lane(device: int) -> Iterator[None]:
    """Have everything that this thread asks of CuPy done on a device, in the queue of a lane that nobody else uses.

    Lanes live as long as the process: CuPy keeps the memory of each for its own later use. The first comes before the
    others, which get what it leaves idle.
    """
    import cupy

    with cupy.cuda.Device(device):
        with _opening:
            lane = next(lane for lane in count() if (device, lane) not in _in_use)
            if (device, lane) not in _streams:
                stream = cupy.cuda.Stream(non_blocking=True, priority=min(0, lane - 1))
                _streams[device, lane] = stream, Staging()
            stream, staging = _streams[device, lane]
            _in_use.add((device, lane))
        try:
            with stream, through(staging):
                yield
        finally:
            with _opening:
                _in_use.remove((device, lane))


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


def order_bytes(n_columns: int) -> int:
    """Shared memory of an order of columns, or of the slots if there are more; zero where it lives in global memory."""
    return 0 if n_columns > NEAR_COLUMNS else (2 * max(n_columns, LARGEST) + 15) // 16 * 16


class Matrices:
    """Matrices on the device, one for each root (see `batch.root`), kept while a batch needs them."""

    def __init__(self) -> None:
        self._held: dict[int, Any] = {}
        self._sent_together: list[set[int]] = []

    def keep_only(self, grams: Sequence[Gram]) -> None:
        """Let go of matrices that none of these problems needs, and of those that share a piece of memory with them."""
        wanted = {id(root(gram)) for gram in grams}
        self._sent_together = [sent for sent in self._sent_together if sent <= wanted]
        kept = set().union(*self._sent_together)
        self._held = {key: matrix for key, matrix in self._held.items() if key in kept}

    def bring(self, grams: Sequence[Gram]) -> list[Any]:
        """G of each root and of no other problem; matrices that the host has are sent together."""
        self.keep_only(grams)
        owners = {id(root(gram)): root(gram) for gram in grams}
        asked = [
            owner
            for key, owner in owners.items()
            if key not in self._held and owner.dense and not isinstance(owner, HeldOutGram)
        ]
        if asked:
            here = [owner.matrix.T if owner.matrix.flags.fnc else owner.matrix for owner in asked]
            there, at = upload_joined(here), 0
            for owner, matrix in zip(asked, here, strict=True):
                self._held[id(owner)] = there[at : at + matrix.size].reshape(matrix.shape)
                at += matrix.size
            self._sent_together.append({id(owner) for owner in asked})
        return [self.of(gram) for gram in grams]

    def of(self, gram: Gram) -> Any:
        """G of the root of this problem; that of a problem too large for the host's budget is formed on the device."""
        owner = root(gram)
        if id(owner) not in self._held:
            self._held[id(owner)] = self._form(owner)
            self._sent_together.append({id(owner)})
        return self._held[id(owner)]

    def _form(self, owner: Gram) -> Any:
        if isinstance(owner, HeldOutGram):
            rows, unit = upload(owner.left_out), upload(owner.unit)
            # In place: how many folds the device holds at a time is a question of memory.
            matrix = unit[:, None] * unit
            matrix *= self.of(owner.base)
            matrix -= rows.T @ rows
            return matrix
        if owner.dense:
            return upload(owner.matrix)
        # Without the ridge on its diagonal, which the kernel never reads: it is one.
        columns = upload(owner.columns)
        return columns @ columns.T
