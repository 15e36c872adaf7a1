"""Chains that a device gives up, without a device."""

import numpy as np

from pairflip import SubsetProblem, datasets
from pairflip.engines import WalkPlan
from pairflip.engines.numba import NumbaEngine
from pairflip.engines.together import ManyWalked, completed_many, join
from pairflip.philox import chain_keys


def test_chains_that_were_given_up_are_walked_by_another_engine():
    data = datasets.make_planted(N=40, seed=1)
    problem, betas, flips = SubsetProblem(data.X, data.y), np.array([1.0, 9.0]), np.array([80, 80])
    pairs = [
        (gram, WalkPlan(k, betas, flips, chain_keys(0, k, None, range(5)), record=k == 3))
        for k in (2, 3)
        for gram in (problem.gram, problem.held_out([4]), problem.held_out([7]))
    ]
    engine = NumbaEngine()
    together, members = join(pairs)
    assert sorted(np.concatenate(members).tolist()) == list(range(6))
    for walks, which in zip(together, members, strict=True):
        right = [engine.walk([pairs[at]])[0] for at in which]
        walked = ManyWalked.of(right)
        completed_many(engine, walks, walked)  # nothing to do
        walked.refreshes[-1, [1, 4]], walked.support[-1, [1, 4]], walked.final_energy[-1, 1] = -1, 0, np.nan
        completed_many(engine, walks, walked)
        for at, expected in enumerate(right):
            found = walked.result(at)
            for name in ("support", "best_support", "energy", "refreshes", "final_energy", "record", "record_energy"):
                np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
