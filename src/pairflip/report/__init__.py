"""What a reader sees: the numbers of figures, how they are drawn, the page, the files, records in notebooks.

The figures of the page and of the files, in their order; a new one is one more line here, or `register` from elsewhere.
"""

from __future__ import annotations

from pairflip.report.figures_by_column import BANDS, FREQUENCIES, PROBABILITIES, SELECTION_COUNTS
from pairflip.report.figures_by_size import PATHS, RIDGE_SURFACE, SIZE_CURVE
from pairflip.report.figures_held_out import CLASSES, PREDICTIONS, SURVIVAL
from pairflip.report.figures_temperature import ANNEALING
from pairflip.report.page import write_report
from pairflip.report.registry import FigureLimits, FigureTable, FigureWords, PageFigure, register

__all__ = ["FigureLimits", "FigureTable", "FigureWords", "PageFigure", "register", "write_report"]

for _figure in (SIZE_CURVE, BANDS, FREQUENCIES, PROBABILITIES, RIDGE_SURFACE, SELECTION_COUNTS, PATHS):
    register(_figure)
for _figure in (PREDICTIONS, CLASSES, SURVIVAL, ANNEALING):
    register(_figure)
