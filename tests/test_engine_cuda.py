"""The GPU engine on a device: the suite every engine passes, and chain for chain the Numba engine."""

import csv
import gzip
import os
import signal
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from pairflip import Schedule, SubsetProblem, datasets, sample, temper
from pairflip.engines import WalkPlan
from pairflip.engines.cuda import CudaEngine
from pairflip.engines.cuda.batch import LARGEST
from pairflip.engines.numba import NumbaEngine
from pairflip.philox import chain_keys
from pairflip.testing import EngineConformance, walk_one

pytestmark = pytest.mark.gpu


class TestCuda(EngineConformance):
    def engine(self):
        return CudaEngine(rest=NumbaEngine())


def paper_plan(k, n_columns, chains, fold=None, thin=2):
    betas = np.asarray(Schedule.paper().betas)[::thin].copy()
    return WalkPlan(k, betas, np.full(betas.size, 3 * n_columns), chain_keys(0, k, fold, range(chains)))


def problems():
    """(name, problem): planted ones, weighted, ridge, centred, with forced columns, correlated, spectra."""
    for seed in range(8):
        data = datasets.make_planted(N=(60, 100, 140, 200)[seed % 4], alpha=(0.5, 1.0)[seed // 4], seed=seed)
        yield f"planted {seed}", SubsetProblem(data.X, data.y, center=(None, "fold", "global")[seed % 3])
    rng = np.random.default_rng(5)
    for seed in range(4):
        data = datasets.make_planted(N=100, alpha=1.2, seed=10 + seed)
        yield f"weighted {seed}", SubsetProblem(data.X, data.y, sample_weight=rng.exponential(size=data.y.size))
        yield f"ridge {seed}", SubsetProblem(data.X, data.y, ridge=0.1 * (1 + seed))
        yield f"forced {seed}", SubsetProblem(data.X, data.y, always=[seed, 7])
    for seed in range(4):
        data = datasets.make_correlated(M=120, N=150, k=5, correlation=0.7, snr=5.0, seed=seed)
        yield f"correlated {seed}", SubsetProblem(data.X, data.y)


def supernova(shared_data):
    with open(shared_data / "supernova_bsnip" / "snia_74x276.csv", newline="") as file:
        rows = list(csv.reader(file))
    at = rows[0].index("target_M_B")
    columns = [c for c in range(len(rows[0])) if c != at and all(_number(row[c]) for row in rows[1:])]
    X = np.array([[float(row[c]) for c in columns] for row in rows[1:]])
    return SubsetProblem(X, np.array([float(row[at]) for row in rows[1:]]), center="global")


def _number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


SIZES = (1, 2, 3, 5, 8, 9, 13, 16, 20, 24, 27, 32, 36, 40, 44, 48, 52, 56, 60)


def compare(walks):
    """(chains, those given up, those whose supports differ, largest difference of energies of the others: relative, and
    in units of y'y)."""
    on_device = CudaEngine().walk(walks)
    chains = differ = left = 0
    error = of_yy = 0.0
    for (gram, plan), given in zip(walks, on_device, strict=True):
        expected = walk_one(NumbaEngine(), gram, plan, n_jobs=os.cpu_count() or 1)
        given_up = given.refreshes < 0
        other = np.zeros(plan.chains, bool)
        for field in ("support", "best_support", "accepted"):
            other |= (getattr(given, field) != getattr(expected, field)).any(axis=1) & ~given_up
        chains, left, differ = chains + plan.chains, left + int(given_up.sum()), differ + int(other.sum())
        other |= given_up
        for field in ("energy", "final_energy"):
            a, b = getattr(given, field)[~other], getattr(expected, field)[~other]
            error = max(error, float(np.max(np.abs(a / b - 1.0), initial=0.0)))
            of_yy = max(of_yy, float(np.max(np.abs(a - b), initial=0.0)) / gram.yy)
    return chains, left, differ, error, of_yy


def test_ten_thousand_chains_are_those_of_the_numba_engine(capsys):
    walks = []
    for number, (_, problem) in enumerate(problems()):
        most = min(60, int(0.6 * problem.n_rows), problem.candidates.size // 2)
        sizes = [k for k in SIZES if k <= most]
        for turn in range(5):
            k, fold = sizes[(5 * number + 3 * turn) % len(sizes)], (7 * number + turn) % problem.n_rows
            gram = (problem.gram, problem.held_out([fold]), problem.held_out([fold]), problem.held_out([0, 1, 5]))[
                turn % 4
            ]
            walks.append((gram, paper_plan(k, gram.n_columns, 84, fold)))
    chains, left, differ, error, _ = compare(walks)
    with capsys.disabled():
        print(f"\n{chains} chains, {len(walks)} walks: {left} given up, {differ} differ, energies to {error:.1e}")
    assert chains >= 10_000
    assert left <= chains / 100
    assert differ == 0
    assert error < 1e-9


def test_supernova_chains_are_those_of_the_numba_engine(shared_data, capsys):
    problem = supernova(shared_data)
    walks = [(problem.held_out([f]), paper_plan(k, 276, 16, f)) for k in range(1, 11) for f in range(0, 74, 9)]
    chains, left, differ, error, _ = compare(walks)
    with capsys.disabled():
        print(f"\nsupernova, {chains} chains: {left} given up, {differ} differ, energies to {error:.1e}")
    assert differ == 0
    assert error < 1e-9


def test_every_size_class_up_to_the_largest():
    data = datasets.make_planted(N=400, seed=0)
    problem = SubsetProblem(data.X, data.y)
    walks = [(problem.held_out([3]), paper_plan(k, 60, 4, 3, thin=8)) for k in (64, 72, 80, 96, 100, LARGEST)]
    _, left, differ, error, _ = compare(walks)
    assert (left, differ) == (0, 0)
    assert error < 1e-9


def same(a, b):
    return all(
        np.array_equal(getattr(x, field), getattr(y, field))
        for x, y in zip(a, b, strict=True)
        for field in ("energy", "accepted", "support", "best_support", "final_energy")
    )


def test_slices_and_little_memory_change_no_bit():
    data = datasets.make_planted(N=200, seed=1)
    problem = SubsetProblem(data.X, data.y, center=None)
    walks = [(problem.held_out([f]), paper_plan(k, 200, 40, f)) for k in (5, 20, 45, 70) for f in range(4)]
    ticks = []
    whole = CudaEngine().walk(walks)
    assert same(whole, CudaEngine(slice_ns=1_000_000).walk(walks, tick=ticks.append))
    assert sum(ticks) == sum(plan.chains * int(plan.flips.sum()) for _, plan in walks)
    assert len(ticks) > 4
    assert same(whole, CudaEngine(memory=1_000_000).walk(walks))
    assert same(whole, CudaEngine(devices=[0, 0]).walk(walks))  # one device that is named twice


def test_many_columns_keep_their_order_in_global_memory():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 13_000))
    problem = SubsetProblem(X, X[:, :4].sum(axis=1) + rng.normal(size=60))
    plan = WalkPlan(4, np.array([0.1, 1.0, 10.0]), np.full(3, 2000), chain_keys(0, 4, None, range(3)))
    given, expected = (walk_one(engine, problem.gram, plan) for engine in (CudaEngine(), NumbaEngine()))
    np.testing.assert_array_equal(given.support, expected.support)
    np.testing.assert_array_equal(given.accepted, expected.accepted)


def test_too_large_a_size_is_refused_with_the_way_out():
    data = datasets.make_planted(N=400, seed=0)
    gram = SubsetProblem(data.X, data.y).gram
    with pytest.raises(ValueError, match=f'up to {LARGEST} columns. Use engine="numba"'):
        walk_one(CudaEngine(), gram, paper_plan(LARGEST + 1, 400, 1))


def test_ctrl_c_ends_a_long_batch_within_two_seconds():
    data = datasets.make_planted(N=400, seed=0)
    problem = SubsetProblem(data.X, data.y, center=None)
    plan = WalkPlan(60, np.full(100, 1e-3), np.full(100, 100_000), chain_keys(0, 60, None, range(4000)))
    walk_one(CudaEngine(), problem.gram, paper_plan(60, 400, 1, thin=50))
    threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    began = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        walk_one(CudaEngine(), problem.gram, plan)
    assert time.perf_counter() - began < 3.0


@pytest.mark.parametrize("k", [1, 3, 9, 20, 60])
def test_supports_at_the_ends_of_steps_are_those_of_the_numba_engine(k):
    data = datasets.make_planted(N=200, alpha=0.6, seed=k)
    problem = SubsetProblem(data.X, data.y)
    for gram in (problem.gram, problem.held_out([3]), problem.held_out([0, 5])):
        plan = replace(paper_plan(k, gram.n_columns, 6), record=True)
        (found,), expected = CudaEngine(slice_ns=3_000_000).walk([(gram, plan)]), walk_one(NumbaEngine(), gram, plan)
        np.testing.assert_array_equal(found.record, expected.record)
        np.testing.assert_allclose(found.record_energy, expected.record_energy, rtol=1e-9)
        np.testing.assert_array_equal(found.record[:, -1], found.support)


@pytest.mark.parametrize("k", [2, 9, 30, 70])
def test_ladders_are_those_of_the_numba_engine(k):
    data = datasets.make_correlated(M=160, N=150, k=10, correlation=0.6, snr=3.0, seed=k)
    problem = SubsetProblem(data.X, data.y)
    betas = temper(problem, k, sweeps=10, chains=1).betas
    told = [
        temper(problem, k, betas, sweeps=60, thin=2, chains=5, seed=1, engine=engine)
        for engine in (CudaEngine(memory=1 << 24), "numba")
    ]
    for name in ("supports", "exchange", "round_trips", "acceptance"):
        np.testing.assert_array_equal(getattr(told[0], name), getattr(told[1], name))
    np.testing.assert_allclose(told[0].energies, told[1].energies, rtol=1e-9)


def test_sampling_on_a_device_gives_the_draws_of_the_cpu():
    data = datasets.make_planted(N=100, alpha=0.6, seed=0)
    problem = SubsetProblem(data.X, data.y)
    told = [sample(problem, 5, 20.0, sweeps=200, chains=300, seed=2, engine=engine) for engine in ("cuda", "numba")]
    np.testing.assert_array_equal(told[0].supports, told[1].supports)
    np.testing.assert_allclose(told[0].energies, told[1].energies, rtol=1e-9)


SMALL = ("attitude", "diabetes", "hitters", "prostate", "supernova_casi", "wine_red")
LARGE = ("aquatictox", "tecator", "gasoline", "communities_crime", "solubility", "eyedata", "riboflavin", "nci60_krt18")


def real_walks(shared_data, table, chains=8):
    """Chains on a real table at many sizes, from hot to cold: on all rows, without one, without several."""
    X, y = numbers(min((shared_data / table).glob("*.csv*")))
    problem, walks = SubsetProblem(X, y), []
    for k in (1, 2, 3, 5, 8, 12, 17, 25, 33, 50, 70):
        if k < 0.6 * min(len(y), problem.candidates.size):
            for gram in (problem.gram, problem.held_out([3]), problem.held_out(np.arange(0, len(y), 10))):
                betas, flips = np.geomspace(1e-2, 1e10, 40) / gram.yy, min(2 * gram.n_columns, 10_000)
                walks.append((gram, WalkPlan(k, betas, np.full(40, flips), chain_keys(1, k, 3, range(chains)))))
    return walks


@pytest.mark.parametrize("table", SMALL + LARGE)
def test_chains_on_real_tables_are_those_of_the_cpu_or_given_up(shared_data, table, capsys):
    """Strongly collinear ones among them, where the Gram matrix cannot decide every flip."""
    chains, left, differ, error, of_yy = compare(real_walks(shared_data, table))
    with capsys.disabled():
        print(f"\n{table}, {chains} chains: {left} given up, {differ} differ, energies to {error:.1e}")
    assert differ == 0
    # What the Gram matrix can tell of a support with the inflation at which chains are given up.
    assert of_yy < np.finfo(float).eps * 1e5


def numbers(path):
    """Columns of numbers that vary, and the target."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", newline="") as file:
        rows = list(csv.reader(file))
    target = next(at for at, name in enumerate(rows[0]) if name.startswith("target"))
    others = [at for at, name in enumerate(rows[0]) if not name.startswith("target")]
    columns = [c for c in others if all(_number(row[c]) for row in rows[1:])]
    X = np.array([[float(row[c]) for c in columns] for row in rows[1:]])
    return X[:, X.std(axis=0) > 0], np.array([float(row[target]) for row in rows[1:]])
