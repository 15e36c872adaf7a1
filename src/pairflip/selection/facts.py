r"""What is plain to see in a table and makes cross validation too optimistic: rows that depend on each other.

Cross validation asks how well a row is predicted by the *other* rows. Where a row has a near copy among them (the day
before in a time series, a duplicated line of a file), it answers a different question than how well new rows are
predicted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pairflip.engines.blas import one_blas_thread
from pairflip.gram import Gram
from pairflip.least_squares import Floats
from pairflip.problem import SubsetProblem
from pairflip.search.forward import forward_energies

_CLEAR = 3.0  # standard errors from zero: one table in a thousand whose rows are in no order
_STRONG = 0.3


def table_facts(problem: SubsetProblem) -> dict[str, Any]:
    """Facts by name, only those that apply.

    ``autocorrelation``: the correlation of the target with that of the next row, where it is large and the table is not
    merely sorted by the target; ``identical_rows``: how many rows repeat an earlier row, target included;
    ``two_values``: the two values of a target that has no others. (``p_value``, see `shuffled_targets`, is added to
    them in a curve.)
    """
    present = problem.sample_weight > 0
    y = problem.y[present]
    facts: dict[str, Any] = {}
    r = autocorrelation(y)
    if r > max(_CLEAR / np.sqrt(y.size), _STRONG) and not _is_sorted(y):
        facts["autocorrelation"] = round(r, 3)
    same = identical_rows(problem.X if present.all() else problem.X[present], y)
    if same:
        facts["identical_rows"] = same
    values = np.unique(y)
    if values.size == 2:
        facts["two_values"] = values.tolist()
    return facts


def autocorrelation(y: Floats) -> float:
    r"""Lag-one autocorrelation :math:`\sum_i (y_i - \bar y)(y_{i+1} - \bar y) / \sum_i (y_i - \bar y)^2`."""
    d = y - y.mean()
    return float(d[1:] @ d[:-1] / (d @ d))


def _is_sorted(y: Floats) -> bool:
    steps = np.diff(y)
    return bool((steps >= 0).all() or (steps <= 0).all())


def identical_rows(X: Floats, y: Floats) -> int:
    """How many rows equal an earlier one in every column and in the target."""
    seen: set[bytes] = set()
    for row, target in zip(X, y, strict=True):
        seen.add(np.append(row, target).tobytes())
    return int(y.size - len(seen))


SHUFFLES = 199
_MOST_STEPS = 6
_BUDGET = 4e9  # multiplications
_PRODUCTS_BYTES = 32 * 2**20


@one_blas_thread()
def shuffled_targets(gram: Gram, largest: int, seed: int = 0) -> float:
    """Fraction of targets (this one and `SHUFFLES` shuffled ones) that forward selection fits at least as remarkably.

    Parameters
    ----------
    gram : Gram
        The problem of all rows.
    largest : int
        Largest number of columns that are selected; fewer where that would take more than some seconds.
    seed : int
        Of the shuffles.
    """
    n, m = gram.n_columns, gram.target.size
    steps = min(_MOST_STEPS, largest, n, m - 1)
    while steps > 1 and SHUFFLES * n * steps * (4.0 * steps + (0 if gram.dense else m)) > _BUDGET:
        steps -= 1
    rng = np.random.default_rng(seed)
    targets = np.stack([gram.target, *(rng.permutation(gram.target) for _ in range(SHUFFLES))])
    left, together = [], max(1, _PRODUCTS_BYTES // (8 * n))
    for first in range(0, len(targets), together):
        part = targets[first : first + together]
        left += [_path(gram, b, float(y @ y), steps) for y, b in zip(part, gram.products(part), strict=True)]
    return _rank(np.stack(left))


def _path(gram: Gram, b: Floats, yy: float, steps: int) -> Floats:
    """Energies (steps,) that forward selection leaves of a target with these inner products, relative to the start."""
    energies = forward_energies(gram, steps, b, yy)
    energies += energies[-1:] * (steps + 1 - len(energies))
    return np.asarray(energies[1:]) / max(energies[0], 1e-300)


def _rank(left: Floats) -> float:
    """p-value of the first row of (targets, levels): its rank at each level, then the rank of its best rank."""
    # Targets that are fitted equally well share the worse rank, whatever rounding says (1e-9).
    ranks = np.stack([np.searchsorted(np.sort(level), level * (1 + 1e-9), side="right") for level in left.T])
    best = ranks.min(axis=0)
    return float(np.mean(best <= best[0]))
