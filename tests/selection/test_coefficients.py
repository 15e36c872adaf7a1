"""Standard errors of the final fits against textbook formulas and fits without some rows, and what is said of them."""

import numpy as np
import pytest

from pairflip import SizeCurve, SubsetProblem, select_size
from pairflip.selection.coefficients import coefficient_rows, standard_errors


def table(rows=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 6)) * [1, 10, 0.1, 1, 1, 1] + [0, 50, 3, 0, 0, 0]
    return X, X[:, 0] + 0.1 * X[:, 1] + rng.normal(size=rows)


def textbook(Z, y, w):
    """sqrt(diag(s^2 (Z'WZ)^-1)) with s^2 from the weighted residuals."""
    inverse = np.linalg.inv(Z.T @ (w[:, None] * Z))
    residual = y - Z @ (inverse @ (Z.T @ (w * y)))
    return np.sqrt(np.diag(inverse) * (w @ residual**2) / (y.size - Z.shape[1]))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("center", ["fold", "global", None])
def test_textbook(center, weighted):
    X, y = table()
    w = np.linspace(0.5, 2, 40) if weighted else np.ones(40)
    problem = SubsetProblem(X, y, center=center, always=[5], sample_weight=w)
    support = np.array([0, 1, 2])
    found = standard_errors(problem, [problem.fit(support)]).ordinary
    Z = X[:, [5, 0, 1, 2]]
    expected = textbook(np.column_stack([np.ones(40), Z]) if center else Z, y, w)
    np.testing.assert_allclose(found.chosen[0], expected[-3:], rtol=1e-9)
    np.testing.assert_allclose(found.always[0], expected[-4:-3], rtol=1e-9)
    if center:
        assert found.intercepts[0] == pytest.approx(expected[0], rel=1e-8)
    else:
        assert np.isnan(found.intercepts[0])


def test_absent_rows_extreme_units_and_too_few_rows():
    X, y = table()
    w = np.repeat([0.0, 1.0], [10, 30])
    problems = [SubsetProblem(X, y, sample_weight=w), SubsetProblem(X[10:], y[10:])]
    problems += [SubsetProblem(X, y), SubsetProblem(X * 1e-100, y * 1e100)]
    weighted, without, plain, odd = (standard_errors(p, [p.fit([0, 1])]).ordinary.chosen[0] for p in problems)
    np.testing.assert_allclose(weighted, without, rtol=1e-10)
    np.testing.assert_allclose(odd * 1e-200, plain, rtol=1e-8)
    few = SubsetProblem(X[:5], y[:5])
    assert np.isnan(standard_errors(few, [few.fit([0, 1, 2, 3])]).ordinary.chosen[0]).all()


def test_ridge():
    X, y = table()
    problem = SubsetProblem(X, y, ridge=3.0)
    centred = X[:, [0, 3]] - X[:, [0, 3]].mean(axis=0)
    A = np.linalg.inv(centred.T @ centred + 3.0 * np.eye(2))
    fit = problem.fit([0, 3])
    residual = y - fit.intercept - X[:, [0, 3]] @ fit.coef
    freedom = 40 - 1 - np.trace(A @ centred.T @ centred)
    expected = np.sqrt(np.diag(A @ centred.T @ centred @ A) * (residual @ residual) / freedom)
    np.testing.assert_allclose(standard_errors(problem, [fit]).ordinary.chosen[0], expected, rtol=1e-9)


def test_table_with_the_spread_over_half_samples():
    X, y = table()
    problem = SubsetProblem(X, y, names=list("abcdef"), always=["f"])
    curve = select_size(problem, [1, 2, 3], cv=5, stability=20)
    size = int(curve.stability.sizes[0])
    frame = curve.coefficients()
    assert " ".join(frame.columns) == "column kind coefficient standard_error robust_error frequency coef_5 coef_95"
    assert frame["kind"].tolist() == ["intercept", "always", *["selected"] * size]
    row = next(row for row in coefficient_rows(curve, size) if row.column == "a")
    assert row.frequency == curve.stability.frequency(0, size) > 0.9
    assert row.coef_5 < row.coefficient < row.coef_95
    spread = (row.coef_95 - row.coef_5) / 3.29  # of a Gaussian, in standard deviations
    assert 0.5 * row.standard_error < spread < 2 * row.standard_error  # as the delete-half jackknife says
    other = next(k for k in (1, 2, 3) if k != size)
    assert np.isnan([row.frequency for row in coefficient_rows(curve, other)]).all()
    assert not frame["standard_error"].isna().any()


def test_relative_ridge_is_the_same_penalty_in_the_units_of_the_table():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(40, 6))
    X /= np.linalg.norm(X - X.mean(axis=0), axis=0)  # then both penalties are the same number
    y = X[:, 0] - X[:, 3] + 0.05 * rng.normal(size=40)
    relative = select_size(SubsetProblem(X, y), [2], 5, ridge=[0.3], effort="quick", progress=False)
    absolute = select_size(SubsetProblem(X, y, ridge=0.3), [2], 5, effort="quick", progress=False)
    one, other = relative.coefficients(2), absolute.coefficients(2)
    np.testing.assert_allclose(one["coefficient"], other["coefficient"], rtol=1e-6)
    np.testing.assert_allclose(one["standard_error"], other["standard_error"], rtol=1e-6)


def errors_of(problem, support, groups=None):
    """Robust and clustered errors of the constant, the forced and the chosen coefficients."""
    _, *both = standard_errors(problem, [problem.fit(support)], groups)
    return [np.concatenate([each.intercepts, each.always[0], each.chosen[0]]) for each in both]


def without(problem, support, rows):
    """The constant, forced and chosen coefficients of a fit without some rows."""
    weight = problem.sample_weight.copy()
    weight[rows] = 0.0
    options = {"always": problem.always, "ridge": problem.ridge, **problem.limits.arguments()}
    fit = SubsetProblem(problem.X, problem.y, sample_weight=weight, **options).fit(support)
    return np.concatenate([[fit.intercept], fit.always_coef, fit.coef])


@pytest.mark.parametrize("options", [{}, {"ridge": 2.0}, {"groups": {"ab": [0, 1], "cd": [2, 3]}}], ids=str)
def test_robust_and_clustered_errors_are_those_of_fits_without_a_row_or_a_group(options):
    X, y = table()
    problem = SubsetProblem(X, y, always=[5], sample_weight=np.linspace(0.5, 2, 40) * (np.arange(40) > 1), **options)
    groups, support = np.arange(40) % 7, [0, 1, 2, 3]
    robust, clustered = errors_of(problem, support, groups)
    every = without(problem, support, [])
    for errors, parts in ((robust, np.arange(2, 40)[:, None]), (clustered, [groups == g for g in range(7)])):
        moved = np.array([without(problem, support, rows) - every for rows in parts])
        np.testing.assert_allclose(errors, np.sqrt(np.sum(moved**2, axis=0)), rtol=1e-7)
    np.testing.assert_allclose(errors_of(problem, support, np.arange(40))[1], robust, rtol=1e-9)


def test_what_a_row_or_a_group_determines_alone_has_no_robust_error():
    X, y = table()
    X[:, 2], X[:, 3] = np.arange(40) == 3, np.arange(40) < 5
    problem = SubsetProblem(X, y)
    robust, clustered = errors_of(problem, [0, 2], np.arange(40) // 5)
    assert np.isnan(robust).tolist() == np.isnan(clustered).tolist() == [False, False, True]
    robust, clustered = errors_of(problem, [0, 3], np.arange(40) // 5)
    assert np.isnan(robust).tolist() == [False] * 3
    assert np.isnan(clustered).tolist() == [False, False, True]


def test_curves_keep_clustered_errors_where_rows_have_groups(tmp_path):
    X, y = table()
    labels = [f"person {number % 8}" for number in range(40)]
    problem = SubsetProblem(X, y, names=list("abcdef"))
    curve = select_size(problem, [1, 2], cv=4, groups=labels, effort="quick", progress=False)
    curve.save(tmp_path / "curve.json")
    for each in (curve, SizeCurve.load(tmp_path / "curve.json")):
        frame = each.coefficients(2)
        robust, clustered = errors_of(problem, each.supports[2], np.arange(40) % 8)
        np.testing.assert_allclose(frame["robust_error"], robust)
        np.testing.assert_allclose(frame["clustered_error"], clustered)
