"""Descents, kicks and paths on one problem: kernels where the Gram matrix can decide, the columns where it cannot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import BETTER, SHAKY, Descent, RankTooSmall
from pairflip.engines.numba.judging import Judge, Support
from pairflip.engines.numba.kicks import DESCENDING, ENTERING, HALF_BEST, KICK, RANDOM, Kicks, Pool, advance_chain
from pairflip.engines.numba.path import DESCENDING as PATH_DESCENDING
from pairflip.engines.numba.path import MOVING, PATH, advance_path
from pairflip.engines.numba.support_table import (
    DONE,
    DOUBT,
    LISTED,
    NEED_COLUMNS,
    NEED_ROW,
    STATE,
    Form,
    new_table,
)
from pairflip.gram import Gram
from pairflip.least_squares import Floats
from pairflip.philox import KICK_ADD, KICK_FILL, kick_words

CALM = SHAKY / 4.0
"""Inflation below which a search goes back to the table: well below SHAKY, so that it does not come and go."""
GoOn = Callable[[int], None]
_SLICE_NS = 2e7  # how long a kernel may keep the interpreter from seeing Ctrl-C


class Searcher:
    """Memory for searches on one problem, in one thread, with supports of up to `largest` columns."""

    def __init__(self, gram: Gram, largest: int, go_on: GoOn, judge: Judge | None = None) -> None:
        self.gram, self.go_on = gram, go_on
        G, nothing = gram.matrix if gram.dense else np.empty((0, 0)), np.empty(0)
        self.form = Form(G, gram.b, gram.diagonal, gram.yy, np.empty((0, 0)), nothing, nothing)
        self.table = new_table(largest, gram.n_columns, dense=gram.dense)
        self.states = np.zeros(1, STATE)
        self.judge = Judge(gram) if judge is None else judge
        self._better = BETTER * gram.yy
        self._budget = max(1, int(_SLICE_NS / (1.5 * largest * gram.n_columns + 1e3)))
        self._seen = self._fetches = 0
        self._fetched = np.zeros(self.table.whose.size, np.int64)

    def chain(self, k: int, key: NDArray[np.uint32], descent: Descent, start: Support | None) -> _Chain:
        """Descend from `start` (None: a random support), then kick; what the chain found."""
        first = np.empty(0, np.int64) if start is None else np.array(start, dtype=np.int64)
        plan = Kicks(np.array(key), first, descent.kicks, *descent.columns(k))
        pool = Pool(
            np.empty((descent.pool, k), np.int64),
            np.full(descent.pool, np.inf),
            np.full(descent.kicks + 1, np.inf),
            np.empty(self.gram.n_columns, np.uint8),
            np.zeros(self.gram.n_columns, np.uint8),
        )
        clocks = np.zeros(1, KICK)
        clocks["size"] = k
        while True:
            status = advance_chain(self.form, self.table, self.states, clocks, plan, pool, self._budget)
            self._count()
            if status == DONE:
                return _Chain(pool, int(clocks["pooled"][0]), int(clocks["fresh"][0]), self._better)
            if status == DOUBT:
                self._chain_by_columns(k, plan, clocks, pool)
            else:
                self._help(status, self._drawn_next(plan.key, clocks[0], pool) if status == NEED_ROW else [])

    def path(self, largest: int, passes: int) -> tuple[list[Support], Floats]:
        """Supports of sizes 1 to `largest` (fewer where no more columns are independent) and their energies.

        The first pass goes up, the next ones down and up in turn, until nothing changes or `passes` are over.
        """
        supports, energies = np.zeros((largest, largest), np.int64), np.full(largest, np.inf)
        clocks = np.zeros(1, PATH)
        self._write(np.empty(0, np.int64))
        top = largest
        for turn in range(passes):
            clocks["up"], clocks["changed"], clocks["phase"] = 1 - turn % 2, 0, MOVING
            clocks["last"] = 1 if turn % 2 else top
            if not self._pass(clocks, supports, energies):
                top = int(np.count_nonzero(np.isfinite(energies)))
                self._write(supports[top - 1, :top].copy())
            if top < 2 or (turn and not clocks["changed"][0]):
                break
        return [supports[m, : m + 1].copy() for m in range(top)], energies[:top]

    def _pass(self, clocks: Any, supports: NDArray[np.int64], energies: Floats) -> bool:
        """One pass of the path; False if columns ran out."""
        while True:
            status = advance_path(self.form, self.table, self.states, clocks, supports, energies, self._budget)
            self._count()
            if status == DONE:
                return True
            if status != DOUBT:
                self._help(status)
            elif not self._path_by_columns(clocks):
                return False

    def _count(self) -> None:
        scans = int(self.states["scans"][0])
        self.go_on(scans - self._seen)
        self._seen = scans

    def _help(self, status: int, next_ones: Sequence[int] = ()) -> None:
        """Fetch what a kernel needs before it can go on, and what it will need next."""
        if status == NEED_ROW:
            self._fetch([int(self.states["wanted"][0]), *self._support.tolist(), *next_ones])
        elif status == NEED_COLUMNS and not self._show_columns():  # only those of the support are formed
            self._end(self.judge.energy(self._support))

    def _show_columns(self) -> bool:
        """Let kernels see the columns; False if they do already, or if there are too many columns for that."""
        if not self.gram.dense or self.form.target.size:
            return False
        columns, target = self.judge.table
        self.form = self.form._replace(columns=columns, target=target, penalty=self.gram.penalty)
        return True

    def _drawn_next(self, key: NDArray[np.uint32], clock: Any, pool: Pool) -> list[int]:
        """Columns that a chain which fills up at random will ask for: one pass over the table serves them all."""
        if clock["phase"] != ENTERING or clock["kind"] != RANDOM:
            return []
        n, k, place = self.gram.n_columns, int(self.states["k"][0]), int(clock["drawn"])
        drawn = [_drawn(key, int(clock["round"]), place + more, n) for more in range(int(clock["size"]) - k)]
        return [j for j in drawn if not pool.left[j]]

    def _fetch(self, columns: list[int]) -> None:
        """Compute those Gram rows that are not there, in one pass, in place of those fetched longest ago.

        There is room for the rows of a support; where all are needed, the column will take the place of another one.
        """
        table = self.table
        missing = [j for j in dict.fromkeys(columns) if table.at[j] < 0]
        spare = np.flatnonzero(~np.isin(table.whose, columns))
        if not spare.size:
            spare = np.flatnonzero(table.whose == table.support[int(self.states["slot"][0])])
        places = spare[np.argsort(self._fetched[spare], kind="stable")][: len(missing)].tolist()
        missing = missing[: len(places)]
        for at in places:
            if table.whose[at] >= 0:
                table.at[table.whose[at]] = -1
        self.gram.write_rows(missing, [table.rows[at] for at in places])
        for column, at in zip(missing, places, strict=True):
            self._fetches += 1
            table.whose[at], table.at[column], self._fetched[at] = column, at, self._fetches

    def _chain_by_columns(self, k: int, plan: Kicks, clocks: Any, pool: Pool) -> None:
        """What the table left in doubt, until the support is well conditioned or at a minimum."""
        if self._show_columns():
            return
        if clocks["phase"][0] == ENTERING:
            support = self._filled(k, plan, clocks[0], pool, self._support)
            self._write(support)
            if support.size < k:
                return
            self._descend(support)
        else:
            self._flip()
        clocks["phase"] = DESCENDING

    def _path_by_columns(self, clocks: Any) -> bool:
        """Go on with a pass until the support is well conditioned or at a minimum; False if columns ran out."""
        if self._show_columns():
            return True
        support = self._support
        if clocks["phase"][0] == PATH_DESCENDING:
            self._flip()
        elif clocks["up"][0]:
            j = self.judge.best_addition(support)
            if j is None:
                return False
            self._descend(np.append(support, j))
        else:
            self._descend(np.delete(support, self.judge.best_removal(support)))
        clocks["phase"] = PATH_DESCENDING
        return True

    def _filled(self, k: int, plan: Kicks, clock: Any, pool: Pool, support: Support) -> Support:
        """The support under way with more columns, as `enter` would find them: all, or until it is well conditioned."""
        if self.judge.compiled:
            filled = self.judge.fill(support, k, plan, clock, pool, CALM)
            if filled is None:
                raise RankTooSmall(k, self.gram.rank(), self.gram.objective)
            return filled
        n, key, round_, before = self.gram.n_columns, plan.key, int(clock["round"]), support.size
        while support.size < k and (support.size == before or self.judge.basis(support).inflation > CALM):
            if clock["kind"] != RANDOM:
                allowed = half_of(key, round_, support.size, n) if clock["kind"] == HALF_BEST else None
                j = self.judge.best_addition(support, allowed)
                if j is None and allowed is not None:
                    j = self.judge.best_addition(support)
            elif clock["drawn"] >= 8 * n + 64:
                j = self.judge.first_addition(support)
            else:
                j = _drawn(key, round_, int(clock["drawn"]), n)
                clock["drawn"] += 1
                if pool.left[j] or not self.judge.can_add(support, j):
                    continue
            if j is None:
                raise RankTooSmall(k, support.size, self.gram.objective)
            support = np.append(support, j)
        return support

    def _flip(self) -> None:
        """The flip that the table could not choose, or that leads where it cannot follow."""
        doubts, support = int(self.states["doubts"][0]), self._support
        listed = self.table.listed[:doubts].copy() if 0 < doubts <= LISTED else None
        self._descend(support, asked=True, listed=listed)

    def _descend(self, support: Support, *, asked: bool = False, listed: NDArray[np.int64] | None = None) -> None:
        support, energy = self.judge.descend(support, CALM, asked=asked, listed=listed)
        self._write(support)
        if energy is not None:
            self._end(energy)

    def _end(self, energy: float) -> None:
        """A minimum is reached."""
        self.states["at_minimum"], self.states["energy"] = 1, energy

    @property
    def _support(self) -> Support:
        return np.array(self.table.support[: int(self.states["k"][0])], dtype=np.int64)

    def _write(self, support: Support) -> None:
        """Write a support where kernels look for it; the table does not belong to it."""
        self.table.support[: support.size] = support
        self.states["k"], self.states["stale"] = support.size, 1


def _drawn(key: NDArray[np.uint32], round_: int, place: int, n: int) -> int:
    """The column that a random place of a round stands for."""
    words = kick_words(key, round_, KICK_FILL, place)
    return int((words[0] * np.uint64(n)) >> np.uint64(32))


def half_of(key: NDArray[np.uint32], round_: int, taken: int, n: int) -> NDArray[np.bool_]:
    """The random half of the columns that may enter a kicked support which has `taken` columns."""
    words = np.concatenate([kick_words(key, round_, KICK_ADD + taken, block) for block in range((n + 127) // 128)])
    bits = (words[:, None] >> np.arange(32, dtype=np.uint64)) & np.uint64(1)
    return np.asarray(bits.ravel()[:n] == 1)


class _Chain:
    """What a chain found: its pool of minima, the lowest first; how many of its random starts reached the lowest."""

    def __init__(self, pool: Pool, pooled: int, fresh: int, better: float) -> None:
        order = np.argsort(pool.energies[:pooled], kind="stable")
        self.supports, self.energies = pool.supports[order], pool.energies[order]
        self.tried = fresh
        self.reached = int(np.count_nonzero(pool.fresh[:fresh] <= self.energies[0] + better))
