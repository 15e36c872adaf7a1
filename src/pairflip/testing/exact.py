r"""Exact answers for small problems: every support one by one, and the transition matrix of one flip over all of them.

A flip proposes one of the k (N - k) exchanges (i, j) with equal probability and accepts it with
:math:`A = \min(1, e^{-\beta \Delta E})`:

.. math:: P_{ab} = \frac{A(\Delta E_{ab})}{k (N - k)} \; (a \ne b), \qquad P_{aa} = 1 - \sum_{b \ne a} P_{ab}.

States are the non-singular supports. What an engine would move to a singular one is missing from its row,
so that no distribution over the states is stationary for an engine that does.
"""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats
from pairflip.moments import Form
from pairflip.problem import SubsetProblem

MOST = 1_000_000


def all_supports(N: int, k: int) -> NDArray[np.int64]:
    """All sorted supports (C(N, k), k) of k of N columns, in lexicographic order."""
    if comb(N, k) > MOST:
        raise ValueError(f"there are {comb(N, k)} supports of {k} of {N} columns; expected at most {MOST}.")
    return np.array(list(combinations(range(N), k)), dtype=np.int64).reshape(comb(N, k), k)


def enumerate_energies(problem: SubsetProblem | Form, k: int) -> Floats:
    """E(S) by QR, infinite when singular, in the order of `all_supports` of the candidate columns."""
    form = problem.form if isinstance(problem, SubsetProblem) else problem
    return np.array([form.energy(support) for support in all_supports(form.n_columns, k)])


def best_support(problem: SubsetProblem, k: int) -> tuple[NDArray[np.int64], float]:
    """The best k columns of X and their energy, by looking at every support."""
    energies = enumerate_energies(problem, k)
    best = int(np.argmin(energies))
    return problem.candidates[all_supports(problem.candidates.size, k)[best]], float(energies[best])


def boltzmann(energies: Floats, beta: float) -> Floats:
    r""":math:`\pi(S) = e^{-\beta E(S)} / \sum_{S'} e^{-\beta E(S')}`, zero where the energy is infinite."""
    allowed = np.isfinite(energies)
    weights = np.zeros_like(energies)
    weights[allowed] = np.exp(-beta * (energies[allowed] - energies[allowed].min()))
    return np.asarray(weights / weights.sum())


def states(form: Form, k: int) -> tuple[NDArray[np.int64], Floats]:
    """The non-singular supports (n, k) and their energies (n,) by QR."""
    energies = enumerate_energies(form, k)
    allowed = np.isfinite(energies)
    return all_supports(form.n_columns, k)[allowed], energies[allowed]


def transition_matrix(engine: Any, form: Form, k: int, beta: float) -> Floats:
    """P (n, n) over `states`, from the engine's own `flip_energies` and `acceptance`.

    Parameters
    ----------
    engine : Engine
        Whose flips these are; one that has `flip_energies` and `acceptance`.
    form : Form
        The problem.
    k : int
        Number of columns in a support.
    beta : float
        Inverse temperature.
    """
    supports, _ = states(form, k)
    number = {tuple(support): a for a, support in enumerate(supports.tolist())}
    proposed = 1.0 / (k * (form.n_columns - k))
    P = np.zeros((len(supports), len(supports)))
    for a, support in enumerate(supports):
        outside = np.setdiff1d(np.arange(form.n_columns), support)
        delta = engine.flip_energies(form, np.concatenate([support, outside]), k)
        stay = 1.0
        for i in range(k):
            for j, column in enumerate(outside):
                moved = proposed * engine.acceptance(beta, float(delta[i, j]))
                stay -= moved
                b = number.get(tuple(sorted([*np.delete(support, i).tolist(), int(column)])))
                if b is not None:
                    P[a, b] = moved
        P[a, a] = stay
    return P


def stationarity_error(pi: Floats, P: Floats) -> float:
    r""":math:`\max_b |(\pi P)_b - \pi_b|`."""
    return float(np.max(np.abs(pi @ P - pi)))


def balance_error(pi: Floats, P: Floats) -> float:
    r""":math:`\max_{ab} |\pi_a P_{ab} - \pi_b P_{ba}|`, zero for a reversible chain."""
    flow = pi[:, None] * P
    return float(np.max(np.abs(flow - flow.T)))
