"""Bad input gets one sentence, from the functions and from the estimator; odd but good input gets no NaN.

What the table alone decides is in test_inputs.py as well, word for word; here every door is knocked at.
"""

import dataclasses
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from _errors import sentence_of
from pairflip import Schedule, SubsetProblem, SubsetRegressor
from pairflip.engines import RankTooSmall
from pairflip.search.best_subset import best_subset

M, N, K = 20, 8, 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(M, N))
y = RNG.normal(size=M)
FRAME = pd.DataFrame(X, columns=list("abcdefgh"))


def changed(array, at, value):
    array = array.copy()
    array[at] = value
    return array


def anneal_it(X, y, k, sample_weight=None, **options):
    return best_subset(SubsetProblem(X, y, sample_weight=sample_weight), k, **options)


def fit_it(X, y, k, sample_weight=None, seed=0, **options):
    return SubsetRegressor(k, random_state=seed, **options).fit(X, y, sample_weight)


def sentence(kind, function, **given):
    """The message of the error for the good input with `given` put in."""
    return sentence_of(kind, lambda: function(**({"X": X, "y": y, "k": K} | given)))


def assert_says(message, *words):
    assert [word for word in words if word not in message] == [], message


# ---- the table and the target

DATA = {
    "NaN in X": ({"X": changed(X, (2, 1), np.nan)}, "X contains NaN", "'x1'", "expected finite"),
    "infinity in X": ({"X": changed(X, (0, 3), -np.inf)}, "infinity", "'x3'", "expected finite"),
    "text in X": (
        {"X": FRAME.astype(object).replace(FRAME.iloc[3, 1], "n/a")},
        "text",
        "'b'",
        "expected numbers",
    ),
    "only text": ({"X": np.full((M, 2), "a")}, "text", "'x0', 'x1'", "expected numbers"),
    "dates": (
        {"X": FRAME.assign(a=pd.date_range("2020", periods=M))},
        "X holds dates or durations in column ",
        "'a'",
        "expected",
    ),
    "NaN in y": ({"y": changed(y, 2, np.nan)}, "y contains NaN", "(1 value)", "expected finite"),
    "infinity in y": ({"y": changed(y, [2, 4], np.inf)}, "y contains NaN or infinity", "2 values"),
    "text in y": ({"y": ["a"] * M}, "y holds text", "expected one number per row"),
    "one row": ({"X": X[:1], "y": y[:1]}, "X has 1 row", "expected at least two rows"),
    "no columns": ({"X": X[:, :0]}, "X has no columns", "expected at least one"),
    "one-dimensional X": ({"X": X[:, 0]}, "shape (20,)", "expected a table"),
    "three-dimensional X": ({"X": X[None]}, "shape (1, 20, 8)", "expected a table"),
    "sparse X": ({"X": csr_array(X)}, "sparse", "expected a dense table", "toarray()"),
    "y too short": ({"y": y[:-1]}, "(19,)", "20 rows", "expected one target value per row"),
    "a constant target": ({"y": np.column_stack([y, 0 * y])}, "target 'y1' is constant", "leave it out"),
}


@pytest.mark.parametrize(("given", "words"), [(g, w) for g, *w in DATA.values()], ids=DATA)
def test_bad_data(given, words):
    assert_says(sentence((ValueError, TypeError), anneal_it, **given), *words)


@pytest.mark.parametrize("given", [g for g, *_ in DATA.values()], ids=DATA)
def test_bad_data_for_the_estimator(given):
    """scikit-learn checks first and says it in its own words."""
    with pytest.raises((ValueError, TypeError)):
        fit_it(**({"X": X, "y": y, "k": K} | given))


NOTHING_TO_DO = {
    "all columns constant": ({"X": np.full((M, N), 0.1)}, "none of the 8 columns of X varies", "expected"),
    "all columns zero": ({"X": np.zeros((M, N))}, "none of the 8 columns of X varies", "expected"),
    "y zero": ({"y": np.zeros(M)}, "y is constant", "nothing to predict", "target column"),
    "y constant": ({"y": np.full(M, 0.1)}, "y is constant", "nothing to predict", "target column"),
    "weights zero": ({"sample_weight": np.zeros(M)}, "sample_weight", "at least two rows"),
    "one weight": ({"sample_weight": np.eye(M)[3]}, "sample_weight", "at least two rows"),
    "negative weight": ({"sample_weight": changed(np.ones(M), 3, -1)}, "sample_weight", "negative", ">= 0"),
    "NaN weight": ({"sample_weight": changed(np.ones(M), 3, np.nan)}, "sample_weight", "finite"),
    "too few weights": ({"sample_weight": np.ones(3)}, "(3,)", "20 rows", "one weight per row"),
}


@pytest.mark.parametrize("function", [anneal_it, fit_it])
@pytest.mark.parametrize(("given", "words"), [(g, w) for g, *w in NOTHING_TO_DO.values()], ids=NOTHING_TO_DO)
def test_tables_with_nothing_to_choose_or_to_predict(function, given, words):
    assert_says(sentence(ValueError, function, **given), *words)


# ---- the size

DOUBLED = np.hstack([X[:, :2], 3.0 * X[:, :2], 1.0 - X[:, :2]])


@pytest.mark.parametrize(("function", "name"), [(anneal_it, "k"), (fit_it, "n_nonzero_coefs")])
class TestSize:
    @pytest.mark.parametrize("k", [0, -1, -(10**9)])
    def test_at_least_one_column(self, function, name, k):
        assert_says(sentence(ValueError, function, k=k), f"{name} is {k}", "expected", "1")

    def test_more_columns_than_there_are(self, function, name):
        assert_says(sentence(ValueError, function, k=N + 1), f"{name} is 9", "8", "expected", "that vary")

    def test_constant_columns_do_not_count(self, function, name):
        constant = changed(X, (slice(None), [0, 5]), 1.0)
        assert_says(sentence(ValueError, function, X=constant, k=7), f"{name} is 7", "6", "expected")

    @pytest.mark.parametrize("k", [1.5, 3.0, "3", True, [3], np.nan])
    def test_a_whole_number(self, function, name, k):
        assert_says(sentence(TypeError, function, k=k), f"{name} is {k!r}", "expected a whole number", "8")

    @pytest.mark.parametrize("engine", ["numba", "reference"])
    def test_more_columns_than_are_independent(self, function, name, engine):
        message = sentence(RankTooSmall, function, X=DOUBLED, k=3, engine=engine)
        assert_says(message, "k is 3", "only 2", "expected k <= 2")

    def test_more_columns_than_rows_leave_free(self, function, name):
        """Five rows and an intercept: four columns at most."""
        message = sentence(RankTooSmall, function, X=X[:5], y=y[:5], k=5)
        assert_says(message, "k is 5", "only 4", "expected k <= 4")
        assert_says(sentence(RankTooSmall, function, X=X[:5, :7], y=y[:5], k=6), "only 4")


def test_annealing_all_columns_has_nothing_to_choose():
    message = sentence(ValueError, anneal_it, k=N)
    assert_says(message, "k is 8", "expected k below 8", "nothing to choose")


def test_the_estimator_takes_all_columns_unless_they_are_dependent():
    assert fit_it(X, y, N).support_.tolist() == list(range(N))
    assert_says(sentence(RankTooSmall, fit_it, X=DOUBLED, k=6), "k is 6", "expected k <= 2")


def test_none_is_a_size_for_the_estimator_only():
    assert_says(sentence(TypeError, anneal_it, k=None), "k is None", "expected a whole number")
    assert fit_it(X, y, None).support_.size == 1


def test_numpy_whole_numbers_are_sizes():
    for k in (np.int64(3), np.uint8(3)):
        assert anneal_it(X, y, k).k == 3
        assert fit_it(X, y, k).support_.size == 3


# ---- options

OPTIONS = {
    "engine": ({"engine": "gpu"}, "engine is 'gpu'", "expected one of", "'numba'", "'reference'"),
    "schedule, unknown": ({"schedule": "fast"}, "schedule is 'fast'", "expected 'auto', 'paper'"),
    "schedule, none": ({"schedule": None}, "schedule is None", "expected 'auto', 'paper'"),
    "schedule, list": ({"schedule": [0.1, 1.0]}, "schedule is [0.1, 1.0]", "expected 'auto', 'paper'"),
    "schedule, array": ({"schedule": np.ones(2)}, "schedule is array([1., 1.])", "expected 'auto', 'paper'"),
    "no chains": ({"chains": 0}, "chains is 0", "expected a whole number of at least 1"),
    "negative chains": ({"chains": -4}, "chains is -4", "expected a whole number of at least 1"),
    "fractional chains": ({"chains": 1.5}, "chains is 1.5", "expected a whole number of at least 1"),
    "chains as text": ({"chains": "8"}, "chains is '8'", "expected a whole number of at least 1"),
    "chains as truth": ({"chains": True}, "chains is True", "expected a whole number of at least 1"),
    "seed, negative": ({"seed": -1}, "seed is -1", "expected a whole number from 0 to 2**64 - 1"),
    "seed, too large": ({"seed": 2**64}, f"seed is {2**64}", "expected a whole number from 0 to 2**64 - 1"),
    "no threads": ({"n_jobs": 0}, "n_jobs is 0", "expected", "-1 for all cores"),
    "threads as text": ({"n_jobs": "2"}, "n_jobs is '2'", "expected", "-1 for all cores"),
    "fractional threads": ({"n_jobs": 1.5}, "n_jobs is 1.5", "expected", "-1 for all cores"),
}


@pytest.mark.parametrize("function", [anneal_it, fit_it])
@pytest.mark.parametrize(("given", "words"), [(g, w) for g, *w in OPTIONS.values()], ids=OPTIONS)
def test_bad_options(function, given, words):
    assert_says(sentence(ValueError, function, **given), *words)


@pytest.mark.parametrize("seed", [1.5, "a", None, True])
def test_a_seed_is_a_whole_number(seed):
    message = sentence(TypeError, anneal_it, seed=seed)
    assert_says(message, f"seed is {seed!r}", "expected a whole number from 0 to 2**64 - 1")


@pytest.mark.parametrize("seed", [1.5, "a", [1, 2]])
def test_a_random_state_is_what_scikit_learn_says(seed):
    with pytest.raises(ValueError, match="cannot be used to seed"):
        fit_it(X, y, K, seed=seed)


@pytest.mark.parametrize("function", [anneal_it, fit_it])
@pytest.mark.parametrize("engine", [None, 5])
def test_what_is_no_engine(function, engine):
    message = sentence((ValueError, TypeError), function, engine=engine)
    assert_says(message, f"engine is {engine!r}", "expected one of", "'numba'", "'reference'")


def test_errors_survive_the_way_back_from_another_process():
    error = RankTooSmall(3, 2)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


# ---- odd but good

ODD = {
    "constant columns": np.column_stack([X, np.ones(M), np.zeros(M), np.full(M, 1e9 / 3)]),
    "duplicated columns": np.hstack([X, X, -2.0 * X + 1.0]),
    "nearly duplicated columns": np.hstack([X, X * (1 + 1e-9 * RNG.normal(size=X.shape))]),
    "dependent columns": np.hstack([X, X @ RNG.normal(size=(N, 6))]),
    "indicator columns": np.hstack([X, np.eye(M)]),
    "more columns than rows": np.hstack([X, RNG.normal(size=(M, 40))]),
    "columns of every size": np.hstack([X, X]) * np.geomspace(1e-100, 1e100, 2 * N),
}


@pytest.mark.parametrize("engine", ["numba", "reference"])
@pytest.mark.parametrize("table", ODD.values(), ids=ODD)
def test_no_nan_in_any_trace(table, engine):
    quick = Schedule.geometric(1.0, 1e6, steps=10, sweeps=2, unit="greedy")
    options = {} if engine == "numba" else {"chains": 1, "schedule": quick}
    for k in (1, 4):
        for budget in (2**28, 0):
            trace = best_subset(SubsetProblem(table, y, memory_budget=budget), k, engine=engine, **options)
            numbers = {f.name: getattr(trace, f.name) for f in dataclasses.fields(trace)}
            for name, value in numbers.items():
                if isinstance(value, (float, np.ndarray)):
                    assert np.isfinite(value).all(), name
            assert np.linalg.matrix_rank(table[:, trace.best_support] * trace.best_coef) == k


@pytest.mark.parametrize("table", ODD.values(), ids=ODD)
def test_no_nan_in_any_fit(table):
    model = fit_it(table, y, 4)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.predict(table)).all()
    assert np.isfinite([model.intercept_, model.energy_, model.score(table, y)]).all()
    assert np.count_nonzero(model.coef_) == 4
    assert 0.5 * np.sum((y - model.predict(table)) ** 2) == pytest.approx(model.energy_, rel=1e-6)
