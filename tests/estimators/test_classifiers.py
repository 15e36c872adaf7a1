"""The classifiers: the same columns as the functions find, and probabilities."""

import numpy as np
import pandas as pd
import pytest

from pairflip import SubsetClassifier, SubsetClassifierCV, SubsetProblem, best_subset

pytestmark = pytest.mark.filterwarnings("ignore:the columns separate:UserWarning")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 10))
    y = np.where(rng.random(120) < 1 / (1 + np.exp(-2 * X[:, 1] + 2 * X[:, 6])), "yes", "no")
    return pd.DataFrame(X, columns=[f"gene {j}" for j in range(10)]), y


def test_the_best_columns_and_their_probabilities(data):
    X, y = data
    model = SubsetClassifier(2, random_state=3).fit(X, y)
    problem = SubsetProblem(X, y, loss="logistic")
    trace = best_subset(problem, 2, seed=3)
    np.testing.assert_array_equal(model.support_, trace.best_support)
    assert model.energy_ == trace.best_energy
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.coef_.shape == (1, 10)
    assert list(model.get_feature_names_out()) == ["gene 1", "gene 6"]
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    log_odds = np.log(p[:, 1] / p[:, 0])
    np.testing.assert_allclose(log_odds, model.decision_function(X), rtol=1e-9)
    np.testing.assert_array_equal(model.predict(X), np.where(p[:, 1] > 0.5, "yes", "no"))
    deviance = -np.log(np.where(y == "yes", p[:, 1], p[:, 0])).sum()
    assert model.energy_ == pytest.approx(deviance, rel=1e-3)


def test_class_weights_are_sample_weights(data):
    X, y = data
    w = np.where(y == "yes", 3.0, 1.0)
    by_class = SubsetClassifier(2, class_weight={"yes": 3.0, "no": 1.0}).fit(X, y)
    by_row = SubsetClassifier(2).fit(X, y, sample_weight=w)
    np.testing.assert_array_equal(by_class.coef_, by_row.coef_)
    few = np.r_[np.flatnonzero(y == "no"), np.flatnonzero(y == "yes")[:10]]
    plain, balanced = (SubsetClassifier(2, class_weight=c).fit(X.iloc[few], y[few]) for c in (None, "balanced"))
    assert (balanced.predict(X) == "yes").sum() > (plain.predict(X) == "yes").sum()


def test_the_size_is_chosen_with_the_classes(data):
    X, y = data
    model = SubsetClassifierCV(sizes=range(1, 5), cv=5, random_state=0).fit(X, y)
    assert model.n_nonzero_coefs_ == 2
    assert model.support_.tolist() == [1, 6]
    assert model.curve_.classes.labels == ["no", "yes"]
    np.testing.assert_allclose(model.cv_results_["mean_test_score"], -2 * model.curve_.cv_error)
    np.testing.assert_allclose(model.curve_.predict(X), model.predict_proba(X)[:, 1], rtol=1e-9)
    assert model.score(X, y) > 0.75


def test_separated_classes_give_a_warning(data):
    X, _ = data
    with pytest.warns(UserWarning, match="separate the classes"):
        SubsetClassifier(1).fit(X, X["gene 1"] > 0)


@pytest.mark.parametrize(("y", "words"), [(np.zeros(120), "one class only"), (np.linspace(0, 1, 120), "continuous")])
def test_bad_targets_get_one_sentence(data, y, words):
    with pytest.raises(ValueError, match=words):
        SubsetClassifier(1).fit(data[0], y)
