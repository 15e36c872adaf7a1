"""Every kind of problem through a whole selection: errors by hand, no leak, limits kept, the same after any resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from _curves_equal import assert_same_curve
from _ruled import keeps
from pairflip import SizeCurve, SubsetProblem, select_size
from pairflip.selection import JournalError
from pairflip.selection.after_selection import rebuilt, shuffled
from pairflip.selection.curve_file import curve_to_json

SIGNS = np.array([1, 1, -1, 0, -1, 1, 1, 0, 1, 1, 1])
GROUPS = {"groups": {"a": [0, 1], "b": [4, 5, 6], "c": [8, 9]}}
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "ridge": {"ridge": 0.5},
    "several": {"q": 3},
    "groups": GROUPS,
    "groups with rules and ridge": {**GROUPS, "min_distance": 1.5, "hierarchy": {"x8": ["x0"]}, "ridge": 0.3},
    "groups of several": {**GROUPS, "q": 2},
    "one per group": {"groups": {"g": [0, 1, 2], "h": [4, 5, 7], "i": [8, 9]}, "one_per_group": True},
    "bands": {"min_distance": 2},
    "hierarchy": {"hierarchy": {7: [2, 5], 8: [1], 9: [7]}},
    "signs": {"positive": SIGNS.tolist()},
}
HOW: dict[str, Any] = {"sizes": range(1, 4), "cv": 5, "seed": 1, "stability": 3}


def data(q: int, rows: int = 40) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 11)) + 1.0
    X[:, 5] = X[:, 4] + 0.3 * X[:, 5]
    Y = X[:, [1, 4, 5, 7]] @ [[1.0, 0.3, 0.0], [-1.0, 1.0, 0.5], [0.7, 0.0, 1.0], [1.2, -0.4, 1.0]]
    Y = (Y + 0.5 * rng.normal(size=(rows, 3))) * [1.0, 10.0, 1000.0]
    return X, Y[:, :q] if q > 1 else Y[:, 0]


def problem_of(kind: str, spoilt: Any = slice(0)) -> SubsetProblem:
    """The problem of a kind; `spoilt` rows hold garbage."""
    options = {name: value for name, value in KINDS[kind].items() if name != "q"}
    X, y = data(KINDS[kind].get("q", 1))
    X[spoilt] *= -7.0
    y[spoilt] = 1e4 * np.random.default_rng(9).normal(size=y[spoilt].shape)
    return SubsetProblem(X, y, **options)


class Run(NamedTuple):
    kind: str
    problem: SubsetProblem
    curve: SizeCurve


@pytest.fixture(scope="module", params=KINDS)
def run(request: pytest.FixtureRequest) -> Run:
    problem = problem_of(request.param)
    return Run(request.param, problem, select_size(problem, **HOW, null=2, outer=2))


def refit(problem: SubsetProblem, rows: Any, columns: Any) -> Any:
    """Predictions (M, q) of least squares on some rows, with the ridge and the signs of the problem, by definition."""
    k, signs = len(columns), problem.limits.signs
    design = np.column_stack([np.ones(problem.n_rows), problem.X[:, columns]])
    A = np.vstack([design[rows], np.sqrt(problem.ridge) * np.eye(k + 1)[1:]])
    sign = np.append(0, np.zeros(k) if signs is None else signs[columns])
    bounds = np.where(sign > 0, 0.0, -np.inf), np.where(sign < 0, 0.0, np.inf)
    targets = np.vstack([problem.targets[rows], np.zeros((k, problem.targets.shape[1]))])
    fits = [lsq_linear(A, t, bounds=bounds, method="bvls", tol=1e-15, max_iter=1000).x for t in targets.T]
    return design @ np.transpose(fits)


def test_errors_are_those_of_refits(run: Run) -> None:
    _, problem, curve = run
    q = problem.targets.shape[1]
    row, fold = curve.held_out_rows[::q], curve.held_out_fold[::q]
    for size in (1, 2, 3):
        at, residuals, scaled = curve.at(size), np.empty((row.size, q)), np.empty((row.size, q))
        for f in range(curve.n_folds):
            held, others = row[fold == f], np.setdiff1d(np.arange(problem.n_rows), row[fold == f])
            support = curve.fold_supports[at][f]
            residuals[fold == f] = (problem.targets - refit(problem, others, support[support >= 0]))[held]
            scaled[fold == f] = residuals[fold == f] / (problem.targets[others].std(axis=0) if q > 1 else 1.0)
        told = (curve.observed - curve.predictions[at]).reshape(-1, q)
        np.testing.assert_allclose(told, scaled, rtol=1e-6, atol=1e-6 * np.abs(scaled).max())
        assert curve.cv_error[at] == pytest.approx(0.5 * np.mean(scaled**2))
        if curve.targets is not None:
            rmse, spread = np.sqrt(np.mean(residuals**2, axis=0)), problem.targets[row].std(axis=0)
            np.testing.assert_allclose(curve.targets.rmse[at], rmse, rtol=1e-9)
            np.testing.assert_allclose(curve.targets.r2[at], 1.0 - (rmse / spread) ** 2, rtol=1e-9)
            np.testing.assert_allclose(curve.targets.cv_error[at], 0.5 * np.mean(scaled**2, axis=0), rtol=1e-9)


def test_held_out_rows_change_nothing_in_their_fold(run: Run) -> None:
    kind, _, curve = run
    other = select_size(problem_of(kind, curve.held_out_rows[curve.held_out_fold == 2]), **HOW)
    assert curve.fold_fits is not None
    assert other.fold_fits is not None
    for at in range(1, 4):
        supports = [each.fold_supports[at][2] for each in (curve, other)]
        np.testing.assert_array_equal(*(support[support >= 0] for support in supports))
        coefs = [
            each.coefs[at][2][s >= 0] for each, s in zip((curve.fold_fits, other.fold_fits), supports, strict=True)
        ]
        np.testing.assert_allclose(*coefs, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(curve.fold_fits.intercepts[at][2], other.fold_fits.intercepts[at][2], rtol=1e-6)
    if curve.targets is not None:
        assert other.targets is not None
        np.testing.assert_allclose(other.targets.scales[2], curve.targets.scales[2], rtol=1e-12)
        np.testing.assert_allclose(other.targets.means[2], curve.targets.means[2], rtol=1e-12)


def test_limits_are_kept_everywhere(run: Run) -> None:
    kind, problem, curve = run
    stability, outer, fits = curve.stability, curve.outer, curve.fold_fits
    assert stability is not None
    assert outer is not None
    assert fits is not None
    assert curve.null is not None
    assert curve.null.r2.max() < 0.5  # noise
    supports = [*curve.supports, *outer.supports, *(row[row >= 0] for each in curve.fold_supports for row in each)]
    if problem.units is not None:
        for support in supports:
            assert np.array_equal(np.sort(support), problem.columns_of(np.unique(problem.units.first[support])))
    elif problem.limits.ruled:
        supports += [row for each in stability.supports for row in each]
        assert all(keeps(KINDS[kind], support.tolist()) for support in supports)
    if problem.limits.signs is not None:
        for support, coef in zip(curve.supports, curve.coefs, strict=True):
            assert np.all(coef * SIGNS[support] >= 0)
        for at in range(1, 4):
            assert np.all(fits.coefs[at] * SIGNS[curve.fold_supports[at]] >= 0)
        assert np.all(stability.coefs[0] * SIGNS[stability.supports[0]] >= 0)
    for other in (shuffled(problem, 0, 0), rebuilt(problem, np.arange(30))):
        assert other.limits.settings(problem.names) == problem.limits.settings(problem.names)


def test_workers_journal_and_file_give_the_same_curve(run: Run, tmp_path: Path) -> None:
    kind, problem, curve = run
    for _ in range(2):
        again = select_size(problem, **HOW, null=2, outer=2, n_jobs=2, journal=tmp_path / "run")
        assert_same_curve(curve, again)
    curve.save(tmp_path / "curve.json")
    back = SizeCurve.load(tmp_path / "curve.json")
    assert curve_to_json(back) == curve_to_json(curve)
    assert str(back) == str(curve)
    np.testing.assert_array_equal(back.predict(problem.X), curve.predict(problem.X))
    other = "bands" if kind != "bands" else "hierarchy"
    with pytest.raises(JournalError, match=r"was made with .*, but this run has"):
        select_size(problem_of(other), **HOW, journal=tmp_path / "run")
