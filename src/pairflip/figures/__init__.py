"""Figures: functions that draw a record on Axes and compute nothing."""

from pairflip.figures.cooling import plot_anneal
from pairflip.figures.paths import plot_paths
from pairflip.figures.predictions import plot_predictions
from pairflip.figures.save import save_figures
from pairflip.figures.selection_counts import plot_selection_counts
from pairflip.figures.size_curve import plot_size_curve
from pairflip.figures.theory import plot_theory

__all__ = [
    "plot_anneal",
    "plot_paths",
    "plot_predictions",
    "plot_selection_counts",
    "plot_size_curve",
    "plot_theory",
    "save_figures",
]
