"""cv_error against size for every ridge that was tried, where shrinkage was chosen with the size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats
from pairflip.report.numbers import by_size
from pairflip.report.registry import FigureTable, PageFigure, Room
from pairflip.report.style import (
    COLOURS,
    MARKERS,
    QUIET,
    grid,
    label_axes,
    legend_above,
    new_axes,
    plain_log,
    tell,
    whole_ticks,
)
from pairflip.text import aligned, number, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairflip.selection.curve import SizeCurve

_TOO_UNLIKE = 20.0  # errors that differ by more than this factor need a logarithmic axis
_CHOSEN = 1  # its place among the colours
_OTHERS = (0, 2, 3, 4, 5)


@dataclass(frozen=True)
class RidgeLines:
    """cv_error (R, S) of R ridge terms at the sizes (S,) above 0; `chosen` is the place of the chosen ridge."""

    sizes: NDArray[np.int64]
    ridges: Floats
    errors: Floats
    chosen: int
    best_size: int

    @property
    def log(self) -> bool:
        """Whether errors span too much for a straight axis."""
        known = self.errors[np.isfinite(self.errors) & (self.errors > 0)]
        return bool(known.size and known.max() > _TOO_UNLIKE * known.min())


def ridge_lines(curve: SizeCurve) -> RidgeLines:
    """The numbers of the figure, of a curve that has a surface."""
    surface = curve.ridge_surface
    if surface is None:
        raise ValueError("no ridge was chosen with the size of this curve; expected select_size(..., ridge='auto').")
    order = by_size(curve)
    at = int(np.flatnonzero(surface.ridges == surface.ridge)[0])
    return RidgeLines(curve.sizes[order], surface.ridges, surface.errors[:, order], at, curve.best_size)


def shrinkage_words(curve: SizeCurve) -> str:
    """One sentence of the answer: how much the coefficients are shrunk; "" where there was nothing to choose."""
    surface = curve.ridge_surface
    if surface is None or surface.ridges.size < 2:
        return ""
    values = ", ".join(f"{ridge:g}" for ridge in surface.ridges)
    if surface.ridge == 0:
        others = ", ".join(f"{ridge:g}" for ridge in surface.ridges if ridge > 0)
        return f" Shrinking the coefficients (by ridge terms of {others}) did not lower the error."
    text = f" Coefficients are shrunk by a ridge term of {surface.ridge:g}, chosen with the size from {values}"
    if 0 in surface.ridges:
        lowest = [float(surface.errors[surface.ridges == ridge].min()) for ridge in (0.0, surface.ridge)]
        if curve.loss.squared:
            lowest = [float(np.sqrt(2.0 * error)) for error in lowest]
        plain, shrunken = (number(error, 3) for error in lowest)
        error = "RMSE" if curve.loss.squared else "cv_error"
        text += f"; the lowest {error} on held-out rows was {shrunken} with it and {plain} without"
    return f"{text}."


def plot_ridge_surface(curve: SizeCurve, ax: Axes | None = None) -> Axes:
    """Draw cv_error against size for every ridge that was tried; the chosen one stands out."""
    ax = new_axes(ax)
    draw_ridge_surface(ridge_lines(curve), ax)
    return ax


def draw_ridge_surface(lines: RidgeLines, ax: Axes) -> None:
    """The drawing of `ridge_lines`."""
    if lines.log:
        low, high = float(lines.errors.min()) / 1.2, float(lines.errors.max()) * 1.2
        plain_log(ax, "y", low, high)
        ax.set_ylim(low, high)
    grid(ax)
    free = iter(_OTHERS)
    for r, (ridge, error) in enumerate(zip(lines.ridges, lines.errors, strict=True)):
        own = r == lines.chosen
        place = _CHOSEN if own else next(free, None)
        (line,) = ax.plot(
            lines.sizes,
            error,
            color=QUIET if place is None else COLOURS[place],
            marker="o" if place is None else MARKERS[place],
            markersize=6 if own else 3.5,
            linewidth=2.2 if own else 1.0,
            zorder=3 if own else 2,
            label=f"ridge {ridge:g}{' (chosen)' if own else ''}",
        )
        sizes = [plural(int(k), "column") for k in lines.sizes]
        tell(line, "{0}, ridge {1}: cv_error {2}", sizes, f"{ridge:g}", [number(e, 3) for e in error])
    label_axes(ax, "size (number of columns)", "cv_error (logarithmic)" if lines.log else "cv_error")
    whole_ticks(ax)
    legend_above(ax)


def _labels(lines: RidgeLines) -> list[str]:
    return [
        f"Line chart of cv_error against size, one line for each of {plural(lines.ridges.size, 'ridge term')}. Chosen: "
        f"{lines.ridges[lines.chosen]:g}. The table below the figure has the numbers."
    ]


def _caption(curve: SizeCurve, lines: RidgeLines) -> str:
    return (
        "Error on held-out rows against the number of columns, for every ridge term: a penalty on the squares of the "
        "coefficients, in units of the scaled columns, by which they are shrunk (0: least squares). Each was searched "
        "by itself in the same folds, and the one with the lowest error at any size was chosen "
        f"({lines.ridges[lines.chosen]:g}, at {plural(lines.best_size, 'column')}); all other figures and tables are "
        "those of that ridge. The lowest of so many errors is low by luck, too."
    )


def _table(curve: SizeCurve, lines: RidgeLines, room: Room) -> FigureTable:
    texts = np.array(aligned(lines.errors.ravel(), least=3), dtype=object).reshape(lines.errors.shape)
    heads = ["Ridge", *(str(k) for k in lines.sizes)]
    rows = [[f"{ridge:g}", *texts[r]] for r, ridge in enumerate(lines.ridges)]
    return FigureTable("Table: error by ridge and size", heads, rows, "cv_error of held-out rows, by ridge and size")


RIDGE_SURFACE = PageFigure(
    "ridge_surface",
    "How much shrinkage",
    lambda curve, size, room: ridge_lines(curve),
    (draw_ridge_surface,),
    labels=_labels,
    caption=_caption,
    table=_table,
    applies=lambda curve: curve.ridge_surface is not None and curve.ridge_surface.ridges.size > 1,
)
