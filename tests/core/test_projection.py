"""Numbers of any size: scaled before they are squared, or refused in one sentence; never dropped, never a warning."""

import warnings

import numpy as np
import pytest

from _errors import sentence_of
from pairflip import SubsetProblem, anneal, select_size

M = 40


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((M, 8))
    return X, X[:, 2] - X[:, 5] + 0.1 * rng.standard_normal(M)


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("factor", [1e300, 1e-298])
def test_a_column_in_an_odd_unit_is_still_found(table, factor):
    X, y = table
    plain = anneal(SubsetProblem(X, y), 2, chains=4)
    X[:, 2] *= factor
    problem = SubsetProblem(X, y)
    trace = anneal(problem, 2, chains=4)
    assert trace.best_support.tolist() == [2, 5]
    assert trace.best_energy == pytest.approx(plain.best_energy, rel=1e-12)
    assert trace.best_coef * [factor, 1.0] == pytest.approx(plain.best_coef)
    curve = select_size(problem, [1, 2], cv=5, chains=2)
    assert curve.cv_error[2] == pytest.approx(
        select_size(SubsetProblem(table[0] / 1, y), [2], cv=5, chains=2).cv_error[1]
    )
    assert np.isfinite(curve.predictions).all()


@pytest.mark.parametrize("factor", [1e300, 1e-280])
def test_a_forced_column_in_an_odd_unit(table, factor):
    X, y = table
    y = y + X[:, 0]
    plain = SubsetProblem(X, y, always=[0]).fit([2, 5])
    X[:, 0] *= factor
    fit = SubsetProblem(X, y, always=[0]).fit([2, 5])
    assert fit.always_coef * factor == pytest.approx(plain.always_coef)
    assert fit.energy == pytest.approx(plain.energy)
    assert fit.intercept == pytest.approx(plain.intercept)


@pytest.mark.parametrize("factor", [1e100, 1e-100])
def test_a_target_in_an_odd_unit(table, factor):
    X, y = table
    trace = anneal(SubsetProblem(X, y * factor), 2, chains=4)
    assert trace.best_support.tolist() == [2, 5]
    assert trace.best_energy / factor**2 == pytest.approx(anneal(SubsetProblem(X, y), 2, chains=4).best_energy)


@pytest.mark.parametrize(("column", "target", "words"), [
    (1e307, 1.0, "column 'x2' has values of up to 2.4e+307, too large to compute with"),
    (1e-305, 1.0, "column 'x2' has values of up to 2.4e-305, too small to compute with"),
    (1.0, 1e300, "y has values of the order of 4e+300, and their squares are beyond"),
    (1.0, 1e-200, "y has values of the order of 3e-200, and their squares are beyond"),
])  # fmt: skip
def test_what_cannot_be_computed_is_refused(table, column, target, words):
    X, y = table
    X[:, 2] *= column
    message = sentence_of(ValueError, lambda: SubsetProblem(X, y * target))
    assert words in message
    assert "express" in message


@pytest.mark.parametrize(("ridge", "cv"), [(1e10, "loo"), (1e100, 5)])
def test_a_ridge_term_much_larger_than_the_columns(table, ridge, cv):
    X, y = (each[:12] for each in table)
    problem = SubsetProblem(X * 1e-6, y, ridge=ridge)
    assert np.isfinite(anneal(problem, 2, chains=2).best_energy)
    curve = select_size(problem, [1, 2], cv=cv, chains=2)
    assert curve.cv_error == pytest.approx(np.full(3, curve.cv_error[0]), rel=1e-6)  # nothing but the mean is left
    assert curve.predictions[2] == pytest.approx(curve.predictions[0], abs=1e-3)
