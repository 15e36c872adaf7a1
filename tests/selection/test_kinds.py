"""Every kind of problem and of folds through a whole selection, against refits of the training rows by definition."""

from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from sklearn.model_selection import TimeSeriesSplit

from _curves import assert_same_curve
from _ruled import keeps
from pairflip import SizeCurve, SubsetProblem, select_size
from pairflip.selection import JournalError
from pairflip.selection.after_selection import shuffled
from pairflip.selection.curve_file import curve_to_json
from pairflip.selection.folds import Folds, as_folds
from pairflip.selection.subsampling import half_samples
from pairflip.selection.verdict import recommended_size

SIGNS = np.array([1, 1, -1, 0, -1, 1, 1, 0, 1, 1, 1])
SIGNED = {"positive": SIGNS.tolist()}
GROUPS = {"groups": {"a": [0, 1], "b": [4, 5, 6], "c": [8, 9]}}
WEIGHTS = np.r_[0.0, np.linspace(0.2, 3.0, 39)]
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
    "signs": SIGNED,
}
VARIANTS: dict[str, dict[str, Any]] = {
    "loo": {"cv": "loo"},
    "repeats, weights": {"cv": "3x5", "sample_weight": WEIGHTS},
    "blocks": {"cv": "blocks:4"},
    "rows in groups": {"rows": np.repeat(np.arange(10), 4)},
    "gaps in time": {"cv": TimeSeriesSplit(3, gap=2, test_size=8)},
    "forced": {"always": [2, 7]},
    "dependent forced": {"always": [2, 7, 10]},
    "relative ridge": {"shrinkage": 0.4},
    "no intercept": {"center": None},
    "centred once": {"center": "global"},
    "forced, ridge, weights, repeats": {"always": [7], "ridge": 0.3, "sample_weight": WEIGHTS, "cv": "2x4"},
    "by columns": {"memory_budget": 0},
    "several, forced, weights, repeats": {"q": 3, "always": [2], "sample_weight": WEIGHTS, "cv": "2x4"},
    "several, forced, centred once": {"q": 3, "always": [2], "center": "global"},
    "several, ridge, own units, no intercept": {"q": 3, "ridge": 0.3, "center": None, "scale_targets": False},
    "signs, forced, ridge": {**SIGNED, "always": [3], "ridge": 0.5},
    "signs, weights, no intercept": {**SIGNED, "center": None, "sample_weight": WEIGHTS},
    "signs, centred once, loo": {**SIGNED, "center": "global", "cv": "loo"},
}
ALL = KINDS | VARIANTS
AFTER = {"null": 2, "outer": 2}


def data(kind, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 11)) + 1.0
    X[:, 5] = X[:, 4] + 0.3 * X[:, 5]
    if kind == "dependent forced":
        X[:, 10] = X[:, 7]
    Y = X[:, [1, 4, 5, 7]] @ [[1.0, 0.3, 0.0], [-1.0, 1.0, 0.5], [0.7, 0.0, 1.0], [1.2, -0.4, 1.0]]
    Y = (Y + 0.5 * rng.normal(size=(40, 3))) * [1.0, 10.0, 1000.0]
    q = ALL[kind].get("q", 1)
    return X, Y[:, :q] if q > 1 else Y[:, 0]


def problem_of(kind, spoilt=slice(0), factor=-7.0):
    """The problem of a kind; `spoilt` rows hold garbage."""
    apart = ("q", "cv", "rows", "shrinkage")
    X, y = data(kind)
    X[spoilt] *= factor
    y[spoilt] = 1e4 * np.random.default_rng(9).normal(size=y[spoilt].shape)
    problem = SubsetProblem(X, y, **{name: value for name, value in ALL[kind].items() if name not in apart})
    return problem.with_shrinkage(ALL[kind].get("shrinkage", 0.0))


def settings(kind):
    cv, rows = ALL[kind].get("cv", 5), ALL[kind].get("rows")
    return {"sizes": range(1, 4), "cv": cv, "groups": rows, "seed": 1, "stability": 3}


class Run(NamedTuple):
    problem: SubsetProblem
    curve: SizeCurve
    folds: Folds


@cache
def selected(kind):
    problem, more = problem_of(kind), AFTER if kind in KINDS else {}
    folds = as_folds(ALL[kind].get("cv", 5), problem, ALL[kind].get("rows"), seed=1)
    return Run(problem, select_size(problem, **settings(kind), **more), folds)


def refit(problem, left_out, support):
    """Predictions (M, q) of new rows by least squares on the other rows, by definition."""
    rows = np.setdiff1d(np.arange(problem.n_rows), left_out)
    forced, weights = problem.always.size, problem.sample_weight
    columns = np.r_[problem.always, support[support >= 0]].astype(int)
    X, Y, k = problem.X[:, columns], problem.targets, columns.size
    centre, level = np.zeros(k), np.zeros(Y.shape[1])
    if problem.center is not None:
        some = slice(None) if problem.center == "global" else rows
        centre, level = (np.average(each[some], axis=0, weights=weights[some]) for each in (X, Y))
    D, root = X[rows] - centre, np.sqrt(weights[rows])[:, None]
    penalty = problem.ridge + problem.shrinkage * (weights[rows] @ D**2)
    penalty[:forced] = 0.0
    A = np.vstack([root * D, np.diag(np.sqrt(penalty))])
    T = np.vstack([root * (Y[rows] - level), np.zeros((k, Y.shape[1]))])
    x = np.linalg.lstsq(A, T, rcond=1e-11)[0]
    if problem.limits.signs is not None and k:
        sign = np.where(np.arange(k) < forced, 0, problem.limits.signs[columns])
        bounds = np.where(sign > 0, 0.0, -np.inf), np.where(sign < 0, 0.0, np.inf)
        x = lsq_linear(A, T[:, 0], bounds=bounds, method="bvls", tol=1e-15, max_iter=1000).x[:, None]
    return lambda new: (new[:, columns] - centre) @ x + level


def scale(kind, problem, left_out):
    """The units (q,) of the targets: what the forced columns leave of the training rows; 1 for a single target."""
    if problem.targets.shape[1] == 1 or not ALL[kind].get("scale_targets", True):
        return 1.0
    weights = problem.sample_weight.copy()
    weights[left_out] = 0.0
    rest = problem.targets - refit(problem, left_out, np.zeros(0))(problem.X)
    return np.sqrt(np.average(rest**2, axis=0, weights=weights))


@pytest.mark.parametrize("kind", ALL)
def test_errors_are_those_of_refits(kind):
    problem, curve, folds = selected(kind)
    Y, weights = problem.targets, problem.sample_weight[folds.row]
    for size in range(4):
        at, each = curve.at(size), zip(folds.rows, folds.left_out, curve.fold_supports[curve.at(size)], strict=True)
        residuals = [(Y - refit(problem, left_out, support)(problem.X))[rows] for rows, left_out, support in each]
        units = [scale(kind, problem, left_out) for left_out in folds.left_out]
        scaled = np.concatenate([r / unit for r, unit in zip(residuals, units, strict=True)])
        told = (curve.observed - curve.predictions[at]).reshape(scaled.shape)
        np.testing.assert_allclose(told, scaled, rtol=1e-6, atol=1e-6 * np.abs(scaled).max())
        by_target = 0.5 * np.average(scaled**2, axis=0, weights=weights)
        assert curve.cv_error[at] == pytest.approx(by_target.mean())
        if curve.targets is not None:
            mse = np.average(np.concatenate(residuals) ** 2, axis=0, weights=weights)
            off = Y[folds.row] - np.average(Y[folds.row], axis=0, weights=weights)
            spread = np.average(off**2, axis=0, weights=weights)
            np.testing.assert_allclose(curve.targets.rmse[at], np.sqrt(mse), rtol=1e-9)
            np.testing.assert_allclose(curve.targets.r2[at], 1.0 - mse / spread, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(curve.targets.cv_error[at], by_target, rtol=1e-9)


@pytest.mark.parametrize("kind", ALL)
def test_intervals_by_definition(kind):
    """Jackknife+ and CV+ word for word: each row counts once (by its weight), its values share it."""
    problem, curve, folds = selected(kind)
    new, y, q = data(kind, seed=5)[0][:5], problem.targets, problem.targets.shape[1]
    shares = problem.sample_weight[folds.row] / np.bincount(folds.row)[folds.row]
    shares *= np.unique(folds.row).size / shares.sum()
    needed = 0.8 * (np.unique(folds.row).size + 1) - 1e-7
    for size in (0, 2):
        fits = [refit(problem, *each) for each in zip(folds.left_out, curve.fold_supports[curve.at(size)], strict=True)]
        there = np.stack([fits[fold](new) for fold in folds.fold])  # (P, M, q)
        errors = np.stack(
            [np.abs(y[[row]] - fits[fold](problem.X[[row]])) for row, fold in zip(folds.row, folds.fold, strict=True)]
        )
        bounds = []
        for sign in (-1, 1):
            values = sign * there + errors
            order = np.argsort(values, axis=0)
            first = np.argmax(np.cumsum(shares[order], axis=0) >= needed, axis=0)
            bounds.append(sign * np.take_along_axis(np.take_along_axis(values, order, 0), first[None], 0)[0])
        told = curve.predict(new, size, interval=0.8)
        for given, expected in zip((told.lower, told.upper), bounds, strict=True):
            np.testing.assert_allclose(given.reshape(5, q), expected, rtol=1e-6, atol=1e-6 * np.abs(y).max())
        point = refit(problem, [], curve.supports[curve.at(size)])(new)
        np.testing.assert_allclose(told.prediction.reshape(5, q), point, rtol=1e-6, atol=1e-7 * np.abs(y).max())


@pytest.mark.parametrize("kind", [kind for kind in ALL if ALL[kind].get("center") != "global"])
def test_held_out_rows_change_nothing_in_their_fold(kind):
    _, curve, folds = selected(kind)
    other = select_size(problem_of(kind, folds.left_out[2]), **settings(kind))
    for at in range(1, 4):
        supports = [each.fold_supports[at][2] for each in (curve, other)]
        np.testing.assert_array_equal(*(support[support >= 0] for support in supports))
        fits = [each.fold_fits for each in (curve, other)]
        coefs = [each.coefs[at][2][support >= 0] for each, support in zip(fits, supports, strict=True)]
        np.testing.assert_allclose(*coefs, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(*(each.always_coefs[at][2] for each in fits), rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(*(each.intercepts[at][2] for each in fits), rtol=1e-6, atol=1e-9)
    if curve.targets is not None:
        np.testing.assert_allclose(other.targets.scales[2], curve.targets.scales[2], rtol=1e-12)
        np.testing.assert_allclose(other.targets.means[2], curve.targets.means[2], rtol=1e-12)


@pytest.mark.parametrize("kind", ["plain", "several", "groups", "bands", "signs"])
def test_outer_folds_choose_anew_without_their_rows(kind):
    problem, curve, _ = selected(kind)
    outer, Y, how = curve.outer, problem.targets, settings(kind) | {"stability": 0}
    told, scaled = np.empty(Y.shape), np.empty(Y.shape)
    assert sorted(outer.rows) == list(range(40))
    for fold, (size, support) in enumerate(zip(outer.sizes, outer.supports, strict=True)):
        rows = outer.rows[outer.fold == fold]
        alone = select_size(problem.rebuilt(np.setdiff1d(np.arange(40), rows)), **how)
        assert size == recommended_size(alone)
        np.testing.assert_array_equal(support, alone.supports[alone.at(size)])
        told[rows] = refit(problem, rows, support)(problem.X[rows])
        scaled[rows] = (Y - told)[rows] / scale(kind, problem, rows)
    np.testing.assert_allclose(outer.predictions.reshape(Y.shape), told[outer.rows], rtol=1e-6)
    assert outer.error == pytest.approx(0.5 * np.mean(scaled**2))
    if outer.target_rmse is not None:
        mse = np.mean((Y - told) ** 2, axis=0)
        np.testing.assert_allclose(outer.target_rmse, np.sqrt(mse), rtol=1e-9)
        np.testing.assert_allclose(outer.target_r2, 1.0 - mse / Y.var(axis=0), rtol=1e-9)
    other = select_size(problem_of(kind, outer.rows[outer.fold == 0], factor=1.0), **how, outer=2).outer
    assert other.sizes[0] == outer.sizes[0]
    np.testing.assert_array_equal(other.supports[0], outer.supports[0])
    np.testing.assert_allclose(other.predictions[other.fold == 0], outer.predictions[outer.fold == 0], rtol=1e-9)
    assert other.error > outer.error


@pytest.mark.parametrize("kind", ["plain", "ridge", "several", "bands", "signs"])
def test_halves_select_the_best_columns_of_their_rows(kind):
    problem, curve, _ = selected(kind)
    size, halves = int(curve.stability.sizes[0]), half_samples(problem, 3, 1)
    for half, left_out in enumerate(halves.left_out):
        alone = problem.rebuilt(np.setdiff1d(np.arange(40), left_out))
        allowed = [s for s in combinations(range(11), size) if kind != "bands" or keeps(KINDS[kind], s)]
        best = min(allowed, key=alone.energy)
        np.testing.assert_array_equal(curve.stability.supports[0][half], best)
        np.testing.assert_allclose(curve.stability.coefs[0][half], alone.fit(best).coef, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_limits_are_kept_everywhere(kind):
    problem, curve, _ = selected(kind)
    stability = curve.stability
    assert curve.null.r2.max() < 0.5  # noise
    of_folds = (row[row >= 0] for each in curve.fold_supports for row in each)
    supports = [*curve.supports, *curve.outer.supports, *of_folds]
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
            assert np.all(curve.fold_fits.coefs[at] * SIGNS[curve.fold_supports[at]] >= 0)
        assert np.all(stability.coefs[0] * SIGNS[stability.supports[0]] >= 0)
    for other in (shuffled(problem, 0, 0), problem.rebuilt(np.arange(30))):
        assert other.limits.settings(problem.names) == problem.limits.settings(problem.names)


@pytest.mark.parametrize("kind", KINDS)
def test_workers_journal_and_file_give_the_same_curve(kind, tmp_path):
    problem, curve, _ = selected(kind)
    for _ in range(2):
        again = select_size(problem, **settings(kind), **AFTER, n_jobs=2, journal=tmp_path / "run")
        assert_same_curve(curve, again)
    curve.save(tmp_path / "curve.json")
    back = SizeCurve.load(tmp_path / "curve.json")
    assert curve_to_json(back) == curve_to_json(curve)
    assert str(back) == str(curve)
    for size in range(4):
        one, other = (each.predict(problem.X, size, interval=0.8).to_pandas() for each in (curve, back))
        assert one.equals(other)
    other = "bands" if kind != "bands" else "hierarchy"
    with pytest.raises(JournalError, match=r"was made with .*, but this run has"):
        select_size(problem_of(other), **settings(other), journal=tmp_path / "run")
