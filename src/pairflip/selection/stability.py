r"""Stability by half-samples: which columns are selected again when only half of the rows are seen.

Folds have most rows in common, so that they repeat each other's mistakes. The two halves of a pair have no row in
common: what both select, they found independently of each other. See docs/stability.md.

*Bounds on the number of columns without effect that pass a threshold.* q columns are selected in each of 2B
half-samples of p candidates, and a column passes if it was selected in at least a fraction :math:`\tau` of them. Let V
be the number of columns that pass although their probability to be selected in a half-sample is at most
:math:`\theta = q/p`, that of a column drawn blindly.

Meinshausen & Buhlmann (JRSS B 72, 2010, theorem 1), without an assumption on distributions:

.. math:: E[V] \le \frac{q^2}{(2\tau - 1)\, p} .

Shah & Samworth (JRSS B 75, 2013, eq. 8), for complementary pairs, if the frequencies of such columns are r-concave:

.. math:: E[V] \le p \min\{D(\theta^2, 2\tau - 1, B, -\tfrac12),\; D(\theta, \tau, 2B, -\tfrac14)\} ,

with D(mean, t, n, r) the largest probability :math:`P(X \ge t)` of an r-concave X on {0, 1/n, ..., 1} of that mean or
a lower one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairflip.engines import Engine
from pairflip.engines.blas import one_blas_thread
from pairflip.journal_file import Folder
from pairflip.least_squares import Floats
from pairflip.losses import HeldOutJudge
from pairflip.philox import check_seed
from pairflip.problem import SubsetProblem
from pairflip.rules import Units
from pairflip.search.portfolio import first_best
from pairflip.selection.folds import Folds
from pairflip.selection.progress import Show
from pairflip.selection.settings import check_count
from pairflip.selection.subsampling import TooFewRows, half_samples, search_halves
from pairflip.supports import ABSENT, filled_up
from pairflip.text import percent, plural

if TYPE_CHECKING:
    import pandas as pd

Ints = NDArray[np.int64]

THRESHOLD = 0.8
"""Columns selected in at least this fraction of the half-samples are called stable."""
FEWEST_SPREAD = 10
"""The spread of a coefficient is told if its column was selected in at least so many half-samples."""
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
        counts = [
            np.bincount(np.searchsorted(self.columns, s).ravel(), minlength=len(self.names)) for s in self.supports
        ]
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


def half_sample_stability(
    problem: SubsetProblem,
    sizes: int | Iterable[int],
    pairs: int = 50,
    *,
    seed: int = 0,
    groups: ArrayLike | None = None,
    cv: Any = None,
    effort: Literal["quick", "normal", "thorough"] = "normal",
    engine: str | Engine = "auto",
    n_jobs: int | None = None,
    journal: Folder | None = None,
    progress: Show = False,
) -> Stability:
    """Select columns in random halves of the rows, and count.

    Parameters
    ----------
    problem
        Table and target.
    sizes
        One number of columns, or several.
    pairs
        Complementary pairs of half-samples: twice as many searches.
    seed
        Of the halves.
    groups
        Labels of the rows; groups are in a half as a whole.
    cv
        ``"blocks:5"``: halves consist of whole blocks of neighbouring rows; other values are of no importance.
    effort
        How long each half is searched. ``"quick"`` may miss the best columns of many halves, as if they were unstable.
    engine, n_jobs, journal, progress
        As in `select_size`.
    """
    wanted = tuple(sorted({int(k) for k in ([sizes] if isinstance(sizes, (int, np.integer)) else sizes)}))
    pairs = check_count("pairs", pairs, least=1)
    halves = half_samples(problem, pairs, check_seed(seed), groups, cv)
    check_room(problem, wanted, halves)
    chosen, supports = [], []
    for k in wanted:
        how: dict[str, Any] = {"seed": seed, "engine": engine, "effort": effort, "journal": journal}
        every, best = search_halves(problem, k, halves, **how, n_jobs=n_jobs, progress=progress, final=True)
        chosen.append(best)
        supports.append(every)
    return summarize(problem, halves, wanted, chosen, supports)


def check_room(problem: SubsetProblem, sizes: Sequence[int], halves: Folds) -> None:
    """Refuse sizes for which a half-sample has too few rows: with as many columns as rows every choice fits."""
    rows = min(problem.rows_present - left.size for left in halves.left_out)
    most = max(rows - problem.forced.shape[1] - 1, 0)
    smallest, largest = min(sizes, default=0), max(sizes, default=0)
    unit = "column" if problem.units is None else "group"
    if smallest < 1 or largest > problem.most_columns:
        bad = smallest if smallest < 1 else largest
        raise ValueError(f"size is {bad}; expected a number of {unit}s from 1 to {problem.most_columns}.")
    if (problem.ridge == 0 or not problem.loss.squared) and np.sort(problem.form.widths)[:largest].sum() > most:
        limit = f"sizes up to {most}" if problem.units is None else f"at most {most} columns in them"
        raise TooFewRows(
            f"half-samples at {plural(largest, unit)} were asked for, but a half has only {plural(rows, 'row')}"
            f"; expected {limit}."
        )


@one_blas_thread()
def summarize(
    problem: SubsetProblem, halves: Folds, sizes: Sequence[int], chosen: Sequence[Ints], supports: Sequence[Ints]
) -> Stability:
    """The record of what half-samples found, with the coefficients in each."""
    judge, units = problem.loss.held_out(problem, halves), problem.units
    best = [first_best(judge.judged(every)[1], judge.yy) for every in supports]
    selected = tuple(every[np.arange(len(halves)), place] for every, place in zip(supports, best, strict=True))
    columns = np.unique(np.concatenate([*(s.ravel() for s in selected), *chosen]))
    names = problem.column_names
    if units is None:
        coefs = tuple(judge.fits(each).coefs for each in selected)
    else:
        coefs = tuple(_group_coefficients(problem, units, judge, each) for each in selected)
    return Stability(
        sizes=np.array(sizes, dtype=np.int64),
        pairs=len(halves) // 2,
        rows=min(problem.rows_present - left.size for left in halves.left_out),
        n_candidates=problem.form.n_columns,
        how=halves.how,
        chosen=tuple(np.asarray(c, dtype=np.int64) for c in chosen),
        columns=columns,
        names=[names[j] if units is None else units.name(j, names) for j in columns.tolist()],
        supports=selected,
        coefs=coefs,
    )


def _group_coefficients(problem: SubsetProblem, units: Units, judge: HeldOutJudge, supports: Ints) -> Floats:
    """Coefficients (F, k) or (F, k, q) of the units of each fold; not-a-number for a group of several columns."""
    columns = filled_up([problem.columns_of(support) for support in supports])
    fits = judge.fits(columns).coefs
    coefs = np.full((*supports.shape, *fits.shape[2:]), np.nan)
    for fold, support in enumerate(supports):
        unit_of = np.where(columns[fold] == ABSENT, ABSENT, units.first[columns[fold]])
        for place, unit in enumerate(support.tolist()):
            if np.count_nonzero(unit_of == unit) == 1:
                coefs[fold, place] = fits[fold, unit_of == unit][0]
    return coefs


def false_bound(q: int, p: int, pairs: int, threshold: float) -> FalseBound:
    """Both bounds on the expected number of columns without effect that pass; never more than p."""
    if not 0.5 < threshold <= 1.0:
        raise ValueError(f"threshold is {threshold}; expected a fraction above 0.5 and up to 1, for instance 0.8.")
    blind = q / p
    tail = min(
        r_concave_tail(blind**2, 2.0 * threshold - 1.0, pairs, -0.5),
        r_concave_tail(blind, threshold, 2 * pairs, -0.25),
    )
    return FalseBound(threshold, min(float(p), q * q / ((2.0 * threshold - 1.0) * p)), p * tail)


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
