"""Thermodynamics by finite differences, and the equations themselves by another quadrature."""

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from pairflip import theory

CASES = [
    (theory.Planted(), 0.05),
    (theory.Planted(), 0.1),
    (theory.Planted(), 0.2),
    (theory.Planted(0.9, 0.3, 10.0, 1.0), 0.6),
    (theory.Planted(0.2, 0.02, 10.0, 0.01), 0.05),
    (theory.Planted(0.5, 0.1, 10.0, 0.0), 0.08),
]


@pytest.mark.parametrize(("model", "rho"), CASES)
@pytest.mark.parametrize("beta", [0.01, 1.0, 20.0, 1000.0])
def test_slope_of_the_free_entropy_is_minus_the_energy(model, rho, beta):
    h = 1e-3
    phi = [theory.solve(beta * (1 + step * h), rho, model).free_entropy for step in (-2, -1, 1, 2)]
    slope = (phi[0] - 8 * phi[1] + 8 * phi[2] - phi[3]) / (12 * h * beta)
    state = theory.solve(beta, rho, model)
    assert slope == pytest.approx(-model.alpha * state.epsilon, rel=1e-7)
    assert state.free_entropy == pytest.approx(state.entropy - beta * model.alpha * state.epsilon, rel=1e-11)
    assert state.free_energy == pytest.approx(-state.free_entropy / beta, rel=1e-14)


@pytest.mark.parametrize(("model", "rho"), CASES)
def test_slope_of_the_entropy_is_beta_times_that_of_the_energy(model, rho):
    beta, h = 7.0, 1e-3
    low, high = (theory.solve(beta * (1 + step), rho, model) for step in (-h, h))
    assert high.entropy - low.entropy == pytest.approx(model.alpha * beta * (high.epsilon - low.epsilon), rel=1e-5)


@pytest.mark.parametrize(("model", "rho"), CASES)
@pytest.mark.parametrize("beta", [0.1, 5.0, 50.0])
def test_equations_hold_by_another_quadrature(model, rho, beta):
    s = theory.solve(beta, rho, model)
    assert s.b == pytest.approx(beta * s.a, rel=1e-13)

    def mean(values, variance):
        edges = [0, *sorted({s.threshold, variance**0.5, s.tau2**0.5}), 12 * variance**0.5]
        density = norm(scale=variance**0.5).pdf
        parts = [
            quad(
                lambda r: 2 * density(r) * values(r, expit(0.5 * s.b * r * r - s.kappa)), a, b, epsabs=1e-13, limit=200
            )
            for a, b in itertools.pairwise(edges)
            if b > a and a < 12 * variance**0.5
        ]
        return sum(part[0] for part in parts)

    def average(values):
        null, true = mean(values, s.tau2), mean(values, s.tau2 + model.var_x)
        return (1 - model.rho0) * null + model.rho0 * true

    tol = {"rel": 1e-9, "abs": 1e-11}
    assert average(lambda r, p: p) == pytest.approx(rho, **tol)
    variance = average(lambda r, p: p * (1 - p) * r * r)
    assert pytest.approx(variance, **tol) == s.V
    assert s.a == pytest.approx(model.alpha - rho - s.b * variance, rel=1e-8)
    q = average(lambda r, p: p * p * r * r)
    m = model.rho0 * model.var_x / (model.var_x + s.tau2) * mean(lambda r, p: p * r * r, s.tau2 + model.var_x)
    assert (s.q, s.m) == pytest.approx((q, m), **tol)
    power = model.var_noise + model.rho0 * model.var_x - 2 * m + q
    assert model.alpha * s.tau2 == pytest.approx(power, rel=1e-8, abs=1e-11)
    response = average(lambda r, p: (p + s.b * p * (1 - p) * r * r) ** 2)
    assert s.at_stability == pytest.approx(response / model.alpha, **tol)
    assert s.true_positive_rate == pytest.approx(mean(lambda r, p: p, s.tau2 + model.var_x), **tol)


def test_entropy_is_the_integral_of_the_energy():
    """s(beta) = s(0) + beta alpha epsilon(beta) - alpha int epsilon, by Gauss-Legendre."""
    model, rho, beta = theory.Planted(), 0.1, 8.0
    nodes, weights = np.polynomial.legendre.leggauss(40)
    area = 0.0
    for low, high in itertools.pairwise((0.0, 0.2, 1.0, 3.0, beta)):
        curve = theory.curve_over_beta(low + 0.5 * (high - low) * (nodes + 1), rho, model)
        area += 0.5 * (high - low) * weights @ curve.epsilon
    state = theory.solve(beta, rho, model)
    expected = theory.solve(0, rho, model).entropy + model.alpha * (beta * state.epsilon - area)
    assert state.entropy == pytest.approx(expected, rel=1e-8)
