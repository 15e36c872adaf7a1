"""A real Dask scheduler with three worker processes over TCP: the same curve, also when one of them is killed."""

import os
import signal
import threading
import time
from asyncio import CancelledError
from contextlib import contextmanager

import joblib
import numpy as np
import pytest

from _curves_equal import assert_same_curve
from _errors import sentence_of
from pairflip import Schedule, SubsetProblem, select_size
from pairflip.crossval import parallel
from pairflip.crossval.tasks import Work

distributed = pytest.importorskip("distributed", reason="needs pairflip[dask]")

SCHEDULE = Schedule.geometric(1.0, 1e4, steps=20, sweeps=20, unit="greedy")
OPTIONS = {"sizes": [1, 2, 4], "schedule": SCHEDULE, "chains": 4, "seed": 7}
CHAINS = (20 + 1) * 3 * 4


def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 40))
    return SubsetProblem(X, X[:, 0] + X[:, 3] * 0.5 + rng.normal(size=20))


@pytest.fixture(scope="module")
def expected():
    return select_size(problem(), **OPTIONS)


@contextmanager
def local_cluster():
    """A client of a scheduler with three worker processes."""
    cluster = distributed.LocalCluster(
        n_workers=3, threads_per_worker=1, processes=True, protocol="tcp://", host="127.0.0.1", dashboard_address=":0"
    )
    with cluster, distributed.Client(cluster) as client:
        client.wait_for_workers(3)
        yield client


@pytest.fixture(scope="module")
def client():
    with local_cluster() as client:
        assert client.scheduler.address.startswith("tcp://127.0.0.1:")
        yield client


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(parallel, "_REMOTE_BATCH_NS", 1e6)  # about three chains


def lines_of(folder):
    return [line for path in sorted(folder.glob("tasks-*.jsonl")) for line in path.read_bytes().splitlines()]


def test_three_workers(client, expected, small_batches):
    with joblib.parallel_config("dask"):
        assert_same_curve(expected, select_size(problem(), **OPTIONS))
        assert_same_curve(expected, select_size(problem(), **OPTIONS))  # the second one scatters anew


def test_a_batch_takes_seconds():
    assert 1e9 <= parallel._REMOTE_BATCH_NS <= 1e10


def test_the_data_travel_once(client, expected, monkeypatch):
    sent, scattered = [], []
    scatter = client.scatter

    def spy(data, **options):
        scattered.append((type(data), options))
        return scatter(data, **options)

    monkeypatch.setattr(client, "scatter", spy)
    submit = client.submit

    def submitted(function, *args, tasks, **options):
        sent.append(tasks)
        return submit(function, *args, tasks=tasks, **options)

    monkeypatch.setattr(client, "submit", submitted)
    monkeypatch.setattr(parallel, "_REMOTE_BATCH_NS", 1e6)
    with joblib.parallel_config("dask"):
        assert_same_curve(expected, select_size(problem(), **OPTIONS))
    assert [kind for kind, _ in scattered] == [Work]
    assert scattered[0][1]["broadcast"] is True
    assert len(sent) > 20
    futures = {args[0].key for tasks in sent for _, args, _ in tasks}
    assert len(futures) == 1  # every batch names the same data by key, and holds none


def test_the_data_are_forgotten_afterwards(client, expected, small_batches):
    with joblib.parallel_config("dask"):
        backend = joblib.parallel.get_active_backend()[0]
        select_size(problem(), **OPTIONS)
        assert backend.data_futures == {}
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


@pytest.mark.skipif(os.name != "posix", reason="sends SIGKILL to a process")
@pytest.mark.parametrize("attempt", range(2))
def test_a_worker_is_killed_in_the_middle(client, expected, small_batches, tmp_path, attempt):
    assert_same_curve(expected, killed_in_the_middle(client, tmp_path))
    assert len(lines_of(tmp_path)) == CHAINS


@pytest.mark.skipif(os.name != "posix", reason="sends SIGKILL to a process")
def test_all_workers_are_killed_and_the_data_with_them(client, expected, small_batches, tmp_path, monkeypatch):
    monkeypatch.setattr(parallel, "_PATIENCE_S", 10.0)
    assert_same_curve(expected, killed_in_the_middle(client, tmp_path, count=3))


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends SIGKILL to a process")
def test_a_batch_that_dask_gives_up_is_handed_out_again(expected, tmp_path, monkeypatch):
    """joblib would wait for it for ever."""
    import dask

    monkeypatch.setattr(parallel, "_PATIENCE_S", 5.0)
    monkeypatch.setattr(parallel, "_REMOTE_BATCH_NS", 1e7)
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), local_cluster() as client:
        assert_same_curve(expected, killed_in_the_middle(client, tmp_path))


def test_a_cluster_that_loses_everything_is_an_error(monkeypatch):
    @contextmanager
    def remote(_):
        yield True, True

    def stream(*_):
        yield from ()
        raise CancelledError

    monkeypatch.setattr(parallel, "_broadcast", remote)
    monkeypatch.setattr(parallel, "_stream", stream)
    message = sentence_of(RuntimeError, lambda: select_size(problem(), **OPTIONS))
    assert "the cluster lost 1 batches of work 3 times" in message


def test_an_error_on_a_worker_is_the_error_of_the_run(client, small_batches):
    rng = np.random.default_rng(0)
    X = np.tile(rng.normal(size=(20, 3)), (1, 2))
    with (
        joblib.parallel_config("dask"),
        pytest.raises(ValueError, match="has only 3 linearly independent candidate columns"),
    ):
        select_size(SubsetProblem(X, rng.normal(size=20)), [4], schedule=SCHEDULE, chains=2)
