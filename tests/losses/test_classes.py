"""Choosing the size with classes and counts: folds, held-out errors, what is said, what is refused."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.metrics import d2_log_loss_score, log_loss, mean_poisson_deviance, roc_auc_score

from pairflip import SubsetProblem, select_size
from pairflip.report.answer import answer_of
from pairflip.selection.criteria import auc, confusion, roc
from pairflip.selection.decide import held_out
from pairflip.text import number, r2_text

M, N = 90, 12


def table(loss, seed=0, strength=1.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(M, N))
    eta = strength * (X[:, 2] - X[:, 5])
    if loss == "poisson":
        return X, rng.poisson(np.exp(0.5 + 0.4 * eta))
    return X, np.where(rng.random(M) < 1 / (1 + np.exp(-eta + 0.5)), "sick", "healthy")


@pytest.fixture(scope="module")
def curve():
    X, y = table("logistic")
    return select_size(SubsetProblem(X, y, loss="logistic", ridge=1e-5), range(1, 5), 5, stability=10)


def test_held_out_errors_are_those_of_refitted_supports(curve):
    X, y = table("logistic")
    event = (y == "sick").astype(float)
    at = curve.at(2)
    for fold in range(5):
        place = curve.held_out_fold == fold
        rows = curve.held_out_rows[place]
        train = np.setdiff1d(np.arange(M), rows)
        support = curve.fold_supports[at][fold]
        kind = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000, solver="newton-cholesky")
        theirs = kind.fit(X[np.ix_(train, support)], y[train]).predict_proba(X[np.ix_(rows, support)])[:, 1]
        np.testing.assert_allclose(curve.predictions[at][place], theirs, rtol=3e-3)
        np.testing.assert_allclose(curve.predictions[0][place], event[train].mean(), rtol=1e-9)  # size 0: the share
    p = curve.predictions[at]
    assert curve.cv_error[at] == pytest.approx(log_loss(curve.observed, p))
    assert curve.classes.auc[at] == pytest.approx(roc_auc_score(curve.observed, p))
    assert curve.classes.misclassified[at] == pytest.approx(np.mean((p > 0.5) != curve.observed))
    assert held_out(curve, 2).r2 == pytest.approx(d2_log_loss_score(curve.observed, p), abs=1e-6)
    assert curve.classes.labels == ["healthy", "sick"]
    assert curve.classes.majority == pytest.approx(min(event.mean(), 1 - event.mean()))
    assert curve.classes.auc[0] == 0.5
    assert curve.answer.size == 2
    assert curve.columns(2) == ["x2", "x5"]


def test_weighted_auc_and_confusion_are_scikit_learns():
    rng = np.random.default_rng(3)
    y, p, w = rng.integers(0, 2, 60).astype(float), np.round(rng.random(60), 1), rng.random(60)
    assert auc(y, p, w) == pytest.approx(roc_auc_score(y, p, sample_weight=w))
    false, true = roc(y, p, w)
    assert np.trapezoid(true, false) == pytest.approx(auc(y, p, w))
    assert np.isnan(auc(np.ones(5), p[:5], w[:5]))
    table = confusion(y.astype(int), (p > 0.5).astype(int), w, 2)
    assert table.sum() == pytest.approx(w.sum())
    assert table[1, 0] == pytest.approx(w[(y == 1) & (p <= 0.5)].sum())


def test_predictions_are_probabilities_and_have_no_intervals(curve):
    X, y = table("logistic", seed=4)
    p = curve.predict(X)
    assert p.min() > 0
    assert p.max() < 1
    assert roc_auc_score(y == "sick", p) > 0.75
    with pytest.raises(ValueError, match="no such interval"):
        curve.predict(X, interval=0.9)


def test_standard_errors_are_those_of_maximum_likelihood(curve):
    X, y = table("logistic")
    rows = curve.coefficients(2)
    D = np.column_stack([np.ones(M), X[:, [2, 5]]])
    p = 1 / (1 + np.exp(-D @ rows["coefficient"].to_numpy()))
    inverse = np.linalg.inv(D.T @ (D * (p * (1 - p))[:, None]))
    np.testing.assert_allclose(rows["standard_error"], np.sqrt(np.diag(inverse)), rtol=1e-3)
    leverage = np.einsum("md,de,me->m", D, inverse, D) * p * (1 - p)
    moved = inverse @ D.T * ((y == "sick") - p) / (1 - leverage)  # by each row: HC3
    np.testing.assert_allclose(rows["robust_error"], np.sqrt(np.sum(moved**2, axis=1)), rtol=1e-3)
    shrunken = SubsetProblem(X, y, loss="logistic", ridge=0.3)
    influence = shrunken.loss.influence(shrunken, shrunken.fit([2, 5]))
    np.testing.assert_allclose(influence.ordinary, np.linalg.norm(influence.by_row, axis=1), rtol=1e-9)
    assert rows["frequency"].iloc[1:].min() > 0.5  # half-samples know these columns, too
    energy = SubsetProblem(X, y, loss="logistic").energy([2, 5])
    assert curve.criteria["bic"][curve.at(2)] == pytest.approx(2 * energy + 3 * np.log(M))


def test_the_answer_speaks_of_classes(curve):
    answer = answer_of(curve)
    wrong = f"Wrong class {100 * curve.classes.misclassified[curve.at(2)]:.0f} % (held-out rows; "
    assert wrong in answer.text
    assert f"{100 * curve.classes.majority:.0f} % if all are called 'healthy'" in answer.text
    low, high = (f"{end:.2f}" for end in curve.answer.error.auc[1:])
    assert f"({low} to {high}; 0.5 is chance)" in answer.text
    assert (
        curve.answer.error.auc[1]
        < roc_auc_score(curve.observed, curve.predictions[curve.at(2)])
        < curve.answer.error.auc[2]
    )
    for word in ("RMSE", "R2", "variance"):
        assert word not in str(curve)
    record = answer.to_json(curve)
    assert record["auc"] == curve.classes.auc[curve.at(2)]
    assert record["corrected"]["auc_interval"] == list(curve.answer.error.auc[1:])
    frame = curve.to_pandas()
    assert frame["misclassified"].tolist() == curve.classes.misclassified.tolist()
    assert frame["auc"].tolist() == curve.classes.auc.tolist()
    assert {"rmse", "r2"}.isdisjoint(frame)
    assert "rmse" not in record


def test_noise_and_separation_are_told():
    X, _ = table("logistic")
    noise = np.random.default_rng(1).random(M) < 0.5
    nothing = answer_of(select_size(SubsetProblem(X, noise, loss="logistic"), [1, 2], 5))
    assert nothing.size == 0
    assert "No set of columns predicts the class better than the class frequencies." in nothing.text
    apart = select_size(SubsetProblem(X, X[:, 1] > 0, loss="logistic", ridge=1e-5), [1, 2], 5)
    assert apart.facts["separated"] == [1, 2]
    assert apart.facts["separated_folds"] == {"1": 5, "2": 5}
    assert "separate the classes of this table completely" in answer_of(apart).cautions[0]
    assert "--ridge auto" in answer_of(apart).cautions[0]
    y = (X[:, 1] > 0) != (np.arange(M) == np.argmax(X[:, 1]))  # one row alone is on the other side
    some = select_size(SubsetProblem(X, y, loss="logistic", ridge=1e-5), [1], 5)
    assert some.facts["separated_folds"] == {"1": 1}
    assert "the training rows of 1 of 5 folds completely" in answer_of(some).cautions[0]


def test_counts_with_an_offset_and_a_forced_column():
    X, y = table("poisson")
    time = np.linspace(0.5, 2.0, M)
    problem = SubsetProblem(X, y, loss="poisson", offset=np.log(time), always=[0], ridge=1e-5)
    curve = select_size(problem, [1, 2, 3], 5)
    at, fold = curve.at(2), 0
    place = curve.held_out_fold == fold
    rows = curve.held_out_rows[place]
    train = np.setdiff1d(np.arange(M), rows)
    columns = np.r_[0, curve.fold_supports[at][fold]]
    theirs = PoissonRegressor(alpha=0, tol=1e-10, max_iter=10_000, solver="newton-cholesky").fit(
        X[np.ix_(train, columns)], y[train] / time[train], sample_weight=time[train]
    )
    expected = theirs.predict(X[np.ix_(rows, columns)]) * time[rows]
    np.testing.assert_allclose(curve.predictions[at][place], expected, rtol=1e-3)
    assert 2 * curve.cv_error[at] == pytest.approx(mean_poisson_deviance(curve.observed, curve.predictions[at]))
    assert curve.columns(2) == ["x2", "x5"]
    assert "deviance" in answer_of(curve).text
    assert curve.classes is None
    rate = time[curve.held_out_rows] * y.sum() / time.sum()
    about = mean_poisson_deviance(curve.observed, rate)
    assert held_out(curve, 2).r2 == pytest.approx(1 - 2 * curve.cv_error[at] / about)


def test_held_out_rows_choose_a_larger_ridge_where_classes_are_separated(tmp_path):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(50, 80))
    y = X[:, :4].sum(axis=1) + 0.5 * rng.normal(size=50) > 0
    problem = SubsetProblem(X, y, loss="logistic")
    plain = select_size(SubsetProblem(X, y, loss="logistic", ridge=1e-5), [2, 4, 6], 5, effort="quick")
    curve = select_size(problem, [2, 4, 6], 5, effort="quick", ridge=[0, 0.01, 0.1], journal=tmp_path)
    np.testing.assert_array_equal(curve.ridge_errors[0], plain.cv_error)
    assert curve.ridge > 0
    assert curve.cv_error.min() < plain.cv_error.min()
    alone = select_size(SubsetProblem(X, y, loss="logistic", ridge=1e-5 + curve.ridge), [2, 4, 6], 5, effort="quick")
    np.testing.assert_allclose(curve.cv_error, alone.cv_error, rtol=1e-9)
    assert "Coefficients are shrunk" in answer_of(curve).text


def clusters(rows=60, columns=600, size=20, new=1000):
    """Columns in clusters of `size`, correlated by 0.7; the common factor of one of them makes the class."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(rows + new, columns // size))
    X = 0.7**0.5 * np.repeat(factors, size, axis=1) + 0.3**0.5 * rng.normal(size=(rows + new, columns))
    y = rng.random(rows + new) < 1 / (1 + np.exp(-3 * factors[:, 3]))
    return X[:rows], y[:rows], X[rows:], y[rows:]


@pytest.mark.filterwarnings("ignore:.*outside the range:UserWarning")
def test_few_rows_and_many_correlated_columns_are_not_called_nothing():
    """Training rows are separated in many folds: without a penalty the log loss of a few rows would decide."""
    X, y, new, truth = clusters()
    curve = select_size(SubsetProblem(X, y, loss="logistic"), range(1, 7), 10, effort="quick")
    assert curve.ridges.tolist() == [0.01, 0.1, 1.0]
    assert curve.answer.size > 0
    assert roc_auc_score(truth, curve.predict(new)) > 0.8
    assert "Coefficients are shrunk by a ridge term" in answer_of(curve).text
    plain = select_size(SubsetProblem(X, y, loss="logistic", ridge=1e-5), range(1, 7), 10, effort="quick")
    assert curve.cv_error[2:].max() < 0.75 < plain.cv_error[2:].max()  # class frequencies have 0.69


def test_a_fold_without_a_class_to_learn_is_refused():
    X, _ = table("logistic")
    problem = SubsetProblem(X, np.arange(M) == 3, loss="logistic")
    with pytest.raises(ValueError, match="training rows of fold 4 have one class only"):
        select_size(problem, [1], "loo")
    for given in ({"null": 2}, {"method": "anneal"}, {"engine": "cuda"}):
        with pytest.raises(ValueError, match=next(iter(given))):
            select_size(problem, [1], 3, **given)


def test_an_outer_cross_validation_and_a_wide_table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 300))
    y = rng.random(120) < 1 / (1 + np.exp(-4 * X[:, 7]))
    problem = SubsetProblem(X, y, loss="logistic", memory_budget=1000)
    curve = select_size(problem, [1, 2], 5, outer=3, effort="quick")
    assert 7 in curve.supports[curve.at(1)]
    assert 0 < curve.outer.error < curve.cv_error[0]
    assert 0 < curve.outer.r2 < 1
    told = f"In 3 outer folds: log loss {number(curve.outer.error, 3)}, D2 {r2_text(curve.outer.r2)}."
    assert told in answer_of(curve).text
