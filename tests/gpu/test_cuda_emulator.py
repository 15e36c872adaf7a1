"""The annealing kernel, run by the emulator: the law of its chains, and energies computed again from the columns."""

import numpy as np
import pytest

from cuda_emulator import device
from pairflip import SubsetProblem, best_subset, datasets, sample, temper
from pairflip.engines import Refused, WalkPlan
from pairflip.engines.cuda import CudaEngine
from pairflip.philox import chain_keys
from pairflip.testing import (
    boltzmann,
    check_many,
    check_rank,
    check_tick,
    check_visits,
    enumerated_cases,
    make_plan,
    states,
    walk_one,
)

__all__ = ["device"]


@pytest.mark.parametrize("check", [check_visits, check_many, check_rank, check_tick])
def test_chains_visit_supports_as_boltzmann_says_and_keep_the_protocol(device, check):
    check(CudaEngine())


@pytest.mark.parametrize(("name", "beta"), [("duplicated columns", 12.0), ("one row out", 40.0)])
def test_the_mean_energy_is_that_of_all_supports_weighted_as_boltzmann_says(device, name, beta):
    """Within four standard errors, some hundredths of the spread; supports of duplicated columns have no weight."""
    case = next(case for case in enumerated_cases() if case.name == name)
    plan = make_plan(case.form, case.k, [beta, beta], [100, 1000], chains=20, seed=1)
    walked = walk_one(CudaEngine(), case.form, plan)
    energies = states(case.form, case.k)[1]
    expected, means = boltzmann(energies, beta / case.form.yy) @ energies, walked.energy[:, 1]
    assert abs(means.mean() - expected) < 4.0 * means.std(ddof=1) / np.sqrt(means.size)
    assert means.std(ddof=1) / np.sqrt(means.size) < 0.06 * energies.std()


def check_energies(problem, k, betas, flips, off=1e-10):
    """Final energies are those of the supports, computed from X; chains move, cool down and keep their best."""
    for form in (problem.form, problem.held_out([3]), problem.held_out([0, 5])):
        plan = make_plan(form, k, betas, flips, chains=5)
        walked = walk_one(CudaEngine(), form, plan)
        exact = np.array([form.energy(support) for support in walked.support])
        np.testing.assert_allclose(walked.final_energy, exact, rtol=1e-9, atol=off * form.yy)
        assert walked.accepted[:, 0].min() > 0
        assert walked.energy[:, -1].mean() < 0.99 * walked.energy[:, 0].mean()
        best = [form.energy(support) for support in walked.best_support]
        assert (best <= exact + (off + 2e-9) * form.yy).all()
    return walked


@pytest.mark.parametrize("k", [3, 28, pytest.param(76, marks=pytest.mark.slow)])
def test_energies_are_those_of_the_columns(device, k):
    """Eight chains to a block; one tile of P in shared memory, or many."""
    data = datasets.make_planted(N=4 * k // 3 + 30, alpha=1.5, seed=0)
    check_energies(SubsetProblem(data.X, data.y), k, np.geomspace(1.0, 1e4, 5), 200 if k < 10 else 20)


def test_nearly_dependent_columns_are_walked_and_singular_supports_are_not(device):
    """Pairs of columns that agree to four digits (1e-8 of one is left beside the other), to five, and to all."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 4))
    X = np.hstack([X, X + 1e-4 * rng.normal(size=X.shape), X[:, :2] + 5e-6 * rng.normal(size=(20, 2)), 3.0 * X[:, :2]])
    problem = SubsetProblem(X, rng.normal(size=20))
    assert check_energies(problem, 5, [0.0, 30.0, 1e3], 80, off=1e-7).refreshes.min() > 0
    hot = walk_one(CudaEngine(), problem.form, make_plan(problem.form, 5, [0.0], [60], chains=40))
    left = [1.0 / np.linalg.inv(problem.form.matrix[np.ix_(s, s)]).diagonal().max() for s in hot.support]
    assert 1e-9 < min(left) < 2e-8


def some_walks():
    """Nine chains on one problem."""
    data = datasets.make_planted(N=40, alpha=1.5, seed=1)
    plan = WalkPlan(3, np.array([2.0, 50.0]), np.array([900, 900]), chain_keys(1, 3, None, range(9)))
    return [(SubsetProblem(data.X, data.y).form, plan)]


@pytest.mark.parametrize("less", [{"slice_ns": 10**6}, {"memory": 1}])
def test_short_launches_and_little_memory_change_no_bit(device, less):
    for found, expected in zip(CudaEngine(**less).walk(some_walks()), CudaEngine().walk(some_walks()), strict=True):
        for name in ("support", "best_support", "final_energy", "energy", "accepted", "refreshes"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_sampling_is_refused_in_one_sentence_and_searches_are_done_on_the_cpu(device):
    data = datasets.make_planted(N=20, alpha=1.5, seed=1)
    problem = SubsetProblem(data.X, data.y)
    for way in (sample, temper):
        with pytest.raises(Refused, match=r'^[^\n]+\. Use engine="numba" for this one\.$'):
            way(problem, 2, engine="cuda")
    assert best_subset(problem, 2, engine="cuda").engine == "numba"
