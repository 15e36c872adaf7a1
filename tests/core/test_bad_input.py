"""Bad input gets one sentence, from the functions and from the estimator; odd but good input gets no NaN."""

import dataclasses
import pickle

import numpy as np
import pytest

from _errors import sentence_of
from pairflip import Schedule, SubsetProblem, SubsetRegressor, posterior, prove, sample, temper
from pairflip.engines import RankTooSmall
from pairflip.search.best_subset import best_subset

M, N, K = 20, 8, 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(M, N))
y = RNG.normal(size=M)


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


# ---- the size

DOUBLED = np.hstack([X[:, :2], 3.0 * X[:, :2], 1.0 - X[:, :2]])


CONSTANT = changed(X, (slice(None), [0, 5]), 1.0)
SIZES = {
    "0": (ValueError, {"k": 0}, "NAME is 0", "expected", "1"),
    **{f"{k!r}": (TypeError, {"k": k}, f"NAME is {k!r}", "a whole number", "8") for k in (3.0, "3", True)},
    "more than there are": (ValueError, {"k": N + 1}, "NAME is 9", "8", "expected", "that vary"),
    "more than vary": (ValueError, {"X": CONSTANT, "k": 7}, "NAME is 7", "6", "expected"),
    "more than are independent": (RankTooSmall, {"X": DOUBLED, "k": 3}, "k is 3", "only 2", "expected k <= 2"),
    "the reference engine": (RankTooSmall, {"X": DOUBLED, "k": 3, "engine": "reference"}, "only 2", "expected k <= 2"),
    "more than rows leave free": (RankTooSmall, {"X": X[:5], "y": y[:5], "k": 5}, "k is 5", "only 4", "k <= 4"),
    "fewer columns": (RankTooSmall, {"X": X[:5, :7], "y": y[:5], "k": 6}, "only 4"),
}


@pytest.mark.parametrize(("function", "name"), [(anneal_it, "k"), (fit_it, "n_nonzero_coefs")])
@pytest.mark.parametrize(("kind", "given", "words"), [(e, g, w) for e, g, *w in SIZES.values()], ids=SIZES)
def test_bad_sizes(function, name, kind, given, words):
    assert_says(sentence(kind, function, **given), *(word.replace("NAME", name) for word in words))


def test_all_columns_and_none_are_sizes_for_the_estimator_only():
    assert_says(sentence(ValueError, anneal_it, k=N), "k is 8", "expected k below 8", "nothing to choose")
    assert_says(sentence(TypeError, anneal_it, k=None), "k is None", "expected a whole number")
    assert fit_it(X, y, N).support_.tolist() == list(range(N))
    assert fit_it(X, y, None).support_.size == 1
    assert_says(sentence(RankTooSmall, fit_it, X=DOUBLED, k=6), "k is 6", "expected k <= 2")
    for k in (np.int64(3), np.uint8(3)):
        assert anneal_it(X, y, k).k == fit_it(X, y, k).support_.size == 3


# ---- options

OPTIONS = {
    "engine": ({"engine": "gpu"}, "engine is 'gpu'", "expected one of", "'numba'", "'reference'"),
    "schedule, unknown": ({"schedule": "fast"}, "schedule is 'fast'", "expected 'auto', 'paper'"),
    "schedule, array": ({"schedule": np.ones(2)}, "schedule is array([1., 1.])", "expected 'auto', 'paper'"),
    "no chains": ({"chains": 0}, "chains is 0", "expected a whole number of at least 1"),
    "chains as truth": ({"chains": True}, "chains is True", "expected a whole number of at least 1"),
    "seed, too large": ({"seed": 2**64}, f"seed is {2**64}", "expected a whole number from 0 to 2**64 - 1"),
    "no threads": ({"n_jobs": 0}, "n_jobs is 0", "expected", "-1 for all cores"),
}


@pytest.mark.parametrize("function", [anneal_it, fit_it])
@pytest.mark.parametrize(("given", "words"), [(g, w) for g, *w in OPTIONS.values()], ids=OPTIONS)
def test_bad_options(function, given, words):
    assert_says(sentence(ValueError, function, **given), *words)


@pytest.mark.parametrize("seed", [1.5, "a", None, True])
def test_a_seed_is_a_whole_number(seed):
    message = sentence(TypeError, anneal_it, seed=seed)
    assert_says(message, f"seed is {seed!r}", "expected a whole number from 0 to 2**64 - 1")
    if seed is None or seed is True:
        return
    with pytest.raises(ValueError, match="cannot be used to seed"):  # as scikit-learn says
        fit_it(X, y, K, seed=seed)


CLASSES, TWIN = SubsetProblem(X, y > 0, loss="logistic"), SubsetProblem(changed(X, (slice(None), 5), X[:, 0]), y)
OTHERS = [
    (prove, {"k": 0}, "expected at least 1"),
    (prove, {"budget": 0}, "budget is 0; expected a number of seconds above 0"),
    (prove, {"n_best": 0}, "n_best is 0; expected a whole number from 1"),
    (prove, {"within": [-0.1]}, "each >= 0"),
    (prove, {"incumbent": [1]}, "incumbent has 1 columns; expected 2"),
    (prove, {"incumbent": [0, 5], "problem": TWIN}, "linearly dependent"),
    (prove, {"problem": CLASSES}, "no proofs for other energies"),
    (sample, {"beta": -1.0}, "beta is -1"),
    (sample, {"sweeps": 0}, "sweeps is 0"),
    (sample, {"thin": 0}, "thin is 0"),
    (sample, {"chains": 1.5}, "chains is 1.5"),
    (sample, {"k": 10}, "k is 10"),
    (sample, {"problem": CLASSES}, "no sampling"),
    (temper, {"betas": [1.0, 0.5]}, "each above the one before"),
    (posterior, {"g": 0}, "g is 0"),
    (posterior, {"prior": "flat"}, "prior is 'flat'"),
    (posterior, {"sizes": [1, 3]}, "gaps"),
    (posterior, {"sizes": [99]}, "sizes has 99"),
    (posterior, {"method": "guess"}, "method is"),
    (posterior, {"variance": -1}, "variance is -1"),
    (posterior, {"method": "sample", "sweeps": 3}, "sweeps is 3"),
    (posterior, {"problem": CLASSES}, "expected squared error of one target"),
]


@pytest.mark.parametrize(("function", "given", "words"), OTHERS)
def test_bad_input_of_proofs_samples_and_probabilities(function, given, words):
    usual = {"problem": SubsetProblem(X, y)} | ({} if function is posterior else {"k": 2})
    assert words in sentence_of(ValueError, lambda: function(**(usual | given)))


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
