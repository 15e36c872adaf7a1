"""Several targets, one set of columns: energies, fits and searches against literal computation."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from pairflip import SubsetProblem, best_subset, select_size


def small(seed: int) -> dict[str, Any]:
    """A small problem of one of several kinds: duplicates, nearly dependent columns, weights, forced columns, ridge."""
    rng = np.random.default_rng(seed)
    m, n, q = int(rng.integers(12, 25)), int(rng.integers(6, 9)), int(rng.integers(2, 5))
    X = rng.normal(size=(m, n)) * 10.0 ** rng.integers(-3, 4, size=n)
    if seed % 2:
        X[:, 1] = X[:, 0] * 3.0
    if seed % 3 == 0:
        X[:, 3] = X[:, 2] + X[:, 4] * np.std(X[:, 2]) / np.std(X[:, 4]) * 10.0 ** -rng.integers(1, 5)
    if seed % 5 == 0:
        X[:, 5] = X[:, 2] / np.std(X[:, 2]) + X[:, 0] / np.std(X[:, 0])
    Y = (X / X.std(axis=0)) @ rng.normal(size=(n, q)) * 10.0 ** rng.integers(-2, 3, size=q) + rng.normal(size=(m, q))
    weights = np.ones(m)
    if seed % 4 == 1:
        weights = rng.integers(0, 3, size=m).astype(float) + (np.arange(m) < 6)
    return {
        "X": X,
        "Y": Y,
        "w": weights,
        "always": [n - 1] if seed % 7 < 3 else [],
        "ridge": float(rng.choice([0.0, 0.0, 0.5])),
        "scaled": bool(seed % 11),
        "center": "fold" if seed % 6 else None,
    }


def problem_of(case: dict[str, Any]) -> SubsetProblem:
    return SubsetProblem(
        case["X"], case["Y"], always=case["always"], sample_weight=case["w"], ridge=case["ridge"],
        scale_targets=case["scaled"], center=case["center"],
    )  # fmt: skip


def test_coefficients_are_those_of_each_target_alone() -> None:
    for seed in range(10):
        case = small(seed)
        problem = problem_of(case)
        support = problem.candidates[[0, 2, 4]]
        fit = problem.fit(support)
        assert fit.coef.shape == (3, case["Y"].shape[1])
        assert fit.intercept.shape == (case["Y"].shape[1],)
        for t, y in enumerate(case["Y"].T):
            alone = SubsetProblem(
                case["X"], y, always=case["always"], sample_weight=case["w"], ridge=case["ridge"], center=case["center"]
            ).fit(support)
            np.testing.assert_allclose(fit.coef[:, t], alone.coef, rtol=1e-6)
            np.testing.assert_allclose(fit.intercept[t], alone.intercept, rtol=1e-6, atol=1e-8 * np.abs(y).max())
            np.testing.assert_allclose(fit.always_coef[:, t], alone.always_coef, rtol=1e-6, atol=1e-9)
        assert fit.energy == pytest.approx(problem.energy(support))


def test_a_fold_is_the_problem_of_its_rows() -> None:
    for seed in range(12):
        case = small(seed)
        problem, rows = problem_of(case), np.array([1, 4])
        rest = np.delete(np.arange(len(case["X"])), rows)
        own = problem_of(case | {"X": case["X"][rest], "Y": case["Y"][rest], "w": case["w"][rest]})
        for anew in (False, True):
            fold = problem.held_out(rows, anew)
            for S in combinations(own.candidates.tolist(), 2):
                at = fold.positions(np.array(S))
                assert fold.energy(at) == pytest.approx(own.energy(S), rel=1e-7)
        garbage = case["Y"].copy()
        garbage[rows] = 1e3 * np.arange(1, 2 * garbage.shape[1] + 1).reshape(2, -1)
        other = problem_of(case | {"Y": garbage}).held_out(rows)
        np.testing.assert_allclose(other.energy(np.arange(2)), problem.held_out(rows).energy(np.arange(2)), rtol=1e-9)


def test_one_column_of_targets_is_one_target() -> None:
    case = small(2)
    one, column = SubsetProblem(case["X"], case["Y"][:, 0]), SubsetProblem(case["X"], case["Y"][:, :1])
    assert column.loss.name == "squares"
    assert column.y.shape == one.y.shape
    assert best_subset(one, 3).best_energy == best_subset(column, 3).best_energy


def test_names_and_scales() -> None:
    pd = pytest.importorskip("pandas")
    case = small(7)
    frame = pd.DataFrame(case["Y"], columns=[f"t{i}" for i in range(case["Y"].shape[1])])
    problem = SubsetProblem(case["X"], frame)
    assert problem.target_names == list(frame.columns)
    assert problem.form.yy == pytest.approx(case["Y"].size)  # unit variance: each target adds its rows
    tenfold = SubsetProblem(case["X"], frame * 10.0)
    assert tenfold.energy([0, 2]) == pytest.approx(problem.energy([0, 2]))
    unscaled = SubsetProblem(case["X"], frame * 10.0, scale_targets=False)
    assert unscaled.energy([0, 2]) == pytest.approx(
        100.0 * SubsetProblem(case["X"], frame, scale_targets=False).energy([0, 2])
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda Y: Y[:-1], "one row of targets per row"),
        (lambda Y: np.where(np.arange(Y.shape[1]) == 1, np.nan, Y), "target 'y1': y contains NaN"),
        (lambda Y: np.where(np.arange(Y.shape[1]) == 1, 2.0, Y), "'y1' is constant"),
        (lambda Y: Y.astype(complex) * 1j, "complex"),
    ],
)
def test_bad_targets_are_refused_in_one_sentence(change: Any, says: str) -> None:
    case = small(2)
    with pytest.raises(ValueError, match=says):
        SubsetProblem(case["X"], change(case["Y"]))


def test_what_there_is_not_for_several_targets_is_refused() -> None:
    problem = problem_of(small(2))
    with pytest.raises(ValueError, match="several targets"):
        best_subset(problem, 2, engine="cuda")
    with pytest.raises(ValueError, match="memory_budget"):
        SubsetProblem(np.random.default_rng(0).normal(size=(9, 40)), np.eye(9)[:, :2], memory_budget=100)


def test_the_reference_engine_leaves_searches_to_the_other() -> None:
    problem = problem_of(small(3))
    found = [best_subset(problem, 3, effort="quick", engine=engine, prove=False) for engine in ("reference", "numba")]
    assert [trace.engine for trace in found] == ["numba", "numba"]
    assert "walks annealing chains only" in found[0].note
    assert found[0].best_energy == pytest.approx(found[1].best_energy, rel=1e-9)


def test_a_ridge_is_chosen_for_several_targets_and_under_rules() -> None:
    rng = np.random.default_rng(6)
    X = rng.normal(size=(25, 6))
    Y = X[:, [0, 1]] + rng.normal(size=(25, 2))
    for y, more in ((Y, {}), (Y[:, 0], {"min_distance": 2}), (Y, {"min_distance": 2})):
        problem = SubsetProblem(X, y, **more)
        curve = select_size(problem, [1, 2], cv=4, ridge="auto", effort="quick", progress=False)
        alone = select_size(problem.with_shrinkage(0.1), [1, 2], cv=4, effort="quick", progress=False)
        assert curve.ridge_surface is not None
        np.testing.assert_allclose(curve.ridge_surface.errors[1], alone.cv_error, rtol=1e-9)
