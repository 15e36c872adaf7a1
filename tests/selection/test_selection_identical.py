"""Same seed, same curve: whatever the number of threads, the order, the engine, the resume."""

import os
import subprocess
import sys

import joblib
import numpy as np
import pytest

from _curves import assert_same_curve
from _journal import lines_of
from pairflip import Schedule, SizeCurve, SubsetProblem, select_size
from pairflip.selection import executors, merge_journals, run_shard
from pairflip.selection.journal import Journal

SCHEDULE = Schedule.geometric(1.0, 1e4, steps=6, sweeps=2, unit="greedy")


def problem_of(seed=0, rows=15, columns=9, **options):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    return SubsetProblem(X, X[:, 0] + X[:, 3] * 0.5 + rng.normal(size=rows), **options)


OPTIONS = {"sizes": [1, 2, 4], "cv": "loo", "schedule": SCHEDULE, "chains": 3, "seed": 7}


@pytest.fixture(scope="module")
def expected():
    return select_size(problem_of(), **OPTIONS)


@pytest.fixture
def tiny_batches(monkeypatch):
    monkeypatch.setattr(executors, "_BATCH_NS", 1.0)


def test_the_search_is_not_trivial(expected):
    assert expected.agreement.min() < 1.0  # chains differ, so that this file can tell one from another
    assert np.ptp(expected.chain_cv_error, axis=1).max() > 0


def test_another_seed_is_another_curve(expected):
    other = select_size(problem_of(), **{**OPTIONS, "seed": 8})
    assert not np.array_equal(other.chain_cv_error, expected.chain_cv_error)


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_threads(expected, n_jobs, tiny_batches):
    assert_same_curve(expected, select_size(problem_of(), **OPTIONS, n_jobs=n_jobs))


@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing", "sequential"])
def test_backends_of_joblib(expected, backend, monkeypatch, tmp_path):
    monkeypatch.setattr(executors, "_REMOTE_BATCH_NS", 1e6)
    with joblib.parallel_config(backend, n_jobs=2):
        assert_same_curve(expected, select_size(problem_of(), **OPTIONS, journal=tmp_path))
    assert len(lines_of(tmp_path)) == 144


def test_a_backend_that_gives_all_results_at_once_fills_the_journal_in_rounds(expected, monkeypatch, tmp_path):
    monkeypatch.setattr(executors, "_REMOTE_BATCH_NS", 1e6)
    monkeypatch.setattr(executors, "_ROUND", 1)
    write, seen = Journal.write, []

    def spy(journal, outcomes):
        write(journal, outcomes)
        seen.append(len(outcomes))
        if len(seen) == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(Journal, "write", spy)
    with joblib.parallel_config("multiprocessing", n_jobs=2):
        with pytest.raises(KeyboardInterrupt):
            select_size(problem_of(), **OPTIONS, journal=tmp_path)
        assert 0 < len(lines_of(tmp_path)) < 144
        assert_same_curve(expected, select_size(problem_of(), **OPTIONS, journal=tmp_path))
    assert len(lines_of(tmp_path)) == 144


def test_the_reference_engine(expected):
    curve = select_size(problem_of(), **OPTIONS, engine="reference")
    # The energy averaged over a step is summed up on the way, in the engine's own order.
    assert_same_curve(expected, curve, but=("seconds", "engine", "annealing"))
    assert np.array_equal(curve.annealing.acceptance, expected.annealing.acceptance, equal_nan=True)
    assert np.allclose(curve.annealing.energy, expected.annealing.energy, rtol=1e-9, equal_nan=True)


def test_from_the_columns(expected):
    curve = select_size(problem_of(memory_budget=0), **OPTIONS)
    # Proofs need the matrix.
    assert_same_curve(expected, curve, but=("seconds", "notes", "annealing", "exact", "proved"))
    assert np.allclose(curve.annealing.energy, expected.annealing.energy, equal_nan=True)
    assert "worked from the columns" in curve.notes[0]


@pytest.mark.parametrize("cut", [0, 1, 7, 50, 100, 143])
def test_resumed(expected, tmp_path, cut, tiny_batches):
    folder = tmp_path / "run"
    assert_same_curve(expected, select_size(problem_of(), **OPTIONS, journal=folder))
    lines = lines_of(folder)
    assert len(lines) == (15 + 1) * 3 * 3
    for path in folder.glob("tasks-*.jsonl"):
        path.write_bytes(b"".join(line + b"\n" for line in lines[:cut]))
    assert_same_curve(expected, select_size(problem_of(), **OPTIONS, journal=folder, n_jobs=2))
    assert sorted(lines_of(folder)) == sorted(lines)  # what was finished was not done again


def test_a_finished_journal_is_only_read(expected, tmp_path):
    select_size(problem_of(), **OPTIONS, journal=tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert_same_curve(expected, select_size(problem_of(), **OPTIONS, journal=tmp_path))
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_shards_in_one_folder(expected, tmp_path):
    for part in (3, 1, 2):
        run_shard(problem_of(), **OPTIONS, journal=tmp_path, shard=f"{part}/3")
    assert len(lines_of(tmp_path)) == 144
    files = len(list(tmp_path.glob("tasks-*.jsonl")))
    assert_same_curve(expected, select_size(problem_of(), **OPTIONS, journal=tmp_path))
    assert len(list(tmp_path.glob("tasks-*.jsonl"))) == files == 3


def test_shards_in_folders_of_their_own(expected, tmp_path):
    sources = [tmp_path / f"{part}" for part in (1, 2, 3)]
    how = {**OPTIONS, "n_jobs": 2}
    counts = [run_shard(problem_of(), **how, journal=each, shard=(part, 3)) for part, each in enumerate(sources, 1)]
    assert sum(counts) == 144
    assert max(counts) - min(counts) <= 3
    assert merge_journals(tmp_path / "two", sources[::2]) == 2  # a shard is missing, and is done here
    assert_same_curve(expected, select_size(problem_of(), **OPTIONS, journal=tmp_path / "two"))
    assert len(lines_of(tmp_path / "two")) == 144
    assert merge_journals(tmp_path / "all", sources) == 3
    assert merge_journals(tmp_path / "all", sources) == 0
    assert_same_curve(expected, select_size(problem_of(), **OPTIONS, journal=tmp_path / "all"))
    assert len(lines_of(tmp_path / "all")) == 144


THREADS = """
import sys
import numpy as np
from pairflip import Schedule, SizeCurve, SubsetProblem, select_size
rng = np.random.default_rng(0)
X = rng.normal(size=(600, 700))
y = X[:, :5].sum(axis=1) + 3 * rng.normal(size=600)
schedule = Schedule.geometric(1.0, 1e4, steps=5, sweeps=1, unit="greedy")
select_size(SubsetProblem(X, y), [1, 8], 3, schedule=schedule, chains=2).save(sys.argv[1])
"""


@pytest.mark.slow
def test_threads_of_blas(tmp_path):
    """Workers of Dask have one, a laptop has several, and sums of several threads round differently."""
    curves = []
    for threads in ("1", "2"):
        path = tmp_path / f"{threads}.json"
        limits = {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
        subprocess.run([sys.executable, "-c", THREADS, str(path)], env=os.environ | limits, check=True, timeout=100)
        curves.append(SizeCurve.load(path))
    assert_same_curve(*curves)
