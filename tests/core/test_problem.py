"""Energies, coefficients and folds, against numpy and scikit-learn."""

import tracemalloc

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge

from pairflip import SubsetProblem
from pairflip.losses.held_out import HeldOutErrors
from pairflip.selection.folds import as_folds
from pairflip.testing import best_support, enumerate_energies

M, N = 20, 8
SUPPORT = [1, 4, 6]
UNITS = np.geomspace(0.01, 100.0, N)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def X(rng):
    return UNITS * rng.normal(size=(M, N)) + np.arange(N)


@pytest.fixture
def y(X, rng):
    return 3.0 + X @ (rng.normal(size=N) / UNITS) + rng.normal(size=M)


@pytest.fixture
def weights(rng):
    return rng.exponential(size=M)


def least_squares(design, y, weights=None):
    """Coefficients and half the residual sum of squares by numpy."""
    root = np.ones(len(y)) if weights is None else np.sqrt(weights)
    x = np.linalg.lstsq(root[:, None] * design, root * y, rcond=None)[0]
    return x, 0.5 * float(np.sum((root * (y - design @ x)) ** 2))


def predict(problem, fit, X):
    return fit.intercept + X[:, fit.support] @ fit.coef + X[:, problem.always] @ fit.always_coef


# ---- one fit


@pytest.mark.parametrize("center", ["fold", "global"])
def test_fit_is_linear_regression(X, y, center):
    problem = SubsetProblem(X, y, center=center)
    fit, sklearn = problem.fit(SUPPORT), LinearRegression().fit(X[:, SUPPORT], y)
    assert fit.coef == pytest.approx(sklearn.coef_, rel=1e-9)
    assert fit.intercept == pytest.approx(sklearn.intercept_, rel=1e-9)
    assert fit.energy == pytest.approx(0.5 * np.sum((y - sklearn.predict(X[:, SUPPORT])) ** 2), rel=1e-10)
    assert problem.energy(SUPPORT) == pytest.approx(fit.energy, rel=1e-12)
    assert problem.coef(SUPPORT) == pytest.approx(fit.coef)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 0.1, 30.0])
def test_ridge_is_sklearns_ridge(X, y, weights, ridge, weighted):
    w = weights if weighted else None
    fit = SubsetProblem(X, y, ridge=ridge, sample_weight=w).fit(SUPPORT)
    sklearn = Ridge(alpha=ridge).fit(X[:, SUPPORT], y, sample_weight=w)
    residual = y - sklearn.predict(X[:, SUPPORT])
    assert fit.coef == pytest.approx(sklearn.coef_)
    assert fit.intercept == pytest.approx(sklearn.intercept_)
    expected = 0.5 * np.sum((weights if weighted else 1.0) * residual**2) + 0.5 * ridge * sklearn.coef_ @ sklearn.coef_
    assert fit.energy == pytest.approx(expected)


@pytest.mark.parametrize("center", ["fold", "global", None])
def test_always_columns_are_like_fitting_them_too(X, y, weights, center):
    """Frisch-Waugh-Lovell: what is projected out gives the same energy and coefficients as what is fitted."""
    problem = SubsetProblem(X, y, always=[0, 7], sample_weight=weights, center=center)
    fit = problem.fit(SUPPORT)
    design = X[:, [*SUPPORT, 0, 7]]
    if center is not None:
        design = np.column_stack([design, np.ones(M)])
    x, energy = least_squares(design, y, weights)
    assert fit.energy == pytest.approx(energy)
    assert fit.coef == pytest.approx(x[:3])
    assert fit.always_coef == pytest.approx(x[3:5])
    assert fit.intercept == pytest.approx(x[5] if center else 0.0)
    assert predict(problem, fit, X) == pytest.approx(design @ x)
    assert problem.candidates.tolist() == [1, 2, 3, 4, 5, 6]


def test_always_by_name_by_index_or_alone(X, y):
    names = list("abcdefgh")
    energies = {
        SubsetProblem(X, y, names=names, always=always).energy(SUPPORT)
        for always in (["c"], [2], "c", 2, np.array([2]), ["c", 2])
    }
    assert len(energies) == 1


# ---- rows


@pytest.mark.parametrize("center", ["fold", "global", None])
def test_a_row_of_weight_zero_is_an_absent_row(X, y, weights, center):
    weights[[2, 9]] = 0.0
    y[2], X[9, 3] = 1e3, -1e3
    problem = SubsetProblem(X, y, sample_weight=weights, center=center)
    here = weights > 0
    absent = SubsetProblem(X[here], y[here], sample_weight=weights[here], center=center)
    assert problem.energy(SUPPORT) == pytest.approx(absent.energy(SUPPORT))
    assert problem.coef(SUPPORT) == pytest.approx(absent.coef(SUPPORT))
    assert problem.fit(SUPPORT).intercept == pytest.approx(absent.fit(SUPPORT).intercept)
    assert problem.form.yy == pytest.approx(absent.form.yy)
    assert problem.form.matrix == pytest.approx(absent.form.matrix)


HELD_OUT = {"one": [7], "several": [0, 7, 8, 19], "half": list(range(0, M, 2))}


def without(X, y, rows, *, center, always, weights, ridge):
    """Energy of every support on the remaining rows, from scratch."""
    if center == "global":
        X, y = X - np.average(X, axis=0, weights=weights), y - np.average(y, weights=weights)
        center = None
    keep = np.setdiff1d(np.arange(M), rows)
    fresh = SubsetProblem(X[keep], y[keep], center=center, always=always, sample_weight=weights[keep], ridge=ridge)
    return fresh, enumerate_energies(fresh, 3)


@pytest.mark.parametrize("rows", HELD_OUT.values(), ids=HELD_OUT)
@pytest.mark.parametrize(("center", "always", "ridge"), [("fold", [0, 7], 2.0), ("global", [], 2.0), (None, [0], 0.0)])
def test_held_out_is_the_problem_on_the_other_rows(X, y, weights, center, always, ridge, rows):
    problem = SubsetProblem(X, y, center=center, always=always, sample_weight=weights, ridge=ridge)
    fold = problem.held_out(rows)
    fresh, expected = without(X, y, rows, center=center, always=always, weights=weights, ridge=ridge)
    assert enumerate_energies(fold, 3) == pytest.approx(expected, rel=1e-8)
    assert fold.yy == pytest.approx(fresh.form.yy)
    # Columns have unit norm on the rows of the fold, as if it were a table of its own.
    assert fold.b == pytest.approx(fresh.form.b, abs=1e-10 * np.sqrt(fresh.form.yy))
    assert fold.matrix == pytest.approx(fresh.form.matrix, abs=1e-10)
    assert np.array_equal(np.diag(fold.matrix), np.ones(fold.n_columns))


def test_held_out_takes_rows_in_any_form(X, y):
    problem = SubsetProblem(X, y)
    mask = np.zeros(M, dtype=bool)
    mask[[2, 5]] = True
    yy = {problem.held_out(rows).yy for rows in ([2, 5], [5, 2, 5], np.array([5, 2]), mask)}
    assert len(yy) == 1
    assert problem.held_out(4).yy == problem.held_out([4]).yy


@pytest.mark.parametrize(("rows", "message"), [([], "none"), ([3, 20], "row index 20"), ([-1, 3], "row index -1")])
def test_bad_held_out_rows(X, y, rows, message):
    where = rf"held-out rows: {message}( \(counting from 0\))?; expected row indices from 0 to 19, at least one"
    with pytest.raises(ValueError, match=where):
        SubsetProblem(X, y).held_out(rows)


def test_two_rows_must_remain(X, y):
    with pytest.raises(ValueError, match="holding out 19 of 20 rows leaves fewer than two; hold out less"):
        SubsetProblem(X, y).held_out(np.arange(19))


# ---- columns


def test_constant_columns_are_no_candidates(X, y):
    X[:, 2], X[:, 5] = 1e8 / 3, 0.0
    problem = SubsetProblem(X, y)
    assert problem.candidates.tolist() == [0, 1, 3, 4, 6, 7]
    assert problem.form.n_columns == 6
    assert problem.fit([3, 7]).support.tolist() == [3, 7]
    with pytest.raises(ValueError, match=r"column index 2 \(counting from 0\) of the support is constant"):
        problem.energy([1, 2])
    assert 2 in SubsetProblem(X, y, center=None).candidates


def test_columns_explained_by_what_is_always_there_are_no_candidates(X, y):
    X[:, 3] = 2.0 * X[:, 0] - 5.0 * X[:, 1] + 1.0
    assert SubsetProblem(X, y, always=[0, 1]).candidates.tolist() == [2, 4, 5, 6, 7]


def test_duplicated_columns_make_a_support_singular(X, y):
    X[:, 5] = -3.0 * X[:, 2] + 1.0
    problem = SubsetProblem(X, y)
    assert problem.energy([2, 5]) == np.inf
    assert problem.energy([0, 2]) == pytest.approx(problem.energy([0, 5]))
    with pytest.raises(ValueError, match=r"linearly dependent.*leave one of them out"):
        problem.fit([2, 5])
    assert best_support(problem, 3)[1] < np.inf


def test_more_columns_than_rows_are_singular(rng):
    problem = SubsetProblem(rng.normal(size=(4, 9)), rng.normal(size=4))
    assert problem.energy([0, 1, 2]) == pytest.approx(0.0, abs=1e-20)
    assert problem.energy([0, 1, 2, 3]) == np.inf
    assert problem.energy([0, 1, 2, 3, 4]) == np.inf


@pytest.mark.parametrize("scale", [1e-150, 1e-17, 1e150])
def test_the_unit_of_a_column_changes_nothing_but_its_coefficient(X, y, scale):
    expected = SubsetProblem(X, y, always=[0]).fit(SUPPORT)
    X[:, [0, 4]] *= scale
    fit = SubsetProblem(X, y, always=[0]).fit(SUPPORT)
    assert fit.energy == pytest.approx(expected.energy)
    assert fit.coef * [1.0, scale, 1.0] == pytest.approx(expected.coef)
    assert fit.always_coef * scale == pytest.approx(expected.always_coef)
    assert fit.intercept == pytest.approx(expected.intercept)


def test_a_large_offset_costs_no_digits_that_are_there(X, y):
    expected = SubsetProblem(X, y).energy(SUPPORT)
    assert SubsetProblem(X + 2.0**20, y - 2.0**20).energy(SUPPORT) == pytest.approx(expected, rel=1e-7)


# ---- what engines see


def test_memory_budget_decides_whether_the_matrix_is_formed(X, y):
    assert SubsetProblem(X, y, memory_budget=8 * N * N).form.dense
    problem = SubsetProblem(X, y, memory_budget=8 * N * N - 1)
    assert not problem.form.dense
    assert not problem.held_out([0]).dense


def test_the_problem_keeps_what_it_was_given(X, y):
    table, target = X.copy(), y.copy()
    problem = SubsetProblem(X, y, always=[0], ridge=1.0)
    problem.held_out([1])
    assert (table == X).all()
    assert (y == target).all()
    assert "20 rows, 7 candidate columns of 8" in repr(problem)
    assert problem.n_rows == M
    assert problem.n_columns == N


def test_best_support_of_the_enumeration_is_the_best(X, y):
    problem = SubsetProblem(X, y, always=[2])
    support, energy = best_support(problem, 2)
    brute = {
        (a, b): least_squares(np.column_stack([X[:, [a, b, 2]], np.ones(M)]), y)[1]
        for a in range(N)
        for b in range(a + 1, N)
        if 2 not in (a, b)
    }
    assert tuple(support.tolist()) == min(brute, key=brute.get)
    assert energy == pytest.approx(min(brute.values()))


@pytest.mark.parametrize(
    ("support", "message"),
    [
        ([0, 0], "names a column twice"),
        ([0, 8], r"column index 8 \(counting from 0\) of the support is out of range"),
        ([-1], r"column index -1 \(counting from 0\) of the support is out of range"),
        ([0, 2], r"column index 2 \(counting from 0\) of the support is always in the model"),
    ],
)
def test_bad_supports(X, y, support, message):
    with pytest.raises(ValueError, match=message):
        SubsetProblem(X, y, always=[2]).energy(support)


def test_folds_of_many_rows_need_no_matrix_of_their_size():
    """Neither the form of the other rows nor held-out predictions; 6,000 rows squared would be 288 MB."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9000, 6)) + 3.0
    y = X[:, 0] - X[:, 3] + rng.normal(size=9000)
    problem = SubsetProblem(X, y, always=[5], sample_weight=rng.uniform(0.5, 2.0, 9000))
    rows, rest = np.arange(6000), np.arange(6000, 9000)
    few = SubsetProblem(X[:30], y[:30], always=[5])
    HeldOutErrors(few, as_folds(3, few)).judged(np.tile([[[0, 3]]], (3, 1, 1)))  # what is compiled is not counted
    tracemalloc.start()
    fold = problem.held_out(rows)
    judged = HeldOutErrors(problem, as_folds([(rest, rows), (rows, rest)], problem))
    residuals = judged.judged(np.array([[[0, 3]], [[0, 3]]]))[0][0]
    assert tracemalloc.get_traced_memory()[1] < 30e6
    tracemalloc.stop()
    alone = SubsetProblem(X[rest], y[rest], always=[5], sample_weight=problem.sample_weight[rest])
    np.testing.assert_allclose(fold.matrix, alone.form.matrix, atol=1e-11)
    np.testing.assert_allclose(fold.b, alone.form.b, rtol=1e-10)
    fit = alone.fit([0, 3])
    told = fit.intercept + X[:, [0, 3]] @ fit.coef + X[:, [5]] @ fit.always_coef
    np.testing.assert_allclose(residuals[:6000], (y - told)[:6000], rtol=1e-9, atol=1e-11)
