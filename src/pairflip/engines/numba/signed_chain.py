r"""Simulated annealing where coefficients have signs: the chain of the reference engine, compiled.

A flip with the random number u is accepted if :math:`\Delta E^+ \le \max(-\ln u / \beta, \mathrm{TIE}\, y^T y)`. The
energy without signs is a lower bound and comes first; after some refusals in a row the bounds of all flips (`signed`)
are computed, which then refuse most of them at once. Where rounding might decide (a support of large inflation, a
change of energy near the limit), the flip is judged from the columns.
"""

from __future__ import annotations

import numpy as np

from pairflip.engines.base import BETTER, EPSILON, TIE, Tick, WalkPlan, WalkResult
from pairflip.engines.first_support import first_order
from pairflip.engines.numba.compile import apart, entry, kernel
from pairflip.engines.numba.draws import draw_flips
from pairflip.engines.numba.nonnegative import LEAST, blur, explain, inflation
from pairflip.engines.numba.rules import may_flip
from pairflip.engines.numba.signed import build, new_site, products, signed_system, towards
from pairflip.gram import Gram
from pairflip.least_squares import Floats
from pairflip.losses.signed import SignedForm
from pairflip.philox import flip_draws

BLOCK = 64
WAIT = 16
"""Refusals in a row, and a sixteenth of the number of columns more, after which bounds of all flips are computed."""
REFUSED, ACCEPTED, UNSURE = 0, 1, 2
NOW, MOVED, LOWEST, SUM, QUIET, OFF = range(6)
"""Places in the state of a chain: its energy, how far rounding may have moved that, the lowest, the sum over flips; how
many refusals there were in a row, and how far bounds are off by rounding, infinite while they are not known."""


@kernel
def lower_bound(few, b, yy, k):
    """E without signs of the first k of `members`, from the inverse that `inflation` left in Q."""
    explained = 0.0
    for a in range(k):
        for l in range(k):
            explained += b[few.members[a]] * few.Q[a, l] * b[few.members[l]]
    return 0.5 * (yy - explained)


@kernel
def same_carry(few, k, carried, count):
    """Whether the carrying columns of `members` are the `count` ones marked as `carried`: the same fit."""
    own = 0
    for a in range(k):
        if few.carries[a] == 1:
            own += 1
            if carried[few.members[a]] == 0:
                return False
    return own == count


@kernel
def note_carrying(few, k, carried):
    """Mark the carrying columns of `members`; how many these are."""
    count = 0
    for j in range(carried.size):
        carried[j] = 0
    for a in range(k):
        carried[few.members[a]] = few.carries[a]
        count += few.carries[a]
    return count


@kernel
def consider(form, few, k, now, moved, limit, carried, count):
    """REFUSED, ACCEPTED or UNSURE: whether the energy of `members` exceeds `now` by at most `limit`; it, and its blur.

    Of the present support `count` columns carry, those that are marked as `carried` (-1: not known).
    """
    top = inflation(form.G, few, k)
    if top == np.inf:
        return REFUSED, 0.0, 0.0
    if top < 0.0 or top > 1.0 / LEAST:
        return UNSURE, 0.0, 0.0
    rounding = moved + blur(1.0 / top, k) * form.yy
    if lower_bound(few, form.b, form.yy, k) - now > limit + rounding:
        return REFUSED, 0.0, 0.0
    explained, pivot = explain(form.G, form.b, form.yy, form.signs, few, k)
    if pivot == 0.0:
        return UNSURE, 0.0, 0.0
    if same_carry(few, k, carried, count):
        return ACCEPTED, now, moved
    then = 0.5 * (form.yy - explained)
    if abs(then - now - limit) <= rounding:
        return UNSURE, 0.0, 0.0
    return (ACCEPTED if then - now <= limit else REFUSED), then, rounding - moved


@apart
def bound_all(form, site, order, k):
    """The most (k, n) that flips from the support order[:k] may lower 2 E by, into `bound`.

    And by how much rounding may have moved 2 E; infinite where the Gram matrix cannot be relied on.
    """
    few, root = site.few, np.sqrt(form.yy)
    for a in range(k):
        site.support[a] = few.members[a] = order[a]
    top = build(form.G, site, k)
    if top == np.inf:
        return np.inf
    digits = 4.0 * EPSILON * top * (k + 1)
    now, pivot = explain(form.G, form.b, form.yy, form.signs, few, k)
    for a in range(k):
        site.x[a] = few.x[a]
    for i in range(k):
        at = 0
        for a in range(k):
            if a != i:
                few.members[at], few.x[at] = order[a], site.x[a]
                at += 1
        lost = 0.0
        if site.x[i] != 0.0:
            lost = max(now - explain(form.G, form.b, form.yy, form.signs, few, k - 1)[0], 0.0)
        products(form, site, k - 1)
        bound, V = site.bound[i], site.V[i]
        for j in range(bound.size):
            s = site.s[j] + V[j] * V[j]
            t = max(towards(form.signs[j], site.g[j]), 0.0) + digits * root
            bound[j] = t * t / (s - digits) - lost if s > 2.0 * digits else np.inf
    return blur(pivot, k) * form.yy if pivot > 0.0 else np.inf


@entry
def advance(form, site, order, best, state, carried, key, k, first, last, beta, slot, position, u):
    """Flips `first` to `last` - 1 at one temperature: the next one, less than `last` if it is to be judged, and
    how many were accepted. `order` has the support first; `best` (k,) is the lowest support met.
    """
    accepted, t, n, few = 0, first, order.size, site.few
    for a in range(k):
        few.members[a] = order[a]
    count = -1
    if explain(form.G, form.b, form.yy, form.signs, few, k)[1] > 0.0:
        count = note_carrying(few, k, carried)
    while t < last:
        block = min(last - t, BLOCK)
        draw_flips(t, block, key[0], key[1], k, n - k, slot, position, u)
        for q in range(block):
            i, at = slot[q], k + position[q]
            limit = max(TIE * form.yy, -np.log(u[q]) / beta) if beta > 0.0 else np.inf
            state[QUIET] += 1.0
            if state[QUIET] == WAIT + n // 16:
                state[OFF] = bound_all(form, site, order, k)
            may = 2.0 * (limit + state[MOVED]) + state[OFF] >= -site.bound[i, order[at]]
            if may and (not form.ruled or may_flip(form.rules, order, k, i, order[at])):
                for a in range(k):
                    few.members[a] = order[at] if a == i else order[a]
                found, then, moved = consider(form, few, k, state[NOW], state[MOVED], limit, carried, count)
                if found == UNSURE:
                    return t + q, accepted
                if found == ACCEPTED:
                    order[i], order[at] = order[at], order[i]
                    state[NOW], state[MOVED] = then, moved
                    count = note_carrying(few, k, carried)
                    accepted += 1
                    state[QUIET], state[OFF] = 0.0, np.inf
                    if then < state[LOWEST] - BETTER * form.yy:
                        state[LOWEST] = then
                        for a in range(k):
                            best[a] = order[a]
            state[SUM] += state[NOW]
        t += block
    return t, accepted


@entry
def change_of_flip(form, few, order, carried, k, now, delta):
    """Delta E (k, n - k) of all flips from the support order[:k]; NaN where the columns must decide."""
    for i in range(k):
        for place in range(order.size - k):
            j = order[k + place]
            delta[i, place] = np.inf
            if not form.ruled or may_flip(form.rules, order, k, i, j):
                for a in range(k):
                    few.members[a] = j if a == i else order[a]
                found, then, _ = consider(form, few, k, now, 0.0, np.inf, carried, -1)
                if found == UNSURE:
                    delta[i, place] = np.nan
                elif found == ACCEPTED:
                    delta[i, place] = 0.0 if abs(then - now) <= TIE * form.yy else then - now


class SignedWalker:
    """Anneals chains of k columns of one form; not for two threads at a time."""

    def __init__(self, form: Gram, k: int, tick: Tick) -> None:
        assert isinstance(form, SignedForm)
        self._form, self._k, self._tick = form, k, tick
        self._system, self._site = signed_system(form), new_site(k, form.n_columns)
        self._carried = np.zeros(form.n_columns, np.int8)
        self._draws = np.zeros(BLOCK, np.int64), np.zeros(BLOCK, np.int64), np.zeros(BLOCK)

    def walk(self, plan: WalkPlan, c: int, result: WalkResult) -> None:
        """Chain c of a plan, from its random support to the end of its annealing, into the result."""
        form, k, key = self._form, self._k, plan.keys[c]
        order = first_order(form, k, key)
        best, t = order[:k].copy(), 0
        state = np.array([form.energy(np.sort(best)), 0.0, 0.0, 0.0, 0.0, np.inf])
        state[LOWEST] = state[NOW]
        for a, (beta, flips) in enumerate(zip(plan.betas.tolist(), plan.flips.tolist(), strict=True)):
            state[SUM], last = 0.0, t + flips
            while t < last:
                then, accepted = advance(
                    self._system, self._site, order, best, state, self._carried, key, k, t, last, beta, *self._draws
                )
                result.accepted[c, a] += accepted
                self._tick(then - t)
                t = then
                if t < last:
                    result.accepted[c, a] += self._judge(key, t, beta, order, best, state)
                    t += 1
            result.energy[c, a] = state[SUM] / max(flips, 1)
        result.support[c], result.best_support[c] = np.sort(order[:k]), np.sort(best)
        result.final_energy[c] = state[NOW]

    def flip_energies(self, order: np.ndarray) -> Floats:
        """Delta E (k, N - k) of every flip from the support order[:k]; infinite where the flip is refused."""
        k, form = self._k, self._form
        delta, now = np.empty((k, order.size - k)), form.energy(order[:k])
        change_of_flip(self._system, self._site.few, order, self._carried, k, now, delta)
        for i, place in np.argwhere(np.isnan(delta)):
            other = order[:k].copy()
            other[i] = order[k + place]
            change = form.energy(other) - now
            delta[i, place] = 0.0 if abs(change) <= TIE * form.yy else change
        return delta

    def _judge(self, key: np.ndarray, t: int, beta: float, order: np.ndarray, best: np.ndarray, state: Floats) -> int:
        """Decide flip t from the columns; 1 if it is accepted."""
        k, form = self._k, self._form
        (slot,), (place,), (u,) = flip_draws(key, t, 1, k, order.size - k)
        other = order[:k].copy()
        other[slot] = order[k + place]
        now, then = form.energy(order[:k]), form.energy(other)
        change = 0.0 if abs(then - now) <= TIE * form.yy else then - now
        accepted = bool(np.isfinite(change) and (change <= 0 or u <= np.exp(-beta * change)))
        state[NOW], state[MOVED] = now, 0.0
        if accepted:
            state[QUIET], state[OFF] = 0.0, np.inf
            order[slot], order[k + place] = order[k + place], order[slot]
            state[NOW] = then
            if then < state[LOWEST] - BETTER * form.yy:
                state[LOWEST] = then
                best[:] = order[:k]
        state[SUM] += state[NOW]
        return int(accepted)
