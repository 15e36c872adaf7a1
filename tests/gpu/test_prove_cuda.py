"""Enumeration on a device: the same lowest supports and counts as on the CPU, whatever passes at a time."""

import re
import time
from functools import partial
from itertools import combinations
from math import comb
from pathlib import Path

import numpy as np
import pytest

from _tables import numbers
from pairflip import SubsetProblem, best_subset, datasets, prove
from pairflip.engines import base
from pairflip.engines.cuda import enumeration, why_unavailable
from pairflip.engines.numba import enumeration as compiled
from pairflip.least_squares import SINGULAR
from pairflip.search.exhaustive import (
    Question,
    Workspaces,
    _judge_passed,
    enumerate_on_device,
    enumerate_supports,
    gather,
)
from pairflip.testing.cases import delicate_cases, random_cases

SOURCE = (Path(enumeration.__file__).parent / "enumerate.cu").read_text(encoding="utf-8")


def test_sets_of_columns_are_numbered_from_the_smallest():
    sets = [tuple(reversed(columns)) for columns in sorted(combinations(range(9), 4), key=lambda c: c[::-1])]
    given = enumeration.unrank(np.arange(comb(9, 4)), enumeration.binomials(9, 4))
    assert [tuple(columns) for columns in given.tolist()] == sets


@pytest.mark.parametrize("k", [3, 4, 5, 8])
@pytest.mark.parametrize("n", [8, 33, 160, 161, 276, 700, 4088, 9000])
def test_a_block_has_room_and_stripes_cover_all_columns(n, k):
    shape = enumeration.shape_of(n, k)
    assert shape.padded >= n
    assert shape.far or 8 * shape.doubles(k) <= 110 * 1024
    assert (shape.stripes - 1) * shape.width < n <= shape.stripes * shape.width
    assert shape.stripes == 1 or shape.width % shape.nodes == 0


def test_the_kernel_has_the_constants_of_the_compiled_engine():
    written = {name: eval(value) for name, value in re.findall(r"\b([A-Z]+) = ([0-9.e+-]+(?: - [0-9.e-]+)?)", SOURCE)}
    assert written["EPSILON"] == base.EPSILON
    assert written["SINGULAR"] == SINGULAR
    assert written["SURELY"] == compiled.SURELY
    assert written["DOUBT"] == compiled._DOUBT


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_what_a_device_hands_over_is_judge_passed_as_by_an_enumeration(depth):
    problem = SubsetProblem(*planted(14))
    expected = enumerate_supports(Question(problem.form, 5, 6, levels=np.array([0.8]) * problem.form.yy))
    asked = Question(problem.form, 5, 6, levels=np.array([0.8]) * problem.form.yy)
    room = Workspaces(asked)
    every = {m: np.array(list(combinations(range(13, -1, -1), m))) for m in (2, 3, 5)}
    none = {m: np.zeros((0, m), np.int64) for m in (2, 3, 5)}
    handed = none | {{1: 5, 2: 2, 3: 3}[depth]: every[{1: 5, 2: 2, 3: 3}[depth]]}
    assert _judge_passed(asked, room, enumeration.Passed(handed[5], handed[2], handed[3]))
    assert_same(gather(asked, room.parts, comb(14, 5)), expected, 6)


@pytest.mark.skipif(why_unavailable() is None, reason="there is a device")
def test_a_device_that_is_not_there_is_refused_in_one_sentence():
    problem = SubsetProblem(*planted(8))
    with pytest.raises(ValueError, match=r'^engine="cuda" cannot be used here: '):
        prove(problem, 3, engine="cuda")
    assert enumerate_on_device(Question(problem.form, 3)) is None


def test_an_engine_that_does_not_prove_is_refused():
    with pytest.raises(ValueError, match=r"^engine is 'reference'; expected 'auto', 'numba' or 'cuda'\.$"):
        prove(SubsetProblem(*planted(8)), 3, engine="reference")


def planted(n_columns, n_rows=30, seed=0):
    data = datasets.make_planted(N=n_columns, alpha=n_rows / n_columns, seed=seed)
    return data.X, data.y


def assert_same(given, expected, wanted):
    """The same supports as far as they are `wanted`, energies that differ by rounding, the same counts."""
    assert given.complete
    assert given.looked == expected.looked
    np.testing.assert_array_equal(given.counts, expected.counts)
    last = np.append(expected.doubled, np.inf)[min(wanted, expected.doubled.size) - 1]
    low, energies = (
        {tuple(s): e for s, e in zip(f.supports.tolist(), f.doubled, strict=True)} for f in (given, expected)
    )
    assert len(low) == len(given.supports)
    assert {s for s, e in low.items() if e <= last * (1 + base.EQUAL)} == {
        s for s, e in energies.items() if e <= last * (1 + base.EQUAL)
    }
    common = sorted(low.keys() & energies.keys())
    np.testing.assert_allclose([low[s] for s in common], [energies[s] for s in common], rtol=1e-7, atol=1e-18)


def asked_twice(form, k, wanted=1, limit=np.inf, levels=()):
    """What the device and the CPU answer."""
    levels = np.asarray(levels, dtype=np.float64)
    given = enumerate_on_device(Question(form, k, wanted, limit, levels))
    return given, enumerate_supports(Question(form, k, wanted, limit, levels)), wanted


CASES = [case for case in random_cases() + delicate_cases() if 3 <= case.k <= 9 and case.form.dense]


@pytest.mark.gpu
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_small_problems_of_every_kind(case):
    given, expected, wanted = asked_twice(case.form, case.k, wanted=5)
    assert_same(given, expected, wanted)
    lowest = expected.doubled[0]
    levels = lowest * np.array([1.0 + 1e-9, 1.01, 1.5]) + 1e-20 * case.form.yy
    assert_same(*asked_twice(case.form, case.k, 2, limit=expected.doubled[1], levels=levels))


@pytest.mark.gpu
@pytest.mark.parametrize(("n_columns", "k"), [(5, 3), (31, 3), (33, 4), (60, 4), (60, 5), (45, 6), (200, 3), (170, 4)])
def test_planted_problems_of_many_sizes(n_columns, k):
    form = SubsetProblem(*planted(n_columns)).form
    first = enumerate_supports(Question(form, k))
    levels = first.doubled[0] * np.array([1.0 + 1e-9, 1.1])
    assert_same(*asked_twice(form, k, 3, limit=1.2 * first.doubled[0], levels=levels))


@pytest.mark.gpu
@pytest.mark.parametrize("capacity", [4, 100, 3000])
@pytest.mark.parametrize(("n_columns", "k"), [(40, 3), (30, 4), (20, 5)])
def test_nothing_is_lost_when_more_passes_than_can_be_handed_over(n_columns, k, capacity, monkeypatch):
    small = partial(enumeration.Enumeration, capacity=capacity)
    monkeypatch.setattr(enumeration, "Enumeration", small)
    form = SubsetProblem(*planted(n_columns)).form
    assert_same(*asked_twice(form, k, 50, levels=[0.7 * form.yy]))


@pytest.mark.gpu
def test_slices_of_no_time_at_all_give_the_same(monkeypatch):
    monkeypatch.setattr(enumeration, "Enumeration", partial(enumeration.Enumeration, slice_ns=20_000))
    assert_same(*asked_twice(SubsetProblem(*planted(60)).form, 5, 4))


@pytest.mark.gpu
def test_numbers_in_global_memory_give_the_same(monkeypatch):
    shape = enumeration.shape_of(90, 4)
    far = enumeration.Shape(4, shape.spans, shape.threads, True, shape.padded, 1, 92)
    monkeypatch.setattr(enumeration, "shape_of", lambda n, k: far)
    assert_same(*asked_twice(SubsetProblem(*planted(90)).form, 4, 4))


@pytest.mark.gpu
def test_more_columns_than_shared_memory_holds():
    form = SubsetProblem(*planted(1900, 50)).form
    limit = enumerate_supports(Question(form, 2)).doubled[0]
    assert_same(*asked_twice(form, 3, 3, limit=limit))


@pytest.mark.gpu
def test_a_budget_ends_the_work_with_a_bound():
    problem = SubsetProblem(*planted(400, 450))
    limit = 2.0 * best_subset(problem, 6, effort="quick", seed=0, prove=False).best_energy
    enumerate_on_device(Question(SubsetProblem(*planted(12)).form, 6))  # compiled
    began = time.perf_counter()
    asked = Question(problem.form, 6, limit=limit, until=began + 1.5)
    found = enumerate_on_device(asked)
    assert time.perf_counter() - began < 6.0
    assert not found.complete
    assert 0 < found.looked < comb(400, 6)
    assert 0.0 < found.bound < problem.form.yy


@pytest.mark.gpu
def test_a_proof_says_that_it_was_made_on_the_gpu():
    problem = SubsetProblem(*planted(60))
    heard = []
    given, expected = prove(problem, 5, engine="cuda"), prove(problem, 5, engine="numba")
    enumerate_on_device(Question(problem.form, 5, tick=heard.append))
    assert given.method == "enumeration on the GPU"
    assert given.optimal
    assert given.energy == expected.energy
    np.testing.assert_array_equal(given.supports, expected.supports)
    assert sum(heard) == 1000


TABLES = {
    "supernova": ("supernova_bsnip/snia_74x276.csv", "target_M_B", (3, 4)),
    "tecator": ("tecator/tecator.csv", "target_fat", (4, 5)),
    "eyedata": ("eyedata/eyedata.csv", "target_TRIM32", (3, 4)),
}


@pytest.mark.gpu
@pytest.mark.parametrize("name", TABLES)
def test_real_tables(name, shared_data):
    path, target, sizes = TABLES[name]
    problem = SubsetProblem(*numbers(shared_data / path, target))
    for k in sizes:
        given = prove(problem, k, n_best=3, within=(0.01,), engine="cuda")
        expected = prove(problem, k, n_best=3, within=(0.01,), engine="numba", n_jobs=-1, budget=1000.0)
        assert given.method == "enumeration on the GPU"
        assert given.optimal
        assert expected.optimal
        np.testing.assert_array_equal(given.supports, expected.supports)
        np.testing.assert_array_equal(given.energies, expected.energies)
        np.testing.assert_array_equal(given.counts, expected.counts)
