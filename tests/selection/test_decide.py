"""The answer: what it goes further for by itself, rows that change it, and words that agree with its numbers."""

from dataclasses import replace

import numpy as np
import pytest

from pairflip import SubsetProblem, select_size
from pairflip.report.answer import answer_of
from pairflip.selection.decide import Reason, is_settled

RNG = np.random.default_rng(11)


def table(rows=60, columns=30, chosen=3, noise=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns))
    return X, X[:, :chosen].sum(axis=1) + noise * rng.standard_normal(rows)


def test_larger_sizes_are_tried_where_the_best_one_is_near_the_largest(tmp_path):
    X, y = table(rows=80, columns=20, chosen=13, noise=0.3)
    problem = SubsetProblem(X, y)
    curve = select_size(problem, effort="quick", prove=False, journal=tmp_path)
    assert curve.sizes.tolist() == list(range(21))
    assert 12 <= curve.answer.size <= 14
    again = select_size(problem, effort="quick", prove=False, journal=tmp_path)
    np.testing.assert_array_equal(again.cv_error, curve.cv_error)
    asked = select_size(problem, range(1, 11), effort="quick", prove=False)
    assert asked.sizes.tolist() == list(range(11))  # what was asked for stays
    assert Reason.LARGEST_SIZE in [doubt.reason for doubt in asked.answer.doubts]


def test_folds_are_repeated_until_halves_of_the_repetitions_agree(monkeypatch):
    X, y = table(rows=30, columns=8)
    how = {"sizes": [1, 2, 3, 4], "prove": False}
    assert select_size(SubsetProblem(X, y), **how).n_folds == 1000
    asked = []
    monkeypatch.setattr(
        "pairflip.selection.run.is_settled", lambda curve, folds: asked.append(curve.n_folds) or len(asked) > 1
    )
    assert select_size(SubsetProblem(X, y), **how).n_folds == 2000
    assert asked == [1000, 2000]
    monkeypatch.undo()
    curve = select_size(SubsetProblem(X, y), cv="8x5", **how)
    even = curve.held_out_fold // 5 % 2 == 0
    of_halves = curve.predictions + 1.0
    of_halves[2, even], of_halves[3, ~even] = curve.observed[even], curve.observed[~even]
    assert not is_settled(replace(curve, predictions=of_halves), 5)
    of_halves[2] = curve.observed
    assert is_settled(replace(curve, predictions=of_halves), 5)


def test_a_row_that_changes_the_answer_is_named_with_what_changes():
    X, y = table(rows=80, columns=20, noise=1.5, seed=3)
    X[57, 10:14], y[57] = 4.0, y.mean() + 9.0 * y.std()
    curve = select_size(SubsetProblem(X, y), range(1, 9), effort="quick", prove=False)
    (doubt,) = (each for each in curve.answer.doubts if each.reason == Reason.INFLUENTIAL_ROWS)
    assert doubt.numbers["rows"] == [57]
    others = np.delete(np.arange(80), 57)
    without = select_size(SubsetProblem(X[others], y[others]), range(1, 9), effort="quick", prove=False)
    assert doubt.numbers["size"] == without.answer.size
    assert doubt.numbers["r2"] == pytest.approx(without.answer.error.r2[0])
    stay = np.isin(curve.supports[curve.at(curve.answer.size)], without.supports[without.at(without.answer.size)])
    assert (doubt.numbers["stay"], doubt.numbers["of"]) == (stay.sum(), stay.size)
    words = answer_of(curve).text + " ".join(answer_of(curve).cautions)
    assert "Without row 58, whose target or error is far from all others, " in words
    assert "leave it out (--leave-out)" in words
    assert Reason.HEAVY_ROW not in [each.reason for each in curve.answer.doubts]  # the same row once
    assert Reason.INFLUENTIAL_ROWS not in [each.reason for each in without.answer.doubts]


def test_the_headline_says_where_names_are_uncertain():
    rng = np.random.default_rng(0)
    common = rng.standard_normal((60, 3))
    X = common[:, np.repeat([0, 1, 2], 8)] + 0.35 * rng.standard_normal((60, 24))
    y = common.sum(axis=1) + 0.7 * rng.standard_normal(60)
    curve = select_size(SubsetProblem(X, y), range(1, 6), effort="quick", stability=20, prove=False)
    assert curve.answer.size
    assert curve.stability.overlap[0] < 0.5
    assert Reason.NAMES in [each.reason for each in curve.answer.doubts]
    words = answer_of(curve)
    assert "predict best; their names are uncertain: " in words.headline
    assert "exactly these" in words.text
    assert words.mood == "not"
    steady = select_size(SubsetProblem(*table(noise=0.3)), range(1, 6), effort="quick", stability=20, prove=False)
    assert answer_of(steady).headline.startswith("Keep 3 columns: ")
