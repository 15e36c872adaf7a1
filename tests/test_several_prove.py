"""Proofs with several targets and under rules, against literal enumeration."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pytest

from pairflip import SubsetProblem, prove
from pairflip.engines.base import reaches
from pairflip.limits import NOWHERE, Rules, no_rules
from pairflip.search.branch_and_bound import branch_supports
from pairflip.search.exhaustive import Question, enumerate_supports


def random_problem(seed: int, rules: bool = False) -> SubsetProblem:
    """Ties, duplicates, nearly dependent columns, weights, ridge, forced columns, more columns than rows; rules."""
    rng = np.random.default_rng(seed)
    n, q = int(rng.integers(6, 15)), int(rng.integers(2, 5))
    m = int(rng.integers(7, 13)) if seed % 4 == 0 else int(rng.integers(n + 3, 40))
    X = rng.normal(size=(m, n))
    if seed % 2:
        X[:, 1] = X[:, 0] * 3.0
    if seed % 3 == 0:
        X[:, 3] = X[:, 2] + X[:, 4] * 10.0 ** -rng.integers(1, 6)
    if seed % 5 == 0:
        X[:, 5] = X[:, 2] + X[:, 0]
    Y = X[:, :3] @ rng.normal(size=(3, q)) + rng.choice([0.01, 1.0, 3.0]) * rng.normal(size=(m, q))
    weights = rng.integers(0, 3, size=m) + (np.arange(m) < 8) if seed % 6 == 1 else np.ones(m)
    problem = SubsetProblem(
        X, Y, always=[n - 1] if seed % 7 < 2 else [], sample_weight=weights.astype(float),
        ridge=float(rng.choice([0.0, 0.0, 0.5])), center="fold" if seed % 8 else None,
    )  # fmt: skip
    if rules:
        problem.gram.rules = random_rules(rng, problem.gram.n_columns)
    return problem


def random_rules(rng: np.random.Generator, n: int) -> Rules:
    """One of a group, a band, products with their factors, or several of these."""
    found = no_rules(n)
    kind = int(rng.integers(5))
    if kind in (0, 3):
        found = found._replace(group=np.where(rng.random(n) < 0.7, rng.integers(0, max(n // 2, 4), n), NOWHERE))
    if kind in (1, 4):
        found = found._replace(apart=2.0)
    if kind in (2, 3, 4):
        needed = [rng.choice(j, 2, replace=False).tolist() if j > 3 and rng.random() < 0.4 else [] for j in range(n)]
        start = np.concatenate([[0], np.cumsum([len(each) for each in needed])]).astype(np.int64)
        found = found._replace(need_start=start, need=np.array([i for each in needed for i in each], np.int64))
    return found


def literal(problem: SubsetProblem, k: int) -> tuple[list[tuple[int, ...]], Any]:
    """All supports that are not singular and keep the rules, the lowest first, and their energies."""
    every = {s: problem.gram.energy(np.array(s)) for s in combinations(range(problem.gram.n_columns), k)}
    order = sorted((s for s in every if np.isfinite(every[s])), key=lambda s: every[s])
    return order, np.array([every[s] for s in order])


def assert_proved(problem: SubsetProblem, k: int, n_best: int = 4) -> None:
    order, energies = literal(problem, k)
    if not order:
        return
    proof = prove(problem, k, incumbent=problem.candidates[list(order[-1])], n_best=n_best, within=(0.1,))
    yy = problem.gram.yy
    assert proof.optimal
    assert proof.gap == 0
    np.testing.assert_allclose(proof.energies, energies[:n_best], rtol=1e-9, atol=1e-12 * yy)
    equal = reaches(energies, energies[0], yy)
    found = tuple(np.searchsorted(problem.candidates, proof.support).tolist())
    assert found in {s for s, same in zip(order, equal, strict=True) if same}
    assert proof.subsets == comb(problem.gram.n_columns, k)
    near = int(np.count_nonzero(energies <= 1.1 * energies[0] * (1 + 1e-7) + 1e-13 * yy))
    far = int(np.count_nonzero(energies <= 1.1 * energies[0] * (1 - 1e-7)))
    assert far <= proof.counts[0] <= near


@pytest.mark.parametrize("first", [0, 25, *(pytest.param(n, marks=pytest.mark.slow) for n in range(50, 100, 25))])
def test_the_best_sets_are_those_of_literal_enumeration(first: int) -> None:
    for seed in range(first, first + 25):
        assert_proved(random_problem(seed), 1 + seed % 4)


@pytest.mark.parametrize("first", [0, 25])
def test_under_rules_other_sets_are_not_counted(first: int) -> None:
    for seed in range(first, first + 25):
        assert_proved(random_problem(seed, rules=True), 2 + seed % 2)


@pytest.mark.parametrize(
    "first", [0, pytest.param(20, marks=pytest.mark.slow), pytest.param(40, marks=pytest.mark.slow)]
)
def test_both_ways_find_the_same(first: int) -> None:
    """Enumeration and branch and bound, on tables where both are possible, with and without rules."""
    done = 0
    for seed in range(first, first + 20):
        problem, k = random_problem(seed, rules=bool(seed % 2)), 2 + seed % 3
        asked = [Question(problem.gram, k, wanted=3) for _ in range(2)]
        whole, tree = enumerate_supports(asked[0]), branch_supports(asked[1])
        if tree is None or not whole.doubled.size:
            continue
        done += 1
        assert tree.complete
        assert whole.looked == comb(problem.gram.n_columns, k)
        np.testing.assert_allclose(tree.doubled[:3], whole.doubled[:3], rtol=1e-9, atol=1e-12 * problem.gram.yy)
    assert done > 3


def test_branches_are_ruled_out_and_threads_change_nothing() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 40))
    Y = X[:, [2, 5, 11, 20]] @ rng.normal(size=(4, 3)) + 0.3 * rng.normal(size=(80, 3))
    problem = SubsetProblem(X, Y)
    one, two = prove(problem, 4, n_best=5), prove(problem, 4, n_best=5, n_jobs=2)
    assert one.support.tolist() == [2, 5, 11, 20]
    assert one.method == "branch and bound"
    assert one.looked < one.subsets / 20
    np.testing.assert_array_equal(one.supports, two.supports)


def test_a_spent_budget_leaves_a_bound() -> None:
    rng = np.random.default_rng(4)
    X, Y = rng.normal(size=(90, 70)), rng.normal(size=(90, 2))
    problem = SubsetProblem(X, Y)
    proof = prove(problem, 12, budget=0.05)
    assert not proof.optimal
    assert 0 < proof.gap < 1
    whole = problem.gram.energy(np.arange(70))
    assert whole * (1 - 1e-9) <= proof.lower_bound <= proof.energy
    wide = SubsetProblem(rng.normal(size=(20, 60)), rng.normal(size=(20, 2)))
    assert prove(wide, 8, budget=0.05).lower_bound == 0
