"""How energies are compared: one rule, whoever asks."""

import dataclasses

import numpy as np
import pytest

from pairflip import SubsetProblem, anneal
from pairflip.engines import WalkResult
from pairflip.engines.base import is_lower, reaches
from pairflip.search.portfolio import first_best, settle


def test_rounding_does_not_decide_and_a_real_difference_does():
    energies = np.array([1.0 + 1e-10, 1.0, 1.0 + 1e-8])
    assert reaches(energies, 1.0, 2.0).tolist() == [True, True, False]
    assert first_best(energies, 2.0) == 0
    assert not is_lower(1.0 - 1e-10, 1.0, 2.0)
    assert is_lower(1.0 - 1e-8, 1.0, 2.0)


def test_supports_that_explain_y_exactly_are_equal_whatever_is_left_of_them():
    assert reaches(3e-31, 1e-33, 1.0)
    assert not is_lower(1e-33, 3e-31, 1.0)
    assert is_lower(1e-14, 1e-12, 1.0)  # both tiny beside y, and a hundred times apart


def walked(support, best_support):
    none = np.zeros((1, 1))
    places = [np.array([s]) for s in (support, best_support)]
    return WalkResult(none, none.astype(np.int64), *places, none[0], none[0].astype(np.int64))


@pytest.mark.parametrize("noise", [1e-2, 1e-6])
def test_a_chain_keeps_the_better_of_its_two_supports_also_where_both_fit_almost_exactly(noise):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 6))
    y = X[:, 0] + 0.5 * noise * X[:, 1] + noise * rng.normal(size=30)
    form = SubsetProblem(X, y).form
    supports, energies = settle(form, walked([0, 2], [0, 1]))
    assert supports.tolist() == [[0, 1]]
    assert energies[0] == form.energy(np.array([0, 1]))


def test_equal_supports_leave_a_chain_where_it_ended():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 6))
    X[:, 3] = -2.0 * X[:, 0]
    form = SubsetProblem(X, X[:, 0] + rng.normal(size=30)).form
    assert settle(form, walked([1, 3], [0, 1]))[0].tolist() == [[1, 3]]


def test_agreement_of_a_trace_follows_the_rule():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 6))
    trace = anneal(SubsetProblem(X, X[:, 0] + rng.normal(size=30)), 2, chains=4)
    shares = {difference: [] for difference in (1e-10, 5e-9)}
    for difference, found in shares.items():
        energies = trace.best_energy * (1.0 + difference * np.array([0.0, 1.0, 1.0, 1.0]))
        found.append(dataclasses.replace(trace, energies=energies).agreement)
        found.append(float(np.mean(reaches(energies, trace.best_energy, trace.yy))))
    assert shares == {1e-10: [1.0, 1.0], 5e-9: [0.25, 0.25]}
