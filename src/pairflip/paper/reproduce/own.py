r"""How a problem's own coefficients and noise move the theory: a factor that removes most of the noise of the sample.

A table of N columns holds about :math:`\rho_0 N` true coefficients, ten of them at N = 100: their number and squares
differ much from problem to problem, and the energies with them. The theory's three equations hold for any distribution
of :math:`x_0`, so they can be solved for the coefficients and the noise power that a problem has. The factor is that
solution over the one for the model:

.. math:: f = \epsilon(\beta; x_0, \|\xi\|^2 / M) / \epsilon(\beta; \text{model}).

It tends to 1 as N grows; a measured energy divided by it is to be compared with the theory of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from pairflip.least_squares import Floats
from pairflip.paper.reproduce.walks import MODEL, PlantedProblem

_Z = np.linspace(-6.0, 6.0, 81)  # the trapezoidal rule: good to 1e-3 down to the AT temperature
_WEIGHT = np.exp(-0.5 * _Z**2) * (_Z[1] - _Z[0]) / np.sqrt(2 * np.pi)
_STEPS, _LONGEST, _SMALL = 25, 0.7, 1e-7
_TOGETHER = 2**14  # numbers in an array, so that all that is worked on stays in the cache


@dataclass(frozen=True)
class Truth:
    """Coefficients x0 (n, J) with weights (n, J), and noise powers (n,), of n problems."""

    x0: Floats
    weight: Floats
    noise: Floats

    def __getitem__(self, rows: NDArray[np.int64]) -> Truth:
        return Truth(self.x0[rows], self.weight[rows], self.noise[rows])


def truth_of(problems: Sequence[PlantedProblem]) -> Truth:
    """The distinct coefficients of every problem: zero first, then those that are not, padded with weight 0."""
    N = problems[0].drawn.x0.size
    values = [sample.drawn.x0[sample.drawn.x0 != 0] for sample in problems]
    width = 1 + max(v.size for v in values)
    x0, weight = np.zeros((2, len(values), width))
    for row, v in enumerate(values):
        x0[row, 1 : v.size + 1], weight[row, 1 : v.size + 1] = v, 1.0 / N
        weight[row, 0] = 1.0 - v.size / N
    return Truth(x0, weight, np.array([sample.noise_power for sample in problems]))


def truth_of_model() -> Truth:
    """The same of the model: nodes of a Gaussian for the coefficients that are not zero."""
    nodes = np.linspace(-6.0, 6.0, 241)
    weight = np.exp(-0.5 * nodes**2)
    weight *= MODEL.rho0 / weight.sum()
    x0 = np.append(0.0, nodes * MODEL.var_x**0.5)
    return Truth(x0[None], np.append(1.0 - MODEL.rho0, weight)[None], np.array([MODEL.var_noise]))


def _moments(truth: Truth, rows: NDArray[np.int64], at: Floats, beta: float) -> tuple[Floats, ...]:
    """(E p, E x0 r p, E p^2 r^2, E p (1 - p) r^2) with r = x0 + tau z, for the problems `rows`, a few at a time."""
    step = max(1, _TOGETHER // (truth.x0.shape[1] * _Z.size))
    if rows.size <= step:
        return _moments_of_few(truth, rows, at, beta)
    parts = [slice(first, first + step) for first in range(0, rows.size, step)]
    found = [_moments_of_few(truth, rows[part], at[part], beta) for part in parts]
    return tuple(np.concatenate(each) for each in zip(*found, strict=True))


def _moments_of_few(truth: Truth, rows: NDArray[np.int64], at: Floats, beta: float) -> tuple[Floats, ...]:
    kappa, tau, a = at[:, 0, None, None], np.exp(0.5 * at[:, 1])[:, None, None], np.exp(at[:, 2])[:, None, None]
    x0, weight = truth.x0[rows], truth.weight[rows]
    r = x0[:, :, None] + tau * _Z
    r2 = r * r
    p = expit(0.5 * beta * a * r2 - kappa)
    pr2 = p * r2
    of_p, of_pr, of_p2r2, of_pr2 = (each @ _WEIGHT for each in (p, p * r, p * pr2, pr2))
    return (
        np.sum(weight * of_p, axis=1),
        np.sum(weight * x0 * of_pr, axis=1),
        np.sum(weight * of_p2r2, axis=1),
        np.sum(weight * (of_pr2 - of_p2r2), axis=1),
    )


def _residuals(truth: Truth, rows: NDArray[np.int64], at: Floats, beta: float, rho: float, alpha: float) -> Floats:
    r"""The three equations, each as a ratio minus 1.

    .. math:: \rho = E p, \quad \alpha \tau^2 = \sigma_\xi^2 + E (x_0 - r p)^2, \quad a (1 + \beta V) = \alpha - \rho.
    """
    P, m, q, V = _moments(truth, rows, at, beta)
    signal = np.sum(truth.weight[rows] * truth.x0[rows] ** 2, axis=1)
    tau2, a = np.exp(at[:, 1]), np.exp(at[:, 2])
    return np.stack(
        [
            P / rho - 1.0,
            (truth.noise[rows] + signal - 2.0 * m + q) / (alpha * tau2) - 1.0,
            a * (1.0 + beta * V) / (alpha - rho) - 1.0,
        ],
        axis=1,
    )


def solve_own(truth: Truth, beta: float, rho: float, alpha: float, start: Floats) -> tuple[Floats, Floats, Floats]:
    r"""Solve the three equations of the theory for the coefficients and the noise of each problem."""
    at = start.copy()
    active = np.arange(at.shape[0])
    settled = np.zeros(at.shape[0], dtype=bool)
    slope = np.empty((at.shape[0], 3, 3))
    near = np.zeros(at.shape[0], dtype=bool)  # so near that the slopes of the step before are good enough
    for turn in range(_STEPS):
        value = _residuals(truth, active, at[active], beta, rho, alpha)
        anew = active[~near[active] | (turn % 3 == 0)]
        for j in range(3):
            moved = at[anew]
            moved[:, j] += 1e-6
            change = _residuals(truth, anew, moved, beta, rho, alpha) - value[np.isin(active, anew)]
            slope[anew, :, j] = change / 1e-6
        step = np.linalg.solve(slope[active] + 1e-14 * np.eye(3), value[:, :, None])[:, :, 0]
        longest = np.max(np.abs(step), axis=1, keepdims=True)
        at[active] -= step * np.minimum(1.0, _LONGEST / np.maximum(longest, 1e-300))
        done = (longest[:, 0] < _SMALL) & (np.max(np.abs(value), axis=1) < 1e-6)
        settled[active[done]] = True
        near[active] = longest[:, 0] < 0.02
        lost = ~np.isfinite(longest[:, 0])
        active = active[~done & ~lost]
        if active.size == 0:
            break
    V = _moments(truth, np.arange(at.shape[0]), at, beta)[3]
    tau2, a = np.exp(at[:, 1]), np.exp(at[:, 2])
    epsilon = np.where(settled, (a * V + a * a * tau2) / (2.0 * alpha), np.nan)
    epsilon_g = np.where(settled, 0.5 * alpha * (tau2 + V / (alpha - rho)), np.nan)
    return epsilon, epsilon_g, np.where(settled[:, None], at, start)


def _hot(truth: Truth, rho: float, alpha: float) -> Floats:
    r"""The solution at beta = 0, where p = rho everywhere, in closed form."""
    signal = np.sum(truth.weight * truth.x0**2, axis=1)
    tau2 = (truth.noise + (1.0 - rho) ** 2 * signal) / (alpha - rho**2)
    kappa, a = np.full_like(tau2, np.log(1.0 / rho - 1.0)), np.full_like(tau2, alpha - rho)
    return np.stack([kappa, np.log(tau2), np.log(a)], axis=1)


def _advance(
    truth: Truth, low: float, high: float, rho: float, alpha: float, start: Floats, halvings: int = 6
) -> tuple[Floats, Floats, Floats]:
    """`solve_own` at `high` from solutions at `low`; where the step is too long, it is halved (in log beta)."""
    epsilon, epsilon_g, at = solve_own(truth, high, rho, alpha, start)
    lost = np.flatnonzero(~np.isfinite(epsilon))
    if lost.size and halvings:
        part = truth[lost]
        middle = float(np.sqrt(max(low, 1e-2 * high) * high))
        half = _advance(part, low, middle, rho, alpha, start[lost], halvings - 1)[2]
        epsilon[lost], epsilon_g[lost], at[lost] = _advance(part, middle, high, rho, alpha, half, halvings - 1)
    return epsilon, epsilon_g, at


@dataclass(frozen=True)
class Factors:
    """Own over typical epsilon and epsilon_g, (n, betas)."""

    epsilon: Floats
    epsilon_g: Floats


def own_betas(at_beta: float) -> tuple[float, ...]:
    """Inverse temperatures on the way to the AT point, from solution to solution."""
    return tuple(at_beta / over for over in (30.0, 8.0, 3.0, 1.0))


Asked = tuple[tuple[PlantedProblem, ...], tuple[float, ...], float, float]
_AHEAD: dict[Asked, Factors] = {}


def remember(
    problems: tuple[PlantedProblem, ...], betas: tuple[float, ...], rho: float, alpha: float, found: Factors
) -> None:
    """Factors that were solved elsewhere, for the next who asks."""
    _AHEAD[problems, betas, rho, alpha] = found


@lru_cache(maxsize=256)
def factors(problems: tuple[PlantedProblem, ...], betas: tuple[float, ...], rho: float, alpha: float) -> Factors:
    """The factors of every problem; see the text at the head of this module."""
    ahead = _AHEAD.pop((problems, betas, rho, alpha), None)
    return solve_factors(truth_of(problems), betas, rho, alpha) if ahead is None else ahead


def solve_factors(own: Truth, betas: tuple[float, ...], rho: float, alpha: float) -> Factors:
    """The same for problems of which the coefficients and the noise are known."""
    model = truth_of_model()
    at, place = _hot(own, rho, alpha), _hot(model, rho, alpha)
    found = np.empty((2, own.noise.size, len(betas)))
    last = 0.0
    for step, beta in enumerate(betas):
        typical, typical_g, place = _advance(model, last, beta, rho, alpha, place)
        epsilon, epsilon_g, at = _advance(own, last, beta, rho, alpha, at)
        found[:, :, step] = epsilon / typical, epsilon_g / typical_g
        last = beta
    return Factors(*found)
