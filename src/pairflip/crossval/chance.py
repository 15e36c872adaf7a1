r"""Would shuffled targets be fitted as well? A test of the whole table against chance.

The lowest of several cross-validated errors is low partly by luck, and how lucky one can be depends on the table: on
its rows, its columns and how alike they are. Shuffling the target shows it on this very table. The statistic is what
forward selection leaves, :math:`E_1, \dots, E_K`; of K levels the most unusual one counts, judged against the same of
the shuffled targets, so that rows in no order and a target that has nothing to do with the columns give a p-value of
at most p in a fraction p of all tables.
"""

from __future__ import annotations

import numpy as np

from pairflip.engines.blas import one_blas_thread
from pairflip.forward import forward_energies
from pairflip.gram import Gram
from pairflip.least_squares import Floats

SHUFFLES = 199
_MOST_STEPS = 6
_BUDGET = 4e9  # multiplications


@one_blas_thread()
def shuffled_targets(gram: Gram, largest: int, seed: int = 0) -> float:
    """Fraction of targets (this one and `SHUFFLES` shuffled ones) that forward selection fits as unusually well.

    Up to `largest` columns are selected; fewer where that would take more than some seconds.
    """
    n, m = gram.n_columns, gram.target.size
    steps = min(_MOST_STEPS, largest, n, m - 1)
    while steps > 1 and SHUFFLES * n * steps * (4.0 * steps + (0 if gram.dense else m)) > _BUDGET:
        steps -= 1
    rng = np.random.default_rng(seed)
    targets = np.stack([gram.target, *(rng.permutation(gram.target) for _ in range(SHUFFLES))])
    left = np.stack(
        [_path(gram, b, float(y @ y), steps) for y, b in zip(targets, targets @ gram.columns.T, strict=True)]
    )
    return _rank(left)


def _path(gram: Gram, b: Floats, yy: float, steps: int) -> Floats:
    """Energies (steps,) that forward selection leaves of a target with these inner products, relative to its own."""
    energies = forward_energies(gram, steps, b, yy)
    energies += energies[-1:] * (steps + 1 - len(energies))
    return np.asarray(energies[1:]) / max(energies[0], 1e-300)


def _rank(left: Floats) -> float:
    """p-value of the first row of (targets, levels): its rank at each level, then the rank of its best rank."""
    ranks = np.stack([np.searchsorted(np.sort(level), level * (1 + 1e-9), side="right") for level in left.T])
    best = ranks.min(axis=0)
    return float(np.mean(best <= best[0]))
