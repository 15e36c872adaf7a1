"""Every model of few columns, one after the other: sums of their weights, and the most probable ones.

Models are visited depth first, columns in ascending order, so that each is its parent and one column more: O(k^2) each,
and rounding that does not accumulate beyond k steps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.engines.numba.compile import entry, kernel
from pairflip.engines.numba.models import INFLATED, beside, border, log_weight

NEGLIGIBLE = 45.0
"""In logarithms of weights: coefficients of models below 3e-20 of the most probable one are not computed."""


class ModelSums(NamedTuple):
    """Sums over models of weights times something, all relative to exp(`scalars[0]`).

    `scalars`: the largest logarithm of a weight so far, the sum of weights, how many models there were, and how many
    of them are left out because columns depend on each other. `inclusion` (n,) and `sizes` (n + 1,): sums of weights of
    models with a column, of a size; `first`, `second` (n,): of the mean and the mean square of each coefficient (zero
    where the column is not in); `top` (t,) and `masks` (t,): the largest logarithms, and their models as bits.
    """

    scalars: Any
    inclusion: Any
    sizes: Any
    first: Any
    second: Any
    top: Any
    masks: Any


def new_sums(n: int, top: int) -> ModelSums:
    """No model was seen."""
    scalars = np.array([-np.inf, 0.0, 0.0, 0.0])
    zeros = np.zeros((3, n))
    return ModelSums(
        scalars, zeros[0], np.zeros(n + 1), zeros[1], zeros[2], np.full(top, -np.inf), np.zeros(top, np.int64)
    )


@kernel
def rescale(sums, log):
    """Make another logarithm the one that sums are relative to."""
    factor = np.exp(sums.scalars[0] - log)
    sums.scalars[0] = log
    sums.scalars[1] *= factor
    for j in range(sums.inclusion.size):
        sums.inclusion[j] *= factor
        sums.first[j] *= factor
        sums.second[j] *= factor
    for k in range(sums.sizes.size):
        sums.sizes[k] *= factor


@kernel
def keep(sums, log, mask):
    """Enter a model among the most probable ones, if it is one of them."""
    top, at = sums.top, sums.top.size - 1
    if at < 0 or log <= top[at]:
        return
    while at > 0 and top[at - 1] < log:
        top[at], sums.masks[at] = top[at - 1], sums.masks[at - 1]
        at -= 1
    top[at], sums.masks[at] = log, mask


@kernel
def count_model(weight, sums, order, P, x, k, energy):
    """Add one model to all sums."""
    sums.scalars[2] += 1.0
    if weight.prior[k] == -np.inf:
        return
    log = log_weight(weight, energy, k)
    if log > sums.scalars[0]:
        rescale(sums, log)
    share = np.exp(log - sums.scalars[0])
    sums.scalars[1] += share
    sums.sizes[k] += share
    mask = 0
    for m in range(k):
        sums.inclusion[order[m]] += share
        mask |= 1 << order[m]
    keep(sums, log, mask)
    if log > sums.scalars[0] - NEGLIGIBLE:
        noise = weight.shrink * (weight.spread + weight.slope * max(energy, 0.0))
        for m in range(k):
            mean = weight.shrink * x[m]
            sums.first[order[m]] += share * mean
            sums.second[order[m]] += share * (mean * mean + noise * P[m, m])


@entry
def visit_models(system, weight, sums, largest, first, last):
    """All models whose smallest column is from `first` to `last` - 1; with `first` -1, the one without columns, too."""
    n = system.b.size
    P, x = np.zeros((largest + 1, largest, largest)), np.zeros((largest + 1, largest))
    energy, order = np.zeros(largest + 1), np.zeros(largest, np.int64)
    g, W = np.empty(largest), np.empty(largest)
    energy[0] = system.empty
    if first < 0:
        count_model(weight, sums, order, P[0], x[0], 0, energy[0])
        first = 0
    if largest == 0:
        return
    k, column = 0, first
    while True:
        if column == (last if k == 0 else n):
            if k == 0:
                return
            k -= 1
            column = order[k] + 1
            continue
        r, s, worst = beside(system, order, P[k], x[k], k, column, g, W)
        for m in range(k):
            worst = max(worst, P[k, m, m] + W[m] * W[m] / s)
        if not (s > 0.0 and worst < INFLATED):
            sums.scalars[3] += 1.0  # and all models that hold these columns, which are not visited either
            column += 1
            continue
        for m in range(k):
            x[k + 1, m] = x[k, m]
            for l in range(k):
                P[k + 1, m, l] = P[k, m, l]
        border(P[k + 1], x[k + 1], k, W, r, s)
        order[k] = column
        energy[k + 1] = energy[k] - 0.5 * r * r / s
        count_model(weight, sums, order, P[k + 1], x[k + 1], k + 1, energy[k + 1])
        if k + 1 < largest and column + 1 < n:
            k += 1
        column += 1
