"""The page of a comparison: one HTML file that needs nothing else, and no script."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from pairflip.present.compare_figures import (
    compared_errors,
    draw_compared_errors,
    draw_energy_points,
    energy_points,
    plot_compared_errors,
    plot_energy_seconds,
)
from pairflip.present.compare_words import (
    HEADS,
    cautions,
    explanation,
    matrix,
    method_rows,
    reference_title,
    sentence,
    title_of,
)
from pairflip.present.embed import drawn
from pairflip.present.page import content_policy, template_environment
from pairflip.present.save import save_figure, write_whole
from pairflip.present.style import page_axes
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

_ERRORS = (
    "Error on held-out rows against the number of columns; bars are one standard error of {reference}. Straight "
    "lines across: methods without sizes, and the error without columns. Errors far above that are beyond the axis."
)
_SECONDS = (
    "How much higher the training energies on all rows are than the lowest that any method found, on average over "
    "sizes, against CPU seconds of the whole search on one thread. Further down is better, further left is faster."
)


def write_comparison(
    found: Comparison,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    command: str | None = None,
    extra: Mapping[str, object] | None = None,
) -> Path:
    """Write a comparison as one self-contained HTML page that opens offline, and return its path.

    Parameters
    ----------
    found
        What `compare` returned.
    path
        The file to write; it is replaced as a whole or not at all.
    title
        Heading of the page.
    command
        The command that made it.
    extra
        More lines for "What was done".
    """
    html = render_comparison(found, title=title, command=command, extra=extra)
    return write_whole(path, html.encode("utf-8", "replace"), "the comparison")


def render_comparison(
    found: Comparison,
    *,
    title: str | None = None,
    command: str | None = None,
    extra: Mapping[str, object] | None = None,
) -> str:
    """The page as text.

    Parameters
    ----------
    found, title, command, extra
        As in `write_comparison`.
    """
    style = (files("pairflip.present") / "style.css").read_text(encoding="utf-8")
    environment = template_environment()
    return environment.get_template("compare.html.j2").render(
        title=clean(title) if title else "Methods compared on the same folds",
        found=found,
        sentence=sentence(found),
        cautions=cautions(found),
        heads=HEADS,
        rows=method_rows(found),
        about=explanation(found),
        figures=_figures(found),
        matrices=[
            (name, summary, about.format(reference=reference_title(found)), *matrix(found, name))
            for name, summary, about in _MATRICES
        ],
        methods=[(title_of(method), clean(method.about)) for method in found.methods],
        facts=_facts(found, command, extra),
        style=Markup(style),
        policy=content_policy(style),
    )


def save_comparison_figures(found: Comparison, folder: str | os.PathLike[str]) -> list[Path]:
    """Write both figures as SVG and PNG into `folder` (made if missing)."""
    from pairflip.present.style import figure_of

    home = Path(folder)
    home.mkdir(parents=True, exist_ok=True)
    return [path for name, plot in FIGURES.items() for path in save_figure(figure_of(plot(found)), home, name)]


def _figures(found: Comparison) -> list[dict[str, Any]]:
    """Both figures, each for a wide page and for a narrow one."""
    figures: list[tuple[str, Any, Any, str]] = [
        (
            "Error against size",
            draw_compared_errors,
            compared_errors(found),
            _ERRORS.format(reference=reference_title(found)),
        ),
        ("Energy against seconds", draw_energy_points, energy_points(found), _SECONDS),
    ]
    return [
        {"title": title, "caption": caption, "svgs": _svgs(draw, numbers, title)}
        for title, draw, numbers, caption in figures
    ]


def _svgs(draw: Any, numbers: Any, title: str) -> list[Markup]:
    label = f"{title}, a line or mark for each method. The tables below have the numbers."
    return [
        drawn(draw, numbers, page_axes(*shape, fixed=False), label, {"class": f"chart {kind}"})
        for kind, shape in (("wide", (820.0, 470.0)), ("narrow", (350.0, 620.0)))
    ]


def _facts(found: Comparison, command: str | None, extra: Mapping[str, object] | None) -> list[tuple[str, str]]:
    told = [
        ("Version", f"pairflip {found.version}"),
        ("Data", f"{found.n_rows:,} rows, {len(found.names):,} columns; hash {found.data_hash}"),
        ("Folds", f"{found.n_folds:,}: {found.folds}"),
        ("Seed", str(found.seed)),
    ]
    if command:
        told.append(("Command", clean(command)))
    return [*told, *((clean(key), clean(value)) for key, value in (extra or {}).items())]
