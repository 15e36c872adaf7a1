"""Estimators that preprocess: fitted in folds, applied by predict, in the columns that it makes."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from _errors import sentence_of
from pairflip import (
    BayesianSubsetRegressor,
    SubsetClassifier,
    SubsetClassifierCV,
    SubsetProblem,
    SubsetRegressor,
    SubsetRegressorCV,
    select_size,
)
from pairflip.preprocessing import Impute, Products

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 6))
Y = X[:, 1] - X[:, 4] + 0.3 * rng.normal(size=60)
HOLES = pd.DataFrame(np.where(rng.random(X.shape) < 0.1, np.nan, X), columns=list("abcdef"))
STEPS = make_pipeline(Impute(indicator=False), StandardScaler())
MODELS = {
    "regressor": SubsetRegressor(2, preprocess=STEPS),
    "regressor cv": SubsetRegressorCV([1, 2, 3], cv=4, preprocess=STEPS, random_state=0, choose="best"),
    "classifier": SubsetClassifier(2, preprocess=STEPS),
    "classifier cv": SubsetClassifierCV([1, 2], cv=4, preprocess=STEPS, random_state=0, ridge=1.0, choose="best"),
    "bayesian": BayesianSubsetRegressor(preprocess=STEPS),
}


@pytest.mark.parametrize("name", MODELS)
def test_predicts_what_the_same_steps_before_it_predict(name):
    model, y = clone(MODELS[name]), Y > 0 if "classifier" in name else Y
    model.fit(HOLES, y)
    filled = STEPS.fit_transform(HOLES)
    np.testing.assert_array_equal(model.predict(HOLES), model.predict(HOLES[list("abcdef")]))
    assert model.coef_.shape[-1] == 6
    if not name.endswith("cv"):  # in folds, the steps would have seen held-out rows
        alone = clone(model).set_params(preprocess=None).fit(filled, y)
        np.testing.assert_allclose(model.predict(HOLES), alone.predict(filled), rtol=1e-9)
    np.testing.assert_array_equal(model.transform(HOLES), filled[:, model.support_])
    np.testing.assert_array_equal(model.get_feature_names_out(), np.array(list("abcdef"))[model.support_])
    assert "cannot undo" in sentence_of(ValueError, lambda: model.inverse_transform(filled[:, :2]))
    assert cross_val_score(model, HOLES, y, cv=3).mean() > 0.5


def test_the_curve_is_that_of_select_size():
    model = clone(MODELS["regressor cv"]).fit(HOLES, Y)
    problem = SubsetProblem(HOLES, Y, preprocess=STEPS)
    np.testing.assert_array_equal(model.curve_.predictions, select_size(problem, [1, 2, 3], 4).predictions)
    interval = model.predict_interval(HOLES, 0.8)
    assert (interval[:, 0] <= interval[:, 1]).all()
    assert 0.6 < np.mean((interval[:, 0] <= Y) & (interval[:, 1] >= Y)) <= 1.0


def test_products_with_their_factors():
    steps = make_pipeline(Impute(indicator=False), Products(2, interactions=True))
    model = SubsetRegressor(3, preprocess=steps, hierarchy=True).fit(HOLES, Y + 2.0 * X[:, 1] * X[:, 4])
    assert model.get_feature_names_out().tolist() == ["b", "e", "b:e"]


def test_scikit_learn_accepts_it():
    model = SubsetRegressorCV(cv=3, preprocess=StandardScaler(), random_state=0, effort="quick")
    # Rows weigh in the fit and in errors; the transformer counts each row once.
    failing = {"check_sample_weight_equivalence_on_dense_data": "transformers are not told weights"}
    check_estimator(model, expected_failed_checks=failing)
