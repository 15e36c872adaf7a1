"""Searches on one problem: the path over sizes, and chains of descents and kicks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import EPSILON, Descent, RankTooSmall
from pairflip.engines.numba import units
from pairflip.engines.numba.search import Rounds, in_python, walk_path, walk_rounds
from pairflip.engines.numba.table import STATE, form_of, new_table
from pairflip.least_squares import Floats
from pairflip.moments import Form, TrainingForm
from pairflip.rules import packed

Support = NDArray[np.int64]
GoOn = Callable[[int], None]
ROWS_BYTES = 32 * 2**20
"""Memory for rows of G where G itself does not fit; in any case there is room for those of a support."""
_SLICE_NS = 2e7  # how long a kernel may keep the interpreter from seeing Ctrl-C
_COMPARED = 4  # of the minima of a chain, by QR, where rounding may have changed their order
_ROW_NS = 0.35  # for one number of one row of a table, fitted once
_UNSURE = 1e-8  # of y'y: minima this close to the lowest are compared by QR


class MatrixRows:
    """Rows of G by column: computed when they are asked for, and kept while there is room."""

    def __init__(self, form: Form, least: int) -> None:
        self._form, self._rows = form, dict[int, Floats]()
        self._room = max(least + 1, ROWS_BYTES // (8 * form.n_columns))

    def fetch(self, columns: Sequence[int]) -> None:
        """Compute rows that are not there, in one pass over the table."""
        missing = [j for j in dict.fromkeys(map(int, columns)) if j not in self._rows]
        rows = [np.empty(self._form.n_columns) for _ in missing]
        if missing:
            self._form.write_rows(missing, rows)
        for j, row in zip(missing, rows, strict=True):
            if len(self._rows) >= self._room:
                del self._rows[next(iter(self._rows))]
            self._rows[j] = row

    def __getitem__(self, j: int) -> Floats:
        self.fetch([j])
        row = self._rows[int(j)] = self._rows.pop(int(j))  # the last to be forgotten
        return row


class Chain(NamedTuple):
    """What a chain found: its lowest support, sorted, and its energy.

    `nanoseconds` is what it took on one core, counted in rows of tables, so that it is the same everywhere.
    """

    support: Support
    energy: float
    nanoseconds: float


class Searcher:
    """Memory for searches on one problem, in one thread, with supports of up to `largest` units."""

    def __init__(self, form: Form, largest: int, go_on: GoOn) -> None:
        self.form, self.go_on = form, go_on
        targets, n = form.B.shape
        self._allowed = np.ones(form.n_columns, np.uint8)
        self._form: Any
        self._G: Any
        if form.grouped:
            self._form, self._G = units.form_of(form), form.matrix
            self._table = units.new_table(self._form, largest)
            scope = units.in_units()
            self._walk_path, self._walk_rounds, self._chunk = scope["walk_path"], scope["walk_rounds"], 1
            return
        self._form, self._table = form_of(form), new_table(largest, n, targets)
        alone = "matrix" in vars(form) or self._form.needs.size  # sets of products look at the matrix itself
        if isinstance(form, TrainingForm) and form.rows.size == 1 and form.base.dense and not alone:
            self._G = form.base.matrix  # that of all rows will do
            self._form = self._form._replace(left=np.vstack([form.unit, form.left_out]))
        else:
            self._G = form.matrix if form.dense else MatrixRows(form, largest)
        scope = {} if form.dense else in_python()
        self._walk_path = scope.get("walk_path", walk_path)
        self._walk_rounds = scope.get("walk_rounds", walk_rounds)
        # A descent makes some ten scans of all flips; so many may be made in one call.
        self._chunk = max(1, int(_SLICE_NS / (5.0 * largest * n * targets + 1e3)))

    def path(self, largest: int, passes: int) -> tuple[list[Support], Floats]:
        """Supports of sizes 1 to `largest` (fewer where no more units can be chosen together) and their energies.

        The first pass goes up, the next ones down and up in turn, until nothing changes or `passes` are over.
        """
        supports, energies = np.zeros((largest, largest), np.int64), np.full(largest, np.inf)
        k, top = 0, largest
        for turn in range(passes):
            lower, last = 0, 1 if turn % 2 else top
            while k != last:
                size = min(k + self._chunk, last) if k < last else max(k - self._chunk, last)
                k, more = self._walk_path(self._G, self._form, self._table, k, size, supports, energies, self._allowed)
                self.go_on(1)
                lower += more
                if k < size <= last:  # no unit may enter: a support of the next size is made anew, if there is one
                    k = self._restart(k, supports, energies)
                    if k < 0:
                        top = k = int(np.count_nonzero(np.isfinite(energies)))
                        break
            if top < 2 or (turn and not lower):
                break
        by_size = [np.sort(supports[m, : m + 1]) for m in range(top)]
        if self._is_shaky:
            energies[:top] = [self.form.energy(support) for support in by_size]
        return by_size, energies[:top]

    def _restart(self, k: int, supports: Support, energies: Floats) -> int:
        """A chain at a support of one more unit that is made anew; its size, or -1 where there is none."""
        start = self._made(k + 1, supports[k - 1, :k] if k else np.zeros(0, np.int64))
        if start is None:
            return -1
        chain = self.chain(k + 1, np.zeros(2, np.uint32), Descent(), start)
        supports[k, : k + 1], energies[k] = chain.support, chain.energy
        return k + 1

    def _made(self, k: int, first: Support) -> Support | None:
        """A support of k units that keeps the rules, some preferred; None where none was found.

        Wide units may leave no room for others, so that narrow ones have to take their place.
        """
        if self._form.ruled:
            n = self.form.n_columns
            support = packed(self.form.rules, k, np.concatenate([first, np.setdiff1d(np.arange(n), first)]))
            if support is not None and np.isfinite(self.form.energy(support)):
                return support
        return self.form.narrow(k)

    def chain(self, k: int, key: NDArray[np.uint32], descent: Descent, start: Support | None) -> Chain:
        """Descend from `start` (None: a random support), then kick; what the chain found."""
        if isinstance(self._G, MatrixRows) and start is not None:
            self._G.fetch(start.tolist())
        rounds = Rounds(
            np.array(key), *descent.columns(k), np.zeros((descent.pool, k), np.int64), np.full(descent.pool, np.inf),
            np.zeros(1, np.int64), descent.pool if start is None else 1, self._allowed,
            np.full(k, -1) if start is None else np.array(start, dtype=np.int64),
        )  # fmt: skip
        at = 0
        self._table.values[STATE, 1] = 0.0
        for first in range(0, descent.kicks + 1, self._chunk):
            last = min(first + self._chunk, descent.kicks + 1)
            at = self._walk_rounds(self._G, self._form, self._table, at, k, rounds, first, last)
            self.go_on(last - first)
        pooled = int(rounds.pooled[0])
        if not pooled:
            other = self._made(k, np.zeros(0, np.int64)) if start is None else None
            if other is None:
                raise RankTooSmall(k, self._most(k), self.form.what + " and rules" * self._form.ruled)
            return self.chain(k, key, descent, other)
        order = np.argsort(rounds.levels[:pooled], kind="stable")
        levels, pool = rounds.levels[order], np.sort(rounds.pool[order], axis=1)
        support, energy = pool[0], float(levels[0])
        if self._is_shaky:
            lowest = pool[: min(_COMPARED, int(np.count_nonzero(levels <= energy + _UNSURE * self.form.yy)))]
            exact = [self.form.energy(minimum) for minimum in lowest]
            support, energy = lowest[int(np.argmin(exact))], min(exact)
        work = float(self._table.values[STATE, 1]) * self._form.B.shape[1]
        return Chain(support, energy, _ROW_NS * work + 2e3 * (descent.kicks + 1))

    def _most(self, k: int) -> int:
        """The most units below k that can be chosen together."""
        if not self._form.ruled:
            return self.form.rank()
        return next((size for size in range(k - 1, 0, -1) if self._made(size, np.zeros(0, np.int64)) is not None), 0)

    @property
    def _is_shaky(self) -> bool:
        """Whether columns were so nearly dependent that rounding shows in the energies of the table."""
        return bool(EPSILON * self._table.values[STATE, 0] > 1e-11)
