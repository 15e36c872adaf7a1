"""Figures: functions that draw a record on Axes and compute nothing."""

from pairflip.report.compared import plot_compared_errors, plot_energy_seconds
from pairflip.report.figures_by_column import plot_bands, plot_frequencies, plot_inclusion, plot_selection_counts
from pairflip.report.figures_by_size import plot_paths, plot_ridge_surface, plot_size_curve
from pairflip.report.figures_held_out import plot_predictions, plot_roc, plot_survival
from pairflip.report.figures_temperature import plot_anneal, plot_theory
from pairflip.report.save import save_figures

__all__ = [
    "plot_anneal",
    "plot_bands",
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
