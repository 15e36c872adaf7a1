"""Method and effort: what a portfolio finds, that it is the same everywhere, and what bad input gets."""

import csv
import itertools
import os
import signal
import threading

import numpy as np
import pytest

from _curves_equal import assert_same_curve
from _errors import sentence_of
from pairflip import Selection, SubsetProblem, SubsetRegressor, SubsetRegressorCV, anneal, best_subset, select_size
from pairflip.search.best_subset import Interrupted
from pairflip.search.effort import EFFORTS, as_effort, kick_nanoseconds
from pairflip.search.portfolio import first_best
from pairflip.selection import run_shard


def planted(rows=40, columns=30, seed=0, correlation=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    for j in range(1, columns):
        X[:, j] = correlation * X[:, j - 1] + (1 - correlation**2) ** 0.5 * X[:, j]
    true = [columns // 10, columns // 3, 2 * columns // 3]
    return X, X[:, true] @ [1.0, -1.0, 0.5] + 0.3 * rng.normal(size=rows)


def enumerated(problem, k):
    """The lowest energy of all supports."""
    return min(problem.energy(list(s)) for s in itertools.combinations(range(problem.n_columns), k))


@pytest.mark.parametrize("effort", ["quick", "normal"])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_small_supports_are_the_best_of_all(k, effort):
    for seed in range(4):
        problem = SubsetProblem(*planted(24, 14, seed, 0.9))
        assert best_subset(problem, k, seed=seed, effort=effort, prove=False).best_energy == pytest.approx(
            enumerated(problem, k)
        )


def test_a_search_is_the_same_with_any_number_of_threads():
    problem = SubsetProblem(*planted(60, 80))
    one, two = (best_subset(problem, 8, seed=3, n_jobs=jobs) for jobs in (1, 2))
    assert one.best_support.tolist() == two.best_support.tolist()
    assert one.supports.tolist() == two.supports.tolist()
    assert one.energies.tolist() == two.energies.tolist()


def test_the_reference_engine_finds_the_same():
    problem = SubsetProblem(*planted(20, 9))
    ours, literal = (
        best_subset(problem, 3, effort="quick", engine=engine, prove=False) for engine in ("numba", "reference")
    )
    assert ours.supports.tolist() == literal.supports.tolist()


def test_what_a_trace_says_of_its_search():
    trace = best_subset(SubsetProblem(*planted()), 3)
    assert (trace.method, trace.effort) == ("auto", "normal")
    assert "method='auto', effort='normal'" in repr(trace)
    assert trace.energy.shape == (trace.energies.size, 0)
    assert trace.agreement == 1.0
    assert trace.to_pandas().empty
    assert "x3" in trace._repr_html_()


def test_a_schedule_or_chains_ask_for_annealing():
    problem = SubsetProblem(*planted(20, 9))
    assert anneal(problem, 2, chains=2).method == "anneal"
    assert anneal(problem, 2, "paper", chains=1).betas.size == 100
    assert Selection(chains=3).method == "anneal"
    assert Selection(schedule="paper").method == "anneal"
    assert Selection().method == "auto"


def test_seconds_are_kept():
    problem = SubsetProblem(*planted(60, 200, correlation=0.95))
    trace = best_subset(problem, 20, effort=0.5, prove=False)
    assert trace.effort == "0.5 s"
    assert trace.seconds < 5.0


@pytest.mark.parametrize("effort", ["long", 0, -1.0, float("nan"), None, True])
def test_what_is_not_an_effort_is_refused(effort):
    said = sentence_of(ValueError, lambda: best_subset(SubsetProblem(*planted(20, 9)), 2, effort=effort))
    assert said.endswith("expected 'quick', 'normal', 'thorough' or a number of seconds above 0.")


def test_what_does_not_go_together_is_refused():
    problem = SubsetProblem(*planted(20, 9))
    assert "expected one of 'auto', 'anneal', 'descend'" in sentence_of(
        ValueError, lambda: best_subset(problem, 2, method="x")
    )
    said = sentence_of(ValueError, lambda: best_subset(problem, 2, method="descend", chains=3))
    assert said == "method is 'descend' and chains is given; expected method='anneal', or effort instead."
    assert "effort is 3" in sentence_of(ValueError, lambda: Selection(effort=3))
    assert "chains is given" in sentence_of(ValueError, lambda: Selection(method="auto", chains=3))


def test_ctrl_c_carries_what_was_found():
    """The first signal after a wave: the exception has a trace."""
    X, y = planted(100, 400, correlation=0.97)
    problem = SubsetProblem(X, y)
    best_subset(problem, 30, prove=False)  # compiled
    timer = threading.Timer(3.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(Interrupted) as caught:
            best_subset(problem, 30, effort="thorough")
    finally:
        timer.cancel()
    assert caught.value.trace.best_support.size == 30
    assert "interrupted" in caught.value.trace.note


def test_the_cost_model_grows_with_all_that_costs():
    form = SubsetProblem(*planted()).form
    X, y = planted()
    several = SubsetProblem(X, np.stack([y, X[:, 0] - y], axis=1)).form
    assert kick_nanoseconds(form, 2) < kick_nanoseconds(form, 8) < kick_nanoseconds(several, 8)
    assert as_effort(EFFORTS["quick"]) is EFFORTS["quick"]


@pytest.mark.parametrize("effort", ["quick", "normal"])
def test_a_curve_is_the_same_however_it_is_worked_on(effort, tmp_path):
    problem = SubsetProblem(*planted(24, 16))
    settings = {"sizes": range(1, 5), "cv": 4, "seed": 2, "effort": effort}
    plain = select_size(problem, **settings)
    assert_same_curve(select_size(problem, **settings, n_jobs=2), plain)
    assert_same_curve(select_size(problem, **settings, journal=tmp_path / "a"), plain)
    assert_same_curve(select_size(problem, **settings, journal=tmp_path / "a"), plain)
    for part in (1, 2):
        run_shard(problem, **settings, journal=tmp_path / "b", shard=(part, 2))
    assert_same_curve(select_size(problem, **settings, journal=tmp_path / "b"), plain)


def test_a_journal_of_another_effort_is_refused(tmp_path):
    problem = SubsetProblem(*planted(24, 10))
    select_size(problem, [1, 2], 3, journal=tmp_path / "a", effort="quick")
    said = sentence_of(ValueError, lambda: select_size(problem, [1, 2], 3, journal=tmp_path / "a"))
    assert "was made with effort" in said
    said = sentence_of(ValueError, lambda: select_size(problem, [1, 2, 3], 3, journal=tmp_path / "a", effort="quick"))
    assert "largest_size" in said or "largest size" in said


@pytest.mark.parametrize("cv", ["loo", 5])
def test_every_fold_is_the_best_of_its_training_rows(cv):
    """Nested enumeration: supports, training energies and held-out errors."""
    X, y = planted(16, 9, 3)
    problem = SubsetProblem(X, y)
    curve = select_size(problem, [1, 2, 3], cv)
    folds = [np.flatnonzero(curve.held_out_fold == f) for f in range(curve.n_folds)]
    for at, k in enumerate([1, 2, 3], start=1):
        squares, energies = [], []
        for f, places in enumerate(folds):
            held = curve.held_out_rows[places]
            rest = np.setdiff1d(np.arange(16), held)
            inside = SubsetProblem(X[rest], y[rest])
            best = min(itertools.combinations(range(9), k), key=lambda s: inside.energy(list(s)))
            assert curve.fold_supports[at][f].tolist() == list(best)
            fit = inside.fit(list(best))
            squares += list((y[held] - X[np.ix_(held, fit.support)] @ fit.coef - fit.intercept) ** 2)
            energies.append(fit.energy / rest.size)
        assert curve.cv_error[at] == pytest.approx(0.5 * np.mean(squares), rel=1e-8)
        assert curve.energy_per_row[at] == pytest.approx(np.mean(energies), rel=1e-8)


def test_estimators_take_method_and_effort():
    X, y = planted()
    assert SubsetRegressor(3, effort="quick", random_state=0).fit(X, y).support_.tolist() == [3, 10, 20]
    model = SubsetRegressorCV(range(1, 5), cv=5, effort="quick", random_state=0).fit(X, y)
    assert model.curve_.settings["effort"] == "quick"
    assert set(model.support_) >= {3, 10}


def test_shared_tables_exactly(shared_data):
    """Every optimum that was found by exhaustive search, with the defaults."""
    tables = {}
    for row in csv.DictReader((shared_data / "reference_exact.csv").open()):
        if row["rows"] != "all" or not int(row["K"]) < int(row["N"]) <= 500:
            continue
        place = row["file"], row["target"]
        if place not in tables:
            with (shared_data / row["file"]).open() as file:
                head, *lines = list(csv.reader(file))
            table = np.array(lines, float)
            columns = [i for i, name in enumerate(head) if not name.startswith("target_")]
            tables[place] = SubsetProblem(table[:, columns], table[:, head.index(row["target"])])
        trace = best_subset(tables[place], int(row["K"]), seed=5, prove=False)
        assert 2 * trace.best_energy <= float(row["rss"]) * (1 + 1e-6), (place, row["K"])
    assert len(tables) > 8


def test_a_run_of_all_columns_is_resumed_at_any_chain(tmp_path):
    problem = SubsetProblem(*planted(24, 5))
    settings = {"sizes": [2, 5], "cv": 3, "seed": 1, "journal": tmp_path / "run"}
    whole = select_size(problem, **settings)
    for path in (tmp_path / "run").glob("tasks-*.jsonl"):
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(line for at, line in enumerate(lines) if at % 2 == 0))
    assert_same_curve(select_size(problem, **settings), whole)


def test_of_equal_supports_the_first_counts():
    assert first_best(np.array([1.0 + 1e-12, 1.0, 2.0]), 10.0) == 0
