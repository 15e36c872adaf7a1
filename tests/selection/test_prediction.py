"""Predictions of new rows, what is refused, and rows outside the training rows; intervals by definition: test_kinds."""

import dataclasses
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, LeaveOneOut, cross_val_score

from _errors import sentence_of
from pairflip import SizeCurve, SubsetProblem, SubsetRegressor, SubsetRegressorCV, select_size
from pairflip.selection import prediction as prediction_module
from pairflip.selection.curve_file import curve_from_json, curve_to_json
from pairflip.selection.prediction import Prediction

M, N = 30, 9


OPTIONS = {
    "weights": {"sample_weight": np.r_[0.0, np.linspace(0.2, 3.0, M - 1)]},
    "forced": {"always": [2, 7]},
    "no intercept": {"center": None},
}


def table(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(M, N)) + 2.0
    return X, 5.0 + X[:, 0] - 0.7 * X[:, 4] + 0.6 * rng.normal(size=M)


def selected(cv=5, sizes=(1, 3), **options):
    problem = SubsetProblem(*table(), **options)
    return problem, select_size(problem, sizes, cv=cv, effort="quick")


def test_huge_held_out_target_costs_no_digits():
    X, y = table()
    y[3] = 1e12
    curve = select_size(SubsetProblem(X, y), [2], cv="loo", effort="quick")
    alone = SubsetProblem(np.delete(X, 3, 0), np.delete(y, 3)).fit(curve.fold_supports[1][3])
    np.testing.assert_allclose(curve.fold_fits.coefs[1][3], alone.coef, rtol=1e-9)
    np.testing.assert_allclose(curve.fold_fits.intercepts[1, 3], alone.intercept, rtol=1e-9)


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.95])
@pytest.mark.parametrize("splitter", [LeaveOneOut(), KFold(6, shuffle=True, random_state=0)], ids=["loo", "folds"])
def test_same_intervals_as_mapie(splitter, coverage):
    """Size 4 of 4 columns: every fold has the same support, so that a plain linear regression is the same model."""
    mapie = pytest.importorskip("mapie.regression", reason="MAPIE is not installed")
    X, y = table()
    X, new = X[:, :4], np.random.default_rng(2).normal(size=(40, 4))
    judge = mapie.CrossConformalRegressor(
        LinearRegression(), confidence_level=coverage, method="plus", cv=splitter
    ).fit_conformalize(X, y)
    point, bounds = judge.predict_interval(new, aggregate_point_predictions=None)
    told = select_size(SubsetProblem(X, y), [4], cv=splitter).predict(new, 4, interval=coverage)
    np.testing.assert_allclose(told.prediction, point, rtol=1e-9)
    np.testing.assert_allclose(told.lower, bounds[:, 0, 0], rtol=1e-9)
    np.testing.assert_allclose(told.upper, bounds[:, 1, 0], rtol=1e-9)


def test_points_of_the_recommended_size():
    problem, curve = selected()
    size = curve.answer.size
    expected = problem.X @ curve.coef(size) + curve.intercepts[curve.at(size)]
    np.testing.assert_allclose(curve.predict(problem.X, predict_with="subset"), expected, rtol=1e-12)
    assert curve.predict(problem.X[:1]).shape == (1,)
    told = curve.predict(problem.X, interval=0.9, predict_with="subset")
    assert isinstance(told, Prediction)
    assert (told.size, told.coverage) == (size, 0.9)
    assert told.to_pandas().columns.tolist() == ["prediction", "lower", "upper", "outside_training_range"]
    assert len(told.to_pandas()) == M


def test_mean_where_nothing_predicts():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(30, 6)), rng.normal(size=30)
    curve = select_size(SubsetProblem(X, y), [1, 2], cv=10, effort="quick")
    assert curve.answer.size == 0
    told = curve.predict(X, interval=0.9)
    np.testing.assert_allclose(told.prediction, y.mean())
    assert np.ptp(told.lower) == np.ptp(told.upper) == 0.0


def test_frames_by_name_and_arrays_by_position():
    X, y = table()
    names = list("abcdefghi")
    curve = select_size(SubsetProblem(X, y, names=names), [2], cv=5, effort="quick")
    frame, expected = pd.DataFrame(X, columns=names), curve.predict(X, 2, interval=0.9)
    for given in (frame, frame[names[::-1]].assign(other="text")):
        assert curve.predict(given, 2, interval=0.9).to_pandas().equals(expected.to_pandas())
    assert curve.predict(frame[curve.columns(2)], 2).tolist() == expected.prediction.tolist()
    same = select_size(SubsetProblem(X, y, names=["same"] * N), [2], cv=5, effort="quick")
    assert same.predict(pd.DataFrame(X, columns=["same"] * N), 2).tolist() == same.predict(X, 2).tolist()
    message = sentence_of(ValueError, lambda: same.predict(pd.DataFrame(X[:, :8], columns=["same"] * 8), 2))
    assert message == "several columns are called 'same'; expected names that tell columns apart."
    polars = pytest.importorskip("polars")
    reversed_frame = polars.DataFrame(dict(zip(names[::-1], X.T[::-1], strict=True)))
    assert curve.predict(reversed_frame, 2).tolist() == expected.prediction.tolist()


X0 = np.zeros((2, N))
B = pd.DataFrame({"b": [1.0]})
REFUSED = [
    (X0, {"interval": 0.99}, "interval is 0.99, but 30 held-out rows give intervals of coverage"),
    (X0, {"interval": 0.3}, "interval is 0.3; expected the fraction to cover, from 0.5 to below 1"),
    (X0, {"size": 7}, "size is 7; expected one of 0, 1, 3."),
    (X0[:, :4], {}, "X has 4 columns, but the model was made from 9; expected the same columns"),
    (X0[0], {}, "X has shape (9,); expected a table"),
    (X0[:0], {}, "X has 0 rows; expected at least one row"),
    (B, {"size": 1}, "X lacks the column 'x0'; expected all columns that the model"),
    (B, {"size": 3, "interval": 0.9}, "expected all columns that the folds chose"),
]


def test_refusals_are_one_sentence():
    _, curve = selected()
    for X, asked, words in REFUSED:
        assert words in sentence_of(ValueError, lambda X=X, asked=asked: curve.predict(X, **asked))


def test_older_result_predicts_points():
    problem, curve = selected()
    record = curve_to_json(curve)
    del record["fold_fits"]
    older = curve_from_json(record)
    assert older.fold_fits is None
    assert older.predict(problem.X).tolist() == curve.predict(problem.X).tolist()
    message = sentence_of(ValueError, lambda: older.predict(problem.X, interval=0.9, predict_with="subset"))
    assert "lacks the fits of its folds" in message
    assert "select again" in message


def test_many_folds_keep_sizes_that_an_answer_names(monkeypatch):
    monkeypatch.setattr(prediction_module, "KEPT_NUMBERS", 100)
    problem, curve = selected("loo", sizes=(1, 2, 3, 4, 5, 6))
    kept = set(curve.fold_fits.sizes.tolist())
    assert kept == {0, curve.best_size, curve.one_se_size, curve.answer.size}
    assert curve.predict(problem.X, interval=0.9, predict_with="subset").size == curve.answer.size
    lost = next(size for size in curve.sizes.tolist() if size not in kept)
    assert curve.predict(problem.X, lost).shape == (M,)
    message = sentence_of(ValueError, lambda: curve.predict(problem.X, lost, interval=0.9))
    assert message.startswith(f"size is {lost}, but of this many folds the result keeps fits of sizes 0, ")


@pytest.mark.parametrize("options", OPTIONS)
def test_limit_of_the_leverage(options):
    problem, curve = selected(**OPTIONS[options])
    columns = np.sort(np.concatenate([curve.always, curve.supports[curve.at(3)]]))
    constant, w = problem.center is not None, problem.sample_weight
    rows = np.flatnonzero(w)
    Z = np.column_stack([np.ones(M), problem.X[:, columns]])[:, 1 - constant :]

    def leverage(row, without=()):
        A = sum(w[i] * np.outer(Z[i], Z[i]) for i in rows if i not in without)
        return row @ np.linalg.solve(A, row)

    limit = 1.5 * max(leverage(Z[i], [i]) for i in rows)
    middle = np.average(Z, axis=0, weights=w) * constant
    least = leverage(middle)
    for far in (0.999, 1.001):
        times = np.sqrt((far * limit - least) / (leverage(Z[3]) - least))
        row = middle + times * (Z[3] - middle)
        assert leverage(row) == pytest.approx(far * limit)
        known = curve.training_ranges[curve.at(3)]
        assert known.outside(row[None, constant:]).tolist() == [far > 1]


def test_rows_outside_are_marked_with_one_warning(tmp_path):
    problem, curve = selected()
    new = problem.X[:6].copy()
    new[[1, 4]] = 5 * new[[1, 4]] + 30
    curve.save(tmp_path / "c.json")
    for each in (curve, SizeCurve.load(tmp_path / "c.json")):
        with pytest.warns(UserWarning, match=r"^2 of 6 rows lie outside .* extrapolations \(rows 2, 5\)\.$") as caught:
            told = each.predict(new, 3, interval=0.9)
        assert len(caught) == 1
        assert told.outside.tolist() == [False, True, False, False, True, False]
        assert told.to_pandas()["outside_training_range"].tolist() == told.outside.tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        curve.predict(problem.X[:6], 3)
        older = dataclasses.replace(curve, training_ranges=None)
        assert older.predict(new, 3, interval=0.9).outside is None


def test_rows_of_the_same_population_are_seldom_outside():
    rng = np.random.default_rng(9)
    marked = []
    for _ in range(60):
        problem = SubsetProblem(rng.normal(size=(30, 3)), rng.normal(size=30))
        marked.append(prediction_module.training_range(problem, np.arange(3)).outside(rng.normal(size=(200, 3))).mean())
    assert 0 < np.mean(marked) < 0.01


@pytest.mark.parametrize(
    "estimator", [SubsetRegressor(2, random_state=0), SubsetRegressorCV([2], cv=5, random_state=0)]
)
def test_estimators_warn_of_rows_outside(estimator):
    X, y = table()
    model = estimator.fit(X, y)
    with pytest.warns(UserWarning, match=r"^some rows lie outside .* extrapolations\.$"):
        model.predict(np.vstack([X[:2], 9 * X[2:3] + 30, X[3:9]]))


def with_outliers():
    """Two rows are far from all others, each in a direction of its own."""
    X = np.random.default_rng(3).normal(size=(53, 4))
    X[5, 0], X[40, 3] = 1e3, 1e3
    return X, 2 * X[:, 0] - X[:, 3]


def test_folds_of_a_cross_validation_say_the_same_of_rows_outside():
    X, y = with_outliers()
    with warnings.catch_warnings(record=True, action="always") as caught:
        cross_val_score(SubsetRegressor(2, random_state=0), X, y, cv=10)
    assert len(caught) > 1
    assert len({(str(each.message), each.filename, each.lineno) for each in caught}) == 1  # that Python shows once


def test_outer_folds_warn_of_nothing():
    problem = SubsetProblem(*with_outliers())
    with warnings.catch_warnings(action="error"):
        curve = select_size(problem, [1, 2], 3, effort="quick", outer=10)
    assert curve.outer is not None


@pytest.mark.parametrize("choose", ["auto", "best", "one_se"])
def test_estimator_intervals(choose):
    X, y = table()
    model = SubsetRegressorCV(sizes=[1, 2, 3], cv=5, choose=choose, effort="quick", random_state=0)
    with pytest.raises(NotFittedError):
        model.predict_interval(X)
    frame = pd.DataFrame(X, columns=list("abcdefghi"))
    expected = model.fit(frame, y).curve_.predict(X, model.n_nonzero_coefs_, interval=0.8)
    bounds = np.column_stack([expected.lower, expected.upper])
    assert model.predict_interval(frame, coverage=0.8).tolist() == bounds.tolist()
    np.testing.assert_allclose(model.predict(frame), expected.prediction, rtol=1e-12)
    with pytest.raises(ValueError, match="feature names"):
        model.predict_interval(frame[list("ihgfedcba")])
    assert "expected the fraction to cover" in sentence_of(ValueError, lambda: model.predict_interval(frame, 1.0))
