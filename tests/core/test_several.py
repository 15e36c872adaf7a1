"""Several targets, one set of columns: energies, fits and searches against literal computation."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from pairflip import SubsetProblem, best_subset, select_size
from pairflip.engines.base import RankTooSmall
from pairflip.least_squares import SINGULAR
from pairflip.report.proof_words import proof_sentence


def literal(X: Any, Y: Any, w: Any, forced: Any, ridge: float, scaled: bool, support: Any) -> float:
    """E(S) by lstsq on the rows, every target by itself; infinite where a column depends on the others."""
    root = np.sqrt(w)[:, None]
    Z = forced * root

    def beside(A: Any) -> Any:
        return A - Z @ np.linalg.lstsq(Z, A, rcond=None)[0] if Z.shape[1] else A

    T, A = beside(beside(Y * root)), beside(beside(X[:, list(support)] * root))
    if scaled:
        T = T / np.sqrt((T**2).sum(axis=0) / w.sum())
    A = np.vstack([A, np.sqrt(ridge) * np.eye(A.shape[1])])
    T = np.vstack([T, np.zeros((A.shape[1], T.shape[1]))])
    A = A / np.linalg.norm(A, axis=0)
    singular = np.linalg.svd(A, compute_uv=False)
    if singular[-1] < 1e-8 or np.max(np.diag(np.linalg.inv(A.T @ A))) > 1.0 / SINGULAR:
        return float("inf")
    x = np.linalg.lstsq(A, T, rcond=None)[0]
    return 0.5 * float(((T - A @ x) ** 2).sum())


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


def forced_of(case: dict[str, Any]) -> Any:
    ones = np.ones((len(case["X"]), int(case["center"] == "fold")))
    return np.hstack([ones, case["X"][:, case["always"]]])


@pytest.mark.parametrize("first", [0, 20, *(pytest.param(n, marks=pytest.mark.slow) for n in range(40, 100, 20))])
def test_what_is_found_is_the_lowest_of_all_supports(first: int) -> None:
    for seed in range(first, first + 20):
        case = small(seed)
        problem, k = problem_of(case), 2 + seed % 3
        every = {
            S: literal(case["X"], case["Y"], case["w"], forced_of(case), case["ridge"], case["scaled"], S)
            for S in combinations(problem.candidates.tolist(), k)
        }
        for S, energy in every.items():
            assert problem.energy(S) == pytest.approx(energy, rel=1e-6), (seed, S)
        if not np.isfinite(min(every.values())):
            with pytest.raises(RankTooSmall):
                best_subset(problem, k)
            continue
        trace = best_subset(problem, k, effort="quick")
        assert trace.best_energy == pytest.approx(min(every.values()), rel=1e-7), seed
        assert trace.method == "auto"


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


def test_chains_do_not_depend_on_threads() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 60))
    problem = SubsetProblem(X, X[:, :8] @ rng.normal(size=(8, 3)) + rng.normal(size=(40, 3)))
    one, two = best_subset(problem, 5, seed=4), best_subset(problem, 5, seed=4, n_jobs=2)
    np.testing.assert_array_equal(one.supports, two.supports)
    np.testing.assert_array_equal(one.energies, two.energies)


def test_an_exact_fit_is_found() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(30, 20))
    problem = SubsetProblem(X, X[:, [3, 11, 17]] @ rng.normal(size=(3, 2)))
    assert best_subset(problem, 3).best_support.tolist() == [3, 11, 17]


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


@pytest.mark.parametrize("more", [{"min_distance": 2}, {"groups": list("aabbccdd"), "one_per_group": True}])
def test_several_targets_rules_and_a_relative_ridge_together(more: dict[str, Any]) -> None:
    rng = np.random.default_rng(5)
    X, weights = rng.normal(size=(30, 8)), rng.uniform(0.5, 2.0, 30)
    Y = X[:, [0, 1]] + X[:, [3]] + 0.3 * rng.normal(size=(30, 2))
    problem = SubsetProblem(X, Y, sample_weight=weights, always=[7], **more).with_shrinkage(0.2)
    every = {S: problem.energy(S) for S in combinations(problem.candidates.tolist(), 3)}
    allowed = [S for S in every if problem.form.rules.allow(np.array(S))]
    assert 0 < len(allowed) < len(every)
    for S in allowed:
        root = np.sqrt(weights)[:, None]
        forced = root * np.column_stack([np.ones(30), X[:, 7]])
        Z, T = ((root * A) - forced @ np.linalg.lstsq(forced, root * A, rcond=None)[0] for A in (X[:, S], Y))
        T = T / np.sqrt(np.sum(T**2, axis=0) / weights.sum())
        A = np.vstack([Z, np.diag(np.sqrt(0.2 * np.sum(Z**2, axis=0)))])
        B = np.vstack([T, np.zeros((3, 2))])
        left = B - A @ np.linalg.lstsq(A, B, rcond=None)[0]
        assert every[S] == pytest.approx(0.5 * np.sum(left**2), rel=1e-9)
    trace = best_subset(problem, 3, effort="quick")
    assert trace.best_energy == pytest.approx(min(every[S] for S in allowed), rel=1e-9)
    assert trace.proof is not None
    assert "of these 7 that keep the limits fit better" in proof_sentence(trace.proof)
    curve = select_size(problem, [1, 2, 3], cv=4, effort="quick", progress=False)
    assert all(problem.form.rules.allow(problem.form.positions(S)) for own in curve.fold_supports for S in own)


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
