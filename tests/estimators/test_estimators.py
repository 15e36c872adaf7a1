"""The estimator keeps scikit-learn's promises and chooses at least as well as orthogonal matching pursuit."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, OrthogonalMatchingPursuit
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from pairflip import Schedule, SubsetProblem, SubsetRegressor, datasets
from pairflip.testing import best_support

M, N, K = 40, 12, 3
NAMES = [f"column {j}" for j in range(N)]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(M, N))
    X[:, 1:] += 0.7 * X[:, :-1]
    return X, 5.0 + X[:, [1, 4, 9]] @ [2.0, -1.5, 1.0] + 0.3 * rng.normal(size=M)


@pytest.fixture
def model():
    return SubsetRegressor(K, random_state=0)


# ---- scikit-learn's own checks, all of them


@parametrize_with_checks([SubsetRegressor(chains=8, random_state=0), SubsetRegressor(1, chains=8, random_state=0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
def test_scikit_learn_checks_of_the_default_estimator():
    """Nothing fails, nothing is excused; only the array API, which is not claimed, is skipped."""
    results = check_estimator(SubsetRegressor(random_state=0), on_fail=None, on_skip=None)
    assert len(results) > 50
    assert [(r["check_name"], r["exception"]) for r in results if r["status"] in ("failed", "xfail")] == []
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= {"check_array_api_input"}


# ---- what fit finds


def test_coefficients_are_those_of_least_squares_on_the_best_columns(data, model):
    X, y = data
    model.fit(X, y)
    support, energy = best_support(SubsetProblem(X, y), K)
    plain = LinearRegression().fit(X[:, support], y)
    assert model.support_.tolist() == support.tolist() == [1, 4, 9]
    assert model.coef_[support] == pytest.approx(plain.coef_)
    assert np.flatnonzero(model.coef_).tolist() == support.tolist()
    assert model.intercept_ == pytest.approx(plain.intercept_)
    assert model.energy_ == pytest.approx(energy)
    assert model.predict(X) == pytest.approx(plain.predict(X[:, support]))
    assert model.score(X, y) == pytest.approx(plain.score(X[:, support], y))
    assert model.trace_.best_support.tolist() == support.tolist()
    assert model.n_features_in_ == N


def test_without_an_intercept(data):
    X, y = data
    model = SubsetRegressor(K, fit_intercept=False, random_state=0).fit(X, y)
    support, energy = best_support(SubsetProblem(X, y, center=None), K)
    assert model.intercept_ == 0.0
    assert model.support_.tolist() == support.tolist()
    assert model.energy_ == pytest.approx(energy)
    plain = LinearRegression(fit_intercept=False).fit(X[:, support], y)
    assert model.predict(X) == pytest.approx(plain.predict(X[:, support]))


@pytest.mark.parametrize("shape", [(40, 5), (40, 34), (15, 100), (4, 80), (12, 1)])
def test_no_size_means_a_tenth_of_the_columns(shape):
    rng = np.random.default_rng(1)
    model = SubsetRegressor(random_state=0).fit(rng.normal(size=shape), rng.normal(size=shape[0]))
    expected = {5: 1, 34: 3, 100: 10, 80: 3, 1: 1}[shape[1]]  # 4 rows and an intercept: 3 columns at most
    assert model.support_.size == np.count_nonzero(model.coef_) == expected


def test_all_columns_is_plain_least_squares(data):
    X, y = data
    model, plain = SubsetRegressor(N).fit(X, y), LinearRegression().fit(X, y)
    assert model.trace_ is None
    assert model.coef_ == pytest.approx(plain.coef_)
    assert model.intercept_ == pytest.approx(plain.intercept_)
    assert model.get_support().all()


def test_all_columns_that_vary(data):
    X, y = data
    constant = np.column_stack([X[:, :4], np.full(M, 3.0)])
    model = SubsetRegressor(4).fit(constant, y)
    assert model.support_.tolist() == [0, 1, 2, 3]
    assert model.coef_[4] == 0.0


TABLES = {
    "diabetes": lambda: load_diabetes(return_X_y=True),
    "diabetes with products": lambda: (datasets.load_diabetes_products().X, datasets.load_diabetes_products().y),
    **{
        f"correlated {c}": lambda c=c: (
            (d := datasets.make_correlated(M=80, N=150, k=6, correlation=c, snr=3.0, seed=2)).X,
            d.y,
        )
        for c in (0.0, 0.9, 0.999)
    },
    "spectra": lambda: ((d := datasets.make_spectra(M=50, N=120, seed=3)).X, d.y),
    "planted": lambda: ((d := datasets.make_planted(N=150, seed=5)).X, d.y),
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_at_least_as_good_as_orthogonal_matching_pursuit(table):
    X, y = table()
    better = 0
    for k in [k for k in (1, 2, 4, 8, 12) if k < X.shape[1]]:
        residual = y - OrthogonalMatchingPursuit(n_nonzero_coefs=k).fit(X, y).predict(X)
        energy = SubsetRegressor(k, random_state=0).fit(X, y).energy_
        assert energy <= 0.5 * float(residual @ residual) * (1 + 1e-10)
        better += energy < 0.5 * float(residual @ residual) * (1 - 1e-6)
    assert better >= 1, "greedy is optimal for every size: this table compares nothing"


# ---- rows and weights


def test_weight_two_is_a_repeated_row(data, model):
    X, y = data
    weights = np.random.default_rng(2).integers(0, 4, size=M)
    weighted = clone(model).fit(X, y, sample_weight=weights)
    repeated = clone(model).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    plain = clone(model).fit(X, y)
    assert weighted.support_.tolist() == repeated.support_.tolist()
    assert weighted.coef_ == pytest.approx(repeated.coef_)
    assert weighted.intercept_ == pytest.approx(repeated.intercept_)
    assert weighted.energy_ == pytest.approx(repeated.energy_)
    assert weighted.intercept_ != pytest.approx(plain.intercept_, rel=1e-6)


def test_weights_decide_which_columns_are_best():
    """Half of the rows follow one column, half the other: who has the weight has the say."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 8))
    y = np.where(np.arange(60) < 30, X[:, 2], X[:, 6])
    for half, column in ((np.arange(60) < 30, 2), (np.arange(60) >= 30, 6)):
        weights = np.where(half, 1.0, 1e-3)
        assert SubsetRegressor(1, random_state=0).fit(X, y, weights).support_.tolist() == [column]


def test_equal_weights_change_nothing(data, model):
    X, y = data
    plain, weighted = clone(model).fit(X, y), clone(model).fit(X, y, sample_weight=np.full(M, 7.0))
    assert weighted.coef_ == pytest.approx(plain.coef_)
    assert weighted.energy_ == pytest.approx(7.0 * plain.energy_)


# ---- seeds


def test_random_state_in_every_form(data):
    X, y = data
    quick = {"schedule": Schedule.geometric(1.0, 10.0, steps=3, sweeps=1), "chains": 2}
    energy = {
        name: SubsetRegressor(K, random_state=make(), **quick).fit(X, y).trace_.energy.tolist()
        for name, make in {
            "int": lambda: 5,
            "int again": lambda: np.int64(5),
            "another": lambda: 6,
            "state": lambda: np.random.RandomState(5),
            "state again": lambda: np.random.RandomState(5),
        }.items()
    }
    assert energy["int"] == energy["int again"] != energy["another"]
    assert energy["state"] == energy["state again"]
    some, other = (SubsetRegressor(K, **quick).fit(X, y).trace_.seed for _ in range(2))
    assert some != other


def test_options_reach_the_annealing(data):
    X, y = data
    model = SubsetRegressor(K, schedule="paper", chains=3, engine="numba", n_jobs=2, random_state=9).fit(X, y)
    assert model.trace_.schedule == Schedule.paper()
    assert model.trace_.energies.size == 3
    assert model.trace_.seed == 9
    schedule = Schedule.geometric(1.0, 10.0, steps=3, sweeps=1)
    model = SubsetRegressor(K, schedule=schedule, chains=1, engine="reference").fit(X, y)
    assert model.trace_.engine == "reference"
    assert model.trace_.schedule == schedule


# ---- with the rest of scikit-learn


def test_clone_and_pickle(data, model):
    X, y = data
    copy = clone(model.fit(X, y))
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "coef_")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.trace_.best_energy == model.trace_.best_energy


def test_before_fitting(data, model):
    for ask in (lambda: model.predict(data[0]), model.get_support, lambda: model.transform(data[0])):
        with pytest.raises(NotFittedError, match="not fitted"):
            ask()


def test_in_a_pipeline_as_the_last_step(data, model):
    X, y = data
    pipeline = make_pipeline(StandardScaler(), model).fit(X * np.geomspace(1e-3, 1e3, N), y)
    assert pipeline[-1].support_.tolist() == [1, 4, 9]
    assert pipeline.score(X * np.geomspace(1e-3, 1e3, N), y) > 0.9


def test_in_a_pipeline_as_a_selector(data, model):
    X, y = data
    pipeline = make_pipeline(model, LinearRegression()).fit(X, y)
    assert pipeline[-1].coef_ == pytest.approx(model.coef_[[1, 4, 9]])
    assert pipeline[:-1].transform(X).shape == (M, K)
    assert pipeline[:-1].get_feature_names_out(NAMES).tolist() == ["column 1", "column 4", "column 9"]


def test_grid_search_finds_the_planted_size(data):
    search = GridSearchCV(
        SubsetRegressor(chains=8, random_state=0), {"n_nonzero_coefs": [1, 2, 3, N]}, cv=5, error_score="raise"
    ).fit(*data)
    assert search.best_params_ == {"n_nonzero_coefs": 3}
    assert search.best_estimator_.support_.tolist() == [1, 4, 9]


def test_cross_validation_refits_in_every_fold(data, model):
    X, y = data
    scores = cross_val_score(model, X, y, cv=4, error_score="raise")
    assert scores.shape == (4,)
    assert scores.min() > 0.8
    held_out = cross_val_predict(model, X, y, cv=4)
    first = clone(model).fit(X[10:], y[10:]).predict(X[:10])
    assert held_out[:10] == pytest.approx(first)
    assert held_out[:10] != pytest.approx(clone(model).fit(X, y).predict(X[:10]), rel=1e-9)


# ---- data frames


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_names_come_from_the_data_frame(data, model, make):
    X, y = data
    frame = make(dict(zip(NAMES, X.T, strict=True)))
    model.fit(frame, y)
    assert model.feature_names_in_.tolist() == NAMES
    assert model.get_feature_names_out().tolist() == ["column 1", "column 4", "column 9"]
    assert model.trace_.best_names == ["column 1", "column 4", "column 9"]
    np.testing.assert_array_equal(model.predict(frame), clone(model).fit(X, y).predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(make(dict(zip(NAMES[::-1], X.T, strict=True))))


def test_names_without_a_data_frame(data, model):
    model.fit(*data)
    assert model.get_feature_names_out().tolist() == ["x1", "x4", "x9"]
    assert model.trace_.best_names == ["x1", "x4", "x9"]
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_set_output(data, model, library):
    X, y = data
    frame = pd.DataFrame(X, columns=NAMES)
    chosen = model.set_output(transform=library).fit(frame, y).transform(frame)
    assert type(chosen).__module__.split(".")[0] == library
    assert list(chosen.columns) == ["column 1", "column 4", "column 9"]
    np.testing.assert_array_equal(chosen.to_numpy(), X[:, [1, 4, 9]])


def test_selecting_and_undoing_it(data, model):
    X, y = data
    chosen = model.fit_transform(X, y)
    np.testing.assert_array_equal(chosen, X[:, [1, 4, 9]])
    assert model.get_support(indices=True).tolist() == model.support_.tolist()
    back = model.inverse_transform(chosen)
    np.testing.assert_array_equal(back[:, [1, 4, 9]], chosen)
    assert np.count_nonzero(back) == chosen.size


def test_fitting_again_forgets_the_first_time(data):
    X, y = data
    model = SubsetRegressor(K, random_state=0).fit(pd.DataFrame(X, columns=NAMES), y)
    model.fit(X[:, :5], y)
    assert model.coef_.shape == (5,)
    assert not hasattr(model, "feature_names_in_")
    model.set_params(n_nonzero_coefs=5).fit(X[:, :5], y)
    assert model.trace_ is None
