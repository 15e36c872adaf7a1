"""CUDA kernels without a device: their source is compiled by g++, and every CUDA thread becomes a fiber.

The fixture `device` puts a pretended CuPy in the place of the real one, so that everything from `CudaEngine` down to
the last barrier of a kernel is what runs on a device; only its speed is not.
"""

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from pairflip.engines.cuda import device as real_device
from pairflip.engines.cuda import enumeration

__all__ = ["device"]

FOLDER = Path(tempfile.gettempdir()) / f"pairflip-cuda-emulator-{getattr(os, 'getuid', int)()}"
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
    """What a device raises that is gone."""


class ndarray(np.ndarray):
    """An array "on the device", which answers so many calls before it is gone."""

    answers = float("inf")

    def get(self):
        spend()
        return np.array(self)

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data)


def spend(found=None):
    """`found`, or the error of a device that is gone: every call fails from then on."""
    ndarray.answers -= 1
    if ndarray.answers < 0:
        raise Failure("the device\nis gone")
    return found


def asarray(array, *how):
    return spend(np.array(array, *how).view(ndarray))


def empty(shape, dtype=np.float64):
    memory = np.empty(shape, dtype)
    memory.view(np.uint8).fill(0xA5)  # what nobody wrote is not to be trusted
    return spend(memory.view(ndarray))


class Kernel:
    """One kernel of a compiled module."""

    max_dynamic_shared_size_bytes = 0

    def __init__(self, function):
        self._launch, self.kernel = function, SimpleNamespace(ptr=0)

    def __call__(self, grid, block, arguments, shared_mem=0):
        assert spend(shared_mem) <= 1 << 18
        kept = [np.array(a.ctypes.data if isinstance(a, np.ndarray) else a) for a in arguments]
        pointers = (ctypes.c_void_p * len(kept))(*(each.ctypes.data for each in kept))
        self._launch(ctypes.c_uint(grid[0]), ctypes.c_uint(block[0]), pointers)


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
        text = Path(__file__).with_name("emulator.h").read_text() + code + launchers
        options = [option for option in options if option.startswith("-D")]
        FOLDER.mkdir(exist_ok=True)
        library = FOLDER / f"{hashlib.sha256((text + str(options)).encode()).hexdigest()[:32]}.so"
        if not library.exists():
            built = library.with_suffix(f".{os.getpid()}")
            command = ["g++", *FLAGS, *options, "-x", "c++", "-", "-o", str(built)]
            subprocess.run(command, input=text, text=True, check=True)
            built.replace(library)
        self._library = ctypes.CDLL(str(library))

    def get_function(self, name):
        return Kernel(getattr(self._library, f"launch_{name}"))


def pretended_cupy():
    """As much of CuPy as the engine asks for; its device is this processor, with arrays of NumPy."""
    cupy = ModuleType("cupy")
    cupy.asarray, cupy.array, cupy.empty, cupy.RawModule = asarray, asarray, empty, RawModule
    cupy.zeros = lambda shape, dtype=np.float64: asarray(np.zeros(shape, dtype))
    cupy.get_default_memory_pool = lambda: SimpleNamespace(free_bytes=lambda: 0)
    cupy.cuda = SimpleNamespace(
        Device=lambda: SimpleNamespace(id=0, attributes={"MultiProcessorCount": 1}),
        runtime=SimpleNamespace(memGetInfo=lambda: spend((1 << 32, 1 << 32)), CUDARuntimeError=Failure),
        driver=SimpleNamespace(occupancyMaxActiveBlocksPerMultiprocessor=lambda *kernel: 2, CUDADriverError=Failure),
        memory=SimpleNamespace(OutOfMemoryError=MemoryError),
        nvrtc=SimpleNamespace(getVersion=lambda: (13, 0), NVRTCError=Failure),
        compiler=SimpleNamespace(CompileException=Failure),
    )  # fmt: skip
    return cupy


@pytest.fixture
def device(monkeypatch):
    """The pretended CuPy in the place of the real one; its `ndarray.answers` says how many calls it answers."""
    if shutil.which("g++") is None or not sys.platform.startswith("linux"):
        pytest.skip("needs g++ on Linux")
    monkeypatch.setitem(sys.modules, "cupy", pretended_cupy())
    monkeypatch.setattr(real_device, "find_spec", lambda name: name)
    monkeypatch.setattr(real_device, "_compiled", {})
    monkeypatch.setattr(ndarray, "answers", float("inf"))
    monkeypatch.setattr(enumeration, "_kernel", enumeration._kernel.__wrapped__)
    monkeypatch.setattr(real_device, "device_count", lambda: 1)
    return ndarray
