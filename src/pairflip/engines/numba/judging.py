r"""Flips, additions and removals in doubt, judged from the columns.

With Q an orthonormal basis of the support's columns (QR), T = inv(R) so that :math:`P = T T^T`, and for each column j
the coordinates :math:`c_j = Q X_j` and what is left of it, :math:`q_j = X_j - Q^T c_j` (projected twice), everything
follows as in `orthogonal`, here for all columns at once:

.. math::
    \Delta E_{ij} = \tfrac12 \left(g_i^2 - \frac{(q_j \cdot e + \alpha_{ij} g_i)^2}{|q_j|^2 + \alpha_{ij}^2}\right),
    \quad \alpha_{ij} = h_i \cdot c_j, \ g_i = h_i \cdot Q y, \ h_i = T_i / |T_i| .

Rounding grows with the square root of the variance inflation only, so this tells what the Gram matrix cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.blocks import column_blocks
from pairflip.engines.base import INFLATION, TIE
from pairflip.engines.numba.judge_kernels import JudgeMemory, descend_by_columns, fill_by_columns, new_room
from pairflip.engines.numba.kicks import Kicks, Pool
from pairflip.gram import Gram
from pairflip.least_squares import SINGULAR, Floats

Support = NDArray[np.int64]
ColumnsOf = Callable[[NDArray[np.int64]], Floats]
_LITTLE = 1e-3
_MANY = 2**22  # flips of a support that are worth keeping while some of them are refused


class Judge:
    """Judges what can be done with supports of one problem; the rule is that of `descent`."""

    def __init__(self, gram: Gram) -> None:
        self._gram = gram
        self.tie = TIE * gram.yy
        self.compiled = gram.dense and not gram.penalty.any()
        self._rooms = local()  # threads share a judge

    @cached_property
    def table(self) -> tuple[Floats, Floats]:
        """Columns (N, M) and target (M,); N + 1 rows carry all inner products, so of more rows a QR leaves these.

        Nothing asks for it in a wide problem: only the columns that are needed are ever formed there.
        """
        columns, target = self._gram.columns, self._gram.target
        if target.size > 1.2 * (self._gram.n_columns + 1):
            triangle = np.asarray(np.linalg.qr(np.column_stack([columns.T, target]), mode="r"))
            columns, target = triangle[:, :-1].T, triangle[:, -1]
        return np.ascontiguousarray(columns), np.ascontiguousarray(target)

    def basis(self, support: Support) -> _Basis:
        """Everything about one support."""
        gram = self._gram
        if not gram.dense:
            return _Basis(gram.columns_of, gram.target, gram.penalty, support)
        columns, target = self.table
        return _Basis(columns.__getitem__, target, gram.penalty, support)

    def energy(self, support: Support) -> float:
        """E of a support that is not singular."""
        return self.basis(support).energy

    def best_flip(
        self, support: Support, listed: NDArray[np.int64] | None = None, basis: _Basis | None = None
    ) -> Support | None:
        """The support after its best flip, None at a minimum.

        Only the flips that `listed` (pairs of slot and column) names are looked at, unless one of the best of them
        leads to a singular support: then the others were left out for a flip that cannot be made.
        """
        basis = self.basis(support) if basis is None else basis
        refused: list[tuple[int, int]] = []
        while True:
            slots, entering = self._lowest(basis, listed, refused)
            if not slots.size:
                return None
            for at in np.lexsort((support[slots], entering)):
                slot, column = int(slots[at]), int(entering[at])
                if basis.stays_regular(slot, column):
                    flipped = support.copy()
                    flipped[slot] = column
                    return flipped
                if listed is not None:
                    return self.best_flip(support, None, basis)
                refused.append((slot, column))

    def _lowest(
        self, basis: _Basis, listed: NDArray[np.int64] | None, refused: list[tuple[int, int]]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Slots and columns of the lowest flip and its equals, but for those refused; none at a minimum."""
        lowest, found = np.inf, []
        for delta, which in basis.all_flips() if listed is None else basis.listed_flips(listed):
            for slot, column in refused:
                at = int(np.searchsorted(which, column))
                if at < which.size and which[at] == column:
                    delta[slot, at] = np.inf
            lowest = min(lowest, float(delta.min(initial=np.inf)))
            slots, at_columns = np.nonzero((delta <= lowest + self.tie) & (delta < -self.tie))
            found.append((slots, which[at_columns], delta[slots, at_columns]))
        slots, entering, deltas = (np.concatenate(each) for each in zip(*found, strict=True))
        equal = deltas <= lowest + self.tie
        return slots[equal], entering[equal]

    def descend(
        self, support: Support, calm: float, *, asked: bool = False, listed: NDArray[np.int64] | None = None
    ) -> tuple[Support, float | None]:
        """Flip until the support is well conditioned (inflation below `calm`; None) or at a minimum (its energy).

        Parameters
        ----------
        support
            Where to begin.
        calm
            The inflation.
        asked
            Whether to make the first flip whatever the inflation.
        listed : (n, 2)
            Slots and columns that the first flip is chosen from; see `best_flip`.
        """
        if self.compiled:
            columns, target = self.table
            support, room = support.copy(), self._room_for(support.size)
            listed = np.empty((0, 2), np.int64) if listed is None else listed
            at_minimum, energy = descend_by_columns(
                columns, target, support, support.size, listed, asked, self.tie, calm, room
            )
            return support, float(energy) if at_minimum else None
        basis = self.basis(support)
        while asked or basis.inflation > calm:
            flipped = self.best_flip(support, listed, basis)
            after = None if flipped is None else self.basis(flipped)
            # Near the largest inflation rounding could go in circles: a flip must lower the energy after all.
            if flipped is None or after is None or not after.energy < basis.energy:
                return support, basis.energy
            support, basis, asked, listed = flipped, after, False, None
        return support, None

    def _room_for(self, k: int) -> JudgeMemory:
        """Memory of the compiled judge for k columns."""
        room: JudgeMemory | None = getattr(self._rooms, "room", None)
        if room is None or room.Qy.size < k:
            columns, target = self.table
            room = self._rooms.room = new_room(k + 8, columns.shape[0], target.size)
        return room

    def fill(self, support: Support, size: int, kicks: Kicks, clock: Any, pool: Pool, calm: float) -> Support | None:
        """Add columns as `kicks.enter` would, at least one, until there are `size` or inflation is below `calm`.

        None if no column can be added. Only for problems that are `compiled`.

        Parameters
        ----------
        support, size
            Where to begin, and how many columns there may be in the end.
        kicks, clock, pool
            The chain; places that are drawn are counted in its clock.
        calm
            The inflation.
        """
        columns, target = self.table
        filled = np.append(support, np.zeros(size - support.size, np.int64))
        k, clock["drawn"] = fill_by_columns(
            columns, target, filled, support.size, size, int(clock["kind"]), kicks, int(clock["round"]),
            int(clock["drawn"]), pool, self.tie, calm, self._room_for(size),
        )  # fmt: skip
        return None if k < 0 else filled[:k]

    def best_addition(self, support: Support, allowed: NDArray[np.bool_] | None = None) -> int | None:
        """The column that lowers the energy most when it is added, the first of equals; None if no column can be."""
        basis = self.basis(support)
        gain = basis.all_gains()
        if allowed is not None:
            gain[~allowed] = -np.inf
        while True:
            most = float(gain.max(initial=-np.inf))
            if not np.isfinite(most):
                return None
            for j in np.flatnonzero(gain >= most - self.tie):
                if basis.stays_regular(None, int(j)):
                    return int(j)
                gain[j] = -np.inf

    def first_addition(self, support: Support) -> int | None:
        """The first column that can be added; None if there is none."""
        basis = self.basis(support)
        possible = np.flatnonzero(np.isfinite(basis.all_gains()))
        return next((int(j) for j in possible if basis.stays_regular(None, int(j))), None)

    def can_add(self, support: Support, column: int) -> bool:
        """Whether the support has not got the column, and stays regular with it."""
        basis = self.basis(support)
        return bool(np.isfinite(basis.gains(np.array([column]))[0])) and basis.stays_regular(None, column)

    def best_removal(self, support: Support) -> int:
        """The slot whose column is missed least, that of the first column among equals."""
        cost = 0.5 * self.basis(support).alone ** 2
        equal = np.flatnonzero(cost <= cost.min() + self.tie)
        return int(equal[np.argmin(support[equal])])


class _Basis:
    """Orthonormal basis of a support's columns and of nothing else; k may be 0."""

    def __init__(self, columns_of: ColumnsOf, target: Floats, penalty: Floats, support: Support) -> None:
        self._columns_of, self._penalty, self.support = columns_of, penalty, support
        self._n_rows, k = target.size, support.size
        self._flips: list[tuple[Floats, NDArray[np.int64]]] = []
        own = columns_of(support).T
        self._ridge = bool(penalty.any())
        if self._ridge:  # one more row for each slot
            own = np.vstack([own, np.diag(np.sqrt(penalty[support]))])
            target = np.concatenate([target, np.zeros(k)])
        self.Q, R = np.linalg.qr(own)
        self.T = np.linalg.inv(R) if k else np.zeros((0, 0))
        self.inflated = np.einsum("lm,lm->l", self.T, self.T)
        self.inflation = 1.0 + float(np.sum(self.inflated - 1.0))
        self.Qy = self.Q.T @ target
        e = target - self.Q @ self.Qy
        self.e = e - self.Q @ (self.Q.T @ e)
        self.energy = 0.5 * float(self.e @ self.e)
        self.H = self.T / np.sqrt(self.inflated)[:, None]
        self.alone = self.H @ self.Qy

    def _meet(self, X: Floats) -> tuple[Floats, Floats, Floats]:
        """c (n, k), |q|^2 (n,) and q.e (n,) of columns X (n, M), as they are on the rows, without their ridge rows."""
        m = self._n_rows
        Q = self.Q[:m]
        c = X @ Q
        q = X - c @ Q.T
        tail = -c @ self.Q[m:].T  # what the ridge rows of the slots have of the projection
        left = np.einsum("nm,nm->n", q, q) + np.einsum("nk,nk->n", tail, tail)
        few = np.flatnonzero(left < _LITTLE)  # what is left of these is not orthogonal enough yet
        if few.size:
            again = q[few] @ Q + tail[few] @ self.Q[m:]
            c[few] += again
            q[few] -= again @ Q.T
            tail[few] -= again @ self.Q[m:].T
            left[few] = np.einsum("nm,nm->n", q[few], q[few]) + np.einsum("nk,nk->n", tail[few], tail[few])
        return c, left, q @ self.e[:m] + tail @ self.e[m:]

    def flips(self, which: NDArray[np.int64]) -> Floats:
        """Delta E (k, n) of flips to the columns `which`, infinite where the flip is singular or changes nothing."""
        k = self.support.size
        delta, outside = np.full((k, which.size), np.inf), np.flatnonzero(~np.isin(which, self.support))
        which = which[outside]
        X = self._columns_of(which)
        c, left, along = self._meet(X)
        if self._ridge:
            # In slot i the column has its ridge row where the old one had its own: h_i and c change by that.
            m = self._n_rows
            for i in range(k):
                root = np.sqrt(self._penalty[which])
                own = self.Q[m + i]
                c_i = c + root[:, None] * own
                # |q|^2 with that row: |X|^2 + root^2 - |c|^2, by what is left of both parts.
                left_i, along_i = self._left_with_row(X, i, root)
                alpha = c_i @ self.H[i]
                s = left_i + alpha**2
                r = along_i + alpha * self.alone[i]
                with np.errstate(divide="ignore", invalid="ignore"):
                    delta[i, outside] = np.where(s > SINGULAR, 0.5 * (self.alone[i] ** 2 - r**2 / s), np.inf)
            return delta
        alpha = self.H @ c.T
        s = left + alpha**2
        r = along + alpha * self.alone[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            delta[:, outside] = np.where(s > SINGULAR, 0.5 * (self.alone[:, None] ** 2 - r**2 / s), np.inf)
        return delta

    def _everything(self) -> Iterator[NDArray[np.int64]]:
        """All columns, in blocks."""
        for part in column_blocks(self._n_rows, self._penalty.size):
            yield np.arange(part.start, part.stop)

    def all_flips(self) -> Iterator[tuple[Floats, NDArray[np.int64]]]:
        """`flips` to all columns, in blocks of (Delta E, columns); kept for the next time unless there are many."""
        few = self.support.size * self._penalty.size <= _MANY
        if not few or not self._flips:
            for which in self._everything():
                flips = self.flips(which), which
                if few:
                    self._flips.append(flips)
                else:
                    yield flips
        yield from self._flips

    def listed_flips(self, listed: NDArray[np.int64]) -> Iterator[tuple[Floats, NDArray[np.int64]]]:
        """The flips on a list of slots and columns, all others infinite."""
        slots, entering = listed.T
        which = np.unique(entering)
        at = slots, np.searchsorted(which, entering)
        delta = np.full((self.support.size, which.size), np.inf)
        delta[at] = self.flips(which)[at]
        yield delta, which

    def _left_with_row(self, columns: Floats, i: int, root: Floats) -> tuple[Floats, Floats]:
        m, k = self._n_rows, self.support.size
        X = np.zeros((len(columns), m + k))
        X[:, :m] = columns
        X[:, m + i] = root
        q = X - (X @ self.Q) @ self.Q.T
        q -= (q @ self.Q) @ self.Q.T
        return np.einsum("nm,nm->n", q, q), q @ self.e

    def all_gains(self) -> Floats:
        """`gains` (N,) of all columns."""
        return np.concatenate([self.gains(which) for which in self._everything()])

    def gains(self, which: NDArray[np.int64]) -> Floats:
        """Half of r^2 / s of adding each of these columns, minus infinity where it is singular or in the support."""
        _, left, along = self._meet(self._columns_of(which))
        s = left + self._penalty[which]
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = np.where(s > SINGULAR, 0.5 * along**2 / s, -np.inf)
        return np.asarray(np.where(np.isin(which, self.support), -np.inf, gain))

    def stays_regular(self, slot: int | None, column: int) -> bool:
        """Whether no variance inflation reaches the limit when a column takes a slot, or one more."""
        columns = np.append(self.support if slot is None else np.delete(self.support, slot), column)
        own = self._columns_of(columns).T
        if self._ridge:
            own = np.vstack([own, np.diag(np.sqrt(self._penalty[columns]))])
        R: Floats = np.asarray(np.linalg.qr(own, mode="r"))
        if R.shape[0] < R.shape[1] or np.min(np.abs(np.diag(R))) ** 2 <= SINGULAR:
            return False
        T = np.linalg.inv(R)
        return bool(np.max(np.einsum("lm,lm->l", T, T)) < INFLATION)
