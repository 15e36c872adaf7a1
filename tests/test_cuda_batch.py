"""The GPU engine without a device: task cutting, memory plan, addressing, sentences."""

import ctypes
import sys
import threading
from concurrent.futures import Future
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from pairflip import SubsetProblem, datasets
from pairflip.engines import ENGINES, WalkPlan, cuda, get_engine
from pairflip.engines.cuda import device, launch, why_unavailable, worthwhile
from pairflip.engines.cuda.batch import (
    CLASSES,
    LARGEST,
    cut,
    form_bytes,
    matrix_bytes,
    queue,
    refusal,
    result_bytes,
    size_class,
)
from pairflip.engines.cuda.device import WALK, Matrices
from pairflip.engines.cuda.packing import Packed
from pairflip.engines.together import ManyWalked, interleaved, join, root, share
from pairflip.philox import chain_keys


def make_walks(sizes=(3, 9, 20), folds=4, chains=5, n_columns=40):
    data = datasets.make_planted(N=n_columns, seed=0)
    problem = SubsetProblem(data.X, data.y)
    betas, flips = np.geomspace(0.1, 100.0, 7), np.full(7, 50)
    return [
        (fold, WalkPlan(k, betas, flips, chain_keys(0, k, number, range(chains))))
        for number, fold in enumerate(problem.held_out([row]) for row in range(folds))
        for k in sizes
    ]


def test_every_size_has_a_class_that_fits_a_multiprocessor():
    assert all(size_class(k).largest >= k for k in range(1, LARGEST + 1))
    assert [one.largest for one in CLASSES] == sorted(one.largest for one in CLASSES)
    for one in CLASSES:
        assert 1 <= one.near <= one.tiles * (one.tiles + 1) // 2
        assert one.chains * one.blocks <= 64


def test_walks_of_the_same_kind_are_joined_and_come_apart_again():
    walks = make_walks()
    together, members = join(walks)
    assert sorted(np.concatenate(members).tolist()) == list(range(len(walks)))
    assert [(each.k, each.which.size, each.chains) for each in together] == [(3, 4, 5), (9, 4, 5), (20, 4, 5)]
    for each, own in zip(together, members, strict=True):
        for pair, (gram, plan) in zip(own, each.pairs(), strict=True):
            assert gram is walks[pair][0]
            assert (plan.k, plan.keys.tolist()) == (walks[pair][1].k, walks[pair][1].keys.tolist())


@pytest.mark.parametrize("budget", [10**9, 16_000, 1])
def test_cut_covers_every_chain_once_whatever_the_memory(budget):
    together, _ = join(make_walks())
    seen = [np.zeros((each.which.size, each.chains), int) for each in together]
    groups = cut(together, budget)
    for group in groups:
        assert len({size_class(together[part.walks].k) for part in group}) == 1
        for part in group:
            seen[part.walks][part.forms, part.chains] += 1
    assert all((count == 1).all() for count in seen)
    assert (len(groups) == 3) == (budget == 10**9)


def test_groups_keep_to_the_budget():
    (together, _), budget = join(make_walks(chains=50)), 30_000
    for group in cut(together, budget):
        roots = {id(together[p.walks].forms.root): matrix_bytes(together[p.walks].forms.root) for p in group}
        need = sum(roots.values())
        for part in group:
            chains = part.chains.stop - part.chains.start
            one = form_bytes(together[part.walks]) + chains * result_bytes(together[part.walks])
            need += (part.forms.stop - part.forms.start) * one
        assert need <= budget


@pytest.mark.parametrize("devices", [2, 3, 7])
def test_devices_share_the_chains_and_results_come_back_in_order(devices):
    """What two devices would do, by the CPU engine: the same chains in the same order."""
    together, _ = join(make_walks(sizes=(3,), folds=3))
    engine = get_engine("numba")

    def walked(each):
        results = engine.walk(list(each.pairs()))
        return ManyWalked.of(results)

    alone = walked(together[0])
    shares = [walked(share(together[0], device, devices)) for device in range(devices)]
    whole = interleaved(together[0], shares)
    for name in ("support", "best_support", "energy", "accepted", "final_energy"):
        assert getattr(whole, name).tobytes() == getattr(alone, name).tobytes()


def test_folds_of_one_row_share_the_matrix_and_others_have_their_own():
    data = datasets.make_planted(N=30, seed=0)
    problem = SubsetProblem(data.X, data.y)
    one, several = problem.held_out([3]), problem.held_out([3, 4])
    assert root(problem.gram) is root(one) is problem.gram
    assert root(several) is several


def test_queue_takes_long_tasks_first_and_each_once():
    tasks = queue(np.array([1.0, 5.0, 2.0]), np.array([2, 3, 1]))
    assert tasks.tolist() == [[1, 0], [1, 1], [1, 2], [2, 0], [0, 0], [0, 1]]
    assert tasks.dtype == np.int32


def test_what_the_device_cannot_hold_is_refused_with_a_reason():
    (gram, _), *_ = make_walks()
    assert refusal(gram, 5, 2**31 - 1, 10**9) is None
    assert f"up to {LARGEST}" in refusal(gram, LARGEST + 1, 100, 10**9)
    assert "GiB free" in refusal(gram, 5, 100, 1000)
    assert "2147483648 flips" in refusal(gram, 5, 2**31, 10**9)
    data = datasets.make_planted(N=20, seed=0)
    assert "not on 'loo'" in refusal(SubsetProblem(data.X, data.y).loo_gram, 5, 100, 10**9)


def test_a_batch_is_worth_the_device_when_it_is_long_and_wide():
    walks = make_walks()
    assert not worthwhile(walks)
    gram, plan = walks[0]
    many = WalkPlan(20, plan.betas, np.full(7, 50_000), chain_keys(0, 20, None, range(2000)))
    assert worthwhile([(gram, many)])
    assert not worthwhile([(gram, WalkPlan(20, plan.betas, np.full(7, 10**8), many.keys[:1]))])


@pytest.mark.skipif(why_unavailable() is None, reason="there is a device here")
def test_without_a_device_one_sentence_says_why():
    assert "cuda" in ENGINES
    with pytest.raises(ValueError, match=r'engine="cuda" cannot be used here: .*CuPy') as error:
        get_engine("cuda")
    assert "\n" not in str(error.value)


class OnHost(np.ndarray):
    """An array that passes for one on a device."""

    def set(self, array):
        self[...] = array

    def get(self, out=None):
        out = np.empty_like(self, subok=False) if out is None else out
        out[...] = self
        return out

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data)


def read(address, dtype, count):
    size = np.dtype(dtype).itemsize * int(count)
    return np.frombuffer((ctypes.c_char * size).from_address(int(address)), dtype)


@pytest.fixture
def pretend_device(monkeypatch):
    """CuPy made of numpy, and a kernel that checks what it is told and answers with the chain's key."""
    fake = SimpleNamespace(
        asarray=lambda array: np.ascontiguousarray(array).view(OnHost),
        empty=lambda shape, dtype=np.float64: np.zeros(shape, dtype).view(OnHost),
        zeros=lambda shape, dtype=np.float64: np.zeros(shape, dtype).view(OnHost),
        cuda=SimpleNamespace(
            Event=lambda **how: SimpleNamespace(record=lambda: None, synchronize=lambda: None),
            alloc=lambda size: None,
            alloc_pinned_memory=bytearray,
        ),
    )
    monkeypatch.setitem(sys.modules, "cupy", fake)
    walked = []

    def kernel(table, tasks, k, n_columns, sizes, tick, slice_ns, meanwhile):
        meanwhile()
        rows = np.asarray(table).view(WALK)
        for piece, chain in tasks:
            row = rows[piece]
            n, size, steps = int(row["N"]), int(row["k"]), int(row["steps"])
            key = read(row["keys"], np.uint32, 2 * chain + 2)[-2:]
            read(row["energy"], np.float64, steps * (chain + 1))[-steps:] = key[0] + np.arange(steps)
            read(row["accepted"], np.int32, steps * (chain + 1))[-steps:] = np.arange(steps)
            for name in ("support", "best"):
                read(row[name], np.int32, size * (chain + 1))[-size:] = np.arange(size)
            read(row["final_energy"], np.float64, chain + 1)[-1] = key[1]
            if row["record"]:
                read(row["record"], np.int32, size * steps * (chain + 1))[-size * steps :] = key[0] % 1000
                read(row["record_energy"], np.float64, steps * (chain + 1))[-steps:] = key[0]
            G = read(row["G"], np.float64, n * n).reshape(n, n)
            left_out = read(row["left_out"], np.float64, n) if row["left_out"] else np.zeros(n)
            b, unit = [read(row[name], np.float64, n).copy() for name in ("b", "unit")]
            schedule = [read(row[name], np.float64, steps).copy() for name in ("betas", "coldest")]
            walked.append(
                (
                    G * np.outer(unit, unit) - np.outer(left_out, left_out),
                    b,
                    *schedule,
                    read(row["ends"], np.int64, steps).copy(),
                )
            )

    monkeypatch.setattr(launch, "_walk", kernel)
    return walked


class FakePlace:
    """A device or a stream of the pretended CuPy: the one that this thread is on, as far as it is asked."""

    here = threading.local()

    def __init__(self, number=None, **options):
        self.id = getattr(self.here, "device", 0) if number is None else number
        self.moves = not options  # a stream changes no device

    def __enter__(self):
        self.before = getattr(self.here, "device", 0)
        if self.moves:
            self.here.device = self.id
        return self

    def __exit__(self, *_):
        self.here.device = self.before


@pytest.mark.parametrize("devices", [[0], [0, 1], [2, 5, 7]])
def test_all_devices_walk_and_every_pair_gets_its_own_answer(pretend_device, devices, monkeypatch):
    fake = sys.modules["cupy"]
    fake.cuda.Device = fake.cuda.Stream = FakePlace
    fake.cuda.runtime = SimpleNamespace(memGetInfo=lambda: (10**9, 10**9), CUDARuntimeError=OSError)
    fake.cuda.memory = SimpleNamespace(OutOfMemoryError=MemoryError)
    fake.get_default_memory_pool = lambda: SimpleNamespace(free_bytes=lambda: 0)
    monkeypatch.setattr(cuda, "why_unavailable", lambda: None)
    monkeypatch.setattr(device, "_streams", {})
    compiled, used, kernel = [], set(), launch._walk

    def request(size, far):
        compiled.append(size)
        done = Future()
        done.set_result(None)
        return done

    monkeypatch.setattr(cuda, "request", request)

    def on_device(*arguments):
        used.add(FakePlace().id)
        kernel(*arguments)

    monkeypatch.setattr(launch, "_walk", on_device)
    walks = make_walks(chains=5)
    results = cuda.CudaEngine(devices=devices).walk(walks)
    assert used == set(devices)
    assert {one.largest for one in compiled} == {8, 16, 24}
    for (_, plan), result in zip(walks, results, strict=True):
        np.testing.assert_array_equal(result.energy, plan.keys[:, :1] + np.arange(plan.betas.size))
        np.testing.assert_array_equal(result.final_energy, plan.keys[:, 1])
        assert result.support.shape == (5, plan.k)


@pytest.mark.parametrize("budget", [10**9, 20_000])
def test_every_piece_is_told_its_own_problem_and_its_answers_come_home(pretend_device, budget):
    walks = make_walks(chains=3)
    data = datasets.make_planted(N=25, seed=3)
    other = SubsetProblem(data.X, data.y)
    few = WalkPlan(3, np.array([1.0, 0.5]), np.array([10, 20]), chain_keys(9, 3, None, range(2)))
    walks += [(other.gram, few), (other.held_out([0, 1]), few)]
    together, members = join(walks)
    matrices, at = Matrices(), 0
    found = [ManyWalked.room(each) for each in together]
    for group in cut(together, budget):
        packed = Packed(together, group)
        told = launch.run_group(packed, matrices, None, 1, lambda: None)
        for part, walked in zip(group, packed.answers.split(told, packed.rows, packed.walks), strict=True):
            found[part.walks].put(part.forms, part.chains, walked)
        pieces, at = pretend_device[at:], len(pretend_device)
        expected = [
            walks[pair]
            for part in group
            for pair in members[part.walks][part.forms]
            for _ in range(part.chains.start, part.chains.stop)
        ]
        assert len(pieces) == len(expected)
        for matrix, b, betas, coldest, ends in pieces:
            candidates = [
                (gram, plan)
                for gram, plan in expected
                if gram.n_columns == b.size and np.array_equal(gram.b, b) and np.array_equal(plan.betas, betas)
            ]
            gram, plan = candidates[0]
            np.fill_diagonal(matrix, gram.diagonal)
            np.testing.assert_allclose(matrix, gram.matrix, atol=1e-14)
            np.testing.assert_array_equal(coldest, [plan.betas[a:].min() for a in range(plan.betas.size)])
            np.testing.assert_array_equal(ends, np.cumsum(plan.flips))
    for own, many in zip(members, found, strict=True):
        for number, pair in enumerate(own):
            result, plan = many.result(number), walks[pair][1]
            np.testing.assert_array_equal(result.energy, plan.keys[:, :1] + np.arange(plan.betas.size))
            np.testing.assert_array_equal(result.final_energy, plan.keys[:, 1])
            assert (result.support == np.arange(plan.k)).all()


def test_matrices_are_sent_together_and_kept_while_all_that_came_with_them_are_needed(pretend_device, monkeypatch):
    data = [datasets.make_planted(N=n, seed=n) for n in (20, 25, 30, 35)]
    problems = [SubsetProblem(each.X, each.y) for each in data]
    grams, sent, upload = [problem.gram for problem in problems], [], device.upload_joined
    monkeypatch.setattr(device, "upload_joined", lambda arrays: sent.append(len(arrays)) or upload(arrays))
    matrices = Matrices()

    def bring(*which, transfers):
        asked = [grams[at] for at in which] + [problems[at].held_out([2]) for at in which]
        sent.clear()
        for gram, matrix in zip(asked, matrices.bring(asked), strict=True):
            np.testing.assert_array_equal(matrix, root(gram).matrix)
        assert sent == transfers

    bring(0, 1, transfers=[2])
    bring(0, 1, 2, transfers=[1])
    bring(0, 1, 2, transfers=[])
    bring(1, 2, 3, transfers=[2])  # 0 goes, and 1 shared its memory
    several = problems[3].held_out([0, 1])
    np.testing.assert_allclose(matrices.bring([several])[0], several.matrix, atol=1e-14)


def test_courses_and_records_come_home_from_a_group_in_which_few_are_wanted(pretend_device):
    together, _ = join([walk for walk in make_walks(chains=3) if walk[1].k <= 8])
    together = [replace(each, course=at % 3 == 1, record=at % 4 == 2) for at, each in enumerate(together * 4)]
    (group,) = cut(together, 10**9)
    packed = Packed(together, group)
    told = launch.run_group(packed, Matrices(), None, 1, lambda: None)
    assert (packed.table["record"] != 0).tolist() == [each.record for each in packed.walks for _ in each.which]
    for each, walked in zip(packed.walks, packed.answers.split(told, packed.rows, packed.walks), strict=True):
        np.testing.assert_array_equal(walked.final_energy, each.keys[:, :, 1])
        assert (walked.energy is not None, walked.record is not None) == (each.course, each.record)
        if each.course:
            np.testing.assert_array_equal(walked.energy, each.keys[:, :, :1] + np.arange(each.steps))
            np.testing.assert_array_equal(walked.accepted, np.zeros_like(walked.accepted) + np.arange(each.steps))
        if each.record:
            assert walked.record.shape == (*each.keys.shape[:2], each.steps, each.k)
            assert (walked.record == (each.keys[:, :, :1] % 1000)[..., None]).all()
            assert (walked.record_energy == each.keys[:, :, :1]).all()


def test_the_first_size_class_that_is_compiled_is_walked_first(monkeypatch):
    compiling = {size: Future() for size in (24, 16, 8)}
    monkeypatch.setattr(cuda, "request", lambda size, far: compiling[size.largest])
    gram = make_walks(chains=1)[0][0]
    groups = [SimpleNamespace(k=k, forms=SimpleNamespace(root=gram)) for k in (20, 12, 3)]
    compiling[16].set_result(None)
    assert cuda._compiled_first(groups) == 1
    compiling[8].set_result(None)
    assert cuda._compiled_first([groups[0], groups[2]]) == 1
    compiling[24].set_result(None)
    assert cuda._compiled_first(groups) == 0
