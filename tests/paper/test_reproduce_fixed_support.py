"""The annealing of section III: its energy against literal refits, its chain against a literal one and enumeration."""

from itertools import combinations

import numpy as np
import pytest

from pairflip import Schedule
from pairflip.paper.reproduce.section3 import _walk, anneal_loo, loo_energy
from pairflip.philox import chain_keys, flip_draws, start_order


def table(seed, M=18, N=9):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(M, N)) + 1.0
    return X, X[:, :3] @ [1.0, -1.0, 0.5] + 0.5 * rng.normal(size=M)


def refits(X, y, support):
    """Half the sum of squared errors at rows left out one by one, the columns fitted again on the others."""
    total = 0.0
    for row in range(y.size):
        rest = np.delete(np.arange(y.size), row)
        coef = np.linalg.lstsq(X[np.ix_(rest, support)], y[rest])[0]
        total += 0.5 * (y[row] - X[row, support] @ coef) ** 2
    return total


@pytest.mark.parametrize("support", [[4], [0, 2], [2, 5, 7], [0, 1, 2, 3, 5, 6, 7, 8]])
def test_the_energy_is_that_of_refits_without_each_row(support):
    X, y = table(0)
    assert loo_energy(X, y, np.array(support)) == pytest.approx(refits(X, y, support), rel=1e-9)


def test_dependent_columns_and_rows_that_dictate_their_fit_have_no_energy():
    X, y = table(1)
    X[:, 3] = X[:, 0] + X[:, 1]
    X[:, 4] = np.eye(18)[7]
    assert loo_energy(X, y, np.array([0, 1, 3])) == np.inf
    assert loo_energy(X, y, np.array([0, 4])) == np.inf


@pytest.mark.parametrize(("seed", "k", "M"), [(2, 1, 18), (3, 3, 18), (4, 5, 8), (5, 7, 30)])
def test_the_chain_is_the_literal_one(seed, k, M):
    """Flips evaluated by QR are accepted and refused alike, so the order of all columns at the end is the same."""
    X, y = table(seed, M)
    X[:, 4] = np.eye(M)[5]  # enters no support
    key, betas, flips = chain_keys(seed, k, None, [0])[0], np.array([0.0, 0.1, 1.0, 0.3]), np.full(4, 150)
    order, draws = start_order(key, 9), flip_draws(key, 0, 600, k, 9 - k)
    order[order == 4], order[-1] = order[-1], 4
    columns = np.ascontiguousarray((X / np.linalg.norm(X, axis=0)).T)
    walked = order.copy()
    support, lowest = _walk(columns, columns @ columns.T, y, k, walked, betas, flips, *draws)
    now, accepted = loo_energy(X, y, order[:k]), 0
    expected = now
    for beta, i, j, u in zip(np.repeat(betas, flips), *draws, strict=True):
        flipped = order.copy()
        flipped[[i, k + j]] = flipped[[k + j, i]]
        then = loo_energy(X, y, flipped[:k])
        if np.isfinite(then) and u <= np.exp(-beta * max(then - now, 0.0)):
            order, now, accepted = flipped, then, accepted + 1
            expected = min(expected, now)
    np.testing.assert_array_equal(walked, order)
    assert 50 < accepted < 550
    assert lowest == pytest.approx(expected, rel=1e-9)
    assert loo_energy(X, y, support) == pytest.approx(expected, rel=1e-9)


def test_annealing_finds_the_best_of_all_supports():
    X, y = table(6, N=12)
    energies = {support: loo_energy(X, y, np.array(support)) for support in combinations(range(12), 4)}
    support, energy = anneal_loo(X, y, 4, Schedule.paper(), chains=2, seed=0)
    assert tuple(support) == min(energies, key=energies.get)
    assert energy == pytest.approx(min(energies.values()), rel=1e-12)
