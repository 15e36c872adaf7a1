"""CUDA kernels without a device: their source is compiled by g++, and every CUDA thread becomes a fiber.

`device` is a fixture that puts a pretended CuPy in the place of the real one, so that everything from `CudaEngine` down
to the last barrier of a kernel is what runs on a device; only its speed is not.
"""

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

from pairflip.engines.cuda import device as real_device
from pairflip.engines.cuda import enumeration, searches

__all__ = ["device"]


@pytest.fixture
def device(monkeypatch):
    """The pretended CuPy."""
    if shutil.which("g++") is None or not sys.platform.startswith("linux"):
        pytest.skip("needs g++ on Linux")
    spec = importlib.util.spec_from_file_location("cupy", Path(__file__).with_name("cupy.py"))
    pretended = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pretended)
    monkeypatch.setitem(sys.modules, "cupy", pretended)
    for name in ("_compiled", "_streams"):
        monkeypatch.setattr(real_device, name, {})
    kept = searches.kernel_of, enumeration._kernel, real_device.device_count
    for each in kept:
        each.cache_clear()
    yield pretended
    for each in kept:
        each.cache_clear()
