"""Half-samples, shuffled targets and outer folds with several targets, against literal recomputation."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pairflip import SizeCurve, SubsetProblem, select_size
from pairflip.report.answer import answer_of
from pairflip.selection.after_selection import shuffled
from pairflip.selection.folds import as_folds
from pairflip.selection.subsampling import half_samples
from pairflip.selection.verdict import recommended_size

PAIRS = 3


def table(seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 8))
    Y = X[:, [1, 4]] @ rng.normal(size=(2, 3)) + 0.6 * rng.normal(size=(40, 3))
    return X, Y * [1.0, 10.0, 1000.0] + [0.0, 5.0, -3.0]


@pytest.fixture(scope="module")
def curve() -> SizeCurve:
    return select_size(SubsetProblem(*table()), [1, 2, 3], cv=4, stability=PAIRS, null=2, outer=3)


def literal_best(X: Any, Y: Any, rows: Any, k: int) -> tuple[list[int], Any]:
    """The k columns with the lowest sum of squared errors of the scaled targets on some rows; their coefficients."""

    def fit(support: tuple[int, ...]) -> tuple[float, Any]:
        design = np.column_stack([np.ones(len(rows)), X[np.ix_(rows, support)]])
        coef = np.linalg.lstsq(design, Y[rows], rcond=None)[0]
        return float(np.sum(((Y[rows] - design @ coef) / Y[rows].std(axis=0)) ** 2)), coef

    best = min(combinations(range(X.shape[1]), k), key=lambda support: fit(support)[0])
    return list(best), fit(best)[1]


def test_halves_select_the_best_columns_of_their_rows(curve: SizeCurve) -> None:
    X, Y = table()
    found = curve.stability
    assert found is not None
    size = int(found.sizes[0])
    halves = half_samples(SubsetProblem(X, Y), PAIRS, 0)
    for half, left in enumerate(halves.left_out):
        best, coef = literal_best(X, Y, np.setdiff1d(np.arange(40), left), size)
        assert found.supports[0][half].tolist() == best
        np.testing.assert_allclose(found.coefs[0][half], coef[1:], rtol=1e-8)
    assert found.coefs[0].shape == (2 * PAIRS, size, 3)
    assert np.isnan(found.spread(1)).all()
    assert list(found.to_pandas().columns) == ["size", "column", "chosen", "frequency"]
    assert found.frequency(1) == np.mean([1 in support for support in found.supports[0]])


def test_outer_folds_are_chosen_and_predicted_without_their_rows(curve: SizeCurve) -> None:
    X, Y = table()
    outer = curve.outer
    assert outer is not None
    assert outer.target_r2 is not None
    assert outer.target_rmse is not None
    folds, told, scaled = as_folds(3, SubsetProblem(X, Y), None), np.empty((40, 3)), np.empty((40, 3))
    for number, rows in enumerate(folds.rows):
        kept = np.setdiff1d(np.arange(40), rows)
        inside = select_size(SubsetProblem(X[kept], Y[kept]), [1, 2, 3], cv=4)
        size = recommended_size(inside)
        assert outer.sizes[number] == size
        best, coef = literal_best(X, Y, kept, size)
        assert outer.supports[number].tolist() == best
        told[rows] = np.column_stack([np.ones(rows.size), X[np.ix_(rows, best)]]) @ coef
        scaled[rows] = (Y[rows] - told[rows]) / Y[kept].std(axis=0)
    np.testing.assert_allclose(outer.predictions, told[outer.rows], rtol=1e-9)
    assert outer.error == pytest.approx(0.5 * np.mean(scaled**2))
    np.testing.assert_allclose(outer.target_rmse, np.sqrt(np.mean((Y - told) ** 2, axis=0)), rtol=1e-9)
    np.testing.assert_allclose(outer.target_r2, 1.0 - np.mean((Y - told) ** 2, axis=0) / Y.var(axis=0), rtol=1e-9)


def test_rows_that_are_set_aside_have_no_part_in_their_prediction(curve: SizeCurve) -> None:
    X, Y = table()
    assert curve.outer is not None
    own = curve.outer.rows[curve.outer.fold == 0]
    Y[own] = 1e4 * np.random.default_rng(1).normal(size=(own.size, 3))
    other = select_size(SubsetProblem(X, Y), [1, 2, 3], cv=4, outer=3).outer
    assert other is not None
    assert other.sizes[0] == curve.outer.sizes[0]
    assert other.supports[0].tolist() == curve.outer.supports[0].tolist()
    np.testing.assert_array_equal(other.predictions[other.fold == 0], curve.outer.predictions[curve.outer.fold == 0])
    assert other.error > curve.outer.error


def test_rows_of_the_targets_are_shuffled_together(curve: SizeCurve) -> None:
    X, Y = table()
    problem = SubsetProblem(X, Y, target_names=["a", "b", "c"], scale_targets=False)
    other = shuffled(problem, 0, 1)
    order = [int(np.argmin(np.abs(Y[:, 0] - y))) for y in other.y[:, 0]]
    assert sorted(order) == list(range(40))
    assert order != list(range(40))
    np.testing.assert_allclose(other.y, Y[order], rtol=1e-9)
    assert other.target_names == ["a", "b", "c"]
    np.testing.assert_array_equal(other.form.target_scale, 1.0)  # type: ignore[attr-defined]
    forced = shuffled(SubsetProblem(X, Y, always=[3]), 0, 1)
    design = np.column_stack([np.ones(40), X[:, 3]])
    fitted = design @ np.linalg.lstsq(design, Y, rcond=None)[0]
    order = [int(np.argmin(np.abs((Y - fitted)[:, 0] - y))) for y in (forced.y - fitted)[:, 0]]
    assert sorted(order) == list(range(40))
    np.testing.assert_allclose(forced.y - fitted, (Y - fitted)[order], atol=1e-9)
    null = curve.null
    assert null is not None
    noise = shuffled(SubsetProblem(X, Y), 0, 0)
    folds, size, left, seen = as_folds(4, noise, None), null.size, [], []
    for rows in folds.rows:
        kept = np.setdiff1d(np.arange(40), rows)
        best, coef = literal_best(X, noise.y, kept, size)
        told = np.column_stack([np.ones(rows.size), X[np.ix_(rows, best)]]) @ coef
        spread = noise.y[kept].std(axis=0)
        left.append((noise.y[rows] - told) / spread)
        seen.append((noise.y[rows] - noise.y[kept].mean(axis=0)) / spread)
    observed = np.concatenate(seen)
    r2 = 1.0 - np.sum(np.concatenate(left) ** 2) / np.sum((observed - observed.mean()) ** 2)
    assert null.r2[0] == pytest.approx(r2)


def test_what_is_said(curve: SizeCurve) -> None:
    text = str(curve)
    for said in ("random halves", "outer folds", "R2 there: ", "targets shuffled 2 times"):
        assert said in text
    record = answer_of(curve).to_json(curve)
    assert [each["target"] for each in record["outer"]["targets"]] == ["y0", "y1", "y2"]
    json.dumps(record, allow_nan=False)


@pytest.mark.parametrize("center", ["fold", "global", None])
def test_intervals_of_each_target_are_those_of_the_folds_fits(center: Any, tmp_path: Path) -> None:
    X, Y = table()
    weights = np.where(np.arange(40) % 5 == 0, 2.0, 1.0) if center == "fold" else np.ones(40)
    problem = SubsetProblem(X, Y, center=center, always=[6], sample_weight=weights)
    found = select_size(problem, [2], cv="2x4", effort="quick")
    new = np.random.default_rng(5).normal(size=(7, 8))
    got = found.predict(new, 2, interval=0.8)
    row, fold = found.held_out_rows[::3], found.held_out_fold[::3]
    told, errors = np.empty((row.size, 7, 3)), np.empty((row.size, 3))
    mean = weights @ Y / weights.sum() if center == "global" else 0.0
    centre = weights @ X / weights.sum() if center == "global" else 0.0
    for f in range(found.n_folds):
        own, kept = fold == f, np.setdiff1d(np.arange(40), row[fold == f])
        which = [6, *found.fold_supports[found.at(2)][f]]

        def design(table: Any, which: list[int] = which) -> Any:
            ones = np.ones((len(table), int(center == "fold")))
            return np.hstack([ones, (table - centre)[:, which]])

        root = np.sqrt(weights[kept])[:, None]
        coef = np.linalg.lstsq(root * design(X[kept]), root * (Y[kept] - mean), rcond=None)[0]
        told[own] = design(new) @ coef + mean
        errors[own] = np.abs(Y[row[own]] - mean - design(X[row[own]]) @ coef)
    shares = weights[row] / 2.0  # every row is predicted twice
    shares *= 40 / shares.sum()
    for t in range(3):
        for m in range(7):
            for bound, values in (
                (got.upper, told[:, m, t] + errors[:, t]),
                (-got.lower, errors[:, t] - told[:, m, t]),
            ):
                order = np.argsort(values)
                place = int(np.argmax(np.cumsum(shares[order]) >= 0.8 * 41 - 1e-6))
                assert bound[m, t] == pytest.approx(values[order[place]], rel=1e-8)
    assert got.targets == ["y0", "y1", "y2"]
    np.testing.assert_allclose(got.prediction, found.predict(new, 2))
    frame = got.to_pandas()
    assert frame.loc[4, ["row", "target"]].tolist() == [1, "y1"]
    assert frame.loc[4, "upper"] == got.upper[1, 1]
    found.save(tmp_path / "curve.json")
    again = SizeCurve.load(tmp_path / "curve.json")
    np.testing.assert_array_equal(again.predict(new, 2, interval=0.8).lower, got.lower)
    assert again.predict(new, 0, interval=0.8).lower.shape == (7, 3)
