"""Figures: functions that draw a record on Axes and compute nothing."""

from pairflip.report.compare_figures import plot_compared_errors, plot_energy_seconds
from pairflip.report.cooling import plot_anneal
from pairflip.report.frequencies import plot_frequencies
from pairflip.report.inclusion import plot_inclusion
from pairflip.report.paths import plot_paths
from pairflip.report.predictions import plot_predictions
from pairflip.report.ridge_surface import plot_ridge_surface
from pairflip.report.roc import plot_roc
from pairflip.report.save import save_figures
from pairflip.report.selection_counts import plot_selection_counts
from pairflip.report.size_curve import plot_size_curve
from pairflip.report.survival import plot_survival
from pairflip.report.theory import plot_theory

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
