"""Double flips: the best exchange of two columns, against looking at all of them."""

from itertools import combinations

import numpy as np
import pytest

from pairflip import Schedule, SubsetProblem, anneal, datasets
from pairflip.search.double_flip import best_double_flip, improve


def lowest_by_looking(gram, support):
    outside = np.setdiff1d(np.arange(gram.n_columns), support)
    best = np.inf
    for slots in combinations(range(support.size), 2):
        kept = np.delete(support, slots)
        for pair in combinations(outside, 2):
            best = min(best, gram.energy(np.array([*kept, *pair])))
    return best


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("kind", ["plain", "ridge", "held out", "duplicates"])
def test_the_best_double_flip_is_found(k, kind):
    rng = np.random.default_rng(k)
    X = rng.normal(size=(25, 12)) + rng.normal(size=(25, 1))
    if kind == "duplicates":
        X[:, 6:] = X[:, :6]
        k = min(k, 3)
    y = X[:, :4] @ [1.0, -2.0, 1.5, 1.0] + rng.normal(size=25)
    problem = SubsetProblem(X, y, ridge=2.0 if kind == "ridge" else 0.0)
    gram = problem.held_out([1, 4]) if kind == "held out" else problem.gram
    for support in (np.arange(k), np.arange(6 - k, 6)):
        found = best_double_flip(gram, support)
        assert np.setdiff1d(found, support).size == 2
        assert gram.energy(found) == pytest.approx(lowest_by_looking(gram, support), rel=1e-10)


@pytest.fixture(scope="module")
def narrow():
    """Columns 0 and 1 together explain y, neither alone says anything about it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 40))
    X[:, 1] = X[:, 0] + 0.02 * rng.normal(size=60)
    return SubsetProblem(X, 50.0 * (X[:, 0] - X[:, 1]) + 0.1 * rng.normal(size=60))


def test_a_deep_narrow_minimum_is_found(narrow):
    start = np.array([[5, 9]])
    improved = improve(narrow.gram, start, np.array([narrow.gram.energy(start[0])]))
    assert improved is not None
    assert improved[0].tolist() == [0, 1]
    assert improved[1] == pytest.approx(narrow.energy([0, 1]))


def test_nothing_better_gives_none():
    gram = SubsetProblem(np.eye(6) + 0.1, np.array([5.0, 4.0, 0.1, 0.2, 0.0, 0.0]), center=None).gram
    best = min((np.array(s) for s in combinations(range(6), 2)), key=gram.energy)
    assert improve(gram, best[None, :], np.array([gram.energy(best)])) is None


def test_polish_can_be_switched_off_and_is_said_when_it_mattered(narrow):
    quench = Schedule.geometric(1e3, 1e6, steps=2, sweeps=1)
    plain = anneal(narrow, 2, quench, chains=2, seed=0, polish=False)
    polished = anneal(narrow, 2, quench, chains=2, seed=0, prove=False)
    assert plain.note == ""
    assert plain.best_energy == pytest.approx(plain.energies.min())
    assert polished.best_support.tolist() == [0, 1] != plain.best_support.tolist()
    assert "double flips" in polished.note
    np.testing.assert_array_equal(plain.supports, polished.supports)


def test_tables_without_a_gram_matrix_are_left_alone():
    data = datasets.make_planted(N=40, seed=0)
    gram = SubsetProblem(data.X, data.y, memory_budget=0).gram
    assert improve(gram, np.array([[0, 1, 2]]), np.array([gram.energy(np.array([0, 1, 2]))])) is None
