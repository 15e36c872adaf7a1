"""The GPU engine on a device: the law of its chains, energies computed again from the columns, the CPU's quality."""

import os
import signal
import threading
import time

import numpy as np
import pytest

from _tables import numbers
from pairflip import Schedule, SubsetProblem, datasets
from pairflip.engines import WalkPlan
from pairflip.engines.cuda import CudaEngine
from pairflip.engines.cuda.batch import LARGEST
from pairflip.engines.numba import NumbaEngine
from pairflip.philox import chain_keys
from pairflip.testing import check_many, check_rank, check_tick, check_visits, check_workers, walk_one

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("check", [check_visits, check_many, check_rank, check_tick, check_workers])
def test_conformance(check):
    check(CudaEngine())


def test_twenty_thousand_chains_visit_supports_as_boltzmann_says():
    check_visits(CudaEngine(), chains=20_000, flips=60)


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


def energies(form, walked):
    """Of the better support of each chain, by QR; final energies are those of their supports, to 1e-7 y'y."""
    exact = np.array([form.energy(support) for support in walked.support])
    np.testing.assert_allclose(walked.final_energy, exact, rtol=1e-9, atol=1e-7 * form.yy)
    return np.minimum(exact, [form.energy(support) for support in walked.best_support])


def test_chains_end_as_low_as_those_of_the_numba_engine(capsys):
    """Few chains part where rounding decides: means agree to a tenth of a standard error, and the lowest are equal."""
    worst = missed = 0.0
    for number, (_, problem) in enumerate(problems()):
        k, form = (2, 5, 9, 16, 24)[number % 5], (problem.form, problem.held_out([3]), problem.held_out([0, 1, 5]))
        for each in form:
            plan = paper_plan(k, each.n_columns, 84)
            here, there = (
                energies(each, walk_one(engine, each, plan, n_jobs=os.cpu_count() or 1))
                for engine in (NumbaEngine(), CudaEngine())
            )
            error = max(here.std() / np.sqrt(here.size), 1e-6 * each.yy)
            worst = max(worst, abs(here.mean() - there.mean()) / error)
            missed += there.min() > here.min() + 1e-9 * each.yy
    with capsys.disabled():
        print(f"\nmeans differ by up to {worst:.2f} standard errors; {missed:.0f} lowest energies missed")
    assert worst < 3.0
    assert missed <= 1


def test_every_size_class_up_to_the_largest():
    data = datasets.make_planted(N=400, seed=0)
    problem = SubsetProblem(data.X, data.y)
    for k in (8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 96, 100, LARGEST):
        form, plan = problem.held_out([3]), paper_plan(k, 60, 4, 3, thin=8)
        walked = walk_one(CudaEngine(), form, plan)
        energies(form, walked)
        assert walked.accepted.sum(axis=1).min() > 0


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


def test_many_columns_keep_their_order_in_global_memory():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 13_000))
    problem = SubsetProblem(X, X[:, :4].sum(axis=1) + rng.normal(size=60))
    plan = WalkPlan(4, np.array([0.1, 1.0, 10.0]), np.full(3, 2000), chain_keys(0, 4, None, range(3)))
    walked = walk_one(CudaEngine(), problem.form, plan)
    energies(problem.form, walked)
    assert walked.accepted[:, 0].min() > 0


def test_too_large_a_size_is_refused_with_the_way_out():
    data = datasets.make_planted(N=400, seed=0)
    form = SubsetProblem(data.X, data.y).form
    with pytest.raises(ValueError, match=f'up to {LARGEST} columns. Use engine="numba"'):
        walk_one(CudaEngine(), form, paper_plan(LARGEST + 1, 400, 1))


def test_ctrl_c_ends_a_long_batch_within_two_seconds():
    data = datasets.make_planted(N=400, seed=0)
    problem = SubsetProblem(data.X, data.y, center=None)
    plan = WalkPlan(60, np.full(100, 1e-3), np.full(100, 100_000), chain_keys(0, 60, None, range(4000)))
    walk_one(CudaEngine(), problem.form, paper_plan(60, 400, 1, thin=50))
    threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    began = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        walk_one(CudaEngine(), problem.form, plan)
    assert time.perf_counter() - began < 3.0


SMALL = ("attitude", "diabetes", "hitters", "prostate", "supernova_casi", "wine_red")
LARGE = ("aquatictox", "tecator", "gasoline", "communities_crime", "solubility", "eyedata", "riboflavin", "nci60_krt18")


@pytest.mark.parametrize("table", SMALL + LARGE)
def test_real_tables_are_annealed_as_well_as_on_the_cpu(shared_data, table, capsys):
    """Strongly collinear ones among them, where chains part and P is computed anew at every flip."""
    X, y = numbers(min((shared_data / table).glob("*.csv*")))
    problem, told = SubsetProblem(X, y), []
    for k in (1, 3, 8, 17, 33):
        if k >= 0.6 * min(len(y), problem.candidates.size):
            continue
        form = problem.held_out([3])
        betas, flips = np.geomspace(1e-2, 1e7, 40) / form.yy, np.full(40, min(2 * form.n_columns, 10_000))
        plan = WalkPlan(k, betas, flips, chain_keys(1, k, 3, range(32)))
        there = walk_one(CudaEngine(), form, plan)
        low = min(form.energy(support) for support in (*there.support, *there.best_support))
        here = walk_one(NumbaEngine(), form, plan, n_jobs=os.cpu_count() or 1)
        told.append(low / min(form.energy(support) for support in (*here.support, *here.best_support)))
    with capsys.disabled():
        print(f"\n{table}: lowest energies in units of the CPU's: {np.round(told, 4).tolist()}")
    assert np.isfinite(told).all()
    assert np.median(told) < 1.02
