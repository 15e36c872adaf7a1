"""What a reader sees: the numbers of figures, how they are drawn, the page, the files, records in notebooks.

The figures of the page and of the files, in their order; a new one is one more line here, or `register` from elsewhere.
"""

from __future__ import annotations

from pairflip.report.cooling import ANNEALING
from pairflip.report.frequencies import FREQUENCIES
from pairflip.report.page import write_report
from pairflip.report.paths import PATHS
from pairflip.report.predictions import PREDICTIONS
from pairflip.report.probabilities import PROBABILITIES
from pairflip.report.registry import FigureTable, PageFigure, Room, register
from pairflip.report.ridge_surface import RIDGE_SURFACE
from pairflip.report.roc import ROC
from pairflip.report.selection_counts import SELECTION_COUNTS
from pairflip.report.size_curve import SIZE_CURVE
from pairflip.report.survival import SURVIVAL

__all__ = ["FigureTable", "PageFigure", "Room", "register", "write_report"]

register(SIZE_CURVE)
register(FREQUENCIES)
register(PROBABILITIES)
register(RIDGE_SURFACE)
register(SELECTION_COUNTS)
register(PATHS)
register(PREDICTIONS)
register(ROC)
register(SURVIVAL)
register(ANNEALING)
