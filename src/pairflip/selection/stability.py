"""Which columns and clusters are selected again in half-samples, and bounds on how many of them are without effect.

Clusters are columns that stand in for each other: windows of ordered columns, otherwise columns correlated with one of
them. They are made from the table alone, never from the target, and may overlap: a partition would have arbitrary
boundaries, and a band that half-samples find on both sides of one would be told as two rare ones. The bound on false
clusters therefore sums over all of them. Those that are told have no column in common, the most frequent first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from pairflip.least_squares import Floats
from pairflip.moments import Form
from pairflip.problem import SubsetProblem
from pairflip.rules import name_positions
from pairflip.sparse import dense
from pairflip.supports import Ints
from pairflip.text import percent

if TYPE_CHECKING:
    import pandas as pd


THRESHOLD = 0.8
"""Columns selected in at least this fraction of the half-samples are called stable."""
FEWEST_SPREAD = 10
"""The spread of a coefficient is told if its column was selected in at least so many half-samples."""
ALIKE = 0.9
"""Columns with at least this absolute correlation stand in for each other."""
_WINDOW = 20  # windows are so many times narrower than the range of the positions, and begin every half of that
_ORDERED = 0.9  # of the names have numbers, where columns are ordered
_NEARER = 0.5  # 1 - |correlation| of neighbours is at most so much of that of far columns, where columns are ordered
_SAMPLE = 1000  # columns from which the sizes of all clusters, or the likeness of neighbours, are estimated
_BLOCK = 64  # columns that are compared with all others at a time
_FREQUENT = 0.1  # clusters that fewer half-samples selected are not kept
_LOWEST, _HIGHEST = 1e-12, 1e9  # of the shift a of an r-concave law: a point mass at 0, and uniform
_SHIFTS = 60  # tried in each interval, before the best one is refined
_ROUNDING = 1e-9


@dataclass(frozen=True)
class FalseBound:
    """Bounds on the expected number of columns without effect that pass a threshold."""

    threshold: float  # selection frequency that a column must reach
    worst_case: float  # Meinshausen & Buhlmann's bound; infinite for thresholds up to 1/2
    r_concave: float  # Shah & Samworth's bound

    @property
    def best(self) -> float:
        """The lower of the two."""
        return min(self.worst_case, self.r_concave)


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


@dataclass(frozen=True, eq=False)
class Finding:
    """Columns of which half-samples selected one or another, at the narrowest level at which that is stable."""

    columns: Ints  # one column, or those of a cluster that some half-sample selected
    members: Ints  # all columns of the cluster
    frequency: float  # fraction of the half-samples that selected at least one of `columns`


@dataclass(frozen=True, repr=False)
class Stability:
    """What 2B half-samples selected, at some sizes (S).

    Attributes
    ----------
    sizes : (S,)
        Numbers of columns.
    pairs : int
        B, pairs of halves that have no row in common.
    rows : int
        Rows in a half, the fewest of all halves.
    n_candidates : int
        Columns to choose from.
    how : str
        Halves of what: rows, groups or blocks, in words.
    chosen : S arrays (k,)
        The columns selected on all rows.
    columns, names : (U,)
        Columns that are chosen, or were selected in some half-sample, by index and by name. Where groups are chosen as
        a whole, a group is known by its first column here and everywhere below, and has its own name.
    supports, coefs : S arrays (2B, k)
        What each half-sample selected, halves of a pair one after the other, and the coefficients there: (2B, k, q) of
        q targets.
    clusters : S records, or None
        Columns that stand in for each other, by size (see `Clusters`); None where groups are chosen as a whole, and in
        files of older versions.
    profile : (N,), or None
        The mean of each column of the table, where columns are ordered as in a spectrum.
    """

    sizes: Ints
    pairs: int
    rows: int
    n_candidates: int
    how: str
    chosen: tuple[Ints, ...]
    columns: Ints
    names: list[str]
    supports: tuple[Ints, ...]
    coefs: tuple[Floats, ...]
    clusters: tuple[Clusters, ...] | None = None
    profile: Floats | None = None

    def __repr__(self) -> str:
        sizes = ", ".join(map(str, self.sizes.tolist()))
        stable = ", ".join(str(self.passing(size=int(k)).size) for k in self.sizes)
        return (
            f"Stability(sizes=[{sizes}], {2 * self.pairs} {self.how} of at least {self.rows} rows, "
            f"{self.n_candidates} candidates, selected in {percent(THRESHOLD)} of them or more: [{stable}])"
        )

    def at(self, size: int | None = None) -> int:
        """Index of a size in `sizes`; None if there is only one."""
        if size is None and self.sizes.size == 1:
            return 0
        places = np.flatnonzero(self.sizes == size)
        if places.size == 0:
            raise ValueError(f"size is {size}; half-samples know {', '.join(map(str, self.sizes.tolist()))}.")
        return int(places[0])

    @cached_property
    def frequencies(self) -> Floats:
        """Fraction (S, U) of the half-samples that selected each of `columns`."""
        places = (np.searchsorted(self.columns, supports).ravel() for supports in self.supports)
        counts = [np.bincount(each, minlength=len(self.names)) for each in places]
        return np.stack(counts) / (2.0 * self.pairs)

    def frequency(self, column: int, size: int | None = None) -> float:
        """Fraction of the half-samples that selected a column, by its index in the table."""
        place = int(np.searchsorted(self.columns, column))
        known = place < self.columns.size and self.columns[place] == column
        return float(self.frequencies[self.at(size), place]) if known else 0.0

    @cached_property
    def set_frequency(self) -> Floats:
        """Fraction (S,) of the half-samples that selected exactly the chosen columns."""
        return np.array([np.mean(np.all(s == c, axis=1)) for s, c in zip(self.supports, self.chosen, strict=True)])

    @cached_property
    def overlap(self) -> Floats:
        """Fraction (S,) of the chosen columns that a half-sample selected, too, on average."""
        return np.array([np.isin(s, c).mean() for s, c in zip(self.supports, self.chosen, strict=True)])

    @cached_property
    def pair_overlap(self) -> Floats:
        """Fraction (S,) of the columns that both halves of a pair selected, on average over the pairs."""
        shared = [[np.isin(a, b).mean() for a, b in zip(s[::2], s[1::2], strict=True)] for s in self.supports]
        return np.array([np.mean(pairs) for pairs in shared])

    def passing(self, threshold: float = THRESHOLD, size: int | None = None) -> Ints:
        """Columns (chosen or not) selected in at least a fraction `threshold` of the half-samples."""
        return np.asarray(self.columns[self.frequencies[self.at(size)] >= threshold - 1e-9])

    def bound(self, threshold: float = THRESHOLD, size: int | None = None) -> FalseBound:
        """Bounds on the expected number of columns without effect among those that pass."""
        return false_bound(int(self.sizes[self.at(size)]), self.n_candidates, self.pairs, threshold)

    def cluster_frequency(self, columns: Ints, size: int | None = None) -> float:
        """Fraction of the half-samples that selected at least one of some columns."""
        return float(np.isin(self.supports[self.at(size)], columns).any(axis=1).mean())

    def stable_clusters(self, threshold: float = THRESHOLD, size: int | None = None) -> list[Finding]:
        """Bands or clusters of which at least a fraction `threshold` of the half-samples selected a column.

        They have no column in common. Each is named as narrowly as it is stable: by one column if that is stable by
        itself, or was selected whenever any of its cluster was; otherwise by those columns of the cluster that some
        half-sample selected.
        """
        if self.clusters is None:
            return []
        at, findings = self.at(size), list[Finding]()
        for members in self.clusters[at].members:
            frequency = self.cluster_frequency(members, int(self.sizes[at]))
            if frequency == 0 or frequency < threshold - _ROUNDING:
                continue
            selected, counts = np.unique(self.supports[at][np.isin(self.supports[at], members)], return_counts=True)
            most = float(counts.max()) / (2.0 * self.pairs)
            if most >= min(max(threshold, THRESHOLD), frequency) - _ROUNDING:
                selected, frequency = selected[[counts.argmax()]], most
            findings.append(Finding(selected, members, frequency))
        return findings

    @property
    def selects_alternatives(self) -> bool:
        """Whether half-samples selected several columns of some cluster; otherwise clusters say what columns do."""
        return any(
            np.unique(selected[np.isin(selected, members)]).size > 1
            for selected, known in zip(self.supports, self.clusters or (), strict=False)
            for members in known.members
        )

    def cluster_bound(self, threshold: float = THRESHOLD, size: int | None = None) -> FalseBound:
        """Bounds on the expected number of clusters without effect among those that pass.

        The sum over all clusters of the table, whether or not they overlap; each may be selected as often as its
        columns together if these are drawn blindly.
        """
        at = self.at(size)
        if self.clusters is None:
            raise ValueError("the half-samples have no clusters; expected columns that are not chosen in groups.")
        q, known = int(self.sizes[at]), self.clusters[at]
        bound = false_bound(q, self.n_candidates, self.pairs, threshold, known.widths.tolist(), known.numbers.tolist())
        most = np.floor(q / threshold + _ROUNDING)  # disjoint clusters that q columns allow to be selected so often
        return FalseBound(threshold, min(bound.worst_case, most), min(bound.r_concave, most))

    def spread(self, column: int, size: int | None = None) -> tuple[float, float]:
        """5 % and 95 % quantiles of a column's coefficient over the half-samples that selected it.

        Not-a-number where these are fewer than `FEWEST_SPREAD`, and with several targets (see `coefs`).
        """
        at = self.at(size)
        values = self.coefs[at][self.supports[at] == column]
        if values.size < FEWEST_SPREAD or values.ndim > 1:
            return float("nan"), float("nan")
        low, high = np.quantile(values, [0.05, 0.95])
        return float(low), float(high)

    def clusters_to_pandas(self, size: int | None = None) -> pd.DataFrame:
        """One row for each cluster that half-samples selected, the most frequent first (None: of every size)."""
        import pandas as pd

        names, rows = dict(zip(self.columns.tolist(), self.names, strict=True)), []
        for k in self.sizes.tolist() if size is None else [size]:
            for each in self.stable_clusters(0.0, k):
                selected = np.intersect1d(each.members, self.columns)
                often = sorted(selected.tolist(), key=lambda j: -self.frequency(j, k))
                listed = "; ".join(names[j] for j in often if self.frequency(j, k) > 0)
                chosen = bool(np.isin(each.members, self.chosen[self.at(k)]).any())
                whole = self.cluster_frequency(each.members, k)
                rows.append((k, whole, each.members.size, chosen, listed))
        return pd.DataFrame(rows, columns=["size", "frequency", "columns", "chosen", "selected"])

    def to_pandas(self, size: int | None = None) -> pd.DataFrame:
        """One row for each column that some half-sample selected, the most frequent first (None: of every size)."""
        import pandas as pd

        rows = []
        for at in range(self.sizes.size) if size is None else [self.at(size)]:
            k, frequency = int(self.sizes[at]), self.frequencies[at]
            for place in np.argsort(-frequency, kind="stable"):
                column = int(self.columns[place])
                chosen = bool(np.isin(column, self.chosen[at]))
                if frequency[place] > 0 or chosen:
                    rows.append((k, self.names[place], chosen, float(frequency[place]), *self.spread(column, k)))
        table = pd.DataFrame(rows, columns=["size", "column", "chosen", "frequency", "coef_5", "coef_95"])
        several = any(coefs.ndim > 2 for coefs in self.coefs)  # targets, each with quantiles of its own
        return table.drop(columns=["coef_5", "coef_95"]) if several else table


def false_bound(
    q: int, p: int, pairs: int, threshold: float, widths: Sequence[int] = (1,), numbers: Sequence[float] | None = None
) -> FalseBound:
    r"""Both bounds on the expected number of columns, or clusters, without effect that pass.

    q columns are selected in each of 2B half-samples of p candidates, and a cluster of m columns passes if one of them
    was selected in at least a fraction :math:`\tau` of these. V is the number of clusters that pass although their
    probability to be selected in a half-sample is at most :math:`\theta_m = \min(1, m q/p)`, that of m columns drawn
    blindly. With :math:`n_m` clusters of m columns, whether or not they overlap (by default p single columns),
    Meinshausen & Buhlmann (JRSS B 72, 2010, theorem 1), and Shah & Samworth (JRSS B 75, 2013, eq. 8) for r-concave
    frequencies:

    .. math:: E[V] \le \sum_m n_m \frac{\theta_m^2}{2\tau - 1}, \qquad
        E[V] \le \sum_m n_m \min\{D(\theta_m^2, 2\tau - 1, B, -\tfrac12),\; D(\theta_m, \tau, 2B, -\tfrac14)\} .
    """
    if not 0.5 < threshold <= 1.0:
        raise ValueError(f"threshold is {threshold}; expected a fraction above 0.5 and up to 1, for instance 0.8.")
    worst_case = r_concave = 0.0
    for width, number in zip(widths, [p] if numbers is None else numbers, strict=True):
        blind = min(1.0, width * q / p)
        worst_case += number * min(1.0, blind**2 / (2.0 * threshold - 1.0))
        r_concave += number * min(
            r_concave_tail(blind**2, 2.0 * threshold - 1.0, pairs, -0.5),
            r_concave_tail(blind, threshold, 2 * pairs, -0.25),
        )
    return FalseBound(threshold, worst_case, r_concave)


@lru_cache(maxsize=4096)
def r_concave_tail(mean: float, threshold: float, steps: int, r: float) -> float:
    r"""D: the largest :math:`P(X \ge t)` of an r-concave X on {0, 1/n, ..., 1} whose mean is at most `mean`.

    r-concave (r < 0) means that :math:`f^r` is convex where the probabilities f are positive. The largest tail has
    :math:`f(i) \propto (a + i)^{1/r}` on 0, ..., k and what the mean leaves over on k + 1 (Shah & Samworth, appendix):
    we look through k and a. Thresholds up to twice the mean are not bounded (1).
    """
    center, t = mean * steps, int(np.ceil(threshold * steps - _ROUNDING))
    if center <= 0.0:
        return 0.0
    if t <= int(np.ceil(2.0 * center - _ROUNDING)):
        return 1.0
    if t > steps:
        return 0.0
    upper = _shift(center, t - 1, r)
    best = 0.0
    for k in range(t - 1, steps):
        lower, i = _shift(center, k + 1, r), np.arange(k + 1.0)
        low, high = np.log(lower), np.log(max(upper, lower))
        for _ in range(3):  # each time around the best one
            shifts = np.linspace(low, high, _SHIFTS)
            # P(X >= t) for each shift: c (a + i)^(1/r) on 0, ..., k, and on k + 1 what makes the mean `center`.
            f = (np.exp(shifts)[:, None] + i) ** (1.0 / r)
            tails = 1.0 - (k + 1.0 - center) / (f @ (k + 1.0 - i)) * f[:, :t].sum(axis=1)
            at, step = int(np.argmax(tails)), (high - low) / (_SHIFTS - 1)
            low, high = max(low, shifts[at] - step), min(high, shifts[at] + step)
            best = max(best, float(tails[at]))
        upper = lower
    return min(1.0, best)


def _shift(center: float, k: int, r: float) -> float:
    """The a for which (a + i)^(1/r) on 0, ..., k has mean `center`; the largest where all have a lower one."""
    from scipy.optimize import brentq

    i = np.arange(k + 1.0)

    def above(log_a: float) -> float:
        f = (np.exp(log_a) + i) ** (1.0 / r)
        return float(f @ i / f.sum() - center)

    if above(np.log(_HIGHEST)) <= 0.0:
        return _HIGHEST
    if above(np.log(_LOWEST)) >= 0.0:
        return _LOWEST
    return float(np.exp(brentq(above, np.log(_LOWEST), np.log(_HIGHEST), xtol=1e-13)))


# Clusters of a table --------------------------------------------------------------------------------------------------


def _norms(form: Form) -> Floats:
    """Norms (N,) of the columns without the ridge term, which is part of their unit norm."""
    return np.sqrt(np.maximum(1.0 - form.penalty, 1e-300))


def correlations(form: Form, columns: Ints) -> Floats:
    """Correlations (n, N) of some columns with all, once what is always in the model is removed."""
    norms = _norms(form)
    return np.asarray(form.products(form.columns_of(columns)) / (norms[columns][:, None] * norms))


class Family:
    """All clusters of a problem, as a function of the columns that they are wanted for."""

    def __init__(self, problem: SubsetProblem) -> None:
        self._form, self._candidates = problem.form, problem.candidates
        names = problem.names
        self.positions = name_positions([names[j] for j in self._candidates.tolist()])
        self.ordered = self._neighbours_alike(problem.X)
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

    def _neighbours_alike(self, X: Any) -> bool:
        """Whether columns are ordered measurements, as in a spectrum, whose neighbours stand in for each other.

        Names are numbers, most columns have more than two values, and neighbours are clearly more alike than columns
        that are half of all columns apart.
        """
        order = np.argsort(self.positions, kind="stable")[: int(np.isfinite(self.positions).sum())]
        if order.size < max(_WINDOW, _ORDERED * self.positions.size):
            return False
        sample = np.unique(np.linspace(0, order.size - 1, min(_SAMPLE, order.size)).astype(np.int64))
        some, norms = order[sample], _norms(self._form)
        values, columns = dense(X[:, self._candidates[some]]), self._form.columns_of(some)
        if np.median(np.all((values == values.min(axis=0)) | (values == values.max(axis=0)), axis=0)) > 0:
            return False

        def unlike(apart: int) -> float:
            """The median of 1 - |correlation| of columns that are so many places apart."""
            other = order[(sample + apart) % order.size]
            products = np.einsum("nm,nm->n", columns, self._form.columns_of(other))
            return float(np.median(1.0 - np.abs(products / (norms[some] * norms[other]))))

        return unlike(1) <= min(1.0 - ALIKE, _NEARER * unlike(order.size // 2))

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
            for row in np.abs(correlations(self._form, seeds[first : first + _BLOCK])):
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
