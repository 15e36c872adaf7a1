"""Figures at the widths of journals, and two that readers of QSAR models ask for: Williams plot, shuffled targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from pairflip.report.figures_held_out import row_labels
from pairflip.report.registry import FigureLimits, figures_of
from pairflip.report.style import COLOURS, QUIET, TEXT, any_glyph, label_axes, legend_above, new_axes
from pairflip.selection.decide import held_out
from pairflip.selection.prediction import used_columns
from pairflip.text import clean, number, plural, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pairflip.least_squares import Floats
    from pairflip.selection.curve import SizeCurve

WIDTHS = {"89mm": 89.0, "183mm": 183.0}
"""One and two columns of a journal."""
_WIDE = 120.0  # mm, from which panels stand side by side
_FAR = 3.0  # standard deviations
_NAMED = 8  # rows that have their names in the figure
_BINS = 20
_LEGENDS = (2, 60), (1, 60), (1, 20), (1, 10)  # columns, and characters of a label, in a narrow figure
_HEIGHT = 380.0  # pixels of a panel, 100 to the inch


@dataclass(frozen=True)
class Williams:
    """Leverages (m,) and standardized residuals (m,) of rows held out, of each target."""

    names: list[str]
    leverage: Floats
    residual: Floats
    limit: float  # of the leverage, 3 (d + 1) / n

    @property
    def outside(self) -> list[int]:
        """Places beyond a limit, the furthest first."""
        beyond = np.maximum(self.leverage / self.limit, np.abs(self.residual) / _FAR)
        return [int(i) for i in np.argsort(-beyond, kind="stable") if beyond[i] > 1]

    @property
    def caption(self) -> str:
        """What the figure shows."""
        return (
            "Williams plot: the leverage of each row in the columns of the model against its residual where it was "
            "held out, in units of the root mean square of these. Dashed: three of these units, and the leverage "
            f"3 (d + 1) / n = {number(self.limit, 3)}; {plural(len(self.outside), 'row')} beyond."
        )

    def draw(self, ax: Axes) -> None:
        """Limits as dashed lines, rows beyond them by name."""
        look: dict[str, Any] = {"color": QUIET, "linewidth": 1, "linestyle": "--"}
        for limit in (-_FAR, _FAR):
            ax.axhline(limit, **look)
        ax.axvline(self.limit, **look)
        ax.scatter(self.leverage, self.residual, s=18, color=COLOURS[0], linewidths=0, alpha=0.6)
        ax.set_xlim(0.0, 1.15 * max(self.limit, float(self.leverage.max())))
        beside: dict[str, Any] = {"xytext": (4, 3), "textcoords": "offset points", "fontsize": 7, "parse_math": False}
        for i in self.outside[:_NAMED]:
            ax.annotate(self.names[i][:12], (self.leverage[i], self.residual[i]), **beside)
        ax.locator_params(axis="x", nbins=5)
        label_axes(ax, "leverage", "standardized residual (held out)")


def williams(curve: SizeCurve, names: Sequence[object] | None = None) -> Williams | None:
    """Leverages of the rows in the columns of the size shown, and their held-out residuals in units of the RMSE.

    None where leverages are not known or residuals are not those of numbers.
    """
    size, q = curve.answer.shown, curve.n_outputs
    known = None if curve.training_ranges is None else curve.training_ranges[curve.at(size)]
    if known is None or known.leverages is None or not curve.loss.squared:
        return None
    rows = curve.held_out_rows[::q]
    times = np.bincount(rows, minlength=curve.n_rows)
    present = np.flatnonzero(times)
    residual = (curve.observed - curve.predictions[curve.at(size)]).reshape(-1, q)
    mean = np.stack([np.bincount(rows, of, curve.n_rows)[present] / times[present] for of in residual.T], axis=1)
    rmse = np.sqrt(np.average(residual**2, axis=0, weights=curve.weights[::q]))
    labels, ends = row_labels(curve, names), [f" {clean(name)}" for name in curve.outputs or ()] or [""]
    return Williams(
        names=[f"{labels[row]}{end}" for row in present for end in ends],
        leverage=np.repeat(known.leverages[present], q),
        residual=(mean / np.where(rmse > 0, rmse, 1.0)).ravel(),
        limit=3.0 * (used_columns(curve, size, folds=False).size + 1) / present.size,
    )


@dataclass(frozen=True)
class Shuffled:
    """R2 of held-out rows with shuffled targets, and with the observed one."""

    r2: Floats
    observed: float
    size: int

    @property
    def p_value(self) -> float:
        """The fraction of targets, the observed one among them, that are predicted at least as well as it is."""
        return (1 + int(np.count_nonzero(self.r2 >= self.observed))) / (1 + self.r2.size)

    @property
    def caption(self) -> str:
        """What the figure shows."""
        columns, targets = plural(self.size, "column"), plural(self.r2.size, "shuffled target")
        return (
            f"Permutation test: R2 of held-out rows when the selection of {columns} is repeated with {targets}, and "
            f"with the observed one ({number(self.observed, 3)}). p = {number(self.p_value, 2)}; with so many shuffles "
            f"it cannot be below {number(1 / (1 + self.r2.size), 2)}."
        )

    def draw(self, ax: Axes) -> None:
        """A histogram, in which R2 below -1 is shown as -1, and a line."""
        values = np.maximum(self.r2, -1.0)
        edges = np.linspace(min(values.min(), 0.0), max(values.max(), self.observed, 0.05), _BINS + 1)
        ax.hist(values, edges.tolist(), color=QUIET, label="shuffled targets")
        ax.axvline(self.observed, color=COLOURS[1], linewidth=1.8, label="observed target")
        ax.locator_params(axis="y", integer=True)
        label_axes(ax, "R2 on held-out rows", "number of shuffled targets")
        legend_above(ax)


def shuffled(curve: SizeCurve) -> Shuffled | None:
    """What the same selection gives with shuffled targets; None where none were asked for."""
    null = curve.null
    return None if null is None else Shuffled(null.r2, held_out(curve, null.size).r2, null.size)


def published_figures(curve: SizeCurve, names: Sequence[object] | None) -> dict[str, tuple[str, dict[str, Figure]]]:
    """Figures by name, each with its caption and its drawings by width; without those about the search."""
    limits, drawn = FigureLimits(rows=None if names is None else row_labels(curve, names)), {}
    for each in figures_of(curve):
        if each.place != "search":
            numbers = each.numbers(curve, curve.answer.shown, limits)
            heights = {wide: each.shape(numbers, wide)[1] for wide in (False, True)}
            panels = [partial(draw, numbers) for draw in each.draw]
            caption = each.words_about(curve, numbers, limits).caption or f"{each.title}."
            drawn[each.name] = caption, _drawings(panels, heights[False], max(heights.values()))
    for name, more in (("williams", williams(curve, names)), ("permutation", shuffled(curve))):
        if more is not None:
            drawn[name] = more.caption, _drawings([more.draw])
    return drawn


def _drawings(
    panels: Sequence[Callable[[Axes], None]], narrow: float = _HEIGHT, wide: float = _HEIGHT
) -> dict[str, Figure]:
    """Figures by width; heights of a panel in pixels. In the wide one, panels stand side by side."""
    from matplotlib.figure import Figure

    drawn, n = {}, len(panels)
    for label, width in WIDTHS.items():
        height, shape = (wide, (1, n)) if width > _WIDE else (n * narrow, (n, 1))
        drawn[label] = figure = Figure(figsize=(width / 25.4, height / 100.0), layout="constrained")
        axes = figure.subplots(*shape, squeeze=False).ravel()
        for draw, ax in zip(panels, axes, strict=True):
            draw(new_axes(ax))
        if n == 1 and width < _WIDE:
            _make_room(figure, axes[0])
    return drawn


def _make_room(figure: Figure, ax: Axes) -> None:
    """The legend over the whole width of a narrow figure, and half of the ticks where their labels touch."""
    with any_glyph():
        if legend := ax.get_legend():
            legend.remove()
            look: dict[str, Any] = {"loc": "outside upper left", "frameon": False, "fontsize": TEXT}
            texts, handles = [text.get_text() for text in legend.get_texts()], list(filter(None, legend.legend_handles))
            for columns, length in _LEGENDS:  # the first that fits
                for wider in list(figure.legends):
                    wider.remove()
                labels = [shorten(text, length) for text in texts]
                moved = figure.legend(handles, labels, ncols=columns, **look)
                for text in moved.get_texts():
                    text.set_parse_math(False)
                figure.draw_without_rendering()
                if moved.get_window_extent().x1 <= figure.bbox.x1:
                    break
        figure.draw_without_rendering()
    ticks = ax.get_xticklabels()
    boxes = [tick.get_window_extent() for tick in ticks]
    if any(right.x0 < left.x1 for left, right in pairwise(boxes)):
        ax.set_xticks(ax.get_xticks()[::2], labels=[tick.get_text() for tick in ticks[::2]])
    if ax.xaxis.label.get_window_extent().x1 > figure.bbox.x1:
        ax.set_xlabel(ax.get_xlabel(), loc="right")
