"""What stands on the pages of comparisons, of probabilities and of sets that were drawn, and their figures as files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pairflip
from pairflip.report import comparison_words as compared
from pairflip.report import probability_words as words
from pairflip.report.compare_figures import (
    compared_errors,
    draw_compared_errors,
    draw_energy_points,
    energy_points,
    plot_compared_errors,
    plot_energy_seconds,
)
from pairflip.report.embed import drawn
from pairflip.report.inclusion import InclusionBars, draw_inclusion, inclusion_bars, inclusion_shape, plot_inclusion
from pairflip.report.page import Drawing, Page, Section
from pairflip.report.registry import FigureTable
from pairflip.report.run_info import About, Pairs, flat
from pairflip.report.save import save_all
from pairflip.report.style import figure_of, page_axes
from pairflip.text import clean, number, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairflip.comparison.record import Comparison
    from pairflip.search.averaged import Posterior
    from pairflip.search.samples import Samples

FIGURES = {"errors": plot_compared_errors, "energy_seconds": plot_energy_seconds}
_SHARED_NAMES = (
    "Names that several columns share carry the index of their column (counting from 0, as in Python) in square "
    "brackets. "
)
_PRIOR = "Liang, Paulo, Molina, Clyde and Berger (2008) describe Zellner's prior and these probabilities."
_FLIPS = "Sets are drawn by exchanging a pair of columns at a time, after Obuchi and Kabashima (2016)."
_METHODS = (
    "Every method got the training rows of each fold, and nothing of the others. Supports were fitted by least squares "
    "on the training rows; methods without sizes predict by themselves."
)
_ERRORS = (
    "Error on held-out rows against the number of columns; bars are one standard error of {reference}. Straight "
    "lines across: methods without sizes, and the error without columns. Errors far above that are beyond the axis."
)
_SECONDS = (
    "How much higher the training energies on all rows are than the lowest that any method found, on average over "
    "sizes, against CPU seconds of the whole search on one thread. Further down is better, further left is faster."
)
_MATRICES = {
    "cv_error": ("error", "cv_error of every method at every size."),
    "energy": ("training energy", "Training energy on all rows, divided by the lowest that any method found."),
    "overlap": (
        "shared columns",
        "How much of the support of {reference} of that size, on all rows, a method has, too.",
    ),
}


def comparison_page(found: Comparison, about: About) -> Page:
    """The page of methods compared on the same folds."""
    sizes = f"sizes {found.sizes[0]}" + (f" to {found.sizes[-1]}" if len(found.sizes) > 1 else "")
    reference = compared.reference_title(found)
    methods = [(compared.title_of(method), clean(method.about)) for method in found.methods]
    facts = [
        ("Version", f"pairflip {found.version}"),
        ("Data", f"{found.n_rows:,} rows, {len(found.names):,} columns; hash {found.data_hash}"),
        ("Folds", f"{found.n_folds:,}: {found.folds}"),
        ("Seed", str(found.seed)),
    ]
    label = "{}, a line or mark for each method. The tables below have the numbers."
    errors, seconds = "Error against size", "Energy against seconds"
    lines = _both_widths(draw_compared_errors, compared_errors(found), label.format(errors), _compared_shape)
    points = _both_widths(draw_energy_points, energy_points(found), label.format(seconds), _compared_shape)
    table = FigureTable("", compared.HEADS, compared.method_rows(found), compared.explanation(found))
    by_size = {
        name: FigureTable(f"Table: {title} by size", *compared.matrix(found, name), text.format(reference=reference))
        for name, (title, text) in _MATRICES.items()
    }
    done = {
        "about": FigureTable("", ["Method", "What it does"], methods, _METHODS, 2),
        "facts": FigureTable("", ["What", "Value"], about.facts(facts), "Data, version, folds", 2),
    }
    return Page(
        title="Methods compared on the same folds",
        version=found.version,
        lead=f"{found.n_rows:,} rows, {len(found.names):,} columns, {sizes}, {found.n_folds:,} folds, "
        f"{len(found.methods)} methods, one thread each.",
        answer=[(compared.sentence(found), False)],
        cautions=compared.cautions(found),
        sections=[
            Section("The methods", [{"methods": table}]),
            Section(errors, [Drawing([(lines, _ERRORS.format(reference=reference))])]),
            Section(seconds, [Drawing([(points, _SECONDS)])]),
            Section("By size", [by_size]),
            Section("What was done", [done]),
        ],
    )


def posterior_page(found: Posterior, about: About) -> Page:
    """The page of probabilities of columns and models."""
    bars, doubts, problem = inclusion_bars(found), words.model_doubts(found), found.problem
    low, high = found.prior.smallest, found.prior.largest
    sizes = plural(high, "column") if low == high else f"{low} to {plural(high, 'column')}"
    facts = [
        ("Prior", f"g = {found.prior.g:g}; models: {found.prior.name}"),
        ("Visited", f"{found.visited:,} {'models, all there are' if not found.sizes.size else 'moves between models'}"),
    ]
    done = _done(found, about, (problem.n_rows, problem.n_columns, problem.hash), facts, {})
    return Page(
        title="How probable it is that a column belongs in the model",
        version=pairflip.__version__,
        lead=f"{problem.n_rows:,} rows, {problem.n_columns:,} columns, averaged over models of {sizes}.",
        answer=words.model_answer(found),
        cautions=doubts,
        mood="not" if doubts else "fairly",
        conditions=words.model_conditions(found),
        sections=[
            _inclusion("How probable each column is", bars, words.column_table(found, bars)),
            Section("The most probable models", [{"models": words.model_table(found)}]),
            Section("How many columns", [{"sizes": words.size_table(found)}]),
            Section("How the models were visited", [words.model_rates(found)]),
            Section("What was done", done, dropped=about.left_out(), note=_SHARED_NAMES + _PRIOR),
        ],
    )


def samples_page(found: Samples, about: About) -> Page:
    """The page of sets that were drawn."""
    bars, doubts, known = inclusion_bars(found), words.set_doubts(found), found.settings
    sets = {"sets": words.set_table(found)} | ({"pairs": words.pair_table(found)} if found.k > 1 else {})
    ladder = [{"temperatures": words.temperature_table(found)}] if found.betas.size > 1 else []
    columns, drawn_sets = plural(found.k, "column"), plural(found.energies[:, -1].size, "set")
    data = (known["rows"], known["columns"], known["data"])
    done = _done(found, about, data, [("Engine", found.engine)], known)
    return Page(
        title=f"Sets of {columns} at a finite temperature",
        version=pairflip.__version__,
        lead=f"{known['rows']:,} rows, {known['columns']:,} columns, {drawn_sets} of {columns} drawn.",
        answer=words.set_answer(found),
        cautions=doubts,
        mood="not" if doubts else "fairly",
        conditions=words.set_conditions(found),
        sections=[
            _inclusion("How often each column is in the set", bars, words.inclusion_table(found, bars)),
            Section("The sets that were drawn most often", [sets]),
            Section("How the walks went", [words.set_rates(found), *ladder]),
            Section("What was done", done, dropped=about.left_out(), note=_SHARED_NAMES + _FLIPS),
        ],
    )


def _done(
    found: Posterior | Samples, about: About, data: tuple[int, int, str], facts: Pairs, settings: dict[str, Any]
) -> list[Any]:
    """What was done: a note of the run, facts, settings."""
    rows, columns, data_hash = data
    facts = [
        ("Data", f"{plural(rows, 'row')}, {plural(columns, 'column')}"),
        ("Data hash", data_hash),
        *facts,
        ("pairflip version", pairflip.__version__),
        ("Time", f"{number(found.seconds, 3)} s"),
    ]
    tables = {"facts": FigureTable("", ["What", "Value"], about.facts(facts), "Data, version, time", 2)}
    if settings:
        caption = "All that the draws depend on, apart from the numbers of the chains"
        tables["settings"] = FigureTable("Settings", ["Setting", "Value"], flat(settings), caption, 2)
    return [f"Note: {clean(found.note)}.", tables] if found.note else [tables]


def _inclusion(title: str, bars: InclusionBars, table: FigureTable) -> Section:
    """The figure of inclusion probabilities and its table."""
    label = f"Bar chart: {title[0].lower()}{title[1:]}, {bars.cut}. The table below the figure has the numbers."
    svgs = _both_widths(draw_inclusion, bars, label, inclusion_shape)
    return Section(title, [Drawing([(svgs, f"Bars: {bars.cut}, the most probable first.")]), {"columns": table}])


def _compared_shape(numbers: object, wide: bool) -> tuple[float, float]:
    return (820.0, 470.0) if wide else (350.0, 620.0)


def _both_widths(
    draw: Callable[[Any, Axes], None], numbers: Any, label: str, shape: Callable[[Any, bool], tuple[float, float]]
) -> list[Any]:
    """A figure for a wide page and for a narrow one; the style sheet shows one of them."""
    return [
        drawn(draw, numbers, page_axes(*shape(numbers, wide), fixed=False), label, {"class": f"chart {kind}"})
        for kind, wide in (("wide", True), ("narrow", False))
    ]


def save_comparison_figures(found: Comparison, folder: str | os.PathLike[str]) -> list[Path]:
    """Write both figures as SVG and PNG into `folder` (made if missing)."""
    return save_all(((name, figure_of(plot(found))) for name, plot in FIGURES.items()), folder)


def save_probability_figures(found: Posterior | Samples, folder: str | os.PathLike[str]) -> list[Path]:
    """Write the figure of the page as SVG and PNG into `folder` (made if missing)."""
    return save_all([("inclusion", figure_of(plot_inclusion(found)))], folder)
