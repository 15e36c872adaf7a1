"""A selection is one value: checked once, the same wherever it is given or shown."""

import dataclasses

import numpy as np
import pytest
from sklearn.model_selection import KFold

from _cli import planted
from _curves import assert_same_curve
from _errors import sentence_of
from pairflip import Schedule, Selection, SubsetProblem, SubsetRegressorCV, select_size
from pairflip.selection import run_shard, select_many

SHORT = Schedule.geometric(1.0, 1e4, steps=5, sweeps=2, unit="greedy")
CHOSEN = Selection([1, 2], cv="2x3", schedule=SHORT, chains=2, seed=4, polish=False)


def problem():
    y, X = planted()
    return SubsetProblem(X, y, names=list("abcdef"))


def test_it_is_checked_when_it_is_made():
    assert Selection((1, 2), "2x3", SHORT, 2, 4, False) == CHOSEN
    assert Selection() == Selection(None, "auto", "auto", None, 0, True)
    assert Selection([0, 3]).sizes == (3,)
    assert "chains is 0" in sentence_of(ValueError, lambda: Selection(chains=0))  # others: test_selection_bad_input
    with pytest.raises(dataclasses.FrozenInstanceError):
        CHOSEN.seed = 5


def test_the_same_value_gives_the_same_curve_everywhere(tmp_path):
    expected = select_size(problem(), CHOSEN)
    assert_same_curve(expected, select_size(problem(), [1, 2], "2x3", schedule=SHORT, chains=2, seed=4, polish=False))
    ((index, curve),) = select_many([problem()], CHOSEN, seeds=[4])
    assert index == 0
    assert_same_curve(expected, curve)
    for part in (1, 2):
        run_shard(problem(), CHOSEN, journal=tmp_path / "run", shard=(part, 2))
    assert_same_curve(expected, select_size(problem(), CHOSEN, journal=tmp_path / "run"))
    y, X = planted()
    model = SubsetRegressorCV([1, 2], cv="2x3", schedule=SHORT, chains=2, random_state=4, polish=False).fit(X, y)
    np.testing.assert_array_equal(model.curve_.predictions, expected.predictions)


def test_what_is_not_a_setting_is_refused():
    assert "'chain' is not a setting of a selection" in sentence_of(TypeError, lambda: select_size(problem(), chain=3))
    both = sentence_of(TypeError, lambda: select_size(problem(), CHOSEN, seed=3))
    assert both == "a Selection is given, and also seed; expected one or the other."


def test_splits_that_come_one_by_one_can_be_used_again():
    chosen = Selection([1], cv=iter(list(KFold(3).split(np.zeros(24)))), schedule=SHORT, chains=1)
    assert_same_curve(select_size(problem(), chosen), select_size(problem(), chosen))
    assert chosen.to_dict()["cv"] == "given splits"
