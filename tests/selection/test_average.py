"""The weighted average of models: against a loop written out by hand, for every loss, saved, resumed and refused."""

import numpy as np
import pytest
from scipy.optimize import nnls

from pairflip import SizeCurve, SubsetClassifierCV, SubsetProblem, SubsetRegressorCV, select_size
from pairflip.report.predicted_words import average_words
from pairflip.selection.averaging import PENALTIES
from pairflip.selection.folds import as_folds

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
    return select_size(of, sizes, **({"cv": 4, "effort": "quick", "progress": False} | settings))


def ridge(rows, penalty):
    """Constant and coefficients of ridge regression on all columns, scaled to unit norm on these rows."""
    away = X[rows] - X[rows].mean(axis=0)
    norms = np.linalg.norm(away, axis=0)
    G = (away / norms).T @ (away / norms)
    at = penalty * np.trace(G) / len(rows)
    coef = np.linalg.solve(G + at * np.eye(9), (away / norms).T @ (Y[rows] - Y[rows].mean())) / norms
    return Y[rows].mean() - X[rows].mean(axis=0) @ coef, coef


def test_hand_made_loop():
    curve, folds = averaged(problem(), seed=3), as_folds(4, problem(), seed=3)
    held_out, new = np.zeros((48, 3 + len(PENALTIES))), np.zeros((7, 3 + len(PENALTIES)))
    mean = np.zeros(48)
    for fold, left in enumerate(folds.left_out):
        rows = np.setdiff1d(np.arange(48), left)
        mean[left] = Y[rows].mean()
        for at, size in enumerate((1, 2, 3)):
            support = curve.fold_supports[size][fold]
            D = np.column_stack([np.ones(rows.size), X[np.ix_(rows, support)]])
            coef = np.linalg.lstsq(D, Y[rows], rcond=None)[0]
            held_out[left, at] = coef[0] + X[np.ix_(left, support)] @ coef[1:]
            new[:, at] += (coef[0] + NEW[:, support] @ coef[1:]) / 4
        for at, penalty in enumerate(PENALTIES):
            constant, coef = ridge(rows, penalty)
            held_out[left, 3 + at] = constant + X[left] @ coef
    for at, penalty in enumerate(PENALTIES):
        constant, coef = ridge(np.arange(48), penalty)
        new[:, 3 + at] = constant + NEW @ coef
    slack = np.append(held_out - mean[:, None], np.zeros((48, 1)), axis=1)
    weights = nnls(np.vstack([slack, 1e5 * np.ones(slack.shape[1])]), np.append(Y - mean, 1e5))[0][:-1]
    weights[weights < 1e-3] = 0.0
    base = np.mean([np.delete(Y, left).mean() for left in folds.left_out])
    expected = base * (1.0 - weights.sum()) + new @ weights
    np.testing.assert_allclose(curve.predict(NEW, predict_with="average"), expected, rtol=1e-4, atol=1e-4)
    assert curve.average.all_columns == pytest.approx(weights[3:].sum(), abs=1e-4)
    told = curve.average.corrected
    np.testing.assert_allclose(told.told, 0.5 * np.mean((Y - curve.average.predictions) ** 2))
    assert told.low < told.error < told.high


def test_rows_are_predicted_by_weights_that_were_chosen_without_them():
    noise = np.random.default_rng(1).standard_normal((48, 9))
    average = averaged(SubsetProblem(noise, TARGETS["squares"]), seed=3, sizes=range(1, 9)).average
    told = average.corrected
    assert told.told > 0.97 * told.variance  # weights chosen on these rows themselves would make it lower
    fitted = np.column_stack([np.ones(48), noise[:, average.columns]])
    assert np.mean((Y - fitted @ np.append(average.intercept, average.coefs)) ** 2) < 2.0 * told.variance


@pytest.mark.parametrize("loss", TARGETS)
def test_every_loss_saved_and_loaded(loss, tmp_path):
    curve = averaged(problem(loss), ridge=[0.1, 1.0])
    curve.save(tmp_path / "curve.json")
    again, predicted = SizeCurve.load(tmp_path / "curve.json"), curve.predict(NEW, predict_with="average")
    np.testing.assert_array_equal(again.predict(NEW, predict_with="average"), predicted)
    assert again.average.corrected == curve.average.corrected
    assert again.answer == curve.answer
    assert np.isfinite(predicted).all()
    assert predicted.shape == (7, *curve.intercepts.shape[1:])
    assert not np.allclose(predicted, curve.predict(NEW, predict_with="subset"))
    if curve.classes is not None:
        assert ((predicted > 0) & (predicted < 1)).all()
    if loss == "multinomial":
        np.testing.assert_allclose(predicted.sum(axis=1), 1.0)
    if loss != "cox":  # weights are no worse than those of any single candidate
        errors = curve.loss.row_errors(curve.observed, curve.predictions[curve.at(2)])
        assert curve.average.corrected.told < 0.75 * errors.mean() * (1 + (loss == "multinomial"))


def test_offset_rows_of_weight_zero_and_forced_columns():
    weights = np.ones(48)
    weights[:4] = 0.0
    curve = averaged(problem("poisson", offset=0.1 * X[:, 8], always=[5], sample_weight=weights))
    assert curve.average.rows.tolist() == list(range(4, 48))
    assert curve.average.always_coefs.shape == (1,)
    assert not np.isin(5, curve.average.columns)
    assert np.isfinite(curve.predict(NEW, predict_with="average")).all()


def test_groups_of_columns_and_of_rows():
    grouped = problem(groups={"a": [0, 1, 2], "b": [3, 4]})
    curve = averaged(grouped, sizes=[1, 2], groups=np.repeat(np.arange(12), 4))
    columns = set(curve.average.selected.tolist())
    assert columns >= {0, 1, 2} or not columns & {0, 1, 2}
    expected = NEW[:, curve.average.columns] @ curve.average.coefs + curve.average.intercept
    np.testing.assert_allclose(curve.predict(NEW, predict_with="average"), expected)


def test_workers_and_resume(tmp_path):
    how = {"cv": "2x4", "sizes": None}
    first = averaged(problem(), journal=tmp_path / "journal", **how)
    lines = next((tmp_path / "journal").glob("ridge-0.1-*/tasks-*.jsonl"))
    text = lines.read_text().splitlines(keepends=True)
    lines.write_text("".join(text[: len(text) // 2]))
    for again in (averaged(problem(), journal=tmp_path / "journal", **how), averaged(problem(), n_jobs=2, **how)):
        for name in ("columns", "coefs", "predictions"):
            np.testing.assert_array_equal(getattr(again.average, name), getattr(first.average, name))


def test_intervals_are_as_wide_as_errors_of_rows_left_out():
    curve = averaged(problem())
    given = curve.predict(NEW, interval=0.8, predict_with="average")
    errors = np.sort(np.abs(curve.average.observed - curve.average.predictions))
    reached = errors[int(np.ceil(0.8 * 49)) - 1]
    np.testing.assert_allclose(given.upper - given.prediction, reached)
    np.testing.assert_allclose(given.prediction - given.lower, reached)
    assert given.size == curve.average.columns.size
    with pytest.raises(ValueError, match=r"held-out rows give intervals of coverage up to 0\.979"):
        curve.predict(NEW, interval=0.99, predict_with="average")
    with pytest.raises(ValueError, match="probabilities of a class"):
        averaged(problem("logistic")).predict(NEW, interval=0.9, predict_with="average")


def test_refusals():
    curve = averaged(problem())
    with pytest.raises(ValueError, match="size is 2 and predict_with is 'average', which has no size"):
        curve.predict(NEW, 2, predict_with="average")
    with pytest.raises(ValueError, match="predict_with is 'mean'; expected 'auto', 'subset', 'average'"):
        curve.predict(NEW, predict_with="mean")
    with pytest.raises(ValueError, match="predict_with is 'both'; expected 'auto', 'subset', 'average'"):
        averaged(problem(), predict_with="both")
    assert curve.predict(NEW, 2).shape == (7,)  # a size asks for its columns


def test_the_answer_names_what_predicts():
    curve = averaged(problem())
    gain, error = curve.answer.gain
    assert curve.answer.predictor == ("average" if gain >= -2.0 * error else "subset")
    np.testing.assert_array_equal(curve.predict(NEW), curve.predict(NEW, predict_with=curve.answer.predictor))
    for asked in ("subset", "average"):
        other = averaged(problem(), predict_with=asked)
        assert other.answer.predictor == asked
        np.testing.assert_array_equal(other.predict(NEW), curve.predict(NEW, predict_with=asked))
    assert average_words(curve) in " ".join(str(curve).split())
    words = average_words(averaged(problem("logistic")))
    assert words.startswith("A weighted average of models predicts")
    assert "log loss" in words
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
    model = SubsetClassifierCV([1, 2], predict_with="average", **how).fit(X, TARGETS[loss])
    given, expected = model.predict_proba(NEW), model.curve_.predict(NEW, predict_with="average")
    np.testing.assert_allclose(given if expected.ndim == 2 else given[:, 1], expected)
    assert model.predict(NEW).tolist() == model.classes_[np.argmax(given, axis=1)].tolist()
