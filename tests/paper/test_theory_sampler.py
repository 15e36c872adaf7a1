"""Theory against the sampler: supports drawn above the AT temperature have the errors the theory says.

The twenty true coefficients of a problem of 200 columns are far from typical, so every problem is compared with the
equations at its own x0 and its own noise (`_own_powers`, which is checked against the theory first): that takes most
of the differences between problems out. What remains beyond the standard error is the finite size, of order 1/N:
at N = 200 taken as FINITE_SIZE; the slow test shows that it goes away.
"""

import numpy as np
import pytest

import _own_powers
from pairflip import SubsetProblem, theory
from pairflip.datasets import make_planted
from pairflip.engines import WalkPlan, get_engine
from pairflip.philox import chain_keys

FINITE_SIZE = np.array([0.03, 0.05])  # relative, of epsilon and epsilon_g at N = 200
MODEL = theory.Planted()
CASES = [(0.05, 3.0), (0.05, 10.0), (0.10, 3.0), (0.10, 10.0), (0.15, 3.0), (0.15, 10.0)]
WARM_UP = (0.3, 0.6, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0)


def measure(data, k, beta, seed, sweeps, chains):
    """Epsilon and epsilon_g of one problem, after warming up with rising betas."""
    M, N = data.X.shape
    problem = SubsetProblem(data.X, data.y, center=None)
    steps = [b for b in WARM_UP if b < beta] + [beta] * 2
    flips = np.full(len(steps), sweeps[0] * N)
    flips[-2:] = sweeps[1] * N
    keys = chain_keys(seed, k, None, np.arange(chains))
    (walked,) = get_engine("numba").walk([(problem.form, WalkPlan(k, np.array(steps), flips, keys))])
    errors = []
    for support in walked.support:  # one draw a chain: the chains are independent
        chosen = problem.candidates[support]
        x = np.zeros(N)
        x[chosen] = np.linalg.lstsq(data.X[:, chosen], data.y, rcond=None)[0]
        errors.append(0.5 * np.mean(data.noise**2) + 0.5 * np.sum((x - data.x0) ** 2) / N)
    return walked.energy[:, -1].mean() / M, float(np.mean(errors))


def compare(N, rho, beta, problems, sweeps, chains, theory_beta=None):
    """Mean and standard error over problems of measured minus computed, relative to the computed mean."""
    beta_computed = theory_beta or beta
    start = theory.solve(beta_computed, rho, MODEL)
    assert start.stable
    measured, computed = [], []
    for seed in range(problems):
        data = make_planted(N, alpha=MODEL.alpha, seed=seed)
        own = np.append(data.x0[data.support], 0.0)
        weight = np.append(np.full(own.size - 1, 1 / N), 1 - (own.size - 1) / N)
        power = float(np.mean(data.noise**2))
        computed.append(_own_powers.errors(beta_computed, rho, MODEL.alpha, own, weight, power, start))
        measured.append(measure(data, round(rho * N), beta, seed, sweeps, chains))
    difference = (np.array(measured) - computed) / np.mean(computed, axis=0)
    return difference.mean(axis=0), difference.std(axis=0, ddof=1) / problems**0.5


@pytest.mark.parametrize(("rho", "beta"), CASES)
def test_equations_at_own_powers_are_those_of_the_theory(rho, beta):
    z = np.linspace(-9.0, 9.0, 801)
    w = np.exp(-0.5 * z**2)
    x0 = np.append(MODEL.var_x**0.5 * z, 0.0)
    weight = np.append(MODEL.rho0 * w / w.sum(), 1 - MODEL.rho0)
    state = theory.solve(beta, rho, MODEL)
    own = _own_powers.errors(beta, rho, MODEL.alpha, x0, weight, MODEL.var_noise, state)
    assert own == pytest.approx((state.epsilon, state.epsilon_g), rel=1e-6)


OFTEN = CASES[3:4]


@pytest.mark.parametrize(
    ("rho", "beta"), [pytest.param(*case, marks=[pytest.mark.slow] * (case not in OFTEN)) for case in CASES]
)
def test_sampler_finds_what_the_theory_says(rho, beta):
    mean, error = compare(200, rho, beta, problems=80, sweeps=(10, 30), chains=2)
    print(f"rho {rho} beta {beta}: epsilon {mean[0]:+.4f}({error[0]:.4f}), epsilon_g {mean[1]:+.4f}({error[1]:.4f})")
    assert (error < (0.03, 0.08)).all()
    assert (np.abs(mean) < 3 * error + FINITE_SIZE).all()


def test_comparison_would_notice_a_wrong_temperature():
    """The sampler at beta = 3 is not what the theory says at beta = 5."""
    mean, error = compare(200, 0.1, 3.0, problems=80, sweeps=(10, 30), chains=2, theory_beta=5.0)
    assert abs(mean[0]) > 3 * error[0] + FINITE_SIZE[0]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("rho", "beta"), [(0.10, 3.0), (0.10, 7.0), (0.15, 7.0)])
def test_what_remains_goes_away_with_size(rho, beta):
    """The line through N = 100, 200, 400 over 1/N meets zero within three standard errors plus 1 % and 2 %."""
    sizes, problems = np.array([100, 200, 400]), (400, 200, 100)
    found = [compare(N, rho, beta, count, (10, 30), 2) for N, count in zip(sizes, problems, strict=True)]
    mean, error = np.array([each[0] for each in found]), np.array([each[1] for each in found])
    for column, allowed in enumerate((0.01, 0.02)):
        fit, covariance = np.polyfit(1 / sizes, mean[:, column], 1, w=1 / error[:, column], cov="unscaled")
        print(f"rho {rho} beta {beta}: {mean[:, column].round(4)} {fit[1]:+.4f}({covariance[1, 1] ** 0.5:.4f})")
        assert abs(fit[1]) < 3 * covariance[1, 1] ** 0.5 + allowed
