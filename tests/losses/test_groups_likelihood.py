"""Whole groups of columns for classes, counts and survival times: searches, held-out rows, what is told."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from _groups import people
from pairflip import SizeCurve, SubsetProblem, best_subset, select_size
from pairflip.losses import RIDGE
from pairflip.selection.coefficients import standard_errors
from pairflip.selection.folds import as_folds

LOSSES = ["logistic", "poisson", "multinomial", "cox"]


def test_dummies_are_searched_with_hardly_any_ridge() -> None:
    X, y, _, groups = people(100)
    problem = SubsetProblem(X, y > 0.5, loss="logistic", ridge=1e-13, groups=groups)
    lowest = min(problem.form.energy(np.array(own)) for own in combinations(range(6), 2))
    assert best_subset(problem, 2).best_energy == pytest.approx(lowest, rel=1e-9)
    assert best_subset(problem, 2).best_support.tolist() == [0, 1, 8, 9, 10, 11]


def literal_logistic(X: Any, y: Any, w: Any, ridge: float) -> tuple[Any, float]:
    """Coefficients in the units of the table, the constant last, by Newton's method from the definition."""
    means = w @ X / w.sum()
    sd = np.sqrt(w @ (X - means) ** 2 / w.sum())
    sd[sd < 1e-12] = np.inf  # a column that does not vary has the coefficient 0
    D = np.column_stack([(X - means) / sd, np.ones(len(X))])
    penalty, theta = np.append(np.full(X.shape[1], ridge * w.sum()), 0.0), np.zeros(X.shape[1] + 1)
    for _ in range(60):
        mu = 1 / (1 + np.exp(-D @ theta))
        hessian = (D * (w * mu * (1 - mu))[:, None]).T @ D + np.diag(penalty)
        theta += np.linalg.solve(hessian, D.T @ (w * (y - mu)) - penalty * theta)
    energy = w @ (np.logaddexp(0, D @ theta) - y * (D @ theta)) + 0.5 * penalty @ theta**2
    return np.append(theta[:-1] / sd, theta[-1] - theta[:-1] @ (means / sd)), float(energy)


@pytest.mark.parametrize("shrinkage", [0.0, 0.1])
def test_held_out_rows_are_predicted_by_fits_to_the_others(shrinkage: float) -> None:
    X, y, _, groups = people(80)
    X[:, 11] = 0.0
    X[79, 8:] = 0, 0, 0, 1  # a level that one row alone has
    y, w = (y > np.median(y)).astype(float), np.arange(80) % 3 + 1.0
    problem = SubsetProblem(X, y, loss="logistic", groups=groups, sample_weight=w).with_shrinkage(shrinkage)
    folds = as_folds(4, problem, None)
    judge, units = problem.loss.held_out(problem, folds), np.array([0, 5, 8])
    residuals, energies = judge.judged(np.tile(units, (4, 1, 1)))
    columns = problem.columns_of(units)
    assert columns.tolist() == [0, 1, 5, 8, 9, 10, 11]
    narrow = problem.columns_of([0, 5])  # fewer columns than in other folds
    fits = judge.fits(np.vstack([np.tile(columns, (3, 1)), [-1, -1, -1, -1, *narrow]]))
    for f in range(4):
        rows, kept = folds.rows[f], np.delete(np.arange(80), folds.left_out[f])
        coef, energy = literal_logistic(X[np.ix_(kept, columns)], y[kept], w[kept], RIDGE + shrinkage)
        told = 1 / (1 + np.exp(-(X[np.ix_(rows, columns)] @ coef[:-1] + coef[-1])))
        np.testing.assert_allclose(residuals[0, folds.places[f]], y[rows] - told, rtol=1e-7, atol=1e-9)
        assert energies[f, 0] == pytest.approx(energy, rel=1e-9)
        if f < 3:
            np.testing.assert_allclose(fits.coefs[f], coef[:-1], rtol=1e-6, atol=1e-8)
            assert fits.intercepts[f] == pytest.approx(coef[-1], rel=1e-6)
    coef, _ = literal_logistic(X[np.ix_(kept, narrow)], y[kept], w[kept], RIDGE + shrinkage)
    np.testing.assert_allclose(fits.coefs[3], np.append(np.zeros(4), coef[:-1]), rtol=1e-6, atol=1e-8)


def target_of(loss: str, y: Any) -> Any:
    """A target of the kind that depends on the same groups as y."""
    rng = np.random.default_rng(0)
    if loss == "logistic":
        return rng.random(len(y)) < 1 / (1 + np.exp(-2 * (y - y.mean())))
    if loss == "poisson":
        return rng.poisson(np.exp(0.5 * y - 0.5))
    if loss == "multinomial":
        return np.digitize(y + 0.5 * rng.normal(size=len(y)), [-0.3, 1.2])
    return np.column_stack([np.ceil(10 * rng.exponential(np.exp(-y))), rng.random(len(y)) < 0.7])


@pytest.mark.parametrize("loss", LOSSES)
def test_a_curve_counts_groups_and_their_coefficients(loss: str) -> None:
    X, y, names, groups = people(120)
    problem = SubsetProblem(X, target_of(loss, y), names=names, groups=groups, loss=loss)
    curve: SizeCurve = select_size(problem, range(1, 4), cv=3, stability=2, effort="quick", ridge=[0, 0.01])
    assert curve.columns(2) == ["x0", "x1", "race=a", "race=b", "race=c", "race=d"]
    assert curve.chosen_groups(2) == ["pair", "race"]
    assert "Keep 2 groups (6 columns)" in " ".join(str(curve).split())
    assert curve.predict(X[:3], 2).shape[0] == 3
    assert curve.stability is not None
    assert curve.stability.n_candidates == 6
    # Five coefficients are fitted beside the constant, each for all classes but one: the fourth dummy adds nothing.
    if loss != "cox":
        free = select_size(problem, [2], cv=3, effort="quick")
        fitted = (5 + 1) * (2 if loss == "multinomial" else 1)
        assert free.bic[1] == pytest.approx(2 * free.energies[1] + fitted * np.log(120))


def test_standard_errors_are_those_of_contrasts() -> None:
    X, y, _, _ = people(200)
    y, variance = target_of("logistic", y), X[:, 8:].var(axis=0)
    dummies = SubsetProblem(X, y, loss="logistic", groups={"race": [8, 9, 10, 11]}, ridge=1e-9)
    assert dummies.fit([8, 9, 10, 11]).coef @ variance == pytest.approx(0.0, abs=1e-6)  # the smallest, standardized
    X = X.copy()
    X[:, 8:11] -= X[:, [11]] * variance[:3] / variance[3]
    contrasts = SubsetProblem(X, y, loss="logistic", ridge=1e-9)
    expected, found = (
        standard_errors(p, [p.fit(s)]).ordinary for p, s in ((contrasts, [0, 8, 9, 10]), (dummies, [0, 8, 9, 10, 11]))
    )
    np.testing.assert_allclose(found.chosen[0][:4], expected.chosen[0], rtol=1e-5)
    np.testing.assert_allclose(found.intercepts, expected.intercepts, rtol=1e-5)
