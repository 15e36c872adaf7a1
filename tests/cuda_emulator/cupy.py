"""A pretended CuPy whose device is this processor: NumPy's arrays, kernels compiled by g++ that run in fibers."""

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from threading import Lock
from types import SimpleNamespace

import numpy as np

__version__ = "14.0.0"
COMPILER = shutil.which("g++")
HEADER = Path(__file__).with_name("emulator.h")
FOLDER = Path(tempfile.gettempdir()) / f"pairflip-cuda-emulator-{getattr(os, 'getuid', int)()}"
"""Of compiled programs, by their text."""
FLAGS = ["-std=c++17", "-Og", "-U_FORTIFY_SOURCE", "-ffp-contract=fast", "-march=native", "-w", "-shared", "-fPIC"]
# The few places that speak to the hardware, by what they begin with.
MACHINE = {
    r'asm\("mma\.sync\.aligned\.m8n8k4[^;]*;"[^;]*;': "emulator::multiply_tiles(c0, c1, a, b);",
    r'asm\("mma\.sync\.aligned\.m16n8k4[^;]*;"[^;]*;': "emulator::multiply_tiles(upper.x, upper.y, a0, b);\n"
    "emulator::multiply_tiles(lower.x, lower.y, a1, b);",
    r'asm volatile\("mov\.u64 %0, %%globaltimer;"[^;]*;': "now = emulator::nanoseconds();",
    r'asm\("rcp\.approx\.ftz\.f64[^;]*;"[^;]*;': "y = 1.0 / x;",
    r'asm volatile\(""[^;]*;': "",
    r"extern __shared__ __align__\(16\) unsigned char pool\[\];": "alignas(16) static unsigned char pool[1 << 18];",
}


class Failure(RuntimeError):
    """What a device would raise."""


class Health:
    """Whether the device still answers: calls of it that were made, and how many there are before it is gone."""

    calls, last = 0, float("inf")

    def answer(self, found=None):
        """Whatever was asked for, or the error of a device that is gone: every call fails from then on."""
        self.calls += 1
        if self.calls > self.last:
            raise Failure("the device\nis gone")
        return found


health = Health()


class ndarray(np.ndarray):
    """An array "on the device"."""

    def get(self, out=None):
        health.answer()
        if out is None:
            return np.array(self)
        out[...] = self
        return out

    def set(self, array):
        health.answer()
        assert self.flags.c_contiguous
        assert self.dtype == array.dtype
        self[...] = array

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data)


def asarray(array, *how):
    health.answer()
    return np.array(array, *how).view(ndarray)


def zeros(shape, dtype=np.float64):
    health.answer()
    return np.zeros(shape, dtype).view(ndarray)


def empty(shape, dtype=np.float64):
    health.answer()
    memory = np.empty(shape, dtype)
    memory.view(np.uint8).fill(0xA5)  # what nobody wrote is not to be trusted
    return memory.view(ndarray)


def arange(stop):
    return np.arange(stop).view(ndarray)


def full(shape, value, dtype=np.float64):
    return np.full(shape, value, dtype).view(ndarray)


_one_at_a_time = Lock()


class Kernel:
    """One kernel of a compiled module."""

    max_dynamic_shared_size_bytes = 0

    def __init__(self, function):
        self._launch = function
        self.kernel = SimpleNamespace(ptr=0)

    def __call__(self, grid, block, arguments, shared_mem=0):
        health.answer()
        assert shared_mem <= 1 << 18
        kept = [_argument(each) for each in arguments]
        pointers = (ctypes.c_void_p * len(kept))(*(ctypes.cast(ctypes.byref(each), ctypes.c_void_p) for each in kept))
        with _one_at_a_time:  # fibers share what is static
            self._launch(ctypes.c_uint(grid[0]), ctypes.c_uint(block[0]), pointers)


def _argument(value):
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    return np.ctypeslib.as_ctypes_type(value.dtype)(value.item())


class RawModule:
    """A CUDA program, compiled for this processor and kept by its text."""

    def __init__(self, code, options):
        for machine, here in MACHINE.items():
            code = re.sub(machine, here, code)
        assert not re.search(r"\basm\b", code), "the emulator does not know this instruction"
        names = re.findall(r'extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\(', code)
        launchers = "".join(
            f'extern "C" void launch_{name}(unsigned blocks, unsigned threads, void **values) '
            f"{{ emulator::launch({name}, blocks, threads, values); }}\n"
            for name in names
        )
        text = HEADER.read_text() + code + launchers
        options = [option for option in options if option.startswith("-D")]
        FOLDER.mkdir(exist_ok=True)
        library = FOLDER / f"{hashlib.sha256((text + str(options)).encode()).hexdigest()[:32]}.so"
        if not library.exists():
            with tempfile.TemporaryDirectory(dir=FOLDER) as made:
                program, built = Path(made) / "kernels.cpp", Path(made) / "kernels.so"
                program.write_text(text)
                subprocess.run([COMPILER, *FLAGS, *options, str(program), "-o", str(built)], check=True)
                built.replace(library)
        self._library = ctypes.CDLL(str(library))

    def get_function(self, name):
        return Kernel(getattr(self._library, f"launch_{name}"))


class Device:
    """The processor."""

    id = 0
    attributes = {"MultiProcessorCount": 1, "MaxSharedMemoryPerBlockOptin": 232448}  # noqa: RUF012

    def __init__(self, number=0):
        assert number == 0

    def __enter__(self):
        return health.answer(self)

    def __exit__(self, *error):
        return None


cuda = SimpleNamespace(
    Device=Device,
    Stream=lambda **how: health.answer(_Stream()),
    Event=lambda **how: SimpleNamespace(record=lambda: None, synchronize=lambda: None),
    alloc=lambda size: health.answer(),
    alloc_pinned_memory=bytearray,
    runtime=SimpleNamespace(
        getDeviceCount=lambda: health.answer(1), memGetInfo=lambda: health.answer((1 << 32, 1 << 32)),
        getDeviceProperties=lambda number: health.answer({"name": b"emulator"}), CUDARuntimeError=Failure,
    ),
    driver=SimpleNamespace(
        occupancyMaxActiveBlocksPerMultiprocessor=lambda *kernel: health.answer(2), CUDADriverError=Failure
    ),
    memory=SimpleNamespace(OutOfMemoryError=MemoryError),
    nvrtc=SimpleNamespace(getVersion=lambda: (13, 0), NVRTCError=Failure),
    compiler=SimpleNamespace(CompileException=Failure),
)  # fmt: skip


class _Stream(Device):
    """A queue, in which everything is done at once."""


def get_default_memory_pool():
    return SimpleNamespace(free_bytes=lambda: 0)
