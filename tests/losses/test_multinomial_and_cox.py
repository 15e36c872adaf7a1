"""Three and more classes, and survival times: derivatives, fits, searches against enumeration, what users see."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import d2_log_loss_score, log_loss

from pairflip import SizeCurve, SubsetClassifier, SubsetClassifierCV, SubsetProblem, select_size
from pairflip.losses.cox import CoxLoss
from pairflip.losses.influence import robust_errors
from pairflip.losses.multinomial import MultinomialLoss
from pairflip.report import write_report
from pairflip.selection.criteria import concordance
from pairflip.selection.decide import held_out
from pairflip.selection.folds import as_folds

Floats = NDArray[np.float64]


def survival_rows(rng: np.random.Generator, m: int) -> Floats:
    """Times with ties, some of them censored, at least one event that somebody outlives."""
    time, event = rng.integers(1, 8, m).astype(float), (rng.random(m) < 0.6).astype(float)
    time[:2], event[:2] = (1.0, 9.0), (1.0, 0.0)
    return np.column_stack([time, event])


def class_rows(rng: np.random.Generator, m: int, classes: int = 3) -> Floats:
    """Indicators, each class at least once."""
    codes = np.append(np.arange(classes), rng.integers(0, classes, m - classes))
    return (codes[:, None] == np.arange(classes)).astype(float)


LOSSES = {"multinomial": (MultinomialLoss(), class_rows), "cox": (CoxLoss(), survival_rows)}


@pytest.mark.parametrize("name", LOSSES)
def test_derivatives_are_those_of_the_value(name: str) -> None:
    loss, target = LOSSES[name]
    rng = np.random.default_rng(0)
    m, p, h = 12, 3, 1e-5
    y, w = target(rng, m), rng.uniform(0.5, 2.0, m)
    rows, q = loss.rows(y, w), loss.predictors(y)
    D = rng.standard_normal((2, p, m))
    theta = 0.5 * rng.standard_normal((2, p, q))
    if name == "multinomial":  # what all classes share is held at zero
        theta -= theta.mean(axis=2, keepdims=True)

    def at(theta: Floats) -> Any:
        return loss.system(rows, D, np.einsum("tpm,tpq->tmq", D, theta))

    value, gradient, hessian = at(theta)
    assert (value > 0).all()
    # What has no curvature of its own is given one: what all classes share, and the constant of the hazard.
    if name == "multinomial":
        shared = np.broadcast_to(np.einsum("tim,tjm,m->tij", D, D, w)[:, :, None, :, None] / q**2, hessian.shape)
    else:
        v = loss.derivatives(rows, np.einsum("tpm,tpq->tmq", D, theta))[2]
        mean = np.einsum("tpm,tm->tp", D, v)
        shared = (mean[:, :, None] * mean[:, None, :] / v.sum(axis=1)[:, None, None])[:, :, None, :, None]
    for i in range(p):
        for c in range(q):
            step = np.zeros_like(theta)
            step[:, i, c] = h
            above, below = at(theta + step), at(theta - step)
            np.testing.assert_allclose(gradient[:, i, c], -(above[0] - below[0]) / (2 * h), rtol=1e-6, atol=1e-8)
            curvature = -(above[1] - below[1]) / (2 * h)
            np.testing.assert_allclose(hessian[:, i, c], curvature + shared[:, i, c], rtol=1e-5, atol=1e-6)


def brute_force_partial_likelihood(time: Floats, event: Floats, eta: Floats) -> float:
    return sum(eta[i] - np.log(np.exp(eta[time >= time[i]]).sum()) for i in np.flatnonzero(event > 0))


def test_cox_counts_ties_as_breslow_does() -> None:
    rng = np.random.default_rng(1)
    y, eta = survival_rows(rng, 20), rng.standard_normal(20)
    value = CoxLoss().derivatives(CoxLoss().rows(y, np.ones(20)), eta[None, :, None])[0][0]
    tied = np.unique(y[y[:, 1] > 0, 0], return_counts=True)[1]
    most = -float(tied @ np.log(tied))  # the largest likelihood that any hazards of single rows give
    assert value == pytest.approx(most - brute_force_partial_likelihood(*y.T, eta), abs=1e-12)
    twice = CoxLoss().derivatives(CoxLoss().rows(np.vstack([y, y]), np.ones(40)), np.tile(eta, 2)[None, :, None])[0][0]
    heavy = CoxLoss().derivatives(CoxLoss().rows(y, np.full(20, 2.0)), eta[None, :, None])[0][0]
    assert twice == pytest.approx(heavy, abs=1e-10)
    assert heavy == pytest.approx(2 * value, abs=1e-10)


def test_concordance_is_the_count_over_all_pairs() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        y, risk, w = survival_rows(rng, 15), rng.integers(0, 5, 15).astype(float), rng.integers(1, 3, 15).astype(float)
        right = total = 0.0
        for i in range(15):
            for j in range(15):
                first = y[i, 1] == 1 and (y[i, 0] < y[j, 0] or (y[i, 0] == y[j, 0] and y[j, 1] == 0))
                if first:
                    total += w[i] * w[j]
                    right += w[i] * w[j] * (1.0 if risk[i] > risk[j] else 0.5 if risk[i] == risk[j] else 0.0)
        assert concordance(y, risk, w) == pytest.approx(right / total, abs=1e-12)


def planted(name: str, seed: int, rows: int = 40, columns: int = 7, **more: Any) -> SubsetProblem:
    """Columns 1 and 4 tell; ridge small, so that separated rows do no harm."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns)) @ (np.eye(columns) + 0.4 * rng.standard_normal((columns, columns)))
    return SubsetProblem(X, target_of(name, X, rng), loss=name, **more)


def target_of(name: str, X: Floats, rng: np.random.Generator) -> Any:
    """Labels, or times (rounded, so that some are equal) and events."""
    if name == "multinomial":
        eta = 1.5 * np.column_stack([X[:, 1], X[:, 4], np.zeros(len(X))])
        p = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
        codes = (p.cumsum(axis=1) < rng.random((len(X), 1))).sum(axis=1)
        codes[:3] = 0, 1, 2
        return np.array(["gentoo", "adelie", "<b>chinstrap"])[codes]
    time, censored = rng.exponential(np.exp(X[:, 1] - X[:, 4])), rng.exponential(3.0, len(X))
    return np.column_stack([np.round(np.minimum(time, censored), 1) + 0.1, time <= censored])


NAMES = ["multinomial", "cox"]


def test_multinomial_fits_are_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    for classes in (3, 5):
        X = 3.0 + 2.0 * rng.standard_normal((200, 4))
        y, w = rng.integers(0, classes, 200), rng.integers(1, 4, 200).astype(float)
        X[:, 0] += y
        fit = SubsetProblem(X, y, loss="multinomial", ridge=1e-13, sample_weight=w).fit([0, 1, 3])
        theirs = LogisticRegression(C=np.inf, tol=1e-12, solver="newton-cholesky").fit(
            X[:, [0, 1, 3]], y, sample_weight=w
        )
        np.testing.assert_allclose(fit.coef.T, theirs.coef_, atol=1e-6)
        np.testing.assert_allclose(fit.intercept, theirs.intercept_, atol=1e-6)


# Remission of 42 children with leukemia, in weeks: Freireich et al., Blood 21, 699 (1963), as in Cox, J. R. Stat. Soc.
# B 34, 187 (1972). With Breslow's ties the coefficient is 1.5092 and its standard error 0.4096.
TREATED = [6, 6, 6, 6, 7, 9, 10, 10, 11, 13, 16, 17, 19, 20, 22, 23, 25, 32, 32, 34, 35]
RELAPSED = [1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]
PLACEBO = [1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23]


def test_cox_fits_are_the_published_ones() -> None:
    time, event = np.array(TREATED + PLACEBO, float), np.array(RELAPSED + [1] * 21, float)
    group = np.repeat([0.0, 1.0], 21)
    problem = SubsetProblem(
        np.column_stack([group, time[::-1]]), np.column_stack([time, event]), loss="cox", ridge=1e-13
    )
    fit = problem.fit([0])
    assert fit.coef[0] == pytest.approx(1.5092, abs=5e-5)
    influence = problem.loss.influence(problem, fit)
    assert influence.ordinary[1] == pytest.approx(0.4096, abs=5e-5)
    # Score residuals (Lin & Wei 1989), event by event.
    ratio, scores = np.exp(fit.coef[0] * group), np.zeros(42)
    for i in np.flatnonzero(event):
        risk = time >= time[i]
        mean = ratio[risk] @ group[risk] / ratio[risk].sum()
        scores[i] += group[i] - mean
        scores[risk] -= ratio[risk] / ratio[risk].sum() * (group[risk] - mean)
    expected = np.sqrt(np.sum(scores**2)) * influence.ordinary[1] ** 2
    assert robust_errors(influence)[1] == pytest.approx(expected, rel=1e-6)
    assert np.isnan(robust_errors(influence)[0])
    best = max(np.linspace(1.4, 1.6, 201), key=lambda b: brute_force_partial_likelihood(time, event, b * group))
    assert fit.coef[0] == pytest.approx(best, abs=1e-3)
    assert fit.intercept == pytest.approx(-0.5 * fit.coef[0])  # the mean of the linear predictors is zero


def test_targets_of_survival_come_as_columns_or_fields() -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 3))
    y = survival_rows(rng, 30)
    fields = np.array(list(zip(y[:, 1] > 0, y[:, 0], strict=True)), dtype=[("event", bool), ("time", float)])
    np.testing.assert_array_equal(SubsetProblem(X, fields, loss="cox").y, SubsetProblem(X, y, loss="cox").y)


BAD = {
    "one column": (np.arange(30.0), "expected two columns"),
    "negative times": (np.column_stack([np.arange(30.0) - 5, np.ones(30)]), "expected times of 0 or more"),
    "events of 1 and 2": (np.column_stack([np.arange(30.0), 1 + np.arange(30) % 2]), "expected 1 .it happened. or 0"),
    "no events": (np.column_stack([np.arange(30.0), np.zeros(30)]), "no event"),
}


@pytest.mark.parametrize(("y", "words"), BAD.values(), ids=BAD)
def test_bad_survival_times_get_one_sentence(y: Floats, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        SubsetProblem(np.random.default_rng(0).standard_normal((30, 3)), y, loss="cox")


def test_other_numbers_of_classes_get_one_sentence() -> None:
    X = np.random.default_rng(0).standard_normal((120, 3))
    for loss, classes, words in (
        ("multinomial", 2, "loss='logistic' is for these"),
        ("logistic", 3, "loss='multinomial' is for these"),
        ("multinomial", 60, "expected 3 to 50 classes"),
    ):
        with pytest.raises(ValueError, match=words):
            SubsetProblem(X, np.arange(120) % classes, loss=loss)


@pytest.fixture(scope="module", params=NAMES)
def curve(request: pytest.FixtureRequest) -> SizeCurve:
    problem = planted(request.param, 1, rows=150, columns=10)
    return select_size(problem, range(1, 4), 5, stability=10, seed=0)


def test_selection_finds_the_planted_columns(curve: SizeCurve) -> None:
    assert curve.answer.size == 2
    assert curve.columns(2) == ["x1", "x4"]
    assert curve.facts["p_value"] <= 0.05
    assert 0.05 < held_out(curve, 2).r2 < 1
    assert held_out(curve, 0).r2 == pytest.approx(0.0, abs=0.05)
    assert curve.stability is not None
    text = str(curve)
    assert ("Wrong class" in text) == (curve.classes is not None)
    assert ("Concordance" in text) == (curve.survival is not None)


def test_held_out_errors_are_those_of_refitted_supports(curve: SizeCurve) -> None:
    name = curve.loss.name
    problem = planted(name, 1, rows=150, columns=10)
    at, q = curve.at(2), curve.n_outputs
    ridge = problem.with_shrinkage(curve.ridge)
    risks = np.zeros(150)
    for fold in range(5):
        place = curve.held_out_fold[::q] == fold
        rows = curve.held_out_rows[::q][place]
        train = np.setdiff1d(np.arange(150), rows)
        given = problem.y if name == "cox" else np.argmax(problem.y, axis=1)
        part = SubsetProblem(problem.X[train], given[train], loss=name).with_shrinkage(ridge.shrinkage)
        fit = part.fit(curve.fold_supports[at][fold])
        eta = problem.X[np.ix_(rows, fit.support)] @ fit.coef + fit.intercept
        told = curve.predictions[at].reshape(-1, q)[place]
        if name == "multinomial":
            np.testing.assert_allclose(told, np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True), rtol=1e-6)
            continue
        risks[rows] = eta
        learned = part.X[:, fit.support] @ fit.coef + fit.intercept
        time, event = problem.y[train].T

        for i, row in enumerate(rows):
            events = time[(event > 0) & (time <= problem.y[row, 0])]
            hazard = sum(1 / np.exp(learned[time >= s]).sum() for s in events)
            risk, others = np.exp(eta[i]), np.exp(learned[time >= problem.y[row, 0]]).sum()
            p = np.exp(-hazard * risk) * (risk / (others + risk) if problem.y[row, 1] else 1.0)
            assert told[i, 0] == pytest.approx(p, rel=1e-6)
    if name == "cox":
        assert curve.survival is not None
        where = curve.held_out_rows
        np.testing.assert_allclose(curve.survival.risks[at], risks[where], atol=1e-8)
        ours = concordance(problem.y[where], risks[where], np.ones(150))
        assert curve.survival.concordance[at] == pytest.approx(ours)
        assert curve.survival.concordance[0] == 0.5
        assert curve.cv_error[at] == pytest.approx(-np.log(curve.predictions[at]).mean())
    else:
        assert curve.classes is not None
        p, codes = curve.predictions[at].reshape(-1, q), np.argmax(curve.observed.reshape(-1, q), axis=1)
        assert curve.cv_error[at] == pytest.approx(log_loss(codes, p))
        assert curve.classes.misclassified[at] == pytest.approx(np.mean(np.argmax(p, axis=1) != codes))
        assert held_out(curve, 2).r2 == pytest.approx(d2_log_loss_score(codes, p), abs=1e-6)


def test_curves_are_saved_drawn_and_predict(curve: SizeCurve, tmp_path: Path) -> None:
    curve.save(tmp_path / "curve.json")
    again = SizeCurve.load(tmp_path / "curve.json")
    assert str(again) == str(curve)
    X = np.random.default_rng(0).standard_normal((4, 10))
    told = again.predict(X)
    eta = X @ curve.coef() + curve.intercepts[curve.at(2)]
    if curve.classes is not None:
        np.testing.assert_allclose(told.sum(axis=1), 1.0)
        np.testing.assert_allclose(np.log(told / told[:, :1]), eta - eta[:, :1], atol=1e-9)
    else:
        np.testing.assert_allclose(told, np.exp(eta))
    with pytest.raises(ValueError, match="no such interval"):
        again.predict(X, interval=0.9)
    write_report(again, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "<b>chinstrap" not in page
    assert ("Telling the classes apart" in page) == (curve.classes is not None)
    assert ("Telling the times apart" in page) == (curve.survival is not None)


@pytest.mark.parametrize("name", NAMES)
def test_folds_keep_shares_and_lacking_ones_are_refused(name: str) -> None:
    problem = planted(name, 2)
    kinds = problem.loss.strata(problem.y)
    for rows in as_folds(4, problem).rows:
        counts = np.bincount(kinds[rows].astype(int), minlength=2)
        assert np.abs(counts - np.bincount(kinds.astype(int)) / 4).max() <= 1
    rare = np.flatnonzero(kinds == kinds.max())
    split = [(np.setdiff1d(np.arange(40), rare), rare), (rare, np.setdiff1d(np.arange(40), rare))]
    with pytest.raises(ValueError, match=r"no row of class|no event"):
        select_size(problem, [1], split)


def test_an_outer_cross_validation_predicts_as_the_folds_do() -> None:
    for name in NAMES:
        found = select_size(planted(name, 1, rows=150), [1, 2], 3, stability=0, outer=3, ridge=[1e-2])
        assert found.outer is not None
        assert found.outer.error < found.cv_error[0]
        assert found.outer.predictions.shape == ((150, 3) if name == "multinomial" else (150,))


def test_the_classifiers_take_three_classes() -> None:
    problem = planted("multinomial", 1, rows=150, columns=10)
    y = problem.classes[np.argmax(problem.y, axis=1)]
    model = SubsetClassifier(2, random_state=0).fit(problem.X, y)
    assert model.support_.tolist() == [1, 4]
    assert model.coef_.shape == (3, 10)
    assert model.decision_function(problem.X).shape == (150, 3)
    np.testing.assert_allclose(model.predict_proba(problem.X).sum(axis=1), 1.0)
    assert model.score(problem.X, y) > 0.6
    chosen = SubsetClassifierCV([1, 2, 3], cv=4, random_state=0).fit(problem.X, y)
    assert chosen.n_nonzero_coefs_ == 2
    assert set(chosen.predict(problem.X)) <= set(chosen.classes_)
