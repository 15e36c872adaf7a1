"""Wide tables, used as they are, against ordinary problems of the same values."""

import numpy as np
import pytest

from _errors import sentence_of
from pairflip import Schedule, SubsetProblem, select_size
from pairflip.engines.base import Descent
from pairflip.engines.numba import NumbaEngine
from pairflip.engines.numba.searching import Searcher
from pairflip.losses import squares
from pairflip.losses.wide import WideForm
from pairflip.moments import Form, TrainingForm
from pairflip.philox import chain_keys

M, N, K = 60, 1100, 5
WEIGHTS = np.linspace(0.0, 2.0, M)
OPTIONS = {
    "plain": {},
    "no intercept": {"center": None},
    "centred once": {"center": "global"},
    "weights": {"sample_weight": WEIGHTS},
    "forced": {"always": [3, 1000]},
    "ridge": {"ridge": 0.3},
    "everything": {"always": [7], "sample_weight": WEIGHTS, "ridge": 0.1},
}


def table(dtype="float32", seed=0):
    """Columns of very different means and units, with constant ones among them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(M, N)) * 10.0 ** rng.integers(-3, 4, size=N)
    X[:, 500:900] += 300.0 * np.abs(X[:, 500:900]).max(axis=0)
    X[:, [11, 150, 1099]] = 4.0
    X = X.astype(dtype)
    scaled = X.astype(float) / np.maximum(X.astype(float).std(axis=0), 1e-9)
    return X, scaled[:, [5, 600, 200, 1050]].sum(axis=1) + 0.3 * rng.normal(size=M)


def pair(X, y, **options):
    """The wide problem, and the ordinary one that knows the whole matrix."""
    wide = SubsetProblem(X, y, memory_budget=0, **options)
    whole = SubsetProblem(np.asarray(X, dtype=float), y, memory_budget=2**30, **options)
    assert isinstance(wide.form, WideForm)
    assert type(whole.form) is Form
    assert whole.form.dense
    return wide, whole


def check_forms(wide, whole, rng, rows=8):
    """Two forms are the same to rounding."""
    np.testing.assert_array_equal(wide.candidates, whole.candidates)
    assert wide.yy == pytest.approx(whole.yy, rel=1e-11)
    np.testing.assert_allclose(wide.b, whole.b, atol=1e-12 * np.sqrt(whole.yy))
    np.testing.assert_allclose(wide.penalty, whole.penalty, rtol=1e-10)
    for j in rng.choice(wide.n_columns, rows, replace=False).tolist():
        np.testing.assert_allclose(wide.row(j), whole.row(j), atol=1e-12)
        written = np.empty(wide.n_columns)
        wide.write_rows([j], [written])
        np.testing.assert_allclose(written, whole.row(j), atol=1e-12)
    for _ in range(rows):
        support = rng.choice(wide.n_columns, K, replace=False)
        assert wide.energy(support) == pytest.approx(whole.energy(support), rel=1e-10)
        np.testing.assert_allclose(wide.columns_of(support), whole.columns[support], atol=1e-12)


def check_searches(wide, whole, kicks=6):
    """Paths and chains end in the same supports."""
    engine, key = NumbaEngine(), chain_keys(3, K, None, range(1))[0]
    paths = [engine.path(form, K, passes=2)[0] for form in (wide, whole)]
    for ours, theirs in zip(*paths, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    chains = [Searcher(form, K, lambda _: None).chain(K, key, Descent(kicks, 3), None) for form in (wide, whole)]
    np.testing.assert_array_equal(chains[0].support, chains[1].support)
    assert chains[0].energy == pytest.approx(chains[1].energy, abs=1e-9 * whole.yy)


@pytest.mark.parametrize("name", OPTIONS)
def test_the_form_and_what_is_found(name):
    X, y = table()
    wide, whole = pair(X, y, **OPTIONS[name])
    assert wide.X is X
    check_forms(wide.form, whole.form, np.random.default_rng(1))
    check_searches(wide.form, whole.form)
    support = np.array([5, 200, 600])
    ours, theirs = wide.fit(support), whole.fit(support)
    assert ours.energy == pytest.approx(theirs.energy, rel=1e-10)
    np.testing.assert_allclose(ours.coef, theirs.coef, rtol=1e-9)
    assert ours.intercept == pytest.approx(theirs.intercept, rel=1e-8, abs=1e-8)
    assert wide.hash == whole.hash
    assert wide.names == whole.names


@pytest.mark.parametrize("room", [2**26, 0], ids=["by subtraction", "on its own rows"])
@pytest.mark.parametrize("name", OPTIONS)
def test_folds(name, room, monkeypatch):
    X, y = table()
    wide, whole = pair(X, y, **OPTIONS[name])
    rows = [4, 17, 18, 50]
    expected = whole.held_out(rows)
    monkeypatch.setattr(squares, "HELD_OUT_BYTES", room)
    fold = wide.held_out(rows)
    assert isinstance(fold, TrainingForm if room else WideForm)
    check_forms(fold, expected, np.random.default_rng(2))
    if name == "everything":
        check_searches(fold, expected)


def test_a_fold_whose_rows_dwarf_the_others_makes_its_own_pass():
    X, y = table()
    X[9] *= 1e6
    wide, whole = pair(X, y)
    fold, expected = wide.held_out([9]), whole.held_out([9])
    assert isinstance(fold, WideForm)
    check_forms(fold, expected, np.random.default_rng(3))


@pytest.mark.parametrize("order", ["C", "F", "every second column"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_orders_and_files(order, dtype, tmp_path):
    X, y = table(dtype)
    np.save(tmp_path / "X.npy", np.repeat(X, 2, axis=1) if order[0] == "e" else np.asarray(X, order=order))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert mapped.flags.f_contiguous == (order == "F")
    wide, whole = pair(mapped[:, ::2] if order[0] == "e" else mapped, y)
    assert order[0] == "e" or np.shares_memory(wide.X, mapped)
    check_forms(wide.form, whole.form, np.random.default_rng(4))
    check_searches(wide.form, whole.form, kicks=2)
    assert wide.hash == whole.hash


def test_products_columns_rows_and_rank():
    X, y = table()
    wide, whole = (problem.form for problem in pair(X, y, always=[3]))
    vectors = whole.columns[[4, 70, 1000]]
    np.testing.assert_allclose(wide.products(vectors), whole.products(vectors), atol=1e-12)
    np.testing.assert_allclose(wide.on_rows(np.array([0, 5])), whole.on_rows(np.array([0, 5])), atol=1e-12)
    np.testing.assert_allclose(wide.columns, whole.columns, atol=1e-12)
    assert wide.rank() == whole.rank() == M - 2


def test_magnitudes_beyond_squares():
    X, y = table("float64")
    X[:, 100:140] *= 1e200
    X[:, 1010:1040] *= 1e-200
    wide, whole = pair(X, y)
    check_forms(wide.form, whole.form, np.random.default_rng(5), rows=4)
    np.testing.assert_allclose(wide.form.row(120), whole.form.row(120), atol=1e-12)


def test_mostly_constant_columns_make_an_ordinary_problem():
    X, y = table()
    X[:, 10:] = 1.0
    problem = SubsetProblem(X, y, memory_budget=8 * 100)
    assert type(problem.form) is Form
    assert problem.form.dense
    assert problem.candidates.tolist() == list(range(10))
    assert problem.held_out([3]).n_columns == 10


def test_small_blocks(monkeypatch):
    monkeypatch.setattr("pairflip.projection.BYTES", 8 * M * 100)
    X, y = table()
    wide, whole = pair(X, y, always=[150])
    assert len(wide.form._blocks) == 11
    check_forms(wide.form, whole.form, np.random.default_rng(7))
    check_searches(wide.form, whole.form)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_missing_values_are_refused_in_one_sentence(value):
    X, y = table()
    X[3, 1050] = value
    message = sentence_of(ValueError, lambda: SubsetProblem(X, y, memory_budget=0))
    assert message.startswith("X contains NaN or infinity in column 'x1050' (1 value)")


def test_held_out_errors_are_those_of_the_ordinary_problem():
    X, y = table("float64")
    schedule = Schedule.geometric(1.0, 1e4, steps=3, sweeps=1, unit="greedy")
    curves = [
        select_size(problem, [1, 3], 4, schedule=schedule, chains=1, seed=2, polish=False) for problem in pair(X, y)
    ]
    for size in (1, 3):
        same = [curve.supports[curve.at(size)].tolist() for curve in curves]
        assert same[0] == same[1]
    np.testing.assert_allclose(curves[0].cv_error, curves[1].cv_error, rtol=1e-9)
