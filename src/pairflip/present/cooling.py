"""Annealing curves: a bad schedule shows as chains that end apart or were cold from the start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pairflip.present import cooling_numbers
from pairflip.present.style import COLOURS, QUIET, TEXT, label_axes, new_axes
from pairflip.text import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairflip.annealing import Trace
    from pairflip.crossval.curve import SizeCurve


def plot_anneal(
    source: SizeCurve | Trace,
    ax: Axes | None = None,
    size: int | None = None,
    quantity: Literal["energy", "acceptance"] = "energy",
) -> Axes:
    """Draw energy or acceptance against temperature, hot on the left, one line a chain.

    Energies are drawn above the best one that is known, on a logarithmic axis: chains that ended at the best energy end
    on the floor of the figure, all others above it. `source` is a `SizeCurve` (the final fit of `size`, None: the
    recommended one) or the `Trace` of one annealing.
    """
    if quantity not in ("energy", "acceptance"):
        raise ValueError(f"quantity is {quantity!r}; expected 'energy' or 'acceptance'.")
    ax = new_axes(ax, width=5.0)
    curves = cooling_numbers.cooling(source, size)
    for chain in curves.above if quantity == "energy" else curves.acceptance:
        ax.plot(curves.temperature, chain, color=COLOURS[0], linewidth=1, alpha=0.45)
    if curves.temperature.size:
        ax.set_xscale("log")
        ax.invert_xaxis()
        if quantity == "energy":
            ax.set_yscale("log")
            ax.axhline(curves.floor, color=QUIET, linewidth=1, linestyle="--", zorder=0)
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
    y = "energy above the best" if quantity == "energy" else "accepted fraction of the flips"
    label_axes(ax, "temperature 1/β (cooling to the right)", y, f"{plural(curves.size, 'column')}, {curves.cut}")
    return ax
