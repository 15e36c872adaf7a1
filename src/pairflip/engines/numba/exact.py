r"""Path, descent and kicks in an energy that is not quadratic: classes, counts, signs, a loss of the user's own.

At the fit of a support the form gives a quadratic problem (`quadratic_at`), and the table of it is searched as that of
squared error is, with rows of its matrix computed where a column enters. Where that leads is fitted exactly, and so on
from there, as long as the energy gets lower. Then the `TRIED` exchanges that the table ranks first are fitted together,
and the lowest is made if it lowers the energy. The lowest support of a chain is looked at slot by slot in the end: each
slot is emptied, the others are fitted, and all columns are ranked there, because a strong column that leaves moves the
others further than the quadratic problem knows.

Path and kicks are those of `search`, run by Python. An exact descent is the same wherever it is begun from, so that one
which was walked before is not walked again. Units of several columns are moved as `units` does it. The
searcher never asks which loss it has.
"""

from __future__ import annotations

from math import comb
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.compiled import entry, with_names
from pairflip.engines.base import Descent
from pairflip.engines.numba import units
from pairflip.engines.numba.search import descend, go_to, in_python
from pairflip.engines.numba.searching import Chain, GoOn, Searcher, Support
from pairflip.engines.numba.table import (
    CLOSED,
    ENTERS,
    GAIN,
    HELD,
    LEAVES,
    SLOTS,
    STATE,
    SUPPORT,
    S,
    close,
    cost_of,
    form_of,
    gains,
    new_table,
)
from pairflip.least_squares import Floats

TRIED = 5
"""How many of the exchanges that a table ranks first are fitted."""
LOWER, ROUNDING = 1e-9, 1e-13
"""An energy is lower when it is by this fraction of it, and by this fraction of y'y: what fits leave is less."""
HOPE = 0.5
"""The part of what a column's leaving costs that another has to bring back, by the table, to be fitted in its place."""
_KNOWN = 4096  # descents that are remembered
_SLOTS_NS = 2e9  # kicks as many as there are slots, above which no minimum is looked at slot by slot


@entry
def best_moves(form, table, k, first, last, signs, allowed, slots, columns, most, costs):
    """The exchanges of slots `first` to `last` - 1 (k: additions) that lower the energy most, by the table.

    Best first into `slots` (-1: there are no more), `columns` and `most`, twice the energy; into `costs` that which
    removing a slot costs. With `signs` (N,), a column whose coefficient would have the wrong sign lowers nothing.
    """
    gain, closed, q = table.values[GAIN], table.columns[CLOSED], len(form.B)
    # A short list that insertion keeps in order: sorting all moves would be wasted on a few.
    for t in range(most.size):
        slots[t], most[t] = -1, -np.inf
    for i in range(first, last):
        own, cost = 0, 0.0
        if i < k:
            own = table.columns[SUPPORT, i]
            if table.columns[HELD, own] > 0:
                continue
            cost = costs[i] = cost_of(form, table, i)
        gains(form, table, k, i)
        if i < k:
            gain[own] = -1.0
            close(form, table, own, LEAVES)
        # The table ranks free coefficients; the sign of r is that of the coefficient a column would get.
        for l in range(signs.size):
            r = table.A[0, l]
            if i < k:
                r -= table.Q[0, i] / table.Q[q + i, i] * table.A[q + i, l]
            if signs[l] * r < 0.0 and gain[l] > 0.0:
                gain[l] = 0.0
        for l in range(allowed.size):
            if gain[l] >= 0.0 and gain[l] - cost > most[most.size - 1] and closed[l] == 0 and allowed[l]:
                at = most.size - 1
                while at > 0 and most[at - 1] < gain[l] - cost:
                    most[at], slots[at], columns[at] = most[at - 1], slots[at - 1], columns[at - 1]
                    at -= 1
                most[at], slots[at], columns[at] = gain[l] - cost, i, l
        if i < k:
            close(form, table, own, ENTERS)


@entry
def close_all(form, table, k):
    """What the k columns of a support keep out, what needs them, and what they need."""
    for n in range(form.needs.shape[0]):
        table.columns[CLOSED, form.needs[n, 0]] += 1
    for m in range(k):
        close(form, table, table.columns[SUPPORT, m], ENTERS)


_of_units = {"gains": units.gains, "cost_of": units.cost_of, "close": units.close}
best_unit_moves = entry(with_names(best_moves, "best_unit_moves", **_of_units))
close_all_units = entry(with_names(close_all, "close_all_units", **_of_units))


class ExactSearcher(Searcher):
    """Memory for searches on one form, in one thread, with supports of up to `largest` units."""

    form: Any

    def __init__(self, form: Any, largest: int, go_on: GoOn) -> None:
        q, n = form.q, int(form.start[-1])
        self.form, self.go_on, self._chunk, self._allowed = form, go_on, 1, np.ones(form.n_columns, np.uint8)
        shape: Any = SimpleNamespace(
            B=np.zeros((q, n)), yy=form.yy, rules=form.rules, n_columns=form.n_columns, start=form.start
        )
        if form.grouped:
            self._form, self._rank, self._close_all = units.form_of(shape), best_unit_moves, close_all_units
            self._table, self._in_python = units.new_table(self._form, largest), units.in_units
        else:
            self._form, self._rank, self._close_all = form_of(shape), best_moves, close_all
            self._table, self._in_python = new_table(largest, n, q), in_python
        self._signs = np.zeros(0, np.int8) if form.signs is None else form.signs
        self._moves = np.zeros(TRIED, np.int64), np.zeros(TRIED, np.int64), np.zeros(TRIED), np.zeros(largest)
        # What was found of a form is true for every search on it, whoever makes it.
        self._fits, self._ends, self._minima = vars(form).setdefault("found", ({}, {}, {}))
        self._G = self
        self._fit: Any = None
        scope = self._in_python(
            go_to=self._go_to, descend=self._descend, energy=self._energy, empty=self._empty,
            best_addition=self._best_addition, best_flip=self._best_flip, best_set=self._best_set,
            drifted=lambda *_: False,
            find=lambda columns, n, j: int(np.append(np.flatnonzero(columns[:n] == j), -1)[0]),
            same_columns=lambda a, b, k: set(a[:k].tolist()) == set(b[:k].tolist()),
        )  # fmt: skip
        self._walk_path, self._walk_rounds = scope["walk_path"], scope["walk_rounds"]
        self._settle = scope["settle"]
        self._table_descent = FunctionType(descend.py_func.__code__, scope)
        self._enter_all = FunctionType(go_to.py_func.__code__, scope)

    def __getitem__(self, j: int) -> Floats:
        """Row j of the matrix of the quadratic problem that the table is of."""
        return np.asarray(self._row(int(j)))

    def chain(self, k: int, key: NDArray[np.uint32], descent: Descent, start: Support | None) -> Chain:
        """Descend from `start` (None: a random support), then kick; the lowest support, looked at slot by slot."""
        smaller_pool = Descent(descent.kicks, min(descent.pool, max(2, descent.kicks // 8)))
        fit = self._by_slots(self._end_of(super().chain(k, key, smaller_pool, start).support))
        work = (descent.kicks + 1) * self.form.kick_nanoseconds(k)
        return Chain(np.sort(fit.supports[0]), float(fit.energies[0]), work)

    def path(self, largest: int, passes: int) -> tuple[list[Support], Floats]:
        """Supports of sizes 1 to `largest` and their energies; with more than two passes looked at slot by slot."""
        supports, energies = super().path(min(largest, self.form.n_columns), max(1, passes // 2))
        for m, support in enumerate(supports if passes > 2 else []):
            fit = self._by_slots(self._end_of(support))
            supports[m], energies[m] = np.sort(fit.supports[0]), fit.energies[0]
        return supports, energies

    def forward(self, k: int) -> Support | None:
        """A support of k columns, the best one after the other by one table, and a descent; None if there is none."""
        self._load(self._fitted(np.zeros(0, np.int64)))
        size = self._settle(self._G, self._form, self._table, 0, k, self._allowed)
        if size < k:  # what came first leaves no room for others
            return self._made(k, np.zeros(0, np.int64))
        return np.sort(self._table.columns[SUPPORT, :k])

    def _restart(self, k: int, supports: Support, energies: Floats) -> int:
        """A chain at a support of one more unit that is made anew, and the table of what it found; its size, or -1."""
        k = super()._restart(k, supports, energies)
        if k > 0:
            self._load(self._fitted(np.sort(supports[k - 1, :k])))
        return k

    @property
    def _is_shaky(self) -> bool:
        """Never: energies are those of fits."""
        return False

    def _load(self, fit: Any) -> None:
        """The table of the quadratic problem at a fit."""
        form, table, at = self._form, self._table, self.form.quadratic_at(fit)
        support, q = fit.supports[0], len(form.B)
        places, closed, held = self.form.places(support), table.columns[CLOSED], table.columns[HELD]
        k, p = support.size, places.size
        table.A[:q], table.A[q : q + p] = at.R, at.W
        table.Q[:q, :p], table.Q[q : q + p, :p] = -at.C, at.P
        n = at.s.shape[1]
        table.values[S, :n], table.values[STATE + 1 :, :n], table.values[STATE, 0] = at.s[0], at.s[1:], 0.0
        table.A[:q, places] = table.values[S, places] = table.values[STATE + 1 :, places] = closed[:] = held[:] = 0
        table.columns[SLOTS, :p], table.columns[SUPPORT, :k] = places, support
        if form.ruled:
            self._close_all(form, table, k)
        else:
            closed[support] = 1
        self._fit, self._row = fit, at.row

    def _fitted(self, support: Support) -> Any:
        """The fit of a sorted support, from the model without columns, so that it is the same whoever asks first."""
        fit = self._fits.get(support.tobytes())
        return self._noted(self._fits, support, self.form.fit_many(support[None])) if fit is None else fit

    def _noted(self, known: dict[bytes, Any], support: Support, fit: Any) -> Any:
        """A fit that is remembered by the support from which it was found."""
        if len(known) > _KNOWN:
            known.clear()
        known[support.tobytes()] = fit
        return fit

    def _ranked(self, k: int, first: int, last: int, allowed: Any) -> list[tuple[int, int]]:
        """The best exchanges as (slot, column)."""
        slots, columns, _, _ = self._moves
        self._rank(self._form, self._table, k, first, last, self._signs, allowed, *self._moves)
        return [(int(slot), int(column)) for slot, column in zip(slots, columns, strict=True) if slot >= 0]

    def _lower(self, fits: Any, than: Any) -> Any:
        """The lowest of some fits if it is lower than one, otherwise None."""
        best, level = int(np.argmin(fits.energies)), float(than.energies[0])
        lower = fits.energies[best] < level * (1.0 - LOWER) - ROUNDING * self.form.yy
        return fits.one(best) if lower else None

    def _end_of(self, support: Support) -> Any:
        """The fit to which a descent from a sorted support leads, by tables, each at the fit that the last one led to.

        Exchanges are fitted one by one where a table is a bound only, or led up.
        """
        k, end = support.size, self._ends.get(support.tobytes())
        if end is not None:
            return end
        fit, trusted = self._fitted(support), not self.form.bound
        while np.isfinite(fit.energies[0]):
            self._load(fit)
            if trusted:
                reached = self._table_descent(self._G, self._form, self._table, k, self._allowed)
                other = np.sort(self._table.columns[SUPPORT, :reached])
                if reached < k or np.array_equal(other, np.sort(fit.supports[0])):
                    break
                lower = self._lower(self.form.fit_many(other[None], fit, bound=fit.energies[0]), fit)
                trusted = lower is not None
            else:
                lower = self._best_of(fit, self._hopeful(k))
                if lower is None:
                    break
            fit = fit if lower is None else lower
        return self._noted(self._ends, support, fit)

    def _hopeful(self, k: int) -> list[tuple[int, int]]:
        """The best exchanges at a fit that bring back a good part of what they cost, by the table."""
        moves, (_, _, most, costs) = self._ranked(k, 0, k, self._allowed), self._moves
        return [move for move, more in zip(moves, most, strict=False) if more >= (HOPE - 1.0) * costs[move[0]]]

    def _best_of(self, fit: Any, moves: list[tuple[int, int]]) -> Any:
        """The lowest of some exchanges, fitted, if it is lower; otherwise None."""
        if not moves:
            return None
        supports = np.repeat(fit.supports, len(moves), axis=0)
        for t, (slot, column) in enumerate(moves):
            supports[t, slot] = column
        return self._lower(self.form.fit_many(supports, fit, bound=fit.energies[0]), fit)

    def _by_slots(self, fit: Any) -> Any:
        """A minimum from which neither the best exchanges nor the best columns for any emptied slot lead lower."""
        begin = np.sort(fit.supports[0])
        known = self._minima.get(begin.tobytes())
        if known is not None:
            return known
        if begin.size * self.form.kick_nanoseconds(begin.size) > _SLOTS_NS:
            return fit
        while np.isfinite(fit.energies[0]):
            support, level = fit.supports[0], fit.energies[0]
            k = support.size
            self._load(fit)
            slots = [i for i in range(k) if self._table.columns[HELD, support[i]] == 0]
            if not slots:
                break
            moves = self._hopeful(k)
            emptied = self.form.fit_many(np.array([np.delete(support, i) for i in slots]).reshape(len(slots), -1), fit)
            for t, slot in enumerate(slots):
                self._load(emptied.one(t))
                best = self._ranked(k - 1, k - 1, k, self._allowed)
                enough = HOPE * 2.0 * (emptied.energies[t] - level)
                moves += [(slot, j) for (_, j), gain in zip(best, self._moves[2], strict=False) if gain >= enough]
            self.go_on(1)
            lower = self._best_of(fit, [move for move in dict.fromkeys(moves) if move[1] not in support])
            if lower is None:
                break
            fit = self._end_of(np.sort(lower.supports[0]))
        return self._noted(self._minima, begin, fit)

    # What the functions of `search` call in place of their own.

    def _empty(self, form: Any, table: Any) -> None:
        """The table of no columns."""
        self._load(self._fitted(np.zeros(0, np.int64)))

    def _go_to(self, G: Any, form: Any, table: Any, k: int, target: Support, n: int) -> int:
        """The table at the fit of the first n columns of `target`, as many as can be taken."""
        if form.ruled or self.form.bound:  # columns may lack one that they need, or depend on each other
            n = self._enter_all(G, form, table, 0, target, n)
            target = table.columns[SUPPORT]
        fit = self._fitted(np.sort(target[:n]))
        if np.isfinite(fit.energies[0]):
            self._load(fit)
        return n

    def _descend(self, G: Any, form: Any, table: Any, k: int, allowed: Any) -> int:
        """The minimum to which the table leads, and then the exact energy."""
        # Among few supports, each descent begins at a fit of its own: one table may lead to the same minimum from all.
        if not self.form.bound and comb(self.form.n_columns, k) > _KNOWN:
            k = self._table_descent(G, form, table, k, allowed)
        fit = self._end_of(np.sort(table.columns[SUPPORT, :k]))
        if not np.isfinite(fit.energies[0]):
            return self._go_to(G, form, table, k, table.columns[SUPPORT, : k - 1].copy(), k - 1)
        if fit is not self._fit or not np.array_equal(table.columns[SUPPORT, :k], fit.supports[0]):
            self._load(fit)
        return k

    def _energy(self, form: Any, table: Any, k: int) -> float:
        """E of the support, which is fitted."""
        return float(self._fit.energies[0])

    def _best_addition(self, form: Any, table: Any, k: int, allowed: Any) -> int:
        """The open column that lowers the energy most, or -1."""
        moves = self._ranked(k, k, k + 1, allowed)
        return moves[0][1] if moves else -1

    def _best_flip(self, form: Any, table: Any, k: int, least: float, allowed: Any) -> tuple[int, int]:
        """(slot, column) of the best exchange by the table if it lowers the energy; or (-1, -1)."""
        moves = self._ranked(k, 0, k, allowed)
        return moves[0] if moves and self._moves[2][0] > LOWER * form.yy else (-1, -1)

    def _best_set(self, G: Any, form: Any, table: Any, k: int, unit: Support) -> bool:
        """The best column behind those that it lacks, into `unit`; False if there is none."""
        matrix = np.array([self[j] for j in range(int(self.form.start[-1]))])
        return bool(self._in_python()["best_set"](matrix, form, table, k, unit))
