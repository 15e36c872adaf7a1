"""What stands on the page of a curve: the answer, figures and tables by size, the columns of the size shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pairflip.report import curve_tables, run_info
from pairflip.report.answer import answer_of
from pairflip.report.curve_tables import SizeTable
from pairflip.report.embed import TipBook, page_svgs
from pairflip.report.held_out_numbers import row_labels
from pairflip.report.page import Drawing, Page, Section
from pairflip.report.proof_words import next_best
from pairflip.report.registry import FigureTable, Room, figures_of
from pairflip.report.vocabulary import Piece, what_is_counted
from pairflip.selection.verdict import size_to_show
from pairflip.text import clean, column_labels, plural

if TYPE_CHECKING:
    from pairflip.selection.curve import SizeCurve

_POINTS = 16_000  # held-out predictions in the page, over all sizes
_CHAIN_POINTS = 12_000  # temperatures x chains x sizes in the page
_STEPS = 60  # temperatures
_CELLS = 1200  # places of the heat map, and of the paths
_LIMITS = (
    "The size is chosen to predict new rows. That does not identify the true support: a column that matters may be "
    "missing, and one that does not may be in, however many rows there are."
)
_NOTHING_TO_ANNEAL = "No size needed annealing: there was nothing to choose."
_NOT_ANNEALED = (
    "In every fold, and on all rows, {unit}s were found by a path over all sizes (the best {unit} is added, then pairs "
    "are exchanged as long as that lowers the error), by the same from random starts, and by replacing part of the "
    "{unit}s of the best sets at random and exchanging again. Nothing was annealed."
)
_NOTE = (
    "Names that several columns share carry the index of their column (counting from 0, as in result.json and in "
    "Python) in square brackets. Method: a search over sets of columns that exchanges a pair of columns at a time, "
    "after Obuchi and Kabashima (2016)."
)


def curve_page(curve: SizeCurve, about: run_info.About, row_names: Sequence[object] | None) -> Page:
    """The page of a curve; its `data` is what the script needs to follow the slider."""
    sizes = [int(k) for k in np.sort(curve.sizes)]
    tried = [k for k in sizes if k > 0]
    size, unit, answer = size_to_show(curve), what_is_counted(curve), answer_of(curve)
    per_size = [curve_tables.of_size(curve, k) for k in sizes]
    book = TipBook()
    drawings = _drawings(curve, sizes, row_names, book, per_size)
    shown = sizes.index(size)
    sizes_table = SizeTable(
        curve_tables.size_heads(curve), curve_tables.size_rows(curve), curve_tables.explanation(curve)
    )
    by_size = {"sizes": sizes_table, "criteria": curve_tables.criteria_table(curve)}
    to = f" to {tried[-1]}" if len(tried) > 1 else ""
    return Page(
        title=f"Which {unit}s, how many, how sure",
        version=curve.version,
        lead=f"{curve.n_rows:,} rows, {len(curve.names):,} columns, sizes {tried[0]}{to} tried, {curve.n_folds:,} "
        "folds.",
        headline=answer.headline,
        answer=answer.details,
        cautions=answer.cautions,
        mood=answer.mood,
        conditions_title="What this cannot tell",
        conditions=[_LIMITS],
        sections=[
            Section(f"How many {unit}s", [*drawings["sizes"], by_size]),
            _columns_section(curve, unit, per_size[shown]),
            *_next_best_section(curve, size),
            *(Section(each.title, [each], name=f"h-{each.name}", follows=each.follows) for each in drawings["main"]),
            _search_section(curve, unit, drawings["search"]),
            _done_section(curve, about),
        ],
        data={"sizes": sizes, "shown": shown, "tables": per_size, "tips": book.forms, "columns": book.columns},
    )


def _drawings(
    curve: SizeCurve,
    sizes: list[int],
    row_names: Sequence[object] | None,
    book: TipBook,
    per_size: list[dict[str, Any]],
) -> dict[str, list[Drawing]]:
    """The registered figures by their place in the page; rows of tables that follow the slider go to `per_size`."""
    room = Room(  # so that the page stays small
        columns=int(np.clip(_CELLS // len(sizes), 12, 40)),
        paths=int(np.clip(_CELLS // len(sizes), 20, 60)),
        points=max(100, min(1000, _POINTS // len(sizes))),
        chains=int(np.clip(_CHAIN_POINTS // (_STEPS * len(sizes)), 3, 32)),
        steps=_STEPS,
        rows=None if row_names is None else row_labels(curve, row_names),
    )
    size, unit = size_to_show(curve), what_is_counted(curve)
    drawings: dict[str, list[Drawing]] = {"sizes": [], "main": [], "search": []}
    for figure in figures_of(curve):
        numbers = [figure.numbers(curve, k, room) for k in (sizes if figure.follows else [size])]
        panels = page_svgs(figure, numbers, book)
        captions = [figure.caption(curve, each) for each in numbers]
        tables = [figure.table(curve, each, room) for each in numbers]
        if figure.follows:
            for texts, table in zip(per_size, tables, strict=True):
                texts[figure.name] = table.rows if table else []
        drawings[figure.place].append(
            Drawing(
                list(zip(panels, captions, strict=True)),
                figure.name,
                figure.title.replace("column", unit),
                figure.follows,
                tables[sizes.index(size) if figure.follows else 0],
            )
        )
    return drawings


def _columns_section(curve: SizeCurve, unit: str, texts: Mapping[str, Any]) -> Section:
    parts: list[Any] = []
    if curve.always.size:
        names: list[Piece] = [(name, True) for name in column_labels(curve.names, curve.always.tolist(), 80)]
        separated = [piece for name in names for piece in (name, (", ", False))][:-1]
        parts.append([("Always in the model: ", False), *separated, (".", False)])
    heads, about = curve_tables.column_words(curve)
    parts.append({"columns": FigureTable("", heads, texts["columns"], about)})
    heads = ["Chosen", "Could be replaced by", "Correlation", "Selected instead in folds"]
    about = "Stand-ins of each chosen column; of a window, the correlation nearest zero"
    stand_ins = FigureTable("", heads, texts["stand_ins"], about, 2)
    more: dict[str, Any] = {"follows": True, "following": "summary", "stand_ins": stand_ins}
    return Section(f"Which {unit}s", parts, "columns", **more)


def _next_best_section(curve: SizeCurve, size: int) -> list[Section]:
    """The best sets of the size shown; no section where these are not known."""
    found = next_best(curve, size)
    if found is None:
        return []
    table, counts = found
    title = f"The next best sets of {plural(size, 'column')}"
    return [Section(title, [{"next_best": table}, counts] if counts else [{"next_best": table}])]


def _search_section(curve: SizeCurve, unit: str, drawings: list[Drawing]) -> Section:
    parts: list[Any] = [{"search": curve_tables.search_table(curve)}]
    if np.isfinite(curve.annealing.energy).any():
        parts += drawings
    else:
        annealing = curve.settings.get("method", "anneal") == "anneal"
        parts.append(_NOTHING_TO_ANNEAL if annealing else _NOT_ANNEALED.format(unit=unit))
    return Section("How the search went", parts, closed=True)


def _done_section(curve: SizeCurve, about: run_info.About) -> Section:
    facts = about.facts(run_info.facts(curve))
    settings = run_info.flat(curve.settings)
    tables = {
        "facts": FigureTable("", ["What", "Value"], facts, "Data, version, time", 2),
        "settings": FigureTable("Settings", ["Setting", "Value"], settings, "All that determines the result", 2),
    }
    notes = [clean(note) for note in curve.notes]
    return Section("What was done", [tables], dropped=about.left_out(), notes=notes, note=_NOTE)
