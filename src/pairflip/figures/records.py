"""What `plot` of a record draws: a figure that pyplot knows, so that a notebook or `plt.show()` shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairflip.figures.cooling import plot_anneal
from pairflip.figures.size_curve import plot_size_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairflip.annealing import Trace
    from pairflip.crossval.curve import SizeCurve


def plot_curve(curve: SizeCurve, ax: Axes | None) -> Axes:
    """cv_error against size."""
    return plot_size_curve(curve, _shown(6.4, 4.0) if ax is None else ax)


def plot_trace(trace: Trace, ax: Axes | None) -> Axes:
    """Energy against temperature."""
    return plot_anneal(trace, _shown(5.4, 3.8) if ax is None else ax)


def _shown(width: float, height: float) -> Axes:
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]
