"""Figures inside HTML: one ``<svg>`` for each panel, drawn by matplotlib with the renderer of the page."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from pairflip.present.registry import PageFigure
from pairflip.present.style import Tips, figure_of, page_axes, told

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairflip.present.renderer import Paint


class TipBook:
    """Texts under the pointer, each list once: the page's script puts them together."""

    def __init__(self) -> None:
        self.forms: list[tuple[str, list[int]]] = []
        self.columns: list[str | tuple[str, ...]] = []
        self._places: dict[Any, int] = {}

    def place(self, tips: Tips) -> int:
        """Where these texts are kept."""
        if tips not in self._places:
            self._places[tips] = len(self.forms)
            self.forms.append((tips.form, [self._column(column) for column in tips.columns]))
        return self._places[tips]

    def _column(self, column: str | tuple[str, ...]) -> int:
        key = ("column", column)
        if key not in self._places:
            self._places[key] = len(self.columns)
            self.columns.append(column)
        return self._places[key]


def page_svgs(figure: PageFigure, numbers: Any, book: TipBook) -> list[Markup]:
    """A figure for the page: its panels, or its only panel for a wide and for a narrow page."""
    if figure.follows or len(figure.draw) > 1:
        variants = [(draw, "panel", i, True) for i, draw in enumerate(figure.draw)]
    else:
        variants = [(figure.draw[0], "wide", 0, True), (figure.draw[0], "narrow", 0, False)]
    labels = figure.panel_labels(numbers)
    svgs = []
    for draw, kind, panel, wide in variants:
        width, height = figure.shape(numbers, wide) if kind != "panel" or figure.follows else (400.0, 330.0)
        ax = page_axes(width, height, fixed=figure.follows)
        look = {"class": f"chart {kind}", "data-role": f"{figure.name}-{panel}"}
        svgs.append(drawn(draw, numbers, ax, labels[panel], look, book=book))
    return svgs


def drawn(
    draw: Callable[[Any, Axes], None],
    numbers: Any,
    ax: Axes,
    label: str,
    attributes: dict[str, str],
    paint: Paint | None = None,
    book: TipBook | None = None,
) -> Markup:
    """One panel as SVG.

    Parameters
    ----------
    draw, numbers, ax
        What is drawn where; the axes are those of `page_axes`.
    label, attributes
        Text alternative and attributes of the ``<svg>``.
    paint
        How elements get their colours; None: by classes of the page's style sheet.
    book
        Where texts under the pointer are kept; None writes them into the marks.
    """
    from pairflip.present.renderer import PageRenderer, page_paint

    draw(numbers, ax)
    figure = figure_of(ax)
    width, height = figure.get_size_inches() * figure.dpi
    at = None if book is None else book.place
    renderer = PageRenderer(float(width), float(height), figure.dpi, paint or page_paint, told(figure), at)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # emoji in names
        figure.draw(renderer)
    return renderer.svg(label, attributes)
