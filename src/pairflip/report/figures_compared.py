"""Figures of a comparison: error against size, and energy against seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pairflip.comparison.record import Comparison
from pairflip.report.comparison_words import lowest_energies, rmse, rmse_se
from pairflip.report.numbers import needs_log
from pairflip.report.style import (
    COLOURS,
    INK,
    MARKERS,
    QUIET,
    label_axes,
    legend_above,
    new_axes,
    plain_log,
    size_axis,
    tell,
)
from pairflip.text import clean, number, plural, plus_minus

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OURS_LOOK = {"normal": ("o", "-"), "quick": ("v", ":"), "thorough": ("X", "--")}
"""Marker and line of ours, all of them in one colour and filled."""
_LEAST_RANGE = 4.0  # of CPU seconds
_ROOM = 1.5  # above the error without columns, or above the lowest


@dataclass(frozen=True)
class MethodPoint:
    """Seconds of a method, and how much higher its energies are than the lowest found, in per cent, on average."""

    title: str
    name: str
    seconds: float
    excess: float


def energy_points(found: Comparison) -> list[MethodPoint]:
    """Numbers of the figure of energies: methods that have sizes."""
    lowest = lowest_energies(found)
    points = []
    for method in found.finished:
        if not method.sized:
            continue
        rows = [(method.at(size), low) for size, low in zip(found.sizes, lowest, strict=True)]
        over = [row.energy / low - 1.0 for row, low in rows if row is not None and np.isfinite(row.energy) and low > 0]
        if over:
            points.append(MethodPoint(clean(method.title), method.name, method.seconds, 100.0 * float(np.mean(over))))
    return points


def looks(names: list[str]) -> dict[str, dict[str, Any]]:
    """Colour, marker and line of each method: ours in one colour, the others in turn."""
    styles = {name: {"color": COLOURS[0], "marker": m, "linestyle": line} for name, (m, line) in OURS_LOOK.items()}
    palette, lines = [*COLOURS[1:6], INK, QUIET], ("-", "--", ":")
    for at, name in enumerate(name for name in names if name not in OURS_LOOK):
        styles[name] = {"color": palette[at % 7], "marker": MARKERS[1 + at % 6], "linestyle": lines[at // 7 % 3]}
    return styles


def draw_compared_errors(comparison: Comparison, ax: Axes) -> None:
    """RMSE of every method against size; errors far above that without columns are beyond the axis."""
    methods, without = comparison.finished, float(rmse(comparison.without))
    rows = {method.name: [row for row in method.rows if np.isfinite(row.cv_error)] for method in methods}
    every = [float(rmse(row.cv_error)) for of_method in rows.values() for row in of_method] or [without]
    low = min(every)
    top = min(max(every), _ROOM * max(without, low))
    if low > 0 and needs_log(np.array([low, top]) ** 2):
        plain_log(ax, "y", low, top)
        ax.set_ylim(low / 1.2, top * 1.2)
    else:
        ax.set_ylim(0.9 * low, 1.05 * top)
    styles = looks([method.name for method in methods])
    for method in methods:
        style, title = styles[method.name], clean(method.title)
        each, spread = (np.array([getattr(r, of) for r in rows[method.name]]) for of in ("cv_error", "cv_error_se"))
        error, spread = rmse(each), rmse_se(each, spread)
        if not method.sized:
            across = {"color": style["color"], "linestyle": "-."}
            ax.axhline(float(error[0]), linewidth=1.2, zorder=1, label=f"{title} (no sizes)", **across)
            continue
        sizes = [row.size or 0 for row in rows[method.name]]
        if method.name == "normal":
            ax.vlines(sizes, error - spread, error + spread, color=style["color"], linewidth=0.8)
        (line,) = ax.plot(sizes, error, markersize=4, linewidth=1.3, label=title, **style)
        texts = [plus_minus(e, s) for e, s in zip(error, spread, strict=True)]
        tell(line, "{0}, {1}: RMSE {2}", title, [plural(k, "column") for k in sizes], texts)
    if without <= ax.get_ylim()[1]:
        ax.axhline(without, color=INK, linewidth=1, zorder=1, label="no columns")
    size_axis(ax, "column", "RMSE")
    legend_above(ax)


def draw_energy_points(points: list[MethodPoint], ax: Axes) -> None:
    """The drawing of `energy_points`; 0.01 is added, so that those with the lowest energies have a place."""
    styles = looks([point.name for point in points])
    x = [max(point.seconds, 1e-3) for point in points]
    y = [point.excess + 0.01 for point in points]
    if points:
        low, high = min(x), max(x)
        middle = (low * high) ** 0.5
        # An order of magnitude at least, so that there is room for the numbers below.
        limits = min(low / 1.3, middle / 4), max(high * 1.3, middle * 4)
        if high < _LEAST_RANGE * low:  # so that ticks are not a few per cent apart
            low, high = middle / _LEAST_RANGE**0.5, middle * _LEAST_RANGE**0.5
        plain_log(ax, "x", low, high)
        plain_log(ax, "y", min(y), max(y))
    for point, seconds, excess in zip(points, x, y, strict=True):
        style = styles[point.name] | {"linestyle": "none", "markersize": 7}
        face = style["color"] if point.name in OURS_LOOK else "none"
        (mark,) = ax.plot([seconds], [excess], markerfacecolor=face, label=point.title, **style)
        texts = [number(point.seconds, 3)], [number(point.excess, 3)]
        tell(mark, "{0}: {1} s, {2} % above the lowest", point.title, *texts)
    if points:
        ax.set_xlim(*limits)
    label_axes(ax, "CPU seconds", "training energy above the lowest, % (+ 0.01)")
    legend_above(ax)


def plot_compared_errors(found: Comparison, ax: Axes | None = None) -> Axes:
    """Draw the RMSE of every method against size."""
    ax = new_axes(ax, 7.0, 4.6)
    draw_compared_errors(found, ax)
    return ax


def plot_energy_seconds(found: Comparison, ax: Axes | None = None) -> Axes:
    """Draw how far above the lowest the training energies of every method are, against CPU seconds."""
    ax = new_axes(ax, 7.0, 4.6)
    draw_energy_points(energy_points(found), ax)
    return ax
