"""Simulated annealing: temperatures, chains that depend on their address alone, and the trace."""

import dataclasses

import numpy as np
import pytest

from pairflip import Schedule, SubsetProblem, Trace, anneal
from pairflip.testing import best_support

M, N, K = 30, 14, 3
QUICK = Schedule.geometric(1.0, 1e6, steps=20, sweeps=3, unit="greedy")


def table(n_rows=M, n_columns=N):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns))
    X[:, 1:] += 0.8 * X[:, :-1]
    y = X @ (rng.normal(size=n_columns) * (rng.random(n_columns) < 0.5)) + rng.normal(size=n_rows)
    return X, y


X, y = table()
PROBLEM = SubsetProblem(X, y, names=[f"column {j}" for j in range(N)])


@pytest.fixture(scope="module")
def trace():
    return anneal(PROBLEM, K, QUICK, chains=5, seed=4)


def assert_same_trace(given, expected, but=("seconds", "proof")):
    for field in dataclasses.fields(Trace):
        a, b = getattr(given, field.name), getattr(expected, field.name)
        if field.name not in but:
            np.testing.assert_array_equal(a, b, err_msg=field.name)


# ---- what is found


def test_a_target_that_three_columns_explain_exactly():
    y = 2.0 * X[:, 3] - 1.0 * X[:, 7] + 0.5 * X[:, 12] + 4.0
    trace = anneal(SubsetProblem(X, y), 3)
    assert trace.best_support.tolist() == [3, 7, 12]
    assert trace.best_coef == pytest.approx([2.0, -1.0, 0.5])
    assert trace.best_intercept == pytest.approx(4.0)
    assert trace.best_energy < 1e-24 * float(y @ y)
    assert trace.agreement == 1.0
    assert trace.betas[0] * float(y @ y) < 1e6, "rounding set the temperature"


def test_a_hot_chain_keeps_the_best_support_it_met():
    trace = anneal(PROBLEM, K, Schedule.geometric(1.0, 2.0, steps=3, sweeps=100, unit="greedy"), chains=16)
    assert trace.acceptance[:, -1].mean() > 0.2
    assert trace.best_energy == pytest.approx(best_support(PROBLEM, K)[1])
    assert trace.agreement > 0.5


# ---- the same seed, the same trace


def test_a_chain_depends_on_its_seed_and_number_alone(trace):
    assert_same_trace(anneal(PROBLEM, K, QUICK, chains=5, seed=np.int64(4), n_jobs=2), trace)
    more = anneal(PROBLEM, K, QUICK, chains=8, seed=4)
    for field in ("energy", "acceptance", "supports", "energies", "refreshes"):
        np.testing.assert_array_equal(getattr(trace, field), getattr(more, field)[:5])
    assert len(np.unique(more.energy[:, 0])) == 8
    for seed in (3, 2**64 - 1):
        assert (anneal(PROBLEM, K, QUICK, chains=5, seed=seed).energy != trace.energy).any()


def test_the_number_of_chains_depends_on_the_problem_alone():
    small, large = (SubsetProblem(*table(40, n)) for n in (12, 400))
    counts = [len(anneal(problem, 3).energies) for problem in (small, small, large)]
    assert counts[0] == counts[1] == 32
    assert 16 <= counts[2] <= 512


# ---- the trace


@pytest.mark.parametrize(("apart", "agreement"), [(1e-10, 1.0), (5e-9, 0.25)])
def test_agreement_is_the_part_of_the_chains_at_the_best_energy(trace, apart, agreement):
    energies = trace.best_energy * (1.0 + apart * np.array([0.0, 1.0, 1.0, 1.0]))
    changed = dataclasses.replace(trace, energies=energies, supports=trace.supports[:4])
    assert changed.agreement == agreement
    assert f"4 chains of which {agreement:.0%} agree" in repr(changed)


def test_data_frame_and_data_tree(trace, monkeypatch):
    assert trace.flips.tolist() == [3 * N] * 20
    assert trace.best_names == [f"column {j}" for j in trace.best_support]
    assert f"columns={trace.best_names}" in repr(trace)
    frame = trace.to_pandas()
    assert frame.columns.tolist() == ["chain", "step", "beta", "energy", "acceptance"]
    assert len(frame) == 5 * 20
    row = frame[(frame["chain"] == 2) & (frame["step"] == 7)].iloc[0]
    assert row[["beta", "energy", "acceptance"]].tolist() == [
        trace.betas[7], trace.energy[2, 7], trace.acceptance[2, 7]
    ]  # fmt: skip
    stats = trace.to_datatree()["sample_stats"]
    assert stats["energy"].dims == stats["acceptance_rate"].dims == ("chain", "draw")
    assert stats["energy"].shape == (5, 20)
    assert float(stats["energy"].sel(chain=2, draw=7)) == trace.energy[2, 7]
    assert float(stats["acceptance_rate"].sel(chain=1, draw=0)) == trace.acceptance[1, 0]
    assert stats["beta"].to_numpy().tolist() == trace.betas.tolist()
    assert stats.attrs == {"k": K, "seed": 4, "engine": "numba", "schedule": "geometric"}
    monkeypatch.setitem(__import__("sys").modules, "xarray", None)
    with pytest.raises(ImportError, match=r"pip install 'pairflip\[datatree\]'"):
        trace.to_datatree()


@pytest.mark.parametrize(("progress", "shown"), [(True, True), (False, False), (None, False)])
def test_progress_is_written_to_standard_error_only(trace, capfd, progress, shown):
    anneal(PROBLEM, K, QUICK, chains=2, progress=progress)
    out, err = capfd.readouterr()
    assert out == ""
    assert ("annealing k = 3" in err) == shown
    assert shown or err == ""
