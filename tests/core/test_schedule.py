"""Schedules are values, with the paper's among them."""

import dataclasses

import numpy as np
import pytest

from _errors import sentence_of
from pairflip.search.schedule import Schedule


def test_named_schedules():
    paper = Schedule.paper()
    assert (len(paper), paper.unit, set(paper.sweeps)) == (100, "absolute", {5})
    assert paper.betas == pytest.approx([1e-8 + 1.1**a - 1 for a in range(100)], rel=1e-12)
    assert paper.absolute_betas(greedy_energy=7.0) == pytest.approx(paper.betas)
    assert Schedule.paper(beta0=0.5, r=2.0, steps=4, sweeps=9).betas == (0.5, 1.5, 3.5, 7.5)
    assert Schedule.paper(beta0=0.5, r=2.0, steps=4, sweeps=9).sweeps == (9, 9, 9, 9)
    assert Schedule.geometric(0.1, 1000.0, steps=5, sweeps=2).betas == pytest.approx((0.1, 1.0, 10.0, 100.0, 1000.0))
    assert Schedule.geometric(0.1, 1000.0, steps=5, sweeps=2).sweeps == (2,) * 5
    assert Schedule.geometric(3.0, 3.0, steps=1).betas == (3.0,)
    auto = Schedule.auto()
    assert (auto.unit, auto.betas[0]) == ("greedy", 3.0)
    assert auto.betas[-1] > 1e13
    assert np.all(np.diff(auto.betas) > 0)


def test_betas_are_told_in_units_of_what_forward_selection_leaves():
    schedule = Schedule.geometric(1.0, 4.0, steps=3, unit="greedy")
    assert schedule.absolute_betas(greedy_energy=0.5) == pytest.approx([2.0, 4.0, 8.0])


def test_small_tables_get_a_least_number_of_flips():
    schedule = Schedule((1.0, 2.0), (1, 50), least_flips=200)
    assert schedule.flips(10).tolist() == [200, 500]
    assert schedule.flips(1000).tolist() == [1000, 50_000]


def test_a_schedule_is_a_frozen_value():
    schedule = Schedule(np.array([0.0, 1.0]), [2, 3])
    assert schedule == Schedule((0.0, 1.0), (2, 3))
    assert hash(schedule) == hash(Schedule((0.0, 1.0), (2, 3)))
    assert schedule.betas == (0.0, 1.0)
    assert all(type(b) is float for b in schedule.betas)
    assert eval(repr(schedule)) == schedule
    with pytest.raises(dataclasses.FrozenInstanceError):
        schedule.betas = (1.0,)
    assert repr(Schedule.auto()) == (
        "Schedule('auto', 82 betas from 3 to 1.46e+13 / energy of forward selection, 2 sweeps at each)"
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Schedule((), ()), "0 betas and 0 sweeps; expected equally many"),
        (lambda: Schedule((-1.0,), (5,)), "betas must be finite numbers >= 0"),
        (lambda: Schedule((1.0,), (0,)), "sweeps must be whole numbers >= 1"),
        (lambda: Schedule((1.0,), (1,), unit="kelvin"), "unit is 'kelvin'; expected 'absolute' or 'greedy'"),
        (lambda: Schedule.geometric(0.0, 1.0), "goes from 0.0 to 1.0; expected 0 < first <= last"),
    ],
)
def test_bad_schedules(make, message):
    assert message in sentence_of(ValueError, make)
