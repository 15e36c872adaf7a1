"""Descents in the deviance: the optimum of every small problem, the same result for any number of threads."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from pairflip import Schedule, SubsetProblem, best_subset


def harder(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(90, 60)) + rng.normal(size=(90, 1))
    return SubsetProblem(X, rng.random(90) < 1 / (1 + np.exp(-X[:, :6].sum(1))), loss="logistic")


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
