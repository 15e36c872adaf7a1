"""Simulated annealing with several targets and under rules."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from pairflip import Schedule, SubsetProblem, SubsetRegressor, SubsetRegressorCV, anneal, best_subset, select_size
from pairflip.engines.base import Descent, RankTooSmall, first_order
from pairflip.engines.numba import NumbaEngine
from pairflip.engines.reference import ReferenceEngine
from pairflip.moments import Form
from pairflip.philox import chain_keys
from pairflip.rules import NOWHERE, Rules, no_rules
from pairflip.testing import Case
from pairflip.testing.conformance import compare, make_plan, walk_one
from pairflip.testing.exact import balance_error, boltzmann, states, stationarity_error, transition_matrix

RULES = ("none", "groups", "bands", "hierarchy")
WAYS: tuple[Any, ...] = ("square", "table")


def rules_of(kind: str, n: int) -> Rules:
    """At most one of each three neighbours; two places apart; every third column needs the two before it."""
    free = no_rules(n)
    if kind == "groups":
        group = np.arange(n) // 3
        group[-2:] = NOWHERE
        return free._replace(group=group)
    if kind == "bands":
        return free._replace(apart=2.0)
    if kind == "hierarchy":
        needed = [[j - 2, j - 1] if j % 3 == 2 else [] for j in range(n)]
        start = np.concatenate([[0], np.cumsum([len(each) for each in needed])]).astype(np.int64)
        return free._replace(need_start=start, need=np.array([i for each in needed for i in each], np.int64))
    return free


def form_of(
    seed: int, m: int, n: int, q: int, *, correlation: float = 0.0, ridge: float = 0.0, rules: str = "none",
    copies: bool = False,
) -> Form:  # fmt: skip
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n))
    for j in range(1, n):
        X[:, j] = correlation * X[:, j - 1] + (1 - correlation**2) ** 0.5 * X[:, j]
    if copies:
        X[:, 1], X[:, n - 1] = -2.0 * X[:, 0], X[:, 2] + X[:, 3]
    Y = X[:, rng.choice(n, 3, replace=False)] @ rng.normal(size=(3, q)) + 0.7 * rng.normal(size=(m, q))
    form = SubsetProblem(X, Y, ridge=ridge).form
    form.rules = rules_of(rules, n)
    return form


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("q", [1, 2, 5])
def test_chains_are_those_of_the_reference(q: int, rules: str) -> None:
    for seed, ridge in ((0, 0.0), (1, 0.5)):
        form = form_of(10 * q + seed, 20, 15, q, correlation=0.5, ridge=ridge, rules=rules)
        for way in WAYS:
            compare(NumbaEngine(way), Case(f"{q} targets, {rules}, {way}", form, 4), "decisions")


@pytest.mark.parametrize("rules", RULES)
def test_nearly_dependent_columns_under_rules(rules: str) -> None:
    for seed, correlation, copies in ((0, 0.9999, False), (1, 0.999999, False), (2, 0.5, True)):
        form = form_of(seed, 25, 14, 3, correlation=correlation, rules=rules, copies=copies)
        for way in WAYS:
            walked = walk_one(NumbaEngine(way), form, make_plan(form, 4, [0.0, 10.0, 1e4, 1e14], 400, chains=2))
            exact = [form.energy(support) for support in walked.support]
            assert np.isfinite(walked.energy).all()
            np.testing.assert_allclose(walked.final_energy, exact, atol=1e-5 * form.yy)


@pytest.mark.parametrize("rules", ["none", "bands"])
def test_long_walks_freeze_and_thaw_as_those_of_the_reference(rules: str) -> None:
    """Rounding adds up until P is computed anew; tables come and go."""
    compare(NumbaEngine(), Case(f"long, {rules}", form_of(8, 40, 20, 3, correlation=0.9, rules=rules), 4), "long")


def test_p_is_computed_anew_before_rounding_counts() -> None:
    form = form_of(9, 60, 40, 3, correlation=0.99)
    walked = walk_one(NumbaEngine(), form, make_plan(form, 6, [0.0, 5.0], 30_000))
    assert walked.refreshes[0] > 0
    assert abs(walked.final_energy[0] - form.energy(walked.support[0])) <= 1e-11 * form.yy


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("engine", [NumbaEngine(), ReferenceEngine()], ids=["numba", "reference"])
def test_the_transition_matrix_keeps_the_boltzmann_distribution(engine: Any, rules: str) -> None:
    for seed, copies, ridge in ((0, False, 0.0), (1, True, 0.0), (2, False, 0.3)):
        form = form_of(seed, 12, 7, 2, rules=rules, copies=copies, ridge=ridge)
        for beta in (0.0, 2.0, 20.0):
            P = transition_matrix(engine, form, 3, beta / form.yy)
            np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-12)  # nothing leads out of what is allowed
            pi = boltzmann(states(form, 3)[1], beta / form.yy)
            assert P.min() >= -1e-15
            assert stationarity_error(pi, P) <= 1e-12
            assert balance_error(pi, P) <= 1e-13


def test_flip_energies_are_differences_of_qr_energies() -> None:
    for rules in RULES:
        for seed, correlation in ((0, 0.3), (1, 0.9999), (2, 0.999999)):
            form = form_of(seed, 25, 12, 3, correlation=correlation, rules=rules, copies=seed == 0)
            order = first_order(form, 4, chain_keys(5, 4, None, 0)[0])
            expected = ReferenceEngine().flip_energies(form, order, 4)
            given = NumbaEngine().flip_energies(form, order.copy(), 4)
            np.testing.assert_array_equal(np.isinf(given), np.isinf(expected))
            fine = np.isfinite(expected)
            np.testing.assert_allclose(given[fine], expected[fine], rtol=0, atol=1e-9 * form.yy)


def test_a_first_support_keeps_the_rules_however_tight_they_are() -> None:
    form = form_of(0, 20, 9, 2, rules="bands")
    for seed in range(20):  # only every second column, five of nine: most random orders leave no room
        order = first_order(form, 5, chain_keys(seed, 5, None, 0)[0])
        assert sorted(order[:5].tolist()) == [0, 2, 4, 6, 8]
        assert sorted(order.tolist()) == list(range(9))
    with pytest.raises(RankTooSmall):
        first_order(form, 6, chain_keys(0, 6, None, 0)[0])
    needs = form_of(0, 20, 9, 2, rules="hierarchy")
    for seed in range(20):
        assert needs.rules.allow(np.sort(first_order(needs, 8, chain_keys(seed, 8, None, 0)[0])[:8]))


def test_threads_and_a_descent_afterwards() -> None:
    form = form_of(3, 30, 25, 3, correlation=0.7)
    plan = make_plan(form, 4, [1.0, 100.0], 200, chains=5, seed=1)
    one, two = walk_one(NumbaEngine(), form, plan), NumbaEngine().walk([(form, plan)], n_jobs=2)[0]
    np.testing.assert_array_equal(one.support, two.support)
    np.testing.assert_array_equal(one.energy, two.energy)
    (then,) = NumbaEngine().walk([(form, type(plan)(**{**plan.__dict__, "descent": Descent()}))])
    np.testing.assert_array_equal(then.accepted, one.accepted)
    for low, start in zip(then.support, one.best_support, strict=True):
        assert form.energy(low) <= form.energy(start)


def table(seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 15))
    return X, X[:, [2, 5, 11]] @ rng.normal(size=(3, 3)) + 0.5 * rng.normal(size=(40, 3))


def test_annealing_is_what_a_schedule_a_number_of_chains_or_the_method_asks_for() -> None:
    problem = SubsetProblem(*table())
    lowest = min(problem.energy(list(support)) for support in combinations(range(15), 3))
    assert best_subset(problem, 3).method == "auto"
    for options in ({"method": "anneal"}, {"chains": 4}, {"schedule": "paper", "chains": 4}):
        trace = best_subset(problem, 3, **options)
        assert trace.method == "anneal"
        assert trace.betas.size
        assert trace.best_energy == pytest.approx(lowest)
        assert trace.best_coef.shape == (3, 3)
        assert trace.proof is not None
    again = anneal(problem, 3, chains=4, n_jobs=2)
    np.testing.assert_array_equal(again.energy, anneal(problem, 3, chains=4).energy)
    assert best_subset(problem, 3, method="auto").best_energy == pytest.approx(lowest)


def test_folds_are_annealed_where_that_is_asked_for() -> None:
    X, Y = table()
    model = SubsetRegressorCV(sizes=[2, 3], cv=4, method="anneal", chains=2, random_state=0).fit(X, Y)
    assert model.curve_.settings["method"] == "anneal"
    assert model.support_.tolist() == [2, 5, 11]
    one = SubsetRegressor(3, schedule=Schedule.auto(), chains=3, random_state=0).fit(X, Y)
    assert one.support_.tolist() == [2, 5, 11]
    plain = select_size(SubsetProblem(X, Y), sizes=[2, 3], cv=4, method="auto")
    assert plain.settings["method"] == "auto"
