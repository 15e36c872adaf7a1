"""Batches of a device engine: cut, judged and put together as threads do it; what it cannot hold goes to the CPU."""

import numpy as np
import pytest

from _curves import assert_same_curve
from pairflip import Schedule, SubsetProblem, datasets, select_size
from pairflip.engines import get_engine
from pairflip.search.best_subset import ON_THE_CPU, best_subset
from pairflip.selection import device, select_many

SHORT = Schedule.geometric(1.0, 1e3, steps=5, sweeps=2, unit="greedy")


class Batches:
    """An engine that takes batches, as the GPU engine does, and walks them with the compiled CPU engine."""

    name = "batches"
    prefers_many = True
    searches = False

    def __init__(self, largest=99):
        self.largest = largest
        self.batches = []

    def refuses(self, form, plan):
        return None if plan.k <= self.largest else f"k is {plan.k}, more than this device takes."

    def walk(self, pairs, *, n_jobs=1, tick=None):
        self.batches.append([plan.k for _, plan in pairs])
        found = []
        for pair in pairs:
            found += get_engine("numba").walk([pair])
            if tick is not None:
                tick(int(pair[1].flips.sum()) * pair[1].chains)
        return found

    def path(self, form, largest, *, passes=1, tick=None):
        return get_engine("numba").path(form, largest, passes=passes, tick=tick)


@pytest.fixture(scope="module")
def tables():
    return [datasets.make_planted(N=30, seed=seed) for seed in range(3)]


@pytest.mark.parametrize("center", ["fold", "global", None])
@pytest.mark.parametrize("cv", ["loo", 4])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_a_device_gives_the_same_curve(tables, center, cv, ridge):
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 15)
    problem = SubsetProblem(tables[0].X, tables[0].y, center=center, ridge=ridge, sample_weight=weight)
    engine = Batches()
    on_device = select_size(problem, [1, 3, 5], cv, chains=3, engine=engine)
    on_cpu = select_size(problem, [1, 3, 5], cv, chains=3, engine="numba")
    assert sum(map(len, engine.batches)) == 3 * (on_cpu.n_folds + 1)
    assert (on_device.engine, on_cpu.engine) == ("batches", "numba")
    assert_same_curve(on_device, on_cpu, but=("seconds", "engine", "energy_per_row"))
    # Folds of single rows are judged together, from one factorization: the last digits differ.
    assert on_device.energy_per_row == pytest.approx(on_cpu.energy_per_row, rel=1e-10)


def test_a_row_that_dwarfs_the_others_and_a_size_of_all_columns(tables):
    """A fold that cannot be computed by subtraction is a problem of its own, and all columns need no walk."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(15, 4)), rng.normal(size=15)
    X[3] *= 30.0
    problem, engine = SubsetProblem(X, y), Batches()
    on_device = select_size(problem, [1, 2, 4], chains=2, engine=engine)
    assert {k for batch in engine.batches for k in batch} == {1, 2}
    on_cpu = select_size(problem, [1, 2, 4], chains=2, engine="numba")
    assert_same_curve(on_device, on_cpu, but=("seconds", "engine", "energy_per_row"))


def test_sizes_without_a_support_are_left_out():
    X = np.random.default_rng(3).normal(size=(15, 3))
    problem, engine = SubsetProblem(np.hstack([X, X]), X @ [1.0, 0.5, 0.2]), Batches()
    curve = select_size(problem, [1, 2, 4, 5], 4, chains=2, engine=engine, schedule=SHORT)
    assert curve.sizes.tolist() == [0, 1, 2]
    assert [note.partition(":")[0] for note in curve.notes] == ["sizes from 4 on are left out"]


def test_what_the_device_cannot_hold_is_walked_on_the_cpu_and_said(tables):
    problem = SubsetProblem(tables[0].X, tables[0].y)
    engine = Batches(largest=2)
    curve = select_size(problem, [1, 2, 3, 4], cv=5, chains=2, engine=engine)
    assert {k for batch in engine.batches for k in batch} == {1, 2}
    assert curve.notes == ("walked on the CPU: sizes 3 (k is 3, more than this device takes)",
                           "walked on the CPU: sizes 4 (k is 4, more than this device takes)")  # fmt: skip
    assert np.array_equal(curve.predictions, select_size(problem, [1, 2, 3, 4], cv=5, chains=2).predictions)


def test_several_problems_share_launches_and_each_gets_its_own_curve(tables, monkeypatch):
    problems = [SubsetProblem(t.X, t.y, center=None) for t in tables]
    paper = dict(schedule="paper", chains=1, polish=False)
    alone = [select_size(p, [2, 3], seed=7 + i, **paper) for i, p in enumerate(problems)]
    engine = Batches()
    together = dict(select_many(problems, [2, 3], seeds=[7, 8, 9], engine=engine, **paper))
    assert len(engine.batches) == 1
    monkeypatch.setattr(device, "_BATCH_NS", 1e6)
    cut = Batches()
    in_parts = dict(select_many(problems, [2, 3], seeds=[7, 8, 9], engine=cut, **paper))
    assert len(cut.batches) > 3
    for i, curve in enumerate(alone):
        for other in (together[i], in_parts[i]):
            assert np.array_equal(curve.predictions, other.predictions)
            assert np.array_equal(curve.annealing.energy, other.annealing.energy, equal_nan=True)


def test_many_problems_resume_from_their_journals(tables, tmp_path):
    problems = [SubsetProblem(t.X, t.y) for t in tables]
    first = dict(select_many(problems, [1, 2], cv=3, chains=2, journal=tmp_path / "j"))
    engine = Batches()
    again = dict(select_many(problems, [1, 2], cv=3, chains=2, engine=engine, journal=tmp_path / "j"))
    assert engine.batches == []
    assert sorted(again) == [0, 1, 2]
    assert all(np.array_equal(first[i].predictions, again[i].predictions) for i in again)


def test_searches_run_on_the_cpu_and_say_so(tables):
    """A device anneals only; with it the default method gives what it gives everywhere."""
    problem, engine = SubsetProblem(tables[0].X, tables[0].y), Batches()
    plain = select_size(problem, [1, 3], 4, seed=2)
    there = select_size(problem, [1, 3], 4, seed=2, engine=engine)
    assert engine.batches == []
    assert_same_curve(there, plain, but=("seconds", "notes"))
    assert there.notes == (ON_THE_CPU,)
    trace = best_subset(problem, 3, engine=engine)
    assert engine.batches == []
    assert (trace.engine, trace.note) == ("numba", ON_THE_CPU)


class Failing(Batches):
    """A device that is lost in its second batch."""

    failures = (RuntimeError,)

    def walk(self, pairs, *, n_jobs=1, tick=None):
        answered = super().walk(pairs)
        if len(self.batches) > 1:
            raise RuntimeError("out of memory: 12 bytes\nwere wanted")
        return answered


@pytest.mark.parametrize("cv", ["loo", 4])
def test_where_the_device_fails_the_cpu_does_the_rest_and_says_so(tables, cv, monkeypatch):
    monkeypatch.setattr(device, "_BATCH_NS", 1e6)
    problem, engine = SubsetProblem(tables[0].X, tables[0].y), Failing()
    curve = select_size(problem, [1, 3, 5], cv, chains=3, engine=engine)
    assert len(engine.batches) == 2
    said = "the device failed, and the CPU did the rest: RuntimeError: out of memory: 12 bytes were wanted"
    assert curve.notes == (said,)
    on_cpu = select_size(problem, [1, 3, 5], cv, chains=3, engine="numba")
    assert_same_curve(curve, on_cpu, but=("seconds", "engine", "energy_per_row", "notes"))


def test_other_errors_of_a_device_are_not_hidden(tables):
    engine = Failing()
    engine.failures, engine.batches = (), [0]
    with pytest.raises(RuntimeError, match="out of memory"):
        select_size(SubsetProblem(tables[0].X, tables[0].y), [1, 3], 4, chains=3, engine=engine)


def test_auto_is_a_device_where_it_pays_and_chains_are_rescued_from_it(tables, monkeypatch):
    """`anneal` with engine "auto", on a machine that seems to have a device."""
    problem = SubsetProblem(tables[0].X, tables[0].y)

    class Gone(Batches):
        failures = (RuntimeError,)

        def walk(self, pairs, *, n_jobs=1, tick=None):
            raise RuntimeError("the device is gone")

    plain = dict(schedule=SHORT, chains=130, seed=3, polish=False)
    on_cpu = best_subset(problem, 3, engine="numba", **plain)
    monkeypatch.setattr("pairflip.engines.cuda.why_unavailable", lambda: None)
    monkeypatch.setattr("pairflip.engines.get_engine", lambda name: Gone() if name == "cuda" else get_engine(name))
    assert best_subset(problem, 3, **plain).engine == "numba"  # too little work
    monkeypatch.setattr("pairflip.engines.cuda.batch.WORTH_SECONDS", 1e-5)
    rescued = best_subset(problem, 3, **plain)
    assert rescued.engine == "batches"
    assert rescued.note == "the device failed, and the CPU did the rest: RuntimeError: the device is gone"
    assert np.array_equal(rescued.supports, on_cpu.supports)
