"""Supports under rules: what is found is the lowest of all that keep them; a broken engine is caught."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from _ruled import KINDS, admissible, problem_of, table
from pairflip import SubsetProblem, anneal, best_subset, prove
from pairflip.engines.reference import ReferenceEngine
from pairflip.report.proof_words import proof_sentence
from pairflip.testing.exact import balance_error, boltzmann, states, stationarity_error, transition_matrix


@pytest.mark.parametrize("kind", KINDS)
def test_refused_flips_keep_the_law_of_the_temperature(kind: str) -> None:
    case = table(4, kind, 8)
    form = problem_of(case).form
    supports, energies = states(form, 3)
    assert 1 < len(supports) <= len(admissible(case, 3))
    for beta in (0.0, 0.05, 1.0):
        P = transition_matrix(ReferenceEngine(), form, 3, beta)
        pi = boltzmann(energies, beta)
        assert stationarity_error(pi, P) < 1e-12
        assert balance_error(pi, P) < 1e-12
        np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-12)  # nothing leads out of what is allowed


@pytest.mark.parametrize("kind", KINDS)
def test_a_random_start_keeps_the_rules(kind: str) -> None:
    problem = problem_of(table(6, kind))
    form, k = problem.form, problem.most_columns - (problem.most_columns == problem.candidates.size)
    for chain in range(10):
        key = np.array([chain, 5], dtype=np.uint32)
        assert np.isfinite(form.energy(np.sort(ReferenceEngine().start(form, k, key)[:k])))


@pytest.mark.parametrize("kind", KINDS)
def test_flips_lead_from_every_support_to_every_other(kind: str) -> None:
    for seed in (0, 3, 5):
        case = table(seed, kind, 9)
        for k in range(1, 6):
            left = {frozenset(S) for S in admissible(case, k)}
            reached = [left.pop()] if left else []
            for S in reached:
                near = {T for T in left if len(S & T) == k - 1}
                left -= near
                reached += near
            assert not left, (seed, k)


def test_as_many_as_fit_are_found_where_one_by_one_none_can_follow() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 17))
    y = X[:, [2, 6, 10]].sum(axis=1) + 0.1 * rng.normal(size=40)  # the best three leave no place for six
    problem = SubsetProblem(X, y, min_distance=3)
    assert problem.most_columns == 6
    case = {"X": X, "y": y, "weights": np.ones(40), "always": [], "limits": {"min_distance": 3}}
    trace = best_subset(problem, 6, effort="quick", prove=False)
    assert trace.best_energy == pytest.approx(min(problem.energy(S) for S in admissible(case, 6)), rel=1e-9)


def test_a_product_whose_factors_say_nothing_is_found() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 10))
    pairs = list(combinations(range(10), 2))
    whole = np.hstack([X, np.stack([X[:, a] * X[:, b] for a, b in pairs], axis=1)])
    names = [f"v{j}" for j in range(10)] + [f"v{a}:v{b}" for a, b in pairs]
    y = whole[:, names.index("v3:v7")] * 2.0 + X[:, 0] + 0.5 * rng.normal(size=120)
    problem = SubsetProblem(whole, y, names=names, hierarchy=True)
    trace = best_subset(problem, 4, effort="quick", prove=False)
    assert [names[j] for j in trace.best_support] == ["v0", "v3", "v7", "v3:v7"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"min_distance": 4}, "with min_distance at most 3 columns can be chosen together; expected k up to 3"),
        ({"groups": {"g": [0, 1, 2, 3], "h": [4, 5, 6, 7, 8, 9]}, "one_per_group": True}, "with one_per_group at most"),
        (
            {"groups": ["a", "a", "b", "b", "c", "c", "d", "d", "e", "e"], "one_per_group": True, "min_distance": 3},
            "with one_per_group and min_distance no more than 4 columns were found that keep all of them",
        ),
    ],
)
def test_more_than_can_be_chosen_is_refused(given: dict[str, Any], says: str) -> None:
    rng = np.random.default_rng(0)
    problem = SubsetProblem(rng.normal(size=(30, 10)), rng.normal(size=30), **given)
    with pytest.raises(ValueError, match=re.escape(says)):
        best_subset(problem, 6)


def test_dependent_columns_that_keep_the_rules_are_too_few() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 12))
    X[:, 6:] = X[:, :6]  # rank 6
    problem = SubsetProblem(X, rng.normal(size=30), hierarchy={11: [0]})
    with pytest.raises(ValueError, match="only 6 of the candidate columns are linearly independent"):
        best_subset(problem, 8)


def test_what_there_is_not_is_refused() -> None:
    problem = problem_of(table(0, "bands"))
    with pytest.raises(ValueError, match="engine is 'cuda' and min_distance is given"):
        best_subset(problem, 2, engine="cuda")


@pytest.mark.parametrize("kind", KINDS)
def test_annealing_and_proofs_keep_the_rules(kind: str) -> None:
    case = table(3, kind, 9)
    problem = problem_of(case)
    lowest = min(problem.energy(support) for support in admissible(case, 3))
    assert anneal(problem, 3).best_energy == pytest.approx(lowest)
    proof = prove(problem, 3)
    assert proof.optimal
    assert proof.energy == pytest.approx(lowest)
    assert "sets that keep the limits" in proof.note
    assert "that keep the limits fit better" in proof_sentence(proof)


def test_a_table_without_a_matrix_is_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="limits on what may be chosen cannot be searched without it"):
        SubsetProblem(rng.normal(size=(20, 1200)), rng.normal(size=20), min_distance=2, memory_budget=1000)


def test_the_form_is_the_ordinary_one_with_rules() -> None:
    case = table(2, "bands")
    ruled, plain = problem_of(case).form, problem_of(case, min_distance=None).form
    assert (ruled.rules.any, plain.rules.any) == (True, False)
    np.testing.assert_array_equal(ruled.targets, plain.targets)
    np.testing.assert_array_equal(ruled.B, plain.B)
