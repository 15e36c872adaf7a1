"""Chains and paths with several targets: kernels where the Gram matrix can decide, the columns where it cannot.

A chain descends from where it starts (a given support, or its random one), then is kicked: some columns of its lowest
support are replaced and it descends again; every few rounds it starts anew at random. Random numbers are addressed by
(key, round, place), as everywhere. Every energy that is compared or reported comes from QR on the columns.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import EQUAL, Descent, RankTooSmall, Steps, Tick, WalkPlan, WalkResult, is_lower
from pairflip.engines.numba.rounds import Found, InThreads, RoundSearcher, Support, hear, path_of, walk_chains
from pairflip.engines.numba.ruled import (
    ADD,
    CHANGE,
    DESCEND,
    FLIPS,
    KICK,
    SEAT,
    go,
    new_wider,
    open_columns,
)
from pairflip.engines.numba.ruled_columns import ColumnRows, new_rows
from pairflip.engines.numba.several import (
    MINIMUM,
    Several,
    begin_at_random,
    find_addition,
    kick,
    new_spot,
    walk_down,
)
from pairflip.gram import Gram
from pairflip.least_squares import SINGULAR, Floats
from pairflip.seating import seated

_ROUNDS = 16  # of kicks in one call, so that Ctrl-C is heard
_CHECKED = 200  # flips that are judged one by one, at most
_PACKED = 8  # orders in which columns are seated where taking the best ones leads nowhere

_NONE = np.zeros(0, np.int64)
_NO_KEY = np.zeros(2, np.uint32)


class SeveralSearcher(RoundSearcher):
    """Searches supports of up to `largest` columns of one form; not for two threads at a time."""

    own_round = 0x73657665

    def __init__(self, form: Gram, largest: int, tick: Tick) -> None:
        q, n = form.B.shape
        self._form, self._n, self._tick = form, n, tick
        self._ruled = form.rules.any
        self._several = Several(form.matrix, np.ascontiguousarray(form.B.T), form.yy, form.rules, self._ruled)
        self._place = new_spot(largest, n, q)
        self._wider = new_wider(largest, q)
        self._columns: tuple[Floats, Floats] | None = None

    def down(self, support: Support) -> Found:
        """The minimum that is reached from a support (not a singular one), and its energy."""
        k, place = support.size, self._place
        place.support[:k] = support
        while not self._walked_down(k):
            at, now = place.support[:k], self._form.energy(np.sort(place.support[:k]))
            better = self._flip_by_columns(at.copy(), now)
            self._tick(k)
            if better is None:
                break
            place.support[:k] = better
        self._tick(k)
        best = np.sort(place.support[:k])
        return best, self._form.energy(best)

    def _walked_down(self, k: int) -> bool:
        """Whether kernels could walk down to a minimum; otherwise the columns decide how to go on."""
        if self._ruled:
            return self._ask(DESCEND, k)[1]
        return bool(walk_down(self._several, self._place, k, FLIPS) == MINIMUM)

    def larger(self, support: Support, barred: Support = _NONE) -> Support | None:
        """One column more, the best one beside those `barred`; None where all others depend on the support."""
        k = support.size
        self._place.support[:k] = support
        if self._ruled:
            column = self._ask(ADD, k, best=barred)[0]
        else:
            column = int(find_addition(self._several, self._place, k, barred))
        if column >= 0:
            return np.append(support, column)
        return self._add_by_columns(support, barred)

    def _ask(
        self, what: int, k: int, key: NDArray[np.uint32] = _NO_KEY, best: Support = _NONE, low: float = 0.0,
        rounds: tuple[int, int] = (0, 0), columns: tuple[int, int] = (0, 0),
    ) -> tuple[int, bool]:  # fmt: skip
        """What `ruled.go` says."""
        place, rows = self._place, self._in_rows
        found, new = go(self._several, place, self._wider, rows, k, key, best, low, *rounds, *columns, what)
        return int(found), bool(new)

    def smaller(self, support: Support) -> Support:
        """One column less: the one that is missed least, of those that no other needs."""
        _, c = self._directions(support)
        missed = np.einsum("kq,kq->k", c, c)
        missed[self._form.rules.needed(support)] = np.inf
        return np.delete(support, int(np.argmin(missed)))

    def chain(self, k: int, key: NDArray[np.uint32], descent: Descent, start: Support | None) -> Found:
        """The lowest support of a chain, and its energy.

        Parameters
        ----------
        k, key
            Size, and the key of the chain.
        descent : Descent
            How many kicks.
        start : (k,), optional
            Where it begins; by default its random support.
        """
        if not self._ruled:
            return super().chain(k, key, descent, start)
        best, low = self.down(self._random(k, key) if start is None else start)
        (least, most), round_ = self._sizes_of_kicks(descent, k), 1
        while round_ <= descent.kicks:
            last = min(round_ + _ROUNDS, descent.kicks + 1)
            round_, new = self._ask(KICK, k, key, best, low, (round_, last), (least, most))
            self._tick(k)
            if round_ == last:
                continue
            if new:
                support = np.sort(self._place.support[:k])
                other = support, self._form.energy(support)
            else:
                other = self.down(self._next(best, key, round_, least, most))
            if is_lower(other[1], low, self._form.yy):
                best, low = other
            round_ += 1
        return best, low

    def _random(self, k: int, key: NDArray[np.uint32]) -> Support:
        """The first columns of the random order of a key, and the best ones where too few are independent."""
        place = self._place
        found = self._ask(SEAT, k, key)[0] if self._ruled else int(begin_at_random(self._several, place, k, key))
        return self._filled(place.support[:found].copy(), k, _NONE, place.order.copy())

    def _kicked(self, best: Support, key: NDArray[np.uint32], round_: int, least: int, most: int) -> Support:
        """The support after some of its columns were replaced."""
        k, place = best.size, self._place
        place.support[:k] = best
        if self._ruled:
            found = self._ask(CHANGE, k, key, rounds=(round_, round_), columns=(least, most))[0]
        else:
            found = int(kick(self._several, place, k, key, round_, least, most))
        stays = place.support[:found].copy()
        return self._filled(stays, k, np.setdiff1d(best, stays), stays)

    def _filled(self, support: Support, k: int, barred: Support, first: Support = _NONE) -> Support:
        """The support with the best columns added until there are k; `barred` ones where there is no other choice.

        Parameters
        ----------
        support, k
            What is there, and how many are wanted.
        barred
            Columns that do not come back if others can be had.
        first
            Columns that are preferred where rules leave no place for k, so that the support is made anew.
        """
        while support.size < k:
            more = self.larger(support, barred)
            if more is None and barred.size:
                more, barred = self.larger(support), _NONE
            if more is None:
                more = self._packed(k, first)
            if more is None:
                raise self._too_few(k, support)
            support = more
        if not np.isfinite(self._form.energy(np.sort(support))):  # many small dependences add up
            return self._filled(_NONE, k, _NONE)
        return support

    def _packed(self, k: int, first: Support = _NONE) -> Support | None:
        """Columns that the rules let stand together, some preferred, then the most correlated; None where none are.

        Columns that were chosen one by one may leave no place for the last ones.
        """
        if not self._ruled:
            return None
        order = np.argsort(-np.einsum("qn,qn->n", self._form.B, self._form.B), kind="stable")
        order = np.concatenate([first, order[~np.isin(order, first)]])
        for turn in range(_PACKED):
            found = seated(self._form.rules, k, np.roll(order, -turn * self._n // _PACKED))
            if found is not None and np.isfinite(self._form.energy(found)):
                return found
        return None

    def _too_few(self, k: int, support: Support) -> RankTooSmall:
        """That there are no k columns, and how many there are."""
        if not self._ruled:
            return RankTooSmall(k, int(support.size))
        most = next((size for size in range(k - 1, support.size, -1) if self._packed(size) is not None), support.size)
        return RankTooSmall(k, int(most), "rules")

    def _rows(self) -> tuple[Floats, Floats]:
        """Columns (n, m) and targets (m, q), ridge terms among the rows; no more rows than carry all products."""
        if self._columns is None:
            columns, targets = self._form.columns, self._form.targets
            if self._form.penalty.any():
                columns = np.hstack([columns, np.diag(np.sqrt(self._form.penalty))])
                targets = np.vstack([targets, np.zeros((self._n, targets.shape[1]))])
            if targets.shape[0] > 2 * (self._n + targets.shape[1]):
                triangle: Floats = np.asarray(np.linalg.qr(np.column_stack([columns.T, targets]), mode="r"))
                columns, targets = np.ascontiguousarray(triangle[:, : self._n].T), triangle[:, self._n :].copy()
            self._columns = columns, targets
        return self._columns

    @cached_property
    def _in_rows(self) -> ColumnRows:
        """The same for kernels."""
        return new_rows(*self._rows(), self._place.support.size)

    def _directions(self, support: Support) -> tuple[Floats, Floats]:
        """For each slot the unit vector (k, m) of the support orthogonal to its other columns; its products (k, q)."""
        columns, targets = self._rows()
        q, r = np.linalg.qr(columns[support].T)
        u = np.linalg.solve(r, q.T)
        u /= np.sqrt(np.einsum("km,km->k", u, u))[:, None]
        return u, u @ targets

    def _beside(self, support: Support) -> tuple[Floats, Floats]:
        """What of every column is orthogonal to a support: s (n,), and its products R (n, q) with the targets."""
        columns, targets = self._rows()
        if support.size:
            q = np.linalg.qr(columns[support].T)[0]
            for _ in range(2):  # a second projection removes what rounding left of the first
                columns = columns - (columns @ q) @ q.T
        return np.einsum("nm,nm->n", columns, columns), columns @ targets

    def _flip_by_columns(self, support: Support, now: float) -> Support | None:
        """The support after the best flip that lowers the energy `now`, by QR; None where there is none."""
        s, R = self._beside(support)
        u, c = self._directions(support)
        V = u @ self._rows()[0].T
        gains = np.full((support.size, self._n), -np.inf)
        for i in range(support.size):
            s_i, R_i = s + V[i] ** 2, R + V[i][:, None] * c[i]
            may = s_i > 0.5 * SINGULAR
            gains[i, may] = np.einsum("nq,nq->n", R_i[may], R_i[may]) / s_i[may] - float(c[i] @ c[i])
        gains[:, support] = -np.inf
        if self._ruled:
            gains[~self._open(support)[:-1]] = -np.inf
        # Only what may be lower by more than rounding.
        worth = np.flatnonzero(gains.ravel() > EQUAL * now)
        for at in worth[np.argsort(-gains.ravel()[worth], kind="stable")][:_CHECKED]:
            other = support.copy()
            other[at // self._n] = at % self._n
            if is_lower(self._form.energy(np.sort(other)), now, self._form.yy):
                return other
        return None

    def _open(self, support: Support) -> NDArray[np.bool_]:
        """Which columns (k + 1, n) may take the place of each of the support, and stand beside all of it."""
        out = np.zeros((support.size + 1, self._n), dtype=bool)
        self._place.support[: support.size] = support
        open_columns(self._several, self._place, support.size, out)
        return out

    def _add_by_columns(self, support: Support, barred: Support) -> Support | None:
        """The support with the best column that leaves it regular, by QR; None where there is none."""
        s, R = self._beside(support)
        may = s > 0.5 * SINGULAR
        may[support], may[barred] = False, False
        if self._ruled:
            may &= self._open(support)[-1]
        which = np.flatnonzero(may)
        gains = np.einsum("nq,nq->n", R[which], R[which]) / s[which]
        for j in which[np.argsort(-gains, kind="stable")]:
            other = np.append(support, j)
            if np.isfinite(self._form.energy(np.sort(other))):
                return other
        return None


def first_kernel(form: Gram) -> Any:
    """What is compiled first."""
    return go if form.rules.any else walk_down


def walk_several(form: Gram, plan: WalkPlan, tick: Tick, in_threads: InThreads) -> WalkResult:
    """The chains of one plan, each from its start or from its random support.

    Parameters
    ----------
    form : Gram
        What is searched.
    plan : WalkPlan
        Its chains.
    tick : callable
        Hears of descents as they are done.
    in_threads : callable
        Calls a function with (first, last) for parts of all chains.
    """
    form.matrix  # noqa: B018 - formed before there are threads
    return walk_chains(form, plan, lambda: SeveralSearcher(form, plan.k, tick), in_threads)


def several_path(form: Gram, largest: int, passes: int, tick: Tick | None) -> Steps:
    """Supports of sizes 1 to `largest`, and their energies.

    Parameters
    ----------
    form : Gram
        What is searched.
    largest, passes : int
        As in `Engine.path`.
    tick : callable or None
        Hears of descents as they are done.
    """
    return path_of(form, largest, passes, lambda size: SeveralSearcher(form, size, hear(tick)))
