"""Sampling at finite temperature: against sums over all supports, the literal engine, and itself."""

from itertools import combinations

import numpy as np
import pytest

from pairflip import SubsetProblem, datasets, sample, temper
from pairflip.engines.exchange import LadderPlan, run_ladder
from pairflip.engines.reference import LiteralWalkers, ReferenceEngine
from pairflip.philox import chain_keys


def table(seed, n=10, m=25, correlation=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n)) @ np.linalg.cholesky((1 - correlation) * np.eye(n) + correlation).T
    return SubsetProblem(X, X[:, :3] @ [1.0, -1.0, 0.5] + rng.normal(size=m))


def exact(problem, k, beta):
    """Inclusion probabilities and mean energy, from sums over all supports."""
    supports = np.array(list(combinations(range(problem.n_columns), k)))
    E = np.array([problem.energy(s) for s in supports])
    w = np.exp(-beta * (E - E.min()))
    p = w / w.sum()
    return np.bincount(supports.ravel(), np.repeat(p, k), problem.n_columns), float(p @ E)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("beta", [0.0, 0.3, "noise"])
def test_one_temperature_gives_the_sums_over_all_supports(k, beta):
    far, of = 0, 0
    for seed in range(3):
        problem = table(seed)
        found = sample(problem, k, beta, sweeps=3000, seed=seed)
        p, energy = exact(problem, k, found.betas[0])
        z = (found.inclusion_probability - p) / found.inclusion_se
        far, of = far + int((np.abs(z) > 2).sum()), of + z.size
        mean, error = found.energy
        assert abs(mean[0] - energy) < 4 * error[0]
        assert np.abs(found.inclusion_probability - p).max() < 0.05
        assert found.inclusion_probability.sum() == pytest.approx(k)
    assert far <= 0.17 * of  # 5 % are expected


def test_a_ladder_gives_them_at_every_temperature():
    problem = table(3, n=12, correlation=0.9)
    found = temper(problem, 3, sweeps=20_000, chains=2, seed=1)
    assert found.betas[0] == 0.0
    for beta in found.betas:
        p, energy = exact(problem, 3, beta)
        told, error = found.inclusion(beta)
        assert np.all(np.abs(told - p) < 4.5 * error)
        at = found.place(beta)
        assert abs(found.energy[0][at] - energy) < 4.5 * found.energy[1][at]
    assert (found.exchange > 0.2).all()
    assert found.exchange.max() < 2.5 * found.exchange.min()
    assert (found.round_trips > 10).all()


def test_exchanges_keep_the_product_of_the_distributions():
    """All pairs of states of two walkers on five levels: one attempt keeps exp(-b1 E1 - b2 E2) to the last digits."""
    E, (b1, b2) = np.array([0.0, 0.7, 1.0, 2.5, 2.5]), (0.4, 1.9)
    pi = np.exp(-b1 * E)[:, None] * np.exp(-b2 * E)[None]
    T = np.minimum(1.0, np.exp((b2 - b1) * (E[None] - E[:, None])))
    after = pi * (1 - T) + (pi * T).T
    np.testing.assert_allclose(after, pi, rtol=1e-13)

    # ... and that is what is done: walkers that stand still, energies given.
    key = chain_keys(0, 2, None, [5])[0]
    yes = 0
    for a, b in ((3, 1), (1, 3)):
        stay = [E[a], E[b]]
        plan = LadderPlan(1, np.array([b1, b2]), 4000, 1, np.stack([[key, key]]))
        found = run_ladder(plan, 0, lambda r, beta, stay=stay: (np.zeros((2, 1)), stay, 0))
        # Walkers trade places again and again, in every other round.
        first = found.energies[0] == E[a]
        went = np.mean(first[1::2][:-1] & ~first[2::2][: len(first[1::2][:-1])])
        yes += went
        assert found.tried[0] == 2000
    up, down = min(1, np.exp((b2 - b1) * (E[1] - E[3]))), 1.0
    rate = 2 * up * down / (up + down)  # of all attempts, in the long run
    assert found.traded[0] / found.tried[0] == pytest.approx(rate, abs=0.03)


def test_exchanges_leave_each_temperature_its_energies():
    """After few flips: whoever trades places with the wrong sign is off by more than 10 %."""
    problem, k, betas = table(5, n=8), 2, np.array([0.0, 1.5])
    keys = chain_keys(1, k, None, np.arange(2))
    walkers = LiteralWalkers(ReferenceEngine(), problem.form, k, keys, 8)
    found = run_ladder(LadderPlan(k, betas, 1200, 8, keys[None]), 0, walkers.walk)
    _, energy = exact(problem, k, betas[1])
    assert abs(found.energies[1].mean() - energy) < 0.05 * energy


@pytest.mark.parametrize("correlation", [0.3, 0.99])
def test_the_fast_engine_walks_as_the_literal_one(correlation):
    problem, k = table(2, n=9, correlation=correlation), 3
    one = sample(problem, k, 0.7, sweeps=40, chains=2, seed=4, engine="reference")
    two = sample(problem, k, 0.7, sweeps=40, chains=2, seed=4, engine="numba")
    np.testing.assert_array_equal(one.supports, two.supports)
    np.testing.assert_allclose(one.energies, two.energies, rtol=1e-8)
    betas = [0.0, 0.2, 0.8, 2.0]
    one = temper(problem, k, betas, sweeps=60, thin=2, chains=1, seed=4, engine="reference")
    two = temper(problem, k, betas, sweeps=60, thin=2, chains=1, seed=4, engine="numba")
    np.testing.assert_array_equal(one.supports, two.supports)
    np.testing.assert_array_equal(one.exchange, two.exchange)
    np.testing.assert_array_equal(one.acceptance, two.acceptance)


def test_threads_do_not_matter_and_more_sweeps_go_on():
    data = datasets.make_planted(N=60, seed=1)
    problem = SubsetProblem(data.X, data.y)
    one, two = (temper(problem, 5, sweeps=400, n_jobs=jobs, chains=3, seed=2) for jobs in (1, 2))
    np.testing.assert_array_equal(one.supports, two.supports)
    short = sample(problem, 5, 3.0, sweeps=50, burn_in=10, seed=1)
    long = sample(problem, 5, 3.0, sweeps=90, burn_in=10, seed=1)
    np.testing.assert_array_equal(short.supports, long.supports[:, :, :50])


def test_energies_come_from_the_columns_however_alike_these_are():
    data = datasets.make_correlated(M=40, N=20, k=3, correlation=0.999999, snr=5.0, seed=1)
    for ridge in (0.0, 0.1):
        problem = SubsetProblem(data.X, data.y, ridge=ridge)
        for found in (sample(problem, 3, sweeps=40, chains=2), temper(problem, 3, [0.0, 50.0], sweeps=40)):
            drawn = found.supports.reshape(-1, 3)
            exact = [problem.form.energy(support.astype(np.int64)) for support in drawn]
            np.testing.assert_allclose(found.energies.ravel(), exact, rtol=1e-10)


def test_words_of_a_sample():
    problem = table(0)
    found = sample(problem, 2, sweeps=500)
    (names, share), *_ = found.most_probable(3)
    assert len(names) == 2
    a, b, together = found.pairs(1)[0]
    assert ([a, b], together) == (names, share)  # of two columns, pairs are supports
    tree = found.to_datatree()
    assert tree["posterior"]["energy"].dims == ("chain", "draw")
    assert found.to_pandas().shape == (10, 3)
    assert "Samples(k=2" in repr(found)
