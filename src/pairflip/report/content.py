"""What the page says, as plain values: texts, tables of texts, drawn figures. No markup of its own, no statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from pairflip.report import done, size_tables
from pairflip.report.answer import answer_of
from pairflip.report.group_words import what_is_counted
from pairflip.report.numbers import row_labels
from pairflip.report.per_size import column_about, column_heads, of_size
from pairflip.report.proof import next_best
from pairflip.report.registry import FigureTable, PageFigure, Room, figures_of
from pairflip.report.style import TipBook
from pairflip.selection.verdict import size_to_show
from pairflip.text import clean, column_labels

if TYPE_CHECKING:
    from pairflip.selection.curve import SizeCurve

_POINTS = 16_000  # held-out predictions in the page, over all sizes
_CHAIN_POINTS = 12_000  # temperatures x chains x sizes in the page
_CELLS = 1200  # places of the heat map, and of the paths


@dataclass(frozen=True)
class Variant:
    """A figure at one size: its panels and the text that goes with it."""

    svgs: list[Markup]
    caption: str
    table: FigureTable | None


@dataclass(frozen=True)
class Part:
    """A figure in the page: one variant, or one for each size where it follows the slider."""

    name: str
    title: str
    place: str
    follows: bool
    variants: list[Variant]
    shown: Variant


NOTHING_TO_ANNEAL = "No size needed annealing: there was nothing to choose."
NOT_ANNEALED = (
    "In every fold, and on all rows, columns were found by a path over all sizes (the best column is added, then pairs "
    "are exchanged as long as that lowers the error), by the same from random starts, and by replacing part of the "
    "columns of the best sets at random and exchanging again. Nothing was annealed."
)


def page_content(curve: SizeCurve, about: done.About, row_names: Sequence[object] | None) -> dict[str, Any]:
    """Everything the template shows. `data` is what the page's script needs to follow the slider."""
    sizes = [int(k) for k in np.sort(curve.sizes)]
    shown = sizes.index(size_to_show(curve))
    room = _room(curve, len(sizes), row_names)
    book = TipBook()
    parts = [_part(figure, curve, sizes, shown, room, book) for figure in figures_of(curve)]
    per_size = [of_size(curve, k) for k in sizes]
    for part in parts:
        if part.follows:
            for texts, variant in zip(per_size, part.variants, strict=True):
                texts[part.name] = variant.table.rows if variant.table else []
    return {
        "title": about.heading(f"Which {what_is_counted(curve)}s, how many, how sure"),
        "target": about.target_shown,
        "curve": curve,
        "n_columns": len(curve.names),
        "sizes": sizes,
        "tried": [k for k in sizes if k > 0],
        "shown": shown,
        "now": per_size[shown],
        "answer": answer_of(curve),
        "parts": parts,
        "annealed": bool(np.isfinite(curve.annealing.energy).any()),
        "size_heads": size_tables.size_heads(curve),
        "size_rows": size_tables.size_rows(curve),
        "size_about": size_tables.explanation(curve),
        "no_annealing": NOT_ANNEALED.replace("column", what_is_counted(curve))
        if curve.settings.get("method", "anneal") != "anneal"
        else NOTHING_TO_ANNEAL,
        "counted": what_is_counted(curve),
        "criteria_heads": size_tables.criteria_heads(curve),
        "criteria_rows": size_tables.criteria_rows(curve),
        "search_heads": size_tables.SEARCH_HEADS,
        "search_rows": size_tables.search_rows(curve),
        "column_heads": column_heads(curve),
        "column_about": column_about(curve),
        "next_best": next_best(curve),
        "always": column_labels(curve.names, curve.always.tolist(), 80),
        "facts": about.facts(done.facts(curve)),
        "settings": done.flat(curve.settings),
        "dropped": about.left_out,
        "notes": [clean(note) for note in curve.notes],
        "data": {
            "sizes": sizes,
            "shown": shown,
            "tables": per_size,
            "tips": book.forms,
            "columns": book.columns,
        },
    }


def _room(curve: SizeCurve, sizes: int, row_names: Sequence[object] | None) -> Room:
    """How much a page with this number of sizes has room for, so that it stays small."""
    steps = 60
    return Room(
        columns=int(np.clip(_CELLS // sizes, 12, 40)),
        paths=int(np.clip(_CELLS // sizes, 20, 60)),
        points=max(100, min(1000, _POINTS // sizes)),
        chains=int(np.clip(_CHAIN_POINTS // (steps * sizes), 3, 32)),
        steps=steps,
        rows=None if row_names is None else row_labels(curve, row_names),
    )


def _part(figure: PageFigure, curve: SizeCurve, sizes: Sequence[int], shown: int, room: Room, book: TipBook) -> Part:
    """Draw a registered figure."""
    from pairflip.report.renderer import page_svgs

    numbers = [figure.numbers(curve, size, room) for size in (sizes if figure.follows else [sizes[shown]])]
    words = [figure.words_about(curve, each, room) for each in numbers]
    drawn = page_svgs(figure, numbers, [each.labels for each in words], book)
    variants = [Variant(svgs, each.caption, each.table) for each, svgs in zip(words, drawn, strict=True)]
    now = variants[shown if figure.follows else 0]
    title = figure.title.replace("column", what_is_counted(curve))
    return Part(figure.name, title, figure.place, figure.follows, variants, now)
