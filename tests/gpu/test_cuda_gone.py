"""A device that is gone in the middle: whatever was asked of it, the CPU does the rest, and the result says so.

The emulator's device answers a number of calls (transfers, allocations, launches, questions about memory) and none
after that, as a real one does once a kernel has broken its context.
"""

import subprocess
import sys

import numpy as np
import pytest

from _curves import assert_same_curve
from cuda_emulator import Failure, device
from pairflip import Schedule, SubsetProblem, best_subset, datasets, prove, select_size
from pairflip.cli.prove import _show
from pairflip.engines import Refused, get_engine
from pairflip.engines.cuda import why_unavailable
from pairflip.search.exhaustive import Lowest
from pairflip.selection import device as device_module
from pairflip.selection import select_many

__all__ = ["device"]

SAID = "the device failed, and the CPU did the rest: Failure: the device is gone"
SHORT = Schedule.geometric(1.0, 1e3, steps=3, sweeps=1, unit="greedy")
PARTS = (0.0, 0.2, 0.5, 0.7, 0.9)
"""How much of all calls a device answers before it is gone."""


@pytest.fixture
def problem():
    data = datasets.make_planted(N=24, alpha=0.6, seed=0)
    return SubsetProblem(data.X, data.y)


def gone_at_many_moments(device, ask):
    """What is found where the device is gone after a part of its calls, for several parts."""
    ask()  # compiles
    device.answers = 10**6
    ask()
    whole = 10**6 - device.answers
    assert whole > 10
    for part in PARTS:
        device.answers = int(part * whole)
        found = ask()
        assert device.answers < 0
        device.answers = float("inf")
        yield found


@pytest.mark.parametrize("cv", ["loo", 4])
def test_annealed_folds(device, problem, monkeypatch, cv):
    monkeypatch.setattr(device_module, "_BATCH_NS", 1e5)
    asked = dict(sizes=[1, 3], cv=cv, schedule=SHORT, chains=2, polish=False)
    expected = select_size(problem, **asked, engine="numba")
    for curve in gone_at_many_moments(device, lambda: select_size(problem, **asked, engine="cuda", n_jobs=2)):
        assert any(SAID in note or "the device does not answer" in note for note in curve.notes)
        assert_same_curve(curve, expected, but=("seconds", "engine", "energy_per_row", "annealing", "notes"))
        np.testing.assert_allclose(curve.annealing.energy, expected.annealing.energy, rtol=1e-10)


def test_many_problems(device, problem, monkeypatch):
    monkeypatch.setattr(device_module, "_BATCH_NS", 1e5)
    asked = dict(sizes=(2, 4), cv="loo", schedule=SHORT, chains=1, polish=False)
    problems = [problem] * 3
    expected = dict(select_many(problems, **asked, engine="numba"))
    for found in gone_at_many_moments(device, lambda: dict(select_many(problems, **asked, engine="cuda", n_jobs=2))):
        for index, curve in found.items():
            np.testing.assert_allclose(curve.cv_error, expected[index].cv_error, rtol=1e-12)


def unless_refused(ask):
    """None where it is refused in one sentence: that is right for a device that is gone before it is asked to walk."""

    def asked():
        try:
            return ask()
        except Refused as refused:
            if "the device does not answer: Failure: the device is gone." in str(refused):
                return None
            raise

    return asked


def test_annealing(device, problem):
    asked = dict(schedule=SHORT, chains=6)
    expected = best_subset(problem, 3, **asked, engine="numba")
    ask = unless_refused(lambda: best_subset(problem, 3, **asked, engine="cuda"))
    for part, found in zip(PARTS, gone_at_many_moments(device, ask), strict=True):
        if found is None:
            assert part == 0.0
            continue
        assert found.note == SAID
        np.testing.assert_array_equal(found.supports, expected.supports)


def test_a_proof(device):
    data = datasets.make_planted(N=16, alpha=1.5, seed=3)
    problem = SubsetProblem(data.X, data.y)
    asked = dict(k=3, n_best=5, within=(0.05, 0.5))
    expected = prove(problem, **asked, engine="numba")
    for part, proof in zip(
        PARTS, gone_at_many_moments(device, lambda: prove(problem, **asked, engine="cuda")), strict=True
    ):
        assert proof.optimal
        assert proof.method == "enumeration"
        assert proof.note == SAID or part == 0.0  # not used where it does not say how much memory is free
        np.testing.assert_array_equal(proof.supports, expected.supports)
        np.testing.assert_array_equal(proof.counts, expected.counts)


def test_a_proof_for_which_the_cpu_has_no_time_keeps_the_bound_of_the_device(device, monkeypatch, capsys):
    data = datasets.make_planted(N=16, alpha=1.5, seed=3)
    problem = SubsetProblem(data.X, data.y)
    best = prove(problem, 4, engine="numba").energy
    nothing = Lowest(np.zeros((0, 4), np.int64), np.zeros(0), np.zeros(0, np.int64), complete=False)
    monkeypatch.setattr("pairflip.search.prove.enumerate_supports", lambda asked: nothing)
    prove(problem, 4, engine="cuda")  # compiles
    device.answers = 6
    proof = prove(problem, 4, engine="cuda")
    assert (proof.optimal, proof.energy, proof.note) == (False, pytest.approx(best), f"{SAID}; not enough time")
    assert 0.0 < proof.lower_bound < best
    assert proof.lower_bound == pytest.approx(problem.form.energy(np.arange(16)))  # with all columns together
    _show(proof, 60.0, as_json=False)
    assert f"Note: {SAID}; not enough time." in " ".join(capsys.readouterr().out.split())


def test_a_device_for_which_nothing_can_be_compiled_is_not_used(device, problem, monkeypatch):
    """As where there is a driver, and no toolkit."""

    def missing():
        raise RuntimeError("Failure finding libnvrtc.so.13:\n no such file")

    monkeypatch.setattr(sys.modules["cupy"].cuda.nvrtc, "getVersion", missing)
    assert why_unavailable() == (
        'CuPy finds no NVRTC, which compiles kernels: pip install "pairflip[gpu]" '
        "(RuntimeError: Failure finding libnvrtc.so.13: no such file)."
    )
    assert get_engine("auto").name == "numba"
    with pytest.raises(ValueError, match=r'^engine="cuda" cannot be used here: CuPy finds no NVRTC'):
        select_size(problem, [1], engine="cuda")


def test_kernels_that_do_not_compile_leave_the_work_to_the_cpu(device, problem, monkeypatch):
    def fails(code, options):
        raise Failure("error: identifier is undefined")

    monkeypatch.setattr(sys.modules["cupy"], "RawModule", fails)
    curve = select_size(problem, [1, 3], 4, schedule=SHORT, chains=2, engine="cuda")
    assert curve.notes == ("the device failed, and the CPU did the rest: Failure: error: identifier is undefined",)


FREED = """
import sys
import pairflip
from pairflip.__main__ import main

class Gone(Exception):
    pass

class Memory:
    def __del__(self, error=Gone):
        raise error("it cannot be freed")

Gone.__module__ = sys.argv.pop(1)
pairflip.memory = Memory()  # until modules are given up
main()
"""


@pytest.mark.parametrize(("module", "quiet"), [("cupy_backends.cuda.api.driver", True), ("another", False)])
def test_the_command_says_nothing_of_memory_that_cannot_be_freed_when_it_ends(module, quiet):
    ask = [sys.executable, "-c", FREED, module, "--version"]
    done = subprocess.run(ask, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("pairflip ")
    assert ("it cannot be freed" in done.stderr) != quiet


BROKEN = """
import sys, threading, time
import cupy, numpy as np
from pairflip import SubsetProblem, anneal, best_subset, datasets, prove, select_size

what, after = sys.argv[1], float(sys.argv[2])
stop = cupy.RawKernel('extern "C" __global__ void stop() { asm("trap;"); }', "stop")
stop.compile()
data = datasets.make_planted(N=400, alpha=0.5, seed=0)
planted = SubsetProblem(data.X, data.y, center=None)
rng = np.random.default_rng(0)
X = rng.normal(size=(300, 1500))
small = SubsetProblem(X[:, :150], X[:, :8].sum(axis=1) + rng.normal(size=300))
ASK = {
    "annealed": lambda engine: select_size(planted, [8, 24], schedule="paper", chains=8, engine=engine, n_jobs=-1),
    "anneal": lambda engine: anneal(planted, 40, schedule="paper", chains=8000, engine=engine, n_jobs=-1),
    "prove": lambda engine: prove(small, 6, budget=600, engine=engine, n_jobs=-1),
}
ask = ASK[what]
ask("cuda")  # compiles
began = time.perf_counter()
whole = ask("cuda")
seconds = time.perf_counter() - began
timer = threading.Timer(after * seconds, lambda: stop((1,), (1,), ()))
timer.start()
began = time.perf_counter()
found = ask("cuda")
timer.join()
print(what, f"whole {seconds:.2f} s, broken at {after * seconds:.2f} s, done at {time.perf_counter() - began:.2f} s")
print(found.notes if hasattr(found, "notes") else found.note)
for name in ("cv_error", "supports", "energies", "counts"):
    if hasattr(whole, name):
        one, other = getattr(whole, name), getattr(found, name)
        same = [np.allclose(a, b, rtol=1e-9) for a, b in zip(one, other, strict=True)]
        print(name, "same" if all(same) else "DIFFERENT")
"""


@pytest.mark.gpu
@pytest.mark.parametrize(("what", "after"), [("annealed", "0.2"), ("anneal", "0.5"), ("prove", "0.5")])
def test_a_real_device_that_is_broken_in_the_middle(what, after):
    """A kernel that stops itself breaks the context of its process: every later call of CUDA fails."""
    done = subprocess.run([sys.executable, "-c", BROKEN, what, after], capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr[-2000:])
    assert done.returncode == 0
    assert "the device failed, and the CPU did the rest: CUDA" in done.stdout
    assert "same" in done.stdout
    assert "DIFFERENT" not in done.stdout
