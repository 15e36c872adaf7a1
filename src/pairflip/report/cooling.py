"""Annealing curves: with a bad schedule, chains end at different energies or are cold from the start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from pairflip.report.cooling_numbers import Cooling, cooling
from pairflip.report.registry import FigureTable, PageFigure, Room
from pairflip.report.style import COLOURS, QUIET, TEXT, grid, label_axes, new_axes, plain_log, set_title
from pairflip.text import aligned, percent, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairflip.search.trace import Trace
    from pairflip.selection.curve import SizeCurve

_ROWS = 12  # of the table
_COLD = "temperature 1/β (cooling to the right)"
_WHAT = ("energy above the best (logarithmic)", "accepted fraction of the flips")


def plot_anneal(
    source: SizeCurve | Trace,
    ax: Axes | None = None,
    size: int | None = None,
    quantity: Literal["energy", "acceptance"] = "energy",
) -> Axes:
    """Draw energy or acceptance against temperature, hot on the left, one line for each chain.

    Energies are drawn above the best one that is known, on a logarithmic axis: chains that ended at the best energy end
    on the floor of the figure, all others above it.

    Parameters
    ----------
    source
        A `SizeCurve` (the final fit of `size`) or the `Trace` of one annealing.
    ax
        Where to draw; a new figure if absent.
    size
        Number of columns; None is the recommended one.
    quantity
        ``"energy"`` or ``"acceptance"``.
    """
    if quantity not in ("energy", "acceptance"):
        raise ValueError(f"quantity is {quantity!r}; expected 'energy' or 'acceptance'.")
    ax = new_axes(ax, width=5.0)
    curves = cooling(source, size)
    (draw_energy if quantity == "energy" else draw_acceptance)(curves, ax)
    set_title(ax, _titles(curves)[0])
    return ax


def draw_energy(curves: Cooling, ax: Axes) -> None:
    """Energy above the best against temperature, both logarithmic."""
    if not _cools(curves, ax, _WHAT[0]):
        return
    top = max(float(curves.above.max()), 10 * curves.floor)
    plain_log(ax, "y", curves.floor, top)
    ax.set_ylim(curves.floor / 1.3, top * 1.3)
    grid(ax)
    _chains(curves, curves.above, ax)
    ax.axhline(curves.floor, color=QUIET, linewidth=1, linestyle="--", zorder=1)
    ax.annotate(
        "best",
        (0.01, curves.floor),
        xycoords=("axes fraction", "data"),
        xytext=(0, 2),
        va="bottom",
        textcoords="offset points",
        fontsize=TEXT,
        color=QUIET,
    )


def draw_acceptance(curves: Cooling, ax: Axes) -> None:
    """Accepted fraction of the flips against temperature."""
    if _cools(curves, ax, _WHAT[1]):
        grid(ax)
        _chains(curves, curves.acceptance, ax)
        ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))


def _cools(curves: Cooling, ax: Axes, what: str) -> bool:
    """Set up axes that cool to the right; False, and a remark in the figure, where nothing was annealed."""
    label_axes(ax, _COLD, what)
    if not curves.temperature.size:
        ax.set_xticks([])
        ax.set_yticks([])
        ax.text(0.5, 0.5, "not annealed at this size", transform=ax.transAxes, ha="center", fontsize=TEXT, color=QUIET)
        return False
    hot, cold = float(curves.temperature.max()), float(curves.temperature.min())
    if not hot > cold:
        hot, cold = 2 * hot, cold / 2
    plain_log(ax, "x", cold, hot)
    ax.set_xlim(hot, cold)
    return True


def _chains(curves: Cooling, values: np.ndarray, ax: Axes) -> None:
    for chain in values:
        ax.plot(curves.temperature, chain, color=COLOURS[0], linewidth=1, alpha=0.45)


def _titles(curves: Cooling) -> list[str]:
    return [f"{plural(curves.size, curves.what)}, {curves.cut}"] * 2


def _labels(curves: Cooling) -> list[str]:
    return [
        f"Line chart of {what} against temperature while cooling, {plural(curves.size, curves.what)}, {curves.cut}. "
        "The table below the figure has the numbers."
        for what in _WHAT
    ]


def _caption(curve: SizeCurve, curves: Cooling) -> str:
    return (
        "Energy above the best one that is known, and accepted fraction of the flips, while the final fit was cooled; "
        f"one line for each chain ({curves.cut}). Axes fit the size shown. Good: acceptance starts high and falls "
        "smoothly to about zero, and many chains end on the floor of the figure (“best”). A chain that ends above it "
        "was caught among other columns; what counts is the best set that it met on its way, in any of its steps. If "
        "few chains agree, use more of them or a slower schedule."
    )


def _table(curve: SizeCurve, curves: Cooling, room: Room) -> FigureTable:
    heads = ["Temperature", "Energy: lowest chain", "Median", "Highest", "Acceptance (median)"]
    return FigureTable(
        "Table: cooling", heads, _rows(curves), "Energy and acceptance by temperature, over the chains shown"
    )


def _rows(cold: Cooling) -> list[list[str]]:
    steps = cold.temperature.size
    if not steps:
        return []
    at = np.unique(np.linspace(0, steps - 1, _ROWS).round().astype(np.int64))
    energy = cold.energy[:, at]
    texts = iter(
        aligned(np.column_stack([energy.min(axis=0), np.median(energy, axis=0), energy.max(axis=0)]).ravel(), 5)
    )
    return [
        [temperature, next(texts), next(texts), next(texts), percent(float(np.median(cold.acceptance[:, t])))]
        for t, temperature in zip(at, aligned(cold.temperature[at], 3), strict=True)
    ]


ANNEALING = PageFigure(
    "annealing",
    "Cooling of the final fit",
    lambda curve, size, room: cooling(curve, size, room.chains, room.steps),
    (draw_energy, draw_acceptance),
    labels=_labels,
    titles=_titles,
    caption=_caption,
    table=_table,
    shape=lambda curves, wide: (400.0, 330.0),
    follows=True,
    place="search",
    applies=lambda curve: bool(np.isfinite(curve.annealing.energy).any()),
)
