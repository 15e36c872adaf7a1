"""How probable it is that columns belong in the model, as bars with their Monte Carlo errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats
from pairflip.report.style import (
    BACK,
    COLOURS,
    INK,
    QUIET,
    TEXT,
    inches,
    label_axes,
    legend_above,
    new_axes,
    set_title,
    tell,
)
from pairflip.text import column_labels, percent, plural, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairflip.search.posterior import Posterior
    from pairflip.search.sampling import Samples

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
_ROW = 0.19  # inches


@dataclass(frozen=True)
class InclusionBars:
    """Inclusion probabilities (R,) and their errors, the highest first; `prior`, what they were before the data.

    `frequency` (R,): in what fraction of `trials` ("100 half-samples") a column was selected; None: not shown.
    """

    columns: Ints
    labels: list[str]
    probability: Floats
    error: Floats
    prior: float
    cut: str
    frequency: Floats | None = None
    trials: str = ""


def inclusion_bars(found: Samples | Posterior, limit: int = 30) -> InclusionBars:
    """The most probable columns of a record; those that are always in, and those that do not vary, are left out.

    Before the data, a column is in a set of k of n columns with probability k / n, and in a model as its prior says.
    """
    from pairflip.search.posterior import Posterior

    if isinstance(found, Posterior):
        columns, prior = found.problem.candidates, found.prior.inclusion
    else:
        columns, prior = found.candidates, found.k / found.candidates.size
    return bars_of(
        found.names, columns, found.inclusion_probability[columns], found.inclusion_se[columns], prior, limit
    )


def bars_of(
    names: list[str],
    columns: Ints,
    probability: Floats,
    error: Floats,
    prior: float,
    limit: int,
    chosen: Ints | None = None,
) -> InclusionBars:
    """The most probable of some columns."""
    order = np.argsort(-probability, kind="stable")
    needed = np.isin(columns[order], [] if chosen is None else chosen)
    first = np.lexsort((np.arange(order.size), ~needed))[: max(1, limit)]
    at = order[np.sort(first)]
    some = at.size < columns.size
    return InclusionBars(
        columns=columns[at],
        labels=column_labels(names, columns[at].tolist(), 28),
        probability=probability[at],
        error=error[at],
        prior=prior,
        cut=f"{at.size} of {plural(columns.size, 'column')}" if some else f"all {plural(columns.size, 'column')}",
    )


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
    ax = new_axes(ax, width=6.0, height=inclusion_height(bars))
    draw_inclusion(bars, ax)
    set_title(ax, bars.cut)
    return ax


def draw_inclusion(bars: InclusionBars, ax: Axes) -> None:
    """The drawing of `InclusionBars`: the prior probability as a line, selection frequencies as diamonds."""
    from matplotlib.collections import PolyCollection
    from matplotlib.patches import Patch

    rows, place = len(bars.labels), np.arange(len(bars.labels))
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(rows - 0.4, -0.6)
    patches = []
    often = bars.probability >= 0.5
    for which, colour, text in ((often, COLOURS[0], "50 % or more"), (~often, QUIET, "less")):
        patches.append(Patch(facecolor=colour, linewidth=0, label=text))
        at, ends = place[which], bars.probability[which]
        if at.size:
            corners = [
                [(0, i - 0.35), (p, i - 0.35), (p, i + 0.35), (0, i + 0.35)] for i, p in zip(at, ends, strict=True)
            ]
            cells = PolyCollection(corners, facecolors=colour, linewidths=0)
            ax.add_collection(cells)
            texts = [chance_text(p, e) for p, e in zip(ends, bars.error[which], strict=True)]
            tell(cells, "{0}: {1}", [bars.labels[i] for i in at], texts)
    if np.any(bars.error > 0):
        low, high = np.maximum(bars.probability - bars.error, 0.0), np.minimum(bars.probability + bars.error, 1.0)
        ax.hlines(place, low, high, colors=INK, linewidths=1.4, label="± Monte Carlo error")
    ax.axvline(
        bars.prior, color=COLOURS[1], linewidth=1.1, linestyle="--", label=f"before the data: {percent(bars.prior)}"
    )
    if bars.frequency is not None:
        marks: dict[str, Any] = {"linestyle": "none", "marker": "D", "color": COLOURS[2], "markersize": 5.5}
        edge: dict[str, Any] = {"markeredgecolor": BACK, "markeredgewidth": 0.7, "clip_on": False}
        (drawn,) = ax.plot(bars.frequency, place, **edge, label=f"selected in {bars.trials}", **marks)
        tell(drawn, "{0}: selected in {1}", bars.labels, [f"{percent(f)} of {bars.trials}" for f in bars.frequency])
    ticks = np.linspace(0, 1, 3 if inches(ax) < 4 else 6)
    ax.set_xticks(ticks, labels=[percent(t) for t in ticks])
    texts = [shorten(text, 17) if inches(ax) < 4 else text for text in bars.labels]
    ax.set_yticks(place, labels=texts, fontsize=TEXT, parse_math=False)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    label_axes(ax, "inclusion probability", "")
    legend_above(ax, patches)


def chance_text(probability: float, error: float) -> str:
    """``87 % ± 1.2``, or without an error where all models were visited."""
    return percent(probability) + (f" ± {100 * error:.1f}" if error > 0 and 0.0 < probability < 1.0 else "")


def inclusion_height(bars: InclusionBars) -> float:
    """Height of the figure, in inches."""
    return 1.4 + _ROW * len(bars.labels)


def inclusion_shape(bars: InclusionBars, wide: bool) -> tuple[float, float]:
    """Width and height in pixels, on a wide page or a narrow one."""
    height = 100 * inclusion_height(bars)
    return (820.0, height) if wide else (350.0, height + 70)
