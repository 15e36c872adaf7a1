r"""The transition matrix of one flip, written out over all supports of a small problem.

A flip proposes one of the k (N - k) exchanges (i, j) with equal probability and accepts it with
:math:`A = \min(1, e^{-\beta \Delta E})`:

.. math:: P_{ab} = \frac{A(\Delta E_{ab})}{k (N - k)} \; (a \ne b), \qquad P_{aa} = 1 - \sum_{b \ne a} P_{ab}.

States are the non-singular supports. What an engine would move to a singular one is missing from its row,
so that no distribution over the states is stationary for an engine that does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import Engine
from pairflip.gram import Gram
from pairflip.least_squares import Floats
from pairflip.testing.enumeration import all_supports, enumerate_energies


def states(gram: Gram, k: int) -> tuple[NDArray[np.int64], Floats]:
    """The non-singular supports (n, k) and their energies (n,) by QR."""
    energies = enumerate_energies(gram, k)
    allowed = np.isfinite(energies)
    return all_supports(gram.n_columns, k)[allowed], energies[allowed]


def transition_matrix(engine: Engine, gram: Gram, k: int, beta: float) -> Floats:
    """P (n, n) over `states`, from the engine's own `flip_energies` and `acceptance`."""
    supports, _ = states(gram, k)
    number = {tuple(support): a for a, support in enumerate(supports.tolist())}
    proposed = 1.0 / (k * (gram.n_columns - k))
    P = np.zeros((len(supports), len(supports)))
    for a, support in enumerate(supports):
        outside = np.setdiff1d(np.arange(gram.n_columns), support)
        delta = engine.flip_energies(gram, np.concatenate([support, outside]), k)
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
