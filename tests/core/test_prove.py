"""Proofs against plain enumeration: the best supports, their energies and numbers; bounds that are never too high."""

import threading
import time

import numpy as np
import pytest

import pairflip.search.branch_and_bound as branching
import pairflip.search.exhaustive as exhaustive
import pairflip.search.prove as proving
from pairflip import Proof, SubsetProblem, SubsetRegressor, anneal, best_subset, prove
from pairflip.engines import RankTooSmall
from pairflip.report.proof_words import proof_sentence
from pairflip.search.effort import check_size
from pairflip.testing import all_supports, enumerate_energies


def random_table(rng):
    """A small table of one of many kinds: independent, duplicated, whole numbers, collinear, smooth, nearly equal."""
    N, M = int(rng.integers(3, 12)), int(rng.integers(3, 25))
    X = rng.normal(size=(M, N))
    kind = int(rng.integers(8))
    if kind == 1:
        X[:, -1] = X[:, 0]
    elif kind == 2:
        X = np.round(X)
    elif kind == 3:
        X[:, -1] = X[:, 0] + X[:, 1]
        X[:, 1] = 3.0
    elif kind == 4:
        X = 0.01 * np.cumsum(X, axis=1) + rng.normal(size=(M, 1))
    elif kind == 5:
        X = X[:, rng.integers(0, max(2, N // 2), N)] + 1e-6 * rng.normal(size=(M, N))
    elif kind == 6:
        X = np.vander(np.linspace(0, 1, M), N)
    elif kind == 7:  # near ties: columns that differ by rounding of what they explain
        X = X[:, rng.integers(0, max(2, N // 2), N)] * (1.0 + 1e-9 * rng.normal(size=(M, N)))
    q = int(rng.choice([1, 1, 2, 3]))
    Y = (
        rng.normal(size=(M, q))
        if rng.random() < 0.5
        else X[:, :2] @ rng.normal(size=(2, q)) + 0.1 * rng.normal(size=(M, q))
    )
    options = {}
    if rng.random() < 0.2:
        Y = np.round(Y)
    if rng.random() < 0.3:
        options["sample_weight"] = rng.integers(0, 3, M)
    if rng.random() < 0.3:
        options["ridge"] = float(rng.choice([1e-3, 0.1, 1.0]))
    if rng.random() < 0.3 and N > 4:
        options["always"] = [0]
    if rng.random() < 0.3:
        options["center"] = None
    free = range(len(options.get("always", ())), N)
    labels = {f"g{g}": [j for j in free if j % 5 == g or j % 7 == g + 5] for g in range(3)}
    limits = (
        {"groups": {name: own for name, own in labels.items() if own}},
        {"groups": {name: own for name, own in labels.items() if own}, "one_per_group": True},
        {"min_distance": 2},
        {"hierarchy": {j: rng.choice(j, min(j, 2), replace=False).tolist() for j in free if j > N // 2}},
        {}, {}, {}, {},
    )[rng.integers(8)]  # fmt: skip
    if "groups" in limits and "one_per_group" not in limits:
        Y = Y[:, :1]
    return X, Y if Y.shape[1] > 1 else Y[:, 0], {**options, **limits}


def random_problems(count, seed):
    """(problem, k) for so many tables in which there is something to choose."""
    rng = np.random.default_rng(seed)
    made = 0
    while made < count:
        X, Y, options = random_table(rng)
        try:
            problem = SubsetProblem(X, Y, **options)
            k = check_size(problem, int(rng.integers(1, max(problem.form.n_columns, 2))))
        except ValueError:  # nothing varies, or rules leave nothing
            continue
        made += 1
        yield problem, k, rng


def assert_true(proof, problem, k, n_best, within=()):
    """What a proof says, against every support judged by QR."""
    energies = enumerate_energies(problem.form, k)
    regular = np.sort(energies[np.isfinite(energies)])
    yy = problem.form.yy
    assert proof.optimal
    assert proof.lower_bound == proof.energy == proof.energies[0]
    np.testing.assert_allclose(proof.energies, regular[:n_best], rtol=2e-9, atol=1e-18 * yy)
    found = problem.form.positions(proof.supports)
    np.testing.assert_allclose([problem.form.energy(s) for s in found], proof.energies, rtol=1e-12, atol=1e-20 * yy)
    assert len({tuple(s) for s in found.tolist()}) == len(found)
    best = all_supports(problem.form.n_columns, k)[energies <= regular[0] * (1 + 1e-9) + 1e-20 * yy]
    assert proof.support.tolist() == problem.form.candidates[best[0]].tolist()  # the first of equals
    for level, count in zip(within, proof.counts.tolist(), strict=True):
        bound = regular[0] * (1 + level)
        assert np.sum(regular <= bound * (1 - 1e-8)) <= count <= np.sum(regular <= bound * (1 + 1e-8) + 1e-18 * yy)


def check_many(count, seed, monkeypatch):
    """Proofs of random problems by both ways, against every support; how many problems of each sort there were."""
    sorts = {}
    for problem, k, rng in random_problems(count, seed):
        monkeypatch.setattr(proving, "_AT_ONCE", float(rng.choice([0.0, 1.0])))  # branch first, or enumerate
        n_best, within = int(rng.integers(1, 6)), (0.01, 0.2) if rng.random() < 0.3 else ()
        try:
            proof = prove(problem, k, n_best=n_best, within=within)
        except ValueError:
            assert not np.isfinite(enumerate_energies(problem.form, k)).any()
            continue
        assert_true(proof, problem, k, n_best, within)
        several, limits = problem.y.ndim > 1, problem.limits
        for sort in (proof.method, "several" * several, "rules" * limits.ruled, "groups" * limits.whole_groups):
            sorts[sort] = sorts.get(sort, 0) + 1
    return sorts


@pytest.mark.parametrize(("count", "seed"), [(120, 1), pytest.param(2000, 2, marks=pytest.mark.slow)])
def test_proofs_agree_with_enumeration(monkeypatch, count, seed):
    sorts = check_many(count, seed, monkeypatch)
    assert min(sorts[sort] for sort in ("enumeration", "branch and bound", "several", "rules", "groups")) > 8


def false_proofs(count, seed):
    """How many of so many proofs say something that is not true."""
    failed = 0
    for problem, k, _ in random_problems(count, seed):
        try:
            assert_true(prove(problem, k, n_best=3), problem, k, 3)
        except ValueError:
            pass  # no support is regular
        except AssertionError:
            failed += 1
    return failed


def test_a_bound_that_is_wrong_on_purpose_is_noticed(monkeypatch):
    """All columns together are said to leave 1 % more than they do: branches are cut that must not be."""
    right = branching._factor

    def wrong(columns, which):
        factor = right(columns, which)
        return None if factor is None else factor._replace(doubled=1.01 * factor.doubled)

    monkeypatch.setattr(branching, "_factor", wrong)
    monkeypatch.setattr(proving, "_AT_ONCE", 0.0)
    assert false_proofs(100, 3) > 2


def test_an_enumeration_that_explains_too_little_is_noticed(monkeypatch):
    """The targets are said to have products with the columns that are 1 % too small: what is best is ruled out."""
    right = exhaustive.Workspaces.__init__

    def wrong(work, asked):
        right(work, asked)
        work.B = 0.99 * work.B

    monkeypatch.setattr(exhaustive.Workspaces, "__init__", wrong)
    monkeypatch.setattr(proving, "_AT_ONCE", 1e9)
    assert false_proofs(30, 4) > 5


def test_nearly_dependent_columns():
    """Smooth spectra with some channels twice: most pairs are in doubt, and looked at again from the columns."""
    rng = np.random.default_rng(5)
    smooth = np.cumsum(np.cumsum(rng.normal(size=(30, 12)), axis=1), axis=1)
    X = np.column_stack([smooth, smooth[:, ::3]])
    problem = SubsetProblem(X, smooth[:, 3] - 2 * smooth[:, 4] + smooth[:, 5] + 1e-3 * rng.normal(size=30))
    for k in (2, 3, 4, 5):
        assert_true(prove(problem, k, n_best=10), problem, k, 10)


def dense(N=70, M=100, q=1):
    """All columns matter alike: a large tree."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(M, N))
    return SubsetProblem(X, (X.sum(axis=1, keepdims=True) + 10 * rng.normal(size=(M, q))).squeeze())


def sparse(rows, q=1):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(rows, 30))
    return SubsetProblem(X, (X[:, :6] @ rng.normal(size=(6, q)) + 0.5 * rng.normal(size=(rows, q))).squeeze())


@pytest.mark.parametrize(
    ("problem", "k", "method"),
    [
        (sparse(60), 6, "branch and bound"),
        (sparse(20), 4, "enumeration"),
        (sparse(80, q=3), 6, "branch and bound"),
        (sparse(25, q=2), 4, "enumeration"),
    ],
)
def test_threads_change_nothing(problem, k, method):
    one, *others = (prove(problem, k, n_best=4, within=[0.1], n_jobs=threads) for threads in (1, 2, 5))
    assert one.method == method
    assert one.looked == one.subsets if method == "enumeration" else one.looked < one.subsets / 20
    for other in others:
        np.testing.assert_array_equal(one.supports, other.supports)
        assert (one.counts.tolist(), one.looked, one.method) == (other.counts.tolist(), other.looked, other.method)


def test_a_tree_in_parts_says_the_same(monkeypatch):
    problem = dense(16, 60)
    monkeypatch.setattr(proving, "_AT_ONCE", 0.0)
    monkeypatch.setattr(proving, "_PATIENCE", 1e9)
    whole = prove(problem, 6, n_best=3, within=[0.02])
    monkeypatch.setattr(branching, "_FIRST_BRANCHES", 10)
    parts = prove(problem, 6, n_best=3, within=[0.02], n_jobs=2)
    assert whole.method == parts.method == "branch and bound"
    assert parts.supports.tolist() == whole.supports.tolist()
    assert parts.counts.tolist() == whole.counts.tolist()
    assert_true(parts, problem, 6, 3, [0.02])


@pytest.mark.parametrize("q", [1, 2])
def test_time_that_is_up_leaves_an_honest_bound(q):
    problem = dense(q=q)
    began = time.perf_counter()
    proof = prove(problem, 30, budget=0.3)
    assert time.perf_counter() - began < 10
    assert (proof.optimal, proof.note, proof.counts.size) == (False, "not enough time", 0)
    assert problem.form.energy(np.arange(70)) * (1 - 1e-9) <= proof.lower_bound < proof.energy
    assert 0 < proof.gap < 1
    proof = prove(dense(70, 60, q=q), 20, budget=5.0)  # more columns than rows: only zero is sure
    assert (proof.optimal, proof.method, proof.lower_bound, proof.gap) == (False, "none", 0.0, 1.0)
    assert proof.pruned == 0


def test_bounds_of_what_was_not_finished_hold(monkeypatch):
    """A stopped proof's bound is not above the true minimum, for both methods, wherever it stops."""
    rng = np.random.default_rng(9)
    X = rng.normal(size=(40, 16))
    problem = SubsetProblem(X, X[:, :6] @ np.ones(6) + 3 * rng.normal(size=40))
    monkeypatch.setattr(branching, "_FIRST_BRANCHES", 1)
    true = enumerate_energies(problem.form, 6).min()
    done_after = [0]

    def some(asked, pieces, do, stop, shares=None, tell=True):
        if not tell:  # the first few branches
            return [do(piece) for piece in pieces]
        done = [do(piece) if at < done_after[0] else False for at, piece in enumerate(pieces)]
        stop[0] = 1  # time is up
        return done

    monkeypatch.setattr(exhaustive, "run_pieces", some)
    monkeypatch.setattr(branching, "run_pieces", some)
    first = problem.form.positions(best_subset(problem, 6).best_support)
    for method in (branching.branch_supports, exhaustive.enumerate_supports):
        bounds = []
        for done_after[0] in (0, 1, 5, 10, 30, 60):
            asked = exhaustive.Question(problem.form, 6, limit=2 * problem.form.energy(first), threads=2)
            found = method(asked)
            bounds.append(found.bound)
            assert min([found.bound, *found.doubled[:1]]) <= 2 * true * (1 + 1e-12)
        assert max(bounds) > 0


def test_an_interrupt_gives_the_bound_so_far(monkeypatch):
    problem = dense()
    waited = exhaustive.wait

    def interrupt(*args, **options):
        waited(*args, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(exhaustive, "wait", interrupt)
    proof = prove(problem, 30, budget=60)
    assert (proof.optimal, proof.note) == (False, "interrupted")
    assert 0 < proof.lower_bound <= proof.energy
    assert threading.active_count() < 20


def test_independent_columns_that_a_search_does_not_find_are_found():
    """Columns are copies of one another up to parts in a million: few sets are not singular, and some searches fail."""
    rng = np.random.default_rng(21)
    hidden = rng.normal(size=(20, 3))
    X = np.repeat(hidden[:, :1], 9, axis=1) + 1e-6 * rng.normal(size=(20, 9)) * (np.arange(9) < 8)
    X = np.column_stack([X, hidden[:, 0] + 3e-6 * hidden[:, 1]])
    problem = SubsetProblem(X, hidden[:, 1])
    for k in (2, 3, 4, 5):
        try:
            assert_true(prove(problem, k), problem, k, 1)
        except RankTooSmall:
            assert not np.isfinite(enumerate_energies(problem.form, k)).any()


def test_equals_are_named_in_order_and_counted():
    rng = np.random.default_rng(11)
    X = rng.normal(size=(20, 8))
    X[:, 6], X[:, 7] = X[:, 2], X[:, 2]
    problem = SubsetProblem(X, X[:, 2] + X[:, 4] + 0.1 * rng.normal(size=20))
    proof = prove(problem, 2, n_best=4, within=[0.0])
    assert proof.supports[:3].tolist() == [[2, 4], [4, 6], [4, 7]]
    assert (proof.equals, proof.runner_up) == (3, 3)
    assert proof.counts.tolist() == [3]


def test_very_many_equals_are_not_lost_silently():
    X = np.repeat(np.random.default_rng(12).normal(size=(12, 3)), 60, axis=1)
    proof = prove(SubsetProblem(X, X[:, 0] + X[:, 60]), 2)
    assert proof.optimal
    assert proof.support.tolist() == [0, 60]
    proof = prove(SubsetProblem(X, X[:, 0] + X[:, 60] - X[:, 120]), 3, within=[0.0])
    assert proof.counts.tolist() == [60**3]
    assert "equal" in proof.note


def test_one_column_and_all_columns():
    rng = np.random.default_rng(13)
    X = rng.normal(size=(15, 5))
    problem = SubsetProblem(X, X[:, 3] + rng.normal(size=15))
    assert_true(prove(problem, 1, n_best=5, within=[0.5]), problem, 1, 5, [0.5])
    proof = prove(problem, 5)
    assert (proof.method, proof.subsets, proof.looked) == ("all columns", 1, 1)


def test_wide_tables_are_looked_at_in_blocks():
    rng = np.random.default_rng(14)
    X = rng.normal(size=(25, 700))
    y = X[:, 5] - X[:, 600] + rng.normal(size=25)
    wide, narrow = SubsetProblem(X, y, memory_budget=0), SubsetProblem(X, y)
    for k in (1, 2):
        there, here = prove(wide, k, n_best=5), prove(narrow, k, n_best=5)
        assert there.supports.tolist() == here.supports.tolist()
        np.testing.assert_allclose(there.energies, here.energies, rtol=1e-10)
    assert prove(wide, 3).method == "none"


def test_answers_are_proved_where_it_is_cheap():
    rng = np.random.default_rng(15)
    X = rng.normal(size=(30, 12))
    y = X[:, 1] - X[:, 7] + rng.normal(size=30)
    trace = best_subset(SubsetProblem(X, y), 2)
    assert isinstance(trace.proof, Proof)
    assert trace.proof.optimal
    assert best_subset(SubsetProblem(X, y > 0, loss="logistic"), 2).proof is None
    assert trace.proof.support.tolist() == trace.best_support.tolist()
    assert "proved" in repr(trace)
    assert best_subset(SubsetProblem(X, y), 2, prove=False).proof is None
    assert anneal(SubsetProblem(X, y), 2, polish=False, chains=2).proof is None
    model = SubsetRegressor(2, random_state=0).fit(X, y)
    assert model.proof_.optimal
    assert SubsetRegressor(2, random_state=0, prove=False).fit(X, y).proof_ is None
    wide = rng.normal(size=(20, 400))
    assert best_subset(SubsetProblem(wide, wide[:, 0] + y[:20]), 8, effort="quick").proof is None


def test_a_proof_finds_what_a_bad_search_missed(monkeypatch):
    rng = np.random.default_rng(16)
    X = rng.normal(size=(25, 14))
    problem = SubsetProblem(X, X @ rng.normal(size=14))
    monkeypatch.setattr("pairflip.search.best_subset.descended", lambda gram, support: support)
    from pairflip import Schedule

    short = Schedule.geometric(1e-9, 1e-8, steps=1, sweeps=1)  # one hot sweep
    found = [anneal(problem, 5, short, chains=1, seed=seed) for seed in range(5)]
    best = prove(problem, 5).energy
    np.testing.assert_allclose([trace.best_energy for trace in found], best)
    assert any("the proof found a better support" in trace.note for trace in found)


def test_a_proof_about_groups_says_so():
    rng = np.random.default_rng(20)
    X = rng.normal(size=(40, 9))
    groups = {"left": [0, 1, 2], "right": [3, 4], "third": [6, 7]}
    problem = SubsetProblem(X, X[:, 3] - X[:, 4] + X[:, 8] + 0.1 * rng.normal(size=40), groups=groups)
    proof = prove(problem, 2, n_best=4, n_jobs=2)
    assert (proof.columns, proof.n_candidates, proof.method) == (["right", problem.names[8]], 5, "enumeration")
    assert problem.columns_of(proof.support).tolist() == [3, 4, 8]
    assert problem.fit(problem.columns_of(proof.support)).energy == pytest.approx(proof.energy)
    assert proof_sentence(proof).startswith("Proved: no other 2 groups of these 5 fit better")
    assert not prove(problem, 2, budget=1e-9).optimal
