"""The compiled engine, each way of flipping on its own, against the reference and against exact numbers."""

import copy
import pickle
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from pairflip import SubsetProblem, datasets
from pairflip.blas import one_blas_thread
from pairflip.engines import WalkPlan
from pairflip.engines import numba as numba_engine
from pairflip.engines.numba import NumbaEngine
from pairflip.engines.numba.annealing import walk
from pairflip.philox import chain_keys
from pairflip.testing import EngineConformance, walk_one


class TestAuto(EngineConformance):
    def engine(self):
        return NumbaEngine()


class TestSquare(EngineConformance):
    def engine(self):
        return NumbaEngine("square")


class TestTable(EngineConformance):
    def engine(self):
        return NumbaEngine("table")


def paper_plan(k, n_columns, chains=2, seed=0):
    betas = 1e-8 + 1.1 ** np.arange(100) - 1
    return WalkPlan(k, betas, np.full(100, 5 * n_columns), chain_keys(seed, k, None, range(chains)))


@pytest.mark.parametrize(("k", "memory"), [(5, 2**28), (20, 2**28), (40, 2**28), (8, 0)])
def test_both_ways_and_the_switch_walk_the_same_chain(k, memory):
    data = datasets.make_planted(N=120, seed=3)
    form = SubsetProblem(data.X, data.y, center=None, memory_budget=memory).form
    plan = paper_plan(k, 120)
    auto, square, table = (walk_one(NumbaEngine(way), form, plan) for way in ("auto", "square", "table"))
    for other in (square, table):
        np.testing.assert_array_equal(auto.accepted, other.accepted)
        np.testing.assert_array_equal(auto.support, other.support)
        np.testing.assert_allclose(auto.energy, other.energy, rtol=1e-9)


@pytest.mark.parametrize("way", ["auto", "square", "table"])
def test_running_energy_after_a_million_flips_agrees_with_qr(way):
    data = datasets.make_correlated(M=100, N=200, k=5, correlation=0.9999, snr=5.0, seed=1)
    form = SubsetProblem(data.X, data.y).form
    betas = np.geomspace(1.0, 1e5, 50) / form.yy
    plan = WalkPlan(6, betas, np.full(50, 20_000), chain_keys(0, 6, None, range(1)), record=True)
    walked = walk_one(NumbaEngine(way), form, plan)
    exact = form.energy(walked.support[0])
    assert walked.accepted.sum() > 10_000
    assert abs(walked.final_energy[0] / exact - 1) < 1e-8
    assert abs(walked.record_energy[0, -1] / exact - 1) < 1e-8


@pytest.mark.parametrize("way", ["auto", "square", "table"])
@pytest.mark.parametrize("noise", [1e-5, 1e-9])
def test_nearly_dependent_columns_give_finite_energies_that_agree_with_qr(way, noise):
    data = datasets.make_spectra(M=60, N=300, components=6, noise=noise, seed=2)
    for form in (SubsetProblem(data.X, data.y).form, SubsetProblem(np.repeat(data.X[:, ::20], 2, axis=1), data.y).form):
        plan = WalkPlan(4, np.geomspace(1.0, 1e6, 40) / form.yy, np.full(40, 600), chain_keys(0, 4, None, range(4)))
        walked = walk_one(NumbaEngine(way), form, plan)
        exact = np.array([form.energy(support) for support in walked.support])
        assert walked.refreshes.sum() > 0
        assert np.isfinite(walked.energy).all()
        np.testing.assert_allclose(walked.final_energy, exact, atol=1e-6 * form.yy)


def test_supports_that_span_the_same_space_are_exchanged_freely_at_any_temperature():
    """Rounding must not decide between equal energies."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    form = SubsetProblem(np.hstack([X, X]), X[:, 0] + 0.1 * rng.normal(size=30)).form
    plan = WalkPlan(1, np.array([1e14 / form.yy]), np.array([4000]), chain_keys(0, 1, None, range(2)))
    for way in ("square", "table"):
        walked = walk_one(NumbaEngine(way), form, plan)
        assert np.isin(walked.support, [0, 3]).all()
        assert (walked.accepted > 500).all()


def test_a_frozen_chain_stops_early_and_reports_every_step():
    data = datasets.make_planted(N=60, seed=0)
    form = SubsetProblem(data.X, data.y, center=None).form
    betas = np.concatenate([np.geomspace(0.01, 1e4, 30), np.full(10, 1e9)])
    done = []
    plan = WalkPlan(4, betas, np.full(40, 300), chain_keys(0, 4, None, range(3)))
    walked = walk_one(NumbaEngine(), form, plan, tick=done.append)
    assert sum(done) == 3 * 40 * 300
    np.testing.assert_allclose(walked.energy[:, -1], walked.final_energy, rtol=1e-12)
    assert walked.accepted[:, -5:].sum() == 0


def test_blas_threads_are_restored_after_walks_that_overlap():
    controller = ThreadpoolController()

    def threads():
        return [library["num_threads"] for library in controller.info() if library["user_api"] == "blas"]

    with one_blas_thread():
        pass
    before = threads()
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    assert set(threads()) == {1}
    first.__exit__(None, None, None)
    assert set(threads()) == {1}
    second.__exit__(None, None, None)
    assert threads() == before


def test_compiled_code_of_other_sources_is_not_even_read(tmp_path):
    """It may name classes that have gone, which cannot be unpickled."""
    index = copy.copy(walk._cache._cache_file)
    index._index_path = str(tmp_path / "index")
    with open(index._index_path, "wb") as file:
        pickle.dump(numba.__version__, file)
        file.write(b"what pickle cannot read")
    assert index._load_index() == {}


def test_what_is_compiled_is_named_once_with_its_seconds(tmp_path, monkeypatch, capsys):
    def kernel(module, name):
        return SimpleNamespace(
            __module__=f"pairflip.engines.numba.{module}", __name__=name, stats=SimpleNamespace(cache_path=tmp_path)
        )

    monkeypatch.setattr(numba_engine, "_announced", set())
    (tmp_path / "exact.best_moves-7.py311.nbi").touch()
    for each in (kernel("units", "remove"), kernel("units", "remove"), kernel("exact", "best_moves")):
        numba_engine.announce_compilation(each)
    assert capsys.readouterr().err == "pairflip: compiling (first use of groups of columns, about 10 s) ...\n"
