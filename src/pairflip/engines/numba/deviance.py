r"""Descents in the deviance itself, compiled: flips are ranked by a quadratic form and judged by refitting.

At the fit of a support, with H the Hessian of E, :math:`P = H^{-1}`, C the products of the columns of the support with
all columns under the present row weights, :math:`W = P C`, r the score and s the Schur complement of every column, the
quadratic form gives for the flip of slot i and column j, as for squared error,

.. math:: \Delta E \approx \tfrac12 \left(\theta_i^2 / P_{ii} - r_j'^2 / s_j'\right), \quad
          r_j' = r_j + \theta_i W_{ij} / P_{ii}, \quad s_j' = s_j + W_{ij}^2 / P_{ii} .

The best few are refitted by Newton's method, and the lowest is taken if it lowers E (`walk_down`). At the end every
slot is emptied in turn, the others are refitted, and all columns are ranked by the score test there (`look_around`): a
strong column that leaves moves the others further than the form above knows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pairflip.engines.numba.compile import entry, template
from pairflip.engines.numba.draws import FILL, WHAT, below, draw, draw_start, move_out
from pairflip.losses.newton import factor, newton, part_of

DOWN, SLOTS, GROW, RANDOM, KICK = 0, 1, 2, 3, 4
TRIED = 5
"""How many of the flips that a quadratic form ranks first are refitted."""
LOWER = 1e-10
"""An energy is lower when it is by this fraction: what Newton's method leaves is less."""


class DevianceTable(NamedTuple):
    """The problem: candidate columns `X` (n, m), forced columns `Z` (f, m), the `rows`, and the penalty of a column."""

    X: Any
    Z: Any
    start: Any
    rows: Any
    penalty: float


class Place(NamedTuple):
    """Where a chain stands, and memory: `support` (k,), `theta` (f + k,), the columns `D` (f + k, m) of the support.

    `trial` is `theta` of a support that is tried, `kept` of the best of these, `others` without a slot; `A` (p, m), `C`
    and `W` (p, n), `r`, `s` (n,) are the ranking's; `slots`, `columns`, `gains` (TRIED,) are what it found; `inside`
    (n,) says which columns are in the support.
    """

    support: Any
    theta: Any
    D: Any
    trial: Any
    penalty: Any
    A: Any
    C: Any
    W: Any
    r: Any
    s: Any
    slots: Any
    columns: Any
    gains: Any
    inside: Any
    kept: Any
    others: Any


@part_of
def copy_to(target, source, count):
    """The first numbers of a row; assigning slices would take seconds to compile."""
    for i in range(count):
        target[i] = source[i]


@part_of
def load(table, place, k):
    """Columns of the support into `D`, and which are inside."""
    f, m = table.Z.shape
    for j in range(place.inside.size):
        place.inside[j] = 0
    for a in range(f):
        copy_to(place.D[a], table.Z[a], m)
        place.penalty[a] = 0.0
    for i in range(k):
        copy_to(place.D[f + i], table.X[place.support[i]], m)
        place.inside[place.support[i]] = 1
        place.penalty[f + i] = table.penalty


@template
def settle_at(table, place, k, work):
    """E of the first k columns of the support, fitted anew."""
    f = table.Z.shape[0]
    load(table, place, k)
    copy_to(place.theta, table.start, f)
    for i in range(k):
        place.theta[f + i] = 0.0
    return newton(place.D, f + k, table.rows, place.penalty, place.theta, work, np.inf)


@part_of
def scores(table, place, p, work):
    """Scores r and Schur complements s of all columns beside the p of `D`, at their fit; A = inv(L) D v, C = A X'."""
    X, y, w, mu, v, A, H = table.X, table.rows.y, table.rows.w, work.mu, work.v, place.A[:p], work.H
    factor(place.D, p, place.penalty, work)
    left = work.part
    for i in range(y.size):
        left[i] = w[i] * (y[i] - mu[i])
    np.dot(X, left, place.r)
    for a in range(p):
        A_a, D_a = A[a], place.D[a]
        for i in range(y.size):
            A_a[i] = D_a[i] * v[i]
        for l in range(a):
            A_l, h = A[l], H[a, l]
            for i in range(y.size):
                A_a[i] -= h * A_l[i]
        h = 1.0 / H[a, a]
        for i in range(y.size):
            A_a[i] *= h
    s = place.s
    for j in range(X.shape[0]):
        X_j, total = X[j], table.penalty
        for i in range(y.size):
            total += v[i] * X_j[i] * X_j[i]
        s[j] = total
    C = place.C[:p]
    if p:
        np.dot(A, X.T, C)
    for a in range(p):
        C_a = C[a]
        for j in range(X.shape[0]):
            s[j] -= C_a[j] * C_a[j]
    for j in range(X.shape[0]):
        s[j] = max(s[j], 0.5 * table.penalty)


@part_of
def note(place, gain, slot, column):
    """Keep a flip if it is among the best."""
    gains = place.gains
    if gain <= gains[gains.size - 1]:
        return
    at = gains.size - 1
    while at > 0 and gains[at - 1] < gain:
        gains[at], place.slots[at], place.columns[at] = gains[at - 1], place.slots[at - 1], place.columns[at - 1]
        at -= 1
    gains[at], place.slots[at], place.columns[at] = gain, slot, column


@part_of
def forget(place):
    """No flips are known."""
    for q in range(place.gains.size):
        place.gains[q], place.slots[q] = -np.inf, -1


@part_of
def rank_flips(table, place, k, work):
    """The best flips of all k (n - k), by the quadratic form at the present fit."""
    f, n, H = table.Z.shape[0], table.X.shape[0], work.H
    p = f + k
    scores(table, place, p, work)
    # W = inv(L') C: the last rows first.
    W, C = place.W, place.C
    forget(place)
    for a in range(p - 1, f - 1, -1):
        W_a, C_a, h = W[a], C[a], 1.0 / H[a, a]
        for j in range(n):
            W_a[j] = C_a[j]
        for l in range(a + 1, p):
            W_l, t = W[l], H[l, a]
            for j in range(n):
                W_a[j] -= t * W_l[j]
        for j in range(n):
            W_a[j] *= h
    inverse = work.gradient  # diagonal of P: column a of inv(L), squared
    column = work.step
    for a in range(f, p):
        total = 0.0
        for b in range(a, p):
            t = 1.0 if b == a else 0.0
            for l in range(a, b):
                t -= H[b, l] * column[l]
            column[b] = t / H[b, b]
            total += column[b] * column[b]
        inverse[a] = total
    for i in range(k):
        a = f + i
        d, t, W_a = 1.0 / inverse[a], place.theta[a], W[a]
        lost = t * t * d
        for j in range(n):
            if place.inside[j] == 0:
                r = place.r[j] + t * d * W_a[j]
                s = place.s[j] + d * W_a[j] * W_a[j]
                note(place, r * r / s - lost, i, j)


@template
def refit(table, place, k, slot, column, work, bound):
    """E with `column` in a slot, from the present coefficients; `trial` are those found. `D` is left as it was."""
    a = table.Z.shape[0] + slot
    p = table.Z.shape[0] + k
    copy_to(place.trial, place.theta, p)
    place.trial[a] = 0.0
    copy_to(place.D[a], table.X[column], table.X.shape[1])
    return newton(place.D, p, table.rows, place.penalty, place.trial, work, bound)


@template
def put(table, place, k, slot, column):
    """A column into a slot, with the coefficients `kept`."""
    f = table.Z.shape[0]
    if slot < k:
        place.inside[place.support[slot]] = 0
    place.support[slot] = column
    place.inside[column] = 1
    copy_to(place.D[f + slot], table.X[column], table.X.shape[1])


@template
def try_flips(table, place, k, now, work):
    """Refit the flips that were ranked first; the lowest is made if it lowers E, which comes back."""
    f = table.Z.shape[0]
    best, at = now - LOWER * now, -1
    for q in range(place.gains.size):
        slot, column = place.slots[q], place.columns[q]
        if slot < 0:
            continue
        energy = refit(table, place, k, slot, column, work, best)
        copy_to(place.D[f + slot], table.X[place.support[slot]], table.X.shape[1])
        if energy < best:
            best, at = energy, q
            copy_to(place.kept, place.trial, f + k)
    if at < 0:
        return now
    put(table, place, k, place.slots[at], place.columns[at])
    copy_to(place.theta, place.kept, f + k)
    return newton(place.D, f + k, table.rows, place.penalty, place.theta, work, np.inf)


@template
def walk_down(table, place, k, now, work):
    """Flips by the quadratic form until none of those that are refitted lowers E. The fit is at hand when it begins."""
    while True:
        rank_flips(table, place, k, work)
        then = try_flips(table, place, k, now, work)
        if not then < now:
            return now
        now = then


@template
def grow(table, place, k, now, work):
    """One column more, the k-th: of those that the score test ranks first, the one with the lowest E."""
    f = table.Z.shape[0]
    scores(table, place, f + k, work)
    forget(place)
    for j in range(table.X.shape[0]):
        if place.inside[j] == 0:
            note(place, place.r[j] * place.r[j] / place.s[j], k, j)
    place.theta[f + k] = 0.0
    place.penalty[f + k] = table.penalty
    best, at = np.inf, 0
    for q in range(place.gains.size):
        if place.slots[q] < 0:
            continue
        energy = refit(table, place, k + 1, k, place.columns[q], work, best)
        if energy < best:
            best, at = energy, q
            copy_to(place.kept, place.trial, f + k + 1)
    put(table, place, k, k, place.columns[at])
    copy_to(place.theta, place.kept, f + k + 1)
    return newton(place.D, f + k + 1, table.rows, place.penalty, place.theta, work, np.inf)


@template
def look_around(table, place, k, now, work):
    """Empty every slot in turn, refit the others, rank all columns by the score test; until no slot improves."""
    f, m = table.Z.shape
    p, slot, unchanged = f + k, 0, 0
    while unchanged < k:
        # The column that leaves is the last one, so that the others are together.
        last = k - 1
        place.support[slot], place.support[last] = place.support[last], place.support[slot]
        a, b = f + slot, f + last
        place.theta[a], place.theta[b] = place.theta[b], place.theta[a]
        copy_to(place.D[a], table.X[place.support[slot]], m)
        copy_to(place.D[b], table.X[place.support[last]], m)
        own = place.support[last]
        copy_to(place.trial, place.theta, p)
        newton(place.D, b, table.rows, place.penalty, place.trial, work, np.inf)
        copy_to(place.others, place.trial, b)
        scores(table, place, b, work)
        forget(place)
        for j in range(table.X.shape[0]):
            if place.inside[j] == 0:
                note(place, place.r[j] * place.r[j] / place.s[j], last, j)
        best, at = now - LOWER * now, -1
        for q in range(place.gains.size):
            if place.slots[q] < 0:
                continue
            copy_to(place.trial, place.others, b)
            place.trial[b] = 0.0
            copy_to(place.D[b], table.X[place.columns[q]], m)
            energy = newton(place.D, p, table.rows, place.penalty, place.trial, work, best)
            if energy < best:
                best, at = energy, q
                copy_to(place.kept, place.trial, p)
        copy_to(place.D[b], table.X[own], m)
        unchanged += 1
        if at >= 0:
            put(table, place, k, last, place.columns[at])
            copy_to(place.theta, place.kept, p)
            now, unchanged = best, 1 if k > 1 else k
        # Slots are visited in a cycle although they change places.
        slot = slot + 1 if slot + 1 < last else 0
    return newton(place.D, p, table.rows, place.penalty, place.theta, work, np.inf)


@template
def certify(table, place, k, now, work):
    """Slots and flips in turn until neither lowers E."""
    while True:
        then = look_around(table, place, k, now, work)
        if not then < now - LOWER * now:
            return min(now, then)
        now = walk_down(table, place, k, then, work)


@part_of
def fill_at_random(table, place, k, stays, key, round_):
    """Random columns in place of those that left."""
    for j in range(place.inside.size):
        place.inside[j] = 0
    for i in range(k):
        place.inside[place.support[i]] = 1
    drawn = 0
    for i in range(stays, k):
        column = place.support[i]
        while place.inside[column]:
            w0, _, _, _ = draw(key, round_, FILL, drawn)
            column = below(w0, table.X.shape[0])
            drawn += 1
            if drawn > 50 * k:  # nearly all columns are inside: this one stays
                column = place.support[i]
                break
        place.support[i] = column
        place.inside[column] = 1


@entry
def search(table, place, mode, k, key, round_, least, most, work):
    """E of a minimum of k columns, which is left in `support`; where it is looked for depends on `mode`.

    ``DOWN``: from the support; ``SLOTS``: the same, looked at slot by slot; ``GROW``: from the first k - 1 columns of
    the support and the best one beside them; ``RANDOM``: from the first columns of the random order of `key`; ``KICK``:
    after `least` to `most` random columns of the support were replaced, by random ones or by the best.
    """
    if mode == RANDOM:
        order = np.empty(table.X.shape[0], np.int64)
        draw_start(key[0], key[1], order)
        for i in range(k):
            place.support[i] = order[i]
    stays = k - 1 if mode == GROW else k
    gone = place.support[:0].copy()
    if mode == KICK:
        w0, w1, _, _ = draw(key, round_, WHAT, 0)
        stays = move_out(place.support, k, least + below(w0, most - least + 1), key, round_)
        if stays and below(w1, 2) == 1:
            gone = place.support[stays:k].copy()  # these are not allowed back before the descent
        else:
            fill_at_random(table, place, k, stays, key, round_)
            stays = k
    now = settle_at(table, place, stays, work)
    for i in range(stays, k):
        for j in gone:
            place.inside[j] = 1
        now = grow(table, place, i, now, work)
    for j in gone:
        place.inside[j] = 0
    now = walk_down(table, place, k, now, work)
    return certify(table, place, k, now, work) if mode == SLOTS else now
