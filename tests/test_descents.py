"""Descents, kicks and paths: the compiled engine against the reference, against enumeration and against QR."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from pairflip.engines.numba.judge_kernels import descend_by_columns
from pairflip.engines.numba.judging import Judge, _Basis
from pairflip.engines.numba.support_table import SHAKY

import pairflip.testing as suite
from pairflip import SubsetProblem
from pairflip.engines import RankTooSmall, WalkPlan
from pairflip.engines.base import BETTER, TIE, Descent
from pairflip.engines.numba import NumbaEngine, judging
from pairflip.engines.numba.searching import Searcher
from pairflip.engines.reference import ReferenceEngine
from pairflip.philox import chain_keys
from pairflip.testing import Case, descent_cases, descent_plan, walk_one

ENGINE = NumbaEngine()
CHECKS = (suite.check_descents, suite.check_paths, suite.check_starts)
slow = pytest.mark.slow


def autoregressive(rng, M, N, correlation):
    """Neighbouring columns are correlated, and three of them predict the target."""
    X = rng.normal(size=(M, N))
    for j in range(1, N):
        X[:, j] = correlation * X[:, j - 1] + (1 - correlation**2) ** 0.5 * X[:, j]
    return X, X[:, rng.choice(N, 3, replace=False)] @ rng.normal(size=3) + 0.5 * rng.normal(size=M)


def spectra(rng, M, N, noise):
    """Columns that five components explain but for `noise`."""
    parts, shapes = rng.normal(size=(M, 5)), np.cumsum(rng.normal(size=(5, N)), axis=1)
    return parts @ shapes + noise * rng.normal(size=(M, N)), parts @ rng.normal(size=5) + 0.3 * rng.normal(size=M)


def fingerprints(rng, M, N, different):
    """Columns of zeros and ones, of which only some are different, and a target of whole numbers."""
    X = (rng.random((M, different)) < 0.3).astype(float)[:, rng.integers(0, different, N)]
    return X, X[:, :5] @ rng.integers(-2, 3, 5) + rng.integers(-1, 2, M)


def hard_cases(seed):
    """Nearly dependent columns, exact ties, and sizes at which nothing is left to choose."""
    rng = np.random.default_rng([24, seed])
    X, y = autoregressive(rng, 40, 60, 0.9999)
    yield Case("correlation 0.9999, k = 3", SubsetProblem(X, y).gram, 3)
    yield Case("correlation 0.9999, k = 4", SubsetProblem(X, y).gram, 4)
    yield Case("correlation 0.99999", SubsetProblem(*autoregressive(rng, 40, 30, 0.99999)).gram, 6)
    X, y = fingerprints(rng, 30, 40, 12)
    yield Case("fingerprints", SubsetProblem(X, y).gram, 4)
    yield Case("fingerprints from the columns", SubsetProblem(X, y, memory_budget=0).gram, 3)
    X, y = rng.integers(0, 2, (24, 30)).astype(float), rng.integers(0, 3, 24).astype(float)
    yield Case("whole numbers", SubsetProblem(X, y).gram, 3)
    X, y = rng.integers(-1, 2, (12, 20)).astype(float), rng.integers(-1, 2, 12).astype(float)
    yield Case("whole numbers, few rows", SubsetProblem(X, y, center=None).gram, 4)
    X, y = np.eye(10)[:, rng.integers(0, 10, 16)], rng.integers(0, 4, 10).astype(float)
    yield Case("unit vectors", SubsetProblem(X, y, center=None).gram, 3)
    noise = 10.0 ** rng.uniform(-5, -2, 2)
    yield Case("spectra", SubsetProblem(*spectra(rng, 30, 40, noise[0])).gram, int(rng.integers(2, 7)))
    problem = SubsetProblem(*spectra(rng, 30, 40, noise[1]), always=[3], ridge=1e-7)
    yield Case("spectra, two rows out", problem.held_out([1, 7]), int(rng.integers(2, 6)))
    X, y = autoregressive(rng, 12, 7, 0.0)
    yield Case("k = N - 1", SubsetProblem(X, y).gram, 6)
    X, y = rng.normal(size=(8, 3)) @ rng.normal(size=(3, 9)), rng.normal(size=8)
    yield Case("k = rank", SubsetProblem(X, y, center=None).gram, 3)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=slow) for seed in range(1, 6))])
def test_hard_problems_are_searched_as_the_reference_searches_them(check, seed):
    check(ENGINE, list(hard_cases(seed)))


@slow
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_more_problems_are_searched_as_the_reference_searches_them(check):
    check(ENGINE, descent_cases(8))


def test_k_equal_to_the_number_of_columns_leaves_nothing_to_choose():
    rng = np.random.default_rng(0)
    gram = SubsetProblem(rng.normal(size=(12, 5)), rng.normal(size=12)).gram
    for engine in (ENGINE, ReferenceEngine()):
        walked = walk_one(engine, gram, descent_plan(5, 0, 4))
        np.testing.assert_array_equal(walked.support, [range(5)] * 2)
        np.testing.assert_array_equal([support.size for support in engine.path(gram, 5, passes=3)[0]], range(1, 6))


def small_problem(seed):
    """One of many kinds, with so few supports that all can be looked at; and a size."""
    rng = np.random.default_rng([60, seed])
    N, k = int(rng.integers(6, 15)), int(rng.integers(1, 5))
    X, y = autoregressive(rng, 20, N, float(rng.choice([0.0, 0.9, 0.999])))
    weights = np.where(rng.random(20) < 0.1, 0.0, rng.exponential(size=20))
    kind = seed % 6
    if kind == 0:
        return SubsetProblem(X, y).gram, k
    if kind == 1:
        X[:, N - 2 :] = X[:, :2] * [2.0, -1.0]
        return SubsetProblem(X, y).gram, k
    if kind == 2:
        return SubsetProblem(X, y, ridge=float(rng.exponential())).gram, k
    if kind == 3:
        return SubsetProblem(X, y, sample_weight=weights).gram, k
    if kind == 4:
        return SubsetProblem(X, y, always=[0, 4]).gram, min(k, N - 2)
    return SubsetProblem(X, y, memory_budget=0 if seed % 4 else 2**28).held_out([3, 8, 11]), k


@pytest.mark.parametrize("first", range(0, 72, 12))
def test_sixty_kicks_find_the_best_of_all_supports(first):
    for seed in range(first, first + 12):
        gram, k = small_problem(seed)
        best = suite.enumerate_energies(gram, k).min()
        walked = walk_one(ENGINE, gram, descent_plan(k, seed, 60, chains=1, pool=12))
        assert gram.energy(walked.support[0]) <= best + TIE * gram.yy, f"seed {seed}"
        assert abs(walked.final_energy[0] - best) <= 1e-10 * gram.yy


@pytest.mark.parametrize("memory", [2**28, 0])
@pytest.mark.parametrize("kind", ["independent", "correlated", "spectra", "fingerprints"])
def test_a_descent_ends_where_no_flip_lowers_the_energy(kind, memory):
    rng = np.random.default_rng(5)
    X, y = {
        "independent": lambda: autoregressive(rng, 40, 60, 0.0),
        "correlated": lambda: autoregressive(rng, 40, 60, 0.999),
        "spectra": lambda: spectra(rng, 40, 60, 1e-3),
        "fingerprints": lambda: fingerprints(rng, 40, 60, 25),
    }[kind]()
    gram = SubsetProblem(X, y, memory_budget=memory).gram
    walked = walk_one(ENGINE, gram, descent_plan(5, 1, 0, chains=6))
    for support in [*walked.support, *ENGINE.path(gram, 5)[0]]:
        order = np.concatenate([support, np.setdiff1d(np.arange(60), support)])
        assert ReferenceEngine().flip_energies(gram, order, support.size).min() >= 0.0


def test_minima_are_told_apart_by_their_true_energies_however_collinear_the_columns():
    """By the Gram matrix, the energy of one support comes out differently each time: by more than BETTER y'y here."""
    rng = np.random.default_rng(3)
    gram = SubsetProblem(*autoregressive(rng, 40, 30, 0.99999)).gram
    searcher = Searcher(gram, 6, lambda scans: None)
    inflated = []
    for key in chain_keys(0, 6, None, np.arange(6)):
        found = searcher.chain(6, key, Descent(20, 8), None)
        exact = [gram.energy(support) for support in found.supports]
        np.testing.assert_allclose(found.energies, exact, atol=1e-2 * BETTER * gram.yy)
        assert len({tuple(support) for support in found.supports.tolist()}) == len(found.supports)
        inflated += [searcher.judge.basis(support).inflation for support in found.supports]
    assert 1e5 < np.median(inflated) < SHAKY  # so the table was in use


@pytest.mark.parametrize("memory", [2**28, 0])
def test_chains_are_the_same_for_any_number_of_threads(memory):
    rng = np.random.default_rng(1)
    gram = SubsetProblem(*autoregressive(rng, 30, 80, 0.999), memory_budget=memory).gram
    plan = descent_plan(5, 2, 20, chains=9)
    alone = walk_one(ENGINE, gram, plan)
    for n_jobs in (2, 3):
        together = walk_one(ENGINE, gram, plan, n_jobs=n_jobs)
        for field in ("support", "best_support", "final_energy", "reached"):
            np.testing.assert_array_equal(getattr(together, field), getattr(alone, field))
    for c in (0, 4, 8):
        single = walk_one(ENGINE, gram, replace(plan, keys=plan.keys[c : c + 1]))
        np.testing.assert_array_equal(single.support[0], alone.support[c])


def test_a_cache_of_few_rows_changes_nothing(monkeypatch):
    rng = np.random.default_rng(7)
    X, y = autoregressive(rng, 30, 50, 0.9)
    plan = descent_plan(5, 2, 20)
    expected = walk_one(ENGINE, SubsetProblem(X, y).gram, plan)
    monkeypatch.setattr("pairflip.engines.numba.support_table.ROWS_BYTES", 0)
    gram = SubsetProblem(X, y, memory_budget=0).gram
    assert Searcher(gram, 5, lambda scans: None).table.rows.shape == (5, 50)
    np.testing.assert_array_equal(walk_one(ENGINE, gram, plan).support, expected.support)
    for ours, theirs in zip(ENGINE.path(gram, 8)[0], ENGINE.path(SubsetProblem(X, y).gram, 8)[0], strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_scans_are_heard_of(n_jobs):
    gram, heard = small_problem(0)[0], []
    walk_one(ENGINE, gram, descent_plan(3, 0, 30, chains=4), n_jobs=n_jobs, tick=heard.append)
    assert sum(heard) >= 4 * 31  # each round looks at all flips at least once
    assert min(heard) >= 0


def test_scans_of_a_path_are_heard_of():
    heard = []
    ENGINE.path(small_problem(0)[0], 4, tick=heard.append)
    assert sum(heard) >= 4


class Enough(Exception):
    pass


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_exception_from_tick_stops_all_threads(n_jobs, monkeypatch):
    monkeypatch.setattr("pairflip.engines.numba.searching._SLICE_NS", 1e5)  # so that tick is called often
    rng = np.random.default_rng(2)
    gram = SubsetProblem(*autoregressive(rng, 60, 300, 0.9)).gram
    before, heard = threading.active_count(), []

    def tick(scans):
        heard.append(scans)
        if len(heard) == 20:
            raise Enough

    with pytest.raises(Enough):
        walk_one(ENGINE, gram, descent_plan(8, 0, 100_000, chains=8), n_jobs=n_jobs, tick=tick)
    assert threading.active_count() == before
    assert len(heard) < 60
    heard.clear()
    with pytest.raises(Enough):
        ENGINE.path(gram, 60, tick=tick)


@pytest.mark.parametrize("engine", [ENGINE, ReferenceEngine()], ids=lambda engine: engine.name)
def test_more_columns_than_are_independent_are_refused_in_one_sentence(engine):
    rng = np.random.default_rng(3)
    gram = SubsetProblem(np.repeat(rng.normal(size=(12, 3)), 3, axis=1), rng.normal(size=12)).gram
    expected = (
        "k is 4, but only 3 of the candidate columns are linearly independent (to working precision); expected k <= 3."
    )
    with pytest.raises(RankTooSmall) as raised:
        walk_one(engine, gram, descent_plan(4, 0, 2))
    assert str(raised.value) == expected


def test_a_path_ends_where_columns_run_out_and_may_take_all():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(20, 6)), rng.normal(size=20)
    assert [s.tolist() for s in ENGINE.path(SubsetProblem(X, y).gram, 6)[0]][-1] == list(range(6))
    assert len(ENGINE.path(SubsetProblem(X, y).gram, 5, passes=4)[0]) == 5
    twice = SubsetProblem(np.hstack([X, X]), y).gram
    for passes in (1, 2, 5):
        path, _ = ENGINE.path(twice, 11, passes=passes)
        assert [support.size for support in path] == list(range(1, 7))
        assert path[-1].tolist() == list(range(6))  # of equal columns the first
    assert ENGINE.path(SubsetProblem(X, y).gram, 1, passes=3)[0][0].size == 1


def test_energies_along_a_path_fall():
    rng = np.random.default_rng(8)
    gram = SubsetProblem(*spectra(rng, 40, 60, 1e-3)).gram
    for passes in (1, 4):
        energies = [gram.energy(support) for support in ENGINE.path(gram, 20, passes=passes)[0]]
        assert (np.diff(energies) < 0).all()


class FewerKicks(NumbaEngine):
    def walk(self, pairs, **options):
        fewer = [
            (gram, replace(plan, descent=plan.descent and Descent(plan.descent.kicks - 1))) for gram, plan in pairs
        ]
        return super().walk(fewer, **options)


class OtherAddress(NumbaEngine):
    def walk(self, pairs, **options):
        return super().walk([(gram, replace(plan, keys=plan.keys[:, ::-1].copy())) for gram, plan in pairs], **options)


class StartsForgotten(NumbaEngine):
    def walk(self, pairs, **options):
        return super().walk([(gram, replace(plan, starts=None)) for gram, plan in pairs], **options)


class OnePass(NumbaEngine):
    def path(self, gram, largest, *, passes=1, tick=None):
        return super().path(gram, largest, passes=1, tick=tick)


class NoDescentOnThePath(NumbaEngine):
    """Forward selection alone."""

    def path(self, gram, largest, *, passes=1, tick=None):
        judge, path = Judge(gram), [np.empty(0, np.int64)]
        while len(path) <= largest and (best := judge.best_addition(path[-1])) is not None:
            path.append(np.append(path[-1], best))
        supports = [np.sort(support) for support in path[1:]]
        return supports, np.array([gram.energy(support) for support in supports])


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (FewerKicks, suite.check_descents),
        (OtherAddress, suite.check_descents),
        (StartsForgotten, suite.check_starts),
        (OnePass, suite.check_paths),
        (NoDescentOnThePath, suite.check_paths),
    ],
)
def test_a_broken_engine_fails_the_checks(broken, check):
    with pytest.raises(AssertionError):
        check(broken())


def last_of_equals(self, support, listed=None, basis=None):
    """`Judge.best_flip`, but of equal flips it makes the last one."""
    basis = self.basis(support) if basis is None else basis
    delta = basis.flips(np.arange(self._gram.n_columns))
    lowest = float(delta.min(initial=np.inf))
    if not lowest < -self.tie:
        return None
    slots, entering = np.nonzero(delta <= lowest + self.tie)
    flipped = support.copy()
    flipped[slots[-1]] = entering.max()
    return flipped


def last_of_equals_compiled(columns, target, support, k, listed, asked, *rest):
    """`descend_by_columns`, but on the columns in the reverse order: of equal flips the last one comes first."""
    n, room = len(columns), rest[-1]
    other = n - 1 - support
    flips = np.column_stack([listed[:, 0], n - 1 - listed[:, 1]])
    found = descend_by_columns(np.ascontiguousarray(columns[::-1]), target, other, k, flips, asked, *rest[:-1], room)
    support[:] = n - 1 - other
    return found


def energies_off(*given):
    at_minimum, energy = descend_by_columns(*given)
    return at_minimum, energy * (1.0 + 1e-6)


def uncompiled(monkeypatch):
    monkeypatch.setattr(Judge, "compiled", property(lambda self: False, lambda self, value: None), raising=False)


@pytest.mark.parametrize(
    ("home", "name", "wrong"),
    [
        (Judge, "best_flip", last_of_equals),
        (judging, "descend_by_columns", last_of_equals_compiled),
        (judging, "descend_by_columns", energies_off),
    ],
    ids=["last of equals", "last of equals, compiled", "energies off by 1e-6"],
)
def test_a_judge_that_is_wrong_is_found_out(home, name, wrong, monkeypatch):
    if home is Judge:
        uncompiled(monkeypatch)
    monkeypatch.setattr(home, name, wrong)
    with pytest.raises(AssertionError):
        suite.check_descents(ENGINE)


def test_where_the_best_of_the_short_list_is_singular_all_flips_are_looked_at(monkeypatch):
    """The list was made for that flip: what is better than its others need not be on it."""
    rng = np.random.default_rng(6)
    gram = SubsetProblem(*autoregressive(rng, 30, 12, 0.5)).gram
    judge, support = Judge(gram), np.array([9, 10, 11])
    delta = judge.basis(support).flips(np.arange(12))
    slots, columns = np.unravel_index(np.argsort(delta, axis=None)[:3], delta.shape)
    regular = _Basis.stays_regular
    best = int(slots[0]), int(columns[0])
    monkeypatch.setattr(_Basis, "stays_regular", lambda self, *flip: flip != best and regular(self, *flip))
    listed = np.stack([slots, columns], axis=1)[[0, 2]]
    second = support.copy()
    second[slots[1]] = columns[1]
    np.testing.assert_array_equal(judge.best_flip(support, listed), second)
    np.testing.assert_array_equal(judge.best_flip(support), second)


def test_what_is_not_defined_is_refused_in_a_sentence():
    gram, k = small_problem(0)
    plan = descent_plan(k, 0, 1)
    anneals = WalkPlan(k, np.ones(1), np.ones(1, np.int64), plan.keys, np.zeros((2, k), np.int64), plan.descent)
    for engine in (ENGINE, ReferenceEngine()):
        assert engine.refuses(gram, plan) is None
        assert engine.refuses(gram, anneals) == "Chains that anneal start from random supports."
