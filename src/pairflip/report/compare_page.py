"""The page of a comparison."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pairflip.report.compare_words import (
    HEADS,
    cautions,
    explanation,
    matrix,
    method_rows,
    reference_title,
    sentence,
    title_of,
)
from pairflip.report.done import About, Pairs
from pairflip.report.figures_compared import (
    compared_errors,
    draw_compared_errors,
    draw_energy_points,
    energy_points,
    plot_compared_errors,
    plot_energy_seconds,
)
from pairflip.report.registry import FigureTable
from pairflip.report.save import save_all
from pairflip.report.sheet import Section, Sheet, both_widths
from pairflip.report.style import figure_of
from pairflip.text import clean

if TYPE_CHECKING:
    from pairflip.comparison.record import Comparison

FIGURES = {"errors": plot_compared_errors, "energy_seconds": plot_energy_seconds}
_MATRICES = (
    ("cv_error", "Table: error by size", "cv_error of every method at every size."),
    (
        "energy",
        "Table: training energy by size",
        "Training energy on all rows, divided by the lowest that any method found.",
    ),
    (
        "overlap",
        "Table: shared columns by size",
        "How much of the support of {reference} of that size, on all rows, a method has, too.",
    ),
)

_ABOUT = (
    "Every method got the training rows of each fold, and nothing of the others. Supports were fitted by least squares "
    "on the training rows; methods without sizes predict by themselves."
)
_ERRORS = (
    "Error on held-out rows against the number of columns; bars are one standard error of {reference}. Straight "
    "lines across: methods without sizes, and the error without columns. Errors far above that are beyond the axis."
)
_FACTS = "Data, version, folds"
_SECONDS = (
    "How much higher the training energies on all rows are than the lowest that any method found, on average over "
    "sizes, against CPU seconds of the whole search on one thread. Further down is better, further left is faster."
)


def comparison_sheet(found: Comparison, about: About) -> Sheet:
    """What the page says."""
    sizes = f"sizes {found.sizes[0]}" + (f" to {found.sizes[-1]}" if len(found.sizes) > 1 else "")
    methods = [(title_of(method), clean(method.about)) for method in found.methods]
    reference = reference_title(found)
    by_size = {
        name: FigureTable(summary, *matrix(found, name), caption=text.format(reference=reference))
        for name, summary, text in _MATRICES
    }
    return Sheet(
        title=about.heading("Methods compared on the same folds"),
        version=found.version,
        lead=f"{found.n_rows:,} rows, {len(found.names):,} columns, {sizes}, {found.n_folds:,} folds, "
        f"{len(found.methods)} methods, one thread each.",
        answer=[(sentence(found), False)],
        cautions=cautions(found),
        sections=[
            Section("The methods", tables={"methods": FigureTable("", HEADS, method_rows(found), explanation(found))}),
            *_figures(found),
            Section("By size", tables=by_size),
            Section(
                "What was done",
                tables={
                    "about": FigureTable("", ["Method", "What it does"], methods, _ABOUT, 2),
                    "facts": FigureTable("", ["What", "Value"], _facts(found, about), _FACTS, 2),
                },
            ),
        ],
    )


def save_comparison_figures(found: Comparison, folder: str | os.PathLike[str]) -> list[Path]:
    """Write both figures as SVG and PNG into `folder` (made if missing)."""
    return save_all(((name, figure_of(plot(found))) for name, plot in FIGURES.items()), folder)


def _shape(numbers: object, wide: bool) -> tuple[float, float]:
    return (820.0, 470.0) if wide else (350.0, 620.0)


def _figures(found: Comparison) -> list[Section]:
    label = "{}, a line or mark for each method. The tables below have the numbers."
    errors, seconds = "Error against size", "Energy against seconds"
    lines = both_widths(draw_compared_errors, compared_errors(found), label.format(errors), _shape)
    points = both_widths(draw_energy_points, energy_points(found), label.format(seconds), _shape)
    caption = _ERRORS.format(reference=reference_title(found))
    return [Section(errors, svgs=lines, caption=caption), Section(seconds, svgs=points, caption=_SECONDS)]


def _facts(found: Comparison, about: About) -> Pairs:
    told = [
        ("Version", f"pairflip {found.version}"),
        ("Data", f"{found.n_rows:,} rows, {len(found.names):,} columns; hash {found.data_hash}"),
        ("Folds", f"{found.n_folds:,}: {found.folds}"),
        ("Seed", str(found.seed)),
    ]
    return about.facts(told)
