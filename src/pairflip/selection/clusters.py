"""Columns that stand in for each other: windows of ordered columns, otherwise columns correlated with one of them.

They are made from the table alone, never from the target, and may overlap: a partition would have arbitrary boundaries,
and a band that half-samples find on both sides of one would be told as two rare ones. The bound on false clusters
therefore sums over all of them. Those that are told have no column in common, the most frequent first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats
from pairflip.problem import SubsetProblem
from pairflip.rules import name_positions

Ints = NDArray[np.int64]

ALIKE = 0.9
"""Columns with at least this absolute correlation stand in for each other."""
_WINDOW = 20  # windows are so many times narrower than the range of the positions, and begin every half of that
_ORDERED = 0.9  # of the names have numbers, where columns are ordered
_SAMPLE = 1000  # columns from which the sizes of all clusters, or the likeness of neighbours, are estimated
_BLOCK = 64  # columns that are compared with all others at a time
_FREQUENT = 0.1  # clusters that fewer half-samples selected are not kept


@dataclass(frozen=True, eq=False)
class Clusters:
    """Clusters that half-samples of one size selected, and how many of each size the whole table has.

    Attributes
    ----------
    members : tuple of (m,)
        Columns of clusters without a common column, the most frequent cluster first.
    widths, numbers : (w,)
        Numbers of columns of all clusters of the table (rounded up), and how many clusters have so many.
    """

    members: tuple[Ints, ...]
    widths: Ints
    numbers: Floats


class Family:
    """All clusters of a problem, as a function of the columns that they are wanted for."""

    def __init__(self, problem: SubsetProblem) -> None:
        self._form, self._candidates = problem.form, problem.candidates
        self._norms = np.sqrt(np.maximum(1.0 - self._form.penalty, 1e-300))  # the ridge term is part of the unit norm
        names = problem.names
        self.positions = name_positions([names[j] for j in self._candidates.tolist()])
        self.ordered = self._neighbours_alike()
        self._windows = self._all_windows() if self.ordered else []

    def of(self, columns: Ints) -> list[Ints]:
        """Clusters, as sorted columns of the table, that have at least one of some columns."""
        if self.ordered:
            return [window for window in self._windows if np.isin(window, columns).any()]
        return [self._candidates[near] for near in self._around(np.searchsorted(self._candidates, columns))]

    def sizes(self) -> tuple[Ints, Floats]:
        """Numbers of columns (w,) that clusters of the whole table have, and how many have so many."""
        if self.ordered:
            widths, counts = np.unique([window.size for window in self._windows], return_counts=True)
            return widths, counts.astype(np.float64)
        n = self._candidates.size
        seeds = np.arange(n) if n <= _SAMPLE else np.random.default_rng(0).choice(n, _SAMPLE, replace=False)
        widths, counts = np.unique([near.size for near in self._around(seeds)], return_counts=True)
        # Rounded up to a few values, each of which costs a bound.
        ladder = np.unique(np.ceil(1.25 ** np.arange(64))).astype(np.int64)
        rounded, place = np.unique(ladder[np.searchsorted(ladder, widths)], return_inverse=True)
        numbers = np.bincount(place, counts).astype(np.float64) * (n / seeds.size)
        return np.minimum(rounded, n).astype(np.int64), numbers

    def _correlation(self, one: Ints, other: Ints | None = None) -> Floats:
        """Absolute correlations (n,) of columns with as many others, or (n, N) with all columns."""
        columns = self._form.columns_of(one)
        if other is None:
            products = self._form.products(columns) / (self._norms[one][:, None] * self._norms)
        else:
            products = np.einsum("nm,nm->n", columns, self._form.columns_of(other))
            products /= self._norms[one] * self._norms[other]
        return np.asarray(np.abs(products))

    def _neighbours_alike(self) -> bool:
        """Whether names are numbers, and neighbouring columns stand in for each other, as in a spectrum."""
        order = np.argsort(self.positions, kind="stable")[: int(np.isfinite(self.positions).sum())]
        if order.size < max(_WINDOW, _ORDERED * self.positions.size):
            return False
        at = np.unique(np.linspace(0, order.size - 2, min(_SAMPLE, order.size - 1)).astype(np.int64))
        return bool(np.median(self._correlation(order[at], order[at + 1])) >= ALIKE)

    def _all_windows(self) -> list[Ints]:
        """Columns within each window, that overlaps half of the next one; columns without a number by themselves."""
        order = np.argsort(self.positions, kind="stable")
        known = order[: int(np.isfinite(self.positions).sum())]
        at = self.positions[known]
        half = (at[-1] - at[0]) / _WINDOW / 2.0
        edges = np.searchsorted(at, at[0] + half * np.arange(2 * _WINDOW + 1))
        edges[-1] = at.size
        ends = {(a, b) for a, b in zip(edges[:-2].tolist(), edges[2:].tolist(), strict=True) if b > a}
        alone = np.sort(order[known.size :])
        windows = [np.sort(known[a:b]) for a, b in sorted(ends)] + list(alone[:, None])
        return [self._candidates[window] for window in windows]

    def _around(self, seeds: Ints) -> Iterable[Ints]:
        """Places of the columns that are alike each of some columns; of more than root N those that are most so."""
        # Clusters of root N around each of N columns are selected blindly as often whatever N is.
        most = max(2, int(np.sqrt(self._candidates.size)))
        for first in range(0, seeds.size, _BLOCK):
            for row in self._correlation(seeds[first : first + _BLOCK]):
                near = np.flatnonzero(row >= ALIKE)
                if near.size > most:
                    near = np.sort(near[np.argsort(-row[near], kind="stable")[:most]])
                yield near


def disjoint_clusters(clusters: list[Ints], supports: Ints) -> tuple[Ints, ...]:
    """Clusters without a common column, the one that most of the supports (2B, k) have first; not the rare ones."""
    columns, place = np.unique(supports, return_inverse=True)
    inside = np.zeros((len(supports), columns.size), dtype=bool)
    inside[np.arange(len(supports))[:, None], place.reshape(supports.shape)] = True
    counts = np.array([inside[:, np.isin(columns, each)].any(axis=1).sum() for each in clusters])
    kept, taken = list[Ints](), np.zeros(0, np.int64)
    for at in sorted(range(len(clusters)), key=lambda at: (-counts[at], clusters[at].size)):
        if counts[at] < _FREQUENT * len(supports):
            break
        if not np.isin(clusters[at], taken).any():
            kept.append(clusters[at])
            taken = np.concatenate([taken, clusters[at]])
    return tuple(kept)
