"""Descents in the deviance: the optimum of every small problem, the same result for any number of threads."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from _ruled import KINDS, keeps, table
from pairflip import Schedule, SubsetProblem, best_subset


def small(loss, number):
    """A random problem that can be looked through whole: weights, forced columns and offsets now and then."""
    rng = np.random.default_rng(number)
    m, n, k = int(rng.integers(25, 80)), int(rng.integers(5, 10)), int(rng.integers(1, 4))
    X = rng.normal(size=(m, n)) @ (np.eye(n) + 0.6 * rng.normal(size=(n, n)))
    eta = X[:, :3] @ rng.normal(size=3) * 0.5
    y = (rng.random(m) < 1 / (1 + np.exp(-eta))) if loss == "logistic" else rng.poisson(np.exp(np.clip(eta, -5, 2)))
    y[:2] = 0, 1
    settings = {
        "sample_weight": rng.random(m) if number % 3 == 0 else None,
        "always": [0] if number % 4 == 0 else [],
        "offset": 0.3 * rng.normal(size=m) if loss == "poisson" and number % 5 == 0 else None,
    }
    return SubsetProblem(X, y, loss=loss, **settings), k


@pytest.mark.parametrize("loss", ["logistic", "poisson"])
@pytest.mark.parametrize("first", [0, 20, *(pytest.param(n, marks=pytest.mark.slow) for n in range(40, 200, 20))])
@pytest.mark.usefixtures("searched")
def test_the_optimum_of_small_problems(loss, first):
    for number in range(first, first + 20):
        problem, k = small(loss, number)
        lowest = min(problem.energy(support) for support in combinations(problem.candidates.tolist(), k))
        trace = best_subset(problem, k, seed=number)
        assert trace.best_energy == pytest.approx(lowest, rel=1e-9, abs=1e-12), number
        assert trace.method == "descend"
        assert trace.best_energy == problem.fit(trace.best_support).energy
        np.testing.assert_array_equal(trace.energies, [problem.energy(s) for s in trace.supports])


@pytest.mark.parametrize("loss", ["logistic", "poisson"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("searched")
def test_the_optimum_of_those_that_keep_rules(loss, kind):
    for seed in range(4):
        case = table(seed, kind, most=9)
        y = (case["y"] > np.median(case["y"])) if loss == "logistic" else np.floor(np.abs(case["y"]))
        problem = SubsetProblem(
            case["X"], y, loss=loss, always=case["always"], sample_weight=case["weights"], **case["limits"]
        )
        k = min(2 + seed % 2, problem.most_columns)
        allowed = [S for S in combinations(problem.candidates.tolist(), k) if keeps(case["limits"], S)]
        trace = best_subset(problem, k)
        assert trace.best_energy == pytest.approx(min(map(problem.energy, allowed)), rel=1e-9), seed
        assert tuple(trace.best_support.tolist()) in allowed


def harder(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(90, 60)) + rng.normal(size=(90, 1))
    return SubsetProblem(X, rng.random(90) < 1 / (1 + np.exp(-X[:, :6].sum(1))), loss="logistic")


def test_the_same_seed_gives_the_same_trace_for_any_number_of_threads():
    one, two = (best_subset(harder(), 6, seed=3, n_jobs=jobs) for jobs in (1, 3))
    np.testing.assert_array_equal(one.supports, two.supports)
    np.testing.assert_array_equal(one.energies, two.energies)
    other = best_subset(harder(), 6, seed=4)
    assert not np.array_equal(one.supports, other.supports) or np.array_equal(one.best_support, other.best_support)


def test_no_exchange_of_one_column_improves_what_is_found():
    problem = harder(1)
    trace = best_subset(problem, 5, effort="quick")
    outside = np.setdiff1d(problem.candidates, trace.best_support)
    for leaves in trace.best_support:
        stay = np.setdiff1d(trace.best_support, [leaves])
        assert min(problem.energy([*stay, enters]) for enters in outside) >= trace.best_energy * (1 - 1e-9)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"method": "anneal"}, "method asks"),
        ({"schedule": "paper"}, "schedule asks"),
        ({"schedule": Schedule.paper()}, "schedule asks"),
        ({"chains": 4}, "chains asks"),
        ({"engine": "reference"}, "engine is 'reference'"),
        ({"engine": "cuda"}, "engine is 'cuda'"),
    ],
)
def test_what_is_for_squared_error_only_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        best_subset(harder(), 3, **given)


def test_separated_classes_are_noted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 8))
    trace = best_subset(SubsetProblem(X, X[:, 1] > 0, loss="logistic"), 1)
    assert trace.best_support.tolist() == [1]
    assert "separate the classes" in trace.note


TABLES = ["supernova_bsnip/snia_101x276", "supernova_casi/supernova_casi", "prostate/prostate", "hitters/hitters",
          "diabetes/diabetes_64", "riboflavin/riboflavin", "eyedata/eyedata", "gasoline/gasoline", "tecator/tecator",
          "aquatictox/aquatictox", "attitude/attitude"]  # fmt: skip
MOST = {2: 60, 3: 40}


@pytest.mark.slow
def test_the_optimum_of_real_tables(shared_data):
    """Targets above their median, or above the 80th percentile, are the event: 44 cases."""
    found = []
    for name in TABLES:
        frame = pd.read_csv(shared_data / f"{name}.csv")
        targets = [column for column in frame if column.startswith("target_")]
        y, X = frame[targets[0]].to_numpy(), frame.drop(columns=targets).to_numpy(float)
        for share in (0.5, 0.8):
            for k, most in MOST.items():
                columns = np.unique(np.linspace(0, X.shape[1] - 1, most).astype(int))
                problem = SubsetProblem(X[:, columns], y > np.quantile(y, share), loss="logistic")
                lowest = min(problem.form.energy(np.array(s)) for s in combinations(range(problem.candidates.size), k))
                trace = best_subset(problem, k)
                assert trace.seconds < 10
                found.append(trace.best_energy <= lowest * (1 + 1e-9) + 1e-12)
    assert len(found) == 44
    assert all(found)
