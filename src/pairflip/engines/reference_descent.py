"""Descents, kicks and paths, literally: least squares recomputed for everything that is compared.

The rule of every choice: energies within TIE y'y of the lowest are equal to it; of equals, the column that enters comes
first, then the column that leaves. Only flips that lower the energy by more than TIE y'y are chosen from. Two minima
are the same if their energies are within BETTER y'y.

Where rules say what may be chosen together, a support against them has no energy, so that it is never chosen; what
needs a column that leaves, leaves with it; and where no column can follow, a support is made anew (`seating`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pairflip.engines.base import BETTER, TIE, Descent, RankTooSmall
from pairflip.gram import Gram
from pairflip.philox import KICK_ADD, KICK_DROP, KICK_FILL, kick_words
from pairflip.seating import seated

Columns = list[int]


def below(word: np.uint64, n: int) -> int:
    """A whole number from 0 to n - 1: the high half of word times n."""
    return int((int(word) * n) >> 32)


@dataclass
class LiteralSearch:
    """Searches on one problem; supports are sorted lists of candidate positions."""

    gram: Gram
    known: dict[tuple[int, ...], float] = field(default_factory=dict)

    def energy(self, support: Columns) -> float:
        """E by QR, each support once."""
        key = tuple(sorted(support))
        if key not in self.known:
            self.known[key] = self.gram.energy(np.array(key, dtype=np.int64)) if key else 0.5 * self.gram.yy
        return self.known[key]

    def outside(self, support: Columns) -> Columns:
        """The other columns."""
        return [j for j in range(self.gram.n_columns) if j not in support]

    def lowest(self, options: list[tuple[float, int, int]]) -> tuple[float, int, int] | None:
        """The first in order of (enters, leaves) of the options (energy, enters, leaves) that equal the lowest."""
        finite = [option for option in options if np.isfinite(option[0])]
        if not finite:
            return None
        limit = min(option[0] for option in finite) + TIE * self.gram.yy
        return min((option for option in finite if option[0] <= limit), key=lambda option: option[1:])

    def descend(self, support: Columns) -> Columns:
        """The best of all flips until none lowers the energy by more than TIE y'y."""
        while True:
            limit = self.energy(support) - TIE * self.gram.yy
            flips = [
                (self.energy([j, *(c for c in support if c != i)]), j, i)
                for i in support
                for j in self.outside(support)
            ]
            best = self.lowest([flip for flip in flips if flip[0] < limit])
            if best is None:
                return sorted(support)
            support = [best[1], *(c for c in support if c != best[2])]

    def add(self, support: Columns, allowed: NDArray[np.bool_] | None = None) -> Columns | None:
        """With the column that lowers the energy most."""
        options = [(self.energy([*support, j]), j, -1) for j in self.outside(support) if allowed is None or allowed[j]]
        best = self.lowest(options)
        return None if best is None else [*support, best[1]]

    def remove(self, support: Columns) -> Columns:
        """Without the column that is missed least."""
        best = self.lowest([(self.energy([c for c in support if c != i]), -1, i) for i in support])
        assert best is not None
        return [c for c in support if c != best[2]]

    def path(self, largest: int, passes: int) -> list[Columns]:
        """Supports of sizes 1 to `largest`, each from its neighbour: up, then down and up in turn."""
        supports: dict[int, Columns] = {0: []}
        better, now = BETTER * self.gram.yy, supports[0]
        for turn in range(passes):
            up, changed = turn % 2 == 0, False
            while len(now) != (largest if up else 1):
                moved = self.add(now) if up else self.remove(now)
                if moved is None:
                    moved = self.packed(len(now) + 1, range(self.gram.n_columns))
                if moved is None:
                    largest = max(supports)
                    now = supports[largest]
                    break
                now, k = self.descend(moved), len(moved)
                if k not in supports or self.energy(now) < self.energy(supports[k]) - better:
                    supports[k], changed = now, True
                elif self.energy(now) > self.energy(supports[k]) + better:
                    now = supports[k]
            if largest < 2 or (turn and not changed):
                break
        return [supports[k] for k in range(1, largest + 1)]

    def chain(
        self, k: int, key: NDArray[np.uint32], descent: Descent, start: Columns | None
    ) -> tuple[Columns, int, int]:
        """Descend, then kick: the lowest minimum, how many random starts reached it, and how many there were."""
        pool: list[Columns] = []
        fresh: list[float] = []
        better = BETTER * self.gram.yy
        for round_ in range(descent.kicks + 1):
            anew = round_ == 0 or len(pool) < descent.pool
            if round_ == 0 and start is not None:
                now = list(start)
            elif anew:
                now = self.fill([], set(), k, key, round_)
            else:
                now = self.kick(pool, k, key, descent, round_)
            now = self.descend(now)
            energy = self.energy(now)
            if anew:
                fresh.append(energy)
            if any(abs(self.energy(other) - energy) <= better for other in pool):
                continue
            if len(pool) < descent.pool:
                pool.append(now)
                continue
            worst = max(range(len(pool)), key=lambda m: self.energy(pool[m]))
            if energy < self.energy(pool[worst]):
                pool[worst] = now
        best = min(pool, key=self.energy)
        return best, sum(e <= self.energy(best) + better for e in fresh), len(fresh)

    def kick(self, pool: list[Columns], k: int, key: NDArray[np.uint32], descent: Descent, round_: int) -> Columns:
        """One of the minima with some of its columns replaced."""
        words = kick_words(key, round_, 0, 0)
        least, most = descent.columns(k)
        member, count = pool[below(words[0], len(pool))], least + below(words[1], most - least + 1)
        kind, left, place = below(words[2], 3), set[int](), 0
        while len(left) < count:
            left.add(member[below(kick_words(key, round_, KICK_DROP, place)[0], k)])
            place += 1
        now = self.without_needy([c for c in member if c not in left])
        if kind == 0:
            return self.fill(now, left, k, key, round_)
        n = self.gram.n_columns
        while len(now) < k:
            half = None
            if kind == 2:
                blocks = [kick_words(key, round_, KICK_ADD + len(now), block) for block in range((n + 127) // 128)]
                half = np.array([(int(w) >> bit) & 1 == 1 for block in blocks for w in block for bit in range(32)])[:n]
            found = self.add(now, half) or self.add(now) or self.packed(k, now)
            if found is None:
                raise RankTooSmall(k, len(now), self.gram.objective)
            now = found
        return now

    def fill(self, now: Columns, left: set[int], k: int, key: NDArray[np.uint32], round_: int) -> Columns:
        """With random columns, but none that just left, until there are k that stay independent."""
        n, place = self.gram.n_columns, 0
        while len(now) < k:
            if place >= 8 * n + 64:  # hardly any column is independent of these: take the first
                rest = [j for j in self.outside(now) if np.isfinite(self.energy([*now, j]))]
                if not rest:
                    made = self.packed(k, now)
                    if made is not None:
                        return made
                    raise RankTooSmall(k, len(now), self.gram.objective)
                now = [*now, rest[0]]
                continue
            j = below(kick_words(key, round_, KICK_FILL, place)[0], n)
            if j not in now and j not in left and np.isfinite(self.energy([*now, j])):
                now = [*now, j]
            place += 1
        return now

    def without_needy(self, now: Columns) -> Columns:
        """Without columns that need others which are not there."""
        rules = getattr(self.gram, "rules", None)
        while rules is not None and not np.isfinite(self.energy(now)):
            left = [j for j in now if set(now).issuperset(rules.need[rules.need_start[j] : rules.need_start[j + 1]])]
            if left == now:
                break
            now = left
        return now

    def packed(self, k: int, first: Iterable[int]) -> Columns | None:
        """A support of k columns that keeps the rules, some preferred; None where there are no rules, or none is."""
        rules = getattr(self.gram, "rules", None)
        if rules is None or not rules.any:
            return None
        order = np.array(list(dict.fromkeys([*first, *range(self.gram.n_columns)])), dtype=np.int64)
        found = seated(rules, k, order)
        return None if found is None or not np.isfinite(self.energy(found.tolist())) else found.tolist()
