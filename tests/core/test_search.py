"""The search finds the best support whatever the table, is the same everywhere, and says what it did."""

import dataclasses
import os
import signal
import threading

import numpy as np
import pytest

from _curves import assert_same_curve
from _errors import sentence_of
from pairflip import Selection, SubsetProblem, anneal, best_subset, select_size
from pairflip.engines import WalkResult
from pairflip.search.best_subset import Interrupted
from pairflip.search.portfolio import settle
from pairflip.testing import best_support

M, N, K = 30, 14, 3


def planted(rows=40, columns=30, seed=0, correlation=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    for j in range(1, columns):
        X[:, j] = correlation * X[:, j - 1] + (1 - correlation**2) ** 0.5 * X[:, j]
    true = [columns // 10, columns // 3, 2 * columns // 3]
    return X, X[:, true] @ [1.0, -1.0, 0.5] + 0.3 * rng.normal(size=rows)


def neighbours(seed=0):
    """Columns that resemble their neighbours, and a target for which greedy choices are often wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(M, N))
    X[:, 1:] += 0.8 * X[:, :-1]
    return X, X @ (rng.normal(size=N) * (rng.random(N) < 0.5)) + rng.normal(size=M)


def bands(seed):
    """Smooth spectra: few columns are independent, and hardly."""
    rng, at = np.random.default_rng(seed), np.linspace(0, 1, 60)
    parts, centres, widths = rng.random((20, 5)), [0.2, 0.35, 0.5, 0.7, 0.85], [0.15, 0.2, 0.25, 0.2, 0.15]
    spectra = parts @ [np.exp(-(((at - c) / w) ** 2) / 2) for c, w in zip(centres, widths, strict=True)]
    X = spectra + 1e-4 * rng.normal(size=(20, 1)) * np.exp(-at)
    return X, parts[:, 0] - parts[:, 2] + 0.01 * rng.normal(size=20)


X, y = neighbours()


def assert_best(trace, problem, k):
    support, energy = best_support(problem, k)
    assert trace.best_support.tolist() == support.tolist()
    assert trace.best_energy == pytest.approx(energy, rel=1e-10)
    for field in dataclasses.fields(trace):
        value = getattr(trace, field.name)
        assert not isinstance(value, (float, np.ndarray)) or np.isfinite(value).all(), field.name


# ---- the optimum


@pytest.mark.parametrize("k", [1, 3, 6, N - 1])
def test_the_best_of_all_supports_where_greedy_choices_are_wrong(k):
    for seed in range(12):
        problem = SubsetProblem(*neighbours(seed))
        assert_best(best_subset(problem, k, prove=False), problem, k)


VARIANTS = {
    "weights": {"sample_weight": np.random.default_rng(1).exponential(size=M)},
    "rows of weight zero": {"sample_weight": np.arange(M) % 3 > 0},
    "always": {"always": [2, 5]},
    "ridge": {"ridge": 20.0},
    "no intercept": {"center": None},
    "centred once": {"center": "global"},
    "all of it": {"sample_weight": np.linspace(0.1, 3.0, M), "always": [0], "ridge": 3.0, "center": "global"},
}


RNG = np.random.default_rng(7)
CHANGED = {  # table, target, factor of the energy
    "small unit of y": (X, 1e-8 * y, 1e-16),
    "large unit of y": (X, 1e8 * y, 1e16),
    "units of columns": (X * 10 ** RNG.uniform(-6, 6, size=N), y, 1.0),
    "signs of columns": (X * RNG.choice([-1.0, 1.0], size=N), y, 1.0),
    "zeros of columns": (X + 1e3 * RNG.normal(size=N), y - 1e3, 1.0),
    "rows repeated": (np.tile(X, (3, 1)), np.tile(y, 3), 3.0),
}


@pytest.mark.parametrize(("table", "target", "factor"), CHANGED.values(), ids=CHANGED)
def test_units_and_repetitions_change_nothing(table, target, factor):
    for k, search in ((2, best_subset), (4, best_subset), (2, anneal)):
        plain, changed = (search(SubsetProblem(*data), k) for data in ((X, y), (table, target)))
        assert changed.best_support.tolist() == plain.best_support.tolist()
        assert changed.best_energy == pytest.approx(factor * plain.best_energy, rel=1e-6)
        # The same temperatures, so the same walks: not merely the same end.
        np.testing.assert_array_equal(changed.supports, plain.supports)
        assert changed.acceptance == pytest.approx(plain.acceptance, abs=0.02)


def test_numbers_come_from_the_table():
    """Also where running numbers are off: against numpy on the raw columns, with a column of ones and with weights."""
    for weights in (np.ones(M), VARIANTS["weights"]["sample_weight"]):
        table, root = X * 1e5 + 1e6, np.sqrt(weights)
        trace = best_subset(SubsetProblem(table, y, sample_weight=weights), K, prove=False)
        for support, energy in zip(trace.supports, trace.energies, strict=True):
            design = root[:, None] * np.column_stack([X[:, support], np.ones(M)])
            residual = root * y - design @ np.linalg.lstsq(design, root * y, rcond=None)[0]
            assert energy == pytest.approx(0.5 * float(residual @ residual), rel=1e-8)
        assert trace.best_energy == pytest.approx(trace.energies.min(), rel=1e-9)
        fitted = table[:, trace.best_support] @ trace.best_coef + trace.best_intercept
        assert 0.5 * np.sum(weights * (y - fitted) ** 2) == pytest.approx(trace.best_energy, rel=1e-8)


# ---- how energies are compared


@pytest.mark.parametrize(
    ("noise", "twins", "best"), [(1e-2, False, [0, 1]), (1e-6, False, [0, 1]), (1.0, True, [2, 3])]
)
def test_a_chain_keeps_the_better_of_its_two_supports(noise, twins, best):
    """Also where both fit almost exactly; where they are equal, it stays where it ended."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 6))
    target = X[:, 0] + 0.5 * noise * X[:, 1] + noise * rng.normal(size=30)
    if twins:
        X[:, 2], X[:, 3] = X[:, 1], -2.0 * X[:, 0]
    form, none = SubsetProblem(X, target).form, np.zeros((1, 1))
    ended, lowest = np.array([[2, 3] if twins else [0, 2]]), np.array([[0, 1]])
    walked = WalkResult(none, none.astype(np.int64), ended, lowest, none[0], none[0].astype(np.int64))
    supports, energies = settle(form, walked)
    assert supports.tolist() == [best]
    assert energies[0] == form.energy(np.array(best))


# ---- the same everywhere, and what a trace says


def test_what_a_trace_says_of_its_search():
    trace = best_subset(SubsetProblem(*planted()), 3)
    assert (trace.method, trace.effort, trace.agreement) == ("auto", "normal", 1.0)
    assert "method='auto', effort='normal'" in repr(trace)
    assert trace.energy.shape == (trace.energies.size, 0)
    assert trace.to_pandas().empty
    assert "x3" in trace._repr_html_()


def test_seconds_are_an_effort():
    trace = best_subset(SubsetProblem(*planted(60, 200, correlation=0.95)), 20, effort=0.5, prove=False)
    assert trace.effort == "0.5 s"
    assert trace.seconds < 5.0


@pytest.mark.parametrize("effort", ["long", 0, -1.0, float("nan"), None, True])
def test_what_is_not_an_effort_is_refused(effort):
    said = sentence_of(ValueError, lambda: best_subset(SubsetProblem(*planted(20, 9)), 2, effort=effort))
    assert said.endswith("expected 'quick', 'normal', 'thorough' or a number of seconds above 0.")


def test_what_does_not_go_together_is_refused():
    problem = SubsetProblem(*planted(20, 9))
    said = sentence_of(ValueError, lambda: best_subset(problem, 2, method="x"))
    assert "expected one of 'auto', 'anneal', 'descend'" in said
    said = sentence_of(ValueError, lambda: best_subset(problem, 2, method="descend", chains=3))
    assert said == "method is 'descend' and chains is given; expected method='anneal', or effort instead."
    assert "effort is 3" in sentence_of(ValueError, lambda: Selection(effort=3))
    assert [Selection(chains=3).method, Selection(schedule="paper").method] == ["anneal", "anneal"]
    assert "chains is given" in sentence_of(ValueError, lambda: Selection(method="auto", chains=3))


def test_ctrl_c_carries_what_was_found():
    """The first signal after a wave: the exception has a trace."""
    problem = SubsetProblem(*planted(100, 400, correlation=0.97))
    best_subset(problem, 30, effort="quick", prove=False)  # compiled
    usual = best_subset(problem, 30, prove=False).seconds
    timer = threading.Timer(max(0.5, usual), lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(Interrupted) as caught:
            best_subset(problem, 30, effort="thorough")
    finally:
        timer.cancel()
    assert caught.value.trace.best_support.size == 30
    assert "interrupted" in caught.value.trace.note


# ---- in a selection


def test_a_journal_of_another_effort_is_refused(tmp_path):
    problem = SubsetProblem(*planted(24, 10))
    select_size(problem, [1, 2], 3, journal=tmp_path / "a", effort="quick")
    said = sentence_of(ValueError, lambda: select_size(problem, [1, 2], 3, journal=tmp_path / "a"))
    assert "was made with effort" in said
    said = sentence_of(ValueError, lambda: select_size(problem, [1, 2, 3], 3, journal=tmp_path / "a", effort="quick"))
    assert "largest_size" in said or "largest size" in said


def test_a_run_of_all_columns_is_resumed_at_any_chain(tmp_path):
    problem = SubsetProblem(*planted(24, 5))
    settings = {"sizes": [2, 5], "cv": 3, "seed": 1, "journal": tmp_path / "run"}
    whole = select_size(problem, **settings)
    for path in (tmp_path / "run").glob("tasks-*.jsonl"):
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(line for at, line in enumerate(lines) if at % 2 == 0))
    assert_same_curve(select_size(problem, **settings), whole)


def test_a_search_among_columns_that_are_hardly_independent_ends():
    for seed in (7, 15, 30, 51):
        with pytest.raises(ValueError, match="linearly independent"):
            best_subset(SubsetProblem(*bands(seed)), 10)
