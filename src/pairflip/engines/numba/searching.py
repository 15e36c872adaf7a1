"""Descents, kicks and paths on one problem: kernels where the Gram matrix can decide, the columns where it cannot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import BETTER, Descent, RankTooSmall
from pairflip.engines.numba.descent import DOUBT, LISTED, NEED_ROW, SHAKY, STATE, Form, new_table
from pairflip.engines.numba.judging import Judge, Support
from pairflip.engines.numba.kicks import (
    ADDING,
    DESCENDING,
    FILLING,
    HALF_BEST,
    KICK,
    RANDOM,
    SEATING,
    Kicks,
    Pool,
    advance_chain,
    end_round_at,
)
from pairflip.engines.numba.path import DESCENDING as PATH_DESCENDING
from pairflip.engines.numba.path import DONE, LOADING, MOVING, PATH, advance_path, compare_at, load_support
from pairflip.gram import Gram
from pairflip.least_squares import Floats
from pairflip.philox import KICK_ADD, KICK_FILL, kick_words

CALM = SHAKY / 4.0
"""Inflation below which a search goes back to the table: well below SHAKY, so that it does not come and go."""
GoOn = Callable[[int], None]
_SLICE_NS = 2e7  # how long a kernel may keep the interpreter from seeing Ctrl-C


class Searcher:
    """Memory and judge for searches on one problem, in one thread, with supports of up to `largest` columns."""

    def __init__(self, gram: Gram, largest: int, go_on: GoOn) -> None:
        self.gram, self._go_on = gram, go_on
        G = gram.matrix if gram.dense else np.empty((0, 0))
        self.form = Form(G, gram.b, gram.diagonal, gram.yy)
        self.table = new_table(largest, gram.n_columns, dense=gram.dense)
        self.states = np.zeros(1, STATE)
        self.judge = Judge(gram)
        self._better = BETTER * gram.yy
        self._budget = max(1, int(_SLICE_NS / (1.5 * largest * gram.n_columns + 1e3)))
        self._seen = 0
        self._fetched = np.zeros(self.table.whose.size, np.int64)
        self._fetches = 0

    def chain(self, k: int, key: NDArray[np.uint32], descent: Descent, start: Support | None) -> _Chain:
        """Descend from `start` (None: a random support), then kick; what the chain found."""
        starts = np.empty((0, k), np.int64) if start is None else np.asarray(start, dtype=np.int64)[None, :]
        least, most = descent.columns(k)
        plan = Kicks(np.asarray(key)[None, :], starts, descent.kicks, least, most)
        pool = Pool(
            np.empty((descent.pool, k), np.int64),
            np.full(descent.pool, np.inf),
            np.full(descent.kicks + 1, np.inf),
            np.empty(self.gram.n_columns, np.uint8),
            np.zeros(self.gram.n_columns, np.uint8),
        )
        clocks = np.zeros(1, KICK)
        clocks["size"], clocks["drawn"], clocks["last_chain"] = k, -1, 1
        if start is None:
            clocks["kind"] = RANDOM
        while True:
            status = advance_chain(self.form, self.table, self.states, clocks, plan, pool, self._budget)
            self._count()
            if status == DONE:
                return _Chain(pool, int(clocks["pooled"][0]), int(clocks["fresh"][0]), self._better)
            if status == NEED_ROW:
                self._fetch(self._soon(key, clocks[0], pool))
            elif status == DOUBT:
                self._chain_by_columns(k, np.asarray(key), clocks, plan, pool)

    def path(self, largest: int, passes: int) -> tuple[list[Support], Floats]:
        """Supports of sizes 1 to `largest` (fewer where no more columns are independent) and their energies.

        The first pass goes up, the next ones down and up in turn, until nothing changes or `passes` are over.
        """
        supports, energies = np.zeros((largest, largest), np.int64), np.full(largest, np.inf)
        clocks = np.zeros(1, PATH)
        self._write(np.empty(0, np.int64))
        top = largest
        for turn in range(passes):
            clocks["up"], clocks["changed"], clocks["phase"] = 1 - turn % 2, 0, LOADING
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
            if status == NEED_ROW:
                self._fetch([int(self.states["wanted"][0]), *self._support.tolist()])
            elif status == DOUBT and not self._path_by_columns(clocks, supports, energies):
                return False

    def _count(self) -> None:
        scans = int(self.states["scans"][0])
        self._go_on(scans - self._seen)
        self._seen = scans

    @property
    def _support(self) -> Support:
        return np.array(self.table.support[: int(self.states["k"][0])], dtype=np.int64)

    def _load(self, support: Support) -> bool:
        """Make the table that of a support; False if it is not well enough conditioned."""
        self._write(support)
        if not self.gram.dense:
            self._fetch(support.tolist())
        return bool(load_support(self.form, self.table, self.states))

    def _soon(self, key: NDArray[np.uint32], clock: Any, pool: Pool) -> list[int]:
        """The column whose row a chain waits for, and those that it will ask for next: a pass can serve them all."""
        columns, n = [int(self.states["wanted"][0]), *self._support.tolist()], self.gram.n_columns
        if clock["phase"] == FILLING:
            place, last = int(clock["drawn"]), int(clock["drawn"]) + int(clock["size"])
            while len(columns) <= clock["size"] and place < last:
                words = kick_words(key, int(clock["round"]), KICK_FILL, place)
                j = int((words[0] * np.uint64(n)) >> np.uint64(32))
                columns += [j] if not pool.left[j] else []
                place += 1
        return columns

    def _fetch(self, columns: list[int]) -> None:
        """Compute those Gram rows that are not there, in place of others that were fetched longest ago.

        There is room for the rows of a support; where all are needed, the column will take the place of another one.
        """
        table, support = self.table, self._support
        missing = [j for j in dict.fromkeys(columns) if table.at[j] < 0]
        spare = np.flatnonzero(~np.isin(table.whose, columns))
        if not spare.size:
            spare = np.flatnonzero(table.whose == support[int(self.states["slot"][0])])
        places = spare[np.argsort(self._fetched[spare], kind="stable")][: len(missing)].tolist()
        missing = missing[: len(places)]
        for at in places:
            if table.whose[at] >= 0:
                table.at[table.whose[at]] = -1
        self.gram.write_rows(missing, [table.rows[at] for at in places])
        for column, at in zip(missing, places, strict=True):
            self._fetches += 1
            table.whose[at], table.at[column], self._fetched[at] = column, at, self._fetches

    def _chain_by_columns(self, k: int, key: NDArray[np.uint32], clocks: Any, plan: Kicks, pool: Pool) -> None:
        """What the table left in doubt, until the support is well conditioned or at a minimum."""
        clock, support = clocks[0], self._support
        if clock["phase"] in (SEATING, FILLING, ADDING):
            support = self._filled(k, key, clock, pool, support)
        else:
            doubts = int(self.states["doubts"][0])
            listed = self.table.listed[:doubts].copy() if 0 < doubts <= LISTED else None
            flipped = self.judge.best_flip(support, listed)
            if flipped is None:
                end_round_at(self.judge.energy(support), self.table, clocks, plan, pool, self._better)
                return
            support = flipped
        support, at_minimum = self.judge.descend(support, CALM)
        clocks["phase"] = DESCENDING
        if at_minimum or not self._load(support):
            while not at_minimum:
                support, at_minimum = self.judge.descend(support, 0.0)
            self._write(support)
            end_round_at(self.judge.energy(support), self.table, clocks, plan, pool, self._better)

    def _filled(self, k: int, key: NDArray[np.uint32], clock: Any, pool: Pool, support: Support) -> Support:
        """The support under way with all its columns, as `enter_random` or `enter_best` would find them."""
        n, round_ = self.gram.n_columns, int(clock["round"])
        while support.size < k and clock["kind"] == RANDOM:
            if clock["drawn"] >= 8 * n + 64:
                rest = [j for j in range(n) if j not in support and self.judge.can_add(support, j)]
                if not rest:
                    raise RankTooSmall(k, support.size, self.gram.objective)
                support = np.append(support, rest[0])
                continue
            words = kick_words(key, round_, KICK_FILL, int(clock["drawn"]))
            j = int((words[0] * np.uint64(n)) >> np.uint64(32))
            if j not in support and not pool.left[j] and self.judge.can_add(support, j):
                support = np.append(support, j)
            clock["drawn"] += 1
        while support.size < k:
            allowed = half_of(key, round_, support.size, n) if clock["kind"] == HALF_BEST else None
            best = self.judge.best_addition(support, allowed)
            if best is None and allowed is not None:
                best = self.judge.best_addition(support)
            if best is None:
                raise RankTooSmall(k, support.size, self.gram.objective)
            support = np.append(support, best)
        return support

    def _path_by_columns(self, clocks: Any, supports: NDArray[np.int64], energies: Floats) -> bool:
        """Go on with a pass until a support is well conditioned again; False if columns ran out."""
        support, phase, at_minimum = self._support, int(clocks["phase"][0]), False
        if phase == PATH_DESCENDING:
            doubts = int(self.states["doubts"][0])
            listed = self.table.listed[:doubts].copy() if 0 < doubts <= LISTED else None
            flipped = self.judge.best_flip(support, listed)
            at_minimum = flipped is None
            support = support if flipped is None else flipped
        while True:
            if phase != PATH_DESCENDING:
                if support.size == clocks["last"][0]:
                    self._write(support)
                    clocks["phase"] = MOVING
                    return True
                if clocks["up"][0]:
                    j = self.judge.best_addition(support)
                    if j is None:
                        return False
                    support = np.append(support, j)
                else:
                    support = np.delete(support, self.judge.best_removal(support))
            if not at_minimum:
                support, at_minimum = self.judge.descend(support, CALM)
            if not at_minimum and self._load(support):
                clocks["phase"] = PATH_DESCENDING
                return True
            while not at_minimum:
                support, at_minimum = self.judge.descend(support, 0.0)
            self._write(support)
            energy = self.judge.energy(support)
            if compare_at(energy, self.table, self.states, clocks, supports, energies, self._better) < 0:
                support = supports[support.size - 1, : support.size].copy()
            phase, at_minimum = MOVING, False
            if self.judge.basis(support).inflation <= CALM and self._load(support):
                clocks["phase"] = MOVING
                return True

    def _write(self, support: Support) -> None:
        """Write a support where kernels look for it; the table does not belong to it."""
        self.table.support[: support.size] = support
        self.states["k"] = support.size


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
