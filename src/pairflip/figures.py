"""Figures: functions that draw a record on Axes and compute nothing."""

from pairflip.present.compare_figures import plot_compared_errors, plot_energy_seconds
from pairflip.present.cooling import plot_anneal
from pairflip.present.frequencies import plot_frequencies
from pairflip.present.inclusion import plot_inclusion
from pairflip.present.paths import plot_paths
from pairflip.present.predictions import plot_predictions
from pairflip.present.ridge_surface import plot_ridge_surface
from pairflip.present.roc import plot_roc
from pairflip.present.save import save_figures
from pairflip.present.selection_counts import plot_selection_counts
from pairflip.present.size_curve import plot_size_curve
from pairflip.present.survival import plot_survival
from pairflip.present.theory import plot_theory

__all__ = [
    "plot_anneal",
    "plot_compared_errors",
    "plot_energy_seconds",
    "plot_frequencies",
    "plot_inclusion",
    "plot_paths",
    "plot_predictions",
    "plot_ridge_surface",
    "plot_roc",
    "plot_selection_counts",
    "plot_size_curve",
    "plot_survival",
    "plot_theory",
    "save_figures",
]
