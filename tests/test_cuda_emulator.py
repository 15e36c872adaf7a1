"""The kernels of annealing, run by the emulator: chain for chain those of the compiled engine."""

import numpy as np
import pytest

from cuda_emulator import device
from pairflip import SubsetProblem, datasets, temper
from pairflip.engines import WalkPlan
from pairflip.engines.cuda import CudaEngine, launch, packing, staging
from pairflip.engines.cuda import device as real_device
from pairflip.engines.cuda.host_work import HostWork
from pairflip.engines.numba import NumbaEngine
from pairflip.engines.together import Forms, ManyWalks
from pairflip.moments import OneRowOut
from pairflip.philox import chain_keys
from test_engine_cuda import SMALL, compare, real_walks, same

__all__ = ["device"]


@pytest.mark.parametrize("k", [3, 28, pytest.param(76, marks=pytest.mark.slow)])
def test_chains_are_those_of_the_compiled_engine(device, k):
    """Eight chains to a block; one tile of P in shared memory, or many."""
    data = datasets.make_planted(N=4 * k // 3 + 30, alpha=1.5, seed=0)
    problem, betas = SubsetProblem(data.X, data.y), np.geomspace(0.1, 1e3, 5)
    flips = np.full(5, 200 if k < 10 else 20)
    pairs = [
        (gram, WalkPlan(k, betas, flips, chain_keys(0, k, fold, range(5)), record=True))
        for fold, gram in enumerate((problem.gram, problem.held_out([3]), problem.held_out([0, 5])))
    ]
    for found, expected in zip(CudaEngine().walk(pairs), NumbaEngine().walk(pairs), strict=True):
        assert (found.refreshes >= 0).all()
        for name in ("support", "best_support", "accepted", "record"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        np.testing.assert_allclose(found.energy, expected.energy, rtol=1e-10)


@pytest.mark.parametrize("table", SMALL)
def test_chains_on_small_real_tables_are_those_of_the_cpu_or_given_up(device, shared_data, table):
    chains, left, differ, _, of_yy = compare(real_walks(shared_data, table, chains=2))
    assert (chains >= 12, differ) == (True, 0)
    assert left < chains
    assert of_yy < np.finfo(float).eps * 1e5


def some_walks():
    """Nine chains on one problem."""
    data = datasets.make_planted(N=40, alpha=1.5, seed=1)
    plan = WalkPlan(3, np.array([2.0, 50.0]), np.array([900, 900]), chain_keys(1, 3, None, range(9)))
    return [(SubsetProblem(data.X, data.y).gram, plan)]


def test_what_is_put_away_between_launches_changes_no_bit(device):
    pairs = some_walks()
    assert same(*(CudaEngine(slice_ns=ns).walk(pairs) for ns in (10**9, 10**6)))


def test_the_time_of_a_launch_is_up_for_all_chains_when_it_is_for_one(device, monkeypatch):
    """Blocks that began late do not prolong it: here the first launch is over before any of them looks at the clock."""
    program, go_on, upload, calls = real_device.source(), HostWork.go_on, launch.upload, []
    assert program.count("(++ticks & 127)") == 1
    monkeypatch.setattr(real_device, "_compiled", {})
    monkeypatch.setattr(real_device, "source", lambda: program.replace("(++ticks & 127)", "(++ticks & 0)"))
    monkeypatch.setattr(HostWork, "go_on", lambda self: calls.append(None) or go_on(self))
    pairs, found, launches = some_walks(), [], []
    for over in (0, 1):

        def told(array, over=over):
            return upload(np.append(array[:-1], np.int32(over)) if array.shape == (7,) else array)

        monkeypatch.setattr(launch, "upload", told)
        calls.clear()
        found.append(CudaEngine().walk(pairs))
        launches.append(len(calls))
    assert launches[1] == launches[0] + 1
    assert same(*found)


@pytest.mark.parametrize("own", [False, True])
def test_what_groups_share_is_sent_once_and_changes_no_bit(device, monkeypatch, own):
    """Two size classes on the same folds, cooled alike, or (`own`) every fold and size with a schedule of its own."""
    data = datasets.make_planted(N=30, alpha=1.5, seed=2)
    forms, which = Forms.without_rows(OneRowOut.of(SubsetProblem(data.X, data.y), np.arange(3))), np.arange(3)
    betas, flips = np.array([2.0, 50.0]), np.array([40, 40])
    walks = []
    for k in (3, 12):
        keys = np.stack([chain_keys(0, k, fold, range(2)) for fold in range(3)])
        walks.append(ManyWalks(forms, which, k, betas * k * np.ones((3, 1)) if own else betas, flips, keys))
    sent, upload = [], packing._Packer.upload
    monkeypatch.setattr(packing._Packer, "upload", lambda self: sent.append(self._dtype.name) or upload(self))
    alone, together, engine = {}, {}, CudaEngine()
    for k, each in enumerate(walks):
        engine.walk_many(engine.get_walks_ready([each]), lambda _, walked, k=k: alone.update({k: walked}))
    assert sent.count("float64") == 2
    engine.walk_many(engine.get_walks_ready(walks), together.__setitem__)
    assert sent.count("float64") == (4 if own else 3)
    for k in alone:
        for name in ("support", "best_support", "final_energy", "refreshes"):
            np.testing.assert_array_equal(getattr(together[k], name), getattr(alone[k], name))


def test_two_devices_share_the_chains_and_change_no_bit(device):
    """One device that is named twice."""
    pairs = some_walks()
    assert same(*(CudaEngine(devices=devices).walk(pairs) for devices in ([0], [0, 0])))


def test_ladders_trade_places_as_on_the_cpu(device):
    data = datasets.make_correlated(M=60, N=40, k=3, correlation=0.6, snr=3.0, seed=3)
    told = [
        temper(SubsetProblem(data.X, data.y), 3, [1.0, 4.0, 16.0], sweeps=6, chains=2, seed=1, engine=engine)
        for engine in (CudaEngine(), "numba")
    ]
    assert told[0].exchange.any()
    for name in ("supports", "exchange", "round_trips", "acceptance"):
        np.testing.assert_array_equal(getattr(told[0], name), getattr(told[1], name))


def test_rounding_in_doubt_is_taken_away_before_a_chain_is_given_up(device, monkeypatch):
    """With a bound on rounding that grows far too fast chains doubt sooner or later, but not when P is new."""
    pairs = some_walks()
    (calm,) = CudaEngine().walk(pairs)
    program = real_device.source()
    assert program.count("error + (float)EPSILON * worst;") == 1
    careless = program.replace("error + (float)EPSILON * worst;", "error + 1e-4f;")
    assert "DRIFT = 1e-11" in program
    monkeypatch.setattr(real_device, "_compiled", {})
    monkeypatch.setattr(real_device, "source", lambda: careless.replace("DRIFT = 1e-11", "DRIFT = 1e3"))
    (doubtful,) = CudaEngine().walk(pairs)
    assert (calm.refreshes == 0).all()
    assert (doubtful.refreshes > 0).any()
    for name in ("support", "best_support", "accepted"):
        np.testing.assert_array_equal(getattr(doubtful, name), getattr(calm, name))


def test_threads_wait_for_each_other(device):
    """Barriers of blocks and warps, votes, sums and exchanges between lanes, and threads that return early."""
    program = r"""
        extern "C" __global__ void __launch_bounds__(96) add(int *out, int n) {
            __shared__ int all[96];
            int lane = threadIdx.x % 32;
            all[threadIdx.x] = (int)threadIdx.x;
            __syncthreads();
            int value = all[95 - threadIdx.x];
            for (int far = 16; far; far /= 2) value += __shfl_xor_sync(0xffffffffu, value, far);
            if (threadIdx.x >= n) return;
            __syncthreads();
            unsigned votes = __ballot_sync(0xffffffffu, lane > 29);
            int *here = out + 4 * (blockIdx.x * n + threadIdx.x);
            here[0] = value, here[1] = __popc(votes), here[2] = __shfl_sync(0xffffffffu, lane, 7);
            here[3] = __syncthreads_or(threadIdx.x == 5) + __reduce_add_sync(0xffffffffu, 1);
        }
    """
    out = device.zeros((2, 64, 4), np.int32)
    device.RawModule(code=program, options=()).get_function("add")((2,), (96,), (out, np.int32(64)))
    sums = np.add.reduceat(np.arange(96)[::-1], [0, 32])  # of the first two warps
    sums[1] -= np.arange(32).sum()
    expected = np.stack([np.repeat(sums, 32), np.full(64, 2), np.full(64, 7), np.full(64, 33)], axis=1)
    np.testing.assert_array_equal(out, np.stack([expected] * 2))


def test_an_older_cupy_is_refused_in_one_sentence(device, monkeypatch):
    assert real_device.why_unavailable() is None
    monkeypatch.setattr(device, "__version__", "13.6.0")
    assert "CuPy 14 or newer, and this is 13.6.0" in real_device.why_unavailable()


def test_whoever_comes_to_a_device_has_a_lane_that_nobody_else_uses(device):
    def lanes(count):
        if count == 0:
            return [staging._here.staging]
        with real_device.on_lane(0):
            return [staging._here.staging, *lanes(count - 1)]

    first, second, third, _ = lanes(3)
    assert len({id(first), id(second), id(third)}) == 3
    assert lanes(2)[:2] == [first, second]  # given back, and used again
