"""Bounds on the number of false columns: against an optimizer that knows nothing of the solution, and their limits."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize

from _errors import sentence_of
from pairflip.selection.stability import false_bound, r_concave_tail


def largest_tail(mean, t, n, r, tries=12):
    """Maximize P(X >= t) over r-concave distributions on 0, ..., n of at most that mean: f^r convex, numerically."""
    rng, i, best = np.random.default_rng(0), np.arange(n + 1), 0.0

    def probabilities(log_g):
        f = np.exp(log_g / r)
        return f / f.sum()

    convex = {"type": "ineq", "fun": lambda g: np.diff(np.exp(g), 2) / np.exp(g)[1:-1]}
    low = {"type": "ineq", "fun": lambda g: n * mean - probabilities(g) @ i}
    for _ in range(tries):
        start = np.log(10 ** rng.uniform(-3, 1) + i + 0.01 * rng.random(n + 1))
        found = minimize(lambda g: -probabilities(g)[t:].sum(), start, constraints=[convex, low], method="SLSQP")
        g = found.x
        if np.diff(np.exp(g), 2).min() > -1e-7 * np.exp(g).max() and probabilities(g) @ i <= n * mean * (1 + 1e-6):
            best = max(best, -found.fun)
    return best


@pytest.mark.parametrize(("mean", "t", "n", "r"), [(0.05, 6, 8, -0.25), (0.1, 8, 10, -0.5), (0.15, 7, 8, -0.25)])
def test_the_r_concave_tail_is_what_an_optimizer_finds(mean, t, n, r):
    assert r_concave_tail(mean, t / n, n, r) == pytest.approx(largest_tail(mean, t, n, r), rel=1e-4)


@pytest.mark.parametrize("r", [-0.5, -0.25])
def test_no_r_concave_distribution_has_a_larger_tail(r):
    """Random ones: a convex function to the power 1/r."""
    rng = np.random.default_rng(1)
    n, i = 20, np.arange(21)
    for _ in range(300):
        g = np.cumsum(np.cumsum(rng.exponential(size=n + 1) ** rng.uniform(1, 6))) + 10 ** rng.uniform(-3, 1)
        f = g ** (1 / r) / np.sum(g ** (1 / r))
        mean, t = float(f @ i) / n, int(rng.integers(8, 20))
        assert f[t:].sum() <= r_concave_tail(mean, t / n, n, r) * (1 + 1e-6) + 1e-12


def test_limits():
    assert r_concave_tail(0.0, 0.5, 10, -0.5) == 0.0
    assert r_concave_tail(0.3, 0.6, 10, -0.5) == 1.0  # up to twice the mean nothing is said
    tails = [r_concave_tail(0.02, t / 100, 100, -0.25) for t in range(10, 101, 10)]
    assert all(a > b > 0 for a, b in pairwise(tails))
    markov = 0.02 / 0.5
    assert r_concave_tail(0.02, 0.5, 100, -0.25) < markov


def test_the_worst_case_is_the_formula_and_the_other_is_lower():
    bound = false_bound(5, 200, 50, 0.8)
    assert bound.worst_case == pytest.approx(25 / (0.6 * 200))
    assert bound.best == bound.r_concave < bound.worst_case
    assert false_bound(20, 20, 50, 0.6).worst_case == 20.0  # never more than there are


def test_a_threshold_that_says_nothing_is_refused():
    for threshold in (0.5, 0.0, 1.2):
        assert "expected a fraction above 0.5" in sentence_of(ValueError, lambda t=threshold: false_bound(3, 50, 50, t))
