"""Supports under rules: what is found is the lowest of all that keep them."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from _cases import squares
from _ruled import KINDS
from pairflip import SubsetProblem, anneal, best_subset, prove
from pairflip.report.proof_words import proof_sentence


def test_as_many_as_fit_are_found_where_one_by_one_none_can_follow() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 17))
    y = X[:, [2, 6, 10]].sum(axis=1) + 0.1 * rng.normal(size=40)  # the best three leave no place for six
    problem = SubsetProblem(X, y, min_distance=3)
    assert problem.most_columns == 6
    trace = best_subset(problem, 6, effort="quick", prove=False)
    apart = [S for S in combinations(range(17), 6) if np.diff(S).min() >= 3]
    assert trace.best_energy == pytest.approx(min(problem.energy(S) for S in apart), rel=1e-9)


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


@pytest.mark.parametrize("kind", KINDS)
def test_annealing_and_proofs_keep_the_rules(kind: str) -> None:
    problem, k, literal = squares(2, rules=kind)
    candidates = problem.candidates.tolist()
    lowest = min(literal(list(support)).energy for support in combinations(candidates, k))
    assert anneal(problem, k).best_energy == pytest.approx(lowest)
    proof = prove(problem, k)
    assert proof.optimal
    assert proof.energy == pytest.approx(lowest)
    assert "sets that keep the limits" in proof.note
    assert "that keep the limits fit better" in proof_sentence(proof)


RNG = np.random.default_rng(0)
TABLE, TARGET = RNG.normal(size=(30, 12)), RNG.normal(size=30)


@pytest.mark.parametrize(
    ("given", "k", "says"),
    [
        ({"min_distance": 4}, 6, "with min_distance at most 3 columns can be chosen together; expected k up to 3"),
        ({"groups": [*"aaaabbbbbbbb"], "one_per_group": True}, 6, "with one_per_group at most"),
        (
            {"groups": [*"aabbccddeeff"], "one_per_group": True, "min_distance": 3},
            6,
            "with one_per_group and min_distance no more than 4 columns were found that keep all of them",
        ),
        ({"X": np.tile(TABLE[:, :6], 2), "hierarchy": {11: [0]}}, 8, "only 6 of the candidate columns are linearly"),
        ({"min_distance": 2, "engine": "cuda"}, 2, "engine is 'cuda' and min_distance is given"),
        (
            {"X": np.tile(TABLE, 100), "min_distance": 2, "memory_budget": 1000},
            2,
            "limits on what may be chosen",
        ),
    ],
)
def test_what_cannot_be_chosen_is_refused(given: dict[str, Any], k: int, says: str) -> None:
    given = {"X": TABLE, **given}
    engine = given.pop("engine", "auto")
    with pytest.raises(ValueError, match=re.escape(says)):
        best_subset(SubsetProblem(y=TARGET, **given), k, engine=engine)
