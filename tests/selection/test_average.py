"""The average over half-samples: against a loop written out by hand, for every loss, saved, resumed and refused."""

from dataclasses import replace

import numpy as np
import pytest

from pairflip import SizeCurve, SubsetClassifierCV, SubsetProblem, SubsetRegressorCV, select_size
from pairflip.report.predicted_words import average_words
from pairflip.selection.prediction import average_gain
from pairflip.selection.subsampling import half_samples
from pairflip.selection.verdict import recommended_size

RNG = np.random.default_rng(5)
X = RNG.standard_normal((48, 9))
Y = X[:, :3] @ [2.0, -1.0, 1.0] + RNG.standard_normal(48)
NEW = RNG.standard_normal((7, 9))
TARGETS = {
    "squares": Y,
    "several": np.column_stack([Y, 3.0 * X[:, 4] + RNG.standard_normal(48)]),
    "logistic": Y > 0,
    "multinomial": np.digitize(Y, [-1.0, 1.0]),
    "poisson": RNG.poisson(np.exp(np.clip(Y / 3, -2, 2))),
    "cox": np.column_stack([RNG.exponential(np.exp(-Y)), RNG.random(48) < 0.8]),
}


def problem(loss="squares", **options):
    name = "squares" if loss == "several" else loss
    return SubsetProblem(X, TARGETS[loss], loss=name, **options)


def averaged(of, sizes=(1, 2, 3), **settings):
    given = {"cv": 4, "effort": "quick", "stability": 5, "progress": False, "predict_with": "average"} | settings
    return select_size(of, sizes, **given)


def fit(rows, columns, ridge):
    """Constant and coefficients by the normal equations, with a ridge relative to the norms of centred columns."""
    Z, y = X[np.ix_(rows, columns)], Y[rows]
    away = Z - Z.mean(axis=0)
    G = away.T @ away
    coef = np.linalg.solve(G + ridge * np.diag(np.diag(G)), away.T @ (y - y.mean()))
    return y.mean() - Z.mean(axis=0) @ coef, coef


@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_hand_made_loop(ridge):
    curve = averaged(problem(), sizes=[3], ridge=[ridge], seed=3)
    average, halves = curve.average, half_samples(problem(), 5, 3)
    sums, times, new = np.zeros(48), np.zeros(48), np.zeros(7)
    for support, coefs, left in zip(average.supports, average.coefs, halves.left_out, strict=True):
        constant, coef = fit(np.setdiff1d(np.arange(48), left), support, ridge)
        np.testing.assert_allclose(coefs, coef, rtol=1e-9)
        sums[left] += constant + X[np.ix_(left, support)] @ coef
        times[left] += 1
        new += constant + NEW[:, support] @ coef
    np.testing.assert_allclose(average.predictions, sums / times, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(average.errors[0, 0], 0.5 * np.mean((Y - sums / times) ** 2), rtol=1e-9)
    np.testing.assert_allclose(curve.predict(NEW), new / 10, rtol=1e-9, atol=1e-9)


def test_lowest_error_is_chosen():
    average = averaged(problem(), ridge=[0.0, 0.3]).average
    assert average.errors.shape == (2, 3)
    assert average.errors[average.ridges == average.ridge, average.sizes == average.size] == average.errors.min()
    observed = 0.5 * np.mean((average.observed - average.predictions) ** 2)
    np.testing.assert_allclose(observed, average.errors.min())
    assert average.corrected.size == average.size
    np.testing.assert_allclose(average.corrected.told, observed)
    assert average.corrected.low < average.corrected.error < average.corrected.high


def test_a_half_knows_its_rows_only():
    left = half_samples(problem(), 5, 0).left_out[4]
    other, garbage = X.copy(), Y.copy()
    other[left], garbage[left] = 1e3 * RNG.standard_normal((left.size, 9)), -1e4
    before = averaged(problem(), sizes=[2], ridge=[0.1]).average
    after = averaged(SubsetProblem(other, garbage), sizes=[2], ridge=[0.1]).average
    assert before.supports[4].tolist() == after.supports[4].tolist()
    np.testing.assert_allclose(before.coefs[4], after.coefs[4], rtol=1e-6)
    assert not np.allclose(before.coefs[0], after.coefs[0])


@pytest.mark.parametrize("loss", TARGETS)
def test_every_loss_saved_and_loaded(loss, tmp_path):
    curve = averaged(problem(loss), ridge=[0.1, 1.0], stability=3)
    curve.save(tmp_path / "curve.json")
    again, predicted = SizeCurve.load(tmp_path / "curve.json"), curve.predict(NEW)
    np.testing.assert_array_equal(again.predict(NEW), predicted)
    assert again.average.corrected == curve.average.corrected
    assert np.isfinite(predicted).all()
    assert predicted.shape == (7, *curve.intercepts.shape[1:])
    assert not np.allclose(predicted, curve.predict(NEW, predict_with="subset"))
    if curve.classes is not None:
        assert ((predicted > 0) & (predicted < 1)).all()
    if loss == "multinomial":
        np.testing.assert_allclose(predicted.sum(axis=1), 1.0)


def test_offset_rows_of_weight_zero_and_forced_columns():
    weights = np.ones(48)
    weights[:4] = 0.0
    curve = averaged(problem("poisson", offset=0.1 * X[:, 8], always=[5], sample_weight=weights), stability=3)
    assert curve.average.rows.tolist() == list(range(4, 48))
    assert curve.average.always_coefs.shape == (6, 1)
    assert not np.isin(5, curve.average.supports)
    assert np.isfinite(curve.predict(NEW)).all()


def test_groups_of_columns_and_of_rows():
    grouped = problem(groups={"a": [0, 1, 2], "b": [3, 4]})
    labels = np.repeat(np.arange(12), 4)
    curve = averaged(grouped, sizes=[1, 2], groups=labels, stability=3)
    average = curve.average
    for support in average.supports:
        columns = set(support[support >= 0].tolist())
        assert columns >= {0, 1, 2} or not columns & {0, 1, 2}
    expected = np.zeros(7)
    for support, coef, constant in zip(average.supports, average.coefs, average.intercepts, strict=True):
        expected += constant + NEW[:, support[support >= 0]] @ coef[support >= 0]
    np.testing.assert_allclose(curve.predict(NEW), expected / 6)


def test_workers_and_resume(tmp_path):
    first = averaged(problem(), journal=tmp_path / "journal")
    lines = next((tmp_path / "journal" / "averaged").glob("tasks-*.jsonl"))
    text = lines.read_text().splitlines(keepends=True)
    lines.write_text("".join(text[: len(text) // 2]))
    for again in (averaged(problem(), journal=tmp_path / "journal"), averaged(problem(), n_jobs=2)):
        for name in ("errors", "supports", "coefs", "predictions"):
            np.testing.assert_array_equal(getattr(again.average, name), getattr(first.average, name))


def test_made_with_stability_and_not_otherwise():
    assert averaged(problem(), predict_with="subset").average is not None
    bare = averaged(problem(), predict_with="subset", stability=0)
    assert bare.average is None
    assert average_words(bare) == ""
    assert len(averaged(problem(), stability=0).average.supports) == 100


def test_intervals_are_as_wide_as_errors_of_rows_left_out():
    curve = averaged(problem())
    given = curve.predict(NEW, interval=0.8)
    errors = np.sort(np.abs(curve.average.observed - curve.average.predictions))
    reached = errors[int(np.ceil(0.8 * 49)) - 1]
    np.testing.assert_allclose(given.upper - given.prediction, reached)
    np.testing.assert_allclose(given.prediction - given.lower, reached)
    assert given.size == curve.average.size
    with pytest.raises(ValueError, match=r"held-out rows give intervals of coverage up to 0\.979"):
        curve.predict(NEW, interval=0.99)
    with pytest.raises(ValueError, match="probabilities of a class"):
        averaged(problem("logistic"), stability=3).predict(NEW, interval=0.9)


def test_refusals():
    curve, bare = averaged(problem()), averaged(problem(), stability=0, predict_with="subset")
    with pytest.raises(ValueError, match="size is 2 and predict_with is 'average', which has a size of its own"):
        curve.predict(NEW, 2, predict_with="average")
    with pytest.raises(ValueError, match="has no average over half-samples; expected predict_with='subset'"):
        bare.predict(NEW, predict_with="average")
    with pytest.raises(ValueError, match="predict_with is 'mean'; expected 'subset' or 'average'"):
        curve.predict(NEW, predict_with="mean")
    with pytest.raises(ValueError, match="predict_with is 'both'; expected 'subset' or 'average'"):
        averaged(problem(), predict_with="both")
    with pytest.raises(ValueError, match="a half has only"):
        averaged(SubsetProblem(X[:6, :3], Y[:6]), sizes=[2], cv="loo")
    assert averaged(SubsetProblem(X[:6, :3], Y[:6]), sizes=[2], cv="loo", predict_with="subset").average is None
    assert curve.predict(NEW, 2).shape == (7,)  # a size asks for its columns


def with_errors(curve, factor):
    """The curve whose average is off by so many times the errors of the chosen columns, row by row."""
    average, at = curve.average, curve.at(recommended_size(curve))
    folds = np.empty(48)
    folds[curve.held_out_rows] = curve.predictions[at]
    told = replace(average.corrected, error=factor**2 * curve.chosen.error)
    predictions = average.observed + factor * (folds - average.observed)
    return replace(curve, average=replace(average, predictions=predictions, corrected=told))


def test_words():
    curve = averaged(problem())
    subset = f"{curve.chosen.rmse[0]:.3g}"
    for factor, words in ((0.5, "predicts better, at odds of 2 to 1"), (2.0, "predicts less well, at odds of 2 to 1")):
        expected = f"The average over half-samples {words}: RMSE {factor * curve.chosen.rmse[0]:.3g} against {subset}."
        assert average_words(with_errors(curve, factor)) == expected
        gain, error = average_gain(with_errors(curve, factor))
        rows = 0.5 * (1.0 - factor**2) * (curve.observed - curve.predictions[curve.at(curve.chosen.size)]) ** 2
        np.testing.assert_allclose([gain, error], [rows.mean(), rows.std() / 47**0.5])
    words = f"By the average over half-samples: RMSE {subset} against {subset}, no clear difference."
    assert average_words(with_errors(curve, 1.0)) == words
    assert words in " ".join(str(with_errors(curve, 1.0)).split())
    words = average_words(averaged(problem("logistic"), stability=3))
    assert words.startswith("By the average over half-samples: log loss")
    assert words.endswith(").")
    assert "AUC" in words


def test_regressor():
    model = SubsetRegressorCV([1, 2, 3], cv=4, effort="quick", predict_with="average", random_state=0).fit(X, Y)
    np.testing.assert_allclose(model.predict(NEW), model.curve_.predict(NEW, predict_with="average"))
    assert not np.allclose(model.predict(NEW), NEW @ model.coef_ + model.intercept_)
    low, high = model.predict_interval(NEW).T
    assert ((low < model.predict(NEW)) & (model.predict(NEW) < high)).all()


@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
def test_classifier(loss):
    how = {"cv": 4, "effort": "quick", "ridge": 0.1, "random_state": 0}
    model = SubsetClassifierCV([1, 2], predict_with="average", stability=3, **how).fit(X, TARGETS[loss])
    given, expected = model.predict_proba(NEW), model.curve_.predict(NEW, predict_with="average")
    np.testing.assert_allclose(given if expected.ndim == 2 else given[:, 1], expected)
    assert model.predict(NEW).tolist() == model.classes_[np.argmax(given, axis=1)].tolist()
