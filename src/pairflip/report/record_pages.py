"""What stands on the pages of comparisons, of probabilities and of sets that were drawn, and their figures as files."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pairflip
from pairflip.report import comparison_words as compared
from pairflip.report import probability_words as words
from pairflip.report.figures_by_column import draw_inclusion, inclusion_shape, plot_inclusion
from pairflip.report.figures_compared import (
    draw_compared_errors,
    draw_energy_points,
    energy_points,
    plot_compared_errors,
    plot_energy_seconds,
)
from pairflip.report.numbers import InclusionBars, inclusion_bars
from pairflip.report.page import Drawing, Page, Section, what_was_done
from pairflip.report.registry import BELOW, FigureTable
from pairflip.report.run_info import About, Pairs
from pairflip.report.save import save_all
from pairflip.report.style import figure_of, page_axes
from pairflip.text import clean, number, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairflip.comparison.record import Comparison
    from pairflip.search.posterior import Posterior
    from pairflip.search.sampling import Samples

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
    "cv_error": ("error", "RMSE of held-out rows, of every method at every size."),
    "energy": ("training energy", "Training energy on all rows, divided by the lowest that any method found."),
    "overlap": (
        "shared columns",
        "How much of the support of {reference} of that size, on all rows, a method has, too.",
    ),
}


def comparison_page(comparison: Comparison, about: About) -> Page:
    """The page of methods compared on the same folds."""
    sizes = f"sizes {comparison.sizes[0]}" + (f" to {comparison.sizes[-1]}" if len(comparison.sizes) > 1 else "")
    reference = compared.reference_title(comparison)
    methods = [(clean(method.title), clean(method.about)) for method in comparison.methods]
    facts = [
        ("Version", f"pairflip {comparison.version}"),
        ("Data", f"{comparison.n_rows:,} rows, {len(comparison.names):,} columns; hash {comparison.data_hash}"),
        ("Folds", f"{comparison.n_folds:,}: {comparison.folds}"),
        ("Seed", str(comparison.seed)),
    ]
    label = "{}, a line or mark for each method. The tables below have the numbers."
    errors, seconds = "Error against size", "Energy against seconds"
    lines = _both_widths(draw_compared_errors, comparison, label.format(errors), _compared_shape)
    points = _both_widths(draw_energy_points, energy_points(comparison), label.format(seconds), _compared_shape)
    table = FigureTable("", compared.HEADS, compared.method_rows(comparison), compared.explanation(comparison))
    by_size = {
        name: FigureTable(
            f"Table: {title} by size", *compared.matrix(comparison, name), text.format(reference=reference)
        )
        for name, (title, text) in _MATRICES.items()
    }
    done = {
        "about": FigureTable("", ["Method", "What it does"], methods, _METHODS, 2),
        "facts": FigureTable("", ["What", "Value"], about.facts(facts), "Data, version, folds", 2),
    }
    return Page(
        title="Methods compared on the same folds",
        version=comparison.version,
        lead=f"{comparison.n_rows:,} rows, {len(comparison.names):,} columns, {sizes}, {comparison.n_folds:,} folds, "
        f"{len(comparison.methods)} methods, one thread each.",
        answer=[(compared.sentence(comparison), False)],
        cautions=compared.cautions(comparison),
        sections=[
            Section("The methods", [{"methods": table}]),
            Section(errors, [Drawing([(lines, _ERRORS.format(reference=reference))])]),
            Section(seconds, [Drawing([(points, _SECONDS)])]),
            Section("By size", [by_size]),
            Section("What was done", [done], closed=True),
        ],
    )


def posterior_page(posterior: Posterior, about: About) -> Page:
    """The page of probabilities of columns and models."""
    bars, doubts, problem = inclusion_bars(posterior), words.model_doubts(posterior), posterior.problem
    low, high = posterior.prior.smallest, posterior.prior.largest
    sizes = plural(high, "column") if low == high else f"{low} to {plural(high, 'column')}"
    facts = [
        ("Prior", f"{posterior.prior.coefficients}; models: {posterior.prior.name}"),
        (
            "Visited",
            f"{posterior.visited:,} {'models, all there are' if not posterior.sizes.size else 'moves between models'}",
        ),
    ]
    done = _done(posterior, about, (problem.n_rows, problem.n_columns, problem.hash), facts, {}, _PRIOR)
    return Page(
        title="How probable it is that a column belongs in the model",
        version=pairflip.__version__,
        lead=f"{problem.n_rows:,} rows, {problem.n_columns:,} columns, averaged over models of {sizes}.",
        answer=words.model_answer(posterior),
        cautions=doubts,
        mood="not" if doubts else "fairly",
        conditions=words.model_conditions(posterior),
        sections=[
            _inclusion("How probable each column is", bars, words.column_table(posterior, bars)),
            Section("The most probable models", [{"models": words.model_table(posterior)}]),
            Section("How many columns", [{"sizes": words.size_table(posterior)}]),
            Section("How the models were visited", [words.model_rates(posterior)]),
            done,
        ],
    )


def samples_page(samples: Samples, about: About) -> Page:
    """The page of sets that were drawn."""
    bars, doubts, known = inclusion_bars(samples), words.set_doubts(samples), samples.settings
    sets = {"sets": words.set_table(samples)} | ({"pairs": words.pair_table(samples)} if samples.k > 1 else {})
    ladder = [{"temperatures": words.temperature_table(samples)}] if samples.betas.size > 1 else []
    columns, drawn_sets = plural(samples.k, "column"), plural(samples.energies[:, -1].size, "set")
    data = (known["rows"], known["columns"], known["data"])
    done = _done(samples, about, data, [("Engine", samples.engine)], known, _FLIPS)
    return Page(
        title=f"Sets of {columns} at a finite temperature",
        version=pairflip.__version__,
        lead=f"{known['rows']:,} rows, {known['columns']:,} columns, {drawn_sets} of {columns} drawn.",
        answer=words.set_answer(samples),
        cautions=doubts,
        mood="not" if doubts else "fairly",
        conditions=words.set_conditions(samples),
        sections=[
            _inclusion("How often each column is in the set", bars, words.inclusion_table(samples, bars)),
            Section("The sets that were drawn most often", [sets]),
            Section("How the walks went", [words.set_rates(samples), *ladder]),
            done,
        ],
    )


def _done(
    record: Posterior | Samples,
    about: About,
    data: tuple[int, int, str],
    facts: Pairs,
    settings: dict[str, Any],
    note: str,
) -> Section:
    """What was done, with the note of the run first."""
    rows, columns, data_hash = data
    facts = [
        ("Data", f"{plural(rows, 'row')}, {plural(columns, 'column')}"),
        ("Data hash", data_hash),
        *facts,
        ("pairflip version", pairflip.__version__),
        ("Time", f"{number(record.seconds, 3)} s"),
    ]
    caption = "All that the draws depend on, apart from the numbers of the chains"
    section = what_was_done(about, facts, settings, caption, _SHARED_NAMES + note)
    return replace(section, parts=[f"Note: {clean(record.note)}.", *section.parts]) if record.note else section


def _inclusion(title: str, bars: InclusionBars, table: FigureTable) -> Section:
    """The figure of inclusion probabilities and its table."""
    label = f"Bar chart: {title[0].lower()}{title[1:]}, {bars.cut}. {BELOW}"
    svgs = _both_widths(draw_inclusion, bars, label, inclusion_shape)
    return Section(title, [Drawing([(svgs, f"Bars: {bars.cut}, the most probable first.")]), {"columns": table}])


def _compared_shape(numbers: object, wide: bool) -> tuple[float, float]:
    return (820.0, 470.0) if wide else (350.0, 620.0)


def _both_widths(
    draw: Callable[[Any, Axes], None], numbers: Any, label: str, shape: Callable[[Any, bool], tuple[float, float]]
) -> list[Any]:
    """A figure for a wide page and for a narrow one; the style sheet shows one of them."""
    from pairflip.report.renderer import drawn

    return [
        drawn(draw, numbers, page_axes(*shape(numbers, wide), fixed=False), label, {"class": f"chart {kind}"})
        for kind, wide in (("wide", True), ("narrow", False))
    ]


def save_comparison_figures(comparison: Comparison, folder: str | os.PathLike[str]) -> list[Path]:
    """Write both figures as SVG and PNG into `folder` (made if missing)."""
    return save_all({name: figure_of(plot(comparison)) for name, plot in FIGURES.items()}, folder)


def save_probability_figures(record: Posterior | Samples, folder: str | os.PathLike[str]) -> list[Path]:
    """Write the figure of the page as SVG and PNG into `folder` (made if missing)."""
    return save_all({"inclusion": figure_of(plot_inclusion(record))}, folder)
