"""What stands on the page of a curve: the answer, figures and tables by size, the columns of the size shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pairflip.report import curve_tables
from pairflip.report.answer import answer_of, tiles_of
from pairflip.report.figures_held_out import row_labels
from pairflip.report.page import About, Drawing, Page, Pairs, Section, what_was_done
from pairflip.report.proof_words import next_best
from pairflip.report.registry import FigureLimits, FigureTable, figures_of
from pairflip.report.style import TipBook
from pairflip.report.vocabulary import named, what_is_counted
from pairflip.text import clean, column_labels, number, plural

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
_STAND_INS = ("Chosen", "Could be replaced by", "Correlation", "Selected instead in folds")
_ABOUT_STAND_INS = "Stand-ins of each chosen column; of a window, the correlation nearest zero"
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


def curve_page(curve: SizeCurve, about: About) -> Page:
    """The page of a curve; its `data` is what the script needs to follow the slider."""
    sizes = [int(k) for k in np.sort(curve.sizes)]
    shown, tried = sizes.index(curve.answer.shown), [k for k in sizes if k > 0]
    per_size = [curve_tables.of_size(curve, k) for k in sizes]
    answer, book = answer_of(curve), TipBook()
    drawings = _drawings(curve, sizes, about.row_names, book, per_size)
    to = f" to {tried[-1]}" if len(tried) > 1 else ""
    prepared = curve.settings.get("preprocess")
    return Page(
        title=f"Which {what_is_counted(curve)}s, how many, how sure",
        version=curve.version,
        lead=f"{curve.total_rows:,} rows, {len(curve.names):,} columns, sizes {tried[0]}{to} tried, {curve.n_folds:,} "
        f"folds.{f' Preprocessing: {clean(prepared)}.' if prepared else ''}",
        headline=answer.headline,
        tiles=tiles_of(curve, answer.size) if answer.predicts else (),
        bullets=answer.bullets,
        more=answer.more,
        cautions=answer.cautions,
        mood=answer.mood,
        conditions_title="What this cannot tell",
        conditions=[_LIMITS],
        sections=_sections(curve, about, drawings, per_size[shown]["stand_ins"]),
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
    from pairflip.report.renderer import page_svgs

    limits = FigureLimits(  # so that the page stays small
        columns=int(np.clip(_CELLS // len(sizes), 12, 40)),
        paths=int(np.clip(_CELLS // len(sizes), 20, 60)),
        points=max(100, min(1000, _POINTS // len(sizes))),
        chains=int(np.clip(_CHAIN_POINTS // (_STEPS * len(sizes)), 3, 32)),
        steps=_STEPS,
        rows=None if row_names is None else row_labels(curve, row_names),
    )
    size, unit = curve.answer.shown, what_is_counted(curve)
    drawings: dict[str, list[Drawing]] = {"sizes": [], "main": [], "search": []}
    for figure in figures_of(curve):
        numbers = [figure.numbers(curve, k, limits) for k in (sizes if figure.follows else [size])]
        words = [figure.words_about(curve, each, limits) for each in numbers]
        panels = page_svgs(figure, numbers, [each.labels for each in words], book)
        tables = [each.table for each in words]
        if figure.follows:
            for texts, table in zip(per_size, tables, strict=True):
                texts[figure.name] = table.rows if table else []
        drawings[figure.place].append(
            Drawing(
                [(panel, each.caption) for panel, each in zip(panels, words, strict=True)],
                figure.name,
                figure.title.replace("column", unit),
                figure.follows,
                tables[sizes.index(size) if figure.follows else 0],
            )
        )
    return drawings


def _sections(
    curve: SizeCurve, about: About, drawings: Mapping[str, list[Drawing]], stand_in_rows: list[list[str]]
) -> list[Section]:
    """Sizes, columns, the next best sets where they are proved, figures, the search, what was done."""
    unit, size = what_is_counted(curve), curve.answer.shown
    by_size = {"sizes": curve_tables.size_table(curve), "criteria": curve_tables.criteria_table(curve)}
    columns: list[Any] = [{"columns": curve_tables.column_table(curve, size)}]
    if curve.always.size:
        labels = column_labels(curve.names, curve.always.tolist(), 80)
        columns.insert(0, f"Always in the model: {', '.join(named([label]) for label in labels)}.")
    stand_ins = FigureTable("", _STAND_INS, stand_in_rows, _ABOUT_STAND_INS, 2)
    sections = [
        Section(f"How many {unit}s", [*drawings["sizes"], by_size]),
        Section(f"Which {unit}s", columns, "columns", follows=True, following="summary", stand_ins=stand_ins),
    ]
    if (best_sets := next_best(curve, size)) is not None:
        table, counts = best_sets
        parts: list[Any] = [{"next_best": table}, counts]
        title = f"The next best sets of {plural(size, unit)}"
        sections.append(Section(title, parts if counts else parts[:1], closed=True))
    for each in drawings["main"]:
        sections.append(Section(each.title, [each], f"h-{each.name}", follows=each.follows, closed=True))
    search: list[Any] = [{"search": curve_tables.search_table(curve)}]
    if np.isfinite(curve.annealing.energy).any():
        search += drawings["search"]
    elif curve.settings.get("method", "anneal") == "anneal":
        search.append("No size needed annealing: there was nothing to choose.")
    else:
        search.append(_NOT_ANNEALED.format(unit=unit))
    notes = [clean(note) for note in curve.notes]
    return [
        *sections,
        Section("How the search went", search, closed=True),
        what_was_done(about, facts(curve), curve.settings, "All that determines the result", _NOTE, notes),
    ]


def facts(curve: SizeCurve) -> Pairs:
    """Data, folds, sizes for which nothing was left to a search, engine, version, time."""
    sizes = curve.sizes.tolist()
    solved = [] if curve.exact is None else [k for k, exact in zip(sizes, curve.exact, strict=True) if exact and k]
    proofs = [] if curve.proved is None else zip(sizes, curve.proved, strict=True)
    proved = [k for k, proof in proofs if proof is not None and proof.optimal]
    pairs = [
        ("Data", f"{plural(curve.total_rows, 'row')}, {plural(len(curve.names), 'column')}"),
        ("Data hash", str(curve.data_hash)),
        ("Folds", f"{curve.n_folds:,}"),
    ]
    if solved:
        pairs.append(("Solved in every fold by looking at all sets", f"sizes {_runs(solved)}"))
    if proved:
        pairs.append(("Proved to be the best on all rows", f"sizes {_runs(proved)}"))
    return [
        *pairs,
        ("Engine", str(curve.engine)),
        ("pairflip version", str(curve.version)),
        ("Time", f"{number(curve.seconds, 3)} s"),
    ]


def _runs(sizes: list[int]) -> str:
    """Ascending numbers such as "1 to 4, 7"."""
    runs = np.split(sizes, np.flatnonzero(np.diff(sizes) > 1) + 1)
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)
