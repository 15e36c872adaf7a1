"""The kernels of annealing, run by the emulator: chain for chain those of the compiled engine."""

import numpy as np
import pytest

from cuda_emulator import device
from pairflip import SubsetProblem, datasets
from pairflip.engines import WalkPlan
from pairflip.engines.cuda import CudaEngine
from pairflip.engines.numba import NumbaEngine
from pairflip.philox import chain_keys

__all__ = ["device"]


@pytest.mark.parametrize("k", [3, 36, pytest.param(58, marks=pytest.mark.slow)])
def test_chains_are_those_of_the_compiled_engine(device, k):
    """One warp to a chain and four chains to a block; accepted flips that wait for each other; two warps to a chain."""
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
