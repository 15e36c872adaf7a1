"""The fixed-support leave-one-out error: against literal refits, against enumeration, engine against engine."""

import os
import subprocess
import sys
import time
import warnings
from math import comb

import numpy as np
import pytest

from _errors import sentence_of
from _markdown import fenced_blocks
from conftest import ROOT
from pairflip import Schedule, SubsetProblem, anneal
from pairflip.engines import RankTooSmall, WalkPlan
from pairflip.engines.numba import NumbaEngine
from pairflip.engines.reference import ReferenceEngine
from pairflip.philox import chain_keys
from pairflip.testing import (
    Case,
    all_supports,
    balance_error,
    boltzmann,
    check_decisions,
    check_long_walks,
    check_steps,
    enumerate_energies,
    make_plan,
    states,
    stationarity_error,
    transition_matrix,
    walk_one,
)
from test_interrupt import LIMIT, interrupt


def table(rng, M=18, N=9, correlation=0.0):
    X = rng.normal(size=(M, N)) + 1.0
    for j in range(1, N):
        X[:, j] = correlation * X[:, j - 1] + (1 - correlation**2) ** 0.5 * X[:, j]
    return X, X[:, :3] @ np.array([1.0, -1.0, 0.5]) + 0.5 * rng.normal(size=M) + 2.0


def weights(rng, M=18):
    w = rng.exponential(size=M)
    w[[2, 11]] = 0.0
    return w


SETTINGS = {
    "fold": {},
    "global": {"center": "global"},
    "no intercept": {"center": None},
    "weights": {"sample_weight": weights(np.random.default_rng(5))},
    "ridge": {"ridge": 0.7},
    "always": {"always": [1, 4]},
    "all": {"sample_weight": weights(np.random.default_rng(6)), "ridge": 2.0, "always": [3]},
    "all, global": {"center": "global", "sample_weight": weights(np.random.default_rng(7)), "ridge": 1, "always": [3]},
    "all, none": {"center": None, "sample_weight": weights(np.random.default_rng(8)), "ridge": 1.0, "always": [3]},
    "from the columns": {"memory_budget": 0},
}


def refit_without_each_row(X, y, support, center="fold", sample_weight=None, ridge=0.0, always=(), memory_budget=None):
    """Half the weighted sum of squared errors at rows left out one by one, by normal equations."""
    w = np.ones(len(y)) if sample_weight is None else sample_weight
    if center == "global":
        X, y = X - w @ X / w.sum(), y - w @ y / w.sum()
    ones = [np.ones((len(y), 1))] if center == "fold" else []
    design = np.hstack([*ones, X[:, list(always)], X[:, list(support)]])
    penalty = np.zeros(design.shape[1])
    penalty[design.shape[1] - len(support) :] = ridge
    total = 0.0
    for row in np.flatnonzero(w):
        rest = np.delete(np.arange(len(y)), row)
        D, W = design[rest], w[rest]
        coef = np.linalg.solve(D.T @ (W[:, None] * D) + np.diag(penalty), D.T @ (W * y[rest]))
        total += 0.5 * w[row] * (y[row] - design[row] @ coef) ** 2
    return total


@pytest.mark.parametrize("options", SETTINGS.values(), ids=SETTINGS)
def test_it_is_what_refitting_without_each_row_gives(options):
    X, y = table(np.random.default_rng(1))
    problem = SubsetProblem(X, y, **options)
    for support in ([0], [0, 2], [2, 5, 7], [0, 2, 5, 6, 8]):
        given = problem.loo_gram.energy(problem.slots(support))
        assert given == pytest.approx(refit_without_each_row(X, y, support, **options), rel=1e-9)


@pytest.mark.parametrize("options", SETTINGS.values(), ids=SETTINGS)
def test_annealing_finds_the_best_of_all_supports(options):
    problem = SubsetProblem(*table(np.random.default_rng(2), N=11), **options)
    energies = enumerate_energies(problem.loo_gram, 3)
    trace = anneal(problem, 3, objective="loo", chains=8)
    best = all_supports(problem.candidates.size, 3)[np.argmin(energies)]
    np.testing.assert_array_equal(trace.best_support, problem.candidates[best])
    assert trace.best_energy == energies.min()
    assert trace.objective == "loo"
    np.testing.assert_allclose(trace.best_coef, problem.coef(trace.best_support))
    np.testing.assert_allclose(trace.energy[:, -1].min(), trace.best_energy, rtol=1e-9)


def cases():
    rng = np.random.default_rng(3)
    X, y = table(rng, N=14)
    for name, options in SETTINGS.items():
        yield Case(name, SubsetProblem(X, y, **options).loo_gram, 4)
    twice = np.hstack([X[:, :6], X[:, [0, 3]], -2.0 * X[:, [3]]])
    alone = X.copy()
    alone[:, 5] = 0.0
    alone[7, 5] = 1.0  # a row that only this column sees: saturated when it enters
    yield Case("duplicated columns", SubsetProblem(twice, y).loo_gram, 4)
    yield Case("a column of one row", SubsetProblem(alone, y).loo_gram, 4)
    yield Case("ridge, k > M", SubsetProblem(X[:8], y[:8], ridge=0.3).loo_gram, 10)
    yield Case("correlated", SubsetProblem(*table(rng, N=16, correlation=0.99)).loo_gram, 5)
    yield Case("k = 1", SubsetProblem(X, y).loo_gram, 1)
    yield Case("k = N - 1", SubsetProblem(X, y).loo_gram, 13)


CASES = tuple(cases())


@pytest.mark.parametrize("check", [check_decisions, check_steps])
def test_the_compiled_walk_is_the_literal_one(check):
    check(NumbaEngine(), CASES)


def test_long_compiled_walks_are_the_literal_ones():
    check_long_walks(NumbaEngine(), CASES[::4])


def test_the_compiled_walk_is_the_literal_one_where_each_row_nearly_dictates_its_fit():
    X, y = table(np.random.default_rng(15), N=14)
    gram = SubsetProblem(X[:8], y[:8]).loo_gram
    plan = make_plan(gram, 6, [0.0, 0.1, 10.0, 1e3], 300, chains=4)
    given, expected = walk_one(NumbaEngine(), gram, plan), walk_one(ReferenceEngine(), gram, plan)
    for field in ("accepted", "support", "best_support"):
        np.testing.assert_array_equal(getattr(given, field), getattr(expected, field))
    np.testing.assert_allclose(given.energy, expected.energy, rtol=1e-6)
    np.testing.assert_allclose(given.final_energy, expected.final_energy, rtol=1e-9)


def small_cases():
    """Cases with so few supports that the transition matrix can be written down."""
    X, y = table(np.random.default_rng(4), N=7)
    for name, options in SETTINGS.items():
        yield Case(name, SubsetProblem(X, y, **options).loo_gram, 3)
    yield from (case for case in CASES if comb(case.gram.n_columns, case.k) <= 130)


@pytest.mark.parametrize("engine", [NumbaEngine(), ReferenceEngine()], ids=lambda engine: engine.name)
@pytest.mark.parametrize("case", list(small_cases()), ids=lambda case: f"{case.name}, k={case.k}")
def test_flips_leave_the_boltzmann_distribution_alone(engine, case):
    _, energies = states(case.gram, case.k)
    for beta in (0.0, 2.0 / case.gram.yy, 20.0 / case.gram.yy):
        pi = boltzmann(energies, beta)
        P = transition_matrix(engine, case.gram, case.k, beta)
        assert P.min() >= -1e-15
        assert stationarity_error(pi, P) <= 1e-12
        assert balance_error(pi, P) <= 1e-12


def test_workers_do_not_change_the_chains():
    X, y = table(np.random.default_rng(9), M=30, N=25)
    problem = SubsetProblem(X, y)
    one, two = (anneal(problem, 4, objective="loo", chains=6, n_jobs=n) for n in (1, 2))
    for field in ("energy", "acceptance", "supports", "energies"):
        np.testing.assert_array_equal(getattr(one, field), getattr(two, field))


def test_tick_hears_of_every_flip():
    gram, heard = CASES[0].gram, []
    plan = make_plan(gram, 3, [0.0, 1.0, 1e7], [100, 300, 3000], chains=3)
    walk_one(NumbaEngine(), gram, plan, tick=heard.append)
    assert sum(heard) == 3 * 3400


def test_a_hundred_thousand_flips_do_not_drift():
    X, y = table(np.random.default_rng(10), M=60, N=80, correlation=0.9)
    gram = SubsetProblem(X, y).loo_gram
    plan = WalkPlan(8, np.array([1.0, 5.0]) / gram.yy, np.array([50_000, 50_000]), chain_keys(0, 8, None, range(1)))
    walked = walk_one(NumbaEngine(), gram, plan)
    assert walked.accepted.sum() > 20_000
    assert walked.refreshes[0] > 0
    assert walked.final_energy[0] == pytest.approx(gram.energy(walked.support[0]), rel=1e-9)


def test_a_row_that_dictates_its_fit_is_refused_without_a_warning():
    X, y = table(np.random.default_rng(11))
    X[:, 5] = 0.0
    X[7, 5] = 1.0
    problem = SubsetProblem(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert problem.loo_gram.energy(problem.slots([0, 5])) == np.inf
        for engine in ("numba", "reference"):
            trace = anneal(problem, 3, Schedule.geometric(1.0, 1e4, steps=10), 4, engine=engine, objective="loo")
            assert np.isfinite(trace.energy).all()
            assert 5 not in trace.supports


def test_an_absent_row_is_an_absent_row():
    X, y = table(np.random.default_rng(12))
    w = np.ones(18)
    w[[0, 9]] = 0.0
    present = w > 0
    weighted, shorter = SubsetProblem(X, y, sample_weight=w), SubsetProblem(X[present], y[present])
    assert weighted.loo_gram.energy(np.arange(3)) == pytest.approx(shorter.loo_gram.energy(np.arange(3)), rel=1e-12)


def test_it_falls_with_k_where_fresh_rows_say_stop():
    rng = np.random.default_rng(0)
    X, fresh = rng.normal(size=(50, 80)), rng.normal(size=(2000, 80))
    y = X[:, :4].sum(axis=1) + rng.normal(size=50)
    y_fresh = fresh[:, :4].sum(axis=1) + rng.normal(size=2000)
    problem = SubsetProblem(X, y)
    loo, error = [], []
    for k in range(1, 11):
        trace = anneal(problem, k, objective="loo", chains=16)
        loo.append(trace.best_energy / 50)
        predicted = trace.best_intercept + fresh[:, trace.best_support] @ trace.best_coef
        error.append(0.5 * np.mean((y_fresh - predicted) ** 2))
    assert (np.diff(loo) < 0).all()
    assert loo[-1] < 0.4 < 0.5  # below the noise
    assert np.argmin(error) + 1 == 4
    assert error[-1] > 1.5 * error[3]


def test_its_exact_minimum_falls_with_k_too():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 50))
    y = X[:, 0] + rng.normal(size=40)
    gram = SubsetProblem(X, y).loo_gram
    lowest = [enumerate_energies(gram, k).min() for k in (1, 2, 3)]
    assert lowest[0] > lowest[1] > lowest[2]


def nanoseconds(M, k):
    rng = np.random.default_rng(0)
    gram = SubsetProblem(rng.normal(size=(M, 100)), rng.normal(size=M)).loo_gram
    plan = WalkPlan(k, np.zeros(1), np.array([8000]), chain_keys(0, k, None, range(1)))
    spent = []
    for _ in range(4):
        began = time.perf_counter()
        walk_one(NumbaEngine(), gram, plan)
        spent.append(time.perf_counter() - began)
    return min(spent) / 8000 * 1e9


def test_a_flip_costs_no_more_than_rows_times_columns():
    assert nanoseconds(1600, 8) < 3 * 4 * nanoseconds(400, 8)
    assert nanoseconds(400, 32) < 3 * 4 * nanoseconds(400, 8)


def test_bad_values_are_refused_in_one_sentence():
    X, y = table(np.random.default_rng(13))
    problem = SubsetProblem(X, y)

    class Other(NumbaEngine):
        def refuses(self, gram, plan):
            return None if gram.objective == "energy" else f"this engine has no kernel for {gram.objective!r}."

    message = sentence_of(ValueError, lambda: anneal(problem, 2, objective="cv"))
    assert message == "objective is 'cv'; expected 'energy' or 'loo'."
    message = sentence_of(ValueError, lambda: anneal(problem, 2, engine=Other(), objective="loo"))
    assert message == "this engine has no kernel for 'loo'. Use engine=\"numba\" for this one."
    X[:, 0] = 0.0
    X[3, 0] = 1.0
    message = sentence_of(ValueError, lambda: anneal(SubsetProblem(X, y, always=[0]), 2, objective="loo"))
    assert message.startswith(
        "row 4 (the first is row 1) is fitted exactly by what is always in the model, so it has no leave-one-out"
    )


@pytest.mark.parametrize("engine", ["numba", "reference"])
def test_too_many_columns_for_the_rows_are_refused_in_one_sentence(engine):
    rng = np.random.default_rng(0)
    wide = SubsetProblem(rng.normal(size=(8, 12)), rng.normal(size=8))
    anneal(wide, 6, Schedule.geometric(1.0, 2.0, steps=2), 2, engine=engine, objective="loo")
    message = sentence_of(RankTooSmall, lambda: anneal(wide, 7, engine=engine, objective="loo"))
    assert "k is 7, but only 6" in message
    assert "leave every row a leave-one-out error" in message


def test_the_trace_says_what_was_annealed():
    problem = SubsetProblem(*table(np.random.default_rng(14)))
    assert "objective='loo'" in repr(anneal(problem, 2, objective="loo", chains=2))
    plain = anneal(problem, 2, chains=2)
    assert plain.objective == "energy"
    assert "objective" not in repr(plain)
    assert plain.best_energy == pytest.approx(problem.energy(plain.best_support), rel=1e-12)


PAGE = (ROOT / "docs" / "fixed-support-loo.md").read_text(encoding="utf-8")


def test_the_page_runs_and_prints_what_it_shows(tmp_path):
    blocks = fenced_blocks(PAGE)
    (snippet,) = [block.text for block in blocks if block.language == "python"]
    (shown,) = [block.text for block in blocks if block.language == "text"]
    (tmp_path / "snippet.py").write_text(snippet, encoding="utf-8")
    done = subprocess.run([sys.executable, "snippet.py"], cwd=tmp_path, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    assert done.stdout == shown


INTERRUPTED = """
import sys
import numpy as np
from pairflip import Schedule, SubsetProblem, anneal

rng = np.random.default_rng(0)
problem = SubsetProblem(rng.normal(size=(100, 60)), rng.normal(size=100))
options = {"objective": "loo", "n_jobs": int(sys.argv[1])}
anneal(problem, 5, Schedule.geometric(1.0, 2.0, steps=2), chains=2, **options)
print("ready", flush=True)
try:
    anneal(problem, 5, Schedule.geometric(1.0, 2.0, sweeps=20_000), chains=50, **options)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.alone
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT to a process")
@pytest.mark.parametrize("n_jobs", ["1", "2"])
def test_ctrl_c_ends_it(n_jobs):
    code, out, err, seconds = interrupt(INTERRUPTED, n_jobs)
    assert (code, out) == (0, "interrupted\n"), err
    assert seconds < LIMIT
