"""The estimators keep scikit-learn's promises; the regressor is at least as good as orthogonal matching pursuit."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression, OrthogonalMatchingPursuit
from sklearn.model_selection import cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

import pairflip
from pairflip import (
    BayesianSubsetRegressor,
    Schedule,
    SubsetClassifier,
    SubsetClassifierCV,
    SubsetProblem,
    SubsetRegressor,
    SubsetRegressorCV,
    datasets,
)
from pairflip.testing import best_support

M, N, K = 40, 12, 3
NAMES = [f"column {j}" for j in range(N)]
CHOSEN = ["column 1", "column 4", "column 9"]
QUICK = {"schedule": Schedule.geometric(1.0, 10.0, steps=3, sweeps=1), "chains": 2}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(M, N))
    X[:, 1:] += 0.7 * X[:, :-1]
    return X, 5.0 + X[:, [1, 4, 9]] @ [2.0, -1.5, 1.0] + 0.3 * rng.normal(size=M)


@pytest.fixture
def model():
    return SubsetRegressor(K, random_state=0)


@pytest.mark.filterwarnings("ignore:(the columns separate|no column was kept):UserWarning")
@parametrize_with_checks(
    [
        SubsetRegressor(chains=8, random_state=0),
        SubsetRegressor(1, chains=8, random_state=0),
        SubsetRegressorCV(sizes=[1], chains=2, cv=3, random_state=0),
        SubsetClassifier(1, random_state=0),
        SubsetClassifierCV(cv=3, ridge=1e-3, effort="quick", random_state=0),
        BayesianSubsetRegressor(random_state=0),
        BayesianSubsetRegressor(method="sample", sweeps=50, random_state=0),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", [SubsetRegressor, SubsetRegressorCV, SubsetClassifier, SubsetClassifierCV])
def test_scikit_learn_checks_of_the_defaults(kind):
    """Nothing fails, nothing is excused; only the array API, which is not claimed, is skipped."""
    results = check_estimator(kind(random_state=0), on_fail=None, on_skip=None)
    assert len(results) > 50
    assert [(r["check_name"], r["exception"]) for r in results if r["status"] in ("failed", "xfail")] == []
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= {"check_array_api_input"}


@pytest.mark.parametrize(("former", "name"), pairflip._FORMER.items())
def test_names_of_0_2_warn(former, name):
    with pytest.warns(FutureWarning, match=rf"^pairflip\.{former} is called pairflip\.{name} now\.$"):
        assert getattr(pairflip, former) is getattr(pairflip, name)


# ---- what fit finds


@pytest.mark.parametrize("intercept", [True, False])
def test_coefficients_are_those_of_least_squares_on_the_best_columns(data, model, intercept):
    X, y = data
    model.set_params(fit_intercept=intercept).fit(X, y)
    support, energy = best_support(SubsetProblem(X, y, center="fold" if intercept else None), K)
    plain = LinearRegression(fit_intercept=intercept).fit(X[:, support], y)
    assert model.support_.tolist() == np.flatnonzero(model.coef_).tolist() == support.tolist()
    assert model.coef_[support] == pytest.approx(plain.coef_)
    assert model.intercept_ == pytest.approx(plain.intercept_)
    assert model.energy_ == pytest.approx(energy)
    assert model.predict(X) == pytest.approx(plain.predict(X[:, support]))
    assert model.score(X, y) == pytest.approx(plain.score(X[:, support], y))
    assert model.trace_.best_support.tolist() == support.tolist()
    assert model.n_features_in_ == N
    assert not intercept or support.tolist() == [1, 4, 9]


@pytest.mark.parametrize(("shape", "size"), [((40, 34), 3), ((4, 80), 3), ((12, 1), 1)])
def test_no_size_means_a_tenth_of_the_columns(shape, size):
    rng = np.random.default_rng(1)
    model = SubsetRegressor(random_state=0).fit(rng.normal(size=shape), rng.normal(size=shape[0]))
    assert model.support_.size == np.count_nonzero(model.coef_) == size  # 4 rows and an intercept: 3 at most


def test_all_columns_is_plain_least_squares(data):
    X, y = data
    model, plain = SubsetRegressor(N).fit(X, y), LinearRegression().fit(X, y)
    assert model.trace_ is None
    assert model.coef_ == pytest.approx(plain.coef_)
    assert model.intercept_ == pytest.approx(plain.intercept_)
    assert model.get_support().all()
    varying = SubsetRegressor(4).fit(np.column_stack([X[:, :4], np.full(M, 3.0)]), y)
    assert varying.support_.tolist() == [0, 1, 2, 3]
    assert varying.coef_[4] == 0.0


TABLES = {
    "diabetes": lambda: load_diabetes(return_X_y=True),
    "diabetes with products": datasets.load_diabetes_products,
    **{
        f"correlated {c}": lambda c=c: datasets.make_correlated(M=80, N=150, k=6, correlation=c, snr=3.0, seed=2)
        for c in (0.0, 0.9, 0.999)
    },
    "spectra": lambda: datasets.make_spectra(M=50, N=120, seed=3),
    "planted": lambda: datasets.make_planted(N=150, seed=5),
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_at_least_as_good_as_orthogonal_matching_pursuit(table):
    made = table()
    X, y = made if isinstance(made, tuple) else (made.X, made.y)
    better = 0
    for k in [k for k in (1, 2, 4, 8, 12) if k < X.shape[1]]:
        residual = y - OrthogonalMatchingPursuit(n_nonzero_coefs=k).fit(X, y).predict(X)
        energy = SubsetRegressor(k, random_state=0).fit(X, y).energy_
        assert energy <= 0.5 * float(residual @ residual) * (1 + 1e-10)
        better += energy < 0.5 * float(residual @ residual) * (1 - 1e-6)
    assert better >= 1, "greedy is optimal for every size: this table compares nothing"


def test_random_state_in_every_form(data):
    five = 5, np.int64(5), np.random.RandomState(5), np.random.RandomState(5), 6
    traces = [SubsetRegressor(K, random_state=state, **QUICK).fit(*data).trace_ for state in five]
    energies = [trace.energy.tolist() for trace in traces]
    assert energies[0] == energies[1] != energies[4]
    assert energies[2] == energies[3]
    some, other = (SubsetRegressor(K, **QUICK).fit(*data).trace_.seed for _ in range(2))
    assert some != other


@pytest.mark.parametrize("engine", ["numba", "reference"])
@pytest.mark.parametrize("schedule", ["paper", QUICK["schedule"]])
def test_options_reach_the_annealing(data, schedule, engine):
    model = SubsetRegressor(K, schedule=schedule, chains=1, engine=engine, n_jobs=2, random_state=9).fit(*data)
    assert model.trace_.schedule == (Schedule.paper() if schedule == "paper" else schedule)
    assert (model.trace_.engine, model.trace_.energies.size, model.trace_.seed) == (engine, 1, 9)


# ---- with the rest of scikit-learn


def test_in_a_pipeline(data, model):
    X, y = data
    scaled = X * np.geomspace(1e-3, 1e3, N)
    last = make_pipeline(StandardScaler(), clone(model)).fit(scaled, y)
    assert last[-1].support_.tolist() == [1, 4, 9]
    assert last.score(scaled, y) > 0.9
    selector = make_pipeline(model, LinearRegression()).fit(X, y)
    assert selector[-1].coef_ == pytest.approx(model.coef_[[1, 4, 9]])
    assert selector[:-1].transform(X).shape == (M, K)
    assert selector[:-1].get_feature_names_out(NAMES).tolist() == CHOSEN
    again = pickle.loads(pickle.dumps(model))
    assert again.trace_.best_energy == model.trace_.best_energy


def test_cross_validation_refits_in_every_fold(data, model):
    X, y = data
    assert cross_val_score(model, X, y, cv=4, error_score="raise").min() > 0.8
    held_out = cross_val_predict(model, X, y, cv=4)
    assert held_out[:10] == pytest.approx(clone(model).fit(X[10:], y[10:]).predict(X[:10]))
    assert held_out[:10] != pytest.approx(clone(model).fit(X, y).predict(X[:10]), rel=1e-9)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_names_come_from_the_data_frame(data, model, make):
    X, y = data
    frame = make(dict(zip(NAMES, X.T, strict=True)))
    model.fit(frame, y)
    assert model.feature_names_in_.tolist() == NAMES
    assert model.get_feature_names_out().tolist() == model.trace_.best_names == CHOSEN
    np.testing.assert_array_equal(model.predict(frame), clone(model).fit(X, y).predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(make(dict(zip(NAMES[::-1], X.T, strict=True))))
    chosen = model.set_output(transform=make.__module__.split(".")[0]).transform(frame)
    assert type(chosen) is make
    assert list(chosen.columns) == CHOSEN
    np.testing.assert_array_equal(chosen.to_numpy(), X[:, [1, 4, 9]])
