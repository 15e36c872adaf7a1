"""Searches of every kind of problem against all supports, whose energies and fits are computed from the rows."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from _cases import CASES
from pairflip import SubsetProblem, best_subset

SEEDS = [0, 1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 6))]


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("first", SEEDS)
@pytest.mark.usefixtures("searched")
def test_the_lowest_of_all_supports_is_found(kind: str, first: int) -> None:
    for seed in range(5 * first, 5 * first + 5):
        problem, k, literal = CASES[kind](seed)
        form, every = problem.form, {}
        for units in combinations(range(form.n_columns), k):
            columns = problem.columns_of(form.candidates[list(units)]).tolist()
            every[units] = energy = form.energy(np.array(units))
            expected = literal(columns)
            if expected is not None and np.isfinite(energy):
                assert energy == pytest.approx(expected.energy, rel=1e-6, abs=1e-10 * form.yy), (seed, columns)
            elif expected is not None:
                assert expected.energy == np.inf or expected.doubtful, (seed, columns)
        lowest = min(every.values())
        if np.isinf(lowest):
            with pytest.raises(ValueError, match="k"):
                best_subset(problem, k, seed=seed)
            continue
        trace = best_subset(problem, k, seed=seed, prove=False)
        assert trace.best_energy == pytest.approx(lowest, rel=1e-7, abs=1e-9 * form.yy), seed
        assert trace.best_energy == pytest.approx(problem.fit(trace.best_support).energy, rel=1e-9, abs=1e-11 * form.yy)
        expected = literal(trace.best_support.tolist())
        if expected is not None and expected.coef is not None:
            coef = np.reshape(trace.best_coef, np.shape(expected.coef))
            np.testing.assert_allclose(coef, expected.coef, rtol=1e-5, atol=1e-6 * np.abs(expected.coef).max())


def wide_table(kind: str) -> SubsetProblem:
    """Sixty columns, of which the first eight tell, as a problem of one kind."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 60))
    Y = X[:, :8] @ rng.normal(size=(8, 3)) + rng.normal(size=(60, 3))
    if kind == "several targets":
        return SubsetProblem(X, Y)
    given: dict[str, dict[str, Any]] = {
        "plain": {}, "signs": {"positive": True}, "bands": {"min_distance": 3},
        "groups": {"groups": {"a": [0, 1], "b": [4, 5, 6]}},
    }  # fmt: skip
    if kind == "logistic":
        return SubsetProblem(X, Y[:, 0] > 0, loss="logistic")
    return SubsetProblem(X, Y[:, 0], **given[kind])


@pytest.mark.parametrize("kind", ["plain", "several targets", "signs", "bands", "groups", "logistic"])
def test_chains_do_not_depend_on_threads(kind: str) -> None:
    one, two = (best_subset(wide_table(kind), 5, seed=4, n_jobs=jobs, prove=False) for jobs in (1, 2))
    np.testing.assert_array_equal(one.supports, two.supports)
    np.testing.assert_array_equal(one.energies, two.energies)


@pytest.mark.parametrize(("weights", "given"), [(np.ones((3, 1)), {"positive": True}), (np.ones((3, 2)), {})])
def test_an_exact_fit_is_found(weights: Any, given: dict[str, Any]) -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(30, 20))
    problem = SubsetProblem(X, X[:, [3, 11, 17]] @ (weights * [[1.0], [2.0], [0.5]]), **given)
    assert best_subset(problem, 3, prove=False).best_support.tolist() == [3, 11, 17]


@pytest.mark.parametrize("loss", ["squares", "logistic"])
def test_groups_of_one_column_are_columns(loss: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 12))
    y = X[:, 0] + X[:, 5] - X[:, 7] + rng.normal(size=60)
    plain, single = (
        best_subset(SubsetProblem(X, y if loss == "squares" else y > 0, loss=loss, groups=groups), 3)
        for groups in (None, {f"c{j}": [j] for j in range(12)})
    )
    assert single.best_support.tolist() == plain.best_support.tolist()
    assert single.best_energy == pytest.approx(plain.best_energy, rel=1e-12)
    np.testing.assert_allclose(single.best_coef, plain.best_coef, rtol=1e-9)
