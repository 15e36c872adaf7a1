"""The CUDA sources agree with Python: layout of a table, tolerances, random numbers, energy and decision of a flip."""

import ctypes
import re
import shutil
import subprocess

import numpy as np
import pytest

from pairflip.engines import base
from pairflip.engines.cuda import device
from pairflip.engines.cuda.device import source
from pairflip.engines.cuda.walks import WALK
from pairflip.philox import chain_keys, flip_draws


def test_table_of_walks_has_the_layout_of_the_kernel():
    assert WALK.itemsize == 14 * 8 + 8 + 4 * 4
    written = re.search(r"struct Walk {(.*?)};", source(), re.DOTALL)[1]
    fields = re.sub(r"//[^\n]*|const|long long|double|int|u32|[*\s]", "", written).replace(";", ",").split(",")
    assert tuple(filter(None, fields)) == WALK.names


HOST = """
#include "algebra.cuh"
extern "C" void draws(u64 t, u32 key0, u32 key1, u32 k, u32 outside, u32 *flip, double *u) {
    Block b = philox(t, 0u, key0, key1);
    flip[0] = below(b.w0, k), flip[1] = below(b.w1, outside), *u = uniform(b.w2, b.w3);
}
extern "C" double delta(double x, double p, double r, double s, double w) {
    return flip_energy(x, 1.0 / p, r, s, w).delta;
}
extern "C" int decide(double u, double beta, double delta) { return accepts(beta, delta, 1e-12, -log(u)); }
"""


@pytest.fixture(scope="module")
def algebra(tmp_path_factory):
    """The kernel's scalar algebra, compiled by the host's compiler."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler on this machine")
    folder = tmp_path_factory.mktemp("algebra")
    (folder / "host.cpp").write_text(HOST)
    include = ["-I", str(device.Path(device.__file__).parent)]
    flags = ["-O1", "-w", "-shared", "-fPIC", *include, "-o", str(folder / "host.so")]
    subprocess.run([compiler, *flags, str(folder / "host.cpp")], check=True)
    library = ctypes.CDLL(str(folder / "host.so"))
    library.delta.restype = ctypes.c_double
    library.delta.argtypes = [ctypes.c_double] * 5
    library.decide.argtypes = [ctypes.c_double] * 3
    return library


def test_kernel_draws_the_addressed_numbers(algebra):
    key = chain_keys(7, 5, 3, 0)[0]
    for first in (0, 2**32 - 2):
        slot, position, u = flip_draws(key, first, 4, 5, 271)
        for q in range(4):
            flip, number = (ctypes.c_uint32 * 2)(), ctypes.c_double()
            address = ctypes.c_uint64(first + q), *(ctypes.c_uint32(int(word)) for word in key)
            algebra.draws(*address, 5, 271, flip, ctypes.byref(number))
            assert (flip[0], flip[1], number.value) == (slot[q], position[q], u[q])


def test_kernel_decides_as_metropolis(algebra):
    """Delta E within the tie counts as zero; an infinite one is refused at every temperature."""
    for beta in (0.0, 1.0, 1e14):
        for delta in (-1.0, 0.0, 1e-12, 0.3, 2.0, 36.7, 40.0, float("inf"), float("nan")):
            for u in (2.0**-53, 1e-9, 0.1, 0.7408, 0.7409, 1.0):
                expected = np.isfinite(delta) and (delta <= 1e-12 or u <= np.exp(-beta * delta))
                assert bool(algebra.decide(u, beta, delta)) == expected, (u, beta, delta)


def test_kernel_energy_is_the_formula(algebra):
    x, p, r, s, w = 0.7, 1.3, 0.2, 0.4, -0.3
    expected = 0.5 * (x * x / p - (r + x * w / p) ** 2 / (s + w * w / p))
    assert algebra.delta(x, p, r, s, w) == pytest.approx(expected, rel=1e-14)
    assert algebra.delta(x, p, r, -w * w / p, w) == float("inf")


def written(name):
    """The number that the CUDA sources give to a name, by #define or constexpr."""
    found = re.findall(rf"(?:#define {name} |\b{name} = )([0-9.e+-]+)", source())
    assert len(found) == 1, (name, found)
    return float(found[0])


@pytest.mark.parametrize("name", ["BETTER", "DRIFT", "EPSILON", "FROZEN", "TIE"])
def test_engines_share_their_tolerances(name):
    assert written(name) == getattr(base, name)
