"""Half-samples, shuffled targets and outer folds with several targets, against literal recomputation."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from pairflip import SizeCurve, SubsetProblem, select_size
from pairflip.report.answer import answer_of
from pairflip.selection.after_selection import shuffled
from pairflip.selection.folds import as_folds

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
    text = " ".join(curve.summary().split())
    for said in ("random halves", "outer folds", "; in outer folds: ", "targets shuffled 2 times"):
        assert said in text
    record = answer_of(curve).to_json(curve)
    assert [each["target"] for each in record["outer"]["targets"]] == ["y0", "y1", "y2"]
    json.dumps(record, allow_nan=False)
