"""Transfers through the locked memory of a lane, on a pretended device that copies as late as it may."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from pairflip.engines.cuda import staging


class Late(np.ndarray):
    """Memory of a device: what is sent arrives when the host waits for it."""

    queue = []  # noqa: RUF012

    def set(self, array):
        self.queue.append((self, array))

    def get(self, out):
        arrive(len(self.queue))
        out[...] = self
        gets.append(self.size)


gets = []


def arrive(count):
    """The first `count` of all that was sent."""
    for at, (there, array) in enumerate(Late.queue[:count]):
        if there is not None:
            there[...] = array
            Late.queue[at] = None, None


class Event:
    """Knows how much was sent before it."""

    sent = 0

    def __init__(self, **how):
        pass

    def record(self):
        self.sent = len(Late.queue)

    def synchronize(self):
        arrive(self.sent)


class Failure(Exception):
    """What a device would raise."""


@pytest.fixture
def lane(monkeypatch):
    cuda = SimpleNamespace(
        Event=Event,
        alloc_pinned_memory=bytearray,
        runtime=SimpleNamespace(CUDARuntimeError=Failure),
        memory=SimpleNamespace(OutOfMemoryError=MemoryError),
    )
    pretended = SimpleNamespace(cuda=cuda, empty=lambda size, dtype: np.zeros(size, dtype).view(Late))
    monkeypatch.setitem(sys.modules, "cupy", pretended)
    monkeypatch.setattr(staging, "PIECE", 1024)
    Late.queue.clear()
    gets.clear()
    return pretended


@pytest.mark.parametrize("locked", [True, False])
def test_no_piece_is_filled_before_it_was_sent(lane, locked):
    def refuse(size):
        raise Failure

    if not locked:
        lane.cuda.alloc_pinned_memory = refuse
    rng, sent = np.random.default_rng(0), []
    with staging.through(staging.Staging()):
        for size in (3, 0, 128, 1000, 1, 5000, 127, 40):
            arrays = [rng.random(size), rng.random((2, size)), rng.random((size, 3)).T]
            sent += [(each, staging.upload(each)) for each in arrays]
            sent.append((np.concatenate([each.ravel() for each in arrays]), staging.upload_joined(arrays)))
    arrive(len(Late.queue))
    for here, there in sent:
        np.testing.assert_array_equal(there, here)
        assert there.flags.fnc == here.flags.fnc


def test_neighbours_come_in_one_transfer_and_each_array_gets_its_own(lane):
    there = np.arange(1000, dtype=np.int32).view(Late)
    into = [(first, np.full(size, -1)) for first, size in ((0, 10), (10, 20), (30, 0), (50, 5), (55, 600), (655, 1))]
    with staging.through(staging.Staging()):
        staging.download_into(there, into)
        np.testing.assert_array_equal(staging.download(there), there)
    for first, array in into:
        np.testing.assert_array_equal(array, there[first : first + array.size])
    assert gets[:4] == [30, 5, 256, 256]


def test_a_lane_keeps_what_its_groups_need_and_no_more_than_a_fifth(lane):
    asked = []
    lane.cuda.alloc = asked.append
    staging.reserve(10**6, 10**11)
    staging.reserve(10**9, 10**11)
    staging.reserve(10**11, 10**11)
    assert asked == [2**28, 2**31, 2 * 10**10]

    def full(size):
        raise MemoryError

    lane.cuda.alloc = full
    staging.reserve(10**6, 10**11)  # groups find out themselves
