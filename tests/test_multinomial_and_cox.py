"""Three and more classes, and survival times: derivatives, fits, searches against enumeration, what users see."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pairflip.losses.cox import CoxLoss, concordance
from pairflip.losses.multinomial import MultinomialLoss

Floats = NDArray[np.float64]


def survival_rows(rng: np.random.Generator, m: int) -> Floats:
    """Times with ties, some of them censored, at least one event that somebody outlives."""
    time, event = rng.integers(1, 8, m).astype(float), (rng.random(m) < 0.6).astype(float)
    time[:2], event[:2] = (1.0, 9.0), (1.0, 0.0)
    return np.column_stack([time, event])


def class_rows(rng: np.random.Generator, m: int, classes: int = 3) -> Floats:
    """Indicators, each class at least once."""
    codes = np.append(np.arange(classes), rng.integers(0, classes, m - classes))
    return (codes[:, None] == np.arange(classes)).astype(float)


LOSSES = {"multinomial": (MultinomialLoss(), class_rows), "cox": (CoxLoss(), survival_rows)}


@pytest.mark.parametrize("name", LOSSES)
def test_derivatives_are_those_of_the_value(name: str) -> None:
    loss, target = LOSSES[name]
    rng = np.random.default_rng(0)
    m, p, h = 12, 3, 1e-5
    y, w = target(rng, m), rng.uniform(0.5, 2.0, m)
    rows, q = loss.rows(y, w), loss.predictors(y)
    D = rng.standard_normal((2, p, m))
    theta = 0.5 * rng.standard_normal((2, p, q))
    if name == "multinomial":  # what all classes share is held at zero
        theta -= theta.mean(axis=2, keepdims=True)

    def at(theta: Floats) -> Any:
        return loss.system(rows, D, np.einsum("tpm,tpq->tmq", D, theta))

    value, gradient, hessian = at(theta)
    assert (value > 0).all()
    for i in range(p):
        for c in range(q):
            step = np.zeros_like(theta)
            step[:, i, c] = h
            above, below = at(theta + step), at(theta - step)
            np.testing.assert_allclose(gradient[:, i, c], -(above[0] - below[0]) / (2 * h), rtol=1e-6, atol=1e-8)
            curvature = -(above[1] - below[1]) / (2 * h)
            shared = np.einsum("tpm,tm->tp", D, D[:, i] * w)[:, :, None] / q**2 if q > 1 else 0.0
            np.testing.assert_allclose(hessian[:, i, c], curvature + shared, rtol=1e-5, atol=1e-6)


def brute_force_partial_likelihood(time: Floats, event: Floats, eta: Floats) -> float:
    return sum(eta[i] - np.log(np.exp(eta[time >= time[i]]).sum()) for i in np.flatnonzero(event > 0))


def test_cox_counts_ties_as_breslow_does() -> None:
    rng = np.random.default_rng(1)
    y, eta = survival_rows(rng, 20), rng.standard_normal(20)
    value = CoxLoss().derivatives(CoxLoss().rows(y, np.ones(20)), eta[None, :, None])[0][0]
    tied = np.unique(y[y[:, 1] > 0, 0], return_counts=True)[1]
    most = -float(tied @ np.log(tied))  # the largest likelihood that any hazards of single rows give
    assert value == pytest.approx(most - brute_force_partial_likelihood(*y.T, eta), abs=1e-12)
    twice = CoxLoss().derivatives(CoxLoss().rows(np.vstack([y, y]), np.ones(40)), np.tile(eta, 2)[None, :, None])[0][0]
    heavy = CoxLoss().derivatives(CoxLoss().rows(y, np.full(20, 2.0)), eta[None, :, None])[0][0]
    assert twice == pytest.approx(heavy, abs=1e-10)
    assert heavy == pytest.approx(2 * value, abs=1e-10)


def test_concordance_is_the_count_over_all_pairs() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        y, risk, w = survival_rows(rng, 15), rng.integers(0, 5, 15).astype(float), rng.integers(1, 3, 15).astype(float)
        right = total = 0.0
        for i in range(15):
            for j in range(15):
                first = y[i, 1] == 1 and (y[i, 0] < y[j, 0] or (y[i, 0] == y[j, 0] and y[j, 1] == 0))
                if first:
                    total += w[i] * w[j]
                    right += w[i] * w[j] * (1.0 if risk[i] > risk[j] else 0.5 if risk[i] == risk[j] else 0.0)
        assert concordance(y, risk, w) == pytest.approx(right / total, abs=1e-12)
