"""A row for each column: how often half-samples and folds selected it, and how probably it belongs in the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pairflip.report.figures_by_size import by_size, marks
from pairflip.report.registry import (
    BELOW,
    LABEL,
    Bools,
    FigureLimits,
    FigureTable,
    FigureWords,
    Ints,
    PageFigure,
    part_of,
)
from pairflip.report.stability_words import bound_words, known, level_label, null_words
from pairflip.report.style import (
    BACK,
    COLOURS,
    FAINT,
    INK,
    QUIET,
    boxes,
    inches,
    label_axes,
    legend_above,
    name_rows,
    tell,
    tinted,
)
from pairflip.report.vocabulary import (
    NAME_LENGTH,
    joined,
    named,
    pieces,
    plain,
    unit_labels,
    units_of,
    what_is_counted,
)
from pairflip.rules import name_positions
from pairflip.selection.stability import THRESHOLD
from pairflip.text import aligned, column_labels, percent, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Patch

    from pairflip.least_squares import Floats
    from pairflip.search.posterior import Posterior
    from pairflip.search.sampling import Samples
    from pairflip.selection.curve import SizeCurve

_ROW = 0.19  # inches
STRONGLY = 0.5
"""Frequency and probability of a column that differ by at least so much are pointed out."""
_MOST_NAMED = 5
_UNKNOWN = " What noise would give here is not known; --null 20 (in Python null=20) tells."


def plot_frequencies(curve: SizeCurve, ax: Axes | None = None, size: int | None = None, limit: int = 30) -> Axes:
    """Draw in what fraction of the half-samples each column was selected, the most selected first.

    Parameters
    ----------
    curve
        What `select_size` returned, with half-samples (``stability=50``).
    ax
        Where to draw; a new figure if absent.
    size
        Number of columns; None: the recommended one.
    limit
        Largest number of columns shown.
    """
    bars = FrequencyBars(curve, size, limit)
    return FREQUENCIES.plot(bars, ax, 6.0, 1.3 + _ROW * len(bars.labels))


def plot_bands(curve: SizeCurve, ax: Axes | None = None, size: int | None = None) -> Axes:
    """Draw the mean spectrum with the bands of which half-samples selected a column, the fuller the more often.

    Parameters
    ----------
    curve
        What `select_size` returned, with half-samples (``stability=50``), of a table whose names are numbers.
    ax
        Where to draw; a new figure if absent.
    size
        Number of columns; None: the recommended one.
    """
    return BANDS.plot(BandMap(curve, size), ax)


def plot_inclusion(found: Samples | Posterior, ax: Axes | None = None, limit: int = 30) -> Axes:
    """Draw inclusion probabilities with their Monte Carlo errors, the most probable columns first.

    Parameters
    ----------
    found
        What `sample`, `temper` or `posterior` returned.
    ax
        Where to draw; a new figure if absent.
    limit
        Largest number of columns shown.
    """
    bars = inclusion_bars(found, limit)
    return PROBABILITIES.plot(bars, ax, 6.0, inclusion_shape(bars, True)[1] / 100)


def plot_selection_counts(curve: SizeCurve, ax: Axes | None = None, limit: int = 40) -> Axes:
    """Draw in what fraction of the folds each column was selected, by size; dots are the final fit on all rows.

    Parameters
    ----------
    curve
        What `select_size` returned.
    ax
        Where to draw; a new figure if absent.
    limit
        Largest number of columns; the most selected ones are shown, and the title says out of how many.
    """
    counts = CountMap(curve, limit)
    width = min(12.0, 4.2 + 0.28 * counts.sizes.size)
    return SELECTION_COUNTS.plot(counts, ax, width, 1.5 + _ROW * counts.columns.size)


def _first(ranked: Ints, needed: Bools, limit: int) -> Ints:
    """The first of a ranking, those that are needed (a mask of it) among them whatever their rank."""
    return ranked[np.sort(np.lexsort((np.arange(ranked.size), ~needed))[:limit])]


def _fractions(
    ax: Axes,
    labels: Sequence[str],
    values: Floats,
    chosen: Bools,
    kinds: tuple[str, str],
    texts: Sequence[str],
    n_ticks: int = 6,
) -> list[Patch]:
    """Draw a bar from 0 to 1 for each row, in two colours; returns what a legend says of these."""
    from matplotlib.patches import Patch

    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    for group, colour in ((chosen, COLOURS[0]), (~chosen, QUIET)):
        at = np.flatnonzero(group)
        if at.size:
            bars = boxes(ax, 0.0, values[at], at - 0.35, at + 0.35, colour)
            tell(bars, "{0}: {1}", [labels[i] for i in at.tolist()], [texts[i] for i in at.tolist()])
    ticks = np.linspace(0, 1, n_ticks)
    ax.set_xticks(ticks, labels=[percent(t) for t in ticks])
    name_rows(ax, labels)
    ax.spines[["top", "right", "left"]].set_visible(False)
    return [Patch(facecolor=c, linewidth=0, label=kind) for c, kind in zip((COLOURS[0], QUIET), kinds, strict=True)]


class FrequencyBars:
    """Selection frequencies (R,) in half-samples at a size (None: that to show), the highest and the chosen columns."""

    def __init__(self, curve: SizeCurve, size: int | None = None, limit: int = 30) -> None:
        stability = curve.stability
        if stability is None:
            raise ValueError("the curve has no half-samples; expected one of select_size(..., stability=50).")
        self.stability, self.size = stability, curve.answer.shown if size is None else size
        frequency = stability.frequencies[stability.at(self.size)]
        chosen = np.isin(stability.columns, stability.chosen[stability.at(self.size)])
        ranked = np.lexsort((stability.columns, ~chosen, -frequency))
        ranked = ranked[(frequency[ranked] > 0) | chosen[ranked]]
        at = _first(ranked, chosen[ranked], limit)
        columns = stability.columns[at].tolist()
        self.unit, self.half_samples = what_is_counted(curve), 2 * stability.pairs
        self.labels, self.cut = unit_labels(curve, columns, LABEL), part_of(at.size, ranked.size, self.unit)
        self.frequency, self.chosen = frequency[at], chosen[at]
        # Quantiles of the coefficients, and the highest frequency that shuffled targets gave.
        self.low, self.high = np.array([stability.spread(j, self.size) for j in columns]).reshape(-1, 2).T
        self.shuffled = float("nan") if curve.null is None else float(np.max(curve.null.highest))


def draw_frequencies(bars: FrequencyBars, ax: Axes) -> None:
    """Chosen columns in one colour, others in another, the threshold as a line."""
    texts = [f"{round(f * bars.half_samples)} of {bars.half_samples} half-samples" for f in bars.frequency]
    patches = _fractions(ax, bars.labels, bars.frequency, bars.chosen, ("chosen on all rows", "not chosen"), texts)
    ax.axvline(THRESHOLD, color=COLOURS[1], linewidth=1.1, linestyle="--", label=percent(THRESHOLD))
    if np.isfinite(bars.shuffled):
        ax.axvline(bars.shuffled, color=COLOURS[2], linewidth=1.3, linestyle=":", label="highest with shuffled targets")
    label_axes(ax, "selected in half-samples", "")
    legend_above(ax, patches)


def _frequency_words(curve: SizeCurve, bars: FrequencyBars, limits: FigureLimits) -> FigureWords:
    stability, unit = bars.stability, bars.unit
    label = (
        f"Bar chart of how many of {bars.half_samples} half-samples selected each {unit} at "
        f"{plural(bars.size, unit)}: {bars.cut}. {BELOW}"
    )
    rows_each = f"{'' if stability.how.endswith('rows') else 'at least '}{stability.rows:,} rows each"
    shared = percent(float(stability.pair_overlap[stability.at(bars.size)]))
    caption = (
        f"At {plural(bars.size, unit)}: in what fraction of {bars.half_samples} {stability.how} ({rows_each}) "
        f"a search of its own selected a {unit}; {bars.cut}. The two halves of a pair have no row in common; "
        f"on average they share {shared} of their {unit}s. {bound_words(curve, stability, bars.size)} "
        f"{unit.capitalize()}s that are alike "
        "share their frequency: each may be selected seldom although one of them is selected always."
        f"{f' {null_words(curve)}' if curve.null is not None else _UNKNOWN if curve.loss.squared else ''}"
    )
    cells = {
        unit.capitalize(): bars.labels,
        "Chosen on all rows": ["yes" if chosen else "no" for chosen in bars.chosen],
        "Selected in half-samples": [_times(f, bars.half_samples) for f in bars.frequency],
        "Coefficient, 5 %": aligned(bars.low),
        "95 %": aligned(bars.high),
    }
    about = (
        "Selection frequencies, and quantiles of the coefficient over the half-samples that selected the column (where "
        "these are at least ten)"
    )
    return FigureWords([label], caption, FigureTable.of(cells, about, "Table: selection in half-samples"))


def _times(fraction: float, total: int) -> str:
    return f"{round(fraction * total):,} of {total:,}"


class BandMap:
    """The mean spectrum, the bands (b,) that half-samples selected, and the columns chosen on all rows, at one size."""

    def __init__(self, curve: SizeCurve, size: int | None = None) -> None:
        stability = curve.stability
        if stability is None or stability.profile is None:
            raise ValueError(
                "the curve has no bands; expected half-samples (stability=50) of a table whose names are numbers and "
                "whose neighbouring columns are alike."
            )
        self.stability, self.size = stability, curve.answer.shown if size is None else size
        numbers = name_positions(curve.names)
        order = np.argsort(numbers, kind="stable")[: int(np.isfinite(numbers).sum())]
        bands = [each for each in stability.stable_clusters(0.0, self.size) if np.isfinite(numbers[each.columns]).all()]
        labels = [level_label(curve, stability, self.size, each.columns).removeprefix("one of ") for each in bands]
        chosen = numbers[stability.chosen[stability.at(self.size)]]
        self.half_samples = 2 * stability.pairs
        self.position, self.profile = numbers[order], stability.profile[order]
        self.low = np.array([numbers[each.columns].min() for each in bands])
        self.high = np.array([numbers[each.columns].max() for each in bands])
        self.frequency = np.array([each.frequency for each in bands])
        self.labels = ["".join(text for text, _ in pieces(label)) for label in labels]
        self.chosen = chosen[np.isfinite(chosen)]


def draw_bands(bands: BandMap, ax: Axes) -> None:
    """Bands behind the mean spectrum, chosen columns as marks at the bottom."""
    from matplotlib.patches import Patch

    low, high = float(bands.profile.min()), float(bands.profile.max())
    room = 0.08 * (high - low or 1.0)
    bottom, top = low - 2 * room, high + room
    step = float(np.median(np.diff(bands.position))) / 2.0
    colours = [tinted(_opacity(f)) for f in bands.frequency]
    shaded = boxes(ax, bands.low - step, bands.high + step, bottom, top, colours)
    counts = [f"{round(f * bands.half_samples)} of {bands.half_samples} half-samples" for f in bands.frequency]
    tell(shaded, "{0}: {1}", bands.labels, counts)
    ax.plot(bands.position, bands.profile, color=INK, linewidth=1.2, label="mean of the rows")
    marks: dict[str, Any] = {"linestyle": "none", "marker": "^", "color": COLOURS[1], "markersize": 7}
    ax.plot(bands.chosen, np.full(bands.chosen.size, low - room), label="chosen on all rows", **marks)
    ax.set_xlim(bands.position[0] - step, bands.position[-1] + step)
    ax.set_ylim(bottom, top)
    label_axes(ax, "number in the name of the column", "mean")
    scale = [Patch(facecolor=tinted(_opacity(f)), linewidth=0, label=percent(f)) for f in (0.25, 0.5, 1.0)]
    legend_above(ax, scale)


def _opacity(frequency: float) -> float:
    """How full the colour of a band is."""
    return round(0.04 + 0.56 * float(frequency), 2)


def _band_words(curve: SizeCurve, bands: BandMap, limits: FigureLimits) -> FigureWords:
    label = (
        f"Mean spectrum with {plural(bands.frequency.size, 'band')} shaded by how many of {bands.half_samples} "
        f"half-samples selected one of their columns. {BELOW}"
    )
    caption = (
        f"At {plural(bands.size, 'column')}: bands of which half-samples selected one column or another, the fuller "
        "the colour the more often; triangles are the columns chosen on all rows. Neighbours stand in for each other, "
        "so a band may be stable although none of its columns is. Bands are a twentieth of the range or narrower: a "
        "window that was fixed without the target, cut to the columns that were selected. "
        f"{bound_words(curve, bands.stability, bands.size, clusters=True)}"
    )
    times = [_times(f, bands.half_samples) for f in bands.frequency]
    about = "Bands of which at least a tenth of the half-samples selected a column"
    table = FigureTable.of({"Band": bands.labels, "Selected in half-samples": times}, about, "Table: bands")
    return FigureWords([label], caption, table)


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
    labels, cut = column_labels(names, columns[at].tolist(), LABEL), part_of(at.size, columns.size, "column")
    return InclusionBars(columns[at], labels, probability[at], error[at], prior, cut)


def draw_inclusion(bars: InclusionBars, ax: Axes) -> None:
    """A bar for each column, the prior probability as a line, selection frequencies as diamonds."""
    rows, likely = np.arange(len(bars.labels)), bars.probability >= 0.5
    texts = [chance_text(p, e) for p, e in zip(bars.probability, bars.error, strict=True)]
    n_ticks = 3 if inches(ax) < 4 else 6
    patches = _fractions(ax, bars.labels, bars.probability, likely, ("50 % or more", "less"), texts, n_ticks)
    if np.any(bars.error > 0):
        low, high = np.maximum(bars.probability - bars.error, 0.0), np.minimum(bars.probability + bars.error, 1.0)
        ax.hlines(rows, low, high, colors=INK, linewidths=1.4, label="± Monte Carlo error")
    before = f"before the data: {percent(bars.prior)}"
    ax.axvline(bars.prior, color=COLOURS[1], linewidth=1.1, linestyle="--", label=before)
    if bars.frequency is not None:
        marks: dict[str, Any] = {"linestyle": "none", "marker": "D", "color": COLOURS[2], "markersize": 5.5}
        edge: dict[str, Any] = {"markeredgecolor": BACK, "markeredgewidth": 0.7, "clip_on": False}
        (drawn,) = ax.plot(bars.frequency, rows, **edge, label=f"selected in {bars.trials}", **marks)
        tell(drawn, "{0}: selected in {1}", bars.labels, [f"{percent(f)} of {bars.trials}" for f in bars.frequency])
    label_axes(ax, "inclusion probability", "")
    legend_above(ax, patches)


def chance_text(probability: float, error: float) -> str:
    """``87 % ± 1.2``, or without an error where all models were visited."""
    return percent(probability) + (f" ± {100 * error:.1f}" if error > 0 and 0.0 < probability < 1.0 else "")


def inclusion_shape(bars: InclusionBars, wide: bool) -> tuple[float, float]:
    """Width and height in pixels, on a wide page or a narrow one."""
    height = 140.0 + 100 * _ROW * len(bars.labels)
    return (820.0, height) if wide else (350.0, height + 70)


def disagreement(curve: SizeCurve, bars: InclusionBars) -> str:
    """Columns of a high frequency and a low probability, and the other way round; nothing where there are none."""
    assert bars.frequency is not None
    gap = bars.frequency - bars.probability
    fewer = "other rows" if bars.trials.endswith(("folds", "1 fold")) else "half of the rows"
    cases = (
        (
            gap >= STRONGLY,
            "Often selected, and yet not probable: {}. At a fixed number of columns the best of what is left is "
            "selected whether it is needed or not; the probability asks whether it is needed.",
        ),
        (
            -gap >= STRONGLY,
            f"Probable, and yet seldom selected: {{}}. With {fewer}, or with so few columns, others take their place.",
        ),
    )
    words = []
    for at, sentence in ((np.flatnonzero(mask), sentence) for mask, sentence in cases):
        if not at.size:
            continue
        labels = column_labels(curve.names, bars.columns[at].tolist(), NAME_LENGTH)
        items = [
            f"{named([label])} (selected in {percent(bars.frequency[i])}, probability {percent(bars.probability[i])})"
            for label, i in zip(labels, at, strict=True)
        ]
        words.append(sentence.replace("{}", plain(joined(items, _MOST_NAMED))))
    return " ".join(words)


def _probability_words(curve: SizeCurve, bars: InclusionBars, limits: FigureLimits) -> FigureWords:
    inclusion, size = curve.inclusion, curve.answer.shown
    assert inclusion is not None
    label = (
        "Bar chart of the probability that each column belongs in the model, with marks for how often it was selected "
        f"in {bars.trials}: {bars.cut}. {BELOW}"
    )
    caption = (
        "Bars: how probable it is that a column belongs in the model; diamonds: how often it was selected in "
        f"{bars.trials}, at {plural(size, 'column')}; {bars.cut}. They answer different questions. How often a column "
        "is selected says how often this procedure would choose it again from such rows, whether it matters or not. "
        "The inclusion probability says how likely the column belongs in the model, if what was assumed is right. "
        f"{inclusion.assumptions} Columns that are alike share their probability. {disagreement(curve, bars)}"
    )
    stability, chosen, columns = known(curve, size), curve.supports[curve.at(size)], bars.columns.tolist()
    counts = curve.selection_counts[curve.at(size)]
    place = {j: i for i, j in enumerate(inclusion.columns.tolist())}
    at = [place[j] for j in columns]
    cells = {
        "Column": column_labels(curve.names, columns, 80),
        "In the model": [chance_text(p, e) for p, e in zip(bars.probability, bars.error, strict=True)],
    }
    if stability is not None:
        total = 2 * stability.pairs
        cells["Selected in half-samples"] = [_times(stability.frequency(j, size), total) for j in columns]
    cells |= {
        "Selected in folds": [f"{counts[j]:,} of {curve.n_folds:,}" for j in columns],
        "Chosen on all rows": ["yes" if j in chosen else "no" for j in columns],
        "Coefficient, averaged": aligned(inclusion.coef_mean[at].tolist()),
        "sd": aligned(inclusion.coef_sd[at].tolist(), 2),
    }
    about = (
        "Inclusion probabilities (± Monte Carlo error, where models were drawn at random), and selection at "
        f"{plural(size, 'column')}; coefficients are averages over all models, with their standard deviations"
    )
    return FigureWords([label], caption.rstrip(), FigureTable.of(cells, about, "Table: probabilities and selection"))


class CountMap:
    """Selection counts (S, R) of R columns, the most selected first; the final fits of marked sizes are among them.

    `fraction` is that of the folds; `final` tells whether the final fit has the column.
    """

    def __init__(self, curve: SizeCurve, limit: int = 40, length: int = LABEL) -> None:
        order, self.marks, self.unit = by_size(curve), marks(curve), what_is_counted(curve)
        total = curve.selection_counts.sum(axis=0)
        total = total if curve.units is None else curve.units.once(total)
        chosen = [column for mark in self.marks for column in units_of(curve, mark.size)]
        ranked = np.argsort(-total, kind="stable")
        ranked = ranked[(total[ranked] > 0) | np.isin(ranked, chosen)]
        shown = _first(ranked, np.isin(ranked, chosen), limit)
        ever = int(np.count_nonzero(total))
        more = int(np.count_nonzero(~np.isin(shown, ranked[: min(limit, ever)])))
        self.cut = f"{shown.size - more} most selected of {plural(ever, self.unit)}"
        if shown.size - more >= ever:
            self.cut = f"all {plural(ever, self.unit)} selected in any fold"
        elif more:
            self.cut += f" and {more} more of the final fits"
        self.sizes, self.columns, self.n_folds = curve.sizes[order], shown, curve.n_folds
        self.labels = unit_labels(curve, shown.tolist(), length)
        self.counts = curve.selection_counts[order][:, shown]
        self.fraction = self.counts / max(1, curve.n_folds)
        self.final = np.array([np.isin(shown, curve.supports[s]) for s in order]).reshape(self.counts.shape)


def draw_selection_counts(counts: CountMap, ax: Axes) -> None:
    """One row for each column, the fuller the colour the more folds."""
    from matplotlib.patches import Patch, Rectangle

    rows, n = counts.columns.size, counts.sizes.size
    ax.set_xlim(-0.5, n - 0.5)
    ax.set_ylim(rows - 0.5, -1.35 if counts.marks else -0.5)  # a row for the flags
    ax.add_patch(Rectangle((-0.5, -0.5), n, rows, facecolor=FAINT, alpha=0.6, linewidth=0))
    at, row = np.nonzero((counts.counts > 0) | counts.final)
    colours = [tinted(round(0.05 + 0.95 * float(part), 2)) for part in counts.fraction[at, row]]
    cells = boxes(ax, at - 0.5, at + 0.5, row - 0.5, row + 0.5, colours)
    tell(
        cells,
        f"{{0}}, {{1}}: {{2}} of {plural(counts.n_folds, 'fold')}{{3}}",
        [counts.labels[r] for r in row],
        [plural(int(counts.sizes[s]), counts.unit) for s in at],
        [f"{count:,}" for count in counts.counts[at, row]],
        [", in the final fit" if final else "" for final in counts.final[at, row]],
    )
    gap: dict[str, Any] = {"colors": BACK, "linewidths": 0.8}
    ax.hlines(np.arange(1, rows) - 0.5, -0.5, n - 0.5, **gap)
    if n <= 60:
        ax.vlines(np.arange(1, n) - 0.5, -0.5, rows - 0.5, **gap)
    dots: dict[str, Any] = {"linestyle": "none", "marker": "o", "color": COLOURS[1], "markeredgecolor": BACK}
    ax.plot(*np.nonzero(counts.final), markersize=5 if n <= 40 else 3, markeredgewidth=0.7, label="final fit", **dots)
    places = {int(k): s for s, k in enumerate(counts.sizes)}
    for mark in counts.marks:
        flag: dict[str, Any] = {"marker": "v", "markersize": 6, "linestyle": "none"}
        colour = COLOURS[1] if mark.recommended else COLOURS[2]
        ax.plot([places[mark.size]], [-0.95], color=colour, label=f"{mark.text}: {mark.size}", **flag)
    step = -(-n // (8 if inches(ax) < 4 else 20))
    ax.set_xticks(np.arange(0, n, step), labels=[str(k) for k in counts.sizes[::step]])
    name_rows(ax, counts.labels)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    label_axes(ax, f"size (number of {counts.unit}s)", "")
    scale = []
    for part in (0.25, 0.5, 1.0):
        text = f"{percent(part)} of the folds" if part < 1 else f"all {plural(counts.n_folds, 'fold')}"
        scale.append(Patch(facecolor=tinted(0.05 + 0.95 * part), linewidth=0, label=text))
    legend_above(ax, scale)


def _count_words(curve: SizeCurve, counts: CountMap, limits: FigureLimits) -> FigureWords:
    folds = plural(counts.n_folds, "fold")
    label = f"Heat map of how many of {folds} selected each {counts.unit}, by size: {counts.cut}. {BELOW}"
    caption = (
        f"How many of {counts.n_folds:,} folds selected a {counts.unit} (the fuller the colour, the more), by size: "
        f"{counts.cut}. Dots mark the final fit on all rows. Folds have most of their rows in common, so a column of "
        "noise can be selected in every one of them, too: a full row says that the selection does not depend on a few "
        "rows, not that the column matters."
    )
    names = unit_labels(curve, counts.columns.tolist(), 80)
    rows = [[name, *map(str, of_column)] for name, of_column in zip(names, counts.counts.T, strict=True)]
    about = f"Folds that selected each {counts.unit}, by size, of {counts.n_folds:,} folds"
    heads = [counts.unit.capitalize(), *map(str, counts.sizes)]
    return FigureWords([label], caption, FigureTable("Table: selection counts", heads, rows, about))


def _shape(numbers: FrequencyBars | CountMap, wide: bool) -> tuple[float, float]:
    height = 110.0 + 100 * _ROW * len(numbers.labels)
    return (820.0, height) if wide else (350.0, height + 50)


FREQUENCIES = PageFigure(
    "half_samples",
    "How often halves of the rows select each column",
    lambda curve, size, limits: FrequencyBars(curve, limit=min(limits.columns, 30)),
    (draw_frequencies,),
    words=_frequency_words,
    titles=lambda bars: [bars.cut],
    shape=_shape,
    applies=lambda curve: known(curve, curve.answer.shown) is not None,
)
BANDS = PageFigure(
    "bands",
    "Which bands are selected",
    lambda curve, size, limits: BandMap(curve),
    (draw_bands,),
    words=_band_words,
    titles=lambda bands: [f"bands at {plural(bands.size, 'column')}"],
    applies=lambda curve: (halves := known(curve, curve.answer.shown)) is not None and halves.profile is not None,
)
PROBABILITIES = PageFigure(
    "inclusion",
    "How probable it is that a column belongs in the model",
    lambda curve, size, limits: probability_bars(curve, curve.answer.shown, min(limits.columns, 30)),
    (draw_inclusion,),
    words=_probability_words,
    titles=lambda bars: [bars.cut],
    shape=inclusion_shape,
    applies=lambda curve: curve.inclusion is not None,
)
SELECTION_COUNTS = PageFigure(
    "selection_counts",
    "How often each column was selected",
    lambda curve, size, limits: CountMap(curve, limits.columns, 30),
    (draw_selection_counts,),
    words=_count_words,
    titles=lambda counts: [counts.cut],
    shape=_shape,
)
