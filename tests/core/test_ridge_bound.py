"""The ridge bound against every support, one by one: bounds, screening, proofs, and what happens when it is wrong."""

import time
from dataclasses import replace

import numpy as np
import pytest

import pairflip.search.prove as proving
import pairflip.search.ridge_bound as bounding
from pairflip import SubsetProblem, prove
from pairflip.search.exhaustive import Question, whole_bound
from pairflip.search.ridge_bound import RidgeTree, ridge_bound, ridge_form
from pairflip.testing.exact import all_supports, enumerate_energies


def random_table(seed, N=None):
    """Independent, correlated, duplicated, nearly collinear columns; more columns than rows."""
    rng = np.random.default_rng(seed)
    N = int(rng.integers(4, 9)) if N is None else N
    M = int(rng.integers(N + 2, 3 * N)) if seed % 5 != 4 else max(4, N - 2)
    X = rng.normal(size=(M, N))
    if seed % 5 == 1:
        X = rng.normal(size=(M, 2)) @ rng.normal(size=(2, N)) + 0.3 * X
    if seed % 5 == 2:
        X[:, N // 2 :] = X[:, : N - N // 2]
    if seed % 5 == 3:
        X = np.cumsum(0.05 * X, axis=1) + X[:, :1]
    return X, X @ rng.normal(size=N) * (rng.random(N) < 0.5).sum() / N + rng.normal(size=M), rng


def random_problem(seed, N=None):
    X, y, rng = random_table(seed, N)
    ridge = 10.0 ** rng.uniform(-3, 1)
    options = {"sample_weight": rng.uniform(0.2, 2.0, len(y))} if seed % 3 == 0 else {}
    if seed % 4 == 0:
        options["always"] = [0]
    if seed % 2:
        return SubsetProblem(X, y, ridge=ridge * len(y), **options)
    return SubsetProblem(X, y, **options).with_shrinkage(ridge)


def untrue(seed, larger=1.0):
    """What the bound of a random problem says wrongly; `larger` multiplies the diagonal, which makes it wrong."""
    gram, rng = random_problem(seed).form, np.random.default_rng([seed, 1])
    n = gram.n_columns
    k = int(rng.integers(1, n))
    shuffled = rng.permutation(n)
    fixed = np.sort(shuffled[: rng.integers(0, k)])
    free = np.sort(shuffled[fixed.size : n - rng.integers(0, n - k)])
    supports, doubled = all_supports(n, k), 2.0 * enumerate_energies(gram, k)
    inside = np.array([set(fixed) <= set(s) and set(s) <= {*fixed, *free} for s in supports.tolist()])
    supports, doubled = supports[inside], doubled[inside]
    upper = np.sort(doubled)[min(int(rng.integers(0, 4)), doubled.size - 1)] * (1 + 1e-9)
    form = ridge_form(gram.columns, gram.target, gram.penalty)
    form = replace(form, d=form.d * larger)
    start = rng.random(free.size) if seed % 7 == 0 else None
    said = ridge_bound(form, k, upper, fixed, free, start, steps=(1, 3, 40, 40)[seed % 4])
    wrong = ["bound"] * bool(said.bound > doubled.min() * (1 + 1e-12))
    for support in supports[doubled <= upper]:
        wrong += ["dropped"] * bool(np.isin(free[said.dropped], support).any())
        wrong += ["taken"] * bool(not np.isin(free[said.taken], support).all())
    return wrong, said.dropped.sum() + said.taken.sum(), said.bound / doubled.min()


def test_bound_and_screening_are_true_of_500_problems_and_say_something():
    found = [untrue(seed) for seed in range(500)]
    assert [wrong for wrong, _, _ in found if wrong] == []
    assert np.mean([screened > 0 for _, screened, _ in found]) > 0.3
    assert np.median([tight for _, _, tight in found]) > 0.9


@pytest.mark.parametrize("larger", [1.01, 1.3])
def test_a_diagonal_that_is_too_large_is_noticed(larger):
    found = {word for seed in range(100) for word in untrue(seed, larger)[0]}
    assert found >= ({"bound"} if larger < 1.1 else {"bound", "dropped"})


def test_diagonal_leaves_a_positive_semidefinite_matrix():
    for seed in range(40):
        gram = random_problem(seed).form
        form = ridge_form(gram.columns, gram.target, gram.penalty)
        left = gram.matrix - form.V @ form.V.T - np.diag(form.d)
        assert np.linalg.eigvalsh(left)[0] > -1e-14
        assert np.all(form.d > 0.99 * gram.penalty)
        if gram.n_columns < gram.n_rows and seed % 5 == 0:
            assert np.all(form.d > gram.penalty + 1e-4)


@pytest.fixture
def only_ridge(monkeypatch):
    """Proofs by the ridge bound alone, whose tree goes down to a few columns."""

    def method(asked, budget):
        tree = RidgeTree(asked)
        tree.walk(asked.until)
        return tree.gathered(), "ridge bound"

    monkeypatch.setattr(proving, "_by_best_method", method)
    monkeypatch.setattr(bounding, "LARGEST", 4)


def sorted_supports(problem, k):
    """All supports with their energies, the lowest first; equal ones in lexicographic order."""
    energies, supports = enumerate_energies(problem, k), problem.candidates[all_supports(problem.form.n_columns, k)]
    order = np.argsort(energies, kind="stable")
    steps = np.concatenate([[0], np.cumsum(np.diff(energies[order]) > 1e-9 * energies[order][1:])])
    order = order[np.lexsort((order, steps))]
    return supports[order], energies[order]


def disagreements(seeds):
    wrong = 0
    for seed in seeds:
        problem = random_problem(seed, N=9)
        k = 2 + seed % 4
        supports, energies = sorted_supports(problem, k)
        rank = (0, 3, len(energies) // 2)[seed % 3]
        first = supports[rank]
        proof = prove(problem, k, incumbent=first, n_best=6, within=(0.1,))
        assert proof.optimal
        assert proof.method == "ridge bound"
        n = len(proof.energies)
        same = n == 6 and np.array_equal(proof.supports, supports[:n])
        same = same and np.allclose(proof.energies, energies[:n], rtol=1e-9, atol=0)
        wrong += not (same and proof.counts[0] == np.count_nonzero(energies <= energies[0] * 1.1 * (1 + 1e-9)))
    return wrong


@pytest.mark.parametrize(
    "tables", [range(10), pytest.param(range(10, 24), marks=pytest.mark.slow)], ids=["few", "more"]
)
def test_proofs_agree_with_every_support_one_by_one(only_ridge, tables):
    assert disagreements(tables) == 0


def test_proofs_by_a_wrong_bound_do_not(only_ridge, monkeypatch):
    monkeypatch.setattr(bounding, "ridge_form", lambda *table: replace(form := ridge_form(*table), d=2.0 * form.d))
    assert disagreements(range(6)) > 0


def planted(M=200, N=1000, k=7):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(M, N))
    return SubsetProblem(X, X[:, :k] @ np.linspace(1.0, 0.5, k) + 1.5 * rng.normal(size=M)).with_shrinkage(1.0)


@pytest.mark.parametrize("k", [5, 8, 10])
def test_a_thousand_columns_are_proved_in_seconds(k):
    proof = prove(planted(), k, budget=60)
    assert proof.optimal
    assert proof.method == "ridge bound"
    assert proof.looked < 1e-9 * proof.subsets


def test_time_that_is_up_leaves_the_lowest_open_bound():
    problem = planted(M=60, N=300)
    limit = 2.0 * prove(problem, 8, budget=60).energy
    tree = RidgeTree(Question(problem.form, 8, 1, limit))
    bounds = []
    while not tree.walk(most=tree.nodes + 1):
        bounds.append(tree.gathered().bound)
        assert not tree.gathered().complete
    assert len(bounds) > 3
    assert np.all(np.diff(bounds) >= 0)
    assert 0.5 * limit < bounds[0] < bounds[-1] <= limit * (1 + 1e-8)
    assert tree.gathered().complete
    late = RidgeTree(Question(problem.form, 8, 1, limit))
    assert not late.walk(until=time.perf_counter() - 1.0)
    assert late.gathered().bound == 0.0


def test_ctrl_c_gives_the_bound_so_far(monkeypatch):
    problem, calls = planted(M=60, N=300), []

    def interrupted(*given):
        calls.append(1)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return ridge_bound(*given)

    monkeypatch.setattr(bounding, "ridge_bound", interrupted)
    proof = prove(problem, 8, budget=60)
    assert not proof.optimal
    assert proof.note == "interrupted"
    assert proof.method == "ridge bound"
    assert 0.8 * proof.energy < proof.lower_bound < proof.energy


def test_a_fold_and_a_wide_table_are_proved_too(only_ridge):
    X, y, _ = random_table(0, N=9)
    problem = SubsetProblem(X, y, memory_budget=8).with_shrinkage(0.3)
    assert not problem.form.dense
    supports, _ = sorted_supports(problem, 3)
    proof = prove(problem, 3)
    np.testing.assert_array_equal(proof.support, supports[0])
    whole = SubsetProblem(X, y).with_shrinkage(0.3)
    gram = whole.loss.without_rows(whole, np.array([1, 4]))
    tree = RidgeTree(Question(gram, 3, 1, 2.0 * gram.energy(np.array([0, 1, 2]))))
    assert tree.walk()
    assert 0.5 * tree.gathered().doubled[0] == pytest.approx(enumerate_energies(gram, 3).min(), rel=1e-10)


def test_an_enumeration_that_is_not_finished_keeps_the_bound_of_the_tree(monkeypatch):
    walk = RidgeTree.walk
    monkeypatch.setattr(RidgeTree, "walk", lambda self, until: walk(self, most=1))
    monkeypatch.setattr(proving, "enumeration_cost", lambda gram, k: 0.01)
    problem = planted(M=60, N=300)
    proof = prove(problem, 8, budget=0.2)
    tree = RidgeTree(Question(problem.form, 8, 1, 2.0 * proof.energy))
    tree.walk(np.inf)
    assert (proof.optimal, proof.method) == (False, "enumeration")
    assert proof.lower_bound == pytest.approx(0.5 * tree.bound, rel=1e-6)
    assert proof.lower_bound > 1.5 * 0.5 * whole_bound(problem.form)
