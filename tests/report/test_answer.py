"""What a curve supports and how it is said: one answer, noise called noise, doubts told."""

import dataclasses
import re

import numpy as np
import pytest

from _curves import make_curve
from pairflip import SizeCurve, SubsetProblem, select_size
from pairflip.report.answer import answer_of, tiles_of
from pairflip.report.cautions import named_rows
from pairflip.report.curve_tables import size_table
from pairflip.selection.decide import difference, held_out, uncertain
from pairflip.selection.facts import SHUFFLES, identical_rows, shuffled_targets, table_facts
from pairflip.selection.folds import as_folds
from pairflip.text import compared, plus_minus, r2_text

NAMES = list("abcdefghijklmnopqrstuvwxyz")
CURVE = make_curve(names=NAMES[:24], planted=4)


def changed(**changes):
    return dataclasses.replace(CURVE, **changes)


def noise(rows=40, columns=60, seed=0):
    rng = np.random.default_rng(seed)
    return SubsetProblem(rng.normal(size=(rows, columns)), rng.normal(size=rows))


def doubts(curve, text):
    return [caution for caution in answer_of(curve).cautions if text in caution]


def test_noise_is_called_noise():
    curve = select_size(noise(), [1, 2, 3], cv="2x5", chains=4)
    answer = answer_of(curve)
    assert (answer.predicts, answer.size, answer.other_size, answer.mood) == (False, 0, None, "nothing")
    assert answer.text.startswith(
        "No set of columns predicts the target better than its mean. Prediction: of sizes 1 to 3, "
    )
    assert "Do not rely on" in answer.text
    assert str(curve).startswith("No set of columns predicts the target better than its mean.")
    record = answer.to_json(curve)
    assert (record["predicts"], record["columns"]) == (False, [])
    assert curve.answer.error is None
    assert "corrected" not in str(curve) + size_table(curve).caption


def test_a_finding_names_all_its_columns_first():
    curve = make_curve(names=NAMES[:24], planted=8, sizes=range(1, 11), noise=0.2)
    curve = dataclasses.replace(curve, facts={"p_value": 0.005}, n_folds=50)  # as if not leave-one-out
    answer = answer_of(curve)
    assert answer.predicts
    assert answer.size == curve.best_size == 8
    assert answer.text.startswith("Keep 8 columns: “a”, “b”, “c”, “d”, “e”, “f”, “g” and “h”. Prediction: RMSE ")
    rmse, r2 = (
        [f"{value:.3g}" for value in curve.answer.error.rmse],
        [r2_text(value) for value in curve.answer.error.r2],
    )
    told = f"RMSE {rmse[0]} ({rmse[1]} to {rmse[2]}; {held_out(curve, 0).rmse:.3g} with the mean alone)"
    assert f"{told}, R2 {r2[0]} ({r2[1]} to {r2[2]}) on new rows." in answer.text
    tiles = {tile.name: tile.value for tile in tiles_of(curve, 8)}
    assert tiles == {"RMSE": rmse[0], "R2": r2[0], "Columns": "8"}
    assert answer.to_json(curve)["corrected"]["rmse"] == curve.answer.error.rmse[0]
    assert answer.mood == ("not" if answer.cautions else "fairly")
    nearly_all = make_curve(names=NAMES[:24], planted=2, sizes=[1, 2], noise=0.02)
    nearly_all = dataclasses.replace(nearly_all, facts={"p_value": 0.005}, n_folds=50)
    assert "R2 0.9997 (" in answer_of(nearly_all).text, "not rounded to 1"


def test_no_finding_within_a_standard_error_or_by_chance():
    curve = make_curve(names=NAMES[:24], planted=1, sizes=[1], noise=9.0)
    gain, error = difference(curve, 0, 1)
    assert curve.best_size == 1
    assert 0 < gain < error
    assert not curve.answer.predicts
    assert f"a difference of {gain / error:.1f} standard errors" in answer_of(curve).text
    assert CURVE.answer.predicts
    lucky = changed(facts={"p_value": 0.3})
    assert not lucky.answer.predicts
    assert "of shuffled targets, 30 % are fitted as well" in answer_of(lucky).text


def test_errors_that_are_compared_do_not_look_alike():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 3))
    problem = SubsetProblem(X, X[:, 0] + 0.05 * X[:, 1] + rng.normal(size=1000))
    curve = select_size(problem, [1, 2], 3, effort="quick", prove=False)
    text = " ".join(str(curve).split())
    one, two = re.search(r"clearly worse \(RMSE ([0-9.]+) against ([0-9.]+) on held-out rows\)", text).groups()
    assert f"{held_out(curve, 1).rmse:.3f}" == one > two == f"{held_out(curve, 2).rmse:.3f}"
    assert compared(1.0004, 0.9998, 3) == ("1.0004", "0.9998")
    assert compared(57.12, 55.7, 3) == ("57.1", "55.7")
    assert compared(1.5, 1.5 + 1e-12, 3) == ("1.5", "1.5")
    assert plus_minus(1.0004, 0.12, 0.9998) == "1.0004 ± 0.1200"


def test_the_smallest_size_that_is_about_as_good_is_recommended():
    at, observed = CURVE.at(3), CURVE.observed
    predictions = CURVE.predictions.copy()
    residual = observed - CURVE.predictions[CURVE.at(4)]
    for further, size in ((0.2, 3), (1.5, 4)):
        noise = np.random.default_rng(0).normal(size=residual.size) * 0.3 * residual.std()
        extra = (residual + noise) ** 2 - residual**2  # by as many standard errors the mean is higher
        extra += further * extra.std() / np.sqrt(extra.size) - extra.mean()
        predictions[at] = observed - np.sqrt(np.maximum(residual**2 + extra, 0.0))
        curve = dataclasses.replace(CURVE, predictions=predictions.copy())
        assert curve.answer.size == size


def test_an_uncertain_search_is_told_by_the_limit_that_marks_sizes():
    low = changed(agreement=np.full(9, 0.29))
    assert uncertain(low, 3)
    assert not uncertain(CURVE, 3)
    assert answer_of(low).mood == "not"
    assert "29 %" in doubts(low, "The search is uncertain at")[0]
    assert "29%?" in str(low)
    few = changed(agreement=np.full(9, 0.55), chain_cv_error=CURVE.chain_cv_error[:, :2])
    assert "55%?" in str(few)
    assert "(? below 60 %: search uncertain)" in " ".join(str(few).split())
    assert "; below 60 %, better columns may have been missed" in size_table(few).caption
    assert "below 30 %" in size_table(CURVE).caption
    one = dataclasses.replace(few, chain_cv_error=CURVE.chain_cv_error[:, :1])
    assert "uncertain" not in str(one) + size_table(one).caption


# Facts of the table -------------------------------------------------------------------------------------------------


def test_facts_of_the_table_are_told():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    assert len(identical_rows(X, y)) == 0
    again = [*range(20), 0, 0, 5]
    X, y = X[again], y[again]
    assert identical_rows(X, y).tolist() == [[20, 0], [21, 0], [22, 5]]
    assert doubts(
        select_size(SubsetProblem(X, y), [1], cv=5, chains=2),
        "are copies of another row (row 21 of 1, 22 of 1, 23 of 6), so",
    )
    X[-1, 0] += 1e-9
    assert len(identical_rows(X, y)) == 2
    two = select_size(SubsetProblem(X, (X[:, 0] > 0).astype(float)), [1], cv=5, chains=2)
    assert doubts(two, "two values only (0 and 1)")
    largest = make_curve(names=NAMES[:24], planted=8, sizes=[1, 2, 3], noise=0.1)
    assert doubts(dataclasses.replace(largest, n_folds=10), "largest size tried (3)")
    assert not doubts(CURVE, "largest size tried")
    assert doubts(changed(facts={"dates": True}), "their names are dates")


@pytest.mark.parametrize(("rows", "groups", "words"), [(29, 29, "29 rows:"), (30, 30, ""), (60, 20, "20 groups of")])
def test_few_independent_rows_are_told(rows, groups, words):
    X = np.random.default_rng(0).normal(size=(rows, 3))
    labels = None if groups == rows else np.arange(rows) % groups
    for y in (X[:, 0], np.random.default_rng(1).normal(size=rows)):  # found, and not
        curve = select_size(SubsetProblem(X, y), [1], 3, effort="quick", groups=labels)
        assert len(doubts(curve, "There are only")) == len(doubts(curve, f"There are only {words}")) == bool(words)


def test_rows_in_the_order_of_time_are_warned_of():
    """Two independent random walks: leave-one-out says that one explains the other."""
    rng = np.random.default_rng(2)
    X, y = np.cumsum(rng.normal(size=(150, 6)), axis=0), np.cumsum(rng.normal(size=150))
    curve = select_size(SubsetProblem(X, y), [1, 2, 3], chains=2)
    assert held_out(curve, curve.best_size).r2 > 0.4
    assert "blocks:5" in doubts(curve, "order of time")[0]
    blocks = select_size(SubsetProblem(X, y), [1, 2, 3], cv="blocks:5", chains=2)
    assert held_out(blocks, blocks.best_size).r2 < held_out(curve, curve.best_size).r2 - 0.3
    assert not doubts(blocks, "order of time")


def test_other_rows_are_seldom_taken_for_a_time_series():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 4)), rng.normal(size=60)
    order = np.argsort(y)
    assert np.corrcoef(y[order][1:], y[order][:-1])[0, 1] > 0.8
    assert "autocorrelation" not in table_facts(SubsetProblem(X[order], y[order]))
    assert "autocorrelation" in table_facts(SubsetProblem(X, np.cumsum(y)))
    rng = np.random.default_rng(3)
    tables = [(rng.normal(size=(40, 2)), rng.normal(size=40)) for _ in range(400)]
    assert sum("autocorrelation" in table_facts(SubsetProblem(X, y)) for X, y in tables) <= 4


def test_a_copy_of_the_target_is_warned_of(tmp_path):
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(40, 4)), rng.normal(size=40)
    X[:, 2] = 3.0 - 2.0 * y + 1e-3 * rng.normal(size=40)
    curve = select_size(SubsetProblem(X, y, names=list("abcd")), [1], cv=5, chains=2)
    (caution,) = doubts(curve, "copy of the target")
    assert caution.startswith("'c' (correlation -1) looks like a copy of the target: ")
    assert "--drop" in caution
    curve.save(tmp_path / "c.json")
    assert caution in answer_of(SizeCurve.load(tmp_path / "c.json")).cautions


def test_copies_of_classes_and_of_one_of_several_targets_are_found_in_every_fold():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(40, 4)), rng.normal(size=40)
    several = table_facts(SubsetProblem(X, np.column_stack([y, 5 * X[:, 1] + 2]), target_names=["p", "q"]))
    assert several["target_copies"] == [["x1", 1.0, "q"]]
    X[:, 3] = y > 0
    classes = table_facts(SubsetProblem(X, np.where(y > 0, "yes", "no"), loss="logistic"))
    assert classes["target_copies"] == [["x3", 1.0, ""]]
    X[:, 0], y[0], X[0, 0] = y, 1e4, 2e4  # without this row, no correlation
    X[1:, 0] = rng.normal(size=39)
    problem = SubsetProblem(X, y)
    assert "target_copies" in table_facts(problem)
    assert "target_copies" not in table_facts(problem, as_folds(5, problem, None))


@pytest.mark.parametrize("cv", [5, "2x5"])
def test_a_row_that_carries_most_of_the_error_is_named(cv):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(60, 4))
    y = 2 * X[:, 0] + 0.5 * rng.normal(size=60)
    assert not doubts(select_size(SubsetProblem(X, y), [1], cv=cv, chains=2), "One row carries")
    y[16] += 6.0
    curve = select_size(SubsetProblem(X, y), [1], cv=cv, chains=2)
    (caution,) = doubts(curve, "One row carries")
    squares = (curve.observed - curve.predictions[1]) ** 2
    mine = curve.held_out_rows == 16
    assert f"carries {100 * squares[mine].sum() / squares.sum():.0f} % of the squared error" in caution
    assert ", row 17: look whether its values are right." in caution
    assert f" Without it the RMSE would be {squares[~mine].mean() ** 0.5:.3g} instead of " in caution
    named = dataclasses.replace(curve, facts={**curve.facts, **named_rows(curve, [f"r{i}" for i in range(60)])})
    assert doubts(named, "rows, row 'r16': look")


# Shuffled targets ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(20, 40), pytest.param((40, 5), marks=pytest.mark.slow)])
def test_shuffled_targets_of_noise_are_uniform(shape):
    """Exact by exchangeability; 150 tables: the fraction below 0.1 and 0.5 within three standard errors."""
    p = np.array([shuffled_targets(noise(*shape, seed=s).form, 3) for s in range(150)])
    for level in (0.1, 0.5):
        assert abs(np.mean(p <= level) - level) < 3 * np.sqrt(level * (1 - level) / 150)


def test_shuffled_targets_of_a_signal_and_in_other_units_or_memory():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(50, 30))
    assert shuffled_targets(SubsetProblem(X, X[:, 3] + 0.5 * rng.normal(size=50)).form, 3) == 1 / (SHUFFLES + 1)
    y = rng.normal(size=50)
    p = shuffled_targets(SubsetProblem(X, y).form, 3)
    assert shuffled_targets(SubsetProblem(X * 1e6, 1e-4 * y + 7).form, 3) == p
    assert shuffled_targets(SubsetProblem(X, y, memory_budget=0).form, 3) == p
