"""The numbers behind the figures, as pure functions of a record: drawing never computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats
from pairflip.report.stability_words import known, level_label
from pairflip.report.vocabulary import unit_labels, units_of, vocabulary, what_is_counted
from pairflip.rules import name_positions
from pairflip.selection.criteria import auc, class_of, confusion, roc
from pairflip.selection.verdict import baseline, size_to_show
from pairflip.selection.verdict import held_out as errors_of
from pairflip.text import clean, column_labels, explained, plural, row_numbers, shorten

if TYPE_CHECKING:
    from pairflip.search.best_subset import Trace
    from pairflip.search.posterior import Posterior
    from pairflip.search.sampling import Samples
    from pairflip.selection.curve import SizeCurve

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

NAMED = 7  # columns that a figure has colours for
_LABEL = 28  # characters of a name beside a figure
_UNLIKE_UNITS = 1000.0  # columns whose coefficients differ by more are drawn relative to their own largest one
_UNLIKE_ERRORS = 20.0  # squared errors and deviances that differ by more need a logarithmic axis
_OUTLIERS = 20  # largest residuals, which thinning never removes: they are what a reader looks for
_POINTS = 150  # of a ROC or survival curve; more cannot be seen
_BINS = 10  # of predicted probabilities
_ROUNDING = 1e-6  # of the highest energy above the best: what ends this near to it has reached it
_NEAR = 1e-3  # where the axis of energies ends if all chains reached the best


def by_size(curve: SizeCurve) -> Ints:
    """Places of the sizes above 0, the smallest first."""
    order = np.argsort(curve.sizes, kind="stable")
    return order[curve.sizes[order] > 0]


def needs_log(errors: Floats) -> bool:
    """Whether errors span too much for a straight axis."""
    errors = errors[np.isfinite(errors) & (errors > 0)]
    return bool(errors.size and errors.max() > _UNLIKE_ERRORS * errors.min())


def _cut(shown: int, total: int, word: str) -> str:
    """``5 of 12 columns``, or ``all 12 columns``."""
    return f"{shown:,} of {plural(total, word)}" if shown < total else f"all {plural(total, word)}"


def _first(ranked: Ints, needed: Bools, limit: int) -> Ints:
    """The first of a ranking, those that are needed (a mask of it) among them whatever their rank."""
    return ranked[np.sort(np.lexsort((np.arange(ranked.size), ~needed))[:limit])]


def _evenly(count: int, most: int) -> Ints:
    """At most so many places of 0, 1, ..., count - 1, evenly spread."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))


# Errors and coefficients by size --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mark:
    """A size that a figure points at, why, and whether it is the recommended one."""

    size: int
    text: str
    recommended: bool


def marks(curve: SizeCurve) -> list[Mark]:
    """Sizes to point at: the recommended one and a second one worth knowing; where nothing predicts, the one shown."""
    from pairflip.report.answer import answer_of

    answer = answer_of(curve)
    if not answer.predicts:
        return [Mark(size_to_show(curve), "lowest with columns", False)]
    pointed, second = [Mark(answer.size, "recommended", True)], answer.other_size
    if second is not None:
        pointed.append(Mark(second, "lowest error" if second == curve.best_size else "one-SE size", False))
    return sorted(pointed, key=lambda mark: mark.size)


@dataclass(frozen=True)
class ErrorBars:
    """Errors of held-out rows (RMSE, or a deviance) against size, for the sizes (S,) above 0."""

    sizes: Ints
    error: Floats
    low: Floats
    high: Floats
    training: Floats
    name: str  # of the error
    told: list[str]  # errors in words
    without: float  # the error of size 0, a line across all sizes
    without_text: str
    marks: list[Mark]
    limit: float  # the lowest error plus its standard error
    log: bool
    axis: tuple[float, float]  # what it must hold
    unit: str


def error_bars(curve: SizeCurve) -> ErrorBars:
    """Errors with one standard error to either side, by size; size 0 is apart."""
    order, words = by_size(curve), vocabulary(curve)
    spread = np.where(np.isfinite(curve.cv_error_se), curve.cv_error_se, 0.0)
    low, error, high = (words.shown((curve.cv_error + side * spread)[order]) for side in (-1.0, 0.0, 1.0))
    training, best = words.shown(curve.energy_per_row[order]), curve.at(curve.best_size)
    without = float(words.shown(curve.cv_error[curve.at(0)]))
    limit = float(words.shown(curve.cv_error[best] + spread[best]))
    errors = np.append(error, without)
    log = needs_log(curve.cv_error)
    shown = np.concatenate([error, [without, limit], low, high, training])
    shown = shown[np.isfinite(shown)]
    if log:  # what is far below all errors would push them together again
        shown = shown[shown > np.min(errors[errors > 0]) / 3]
    heads, cells = zip(*words.error_columns(curve.sizes[order].tolist()), strict=True)
    names = [head.removesuffix(" ± SE") for head in heads]
    return ErrorBars(
        sizes=curve.sizes[order],
        error=error,
        low=low,
        high=high,
        training=training,
        name=words.minimized,
        told=[", ".join(map(" ".join, zip(names, each, strict=True))) for each in zip(*cells, strict=True)],
        without=without,
        without_text=baseline(curve),
        marks=marks(curve),
        limit=limit,
        log=log,
        axis=(float(shown.min()), float(shown.max())) if shown.size else (0.0, 1.0),
        unit=words.unit,
    )


@dataclass(frozen=True)
class RidgeLines:
    """Errors (R, S) of R ridge terms at the sizes (S,) above 0; `chosen` is the place of the chosen ridge."""

    sizes: Ints
    ridges: Floats
    errors: Floats
    name: str  # of the errors
    chosen: int
    best_size: int


def ridge_lines(curve: SizeCurve) -> RidgeLines:
    """Errors of every ridge that was tried."""
    surface = curve.ridge_surface
    if surface is None:
        raise ValueError("no ridge was chosen with the size of this curve; expected select_size(..., ridge='auto').")
    order, words = by_size(curve), vocabulary(curve)
    at, errors = int(np.flatnonzero(surface.ridges == surface.ridge)[0]), words.shown(surface.errors[:, order])
    return RidgeLines(curve.sizes[order], surface.ridges, errors, words.minimized, at, curve.best_size)


@dataclass(frozen=True)
class Paths:
    """Coefficients (S, R) of R columns, NaN where a size does not have the column; the first ones matter most."""

    sizes: Ints
    columns: Ints
    labels: list[str]
    coefs: Floats
    values: Floats  # what is drawn
    relative: bool  # whether each column is divided by its largest coefficient
    cut: str
    unit: str


def coefficient_paths(curve: SizeCurve, relative: bool | None = None, limit: int = 60) -> Paths:
    """Coefficients of the final fits against size; None: relative if units differ too much for one axis."""
    if curve.outputs is not None:
        raise ValueError("coefficients against size are drawn for one target, and this result has several.")
    order = by_size(curve)
    used, times = np.unique(np.concatenate([curve.supports[s] for s in order]), return_counts=True)
    chosen = np.isin(used, curve.supports[curve.at(size_to_show(curve))])
    shown = used[np.lexsort((used, -times, ~chosen))][:limit].astype(np.int64)
    coefs = np.full((order.size, shown.size), np.nan)
    for row, s in enumerate(order):
        of_column = dict(zip(curve.supports[s].tolist(), curve.coefs[s].tolist(), strict=True))
        coefs[row] = [of_column.get(j, np.nan) for j in shown.tolist()]
    largest = np.array([np.max(np.abs(c[np.isfinite(c)]), initial=0.0) for c in coefs.T])
    nonzero = largest[:NAMED][largest[:NAMED] > 0]
    if relative is None:
        relative = bool(nonzero.size and nonzero.max() > _UNLIKE_UNITS * nonzero.min())
    return Paths(
        sizes=curve.sizes[order],
        columns=shown,
        labels=column_labels(curve.names, shown.tolist(), _LABEL),
        coefs=coefs,
        values=coefs / np.where(largest > 0, largest, 1.0) if relative else coefs,
        relative=relative,
        cut=_cut(shown.size, used.size, "column"),
        unit=what_is_counted(curve),
    )


# Which columns --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FrequencyBars:
    """Selection frequencies (R,) in half-samples at one size, the highest first."""

    size: int
    labels: list[str]
    frequency: Floats
    chosen: Bools  # on all rows
    low: Floats  # quantiles of the coefficients
    high: Floats
    half_samples: int
    shuffled: float  # the highest frequency that shuffled targets gave (NaN: not known)
    cut: str
    unit: str


def frequency_bars(curve: SizeCurve, size: int, limit: int = 30) -> FrequencyBars:
    """Selection frequencies in half-samples; the chosen columns are among those shown whatever their frequency."""
    stability = curve.stability
    if stability is None:
        raise ValueError("the curve has no half-samples; expected one of select_size(..., stability=50).")
    frequency = stability.frequencies[stability.at(size)]
    chosen = np.isin(stability.columns, stability.chosen[stability.at(size)])
    ranked = np.lexsort((stability.columns, ~chosen, -frequency))
    ranked = ranked[(frequency[ranked] > 0) | chosen[ranked]]
    at = _first(ranked, chosen[ranked], limit)
    columns = stability.columns[at].tolist()
    ends = np.array([stability.spread(j, size) for j in columns]).reshape(-1, 2)
    return FrequencyBars(
        size=size,
        labels=unit_labels(curve, columns, _LABEL),
        frequency=frequency[at],
        chosen=chosen[at],
        low=ends[:, 0],
        high=ends[:, 1],
        half_samples=2 * stability.pairs,
        shuffled=float("nan") if curve.null is None else float(np.max(curve.null.highest)),
        cut=_cut(at.size, ranked.size, what_is_counted(curve)),
        unit=what_is_counted(curve),
    )


@dataclass(frozen=True)
class CountMap:
    """Selection counts (S, R) of R columns, the most selected first."""

    sizes: Ints
    columns: Ints
    labels: list[str]
    counts: Ints
    fraction: Floats  # of the folds
    final: Bools  # whether the final fit has the column
    n_folds: int
    marks: list[Mark]
    cut: str
    unit: str


def count_map(curve: SizeCurve, limit: int = 40, length: int = _LABEL) -> CountMap:
    """Columns selected in any fold, the most selected first, those of the final fits of marked sizes among them."""
    order, pointed, unit = by_size(curve), marks(curve), what_is_counted(curve)
    total = curve.selection_counts.sum(axis=0)
    total = total if curve.units is None else curve.units.once(total)
    chosen = [column for mark in pointed for column in units_of(curve, mark.size)]
    ranked = np.argsort(-total, kind="stable")
    ranked = ranked[(total[ranked] > 0) | np.isin(ranked, chosen)]
    shown = _first(ranked, np.isin(ranked, chosen), limit)
    ever = int(np.count_nonzero(total))
    more = int(np.count_nonzero(~np.isin(shown, ranked[: min(limit, ever)])))
    cut = f"{shown.size - more} most selected of {plural(ever, unit)}"
    if shown.size - more >= ever:
        cut = f"all {plural(ever, unit)} selected in any fold"
    elif more:
        cut += f" and {more} more of the final fits"
    counts = curve.selection_counts[order][:, shown]
    final = np.array([np.isin(shown, curve.supports[s]) for s in order])
    return CountMap(
        sizes=curve.sizes[order],
        columns=shown,
        labels=unit_labels(curve, shown.tolist(), length),
        counts=counts,
        fraction=counts / max(1, curve.n_folds),
        final=final.reshape(counts.shape),
        n_folds=curve.n_folds,
        marks=pointed,
        cut=cut,
        unit=unit,
    )


@dataclass(frozen=True)
class BandMap:
    """Bands of a spectrum and how often half-samples selected one of their columns, at one size."""

    size: int
    position: Floats  # (n,) of the columns whose names have numbers, rising
    profile: Floats  # (n,): means of these columns
    low: Floats  # (b,): first position of each band that was selected, the most frequent band first
    high: Floats  # (b,): the last one
    frequency: Floats  # (b,)
    labels: list[str]  # (b,)
    chosen: Floats  # positions of the columns chosen on all rows
    half_samples: int


def band_map(curve: SizeCurve, size: int) -> BandMap:
    """The mean spectrum, the bands that half-samples selected, and the columns that are chosen on all rows."""
    stability = curve.stability
    if stability is None or stability.profile is None:
        raise ValueError(
            "the curve has no bands; expected half-samples (stability=50) of a table whose names are numbers and whose "
            "neighbouring columns are alike."
        )
    numbers, at = name_positions(curve.names), stability.at(size)
    order = np.argsort(numbers, kind="stable")[: int(np.isfinite(numbers).sum())]
    bands = stability.stable_clusters(0.0, size)
    ends = [numbers[each.columns] for each in bands]
    shown = [place for place, each in enumerate(ends) if np.isfinite(each).all()]
    labels = [level_label(curve, stability, size, bands[place].columns) for place in shown]
    chosen = numbers[stability.chosen[at]]
    return BandMap(
        size=size,
        position=numbers[order],
        profile=stability.profile[order],
        low=np.array([ends[place].min() for place in shown]),
        high=np.array([ends[place].max() for place in shown]),
        frequency=np.array([bands[place].frequency for place in shown]),
        labels=["".join(text for text, _ in label if text != "one of ") for label in labels],
        chosen=chosen[np.isfinite(chosen)],
        half_samples=2 * stability.pairs,
    )


@dataclass(frozen=True)
class InclusionBars:
    """Inclusion probabilities (R,) and their errors, the highest first."""

    columns: Ints
    labels: list[str]
    probability: Floats
    error: Floats
    prior: float  # the probability before the data
    cut: str
    frequency: Floats | None = None  # in what fraction of `trials` a column was selected; None: not shown
    trials: str = ""  # "100 half-samples"


def inclusion_bars(record: Samples | Posterior, limit: int = 30) -> InclusionBars:
    """The most probable columns of a record; those that are always in, and those that do not vary, are left out."""
    from pairflip.search.posterior import Posterior

    if isinstance(record, Posterior):
        columns, prior = record.problem.candidates, record.prior.inclusion
    else:
        columns, prior = record.candidates, record.k / record.candidates.size
    probability, error = record.inclusion_probability[columns], record.inclusion_se[columns]
    return _most_probable(record.names, columns, probability, error, prior, limit, np.arange(0))


def probability_bars(curve: SizeCurve, size: int, limit: int = 30) -> InclusionBars:
    """Inclusion probabilities, and how often the columns were selected at a size: in half-samples, or else in folds."""
    inclusion = curve.inclusion
    if inclusion is None:
        raise ValueError("the curve has no probabilities; expected one of with_posterior(curve, posterior(problem)).")
    chosen = curve.supports[curve.at(size)]
    probability, error, prior = inclusion.probability, inclusion.error, inclusion.prior
    bars = _most_probable(curve.names, inclusion.columns, probability, error, prior, limit, chosen)
    stability = known(curve, size)
    if stability is None:
        frequency = curve.selection_counts[curve.at(size), bars.columns] / max(1, curve.n_folds)
        return replace(bars, frequency=frequency, trials=plural(curve.n_folds, "fold"))
    frequency = np.array([stability.frequency(j, size) for j in bars.columns.tolist()])
    return replace(bars, frequency=frequency, trials=plural(2 * stability.pairs, "half-sample"))


def _most_probable(
    names: list[str], columns: Ints, probability: Floats, error: Floats, prior: float, limit: int, chosen: Ints
) -> InclusionBars:
    """The most probable of some columns, the chosen ones among them."""
    order = np.argsort(-probability, kind="stable")
    at = _first(order, np.isin(columns[order], chosen), max(1, limit))
    labels, cut = column_labels(names, columns[at].tolist(), _LABEL), _cut(at.size, columns.size, "column")
    return InclusionBars(columns[at], labels, probability[at], error[at], prior, cut)


# Held-out predictions -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scatter:
    """Held-out rows of one size: `observed`, `predicted`, `residual` (observed - predicted) of the rows shown."""

    size: int
    names: list[str]  # of the rows, as a reader is shown them
    observed: Floats
    predicted: Floats
    residual: Floats
    rmse: float  # of all rows, each by its weight
    explained: str  # their R2 in words
    axis: tuple[float, float]  # observed values, and predictions not further outside than their range is wide
    residual_axis: tuple[float, float]
    beyond: int  # how many of those shown are outside
    cut: str
    unit: str


def row_labels(curve: SizeCurve, names: Sequence[object] | None) -> list[str]:
    """Names of the rows where they are given, otherwise numbers from 1."""
    if names is None:
        return row_numbers(curve.n_rows)
    labels = [shorten(clean(name), 60) for name in names]
    if len(labels) != curve.n_rows:
        raise ValueError(
            f"row_names has {len(labels)} names for a table of {curve.n_rows} rows; expected one for each row, in the "
            "order of the table."
        )
    return labels


def held_out(
    curve: SizeCurve, size: int | None = None, limit: int = 5000, names: Sequence[str] | None = None
) -> Scatter:
    """Held-out prediction against truth at a size (None: that to show), thinned to `limit` rows, with outliers."""
    names = row_labels(curve, None) if names is None else names
    size = size_to_show(curve) if size is None else int(size)
    errors, at = errors_of(curve, size), np.arange(curve.observed.size)
    if at.size > limit:
        residual = np.abs(curve.observed - curve.predictions[curve.at(size_to_show(curve))])
        largest = np.argsort(-residual, kind="stable")[: min(_OUTLIERS, limit // 2)]
        others = np.setdiff1d(at, largest, assume_unique=True)
        others = others[np.argsort(curve.observed[others], kind="stable")]
        spread = np.linspace(0, others.size - 1, limit - largest.size).round().astype(np.int64)
        at = np.sort(np.concatenate([largest, others[spread]]))
    called = [names[row] for row in curve.held_out_rows[at].tolist()]
    if curve.targets is not None:
        targets = [clean(curve.targets.names[t]) for t in (at % len(curve.targets.names)).tolist()]
        called = [f"{row} ({name})" for row, name in zip(called, targets, strict=True)]
    x, y = curve.observed[at], curve.predictions[curve.at(size)][at]
    residual = x - y
    low, high = float(curve.observed.min()), float(curve.observed.max())
    margin = high - low if high > low else np.inf
    inside = (y >= low - margin) & (y <= high + margin)
    return Scatter(
        size=size,
        names=called,
        observed=x,
        predicted=y,
        residual=residual,
        rmse=errors.rmse,
        explained=explained(errors.r2).replace("variance", curve.loss.words.explained),
        axis=(float(np.min(y[inside], initial=low)), float(np.max(y[inside], initial=high))),
        residual_axis=(float(np.min(residual[inside], initial=0.0)), float(np.max(residual[inside], initial=0.0))),
        beyond=int(np.count_nonzero(np.isfinite(y) & ~inside)),
        cut=_cut(at.size, curve.observed.size, "held-out prediction"),
        unit=what_is_counted(curve),
    )


@dataclass(frozen=True)
class ClassRates:
    """Held-out predictions of classes at a size; of two classes, those of the event, the second."""

    size: int
    labels: list[str]
    lines: list[tuple[Floats, Floats]]  # false and true positive rates (T,), of more than two classes of each
    areas: list[float]  # under the lines
    wrong: float
    edges: Floats  # (B + 1,), of predicted probabilities: of the event, or of the class that a row has
    shares: Floats  # (c, B), fractions of the rows of each class
    table: Floats  # (c, c), rows of each class by predicted class, by weight

    @property
    def several(self) -> bool:
        """Whether there are more than two classes."""
        return len(self.labels) > 2


def class_rates(curve: SizeCurve, size: int | None = None) -> ClassRates:
    """ROC curves, predicted probabilities by class and confusions (None: the size to show)."""
    if curve.classes is None:
        raise ValueError("the target of this curve has no classes; expected one with loss='logistic' or 'multinomial'.")
    size = size_to_show(curve) if size is None else int(size)
    at, q, c = curve.at(size), curve.n_outputs, len(curve.classes.labels)
    observed, predicted = class_of(curve.observed, q), class_of(curve.predictions[at], q)
    y, p, w = curve.observed.reshape(-1, q), curve.predictions[at].reshape(-1, q), curve.weights[::q]
    lines, areas = [], []
    for of_class, probability in zip(y.T, p.T, strict=True):
        (false, true), area = roc(of_class, probability, w), auc(of_class, probability, w)
        if size == 0 and curve.always.size == 0:  # class frequencies alone rank nothing
            false, true, area = np.array([0.0, 1.0]), np.array([0.0, 1.0]), 0.5
        points = _evenly(false.size, _POINTS)
        lines.append((false[points], true[points]))
        areas.append(area)
    edges = np.linspace(0.0, 1.0, _BINS + 1)
    binned = p[:, 0] if q == 1 else np.sum(p * y, axis=1)
    counts = [np.histogram(binned[observed == k], edges, weights=w[observed == k])[0] for k in range(c)]
    return ClassRates(
        size=size,
        labels=[clean(label) for label in curve.classes.labels],
        lines=lines,
        areas=areas,
        wrong=float(curve.classes.misclassified[at]),
        edges=edges,
        shares=np.stack([each / max(each.sum(), 1e-300) for each in counts]),
        table=confusion(observed, predicted, w, c),
    )


RISKS = ("lowest risk", "middle", "highest risk")


@dataclass(frozen=True)
class RiskGroups:
    """Held-out rows at a size, in thirds by risk (`RISKS`)."""

    size: int
    lines: list[tuple[Floats, Floats]]  # times (T,) and the fractions (T,) without the event
    rows: list[int]
    concordance: float


def risk_groups(curve: SizeCurve, size: int | None = None) -> RiskGroups:
    """Survival by thirds of the risk (None: the size to show); rows predicted several times have their mean risk."""
    if curve.survival is None:
        raise ValueError("the target of this curve is no survival time; expected a result with loss='cox'.")
    size = size_to_show(curve) if size is None else int(size)
    at, row = curve.at(size), curve.held_out_rows
    times = np.bincount(row, minlength=curve.n_rows)
    risk = np.bincount(row, curve.survival.risks[at], curve.n_rows)[times > 0] / times[times > 0]
    first = np.unique(row, return_index=True)[1]
    time, event, weight = curve.survival.times[first], curve.observed[first], curve.weights[first]
    third = np.searchsorted(np.quantile(risk, [1 / 3, 2 / 3]), risk) if np.ptp(risk) else np.ones(risk.size)
    lines = []
    for group in (third == g for g in range(len(RISKS))):
        t, survived = kaplan_meier(time[group], event[group], weight[group])
        points = _evenly(t.size, _POINTS)
        lines.append((t[points], survived[points]))
    counts = [int(np.count_nonzero(third == g)) for g in range(len(RISKS))]
    return RiskGroups(size, lines, counts, float(curve.survival.concordance[at]))


def kaplan_meier(time: Floats, event: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Times (T,), from 0, and Kaplan and Meier's estimate (T,) of the fraction without the event after each."""
    at = np.unique(time[event > 0])
    happened = np.array([weight[(time == t) & (event > 0)].sum() for t in at])
    at_risk = np.array([weight[time >= t].sum() for t in at])
    last = time.max(initial=0.0)
    survived = np.cumprod(np.append(1.0, 1.0 - happened / np.maximum(at_risk, 1e-300)))
    return np.concatenate([[0.0], at, [last]]), np.append(survived, survived[-1])


# Annealing ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cooling:
    """Energy and acceptance (chains, steps) against `temperature` (steps,), hottest first; empty if not annealed."""

    size: int
    temperature: Floats
    energy: Floats
    acceptance: Floats
    above: Floats  # energy above the lowest one that is known, but at least `floor`, where the best chains end
    floor: float
    cut: str
    unit: str


def cooling(source: SizeCurve | Trace, size: int | None = None, chains: int = 64, steps: int | None = None) -> Cooling:
    """Energy and acceptance against temperature, of the final fit of a size or of a `Trace`."""
    from pairflip.selection.curve import SizeCurve

    if isinstance(source, SizeCurve):
        size = size_to_show(source) if size is None else int(size)
        at, course, settings = source.at(size), source.annealing, source.settings
        lowest = float(source.energies[at])
        betas, energy, acceptance = course.betas[at], course.energy[at], course.acceptance[at]
        # The course of only some chains of a final fit is recorded; the settings know how many it had.
        of_size = dict(zip(settings.get("sizes", ()), settings.get("final_chains", ()), strict=False))
        total = int(of_size.get(size, 0))
    else:
        size, lowest, total = source.k, source.best_energy, 0
        betas, energy, acceptance = source.betas, source.energy, source.acceptance
    step = np.flatnonzero(np.isfinite(betas) & (betas > 0))
    # No axis has room for a start at (nearly) infinite temperature; the end where nothing moves any more is cut.
    while step.size > 1 and betas[step[1]] > 100 * betas[step[0]]:
        step = step[1:]
    moving = np.flatnonzero(np.nan_to_num(acceptance[:, step]).any(axis=0))
    if moving.size:
        step = step[: moving[-1] + 4]
    if steps is not None:
        step = step[_evenly(step.size, steps)]
    annealed = np.flatnonzero(np.isfinite(energy[:, step]).all(axis=1)) if step.size else np.arange(0)
    shown = annealed
    if annealed.size > chains:
        ranked = annealed[np.argsort(energy[annealed, step[-1]], kind="stable")]
        shown = np.sort(ranked[_evenly(annealed.size, chains)])
    if shown.size == 0:
        step = step[:0]
    total = max(total, annealed.size)
    part = f"{shown.size} of {plural(total, 'chain')}" if shown.size < total else plural(total, "chain")
    drawn = energy[np.ix_(shown, step)]
    floor = _floor(drawn - lowest)
    return Cooling(
        size=size,
        temperature=1.0 / betas[step],
        energy=drawn,
        acceptance=acceptance[np.ix_(shown, step)],
        above=np.maximum(drawn - lowest, floor),
        floor=floor,
        cut=part if shown.size else "no annealing: nothing to choose at this size",
        unit="column" if source.groups is None else "group",
    )


def _floor(above: Floats) -> float:
    """Where a logarithmic axis of energies ends: below the nearest end that is not the best one."""
    top = float(np.max(above, initial=0.0))
    if not top > 0:
        return 1.0
    ends = above[:, -1]
    apart = ends[ends > _ROUNDING * top]
    return min(_NEAR * top, float(np.min(apart, initial=top)) / 2)
