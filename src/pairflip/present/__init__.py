"""What a reader sees: the numbers of figures, how they are drawn, the page, the files, records in notebooks.

The figures of the page and of the files, in their order; a new one is one more line here, or `register` from elsewhere.
"""

from __future__ import annotations

from pairflip.present.cooling import ANNEALING
from pairflip.present.frequencies import FREQUENCIES
from pairflip.present.page import write_report
from pairflip.present.paths import PATHS
from pairflip.present.predictions import PREDICTIONS
from pairflip.present.probabilities import PROBABILITIES
from pairflip.present.registry import FigureTable, PageFigure, Room, register
from pairflip.present.ridge_surface import RIDGE_SURFACE
from pairflip.present.roc import ROC
from pairflip.present.selection_counts import SELECTION_COUNTS
from pairflip.present.size_curve import SIZE_CURVE
from pairflip.present.survival import SURVIVAL

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
