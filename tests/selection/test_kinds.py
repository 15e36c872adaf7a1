"""Every kind of problem and of folds through a whole selection, against refits of the training rows by definition."""

from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.model_selection import ShuffleSplit, TimeSeriesSplit

from _curves import assert_same_curve
from _groups import likelihood_target
from _refits import refit
from _ruled import keeps
from pairflip import Schedule, SizeCurve, SubsetProblem, select_size
from pairflip.selection import JournalError
from pairflip.selection.after_selection import shuffled
from pairflip.selection.curve_file import curve_to_json
from pairflip.selection.folds import Folds, as_folds
from pairflip.selection.subsampling import half_samples

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
    "one group left out": {"rows": np.repeat(np.arange(10), 4), "cv": "loo"},
    "drawn anew": {"cv": ShuffleSplit(3, test_size=0.3, random_state=1)},
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
SPLITS = [(np.setdiff1d(np.arange(40), rows), rows) for rows in np.array_split(np.arange(40), 5)]
LOSSES: dict[str, dict[str, Any]] = {
    **{name: {"loss": name, "cv": SPLITS} for name in ("logistic", "poisson", "multinomial", "cox")},
    "logistic, groups": {"loss": "logistic", "cv": SPLITS, **GROUPS},
    "poisson, forced, weights": {"loss": "poisson", "cv": SPLITS, "always": [2], "sample_weight": WEIGHTS},
}
EVERY = ALL | LOSSES
AFTER = {"null": 2, "outer": 2}
# Factors of held-out rows, and of the spread of their targets; a fold whose rows dwarf the others is made anew.
GARBAGE = {"large": (-7.0, 1e4), "moderate": (-2.0, 2.0), "zero": (0.0, 0.0), "targets": (1.0, 1e4)}


def data(kind, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 11)) + 1.0
    X[:, 5] = X[:, 4] + 0.3 * X[:, 5]
    if kind == "dependent forced":
        X[:, 10] = X[:, 7]
    Y = X[:, [1, 4, 5, 7]] @ [[1.0, 0.3, 0.0], [-1.0, 1.0, 0.5], [0.7, 0.0, 1.0], [1.2, -0.4, 1.0]]
    Y = (Y + 0.5 * rng.normal(size=(40, 3))) * [1.0, 10.0, 1000.0]
    q = EVERY[kind].get("q", 1)
    if kind in LOSSES:
        return X, likelihood_target(LOSSES[kind]["loss"], (Y[:, 0] - np.median(Y[:, 0])) / Y[:, 0].std(), rng)
    return X, Y[:, :q] if q > 1 else Y[:, 0]


def problem_of(kind, spoilt=slice(0), garbage="large"):
    """The problem of a kind; `spoilt` rows hold garbage."""
    apart = ("q", "cv", "rows", "shrinkage")
    X, y = data(kind)
    factor, noise = GARBAGE[garbage]
    X[spoilt] *= factor
    noise = noise * np.random.default_rng(9).normal(size=y[spoilt].shape)
    y[spoilt] = y[spoilt][::-1] if kind in LOSSES else noise * y.std(axis=0)
    problem = SubsetProblem(X, y, **{name: value for name, value in EVERY[kind].items() if name not in apart})
    return problem.with_shrinkage(EVERY[kind].get("shrinkage", 0.0))


def settings(kind):
    cv, rows = EVERY[kind].get("cv", 5), EVERY[kind].get("rows")
    given = {"sizes": range(1, 4), "cv": cv, "groups": rows, "seed": 1, "stability": 3}
    return given | {"ridge": [0.1], "effort": "quick"} if kind in LOSSES else given


class Run(NamedTuple):
    problem: SubsetProblem
    curve: SizeCurve
    folds: Folds


@cache
def selected(kind):
    problem, more = problem_of(kind), AFTER if kind in KINDS else {}
    folds = as_folds(EVERY[kind].get("cv", 5), problem, EVERY[kind].get("rows"), seed=1)
    return Run(problem, select_size(problem, **settings(kind), **more), folds)


@pytest.mark.parametrize("kind", ALL)
def test_errors_are_those_of_refits(kind):
    problem, curve, folds = selected(kind)
    Y, weights = problem.targets, problem.sample_weight[folds.row]
    for size in range(4):
        at = curve.at(size)
        fits = [refit(problem, *each) for each in zip(folds.left_out, curve.fold_supports[at], strict=True)]
        scaled = np.concatenate([fit.residual(rows) for fit, rows in zip(fits, folds.rows, strict=True)])
        told = (curve.observed - curve.predictions[at]).reshape(scaled.shape)
        np.testing.assert_allclose(told, scaled, rtol=1e-6, atol=1e-6 * np.abs(scaled).max())
        by_target = 0.5 * np.average(scaled**2, axis=0, weights=weights)
        assert curve.cv_error[at] == pytest.approx(by_target.mean())
        if curve.targets is not None:
            units = np.stack([fit.scale for fit in fits])[folds.fold]
            mse = np.average((scaled * units) ** 2, axis=0, weights=weights)
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
        there = np.stack([fits[fold].predict(new) for fold in folds.fold])  # (P, M, q)
        held_out = zip(folds.row, folds.fold, strict=True)
        errors = np.stack([np.abs(y[[row]] - fits[fold].predict(problem.X[[row]])) for row, fold in held_out])
        bounds = []
        for sign in (-1, 1):
            values = sign * there + errors
            order = np.argsort(values, axis=0)
            first = np.argmax(np.cumsum(shares[order], axis=0) >= needed, axis=0)
            bounds.append(sign * np.take_along_axis(np.take_along_axis(values, order, 0), first[None], 0)[0])
        told = curve.predict(new, size, interval=0.8)
        for given, expected in zip((told.lower, told.upper), bounds, strict=True):
            np.testing.assert_allclose(given.reshape(5, q), expected, rtol=1e-6, atol=1e-6 * np.abs(y).max())
        point = refit(problem, [], curve.supports[curve.at(size)]).predict(new)
        np.testing.assert_allclose(told.prediction.reshape(5, q), point, rtol=1e-6, atol=1e-7 * np.abs(y).max())


WITHIN = [kind for kind in EVERY if EVERY[kind].get("center") != "global"]
CHAINS = [kind for kind in WITHIN if not {"groups", "positive", "loss"} & EVERY[kind].keys()]
SHORT = Schedule.geometric(0.01, 1e3, steps=12, sweeps=3)


def assert_unchanged(kind, curve, how, fold, garbage):
    """The fold's result is the same where the rows that it holds out are garbage."""
    how = how | {"stability": 0}
    folds = as_folds(how["cv"], problem_of(kind), how["groups"], seed=1)
    other = select_size(problem_of(kind, folds.left_out[fold], garbage), **how)
    for at in range(1, curve.sizes.size):
        supports = [each.fold_supports[at][fold] for each in (curve, other)]
        np.testing.assert_array_equal(*(support[support >= 0] for support in supports))
        fits = [each.fold_fits for each in (curve, other)]
        coefs = [each.coefs[at][fold][support >= 0] for each, support in zip(fits, supports, strict=True)]
        np.testing.assert_allclose(*coefs, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(*(each.always_coefs[at][fold] for each in fits), rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(*(each.intercepts[at][fold] for each in fits), rtol=1e-6, atol=1e-9)
    if curve.targets is not None:
        np.testing.assert_allclose(other.targets.scales[fold], curve.targets.scales[fold], rtol=1e-12)
        np.testing.assert_allclose(other.targets.means[fold], curve.targets.means[fold], rtol=1e-12)


@pytest.mark.parametrize("garbage", ["large", "moderate"])
@pytest.mark.parametrize("kind", WITHIN)
def test_held_out_rows_change_nothing_in_their_fold(kind, garbage):
    assert_unchanged(kind, selected(kind).curve, settings(kind), 2, garbage)


@pytest.mark.parametrize("garbage", ["large", "moderate", pytest.param("zero", marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", CHAINS)
def test_held_out_rows_change_no_chain_of_their_fold(kind, garbage):
    how = settings(kind) | {"chains": 2, "schedule": SHORT, "stability": 0}
    assert_unchanged(kind, select_size(problem_of(kind), **how), how, 0, garbage)


@pytest.mark.parametrize("how", [
    {"schedule": "paper"}, {"schedule": "auto"}, {"schedule": SHORT, "engine": "reference"},
    pytest.param({"schedule": "auto", "engine": "cuda"}, marks=pytest.mark.gpu),
], ids=str)  # fmt: skip
def test_held_out_rows_set_no_temperature_and_touch_no_engine(how):
    how = settings("plain") | {"sizes": [2], "chains": 2, "stability": 0} | how
    assert_unchanged("plain", select_size(problem_of("plain"), **how), how, 0, "moderate")


def test_what_only_the_held_out_row_makes_vary():
    X, y = data("plain")
    X[:, 10] = 3.0
    steady = select_size(SubsetProblem(X, y), [2], cv="loo", chains=2)
    X[5, 10] = 8.0
    varied = select_size(SubsetProblem(X, y), [2], cv="loo", chains=2)
    np.testing.assert_array_equal(steady.fold_supports[1][5], varied.fold_supports[1][5])
    assert 10 not in varied.fold_supports[1][5]
    y = np.where(np.arange(40) == 3, 9.0, 2.0)
    curve = select_size(SubsetProblem(X, y), [1], cv="loo", chains=2)
    assert curve.predictions[1][3] == pytest.approx(2.0)
    assert np.isfinite(curve.cv_error).all()


@pytest.mark.parametrize("kind", ["plain", "several", "groups", "bands", "signs"])
def test_outer_folds_choose_anew_without_their_rows(kind):
    problem, curve, _ = selected(kind)
    outer, Y, how = curve.outer, problem.targets, settings(kind) | {"stability": 0}
    told, scaled = np.empty(Y.shape), np.empty(Y.shape)
    assert sorted(outer.rows) == list(range(40))
    for fold, (size, support) in enumerate(zip(outer.sizes, outer.supports, strict=True)):
        rows = outer.rows[outer.fold == fold]
        alone = select_size(problem.rebuilt(np.setdiff1d(np.arange(40), rows)), **how)
        assert size == alone.answer.size
        np.testing.assert_array_equal(support, alone.supports[alone.at(size)])
        fit = refit(problem, rows, support)
        told[rows], scaled[rows] = fit.predict(problem.X[rows]), fit.residual(rows)
    np.testing.assert_allclose(outer.predictions.reshape(Y.shape), told[outer.rows], rtol=1e-6)
    assert outer.error == pytest.approx(0.5 * np.mean(scaled**2))
    if outer.target_rmse is not None:
        mse = np.mean((Y - told) ** 2, axis=0)
        np.testing.assert_allclose(outer.target_rmse, np.sqrt(mse), rtol=1e-9)
        np.testing.assert_allclose(outer.target_r2, 1.0 - mse / Y.var(axis=0), rtol=1e-9)
    other = select_size(problem_of(kind, outer.rows[outer.fold == 0], "targets"), **how, outer=2).outer
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


@pytest.mark.parametrize("kind", [*KINDS, *LOSSES])
def test_workers_journal_and_file_give_the_same_curve(kind, tmp_path):
    problem, curve, _ = selected(kind)
    more = AFTER if kind in KINDS else {}
    for _ in range(2):
        again = select_size(problem, **settings(kind), **more, n_jobs=2, journal=tmp_path / "run")
        assert_same_curve(curve, again)
    curve.save(tmp_path / "curve.json")
    back = SizeCurve.load(tmp_path / "curve.json")
    assert curve_to_json(back) == curve_to_json(curve)
    assert str(back) == str(curve)
    for size in range(4):
        np.testing.assert_array_equal(*(each.predict(problem.X, size) for each in (curve, back)))
    other = "bands" if kind != "bands" else "hierarchy"
    with pytest.raises(JournalError, match=r"was made with .*, but this run has"):
        select_size(problem_of(other), **settings(other), journal=tmp_path / "run")
