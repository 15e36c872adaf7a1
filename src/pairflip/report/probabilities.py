"""Probabilities of columns beside how often they were selected: two questions, one figure and one table of the page."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pairflip.report.inclusion import Bools, InclusionBars, bars_of, chance_text, draw_inclusion, inclusion_shape
from pairflip.report.registry import FigureTable, PageFigure, Room
from pairflip.report.stability_words import known
from pairflip.report.vocabulary import NAME_LENGTH, Piece, joined, plain
from pairflip.selection.verdict import size_to_show
from pairflip.text import aligned, column_labels, percent, plural

if TYPE_CHECKING:
    from pairflip.selection.curve import SizeCurve

STRONGLY = 0.5
"""Frequency and probability of a column that differ by at least so much are pointed out."""
_MOST_NAMED = 5


def probability_bars(curve: SizeCurve, size: int, limit: int = 30) -> InclusionBars:
    """Inclusion probabilities, and how often the columns were selected at a size: in half-samples, or else in folds."""
    found = curve.inclusion
    if found is None:
        raise ValueError("the curve has no probabilities; expected one of with_posterior(curve, posterior(problem)).")
    chosen = curve.supports[curve.at(size)]
    bars = bars_of(curve.names, found.columns, found.probability, found.error, found.prior, limit, chosen)
    halves = known(curve, size)
    if halves is None:
        frequency = curve.selection_counts[curve.at(size), bars.columns] / max(1, curve.n_folds)
        return replace(bars, frequency=frequency, trials=plural(curve.n_folds, "fold"))
    frequency = np.array([halves.frequency(j, size) for j in bars.columns.tolist()])
    return replace(bars, frequency=frequency, trials=plural(2 * halves.pairs, "half-sample"))


def disagreement(curve: SizeCurve, bars: InclusionBars) -> str:
    """Columns of a high frequency and a low probability, and the other way round; nothing where there are none."""
    assert bars.frequency is not None
    gap = bars.frequency - bars.probability
    words = []
    if names := _told(curve, bars, gap >= STRONGLY):
        words.append(
            f"Often selected, and yet not probable: {names}. At a fixed number of columns the best of what is left is "
            "selected whether it is needed or not; the probability asks whether it is needed."
        )
    if names := _told(curve, bars, -gap >= STRONGLY):
        fewer = "other rows" if bars.trials.endswith(("folds", "1 fold")) else "half of the rows"
        words.append(
            f"Probable, and yet seldom selected: {names}. With {fewer}, or with so few columns, others take their "
            "place."
        )
    return " ".join(words)


def _told(curve: SizeCurve, bars: InclusionBars, which: Bools) -> str:
    """Names with both numbers, at most a few of them."""
    assert bars.frequency is not None
    at = np.flatnonzero(which)
    labels = column_labels(curve.names, bars.columns[at].tolist(), NAME_LENGTH)
    items: list[list[Piece]] = [
        [
            (label, True),
            (f" (selected in {percent(bars.frequency[i])}, probability {percent(bars.probability[i])})", False),
        ]
        for label, i in zip(labels[:_MOST_NAMED], at, strict=False)
    ]
    if at.size > _MOST_NAMED:
        items.append([(f"{at.size - _MOST_NAMED} more", False)])
    return plain(joined(items))


def _numbers(curve: SizeCurve, size: int, room: Room) -> InclusionBars:
    return probability_bars(curve, size_to_show(curve), min(room.columns, 30))


def _labels(bars: InclusionBars) -> list[str]:
    return [
        "Bar chart of the probability that each column belongs in the model, with marks for how often it was selected "
        f"in {bars.trials}: {bars.cut}. The table below the figure has the numbers."
    ]


def _caption(curve: SizeCurve, bars: InclusionBars) -> str:
    found = curve.inclusion
    assert found is not None
    size = plural(size_to_show(curve), "column")
    parts = [
        "Bars: how probable it is that a column belongs in the model; diamonds: how often it was selected in "
        f"{bars.trials}, at {size}; {bars.cut}. They answer different questions. How often a column is selected says "
        "how often this procedure would choose it again from such rows, whether it matters or not. The inclusion "
        "probability says how likely the column belongs in the model, if what was assumed is right.",
        found.assumptions,
        "Columns that are alike share their probability.",
        disagreement(curve, bars),
    ]
    return " ".join(part for part in parts if part)


def _table(curve: SizeCurve, bars: InclusionBars, room: Room) -> FigureTable:
    found, size = curve.inclusion, size_to_show(curve)
    assert found is not None
    halves, chosen = known(curve, size), curve.supports[curve.at(size)]
    counts = curve.selection_counts[curve.at(size)]
    place = {j: i for i, j in enumerate(found.columns.tolist())}
    at = [place[j] for j in bars.columns.tolist()]
    means, sds = aligned(found.coef_mean[at].tolist()), aligned(found.coef_sd[at].tolist(), 2)
    labels = column_labels(curve.names, bars.columns.tolist(), 80)
    chances = [chance_text(p, e) for p, e in zip(bars.probability, bars.error, strict=True)]
    again = []
    if halves is not None:
        total = 2 * halves.pairs
        again = [[_of(halves.frequency(j, size) * total, total) for j in bars.columns.tolist()]]
    folds = [_of(counts[j], curve.n_folds) for j in bars.columns]
    final = ["yes" if j in chosen else "no" for j in bars.columns]
    rows = [list(row) for row in zip(labels, chances, *again, folds, final, means, sds, strict=True)]
    heads = ["Column", "In the model", *(["Selected in half-samples"] if again else []), "Selected in folds"]
    heads += ["Chosen on all rows", "Coefficient, averaged", "sd"]
    caption = (
        "Inclusion probabilities (± Monte Carlo error, where models were drawn at random), and selection at "
        f"{plural(size, 'column')}; coefficients are averages over all models, with their standard deviations"
    )
    return FigureTable("Table: probabilities and selection", heads, rows, caption)


def _of(count: float, total: int) -> str:
    return f"{round(count):,} of {total:,}"


PROBABILITIES = PageFigure(
    "inclusion",
    "How probable it is that a column belongs in the model",
    _numbers,
    (draw_inclusion,),
    labels=_labels,
    titles=lambda bars: [bars.cut],
    caption=_caption,
    table=_table,
    shape=inclusion_shape,
    applies=lambda curve: curve.inclusion is not None,
)
