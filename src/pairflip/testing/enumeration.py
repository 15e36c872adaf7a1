"""Every support of a small problem, one by one: the exact answers to compare with."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from pairflip.gram import Gram
from pairflip.least_squares import Floats
from pairflip.problem import SubsetProblem

MOST = 1_000_000


def all_supports(N: int, k: int) -> NDArray[np.int64]:
    """All sorted supports (C(N, k), k) of k of N columns, in lexicographic order."""
    if comb(N, k) > MOST:
        raise ValueError(f"there are {comb(N, k)} supports of {k} of {N} columns; expected at most {MOST}.")
    return np.array(list(combinations(range(N), k)), dtype=np.int64).reshape(comb(N, k), k)


def enumerate_energies(problem: SubsetProblem | Gram, k: int) -> Floats:
    """E(S) by QR, infinite when singular, in the order of `all_supports` of the candidate columns."""
    gram = problem.gram if isinstance(problem, SubsetProblem) else problem
    return np.array([gram.energy(support) for support in all_supports(gram.n_columns, k)])


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
