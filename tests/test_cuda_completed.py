"""Chains that a device gives up, without a device."""

from dataclasses import replace

import numpy as np

from pairflip import SubsetProblem, datasets
from pairflip.engines import WalkPlan
from pairflip.engines.cuda.completed import completed
from pairflip.engines.numba import NumbaEngine
from pairflip.philox import chain_keys


def test_chains_that_were_given_up_are_walked_by_another_engine():
    data = datasets.make_planted(N=40, seed=1)
    gram = SubsetProblem(data.X, data.y).gram
    plans = [
        WalkPlan(k, np.array([1.0, 9.0]), np.array([80, 80]), chain_keys(0, k, None, range(5)), record=k == 3)
        for k in (2, 3)
    ]
    pairs = [(gram, plan) for plan in plans]
    right = NumbaEngine().walk(pairs)
    told = [replace(one, **{name: getattr(one, name).copy() for name in ("support", "refreshes")}) for one in right]
    assert completed(NumbaEngine(), pairs, told) is told
    told[1].refreshes[[1, 4]], told[1].support[[1, 4]] = -1, 0
    found = completed(NumbaEngine(), pairs, told)
    for one, other in zip(found, right, strict=True):
        for name in ("support", "best_support", "energy", "refreshes", "final_energy"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(found[1].record, right[1].record)
