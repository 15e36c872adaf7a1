"""A record in a notebook: the answer, a table and a figure, as HTML without scripts and without a style sheet.

Notebooks clean what they show, and some are dark: colours are attributes, and text and axes have the colour of the
notebook's own text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup, escape

from pairflip.report import probability_words as words
from pairflip.report.answer import answer_of
from pairflip.report.compared import cautions, draw_compared_errors, method_table, plot_compared_errors, sentence
from pairflip.report.curve_tables import size_table
from pairflip.report.figures_by_column import inclusion_bars, inclusion_shape, plot_inclusion
from pairflip.report.figures_by_size import SIZE_CURVE, ErrorBars, draw_size_curve, plot_size_curve
from pairflip.report.figures_temperature import plot_anneal
from pairflip.report.proof_words import HEADS as PROOF_HEADS
from pairflip.report.proof_words import best_rows, count_words, proof_words
from pairflip.report.registry import FigureLimits, FigureTable
from pairflip.report.renderer import drawn, tag
from pairflip.report.style import COLOURS, FAINT, QUIET, page_axes
from pairflip.report.vocabulary import pieces
from pairflip.selection.decide import UNCERTAIN
from pairflip.text import aligned, clean, column_labels, number, percent, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairflip.comparison.record import Comparison
    from pairflip.search.best_subset import Trace
    from pairflip.search.posterior import Posterior
    from pairflip.search.prove import Proof
    from pairflip.search.sampling import Samples
    from pairflip.selection.curve import SizeCurve

# At least 3:1 on white and on the dark of notebooks; the rest has the colour of the notebook's own text.
_COLOURS = {
    COLOURS[0]: "#2f81c7",
    COLOURS[1]: "#c9630f",
    COLOURS[2]: "#1c8f6e",
    COLOURS[3]: "#b76092",
    COLOURS[4]: "#3c97c9",
    COLOURS[5]: "#b0790a",
}
_OPACITY = {QUIET: "0.6", FAINT: "0.15"}
_PLOTS: dict[str, tuple[Callable[[Any, Axes], Axes], float, float]] = {  # with width and height in inches
    "SizeCurve": (plot_size_curve, 6.4, 4.0),
    "Comparison": (plot_compared_errors, 7.0, 4.6),
    "Trace": (plot_anneal, 5.4, 3.8),
}
_MOST_COLUMNS = 50
_MOST_SETS = 20
_CELL, _LEFT, _NUMBER = "padding: 2px 8px", "text-align: left", "text-align: right; white-space: nowrap"


def _paint(kind: str, colour: str) -> dict[str, str]:
    """Colours as attributes."""
    kind = "fill" if kind == "text" else kind
    if colour in _COLOURS:
        return {kind: _COLOURS[colour]}
    return {kind: "currentColor", **({f"{kind}-opacity": _OPACITY[colour]} if colour in _OPACITY else {})}


def _chart(draw: Callable[[Any, Axes], None], numbers: Any, label: str, height: float) -> Markup:
    """A figure of the page with a size of its own; what the pointer would show is the title of a mark."""
    width = 820.0
    look = {
        "width": f"{0.85 * width:g}",
        "fill": "none",
        "font-family": "system-ui, sans-serif",
        "style": "max-width: 100%; height: auto",
    }
    return drawn(draw, numbers, page_axes(width, height, fixed=False), label, look, _paint)


def _small(text: str) -> Markup:
    """A paragraph in small print; nothing where there is no text."""
    return tag("p", tag("small", text)) if text else Markup("")


def _note(text: str) -> Markup:
    """What a reader should know besides, if anything."""
    return _small(f"Note: {clean(text)}." if text else "")


def _html(*parts: Markup) -> str:
    return str(tag("div", Markup("").join(parts)))


def curve_html(curve: SizeCurve) -> str:
    """The answer, the size figure and the table of sizes."""
    answer, sizes, bars = answer_of(curve), size_table(curve), ErrorBars(curve)
    bullets, more = (
        Markup("").join(tag(element, tag("b", f"{label}:") + " " + _sentence(text)) for label, text in paragraphs)
        for element, paragraphs in (("li", answer.bullets), ("p", answer.more))
    )
    more += Markup("").join(tag("p", text) for text in answer.cautions)
    rows = [
        [*row, ", ".join(_names(curve.names, curve.supports[curve.at(size)].tolist()))]
        for row, size in zip(sizes.rows, np.sort(curve.sizes).tolist(), strict=True)
    ]
    return _html(
        tag("p", tag("strong", _sentence(answer.headline))),
        tag("ul", bullets),
        tag("details", tag("summary", "More about this answer") + more) if more else Markup(""),
        _chart(draw_size_curve, bars, SIZE_CURVE.words_about(curve, bars, FigureLimits()).labels[0], 380.0),
        _table([*sizes.heads, "Columns"], rows, {0, len(sizes.heads) - 1, len(sizes.heads)}),
        _small(sizes.caption),
        *map(_note, curve.notes),
    )


def trace_html(trace: Trace) -> str:
    """What was found and how many chains agree, then the coefficients."""
    chains = trace.supports.shape[0]
    agree = f"{percent(trace.agreement)} of {plural(chains, 'chain')} found these columns"
    if trace.solved:
        agree = "Every set of this size was looked at"
    doubt = ": more chains or a slower schedule may find better ones" if trace.agreement < UNCERTAIN else ""
    columns, counted = trace.best_support.tolist(), "column" if trace.groups is None else "group"
    names = _names(trace.names, columns)
    more = len(columns) - len(names)
    # One column of coefficients, or one for each of several targets.
    coefs = np.reshape(trace.best_coef, (len(columns), -1))[: len(names)]
    table = np.vstack([coefs, np.atleast_1d(trace.best_intercept)])
    values = [aligned(list(of_target), least=4) for of_target in table.T]
    rows = [list(row) for row in zip([*names, "(constant)"], *values, strict=True)]
    heads = ["Coefficient"] if len(values) == 1 else [f"Target {t + 1}" for t in range(len(values))]
    told = f" {agree}{doubt}; energy {number(trace.best_energy)}, engine {trace.engine}, {number(trace.seconds, 2)} s."
    proof = "" if trace.proof is None else proof_words(trace.proof, chosen=trace.best_support.tolist())
    return _html(
        tag("p", tag("strong", f"The best {plural(trace.k, counted)} found.") + told),
        tag("p", _sentence(proof)) if proof else Markup(""),
        _table(["Column", *heads], rows, {0}),
        _small(f"{plural(more, 'more column')} not shown." if more else ""),
        _note(trace.note),
    )


def proof_html(proof: Proof) -> str:
    """What is proved, then the best sets and how many are nearly as good."""
    more, counts = len(proof.energies) - _MOST_SETS, count_words(proof)
    return _html(
        tag("p", _sentence(proof_words(proof))),
        _table(PROOF_HEADS, best_rows(proof, most=_MOST_SETS), {len(PROOF_HEADS) - 1}),
        _small(f"{plural(more, 'more set')} not shown." if more > 0 else ""),
        tag("p", counts) if counts else Markup(""),
        _note(proof.note),
    )


def samples_html(samples: Samples) -> str:
    """Which columns are in most sets, then their probabilities and the sets that were drawn most often."""
    tables = [words.inclusion_table(samples, inclusion_bars(samples, _MOST_SETS)), words.set_table(samples)]
    return _probabilities(words.set_answer(samples), words.set_doubts(samples), tables, samples.note)


def posterior_html(posterior: Posterior) -> str:
    """Which columns belong in the model and what was assumed, then probabilities with coefficients, and models."""
    texts = [posterior.assumptions, *words.model_doubts(posterior)]
    tables = [words.column_table(posterior, inclusion_bars(posterior, _MOST_SETS)), words.model_table(posterior)]
    return _probabilities(words.model_answer(posterior), texts, tables, posterior.note)


def _probabilities(answer: str, texts: Iterable[str], tables: Iterable[FigureTable], note: str) -> str:
    """The answer, texts and tables of a record of probabilities."""
    shown = [(_table(each.heads, each.rows, set(range(each.names))), _small(f"{each.caption}.")) for each in tables]
    texts_shown = (tag("p", text) for text in texts)
    return _html(tag("p", _sentence(answer)), *texts_shown, *(part for both in shown for part in both), _note(note))


def comparison_html(found: Comparison) -> str:
    """Who predicts best, errors against size, and the table of methods."""
    label = "Error on held-out rows against the number of columns, a line for each method; the table has the numbers."
    table = method_table(found)
    return _html(
        tag("p", sentence(found)),
        _chart(draw_compared_errors, found, label, 470.0),
        _table(table.heads, table.rows, {0, len(table.heads) - 1}),
        *map(_small, (table.caption, *cautions(found))),
    )


def _names(names: Sequence[str], columns: Sequence[int]) -> list[str]:
    return column_labels(names, columns[:_MOST_COLUMNS], 48)


def _sentence(sentence: str) -> Markup:
    """A sentence with its names set apart."""
    return Markup("").join(tag("b", text) if is_name else escape(text) for text, is_name in pieces(sentence))


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], left: set[int]) -> Markup:
    """A table of texts; the columns `left` are words, all others numbers."""

    def line(cells: Sequence[str], kind: str) -> Markup:
        side = [f"{_CELL}; {_LEFT if i in left else _NUMBER}" for i in range(len(cells))]
        return tag("tr", Markup("").join(tag(kind, cell, style=s) for cell, s in zip(cells, side, strict=True)))

    body = Markup("").join(line(row, "td") for row in rows)
    look = "color: inherit; font-size: inherit; border-collapse: collapse"
    return tag("table", tag("thead", line(heads, "th")) + tag("tbody", body), style=look)


def plot(record: Any, ax: Axes | None) -> Axes:
    """The figure of a record; without axes, in a figure that pyplot knows, so that a notebook shows it."""
    draw, width, height = _PLOTS.get(type(record).__name__, (plot_inclusion, 6.0, 0.0))
    if ax is None:
        import matplotlib.pyplot as plt

        height = height or inclusion_shape(inclusion_bars(record), True)[1] / 100
        ax = plt.subplots(figsize=(width, height), layout="constrained")[1]
    return draw(record, ax)
