"""Selection counts as a heat map of size and column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairflip.present.numbers import count_map
from pairflip.present.style import COLOURS, TEXT, figure_of, label_axes, new_axes
from pairflip.text import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairflip.crossval.curve import SizeCurve


def plot_selection_counts(curve: SizeCurve, ax: Axes | None = None, limit: int = 40) -> Axes:
    """Draw in what fraction of the folds each column was selected, by size; dots are the final fit on all rows.

    The `limit` most selected columns are shown, the title says of how many.
    """
    import numpy as np

    counts = count_map(curve, limit)
    rows, sizes = counts.columns.size, counts.sizes
    ax = new_axes(ax, width=min(12.0, 4.2 + 0.28 * sizes.size), height=min(14.0, 1.3 + 0.2 * rows))
    image = ax.imshow(counts.fraction.T, cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    at, column = np.nonzero(counts.final)
    ax.plot(at, column, linestyle="none", marker="o", markersize=3.5, color=COLOURS[1], markeredgecolor="white")
    every = -(-sizes.size // 20)
    ax.set_xticks(np.arange(0, sizes.size, every), labels=[str(k) for k in sizes[::every]])
    ax.set_yticks(np.arange(rows), labels=counts.labels, fontsize=TEXT - 1, parse_math=False)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    label_axes(ax, "size (number of columns)", "", counts.cut)
    bar = figure_of(ax).colorbar(image, ax=ax, shrink=min(1.0, 8 / max(8, rows)), pad=0.02)
    bar.set_label(f"fraction of {plural(counts.n_folds, 'fold')}", fontsize=TEXT)
    bar.ax.tick_params(labelsize=TEXT)
    bar.outline.set_visible(False)
    return ax
