"""Theory against the sampler: supports drawn above the AT temperature have the errors the theory says.

The twenty true coefficients of a problem of 200 columns are far from typical, so every problem is compared with the
equations at its own x0 and its own noise: that takes most of the differences between problems out. What remains beyond
the standard error is the finite size, of order 1/N: at N = 200 taken as FINITE_SIZE; the slow test shows that it goes
away.
"""

import numpy as np
import pytest

from pairflip import SubsetProblem, theory
from pairflip.datasets import make_planted
from pairflip.engines import WalkPlan, get_engine
from pairflip.paper.reproduce.finite_sample import solve_equations, truth_of
from pairflip.paper.reproduce.problems import PlantedProblem
from pairflip.philox import chain_keys

FINITE_SIZE = np.array([0.03, 0.05])  # relative, of epsilon and epsilon_g at N = 200
MODEL = theory.Planted()
CASES = [(0.05, 3.0), (0.05, 10.0), (0.10, 3.0), (0.10, 10.0), (0.15, 3.0), (0.15, 10.0)]
WARM_UP = (0.3, 0.6, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0)


def measure(sample, k, beta, sweeps, chains):
    """Epsilon and epsilon_g of one problem, after warming up with rising betas."""
    data, problem = sample.drawn, sample.problem
    M, N = data.X.shape
    steps = [b for b in WARM_UP if b < beta] + [beta] * 2
    flips = np.full(len(steps), sweeps[0] * N)
    flips[-2:] = sweeps[1] * N
    keys = chain_keys(sample.seed, k, None, np.arange(chains))
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
    start = theory.solve(theory_beta or beta, rho, MODEL)
    assert start.stable
    tables = [make_planted(N, alpha=MODEL.alpha, seed=seed) for seed in range(problems)]
    samples = [PlantedProblem(t, SubsetProblem(t.X, t.y, center=None), seed) for seed, t in enumerate(tables)]
    near = np.tile([start.kappa, np.log(start.tau2), np.log(start.a)], (problems, 1))
    computed = np.transpose(solve_equations(truth_of(samples), start.beta, rho, MODEL.alpha, near)[:2])
    measured = [measure(sample, round(rho * N), beta, sweeps, chains) for sample in samples]
    difference = (np.array(measured) - computed) / np.mean(computed, axis=0)
    return difference.mean(axis=0), difference.std(axis=0, ddof=1) / problems**0.5


@pytest.mark.parametrize(
    ("rho", "beta"), [pytest.param(*case, marks=[pytest.mark.slow] * (case != (0.10, 10.0))) for case in CASES]
)
def test_sampler_finds_what_the_theory_says(rho, beta):
    mean, error = compare(200, rho, beta, problems=80, sweeps=(10, 30), chains=2)
    assert (error < (0.03, 0.08)).all()
    assert (np.abs(mean) < 3 * error + FINITE_SIZE).all()


def test_a_wrong_temperature_is_noticed():
    """The sampler at beta = 3 is not what the theory says at beta = 5."""
    mean, error = compare(200, 0.1, 3.0, problems=40, sweeps=(10, 30), chains=2, theory_beta=5.0)
    assert abs(mean[0]) > 3 * error[0] + FINITE_SIZE[0]
