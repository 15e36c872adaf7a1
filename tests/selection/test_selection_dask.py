"""A real Dask scheduler with three worker processes over TCP: the same curve, also when one of them is killed."""

import os
import random
import re
import signal
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import joblib
import numpy as np
import pytest

from _curves import assert_same_curve
from _errors import sentence_of
from _journal import lines_of
from pairflip import Schedule, SubsetProblem, select_size
from pairflip.selection import executors, tasks
from pairflip.selection.tasks import Grid

distributed = pytest.importorskip("distributed", reason="needs pairflip[dask]")
dask = pytest.importorskip("dask")

SCHEDULE = Schedule.geometric(1.0, 1e4, steps=20, sweeps=20, unit="greedy")
OPTIONS = {"cv": "loo", "sizes": [1, 2, 4], "schedule": SCHEDULE, "chains": 4, "seed": 7}
CHAINS = (20 + 1) * 3 * 4
sigkill = pytest.mark.skipif(os.name != "posix", reason="sends SIGKILL to a process")


def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 40))
    return SubsetProblem(X, X[:, 0] + X[:, 3] * 0.5 + rng.normal(size=20))


@pytest.fixture(scope="module")
def expected():
    return select_size(problem(), **OPTIONS)


@contextmanager
def local_cluster():
    """A client of a scheduler with three worker processes, which are started again when they die.

    A LocalCluster looks 15 s after each death, and gives up a worker that has just died again. Not here.
    """
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}),
        distributed.LocalCluster(
            n_workers=3,
            threads_per_worker=1,
            processes=True,
            protocol="tcp://",
            host="127.0.0.1",
            dashboard_address=":0",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.wait_for_workers(3)
        yield client


@pytest.fixture(scope="module")
def client():
    with local_cluster() as client:
        assert client.scheduler.address.startswith("tcp://127.0.0.1:")
        yield client


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(executors, "_REMOTE_BATCH_NS", 1e6)  # about three chains


def test_the_data_travel_once_and_without_a_warning(client, expected, monkeypatch, recwarn):
    held, data = [], []
    submit, distribute = client.submit, client.map

    def submitted(function, grid, **options):
        held.append((type(grid), submit(function, grid, **options)))
        return held[-1][1]

    def mapped(function, futures, batches, **options):
        data.extend(futures)
        return distribute(function, futures, batches, **options)

    monkeypatch.setattr(client, "submit", submitted)
    monkeypatch.setattr(client, "map", mapped)
    monkeypatch.setattr(executors, "_REMOTE_BATCH_NS", 1e6)
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "10 kB"}), joblib.parallel_config("dask"):
        assert_same_curve(expected, select_size(problem(), **OPTIONS))
    assert [str(warning.message) for warning in recwarn if "large graph" in str(warning.message)] == []
    assert [kind for kind, _ in held] == [Grid]
    assert len(data) > 20
    assert {future.key for future in data} == {held[0][1].key}  # every batch names the same data by key


def test_the_data_are_forgotten_afterwards(client, small_batches):
    with joblib.parallel_config("dask"):
        select_size(problem(), **OPTIONS)
    until = time.monotonic() + 10
    while time.monotonic() < until and any(client.has_what().values()):
        time.sleep(0.1)
    assert not any(client.has_what().values())


class Kill(threading.Thread):
    """Kills workers once some chains are in the journal."""

    def __init__(self, client, journal, count=1):
        super().__init__(daemon=True)
        client.wait_for_workers(3)
        self.victims = list(client.run(os.getpid).values())[:count]
        self.journal = journal
        self.at = None

    def run(self):
        while len(lines_of(self.journal)) < CHAINS // 5:
            time.sleep(0.001)
        for process in self.victims:
            os.kill(process, signal.SIGKILL)
        self.at = len(lines_of(self.journal))


def killed_in_the_middle(client, tmp_path, count=1):
    """The curve of a run during which workers are killed."""
    killer = Kill(client, tmp_path, count)
    killer.start()
    with joblib.parallel_config("dask"):
        curve = select_size(problem(), **OPTIONS, journal=tmp_path)
    killer.join()
    assert killer.at < CHAINS * 0.8, "it was nearly done before a worker was killed"
    client.wait_for_workers(3)
    assert not set(killer.victims) & set(client.run(os.getpid).values())
    return curve


@sigkill
@pytest.mark.parametrize("count", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_workers_are_killed_in_the_middle(client, expected, small_batches, tmp_path, count):
    assert_same_curve(expected, killed_in_the_middle(client, tmp_path, count))
    assert len(lines_of(tmp_path)) == CHAINS


@sigkill
@pytest.mark.parametrize("count", [1, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "when", [pytest.param("before the data", marks=pytest.mark.slow), "with the data", "with the batches"]
)
def test_workers_are_killed_at_the_very_start(client, expected, small_batches, monkeypatch, count, when):
    client.wait_for_workers(3)
    victims = list(client.run(os.getpid).values())[:count]
    submit, distribute = client.submit, client.map

    def kill():
        while victims:
            os.kill(victims.pop(), signal.SIGKILL)

    def submitted(*args, **options):
        if when == "before the data":
            kill()
        future = submit(*args, **options)
        if when == "with the data":
            kill()
        return future

    def mapped(*args, **options):
        futures = distribute(*args, **options)
        kill()
        return futures

    monkeypatch.setattr(client, "submit", submitted)
    monkeypatch.setattr(client, "map", mapped)
    with joblib.parallel_config("dask"):
        assert_same_curve(expected, select_size(problem(), **OPTIONS))
    assert victims == []
    client.wait_for_workers(3)


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.timeout(900)
@sigkill
def test_thirty_runs_in_which_workers_are_killed_at_random(client, expected, small_batches):
    rng = random.Random(0)
    for _ in range(30):
        client.wait_for_workers(3)
        victims = rng.sample(list(client.run(os.getpid).values()), rng.choice([1, 1, 2, 3]))
        killer = threading.Timer(rng.uniform(0.0, 0.5), lambda v=victims: [os.kill(p, signal.SIGKILL) for p in v])
        killer.start()
        began = time.monotonic()
        with joblib.parallel_config("dask"):
            assert_same_curve(expected, select_size(problem(), **OPTIONS))
        assert time.monotonic() - began < 60.0
        killer.join()


@pytest.mark.slow
@sigkill
def test_a_batch_that_dask_gives_up_is_handed_out_again(expected, tmp_path, monkeypatch):
    monkeypatch.setattr(executors, "_REMOTE_BATCH_NS", 1e7)
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), local_cluster() as client:
        assert_same_curve(expected, killed_in_the_middle(client, tmp_path))


@pytest.mark.alone
@pytest.mark.slow
def test_what_is_silent_for_long_is_handed_out_again(client, expected, small_batches, monkeypatch):
    with joblib.parallel_config("dask"):
        select_size(problem(), **OPTIONS)  # workers that load everything first are silent for longer
    silent_until = time.monotonic() + 3.0
    ready, sent = distributed.as_completed.has_ready, []
    send = executors.DaskRun.send
    monkeypatch.setattr(
        distributed.as_completed, "has_ready", lambda self: time.monotonic() > silent_until and ready(self)
    )
    monkeypatch.setattr(executors.DaskRun, "send", lambda self, pieces: (sent.append(len(pieces)), send(self, pieces)))
    monkeypatch.setattr(tasks, "chain_nanoseconds", lambda *_: 1.0)
    monkeypatch.setattr(executors, "_LOOK_S", 0.0)
    monkeypatch.setattr(executors, "_PATIENCE_S", 2.0)
    with joblib.parallel_config("dask"):
        assert_same_curve(expected, select_size(problem(), **OPTIONS))
    first, again, *_ = sent
    assert first == again


def test_a_cluster_that_loses_everything_is_an_error(client, small_batches, monkeypatch):
    def lost(run):
        return [(SimpleNamespace(key=key), distributed.CancelledError()) for key in list(run.out)]

    monkeypatch.setattr(executors.DaskRun, "wait", lost)
    with joblib.parallel_config("dask"):
        message = sentence_of(RuntimeError, lambda: select_size(problem(), **OPTIONS))
    assert re.match(r"the cluster lost \d+ batches of work 3 times; see to its workers", message)


def test_a_cluster_without_workers_is_an_error(client, small_batches, monkeypatch):
    cores = iter([{"one": 1}])  # joblib asks first
    monkeypatch.setattr(client, "ncores", lambda: next(cores, {}))
    monkeypatch.setattr(distributed.as_completed, "has_ready", lambda _: False)
    monkeypatch.setattr(executors, "_LOOK_S", 0.0)
    monkeypatch.setattr(executors, "_PATIENCE_S", 0.1)
    with joblib.parallel_config("dask"):
        message = sentence_of(RuntimeError, lambda: select_size(problem(), **OPTIONS))
    assert message.startswith("the cluster has had no workers for 0 s; see to its workers")


def test_an_error_on_a_worker_is_the_error_of_the_run(client, small_batches):
    rng = np.random.default_rng(0)
    X = np.tile(rng.normal(size=(20, 3)), (1, 2))
    with (
        joblib.parallel_config("dask"),
        pytest.raises(ValueError, match="has only 3 linearly independent candidate columns"),
    ):
        select_size(SubsetProblem(X, rng.normal(size=20)), [4], "loo", schedule=SCHEDULE, chains=2)
