"""Figures inside HTML: one ``<svg>`` for each panel, drawn by matplotlib with the renderer of the page."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from pairflip.report.registry import PageFigure
from pairflip.report.style import Tips, figure_of, page_axes, told, wipe

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairflip.report.renderer import Paint


_PANEL = (400.0, 330.0)


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


def page_svgs(figure: PageFigure, numbers: Sequence[Any], book: TipBook) -> list[list[Markup]]:
    """A figure for the page, for each of `numbers`: its panels, or its only panel for a wide and for a narrow page."""
    side_by_side = figure.follows or len(figure.draw) > 1
    kinds = [("panel", i) for i in range(len(figure.draw))] if side_by_side else [("wide", 0), ("narrow", 0)]
    found: list[list[Markup]] = [[] for _ in numbers]
    for kind, panel in kinds:
        ax = None
        for each, svgs in zip(numbers, found, strict=True):
            if ax is None or not figure.follows:
                shape = figure.shape(each, kind != "narrow") if figure.follows or not side_by_side else _PANEL
                ax = page_axes(*shape, fixed=figure.follows)
            else:
                wipe(ax)
            look = {"class": f"chart {kind}", "data-role": f"{figure.name}-{panel}"}
            svgs.append(drawn(figure.draw[panel], each, ax, figure.panel_labels(each)[panel], look, book=book))
    return found


def drawn(
    draw: Callable[[Any, Axes], None],
    numbers: Any,
    ax: Axes,
    label: str,
    attributes: dict[str, str],
    paint: Paint | None = None,
    book: TipBook | None = None,
) -> Markup:
    """One panel as SVG."""
    from pairflip.report.renderer import PageRenderer, page_paint

    draw(numbers, ax)
    figure = figure_of(ax)
    width, height = figure.get_size_inches() * figure.dpi
    at = None if book is None else book.place
    renderer = PageRenderer(float(width), float(height), figure.dpi, paint or page_paint, told(figure), at)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # emoji in names
        figure.draw(renderer)
    return renderer.svg(label, attributes)
