"""The saddle-point equations for one problem's own coefficients and noise: an independent, plain way to solve them.

In place of the average over Gaussian coefficients stands the mean over the x0 of the problem, and integrals are sums
over an even grid, good at the moderate betas of the comparison with the sampler.
"""

import numpy as np
from scipy.optimize import root
from scipy.special import expit

Z = np.linspace(-9.0, 9.0, 241)
WEIGHT = np.exp(-0.5 * Z**2) * (Z[1] - Z[0]) / np.sqrt(2 * np.pi)


def errors(beta, rho, alpha, x0, weight, noise_power, start):
    """(epsilon, epsilon_g) with fields r = x0 + tau z, each x0 with its weight; `start` is a nearby theory.State."""
    signal = weight @ x0**2

    def terms(kappa, tau2, a):
        r = x0[:, None] + np.sqrt(tau2) * Z
        p = expit(0.5 * beta * a * r * r - kappa)
        mean = lambda values: weight @ (values @ WEIGHT)  # noqa: E731
        return mean(p), mean(x0[:, None] * r * p), mean(p * p * r * r), mean(p * (1 - p) * r * r)

    def equations(unknown):
        kappa, tau2, a = unknown[0], np.exp(unknown[1]), np.exp(unknown[2])
        P, m, q, V = terms(kappa, tau2, a)
        return (
            P / rho - 1,
            (noise_power + signal - 2 * m + q) / (alpha * tau2) - 1,
            (a + beta * a * V) / (alpha - rho) - 1,
        )

    found = root(equations, [start.kappa, np.log(start.tau2), np.log(start.a)], tol=1e-11)
    assert np.abs(found.fun).max() < 1e-8, found
    kappa, tau2, a = found.x[0], np.exp(found.x[1]), np.exp(found.x[2])
    V = terms(kappa, tau2, a)[3]
    return (a * V + a * a * tau2) / (2 * alpha), 0.5 * alpha * (tau2 + V / (alpha - rho))
