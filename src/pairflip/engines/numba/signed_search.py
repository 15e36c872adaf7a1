"""Chains and paths where coefficients have signs: kernels where the Gram matrix can decide, the columns otherwise.

A chain that anneals does so first (`signed_chain`). Every energy that is compared or reported comes from QR on the
columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import EQUAL, Descent, RankTooSmall, Steps, Tick, WalkPlan, WalkResult, is_lower
from pairflip.engines.numba.cholesky import MINIMUM
from pairflip.engines.numba.rounds import Found, InThreads, RoundSearcher, Support, hear, path_of
from pairflip.engines.numba.signed import (
    begin_at_random,
    find_addition,
    kick,
    least_energy,
    new_site,
    signed_system,
    walk_down,
)
from pairflip.engines.numba.signed_chain import SignedWalker
from pairflip.gram import Gram
from pairflip.least_squares import SINGULAR, Floats
from pairflip.losses.sign_fit import carrying_columns
from pairflip.losses.signed import SignedForm
from pairflip.seating import seated

_FLIPS = 1000  # of a descent in one call, far more than it takes
_CHECKED = 200  # flips that are judged one by one, at most
_PACKED = 8  # orders in which columns are seated where taking the best ones leads nowhere
_NONE = np.zeros(0, np.int64)


class SignedSearcher(RoundSearcher):
    """Searches supports of up to `largest` columns of one form; not for two threads at a time."""

    own_round = 0x7369676E

    def __init__(self, form: SignedForm, largest: int, tick: Tick) -> None:
        self._form: Any = form
        self._n, self._tick = form.n_columns, tick
        self._system, self._site = signed_system(form), new_site(largest, form.n_columns)
        self._columns: tuple[Floats, Floats] | None = None
        self._ruled = form.rules.any
        self._known: dict[bytes, float] = {}
        self._minima = set[bytes]()  # known from the columns

    def down(self, support: Support) -> Found:
        """The minimum that is reached from a support (not a singular one), and its energy."""
        k, site = support.size, self._site
        site.support[:k] = support
        while walk_down(self._system, site, k, _FLIPS) != MINIMUM:
            at = np.sort(site.support[:k])
            if at.tobytes() in self._minima:
                break
            better = self._flip_by_columns(at, self._energy(at))
            self._tick(k)
            site.support[:k] = at if better is None else better
            if better is None:
                self._minima.add(at.tobytes())
                break
        self._tick(k)
        best = np.sort(site.support[:k])
        return best, self._energy(best)

    def larger(self, support: Support, barred: Support = _NONE) -> Support | None:
        """One column more, the best one beside those `barred`; None where no other may enter."""
        k = support.size
        self._site.support[:k] = support
        column = int(find_addition(self._system, self._site, k, barred))
        if column >= 0:
            return np.append(support, column)
        return self._add_by_columns(support, barred)

    def smaller(self, support: Support) -> Support:
        """One column less: the one that is missed least, of those that no other needs."""
        left = [np.delete(support, i) for i in range(support.size)]
        return left[int(np.argmin([self._energy(other) for other in left]))]

    def _energy(self, support: Support) -> float:
        """E+ by QR, each support once."""
        ordered = np.sort(support)
        key = ordered.tobytes()
        if key not in self._known:
            self._known[key] = self._form.energy(ordered) if support.size else 0.5 * self._form.yy
        return self._known[key]

    def _random(self, k: int, key: NDArray[np.uint32]) -> Support:
        """The first columns of the random order of a key, and the best ones where too few can be seated."""
        seated = int(begin_at_random(self._system, self._site, k, key))
        return self._completed(seated, k, _NONE)

    def _kicked(self, best: Support, key: NDArray[np.uint32], round_: int, least: int, most: int) -> Support:
        """The support after some of its columns were replaced."""
        k, site = best.size, self._site
        site.support[:k] = best
        seated = int(kick(self._system, site, k, key, round_, least, most))
        return self._completed(seated, k, np.setdiff1d(best, site.support[:seated]))

    def _completed(self, seated: int, k: int, gone: Support) -> Support:
        """What was seated, with the best columns added, but none that is `gone`, where there are fewer than k."""
        support: Support = self._site.support[:seated].copy()
        if seated == k and least_energy(self._system, self._site, k)[1]:
            return support
        return self._filled(support, k, gone)

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
        order = np.argsort(-np.einsum("nq,nq->n", self._form.B, self._form.B), kind="stable")
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

    def _promises(self, support: Support, s: Floats, now: float) -> Floats:
        """How much lower than `now` 2 E may be with one column more (n,); not at all where it would not carry.

        Parameters
        ----------
        support : (k,)
            What is there.
        s : (n,)
            What of every column is independent of it.
        now : float
            The energy that is to be lowered.
        """
        columns, targets = self._rows()
        y = targets[:, 0]
        carrying = support[carrying_columns(columns[support].T, y, self._form.signs[support])]
        q = np.linalg.qr(columns[carrying].T)[0]
        residual = y - q @ (q.T @ y)
        residual -= q @ (q.T @ residual)
        g = columns @ residual
        t = np.where(self._form.signs == 0, np.abs(g), self._form.signs * g)
        may = (s > 0.5 * SINGULAR) & (t > 0)
        lower = 2.0 * now - float(residual @ residual)
        return np.asarray(np.where(may, t * t / np.where(may, s, 1.0) + lower, -np.inf))

    def _flip_by_columns(self, support: Support, now: float) -> Support | None:
        """The support after the best flip that lowers the energy `now`, by QR; None where there is none."""
        s, _ = self._beside(support)
        u, _ = self._directions(support)
        V = u @ self._rows()[0].T
        gains = np.full((support.size, self._n), -np.inf)
        for i in range(support.size):
            gains[i] = self._promises(np.delete(support, i), s + V[i] ** 2, now)
        gains[:, support] = -np.inf
        worth = np.flatnonzero(gains.ravel() > 2.0 * EQUAL * now)
        best, lowest, checked = None, now, 0
        for at in worth[np.argsort(-gains.ravel()[worth], kind="stable")]:
            if 0.5 * gains.ravel()[at] <= now - lowest or checked == _CHECKED:  # no other can do better
                break
            other = support.copy()
            other[at // self._n] = at % self._n
            if self._system.ruled and not self._form.rules.allow(other):
                continue
            self._site.support[: other.size] = other
            if not is_lower(least_energy(self._system, self._site, other.size)[0], lowest, self._form.yy):
                continue
            checked += 1
            energy = self._energy(other)
            if is_lower(energy, lowest, self._form.yy):
                best, lowest = other, energy
        return best

    def _add_by_columns(self, support: Support, barred: Support) -> Support | None:
        """The support with the best column that may enter, by QR; None where there is none."""
        s, _ = self._beside(support)
        gains = self._promises(support, s, 0.5 * float(self._form.yy))
        gains[support], gains[barred] = -np.inf, -np.inf
        others = np.setdiff1d(np.arange(self._n), np.concatenate([support, barred]))
        best, lowest = None, np.inf
        for j in others[np.argsort(-gains[others], kind="stable")]:
            if best is not None and self._form.yy - gains[j] >= 2.0 * lowest:
                break
            other = np.append(support, j)
            energy = self._energy(other)
            if energy < lowest:
                best, lowest = other, energy
        return best


def walk_signed(form: Gram, plan: WalkPlan, tick: Tick, in_threads: InThreads) -> WalkResult:
    """The chains of one plan: annealed, or from their starts or random supports; then descents.

    Parameters
    ----------
    form : SignedForm
        What is searched.
    plan : WalkPlan
        Its chains.
    tick : callable
        Hears of work as it is done.
    in_threads : callable
        Calls a function with (first, last) for parts of all chains.
    """
    assert isinstance(form, SignedForm)
    k, steps, chains = plan.k, plan.betas.size, plan.chains
    if k > form.n_columns:
        raise RankTooSmall(k, form.n_columns)
    result = WalkResult(
        np.zeros((chains, steps)), np.zeros((chains, steps), np.int64), np.zeros((chains, k), np.int64),
        np.zeros((chains, k), np.int64), np.zeros(chains), np.zeros(chains, np.int64),
    )  # fmt: skip
    form.matrix  # noqa: B018 - formed before there are threads
    descent = plan.descent if steps or plan.descent is not None else Descent()

    def work(first: int, last: int) -> None:
        searcher, walker = SignedSearcher(form, k, tick), SignedWalker(form, k, tick) if steps else None
        for c in range(first, last):
            start = None if plan.starts is None else plan.starts[c]
            if walker is not None:
                walker.walk(plan, c, result)
                start = result.best_support[c]
            if descent is not None:
                best, low = searcher.chain(k, plan.keys[c], descent, start)
                result.support[c], result.best_support[c], result.final_energy[c] = best, best, low

    in_threads(work)
    return result


def signed_path(form: Gram, largest: int, passes: int, tick: Tick | None) -> Steps:
    """Supports of sizes 1 to `largest`, and their energies.

    Parameters
    ----------
    form : SignedForm
        What is searched.
    largest : int
        Largest size.
    passes : int
        As in `Engine.path`.
    tick : callable or None
        Hears of descents as they are done.
    """
    assert isinstance(form, SignedForm)
    signed = form
    return path_of(form, largest, passes, lambda size: SignedSearcher(signed, size, hear(tick)))
