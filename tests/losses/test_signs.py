"""Coefficients of given signs: energies, fits and searches against literal computation."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.optimize import lsq_linear, nnls

from pairflip import SubsetProblem, best_subset, prove
from pairflip.engines.base import RankTooSmall
from pairflip.least_squares import SINGULAR


def literal(case: dict[str, Any], support: Any) -> tuple[float, Any]:
    """E+(S) and the coefficients by nonnegative least squares on the rows; infinite where columns are dependent."""
    S, root = list(support), np.sqrt(case["w"])[:, None]
    ones = np.ones((len(case["X"]), int(case["center"] == "fold")))
    Z = np.hstack([ones, case["X"][:, case["always"]]]) * root

    def beside(A: Any) -> Any:
        return A - Z @ np.linalg.lstsq(Z, A, rcond=None)[0] if Z.shape[1] else A

    t, A = beside(beside(case["y"][:, None] * root))[:, 0], beside(beside(case["X"][:, S] * root))
    A, t = np.vstack([A, np.sqrt(case["ridge"]) * np.eye(len(S))]), np.append(t, np.zeros(len(S)))
    norms = np.linalg.norm(A, axis=0)
    A = A / norms
    if np.linalg.svd(A, compute_uv=False)[-1] < 1e-8 or np.max(np.diag(np.linalg.inv(A.T @ A))) > 1.0 / SINGULAR:
        return float("inf"), None
    sign = case["signs"][S]
    free = np.flatnonzero(sign == 0)  # the difference of two that are not negative
    x, left = nnls(np.hstack([A * np.where(sign == 0, 1, sign), -A[:, free]]), t)
    coef = x[: len(S)] * np.where(sign == 0, 1, sign)
    coef[free] -= x[len(S) :]
    return 0.5 * float(left) ** 2, coef / norms


def small(seed: int) -> dict[str, Any]:
    """A small problem of one of several kinds: all positive, mixed signs, forced columns, weights, duplicates."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(14, 26)), int(rng.integers(6, 11))
    X = rng.normal(size=(m, n)) * 10.0 ** rng.integers(-3, 4, size=n)
    if seed % 3 == 0:  # all columns alike
        X = (X / X.std(axis=0) + 2.0 * rng.normal(size=(m, 1))) * X.std(axis=0)
    if seed % 4 == 1:
        X[:, 1] = X[:, 0] * 3.0
    if seed % 7 == 2:
        X[:, 3] = X[:, 2] + X[:, 4] * np.std(X[:, 2]) / np.std(X[:, 4]) * 10.0 ** -rng.integers(1, 5)
    always = [n - 1] if seed % 5 == 0 else []
    signs = np.ones(n, dtype=int) if seed % 2 else rng.integers(-1, 2, size=n)
    if seed % 2 == 0:
        signs[0], signs[always] = 1, 0
    effects = rng.normal(size=n)
    if seed % 11 == 3:  # whatever has an effect has the wrong sign
        effects = -np.abs(effects) * np.where(signs == 0, -1, signs)
    return {
        "X": X,
        "y": (X / X.std(axis=0)) @ effects + rng.normal(size=m),
        "w": rng.integers(0, 3, size=m) + (np.arange(m) < 8.0) if seed % 4 == 2 else np.ones(m),
        "always": always,
        "ridge": float(rng.choice([0.0, 0.0, 0.5])),
        "center": "fold" if seed % 6 else None,
        "signs": signs,
    }


def problem_of(case: dict[str, Any]) -> SubsetProblem:
    return SubsetProblem(
        case["X"], case["y"], always=case["always"], sample_weight=case["w"], ridge=case["ridge"],
        center=case["center"], positive=case["signs"].tolist(),
    )  # fmt: skip


@pytest.mark.parametrize("first", [0, 20, *(pytest.param(n, marks=pytest.mark.slow) for n in range(40, 200, 20))])
@pytest.mark.usefixtures("searched")
def test_what_is_found_is_the_lowest_of_all_supports(first: int) -> None:
    idle = 0
    for seed in range(first, first + 20):
        case = small(seed)
        problem, k = problem_of(case), 1 + seed % 5
        every = {S: literal(case, S) for S in combinations(problem.candidates.tolist(), k)}
        for at, (S, (energy, coef)) in enumerate(every.items()):
            assert problem.energy(S) == pytest.approx(energy, rel=1e-6), (seed, S)
            if coef is not None and at % 8 == 0:
                found = problem.fit(S).coef
                np.testing.assert_allclose(found, coef, rtol=1e-5, atol=1e-8 * np.abs(coef).max())
                assert np.all(found * case["signs"][list(S)] >= 0)
        lowest = min(energy for energy, _ in every.values())
        if not np.isfinite(lowest):
            with pytest.raises(RankTooSmall):
                best_subset(problem, k)
            continue
        trace = best_subset(problem, k)
        assert trace.best_energy == pytest.approx(lowest, rel=1e-9), seed
        assert trace.method == "descend"
        idle += "coefficient zero" in trace.note
    assert idle > 0 or first  # supports of which some column carries nothing are among them


RULES: list[dict[str, Any]] = [
    {"groups": ["a", "a", "b", "b", "c", "c", "", ""], "one_per_group": True},
    {"min_distance": 2},
    {"hierarchy": {"x4": ["x0", "x1"], "x5": ["x2"]}},
]


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("relative", [0.0, 0.1])
def test_rules_and_a_relative_ridge_are_kept_together_with_signs(rules: dict[str, Any], relative: float) -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(30, 8)) + rng.normal(size=(30, 1))
        y = X @ rng.normal(size=8) + rng.normal(size=30)
        signs = {f"x{j}": 1 - 2 * (j % 2) for j in range(7)}
        problem = SubsetProblem(X, y, positive=signs, **rules).with_shrinkage(relative)
        k, form = 2 + seed % 2, problem.form
        allowed = [S for S in combinations(range(8), k) if form.rules.allow(np.array(S))]
        assert 0 < len(allowed) < len(list(combinations(range(8), k)))
        trace = best_subset(problem, k)
        assert trace.best_energy == pytest.approx(min(problem.energy(S) for S in allowed), rel=1e-9)
        assert tuple(trace.best_support.tolist()) in allowed
        A = X[:, list(allowed[0])] - X[:, list(allowed[0])].mean(axis=0)
        lower, upper = (
            [bound if signs.get(f"x{j}") == sign else other for j in allowed[0]]
            for sign, bound, other in ((1, 0.0, -np.inf), (-1, 0.0, np.inf))
        )
        ridge = np.diag(np.sqrt(relative) * np.linalg.norm(A, axis=0))
        found = lsq_linear(np.vstack([A, ridge]), np.append(y - y.mean(), np.zeros(k)), (lower, upper), tol=1e-14)
        assert problem.energy(allowed[0]) == pytest.approx(found.cost, rel=1e-9)


def test_chains_do_not_depend_on_threads() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 60))
    problem = SubsetProblem(X, X[:, :8] @ rng.normal(size=8) + rng.normal(size=40), positive=True)
    one, two = (best_subset(problem, 5, seed=4, n_jobs=jobs) for jobs in (1, 2))
    np.testing.assert_array_equal(one.supports, two.supports)
    np.testing.assert_array_equal(one.energies, two.energies)


def test_an_exact_fit_is_found() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(30, 20))
    problem = SubsetProblem(X, X[:, [3, 11, 17]] @ [1.0, 2.0, 0.5], positive=True)
    assert best_subset(problem, 3).best_support.tolist() == [3, 11, 17]


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
    case = small(2)
    free = SubsetProblem(case["X"], case["y"], positive=[0] * case["X"].shape[1])
    assert free.loss.quadratic
    mixed = SubsetProblem(case["X"], case["y"], positive={0: 1})
    ordinary = SubsetProblem(case["X"], case["y"])
    assert mixed.energy([2, 4]) == ordinary.energy([2, 4])
    assert mixed.energy([0, 4]) >= ordinary.energy([0, 4])
    assert "limits=['positive']" in repr(mixed)
