"""The estimator that chooses the size keeps scikit-learn's promises and is what `select_size` says."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.linear_model import Lasso, LinearRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score, cross_validate

from pairflip import SubsetProblem, SubsetRegressor, SubsetRegressorCV, select_size

M, N = 40, 12


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(M, N))
    return X, 5.0 + X[:, [1, 4, 9]] @ [2.0, -1.5, 1.0] + 0.3 * rng.normal(size=M)


@pytest.fixture(scope="module")
def groups():
    return np.repeat(np.arange(8), M // 8)


def test_it_is_the_recommended_size_of_the_curve_fitted_on_all_rows(data):
    X, y = data
    model = SubsetRegressorCV(range(1, 7), random_state=3).fit(X, y)
    curve = select_size(SubsetProblem(X, y), range(1, 7), seed=3)
    assert model.n_nonzero_coefs_ == curve.answer.size
    assert model.curve_.answer == curve.answer
    assert np.array_equal(model.curve_.cv_error, curve.cv_error)
    plain = LinearRegression().fit(X[:, model.support_], y)
    assert model.support_.size == model.n_nonzero_coefs_
    assert model.coef_[model.support_] == pytest.approx(plain.coef_)
    assert model.intercept_ == pytest.approx(plain.intercept_)
    assert model.predict(X) == pytest.approx(plain.predict(X[:, model.support_]))
    assert {1, 4, 9} <= set(model.support_.tolist())


def test_scores_are_scikit_learns_mean_squared_errors(data):
    X, y = data
    model = SubsetRegressorCV([2, N], cv=KFold(4), random_state=0).fit(X, y)
    results = model.cv_results_
    by_hand = -cross_val_score(LinearRegression(), X, y, cv=KFold(4), scoring="neg_mean_squared_error")
    assert -results["mean_test_score"][2] == pytest.approx(by_hand.mean())  # all columns: nothing to choose
    assert results["se_test_score"][2] == pytest.approx(by_hand.std(ddof=1) / 2.0)
    assert results["std_test_score"][2] == pytest.approx(by_hand.std())  # over folds, as scikit-learn has it
    assert results["params"] == [{"n_nonzero_coefs": k} for k in (0, 2, N)]
    assert results["param_n_nonzero_coefs"].tolist() == [0, 2, N]
    assert results["rank_test_score"].tolist() == rankdata(-results["mean_test_score"], method="min").tolist()
    search = GridSearchCV(Lasso(), {"alpha": [0.1, 1.0]}, cv=KFold(4)).fit(X, y)
    shared = {"params", "mean_test_score", "std_test_score", "rank_test_score"}
    assert shared <= set(search.cv_results_) & set(results)
    assert np.flatnonzero(model.get_support()).tolist() == model.support_.tolist()
    assert model.get_support(indices=True).tolist() == model.support_.tolist()


def test_noise_is_predicted_by_its_mean():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(M, N)), rng.normal(size=M)
    with pytest.warns(UserWarning, match="no column was kept: none predicts clearly better than the mean") as caught:
        model = SubsetRegressorCV([1, 2, 3], random_state=0).fit(X, y)
    assert len(caught) == 1
    assert model.n_nonzero_coefs_ == 0
    assert model.support_.size == 0
    assert np.allclose(model.predict(X), y.mean())
    assert clone(model).set_params(choose="best").fit(X, y).n_nonzero_coefs_ == model.curve_.best_size


@pytest.mark.parametrize("rule", ["auto", "best", "one_se", "bic", "ebic"])
def test_every_rule_means_the_same_everywhere(rule, data):
    rng = np.random.default_rng(8)
    for X, y in (data, (rng.normal(size=(M, N)), rng.normal(size=M))):
        with warnings.catch_warnings(action="ignore"):
            model = SubsetRegressorCV([1, 2, 3, 4], cv=5, choose=rule, random_state=0).fit(X, y)
        curve = select_size(SubsetProblem(X, y), [1, 2, 3, 4], cv=5, choose=rule)
        by_hand = {"best": curve.cv_error, **curve.criteria}
        expected = curve.one_se_size if rule == "one_se" else curve.answer.size
        expected = int(curve.sizes[np.argmin(by_hand[rule])]) if rule in by_hand else expected
        assert model.n_nonzero_coefs_ == curve.answer.size == model.curve_.answer.size == expected
        assert model.support_.tolist() == curve.supports[curve.at(expected)].tolist()
        assert curve.predict(X, predict_with="subset") == pytest.approx(model.predict(X))


@pytest.mark.parametrize(
    "estimator", [SubsetRegressorCV([1, 2, 3], cv=5, random_state=0), SubsetRegressor(3, random_state=0)]
)
def test_forced_columns_and_ridge(data, estimator):
    X, y = data
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(N)])
    model = clone(estimator).set_params(always=["c7"], ridge=0.5).fit(frame, y)
    support = [j for j in model.support_ if j != 7]
    fit = SubsetProblem(X, y, always=[7], ridge=0.5).fit(support)
    assert 7 in model.support_
    assert model.get_support()[7]
    assert model.coef_[support] == pytest.approx(fit.coef)
    assert model.coef_[7] == pytest.approx(fit.always_coef[0])
    assert model.predict(frame) == pytest.approx(fit.intercept + X @ model.coef_)


def test_verbose_shows_progress(data, capsys, monkeypatch):
    monkeypatch.setattr("pairflip.selection.progress._LOG_SECONDS", 0.0)
    for verbose in (None, 1):
        SubsetRegressorCV([1], cv=3, chains=2, random_state=0, verbose=verbose).fit(*data)
        assert ("chains" in capsys.readouterr().err) == bool(verbose)


@pytest.mark.parametrize(("terminal", "verbose", "shown"), [(True, None, 1), (True, 0, 0), (False, None, 0)])
def test_what_takes_long_is_shown_to_who_watches(data, monkeypatch, terminal, verbose, shown):
    X, y = data
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal, raising=False)
    bars = []
    monkeypatch.setattr("pairflip.selection.progress.SelectionProgress._open_bar", lambda self: bars.append(self))
    for seconds, expected in ((1e9, 0), (0.0, shown)):
        monkeypatch.setattr("pairflip.selection.progress._LATE_SECONDS", seconds)
        SubsetRegressorCV([1], cv=3, chains=2, random_state=0, verbose=verbose).fit(X, y)
        assert len(bars) == expected


def test_a_copy_of_the_target_gives_a_warning(data):
    X, y = data
    with pytest.warns(UserWarning, match=r"^'x0' \(correlation -1\) looks like a copy of the target") as caught:
        SubsetRegressorCV([1], cv=3, random_state=0).fit(np.column_stack([-y, X]), y)
    assert len(caught) == 1


def test_groups_stay_together_with_and_without_metadata_routing(data, groups):
    X, y = data
    order = np.random.default_rng(1).permutation(M)
    X, y, groups = X[order], y[order], groups[order]
    for cv, folds in ((None, 8), (4, 4), (GroupKFold(2), 2)):
        curve = SubsetRegressorCV([2], cv=cv, random_state=0).fit(X, y, groups=groups).curve_
        assert curve.n_folds == folds
        for g in np.unique(groups):
            assert np.unique(curve.held_out_fold[np.isin(curve.held_out_rows, np.flatnonzero(groups == g))]).size == 1
    with sklearn.config_context(enable_metadata_routing=True):
        model = SubsetRegressorCV([2], cv=GroupKFold(2), random_state=0)
        assert model.fit(X, y, groups=groups).curve_.n_folds == 2
        found = cross_validate(model, X, y, cv=GroupKFold(4), params={"groups": groups}, return_estimator=True)
        assert [e.curve_.n_folds for e in found["estimator"]] == [2] * 4
