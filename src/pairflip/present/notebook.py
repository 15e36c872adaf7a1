"""A record in a notebook: the answer, a table and a figure, as HTML without scripts and without a style sheet.

Notebooks clean what they show, and some are dark: colours are attributes, and text and axes have the colour of the
notebook's own text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from pairflip.crossval.answer import Piece, answer_of
from pairflip.crossval.verdict import UNCERTAIN
from pairflip.present.charts import size_chart
from pairflip.present.cooling import plot_anneal
from pairflip.present.numbers import error_bars
from pairflip.present.size_curve import plot_size_curve
from pairflip.present.size_tables import HEADS, explanation, size_rows
from pairflip.present.svg import Chart, tag
from pairflip.text import aligned, clean, column_labels, number, percent, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairflip.annealing import Trace
    from pairflip.crossval.curve import SizeCurve

_BLUE, _ORANGE, _GREEN = "#2f81c7", "#c9630f", "#1c8f6e"  # at least 3:1 on white and on the dark of notebooks
_QUIET = {"stroke": "currentColor", "stroke_opacity": "0.6"}
_TEXT = {"fill": "currentColor", "font_size": "12.5"}
_LOOKS: dict[str, dict[str, str]] = {
    "axis": _QUIET,
    "grid": {"stroke": "currentColor", "stroke_opacity": "0.15"},
    "tick": {**_TEXT, "fill_opacity": "0.8"},
    "tick over": {**_TEXT, "fill_opacity": "0.8"},
    "title": _TEXT,
    "tick best": {**_TEXT, "fill": _ORANGE, "font_weight": "600"},
    "tick one-se": {**_TEXT, "fill": _GREEN, "font_weight": "600"},
    "mark best": {"stroke": _ORANGE},
    "mark one-se": {"stroke": _GREEN, "stroke_dasharray": "4 3"},
    "without": {"stroke": "currentColor", "stroke_width": "1.2"},
    "limit": {**_QUIET, "stroke_dasharray": "6 4"},
    "training": {**_QUIET, "fill": "none", "stroke_dasharray": "1.5 4", "stroke_linecap": "round"},
    "line c0": {"fill": "none", "stroke": _BLUE, "stroke_width": "2"},
    "whisker c0": {"fill": "none", "stroke": _BLUE, "stroke_width": "1.5"},
    "dot c0": {"fill": _BLUE},
    "x-ticks": {},
    "y-ticks": {},
}
_MOST_COLUMNS = 50
_CELL, _LEFT, _NUMBER = "padding: 2px 8px", "text-align: left", "text-align: right; white-space: nowrap"


class PlainChart(Chart):
    """A chart that needs no style sheet; what the pointer would show is the title of an element."""

    def draw(self, name: str, text: str | Markup | None = None, **attributes: object) -> Markup:
        """An element with the look of its class as attributes."""
        tip = attributes.pop("data_tip", None)
        look = _LOOKS[str(attributes.pop("class_"))]
        return tag(name, tag("title", str(tip)) if tip else text, **look, **attributes)

    def svg(self, **data: object) -> Markup:
        """The chart with a size of its own."""
        return tag(
            "svg",
            Markup("").join(self.elements),
            viewBox=f"0 0 {self.width:g} {self.height:g}",
            width=f"{0.85 * self.width:g}",
            role="img",
            aria_label=self.label,
            font_family="system-ui, sans-serif",
            style="max-width: 100%; height: auto",
        )


def curve_html(curve: SizeCurve) -> str:
    """The answer, the size figure and the table of sizes."""
    answer = answer_of(curve)
    cautions = Markup("").join(tag("li", text) for text in answer.cautions)
    rows = [
        [*row.cells, ", ".join(_names(curve.names, curve.supports[curve.at(row.size)].tolist()))]
        for row in size_rows(curve)
    ]
    parts = [
        tag("p", tag("strong", _pieces(answer.headline)) + " " + _pieces(answer.details)),
        tag("ul", cautions) if cautions else Markup(""),
        size_chart(error_bars(curve), True, PlainChart),
        _table([*HEADS, "Columns"], rows, {0, len(HEADS) - 1, len(HEADS)}),
        tag("p", tag("small", explanation(curve))),
        *(tag("p", tag("small", f"Note: {clean(note)}.")) for note in curve.notes),
    ]
    return str(tag("div", Markup("").join(parts)))


def trace_html(trace: Trace) -> str:
    """What was found and how many chains agree, then the coefficients."""
    what = "energy" if trace.objective == "energy" else "fixed-support leave-one-out error"
    chains = trace.supports.shape[0]
    agree = f"{percent(trace.agreement)} of {plural(chains, 'chain')} found these columns"
    doubt = ": more chains or a slower schedule may find better ones" if trace.agreement < UNCERTAIN else ""
    columns = trace.best_support.tolist()
    names = _names(trace.names, columns)
    more = len(columns) - len(names)
    values = aligned([*trace.best_coef[: len(names)], trace.best_intercept], least=4)
    rows = [list(row) for row in zip([*names, "(constant)"], values, strict=True)]
    parts = [
        tag(
            "p",
            tag("strong", f"The best {plural(trace.k, 'column')} found.") + f" {agree}{doubt}; {what} "
            f"{number(trace.best_energy)}, engine {trace.engine}, {number(trace.seconds, 2)} s.",
        ),
        _table(["Column", "Coefficient"], rows, {0}),
        tag("p", tag("small", f"{plural(more, 'more column')} not shown.")) if more else Markup(""),
        tag("p", tag("small", f"Note: {clean(trace.note)}.")) if trace.note else Markup(""),
    ]
    return str(tag("div", Markup("").join(parts)))


def _names(names: Sequence[str], columns: Sequence[int]) -> list[str]:
    return column_labels(names, columns[:_MOST_COLUMNS], 48)


def _pieces(pieces: Iterable[Piece]) -> Markup:
    """A sentence with its names set apart."""
    return Markup("").join(tag("b", text) if is_name else escape(text) for text, is_name in pieces)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], left: set[int]) -> Markup:
    """A table of texts; the columns `left` are words, all others numbers."""

    def line(cells: Sequence[str], kind: str) -> Markup:
        side = [f"{_CELL}; {_LEFT if i in left else _NUMBER}" for i in range(len(cells))]
        return tag("tr", Markup("").join(tag(kind, cell, style=s) for cell, s in zip(cells, side, strict=True)))

    body = Markup("").join(line(row, "td") for row in rows)
    look = "color: inherit; font-size: inherit; border-collapse: collapse"
    return tag("table", tag("thead", line(heads, "th")) + tag("tbody", body), style=look)


def plot_curve(curve: SizeCurve, ax: Axes | None) -> Axes:
    """cv_error against size; without axes, in a figure that pyplot knows, so that a notebook shows it."""
    return plot_size_curve(curve, _shown(6.4, 4.0) if ax is None else ax)


def plot_trace(trace: Trace, ax: Axes | None) -> Axes:
    """Energy against temperature, likewise."""
    return plot_anneal(trace, _shown(5.4, 3.8) if ax is None else ax)


def _shown(width: float, height: float) -> Axes:
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]
