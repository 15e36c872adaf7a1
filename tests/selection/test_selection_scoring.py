"""Held-out residuals from one factorization against refits, standard errors, and information criteria."""

from math import comb, log

import numpy as np
import pytest

from _refits import refit
from pairflip import SizeCurve, SubsetProblem, select_size
from pairflip.losses.held_out import HeldOutErrors, mean_and_error
from pairflip.report.page import render
from pairflip.selection.criteria import CRITERIA, register
from pairflip.selection.folds import as_folds

ROWS = 12


def table(seed=0, columns=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, columns)) + 3.0
    return X, X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=ROWS) - 7.0


def check(X, y, cv, support, *, rel=1e-8, **given):
    problem = SubsetProblem(X, y, **given)
    folds = as_folds(cv, problem)
    supports = np.tile(np.asarray(support), (len(folds), 1, 1))
    residuals = HeldOutErrors(problem, folds).judged(supports)[0][0]
    each = zip(folds.rows, folds.left_out, strict=True)
    expected = [refit(problem, left_out, support).residual(rows)[:, 0] for rows, left_out in each]
    assert residuals == pytest.approx(np.concatenate(expected), rel=rel, abs=rel)
    return residuals


@pytest.mark.parametrize("size", [1e2, 1e4])
def test_high_leverage(size):
    X, y = table()
    X[3, 0] = size  # 1 - h is about 1 / size^2
    check(X, y, "loo", [0, 2], rel=1e-6)


@pytest.mark.parametrize("cv", ["loo", [(np.arange(3, 12), np.arange(3)), (np.arange(9), np.arange(9, 12))]])
@pytest.mark.parametrize("center", ["fold", "global", None])
def test_a_forced_column_that_only_held_out_rows_see(cv, center):
    X, y = table()
    X[:, 4] = 0.0
    X[1, 4] = 1.0  # without row 1 this column is constant: its coefficient is left at zero
    y[1] += 50.0
    residuals = check(X, y, cv, [0, 2], always=[4], center=center)
    if center != "global":
        assert np.abs(residuals).max() > 20  # and row 1 is not predicted as if it were known
    check(X, y, cv, [0, 2], always=[3, 4], center=center, ridge=1.0)


def test_a_column_that_one_row_alone_decides_is_never_selected_without_that_row():
    X, y = table()
    X[:, 2] = 0.0
    X[5, 2] = 1.0
    y[5] += 30.0
    curve = select_size(SubsetProblem(X, y), [1, 2], cv="loo", chains=4)
    for supports in curve.fold_supports[1:]:
        assert 2 not in supports[5]
        assert np.all(np.any(np.delete(supports, 5, axis=0) == 2, axis=1))


@pytest.mark.parametrize("loss", ["squares", "logistic"])
def test_a_fold_learns_nothing_from_the_rows_that_it_leaves_out(loss):
    rng = np.random.default_rng(0)
    X, z = rng.normal(size=(40, 8)), rng.normal(size=40)
    y = X[:, 2] - X[:, 7] + z if loss == "squares" else (X[:, 2] - X[:, 7] + z > 0).astype(float)
    splits = [(np.setdiff1d(np.arange(40), np.arange(f, 40, 5)), np.arange(f, 40, 5)) for f in range(5)]
    before = select_size(SubsetProblem(X, y, loss=loss, ridge=1e-3), [2], cv=splits, effort="quick")
    for fold, (_, held_out) in enumerate(splits[:2]):
        X_, y_ = X.copy(), y.copy()
        X_[held_out], y_[held_out] = 100 * X[held_out] ** 3, 1 - y[held_out]
        after = select_size(SubsetProblem(X_, y_, loss=loss, ridge=1e-3), [2], cv=splits, effort="quick")
        np.testing.assert_array_equal(after.fold_supports[1][fold], before.fold_supports[1][fold])
        coefs = [curve.fold_fits.coefs[-1][fold] for curve in (after, before)]
        np.testing.assert_allclose(*coefs, rtol=1e-13 if loss == "squares" else 0)


def test_standard_error():
    rng = np.random.default_rng(0)
    squares = rng.exponential(size=(2, 20))
    mean, error = mean_and_error(squares, np.ones(20), np.arange(20))
    assert mean == pytest.approx(0.5 * squares.mean(axis=1))
    assert error == pytest.approx(0.5 * squares.std(axis=1, ddof=1) / np.sqrt(20))
    fold = np.repeat(np.arange(5), 4)  # equal folds: the standard error of five means
    mean, error = mean_and_error(squares, np.ones(20), fold)
    means = squares.reshape(2, 5, 4).mean(axis=2)
    assert mean == pytest.approx(0.5 * means.mean(axis=1))
    assert error == pytest.approx(0.5 * means.std(axis=1, ddof=1) / np.sqrt(5))


def test_weights_count_in_mean_and_standard_error():
    squares, weights, fold = np.array([[1.0, 4.0, 9.0]]), np.array([1.0, 3.0, 2.0]), np.array([0, 0, 1])
    mean, error = mean_and_error(squares, weights, fold)
    m, m0, m1 = 31 / 6, 13 / 4, 9.0
    assert mean[0] == pytest.approx(0.5 * m)
    assert error[0] == pytest.approx(0.5 * np.sqrt((4 * (m0 - m) ** 2 + 2 * (m1 - m) ** 2) / 6 / 1))


def test_information_criteria_up_to_a_constant_are_those_of_a_gaussian_likelihood():
    X, y = table()
    curve = select_size(SubsetProblem(X, y, always=["x4"]), [1, 2, 3], chains=2)
    for at, k in enumerate([0, 1, 2, 3]):
        rss, d = 2 * curve.energies[at], k + 2  # chosen columns, the forced one and the intercept
        # statsmodels: llf = -n/2 (log(2 pi) + log(rss/n) + 1), aic = -2 llf + 2 d, bic = -2 llf + d log n
        llf = -ROWS / 2 * (log(2 * np.pi) + log(rss / ROWS) + 1)
        constant = ROWS * (log(2 * np.pi) + 1)
        assert curve.aic[at] == pytest.approx(-2 * llf + 2 * d - constant)
        assert curve.bic[at] == pytest.approx(-2 * llf + d * log(ROWS) - constant)
        assert curve.ebic[at] == pytest.approx(-2 * llf + d * log(ROWS) + 2 * log(comb(4, k)) - constant)


@pytest.mark.usefixtures("undrawn")
def test_a_registered_criterion_is_in_curve_frame_file_and_page(tmp_path):
    """Two places: the function, and the line that registers it."""
    X, y = table()
    register("toy", lambda fits: fits.deviance + 3.0 * fits.fitted)
    try:
        curve = select_size(SubsetProblem(X, y), [1, 2], chains=2)
    finally:
        del CRITERIA["toy"]
    np.testing.assert_allclose(curve.criteria["toy"] - curve.aic, np.arange(3) + 1.0)
    assert (curve.to_pandas()["toy"] == curve.criteria["toy"]).all()
    curve.save(tmp_path / "curve.json")
    assert (SizeCurve.load(tmp_path / "curve.json").criteria["toy"] == curve.criteria["toy"]).all()
    assert ">TOY</th>" in render(curve)
