"""Coefficients of given signs: energies, fits and searches against literal computation."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from pairflip import SubsetProblem, best_subset, prove


def test_nothing_positive_is_an_honest_answer() -> None:
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(30, 5)))
    problem = SubsetProblem(X, -X @ np.ones(5), center=None, positive=True)
    trace = best_subset(problem, 2)
    assert trace.best_coef.tolist() == [0.0, 0.0]
    assert trace.best_energy == pytest.approx(0.5 * problem.form.yy)
    assert "have the coefficient zero, at the bound of the sign: 0 columns fit as well" in trace.note


def test_a_column_without_weight_is_named_once() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 4))
    trace = best_subset(SubsetProblem(X, X @ [2.0, -1.0, 0, -1.0] + 0.1 * rng.normal(size=40), positive=True), 3)
    assert "coefficient zero, at the bound of the sign" in trace.note
    assert np.sum(trace.best_coef == 0) > 0


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"positive": {"oil": 1}}, "oil"),
        ({"positive": {"x0": 2}}, "names the sign 2; expected 1"),
        ({"positive": {"x0": "up"}}, "names the sign 'up'"),
        ({"positive": [1, -1]}, "2 signs for 4 columns"),
        ({"positive": {"x1": 1}, "always": ["x1"]}, "'x1', which is always in the model"),
        ({"positive": True, "loss": "poisson"}, "loss='poisson'"),
        ({"positive": True, "groups": ["a", "a", "b", "b"]}, "positive is given together with groups"),
        ({"positive": True, "memory_budget": 100}, "signs cannot be searched without it; expected fewer columns"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, Any], says: str) -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=says):
        SubsetProblem(rng.normal(size=(20, 4)), np.abs(rng.normal(size=20)).round(), **given)


def test_what_there_is_not_is_refused() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 4)), rng.normal(size=20)
    problem = SubsetProblem(X, y, positive=True)
    with pytest.raises(ValueError, match=r"positive is given; .* no proofs"):
        prove(problem, 2)
    with pytest.raises(ValueError, match=r"engine is 'cuda' and .*positive"):
        best_subset(problem, 2, engine="cuda")
    for given in ({"method": "anneal"}, {"schedule": "paper"}, {"chains": 2}):
        with pytest.raises(ValueError, match=r"asks for annealing, .* positive is given; expected method='descend'"):
            best_subset(problem, 2, **given)
    with pytest.raises(ValueError, match="several targets"):
        SubsetProblem(X, np.column_stack([y, y]), positive=True)


def test_free_coefficients_are_ordinary_ones() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(20, 6)), rng.normal(size=20)
    free, ordinary = SubsetProblem(X, y, positive=[0] * 6), SubsetProblem(X, y)
    assert free.loss.quadratic
    mixed = SubsetProblem(X, y, positive={0: 1})
    assert mixed.energy([2, 4]) == ordinary.energy([2, 4])
    assert mixed.energy([0, 4]) >= ordinary.energy([0, 4])
    assert "limits=['positive']" in repr(mixed)


def test_energies_of_the_search_are_the_exact_ones() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 7)) + rng.normal(size=(30, 1))
    form = SubsetProblem(X, X @ rng.normal(size=7) + rng.normal(size=30), positive=[1, -1, 0, 1, -1, 1, 0]).form
    supports = np.array(list(combinations(range(7), 3)))
    exact = [form.energy(support) for support in supports]
    np.testing.assert_allclose(form.fit_many(supports).energies, exact, rtol=1e-9)  # type: ignore[attr-defined]
