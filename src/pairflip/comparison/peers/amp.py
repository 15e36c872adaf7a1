r"""Approximate message passing with a Bernoulli-Gauss prior, its parameters learned (Krzakala et al. 2012).

The posterior mean of coefficients that are zero with probability :math:`1 - \rho` and Gaussian otherwise, exact for
large tables of independent random columns. For columns of unit norm on M rows an iteration is

.. math::
    z &= y - X a + \frac{z}{\Sigma} \frac1M \sum_i v_i, \quad \Sigma = \frac{|z|^2}{M}, \quad R = a + X^T z, \\
    a_i &= \langle x \rangle, \quad v_i = \langle x^2 \rangle - a_i^2 \quad \text{under} \quad
    \bigl[(1 - \rho) \delta(x) + \rho N(x; 0, s)\bigr] e^{-(x - R_i)^2 / 2 \Sigma} .

:math:`\Sigma` is noise plus what the coefficients leave unexplained: :math:`|z|^2 / M` is where the expectation
maximization of the noise ends, so the noise needs no parameter. :math:`\rho` and s are learned as the mean inclusion
probability and the mean square of the included coefficients. On correlated columns iterations may run away: they are
damped, more and more strongly, and where that does not help the method says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pairflip.comparison.registry import Model, Peer, PeerFailed, Supports, Training
from pairflip.least_squares import Floats

DAMPING = (1.0, 0.5, 0.2, 0.05)
"""Parts of a full step, tried one after the other until iterations converge."""
ITERATIONS = 1000
CONVERGED = 1e-5
RUN_AWAY = 1e3


@dataclass(frozen=True)
class BernoulliGauss:
    """A coefficient is not zero with probability `rate`, and then Gaussian with mean 0 and this `variance`."""

    rate: float
    variance: float


@dataclass(frozen=True)
class Passing:
    """State of an iteration."""

    mean: Floats  # (n,)
    variance: Floats  # (n,)
    included: Floats  # (n,), probability that a coefficient is not zero
    residual: Floats  # (M,), z with its memory of the step before
    spread: float  # Sigma
    prior: BernoulliGauss  # as learned so far


def begin(target: Floats, count: int, prior: BernoulliGauss | None = None) -> Passing:
    """Nothing is known: coefficients of the prior."""
    rows, power = target.size, float(target @ target)
    if prior is None:
        rate = min(0.1, 0.25 * rows / count)
        prior = BernoulliGauss(rate, power / (rate * count))
    flat = np.full(count, prior.rate * prior.variance)
    return Passing(np.zeros(count), flat, np.full(count, prior.rate), target.copy(), power / rows, prior)


def denoise(R: Floats, spread: float, prior: BernoulliGauss) -> tuple[Floats, Floats, Floats, Floats]:
    """Mean, variance, inclusion probability and mean square if included (n,), given R with Gaussian error."""
    from scipy.special import expit

    total = prior.variance + spread
    odds = np.log(prior.rate / (1.0 - prior.rate)) + 0.5 * np.log(spread / total)
    odds = odds + 0.5 * R**2 * prior.variance / (spread * total)
    included = expit(odds)
    inside, remaining = R * (prior.variance / total), prior.variance * spread / total
    mean = included * inside
    squares = remaining + inside**2
    return mean, included * squares - mean**2, included, squares


def step(columns: Floats, target: Floats, state: Passing, part: float = 1.0, learn: bool = True) -> Passing:
    """One iteration."""
    rows, count = columns.shape
    onsager = state.variance.sum() / rows / state.spread if np.any(state.mean) else 0.0
    z = target - columns @ state.mean + onsager * state.residual
    z = part * z + (1.0 - part) * state.residual
    spread = max(float(z @ z) / rows, 1e-300)
    mean, variance, included, squares = denoise(state.mean + columns.T @ z, spread, state.prior)
    prior = state.prior
    if learn:
        rate = float(np.clip(included.mean(), 0.01 / count, 0.99))
        prior = BernoulliGauss(rate, max(float(included @ squares / included.sum()), 1e-300))
    mean = part * mean + (1.0 - part) * state.mean
    variance = part * variance + (1.0 - part) * state.variance
    return Passing(mean, variance, included, z, spread, prior)


def pass_messages(columns: Floats, target: Floats) -> Passing:
    """Iterate until nothing changes; where that does not happen, `PeerFailed` says so.

    A result is kept only if it predicts the training rows better than no column does.
    """
    power = float(target @ target)
    for part in DAMPING:
        state = begin(target, columns.shape[1])
        for _ in range(ITERATIONS):
            with np.errstate(all="ignore"):  # what runs away is noticed below
                after = step(columns, target, state, part)
            change = float(np.linalg.norm(after.mean - state.mean))
            if not np.isfinite(change) or float(after.residual @ after.residual) > RUN_AWAY * power:
                break
            moved = abs(after.spread - state.spread)
            state = after
            size = float(np.linalg.norm(state.mean))
            if change <= CONVERGED * part * size and moved <= CONVERGED * part * state.spread:
                residual = target - columns @ state.mean
                if float(residual @ residual) < power:
                    return state
                break
    raise PeerFailed(
        "diverged or did not settle, also when damped: message passing assumes columns that are nearly independent"
    )


def most_probable(columns: Floats, target: Floats, sizes: Sequence[int]) -> Supports:
    """The columns that are most probably not zero."""
    order = np.argsort(-pass_messages(columns, target).included, kind="stable")
    return {size: np.sort(order[:size]) for size in sizes}


def posterior_mean(training: Training) -> Model:
    """The posterior mean as it is; it uses all columns, most of them hardly at all."""
    return Model(training.linear(pass_messages(training.columns, training.target).mean).predict)


AMP = Peer(
    "amp",
    "AMP, refitted",
    "Message passing with a Bernoulli-Gauss prior: the columns most probably not zero, fitted by least squares.",
    find=most_probable,
)
AMP_MEAN = Peer("amp-mean", "AMP, posterior mean", "The same, predicting with the posterior mean.", fit=posterior_mean)
