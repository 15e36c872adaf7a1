"""Delicate flips: the compiled engine against the reference where the Gram matrix alone would decide wrongly."""

import numpy as np
import pandas as pd
import pytest

import pairflip.testing as suite
from pairflip import Schedule, SubsetProblem, anneal, datasets
from pairflip.engines.numba import NumbaEngine
from pairflip.engines.numba.algebra import rounding
from pairflip.engines.numba.clock import OK, SQUARE, TABLE, Output, Plan, new_clock
from pairflip.engines.numba.walk import advance
from pairflip.engines.numba.wiring import new_memory, system_of
from pairflip.engines.reference import ReferenceEngine
from pairflip.testing import delicate_cases

WAYS = ("auto", "square", "table")
ENGINES = (ReferenceEngine(), *(NumbaEngine(way) for way in WAYS))
names = [f"{engine.name} {getattr(engine, 'way', '')}" for engine in ENGINES]


@pytest.mark.parametrize("each", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("way", WAYS)
def test_delicate_flips_are_decided_as_the_reference_decides_them(way, each):
    suite.check_delicate(NumbaEngine(way), delicate_cases(each))


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_what_is_clearly_singular_is_refused_and_nothing_else(way):
    suite.check_singular(NumbaEngine(way))


@pytest.mark.parametrize("engine", ENGINES, ids=names)
def test_supports_that_span_the_same_space_are_exchanged_freely_at_any_temperature(engine):
    """Any three of these ten columns span the same space, so only rounding could refuse a flip between them."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(20, 3)) @ rng.normal(size=(3, 10))
    gram = SubsetProblem(X, X[:, 0] + rng.normal(size=20), center=None).gram
    plan = suite.make_plan(gram, 3, [1.0, 1e10, 1e16], 200, chains=2)
    np.testing.assert_array_equal(suite.walk_one(engine, gram, plan).accepted, 200)


@pytest.mark.parametrize("engine", ENGINES, ids=names)
def test_delicate_chains_report_every_flip_and_every_step(engine):
    case, heard = delicate_cases()[0], []
    plan = suite.make_plan(case.gram, case.k, [0.0, 30.0, 1e6], [70, 300, 200], chains=3)
    walked = suite.walk_one(engine, case.gram, plan, tick=heard.append)
    assert sum(heard) == 3 * 570
    assert walked.energy[:, -1].max() <= walked.energy[:, 0].min()
    exact = [case.gram.energy(support) for support in walked.support]
    np.testing.assert_allclose(walked.final_energy, exact, rtol=1e-10)


def true_changes(gram, order, k):
    """Delta E and s' (k, N - k) of all flips by QR, without forming G."""
    X, y = gram.columns.T, gram.target
    Q, R = np.linalg.qr(X[:, order[:k]])
    A = Q @ np.linalg.inv(R).T
    A /= np.linalg.norm(A, axis=0)
    new = X[:, order[k:]]
    q = new - Q @ (Q.T @ new)
    q -= Q @ (Q.T @ q)
    along, left = A.T @ new, (A.T @ y)[:, None]
    s, r = np.sum(q**2, axis=0) + along**2, q.T @ y + along * left
    return 0.5 * (left**2 - r**2 / s), s


def small_steps(gram, plan, way, flips=400):
    """The chain's memory and clock after every `flips` flips, up to its first delicate one."""
    chain, clock = new_memory(gram, plan.k), new_clock(0, 1)
    coldest = np.minimum.accumulate(plan.betas[::-1])[::-1].copy()
    number = TABLE if way == "table" else SQUARE
    kernel_plan = Plan(plan.betas, np.cumsum(plan.flips), coldest, plan.keys, number, 1.0, 512)
    shape, ends = (1, plan.betas.size), np.zeros((1, plan.k), np.int64)
    counts, unrecorded = np.zeros(shape, np.int64), (np.zeros((0, 0, plan.k), np.int32), np.zeros((0, 0)))
    output = Output(np.zeros(shape), counts, ends, ends.copy(), np.zeros(1), np.zeros(1, np.int64), *unrecorded)
    while advance(system_of(gram), chain, clock, kernel_plan, output, flips)[0] == OK and clock["chain"][0] == 0:
        yield chain, clock


@pytest.mark.parametrize("way", ["square", "table"])
@pytest.mark.parametrize(("correlation", "k"), [(0.0, 5), (0.0, 40), (0.9, 20), (0.99, 8), (0.999, 30), (0.9999, 6)])
def test_the_rounding_of_the_gram_algebra_stays_far_below_its_bound(way, correlation, k):
    """A tenth of the bound, so that the constants (decision 018) have room for tables that are not tried here."""
    data = datasets.make_correlated(M=100, N=120, k=5, correlation=correlation, snr=5.0, seed=1)
    gram = SubsetProblem(data.X, data.y).gram
    plan = suite.make_plan(gram, k, [1.0, 30.0, 300.0, 3e3], 2000)
    seen = 0
    for chain, clock in small_steps(gram, plan, way):
        order = chain.order.astype(int)
        inside, outside, P, x = order[:k], order[k:], chain.P, chain.x
        if way == "table":
            W, r, s = chain.W[:, outside], chain.r[outside], chain.s[outside]
        else:
            G = gram.matrix[np.ix_(inside, outside)]
            W, r = P @ G, gram.b[outside] - x @ G
            s = gram.diagonal[outside] - np.sum(G * W, axis=0)
        p, x_i = np.diag(P)[:, None], x[:, None]
        r, s = r + x_i * W / p, s + W**2 / p
        delta, (expected, s_expected) = 0.5 * (x_i**2 / p - r**2 / s), true_changes(gram, order, k)
        inflated = float(clock["inflated"][0])
        tau = inflated * rounding.py_func(inflated, float(clock["error"][0]))
        told = s > 2e-10 + 4.0 * tau
        bound = tau * (1.5 * gram.yy + (r / s) ** 2)
        assert (np.abs(delta - expected) < 0.1 * bound)[told].all()
        assert np.abs(s - s_expected).max() < tau
        seen += 1
    assert seen > 3 or correlation == 0.9999  # the most collinear table soon meets a delicate flip


TABLES = {
    "aquatictox": ("aquatictox/aquatictox.csv", "target_Activity"),
    "tecator": ("tecator/tecator.csv", "target_fat"),
    "gasoline": ("gasoline/gasoline.csv", "target_octane"),
}
slow = pytest.mark.slow
SHORT = Schedule.geometric(3.0, 1e13, steps=12, sweeps=1, unit="greedy")


def real_problem(folder, name):
    path, target = TABLES[name]
    table = pd.read_csv(folder / path)
    X = table.drop(columns=[column for column in table if column.startswith("target")])
    return SubsetProblem(X, table[target])


def same_answer(trace, other):
    np.testing.assert_array_equal(trace.best_support, other.best_support)
    assert trace.best_energy == pytest.approx(other.best_energy, rel=1e-9)
    np.testing.assert_array_equal(trace.supports, other.supports)
    np.testing.assert_allclose(trace.energies, other.energies, rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "k"),
    [
        ("aquatictox", 17),
        pytest.param("aquatictox", 33, marks=slow),
        pytest.param("aquatictox", 70, marks=slow),
        ("tecator", 6),
        ("tecator", 20),
        ("gasoline", 10),
    ],
)
def test_the_compiled_engine_answers_as_the_reference_on_real_tables(shared_data, name, k):
    problem = real_problem(shared_data, name)
    expected = anneal(problem, k, SHORT, chains=2, engine="reference")
    for way in WAYS:
        same_answer(anneal(problem, k, SHORT, chains=2, engine=NumbaEngine(way)), expected)


@pytest.mark.parametrize(
    ("name", "k", "chains"),
    [
        ("aquatictox", 17, 8),
        ("tecator", 20, 8),
        pytest.param("aquatictox", 17, None, marks=slow),
        pytest.param("aquatictox", 33, None, marks=slow),
        pytest.param("aquatictox", 70, None, marks=slow),
        pytest.param("tecator", 6, None, marks=slow),
        pytest.param("tecator", 20, None, marks=slow),
        pytest.param("gasoline", 10, None, marks=slow),
    ],
)
def test_all_ways_give_the_same_answer_on_real_tables(shared_data, name, k, chains):
    problem = real_problem(shared_data, name)
    auto, square, table = (anneal(problem, k, chains=chains, engine=NumbaEngine(way)) for way in WAYS)
    same_answer(square, auto)
    same_answer(table, auto)


def test_a_chain_that_is_interrupted_among_delicate_flips_goes_on_as_if_it_was_not(monkeypatch):
    data = datasets.make_correlated(M=60, N=30, k=3, correlation=1 - 1e-9, snr=5.0, seed=1)
    gram = SubsetProblem(data.X, data.y).gram
    plan = suite.make_plan(gram, 4, [1.0, 30.0, 300.0], 600)
    (whole,) = NumbaEngine().walk([(gram, plan)])
    monkeypatch.setattr("pairflip.engines.numba._SLICE_NS", 1.0)  # a flip or so at a time
    (parts,) = NumbaEngine().walk([(gram, plan)])
    assert np.isfinite(parts.energy).all()
    np.testing.assert_array_equal(whole.support, parts.support)
    np.testing.assert_array_equal(whole.accepted, parts.accepted)
    np.testing.assert_allclose(whole.energy, parts.energy, rtol=1e-12)
