"""The pages of `posterior` and of `sample` and `temper`, and their figures as files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pairflip
from pairflip.report.done import About, Pairs, flat
from pairflip.report.figures_by_column import draw_inclusion, inclusion_shape, plot_inclusion
from pairflip.report.mixing import rate_words
from pairflip.report.model_words import (
    column_table,
    model_answer,
    model_conditions,
    model_doubts,
    model_table,
    size_table,
)
from pairflip.report.numbers import InclusionBars, inclusion_bars
from pairflip.report.registry import FigureTable
from pairflip.report.save import save_all
from pairflip.report.set_words import (
    inclusion_table,
    pair_table,
    set_answer,
    set_conditions,
    set_doubts,
    set_table,
    temperature_table,
)
from pairflip.report.sheet import Section, Sheet, both_widths
from pairflip.report.style import figure_of
from pairflip.text import clean, number, plural

if TYPE_CHECKING:
    from pairflip.search.posterior import Posterior
    from pairflip.search.sampling import Samples

_SHARED_NAMES = (
    "Names that several columns share carry the index of their column (counting from 0, as in Python) in square "
    "brackets. "
)
_PRIOR = "Liang, Paulo, Molina, Clyde and Berger (2008) describe Zellner's prior and these probabilities."
_FLIPS = "Sets are drawn by exchanging a pair of columns at a time, after Obuchi and Kabashima (2016)."


def posterior_sheet(found: Posterior, about: About) -> Sheet:
    """What the page of probabilities of columns and models says."""
    bars, doubts = inclusion_bars(found), model_doubts(found)
    problem = found.problem
    facts = [
        *_data(problem.n_rows, problem.n_columns, problem.hash),
        ("Prior", f"g = {found.prior.g:g}; models: {found.prior.name}"),
        ("Visited", f"{found.visited:,} {'models, all there are' if not found.sizes.size else 'moves between models'}"),
        *_run(found.seconds),
    ]
    return Sheet(
        title=about.heading("How probable it is that a column belongs in the model"),
        version=pairflip.__version__,
        target=about.target_shown,
        lead=f"{problem.n_rows:,} rows, {problem.n_columns:,} columns, averaged over models of {_sizes(found)}.",
        answer=model_answer(found),
        cautions=doubts,
        mood="not" if doubts else "fairly",
        conditions=model_conditions(found),
        sections=[
            _inclusion("How probable each column is", bars, column_table(found, bars)),
            Section("The most probable models", tables={"models": model_table(found)}),
            Section("How many columns", tables={"sizes": size_table(found)}),
            Section("How the models were visited", [rate_words(found)]),
            _done(facts, {}, found.note, about, _PRIOR),
        ],
    )


def samples_sheet(found: Samples, about: About) -> Sheet:
    """What the page of sets that were drawn says."""
    bars, doubts, known = inclusion_bars(found), set_doubts(found), found.settings
    walks = {"temperatures": temperature_table(found)} if found.betas.size > 1 else {}
    sets = {"sets": set_table(found)} | ({"pairs": pair_table(found)} if found.k > 1 else {})
    facts = [*_data(known["rows"], known["columns"], known["data"]), ("Engine", found.engine), *_run(found.seconds)]
    return Sheet(
        title=about.heading(f"Sets of {plural(found.k, 'column')} at a finite temperature"),
        version=pairflip.__version__,
        target=about.target_shown,
        lead=f"{known['rows']:,} rows, {known['columns']:,} columns, {plural(found.energies[:, -1].size, 'set')} of "
        f"{plural(found.k, 'column')} drawn.",
        answer=set_answer(found),
        cautions=doubts,
        mood="not" if doubts else "fairly",
        conditions=set_conditions(found),
        sections=[
            _inclusion("How often each column is in the set", bars, inclusion_table(found, bars)),
            Section("The sets that were drawn most often", tables=sets),
            Section("How the walks went", [rate_words(found)], tables=walks),
            _done(facts, known, found.note, about, _FLIPS),
        ],
    )


def save_probability_figures(found: Posterior | Samples, folder: str | os.PathLike[str]) -> list[Path]:
    """Write the figure of the page as SVG and PNG into `folder` (made if missing)."""
    return save_all([("inclusion", figure_of(plot_inclusion(found)))], folder)


def _inclusion(title: str, bars: InclusionBars, table: FigureTable) -> Section:
    """The figure of inclusion probabilities and its table."""
    label = f"Bar chart: {title[0].lower()}{title[1:]}, {bars.cut}. The table below the figure has the numbers."
    drawn = both_widths(draw_inclusion, bars, label, inclusion_shape)
    return Section(title, svgs=drawn, caption=f"Bars: {bars.cut}, the most probable first.", tables={"columns": table})


def _done(facts: Pairs, settings: dict[str, object], note: str, about: About, method: str) -> Section:
    """What was done: facts, settings, what was left out of the table."""
    tables = {"facts": FigureTable("", ["What", "Value"], about.facts(facts), "Data, version, time", 2)}
    if settings:
        heads, about_all = ["Setting", "Value"], "All that the draws depend on, apart from the numbers of the chains"
        tables["settings"] = FigureTable("Settings", heads, flat(settings), about_all, 2)
    texts = [f"Note: {clean(note)}."] if note else []
    return Section("What was done", texts, tables=tables, dropped=about.left_out, note=_SHARED_NAMES + method)


def _data(rows: int, columns: int, data_hash: str) -> Pairs:
    return [("Data", f"{plural(rows, 'row')}, {plural(columns, 'column')}"), ("Data hash", data_hash)]


def _run(seconds: float) -> Pairs:
    return [("pairflip version", pairflip.__version__), ("Time", f"{number(seconds, 3)} s")]


def _sizes(found: Posterior) -> str:
    """``0 to 12 columns``."""
    low, high = found.prior.smallest, found.prior.largest
    return plural(high, "column") if low == high else f"{low} to {plural(high, 'column')}"
