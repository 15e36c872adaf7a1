r"""How the coefficients and the noise of a problem move the theory: a factor that removes most of the sample's noise.

A table of N columns holds about :math:`\rho_0 N` true coefficients, ten of them at N = 100: their number and squares
differ much from problem to problem, and the energies with them. The theory's three equations hold for any distribution
of :math:`x_0`, so they can be solved for the coefficients and the noise power that a problem has. The factor is that
solution over the one for the model:

.. math:: f = \epsilon(\beta; x_0, \|\xi\|^2 / M) / \epsilon(\beta; \text{model}).

It tends to 1 as N grows; a measured energy divided by it is to be compared with the theory of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from pairflip.least_squares import Floats
from pairflip.paper.reproduce.problems import MODEL, PlantedProblem

_Z = np.linspace(-6.0, 6.0, 81)  # the trapezoidal rule: good to 1e-3 down to the AT temperature
_WEIGHT = np.exp(-0.5 * _Z**2) * (_Z[1] - _Z[0]) / np.sqrt(2 * np.pi)
_STEPS, _LONGEST, _SMALL = 25, 0.7, 1e-7


class Truth(NamedTuple):
    """Coefficients x0 (n, J) with weights (n, J), and noise powers (n,), of n problems."""

    x0: Floats
    weight: Floats
    noise: Floats

    def of(self, rows: NDArray[np.int64]) -> Truth:
        """The same of some problems."""
        return Truth(self.x0[rows], self.weight[rows], self.noise[rows])


class Solution(NamedTuple):
    """Errors (n,) of n problems, NaN where Newton's method failed, and the unknowns (n, 3) to go on from."""

    epsilon: Floats
    epsilon_g: Floats
    at: Floats  # kappa, ln tau^2, ln a


class Factors(NamedTuple):
    """Errors of each problem over those of the model, (n, betas)."""

    epsilon: Floats
    epsilon_g: Floats


def truth_of(problems: Sequence[PlantedProblem]) -> Truth:
    """The distinct coefficients of every problem: zero first, then those that are not, padded with weight 0."""
    N = problems[0].drawn.x0.size
    values = [sample.drawn.x0[sample.drawn.x0 != 0] for sample in problems]
    x0, weight = np.zeros((2, len(values), 1 + max(v.size for v in values)))
    for row, v in enumerate(values):
        x0[row, 1 : v.size + 1], weight[row, 1 : v.size + 1] = v, 1.0 / N
        weight[row, 0] = 1.0 - v.size / N
    return Truth(x0, weight, np.array([np.mean(sample.drawn.noise**2) for sample in problems]))


def truth_of_model() -> Truth:
    """The same of the model: nodes of a Gaussian for the coefficients that are not zero."""
    nodes = np.linspace(-6.0, 6.0, 241)
    weight = np.exp(-0.5 * nodes**2)
    weight *= MODEL.rho0 / weight.sum()
    x0 = np.append(0.0, nodes * MODEL.var_x**0.5)
    return Truth(x0[None], np.append(1.0 - MODEL.rho0, weight)[None], np.array([MODEL.var_noise]))


def _moments(truth: Truth, at: Floats, beta: float) -> tuple[Floats, ...]:
    """(E p, E x0 r p, E p^2 r^2, E p (1 - p) r^2) of n problems at the unknowns (n, 3), with r = x0 + tau z."""
    kappa, tau, a = at[:, 0, None, None], np.exp(0.5 * at[:, 1])[:, None, None], np.exp(at[:, 2])[:, None, None]
    r = truth.x0[:, :, None] + tau * _Z
    r2 = r * r
    p = expit(0.5 * beta * a * r2 - kappa)
    pr2 = p * r2
    of_p, of_pr, of_p2r2, of_pr2 = (each @ _WEIGHT for each in (p, p * r, p * pr2, pr2))
    averaged = of_p, truth.x0 * of_pr, of_p2r2, of_pr2 - of_p2r2
    return tuple(np.sum(truth.weight * each, axis=1) for each in averaged)


def _residuals(truth: Truth, at: Floats, beta: float, rho: float, alpha: float) -> Floats:
    r"""The three equations, each as a ratio minus 1.

    .. math:: \rho = E p, \quad \alpha \tau^2 = \sigma_\xi^2 + E (x_0 - r p)^2, \quad a (1 + \beta V) = \alpha - \rho.
    """
    P, m, q, V = _moments(truth, at, beta)
    noise = truth.noise + np.sum(truth.weight * truth.x0**2, axis=1) - 2.0 * m + q
    ratios = P / rho, noise / (alpha * np.exp(at[:, 1])), np.exp(at[:, 2]) * (1.0 + beta * V) / (alpha - rho)
    return np.stack(ratios, axis=1) - 1.0


def solve_equations(truth: Truth, beta: float, rho: float, alpha: float, start: Floats) -> Solution:
    """Solve the three equations for the coefficients and the noise of each problem, by Newton's method from `start`."""
    at = start.copy()
    active = np.arange(at.shape[0])
    settled = np.zeros(at.shape[0], dtype=bool)
    slope = np.empty((at.shape[0], 3, 3))
    near = np.zeros(at.shape[0], dtype=bool)  # so near that the slopes of the step before are good enough
    for turn in range(_STEPS):
        value = _residuals(truth.of(active), at[active], beta, rho, alpha)
        anew = active[~near[active] | (turn % 3 == 0)]
        for j in range(3):
            moved = at[anew]
            moved[:, j] += 1e-6
            change = _residuals(truth.of(anew), moved, beta, rho, alpha) - value[np.isin(active, anew)]
            slope[anew, :, j] = change / 1e-6
        step = np.linalg.solve(slope[active] + 1e-14 * np.eye(3), value[:, :, None])[:, :, 0]
        longest = np.max(np.abs(step), axis=1, keepdims=True)
        at[active] -= step * np.minimum(1.0, _LONGEST / np.maximum(longest, 1e-300))
        arrived = (longest[:, 0] < _SMALL) & (np.max(np.abs(value), axis=1) < 1e-6)
        settled[active[arrived]] = True
        near[active] = longest[:, 0] < 0.02
        active = active[~arrived & np.isfinite(longest[:, 0])]
        if active.size == 0:
            break
    V = _moments(truth, at, beta)[3]
    tau2, a = np.exp(at[:, 1]), np.exp(at[:, 2])
    epsilon = np.where(settled, (a * V + a * a * tau2) / (2.0 * alpha), np.nan)
    epsilon_g = np.where(settled, 0.5 * alpha * (tau2 + V / (alpha - rho)), np.nan)
    return Solution(epsilon, epsilon_g, np.where(settled[:, None], at, start))


def _at_infinite_temperature(truth: Truth, rho: float, alpha: float) -> Floats:
    """The unknowns (n, 3) at beta = 0, where p = rho everywhere, in closed form."""
    signal = np.sum(truth.weight * truth.x0**2, axis=1)
    tau2 = (truth.noise + (1.0 - rho) ** 2 * signal) / (alpha - rho**2)
    kappa, a = np.full_like(tau2, np.log(1.0 / rho - 1.0)), np.full_like(tau2, alpha - rho)
    return np.stack([kappa, np.log(tau2), np.log(a)], axis=1)


def _advance(
    truth: Truth, low: float, high: float, rho: float, alpha: float, start: Floats, halvings: int = 6
) -> Solution:
    """Solutions at beta = `high` from those at `low`; where the step is too long, it is halved (in log beta)."""
    solution = solve_equations(truth, high, rho, alpha, start)
    lost = np.flatnonzero(~np.isfinite(solution.epsilon))
    if lost.size and halvings:
        part = truth.of(lost)
        middle = float(np.sqrt(max(low, 1e-2 * high) * high))
        half = _advance(part, low, middle, rho, alpha, start[lost], halvings - 1).at
        again = _advance(part, middle, high, rho, alpha, half, halvings - 1)
        for values, better in zip(solution, again, strict=True):
            values[lost] = better
    return solution


@lru_cache(maxsize=256)
def factors(problems: tuple[PlantedProblem, ...], betas: tuple[float, ...], rho: float, alpha: float) -> Factors:
    """The factors of every problem, from temperature to temperature."""
    truths = truth_of(problems), truth_of_model()
    at = [_at_infinite_temperature(truth, rho, alpha) for truth in truths]
    ratios = np.empty((2, len(problems), len(betas)))
    for step, beta in enumerate(betas):
        last = betas[step - 1] if step else 0.0
        sample, model = (_advance(each, last, beta, rho, alpha, start) for each, start in zip(truths, at, strict=True))
        ratios[:, :, step] = sample.epsilon / model.epsilon, sample.epsilon_g / model.epsilon_g
        at = [sample.at, model.at]
    return Factors(*ratios)
