r"""Descents where coefficients have signs, compiled: the best flip of all, exactly, until none lowers the energy.

Let x be the fit of T = S without slot i, with its signs, and :math:`g_j = X_j^T (y - X_T x)`. A column j whose g has
the wrong sign would carry nothing. Otherwise, because the fit of T cannot be improved without j, and with :math:`s_j`
what of column j is independent of T,

.. math:: 2 E^+(T + j) \ge 2 E^+(T) - g_j^2 / s_j .

This bound is the energy itself as long as all coefficients keep their signs. So flips are settled (`explain`) in the
order of their bounds until a bound exceeds the lowest energy found. Everything is computed anew at every support;
where the Gram matrix cannot tell, the answer is DOUBT and the columns decide (`signed_search`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.engines.base import EPSILON, EQUAL
from pairflip.engines.numba.cholesky import DOUBT, MINIMUM, SEATED, add_pivot, invert
from pairflip.engines.numba.compile import apart, entry, kernel, template
from pairflip.engines.numba.draws import WHAT, below, draw, draw_start, mix, move_out
from pairflip.engines.numba.nonnegative import ENTERS, Few, blur, explain, inflation, new_few
from pairflip.engines.numba.rules import is_needed, may_enter
from pairflip.losses.signed import SignedForm

CALM = 5e7
"""Inflation up to which the Gram matrix is asked: bounds allow for what rounding may have changed."""
FORBIDDEN = -np.inf


class Signed(NamedTuple):
    """The problem: `G` (n, n), `b` (n,), `yy`, `signs` (n,), `rules`, and whether there are any."""

    G: Any
    b: Any
    yy: float
    signs: Any
    rules: Any
    ruled: bool


def signed_system(form: SignedForm) -> Signed:
    """The problem as kernels see it."""
    return Signed(form.matrix, form.b, form.yy, form.signs.astype(np.float64), form.rules, form.rules.any)


class Site(NamedTuple):
    r"""Memory of a search, for up to K columns.

    `support` (K,), `L`, `P` (K, K), `V` (K, n) with :math:`V_{ij} = W_{ij} / \sqrt{P_{ii}}`, `s` (n,) as in `several`;
    `bound` (K, n): the most that flips may lower 2 E by; `g` (n,): products of the columns with a residual; `x` (K,):
    coefficients of the support; `inside` (n,): 1 for columns that cannot enter; `order` (n,); `few`: for one fit.
    """

    support: Any
    L: Any
    P: Any
    V: Any
    s: Any
    bound: Any
    g: Any
    x: Any
    inside: Any
    order: Any
    few: Few


def new_site(largest: int, n: int) -> Site:
    """Memory for up to `largest` of n columns."""
    square, wide, whole = (largest, largest), (largest, n), np.int64
    return Site(
        np.zeros(largest, whole), np.zeros(square), np.zeros(square), np.zeros(wide), np.zeros(n), np.zeros(wide),
        np.zeros(n), np.zeros(largest), np.zeros(n, np.int8), np.zeros(n, whole), new_few(largest + 1),
    )  # fmt: skip


@kernel
def mark(site, k):
    """Which columns are in the support."""
    for j in range(site.inside.size):
        site.inside[j] = 0
    for i in range(k):
        site.inside[site.support[i]] = 1


@apart
def build(G, site, k):
    """P, V and s at the support; its largest inflation, infinite where the Gram matrix cannot be relied on."""
    n, s, V = G.shape[0], site.s, site.V
    for i in range(k):
        if not add_pivot(G, site.L, site.support, i, site.support[i]) > 0.5 / CALM:
            return np.inf
    top = invert(site.L, site.P, k)
    if not top <= CALM:
        return np.inf
    for j in range(n):
        s[j] = G[j, j]
    for i in range(k):
        V_i, d = V[i], np.sqrt(site.P[i, i])
        for j in range(n):
            V_i[j] = 0.0
        for l in range(k):
            p, G_l = site.P[i, l], G[site.support[l]]
            for j in range(n):
                V_i[j] += p * G_l[j]
        G_i = G[site.support[i]]
        for j in range(n):
            s[j] -= G_i[j] * V_i[j]
            V_i[j] /= d
    return max(top, 1.0)


@kernel
def products(form, site, k):
    """g: products of all columns with the residual of the k members of `few`."""
    few, g = site.few, site.g
    for j in range(g.size):
        g[j] = form.b[j]
    for a in range(k):
        x, G_a = few.x[a], form.G[few.members[a]]
        if x != 0.0:
            for j in range(g.size):
                g[j] -= x * G_a[j]


@kernel
def towards(sign, g):
    """How far a column would carry: its product with the residual in the direction of its sign."""
    return abs(g) if sign == 0 else sign * g


@kernel
def fill_bounds(form, site, bound, V, lost, lost_digits, slot, k):
    """The most that columns may lower 2 E by, in the place of `slot`; the same for those that rounding hides."""
    might, root = FORBIDDEN, np.sqrt(form.yy)
    for j in range(bound.size):
        bound[j] = FORBIDDEN
        t = towards(form.signs[j], site.g[j])
        if site.inside[j] == 0 and t > ENTERS * root:
            s = site.s[j] + V[j] * V[j]
            if s > 2.0 * lost_digits:
                t += lost_digits * root
                bound[j] = t * t / (s - lost_digits) - lost
            elif s > 5e-11 - lost_digits and (not form.ruled or may_enter(form.rules, site.support, k, slot, j)):
                t += lost_digits * root
                might = max(might, t * t / max(s - lost_digits, 2e-11) - lost)
    return might


@kernel
def highest(bound, k):
    """Slot and column of the largest of (k, n) bounds."""
    slot, column, most = -1, -1, FORBIDDEN
    for i in range(k):
        row = bound[i]
        for j in range(row.size):
            if row[j] > most:
                slot, column, most = i, j, row[j]
    return slot, column, most


@template
def best_flip(form, site, k):
    """Slot, column, what the best flip lowers 2 E by and by how much rounding may have moved that.

    Further: the most that an unsure one might, and 2 E now; slot -2 where the Gram matrix cannot be relied on.
    """
    few, support = site.few, site.support
    top = build(form.G, site, k)
    digits = 4.0 * EPSILON * top * (k + 1)  # what rounding may have changed of a Schur complement
    for a in range(k):
        few.members[a] = support[a]
    slot, column, best, might, unsure = -2, -1, FORBIDDEN, FORBIDDEN, 0.0
    now, pivot = explain(form.G, form.b, form.yy, form.signs, few, k) if top < np.inf else (0.0, 0.0)
    if pivot > 0.0:
        slot, here = -1, blur(pivot, k) * form.yy
        for a in range(k):
            site.x[a] = few.x[a]
        for i in range(k):
            for j in range(site.g.size):
                site.bound[i, j] = FORBIDDEN
            if form.ruled and is_needed(form.rules, support, k, i):
                continue
            at = 0
            for a in range(k):
                if a != i:
                    few.members[at], few.x[at] = support[a], site.x[a]
                    at += 1
            lost = 0.0
            if site.x[i] != 0.0:
                rest, pivot = explain(form.G, form.b, form.yy, form.signs, few, k - 1)
                lost = max(now - rest, 0.0)
            products(form, site, k - 1)
            might = max(might, fill_bounds(form, site, site.bound[i], site.V[i], lost, digits, i, k))
        while True:
            i, j, most = highest(site.bound, k)
            if not most + here > max(best, 0.0):
                break
            site.bound[i, j] = FORBIDDEN
            if form.ruled and not may_enter(form.rules, support, k, i, j):
                continue
            for a in range(k):
                few.members[a] = j if a == i else support[a]
            regular = inflation(form.G, few, k)
            then, pivot = explain(form.G, form.b, form.yy, form.signs, few, k)
            if regular < 0.0 or (pivot == 0.0 and regular < np.inf):
                might = max(might, most)
            elif regular < np.inf and then - now > best:
                slot, column, best, unsure = i, j, then - now, here + blur(pivot, k) * form.yy
    return slot, column, best, unsure, might, form.yy - now


@entry
def walk_down(form, site, k, most):
    """Make the best flips, at most so many; MINIMUM, or DOUBT where the columns must decide how to go on."""
    mark(site, k)
    for _ in range(most):
        slot, column, best, unsure, might, left = best_flip(form, site, k)
        worth = EQUAL * max(left, 0.0)
        if slot >= 0 and best > max(unsure, worth):
            site.inside[site.support[slot]] = 0
            site.inside[column] = 1
            site.support[slot] = column
        elif slot == -2 or max(best + unsure, might) > worth:
            return DOUBT
        else:
            return MINIMUM
    return DOUBT


@entry
def find_addition(form, site, k, barred):
    """The column that lowers the energy of the first k most, none of the `barred`; -1 where the columns must decide.

    Where none lowers it, the first that may enter and is independent of the others.
    """
    few, support = site.few, site.support
    mark(site, k)
    for j in barred:
        site.inside[j] = 1
    top = build(form.G, site, k) if k > 0 else 1.0
    if k == 0:
        for j in range(site.s.size):
            site.s[j] = form.G[j, j]
    for a in range(k):
        few.members[a] = support[a]
    now, pivot = explain(form.G, form.b, form.yy, form.signs, few, k) if top < np.inf else (0.0, 0.0)
    if pivot == 0.0:
        return -1
    products(form, site, k)
    digits, bound = 4.0 * EPSILON * top * (k + 1), site.bound[:1]
    nothing = site.V[0]
    for j in range(nothing.size):
        nothing[j] = 0.0
    might = fill_bounds(form, site, bound[0], nothing, 0.0, digits, -1, k)
    column, best = -1, 0.0
    while True:
        _, j, most = highest(bound, 1)
        if not most > best:
            break
        bound[0, j] = FORBIDDEN
        if form.ruled and not may_enter(form.rules, support, k, -1, j):
            continue
        for a in range(k):
            few.members[a] = support[a]
        few.members[k] = j
        regular = inflation(form.G, few, k + 1)
        then, pivot = explain(form.G, form.b, form.yy, form.signs, few, k + 1)
        if regular < 0.0 or (pivot == 0.0 and regular < np.inf):
            might = max(might, most)
        elif regular < np.inf and then - now > best:
            column, best = j, then - now
    if might > best:
        return -1
    if column < 0:
        for j in range(site.s.size):
            may = site.inside[j] == 0 and site.s[j] > max(SEATED * top, 8.0 * digits)
            if may and (not form.ruled or may_enter(form.rules, support, k, -1, j)):
                return j
    return column


@entry
def forward(form, site, energies):
    """Add the best column as often as there are `energies`, and write these; how often that was possible."""
    few = site.few
    for k in range(energies.size):
        column = find_addition(form, site, k, site.order[:0])
        if column < 0:
            return k
        site.support[k] = column
        for a in range(k + 1):
            few.members[a] = site.support[a]
        energies[k] = 0.5 * (form.yy - explain(form.G, form.b, form.yy, form.signs, few, k + 1)[0])
    return energies.size


@kernel
def seat(form, site, stays, k):
    """Columns of `order` after the first `stays` of the support, each independent of those before; how many there are.

    Columns that are `inside` already are passed over. What needs others is looked at again once these are there.
    """
    for i in range(stays):
        add_pivot(form.G, site.L, site.support, i, site.support[i])
    at, before = stays, -1
    while at > before and at < k:
        before = at
        for j in site.order:
            may = at < k and site.inside[j] == 0
            may = may and (not form.ruled or may_enter(form.rules, site.support, at, -1, j))
            if may and add_pivot(form.G, site.L, site.support, at, j) > SEATED:
                site.support[at] = j
                site.inside[j] = 1
                at += 1
    return at


@entry
def begin_at_random(form, site, k, key):
    """Seat the first columns of the random order of a key; how many could be seated."""
    draw_start(key[0], key[1], site.order)
    mark(site, 0)
    return seat(form, site, 0, k)


@entry
def least_energy(form, site, k):
    """The least that the energy of the support may be, given what rounding leaves open; infinite where it is singular.

    And whether the support is regular for certain.
    """
    for a in range(k):
        site.few.members[a] = site.support[a]
    top = inflation(form.G, site.few, k)
    if top < 0.0 or top == np.inf:
        return max(top, 0.0), False
    explained, pivot = explain(form.G, form.b, form.yy, form.signs, site.few, k)
    return (0.5 * (form.yy - explained - blur(pivot, k) * form.yy) if pivot > 0.0 else 0.0), True


@entry
def kick(form, site, k, key, round_, least, most):
    """Random columns of the support leave, with those that need them; random ones enter, or the caller fills up.

    How many columns are there then comes back.
    """
    w0, w1, _, _ = draw(key, round_, WHAT, 0)
    leaving, support = least + below(w0, most - least + 1), site.support
    mark(site, k)
    stays = move_out(support, k, leaving, key, round_)
    at = 0
    while form.ruled and at < stays:
        if may_enter(form.rules, support, stays, at, support[at]):
            at += 1
        else:  # what it needs has left
            support[at], support[stays - 1] = support[stays - 1], support[at]
            stays -= 1
            at = 0
    if stays and below(w1, 2) == 1:
        return stays
    mix(site.order, key, round_)
    return seat(form, site, stays, k)
