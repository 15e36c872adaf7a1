"""Every model of few units, one after the other: sums of their weights, and the most probable ones.

A unit is a column, or a group of them. Models are visited depth first, units in ascending order, so that the table of
each is a copy of its parent's with the columns of one unit added, and rounding does not accumulate beyond the depth.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.compiled import apart, entry, with_names
from pairflip.engines.numba.table import SUPPORT, S, add, empty, energy, table_at

INFLATED = 1e7
"""Models with a larger variance inflation are left out: half of the digits of a Gram matrix are gone there."""
NEGLIGIBLE = 45.0
"""In logarithms of weights: coefficients of models below 3e-20 of the most probable one are not computed."""


class Mixture(NamedTuple):
    """A prior over g, integrated out: `table` (D + 1, Z, 3) for models of d columns, empty for one value of g.

    At place z = ln(1 + s) / `STEP` with s = `freedom` (`empty` / E - 1), for the energy `empty` of no columns, stand
    the logarithm of the weight beside the prior, and the means of u = g / (1 + g) and of its square.
    """

    table: Any
    empty: float
    freedom: float


NO_MIXTURE = Mixture(np.zeros((0, 0, 0)), 1.0, 1.0)
STEP, PLACES = 0.03, 1500
"""Beyond the last place E is a rounding error."""


class ModelWeight(NamedTuple):
    """What a model of k units and d columns weighs, and what its coefficients are (see `search.posterior`).

    The logarithm is `prior[k]` less `column` d and less a E or, with an offset c above 0, a ln(E + c); or `prior[k]`
    and what a mixture over g says. Coefficients are shrunk by `shrink`; the variance of the noise is `spread` + `slope`
    E. Models of more columns than `most` are out.
    """

    prior: Any
    column: float
    a: float
    c: float
    shrink: float
    spread: float
    slope: float
    most: int
    mixture: Mixture


class ModelSums(NamedTuple):
    """Sums over models of weights times something, all relative to exp(`scalars[0]`).

    `scalars`: the largest logarithm of a weight so far, the sum of weights, how many models there were, and how many
    of them are left out because columns depend on each other. `inclusion` (U,) and `sizes` (U + 1,): sums of weights of
    models with a unit, of a size; `first` (D,) and `second` (D, widest): of the mean of each coefficient, and of its
    products with those of the same unit; `top` (t,) and `masks` (t,): the largest logarithms, and their models as bits.
    `lifted` (1 + f,): of the variance of the noise, and of the squares of f combinations of the coefficients, `lift`
    (f, D) times them: what forced columns explain of the others.
    """

    scalars: Any
    inclusion: Any
    sizes: Any
    first: Any
    second: Any
    top: Any
    masks: Any
    lift: Any
    lifted: Any


def new_sums(start: Any, top: int, lift: Any) -> ModelSums:
    """No model was seen."""
    units, columns = start.size - 1, int(start[-1])
    return ModelSums(
        np.array([-np.inf, 0.0, 0.0, 0.0]), np.zeros(units), np.zeros(units + 1), np.zeros(columns),
        np.zeros((columns, int(np.diff(start).max(initial=1)))), np.full(top, -np.inf), np.zeros(top, np.int64),
        lift, np.zeros(1 + len(lift)),
    )  # fmt: skip


@apart
def copy_rows(source, target, rows):
    """The first rows of an array into another one."""
    for m in range(rows):
        for l in range(source.shape[1]):
            target[m, l] = source[m, l]


@apart
def mixed(mixture, d, E, part):
    """One part of the table of a mixture, at the energy of a model of d columns: cubic between its places."""
    table, ratio = mixture.table, mixture.empty / max(E, 1e-300)
    z = min(np.log1p(mixture.freedom * max(ratio - 1.0, 0.0)) / STEP, PLACES - 2.0)
    d, at = min(d, len(table) - 1), min(max(int(z), 1), PLACES - 3)
    t = z - at
    return (
        table[d, at - 1, part] * -t * (t - 1.0) * (t - 2.0) / 6.0
        + table[d, at, part] * (t + 1.0) * (t - 1.0) * (t - 2.0) / 2.0
        - table[d, at + 1, part] * (t + 1.0) * t * (t - 2.0) / 2.0
        + table[d, at + 2, part] * (t + 1.0) * t * (t - 1.0) / 6.0
    )


@apart
def log_weight(weight, E, k, d):
    """Logarithm of the weight of a model."""
    E = max(E, 0.0)
    if weight.mixture.table.size:
        return weight.prior[k] + mixed(weight.mixture, d, E, 0)
    return weight.prior[k] - weight.column * d - weight.a * (E if weight.c == 0.0 else np.log(E + weight.c))


@apart
def coefficient_moments(weight, E, d):
    """Means of u = g / (1 + g), its square, the variance v of the noise, and u v, of a model of d columns."""
    E, mixture = max(E, 0.0), weight.mixture
    if not mixture.table.size:
        noise = weight.spread + weight.slope * E
        return weight.shrink, weight.shrink**2, noise, weight.shrink * noise
    u, square, below = mixed(mixture, d, E, 1), mixed(mixture, d, E, 2), 0.5 * (mixture.freedom - 2.0)
    noise, shrunken = mixture.empty * (1.0 - u) + u * E, mixture.empty * (u - square) + square * E
    return u, square, noise / below, shrunken / below


@apart
def rescale(sums, log):
    """Make another logarithm the one that sums are relative to."""
    # Weights span hundreds of orders of magnitude: relative to the largest, none of them overflows.
    factor = np.exp(sums.scalars[0] - log)
    sums.scalars[0] = log
    sums.scalars[1] *= factor
    for each in (sums.inclusion, sums.sizes, sums.first, sums.second.reshape(-1), sums.lifted):
        for j in range(each.size):
            each[j] *= factor


@apart
def keep(sums, log, mask):
    """Enter a model among the most probable ones, if it is one of them."""
    top, at = sums.top, sums.top.size - 1
    if at < 0 or log <= top[at]:
        return
    while at > 0 and top[at - 1] < log:
        top[at], sums.masks[at] = top[at - 1], sums.masks[at - 1]
        at -= 1
    top[at], sums.masks[at] = log, mask


@apart
def count_model(weight, sums, start, units, k, Q, support, d, E):
    """Add one model of k units and d columns to all sums."""
    sums.scalars[2] += 1.0
    if weight.prior[k] == -np.inf:
        return
    log = log_weight(weight, E, k, d)
    if log > sums.scalars[0]:
        rescale(sums, log)
    share, mask, column = np.exp(log - sums.scalars[0]), 0, 0
    sums.scalars[1] += share
    sums.sizes[k] += share
    first_u, second_u, noise, shrunken = coefficient_moments(weight, E, d)
    for m in range(k):
        u, first = units[m], column
        sums.inclusion[u] += share
        mask |= 1 << u
        column += start[u + 1] - start[u]
        # The sums over coefficients are the dear part, and what is negligible now stays negligible.
        if log > sums.scalars[0] - NEGLIGIBLE:
            for i in range(first, column):
                at = start[u] + i - first
                sums.first[at] -= share * first_u * Q[0, i]
                for l in range(first, column):
                    product = second_u * Q[0, i] * Q[0, l] + shrunken * Q[1 + i, l]
                    sums.second[at, l - first] += share * product
    sums.lifted[0] += share * noise
    for f in range(len(sums.lift)):
        mean, square = 0.0, 0.0
        for i in range(d):
            mean += sums.lift[f, support[i]] * Q[0, i]
            for l in range(d):
                square += sums.lift[f, support[i]] * sums.lift[f, support[l]] * Q[1 + i, l]
        sums.lifted[1 + f] += share * (second_u * mean**2 + shrunken * square)
    keep(sums, log, mask)


@entry
def visit_models(form, G, start, weight, sums, tables, largest, first, last):
    """All models whose smallest unit is from `first` to `last` - 1; with `first` -1, the one without units, too.

    Of the `largest` + 1 `tables`, number k is that of the model of k units that is being visited.
    """
    n, units, columns = start.size - 1, np.zeros(largest + 1, np.int64), np.zeros(largest + 1, np.int64)
    empty(form, table_at(tables, 0))
    if first < 0:
        count_model(weight, sums, start, units, 0, tables.Q[0], tables.columns[0, SUPPORT], 0, 0.5 * form.yy)
        first = 0
    k, u = 0, first
    while largest > 0:
        if u == (last if k == 0 else n):
            if k == 0:
                return
            k -= 1
            u = units[k] + 1
            continue
        parent, child, d = table_at(tables, k), table_at(tables, k + 1), columns[k]
        if d + start[u + 1] - start[u] > weight.most:
            u += 1
            continue
        # Copied and extended, not changed and changed back: rounding then is that of one path from the root.
        copy_rows(parent.A, child.A, 1 + d)
        copy_rows(parent.Q, child.Q, 1 + d)
        copy_rows(parent.values, child.values, 1)
        copy_rows(parent.columns, child.columns, 3)
        regular = True
        for j in range(start[u], start[u + 1]):
            regular = regular and child.values[S, j] * INFLATED > 1.0
            if regular:
                add(form, child, d, np.int64(j), G[j])
                d += 1
        for m in range(d):
            regular = regular and child.Q[1 + m, m] < INFLATED
        if not regular:
            sums.scalars[3] += 1.0  # and all models that hold these units, which are not visited either
            u += 1
            continue
        units[k], columns[k + 1] = u, d
        count_model(weight, sums, start, units, k + 1, child.Q, child.columns[SUPPORT], d, energy(form, child, d))
        if k + 1 < largest and u + 1 < n:
            k += 1
        u += 1


# The same for single models, called from Python.
weight_of_model = with_names(log_weight, "weight_of_model", mixed=mixed.py_func)
moments_of_model = with_names(coefficient_moments, "moments_of_model", mixed=mixed.py_func)
