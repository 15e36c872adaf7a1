"""The table and its moves, paths, descents and kicks: against enumeration and QR."""

import threading
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from pairflip import SubsetProblem
from pairflip.compiled import entry
from pairflip.engines import RankTooSmall, WalkPlan
from pairflip.engines.base import Descent
from pairflip.engines.numba import NumbaEngine
from pairflip.engines.numba.searching import Searcher
from pairflip.engines.numba.table import CLOSED, GAIN, SUPPORT, S, add, empty, energy, form_of, gains, new_table, remove
from pairflip.engines.reference import ReferenceEngine
from pairflip.philox import chain_keys
from pairflip.testing import walk_one

ENGINE = NumbaEngine()
slow = pytest.mark.slow


def descent_plan(k, seed, kicks, chains=2, pool=3):
    """Chains that descend from random supports and are kicked."""
    keys = chain_keys(seed, k, None, np.arange(chains))
    return WalkPlan(k, np.zeros(0), np.zeros(0, np.int64), keys, descent=Descent(kicks, pool))


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


@entry
def moved(G, form, table, moves):
    """Add columns, or remove slots (negative numbers), one after the other; how many columns there are then."""
    empty(form, table)
    k = 0
    for move in moves:
        if move >= 0:
            add(form, table, k, move, G[move])
            k += 1
        else:
            remove(form, table, k, -1 - move)
            k -= 1
    gains(form, table, k, 1)
    return k, energy(form, table, k)


@pytest.mark.parametrize("targets", [1, 3])
def test_the_table_after_many_moves_is_that_of_its_support(targets):
    rng = np.random.default_rng(targets)
    X = rng.normal(size=(30, 12))
    form = SubsetProblem(X, X[:, :targets] + rng.normal(size=(30, targets)), ridge=0.7, always=[3]).form
    G, B, table = form.matrix, form.B, new_table(6, 11, targets)
    k, low = moved(G, form_of(form), table, np.array([0, 4, 7, -2, 2, 9, -1, 5, 1, -4, 10]))
    support = table.columns[SUPPORT, :k]
    assert k == 5
    P = np.linalg.inv(G[np.ix_(support, support)])
    C, W = B[:, support] @ P, P @ G[support]
    R, s = B - C @ G[support], 1.0 - np.einsum("kn,kn->n", G[support], W)
    np.testing.assert_allclose(table.A[:targets], R, atol=1e-12)
    np.testing.assert_allclose(table.A[targets : targets + k], W, atol=1e-12)
    np.testing.assert_allclose(table.Q[: targets + k, :k], np.vstack([-C, P]), atol=1e-12)
    np.testing.assert_allclose(table.values[S], s, atol=1e-12)
    assert low == pytest.approx(form.energy(np.sort(support)), rel=1e-12)
    np.testing.assert_array_equal(table.columns[CLOSED], np.isin(np.arange(11), support))
    for j in np.setdiff1d(np.arange(11), support):  # what column j brings in place of slot 1
        other = np.sort(np.append(np.delete(support, 1), j))
        without = form.energy(np.sort(np.delete(support, 1)))
        assert 0.5 * table.values[GAIN, j] == pytest.approx(without - form.energy(other), rel=1e-9)


def any_problem(seed):
    """A small problem with a random combination of everything that squared error knows, and a size."""
    rng = np.random.default_rng([32, seed])
    M, N, k = int(rng.integers(12, 26)), int(rng.integers(5, 11)), int(rng.integers(1, 5))
    X, y = autoregressive(rng, M, N, float(rng.choice([0.0, 0.9, 0.999])))
    targets = int(rng.choice([1, 1, 2, 4]))
    Y = y[:, None] * rng.normal(size=targets) + rng.normal(size=(M, targets))
    copies, constant = rng.random(N) < 0.15, rng.random(N) < 0.08
    X[:, copies] = X[:, rng.integers(0, N, np.count_nonzero(copies))] * rng.choice([1.0, -3.0])
    X[:, constant] = 2.0
    X[:, rng.integers(N)] = X @ rng.normal(size=N) * (rng.random() < 0.3) + rng.normal(size=M)
    X *= 10.0 ** rng.choice([0, 0, 0, -150, 150], N)
    names, how = [f"x{j}" for j in range(N)], {}
    if rng.random() < 0.3:
        how["sample_weight"] = np.where(rng.random(M) < 0.1, 0.0, rng.exponential(size=M))
    if rng.random() < 0.2:
        how["always"] = [int(rng.integers(N))]
    if rng.random() < 0.2:
        how["center"] = rng.choice(["global", "none"]) if rng.random() < 0.5 else "fold"
        how["center"] = None if how["center"] == "none" else how["center"]
    kind = rng.integers(6)
    if kind == 1:
        how["min_distance"] = int(rng.integers(2, 4))
    elif kind == 2:
        how |= {"groups": {"a": names[:3], "b": names[3:5]}, "one_per_group": True}
    elif kind == 3:
        how["hierarchy"] = {names[0]: names[2:4], names[4]: [names[0]]}
    elif targets == 1 and seed % 3 == 0:
        how["memory_budget"] = 0
    Y = Y[:, 0] if targets == 1 else Y
    problem = SubsetProblem(X, Y, names=names, **how)
    return problem.with_shrinkage(float(rng.choice([0.1, 1.0]))) if rng.random() < 0.2 else problem, k


@pytest.mark.parametrize("first", [*range(0, 200, 50), *(pytest.param(i, marks=slow) for i in range(200, 1000, 50))])
def test_any_combination_is_searched_to_the_lowest_of_all_supports(first):
    for seed in range(first, first + 50):
        try:
            problem, k = any_problem(seed)
        except ValueError:  # nothing varies, or a target is explained by what is always in the model
            continue
        form = problem.form if seed % 4 else problem.held_out([3, 8, 11])
        k = min(k, form.n_columns - 1)
        if k < 1:
            continue
        energies = [form.energy(np.array(support)) for support in combinations(range(form.n_columns), k)]
        plan = descent_plan(k, seed, 60, chains=1, pool=12)
        if not np.isfinite(min(energies)):
            with pytest.raises(RankTooSmall):
                walk_one(ENGINE, form, plan)
            continue
        walked = walk_one(ENGINE, form, plan)
        found = form.energy(walked.support[0])
        assert found <= min(energies) * (1 + 1e-9) + 1e-12 * form.yy, f"seed {seed}"
        assert walked.final_energy[0] == pytest.approx(found, abs=1e-9 * form.yy), f"seed {seed}"


def test_a_search_does_not_depend_on_what_its_memory_was_used_for_before():
    form = SubsetProblem(*spectra(np.random.default_rng(2), 40, 60, 1e-3)).form
    used, new = Searcher(form, 8, lambda _: None), Searcher(form, 8, lambda _: None)
    used.path(8, 4)
    used.chain(3, np.array([5, 6], np.uint32), Descent(20), None)
    key = np.array([1, 2], np.uint32)
    one, other = used.chain(7, key, Descent(30), None), new.chain(7, key, Descent(30), None)
    np.testing.assert_array_equal(one.support, other.support)
    assert (one.energy, one.nanoseconds) == (other.energy, other.nanoseconds)


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
    form = SubsetProblem(X, y, memory_budget=memory).form
    walked = walk_one(ENGINE, form, descent_plan(5, 1, 0, chains=6))
    for support in [*walked.support, *ENGINE.path(form, 5)[0]]:
        order = np.concatenate([support, np.setdiff1d(np.arange(60), support)])
        assert ReferenceEngine().flip_energies(form, order, support.size).min() >= 0.0


@pytest.mark.parametrize("memory", [2**28, 0])
def test_chains_are_the_same_for_any_number_of_threads(memory):
    rng = np.random.default_rng(1)
    form = SubsetProblem(*autoregressive(rng, 30, 80, 0.999), memory_budget=memory).form
    plan = descent_plan(5, 2, 20, chains=9)
    alone = walk_one(ENGINE, form, plan)
    for n_jobs in (2, 3):
        together = walk_one(ENGINE, form, plan, n_jobs=n_jobs)
        for field in ("support", "best_support", "final_energy"):
            np.testing.assert_array_equal(getattr(together, field), getattr(alone, field))
    for c in (0, 4, 8):
        single = walk_one(ENGINE, form, replace(plan, keys=plan.keys[c : c + 1]))
        np.testing.assert_array_equal(single.support[0], alone.support[c])


def test_a_cache_of_few_rows_changes_nothing(monkeypatch):
    rng = np.random.default_rng(7)
    X, y = autoregressive(rng, 30, 50, 0.9)
    plan = descent_plan(5, 2, 20)
    expected = walk_one(ENGINE, SubsetProblem(X, y).form, plan)
    monkeypatch.setattr("pairflip.engines.numba.searching.ROWS_BYTES", 0)
    form = SubsetProblem(X, y, memory_budget=0).form
    np.testing.assert_array_equal(walk_one(ENGINE, form, plan).support, expected.support)
    for ours, theirs in zip(ENGINE.path(form, 8)[0], ENGINE.path(SubsetProblem(X, y).form, 8)[0], strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_scans_are_heard_of(n_jobs):
    form, heard = SubsetProblem(*autoregressive(np.random.default_rng(0), 20, 10, 0.9)).form, []
    walk_one(ENGINE, form, descent_plan(3, 0, 30, chains=4), n_jobs=n_jobs, tick=heard.append)
    assert sum(heard) == 4 * 31  # rounds
    assert min(heard) >= 0
    heard.clear()
    ENGINE.path(form, 4, tick=heard.append)
    assert sum(heard) >= 1


class Enough(Exception):
    pass


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_exception_from_tick_stops_all_threads(n_jobs, monkeypatch):
    monkeypatch.setattr("pairflip.engines.numba.searching._SLICE_NS", 1e5)  # so that tick is called often
    rng = np.random.default_rng(2)
    form = SubsetProblem(*autoregressive(rng, 60, 300, 0.9)).form
    before, heard = threading.active_count(), []

    def tick(scans):
        heard.append(scans)
        if len(heard) == 20:
            raise Enough

    with pytest.raises(Enough):
        walk_one(ENGINE, form, descent_plan(8, 0, 100_000, chains=8), n_jobs=n_jobs, tick=tick)
    assert threading.active_count() == before
    assert len(heard) < 2000  # of more than a hundred thousand
    heard.clear()
    with pytest.raises(Enough):
        ENGINE.path(form, 60, tick=tick)


def test_a_path_ends_where_columns_run_out_and_may_take_all():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(20, 6)), rng.normal(size=20)
    assert [s.tolist() for s in ENGINE.path(SubsetProblem(X, y).form, 6)[0]][-1] == list(range(6))
    assert len(ENGINE.path(SubsetProblem(X, y).form, 5, passes=4)[0]) == 5
    np.testing.assert_array_equal(
        walk_one(ENGINE, SubsetProblem(X, y).form, descent_plan(6, 0, 4)).support, [range(6)] * 2
    )
    twice = SubsetProblem(np.hstack([X, X]), y).form
    for passes in (1, 2, 5):
        path, _ = ENGINE.path(twice, 11, passes=passes)
        assert [support.size for support in path] == list(range(1, 7))
        assert {j % 6 for j in path[-1].tolist()} == set(range(6))
    assert ENGINE.path(SubsetProblem(X, y).form, 1, passes=3)[0][0].size == 1


@pytest.mark.parametrize("loss", ["logistic", "poisson"])
def test_a_descent_in_fitted_energies_ends_where_no_exchange_lowers_them(loss):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(80, 20)) + rng.normal(size=(80, 1))
    eta = 0.6 * X[:, :6] @ rng.normal(size=6)
    y = eta + rng.logistic(size=80) > 0 if loss == "logistic" else rng.poisson(np.exp(np.clip(eta, -3, 2)))
    form = SubsetProblem(X, y, loss=loss).form
    (walked,) = ENGINE.walk([(form, descent_plan(4, 1, kicks=0))])
    for support, low in zip(walked.support, walked.final_energy, strict=True):
        others = np.setdiff1d(np.arange(20), support)
        exchanged = [np.sort([*np.delete(support, slot), j]) for slot in range(4) for j in others]
        assert low <= min(map(form.energy, exchanged)) * (1 + 1e-9)
