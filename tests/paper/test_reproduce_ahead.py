"""The theory solved ahead, by others: whoever asks for it is given the same numbers, and nothing is solved again."""

from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pytest

from pairflip.paper.reproduce import fig1, own, typical
from pairflip.paper.reproduce.ahead import Ahead
from pairflip.paper.reproduce.levels import points_of
from pairflip.paper.reproduce.scales import SHOWN, sizes_of
from pairflip.paper.reproduce.walks import SCHEDULE, Walks, draw_all


class Here:
    """A pool of processes that does everything at once, or has broken."""

    def __init__(self, broken=False):
        self.broken = broken

    def submit(self, function, *arguments):
        future = Future()
        if self.broken:
            future.set_exception(BrokenProcessPool("killed"))
        else:
            future.set_result(function(*arguments))
        return future

    def shutdown(self, **_):
        pass


def ahead_with(pool):
    ahead = Ahead(0)
    ahead._pool = pool
    return ahead


def made_up_walks():
    problems, sizes = tuple(draw_all(20, 2, 0)), (1, 2, 3)
    rng, betas = np.random.default_rng(0), np.array(SCHEDULE.betas)
    cooling, reached, loo = rng.random((2, 3, betas.size)), rng.random((2, 3)), rng.random((2, 3))
    return Walks(20, 10, problems, sizes, betas, cooling, reached, loo)


def test_what_was_solved_ahead_is_not_solved_again(monkeypatch):
    walks = made_up_walks()
    shown = sizes_of(SHOWN, 20)
    alone = fig1.collect([walks]), points_of(walks, "epsilon"), points_of(walks, "epsilon_g")
    monkeypatch.setattr(typical, "_LEVELS", {})
    own.factors.cache_clear()
    with ahead_with(Here()) as ahead:
        ahead.solve_theory(walks.problems, walks.sizes, shown)
        ahead.know_theory()

    def again(*_):
        raise AssertionError("solved again")

    for module, name in ((typical, "_levels"), (typical, "curve_over_beta"), (own, "solve_factors")):
        monkeypatch.setattr(module, name, again)
    curves, epsilon, epsilon_g = fig1.collect([walks] * 2), points_of(walks, "epsilon"), points_of(walks, "epsilon_g")
    for one, other in zip(alone[0] * 2, curves, strict=True):
        assert one.theory.tobytes() == other.theory.tobytes()
        assert one.factor.tobytes() == other.factor.tobytes()
    assert alone[1].matched.tobytes() == epsilon.matched.tobytes()
    assert alone[2].matched.tobytes() == epsilon_g.matched.tobytes()
    assert alone[1].levels == epsilon.levels


def test_where_processes_are_killed_it_is_computed_here():
    with ahead_with(Here(broken=True)) as ahead:
        assert ahead.call(max, 3, 5)() == 5
    with Ahead(0) as ahead:
        assert ahead.call(max, 3, 5)() == 5


@pytest.mark.slow
def test_other_processes_give_the_same():
    with Ahead(2) as ahead:
        solved = ahead.call(typical.levels, 0.1, 0.5)()
    assert solved == typical.levels(0.1, 0.5)
