"""Infinite temperature is elementary least squares; zero temperature has a closed form."""

import math

import pytest

from pairflip import theory

MODELS = [
    theory.Planted(),
    theory.Planted(alpha=0.9, rho0=0.3, var_x=2.0, var_noise=1.0),
    theory.Planted(alpha=0.2, rho0=0.02, var_x=10.0, var_noise=0.0),
]


def expected(rho, model):
    V = (1 - rho) * model.rho0 * model.var_x + model.var_noise
    entropy = -rho * math.log(rho) - (1 - rho) * math.log(1 - rho)
    return (1 - rho / model.alpha) * V / 2, V / (2 * (1 - rho / model.alpha)), entropy


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("part", [0.01, 0.3, 0.9])
@pytest.mark.parametrize(("beta", "tolerance"), [(0.0, 1e-14), (1e-13, 1e-11)])
def test_infinite_temperature(model, part, beta, tolerance):
    rho = part * model.alpha
    state = theory.solve(beta, rho, model)
    assert state.exists
    assert state.stable
    assert (state.epsilon, state.epsilon_g, state.entropy) == pytest.approx(expected(rho, model), rel=tolerance)
    assert state.true_positive_rate == pytest.approx(rho, rel=1e-11)
    assert state.precision == pytest.approx(model.rho0, rel=1e-11)
    assert state.at_stability == pytest.approx(rho**2 / model.alpha, rel=1e-10)


@pytest.mark.parametrize("rho", [0.03, 0.05, 0.0625, 0.1])
def test_large_beta_goes_over_into_the_ground_state(rho):
    """epsilon differs by beta^-2, epsilon_g and the entropy by 1 / beta: ten times colder, ten times closer."""
    ground = theory.solve(math.inf, rho, theory.Planted())
    cold, colder = (theory.solve(beta, rho, theory.Planted()) for beta in (1e6, 1e7))
    assert cold.epsilon == pytest.approx(ground.epsilon, rel=1e-7)
    for name in ("epsilon_g", "entropy", "tau2", "threshold"):
        limit = getattr(ground, name)
        ratio = (getattr(cold, name) - limit) / (getattr(colder, name) - limit)
        assert ratio == pytest.approx(10, rel=1e-2)


def test_ground_state_order_parameters_agree_with_large_beta():
    ground, cold = (theory.solve(beta, 0.08, theory.Planted()) for beta in (math.inf, 1e9))
    for name in ("tau2", "a", "m", "q", "true_positive_rate", "precision", "free_energy"):
        assert getattr(cold, name) == pytest.approx(getattr(ground, name), rel=1e-6)
    assert (ground.V, ground.b, ground.kappa, ground.at_stability) == (0, math.inf, math.inf, math.inf)


def test_critical_size():
    assert theory.critical_rho(0.5) == pytest.approx(0.12401, abs=5e-6)
    assert theory.critical_rho(1.0) == math.inf


def test_beyond_the_critical_size_the_energy_is_zero_and_the_record_says_so():
    state = theory.solve(math.inf, 0.15, theory.Planted())
    assert state.exists
    assert state.zero_energy
    assert state.epsilon == 0
    assert state.epsilon_g == pytest.approx(0.818823, abs=5e-7)
    assert state.entropy == -math.inf
    assert "zero-energy" in state.note
    cold = theory.solve(1e8, 0.15, theory.Planted())
    assert not cold.zero_energy
    assert cold.epsilon == pytest.approx(0.35 / (2 * 0.5) * 1e-8, rel=1e-6)
    assert cold.epsilon_g == pytest.approx(state.epsilon_g, rel=1e-6)


def test_without_noise_the_signal_is_recovered():
    model = theory.Planted(var_noise=0.0)
    state = theory.solve(math.inf, 0.15, model)
    assert (state.epsilon, state.epsilon_g, state.true_positive_rate) == (0, 0, 1)
    assert state.others == len(theory.solve_all(math.inf, 0.15, model)) - 1 > 0
    cold = theory.solve(1e9, 0.15, model)
    assert cold.epsilon_g < 1e-12
    assert cold.entropy == pytest.approx(state.entropy, rel=1e-3)
