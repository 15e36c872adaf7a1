"""What is said about probabilities of columns: in models of any size (`posterior`), in sets that were drawn (`sample`).

The answer, what to doubt (whether chains went everywhere they should), what is supposed, tables of texts, the pages.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import chdtri

import pairflip
from pairflip.engines.base import EQUAL
from pairflip.least_squares import Floats
from pairflip.report.figures_by_column import PROBABILITIES, InclusionBars, chance_text, inclusion_bars, plot_inclusion
from pairflip.report.page import About, Page, Pairs, Section, drawing, what_was_done
from pairflip.report.registry import BELOW, FigureTable
from pairflip.report.save import save_all
from pairflip.report.stability_words import cluster_label
from pairflip.report.style import figure_of
from pairflip.report.vocabulary import NAME_LENGTH, joined, named
from pairflip.selection.stability import Family
from pairflip.text import (
    NOTHING,
    aligned,
    aligned_plus_minus,
    clean,
    column_labels,
    number,
    percent,
    plural,
    plus_minus,
)

if TYPE_CHECKING:
    from pairflip.search.posterior import Posterior
    from pairflip.search.sampling import Samples

_CHANCE = 1e-6  # chains disagree about a column if the variance of their shares is so improbable,
_UNDERRATED = 4.0  # is so many times what errors say,
_CLEARLY = 0.1  # and the shares differ by so much
_ROUGH = 0.05  # a Monte Carlo error above this is pointed out
_SELDOM = 0.1  # and neighbours on a ladder that trade places in less than this fraction of the attempts
_POSSIBLE = 0.02  # columns less probable than this are not named as part of a cluster
_NAMED = 6  # columns that a sentence names one by one
_SETS = 20  # models or sets in a table
_LONGER = "Walk longer (--sweeps, in Python sweeps=)."
_SHARED_NAMES = (
    "Names that several columns share carry the index of their column (counting from 0, as in Python) in square "
    "brackets. "
)
_PRIOR = "Liang, Paulo, Molina, Clyde and Berger (2008) describe Zellner's prior and these probabilities."
_FLIPS = "Sets are drawn by exchanging a pair of columns at a time, after Obuchi and Kabashima (2016)."
_MOVES = {"add": "a column", "drop": "one", "flip": "a pair"}


# The answer -----------------------------------------------------------------------------------------------------------


def model_answer(posterior: Posterior) -> str:
    """Which columns belong in the model with a probability of one half or more, and the most probable model."""
    often = sorted(posterior.median_probability_model.tolist(), key=lambda j: -posterior.inclusion_probability[j])
    likely = int(posterior.size_probability.argmax())
    candidates = plural(int(posterior.problem.candidates.size), "column")
    begin, columns = f"No column of {candidates} has", ""
    if often:
        begin = f"{len(often):,} of {candidates} {'has' if len(often) == 1 else 'have'}"
        columns = f": {_named(posterior.names, often, posterior.inclusion_probability)}"
    share, chance = percent(float(posterior.model_probability[0])), percent(posterior.size_probability[likely])
    best = _named(posterior.names, posterior.highest_probability_model.tolist()) or "no columns"
    return (
        f"{begin} a probability of 50 % or more of belonging in the model{columns}. The most probable model ({share}) "
        f"has {best}; the most probable number of columns is {likely} ({chance}).{_cluster_words(posterior)}"
    )


def _cluster_words(posterior: Posterior) -> str:
    """Clusters of which one column or another is probable although none of them is by itself."""
    problem, chances = posterior.problem, posterior.inclusion_probability
    if problem.units is not None:
        return ""
    family, taken, items = Family(problem), set[int](), list[str]()
    seeds = np.setdiff1d(np.flatnonzero(chances >= _POSSIBLE), problem.always)
    clusters = [[j for j in each.tolist() if j in seeds] for each in family.of(seeds)]
    for columns in sorted(clusters, key=lambda columns: -float(chances[columns].sum())):
        if len(items) == _NAMED or chances[columns].sum() < 0.5:  # the sum is never less than the probability of any
            break
        if len(columns) < 2 or chances[columns].max() >= 0.5 or taken.intersection(columns):
            continue
        probability = posterior.any_of(columns)[0]
        if probability >= 0.5:
            often = sorted(columns, key=lambda j: -chances[j])
            items.append(f"{cluster_label(posterior.names, often, family.ordered)} ({percent(probability)})")
            taken.update(columns)
    return f" Columns that stand in for each other share their probability: {joined(items)}." if items else ""


def set_answer(samples: Samples) -> str:
    """Which columns are in at least half of the sets, and the set that was drawn most often."""
    chances = samples.inclusion_probability
    often = [int(j) for j in np.argsort(-chances, kind="stable") if chances[j] >= 0.5]
    many, columns = "no column is", ""
    if often:
        candidates = plural(int(samples.candidates.size), "column")
        many = f"{len(often):,} of {candidates} {'is' if len(often) == 1 else 'are'}"
        columns = f": {_named(samples.names, often, chances)}"
    ((support, share),) = samples.often_drawn(1)
    mean, error = (float(each[-1]) for each in samples.energy)
    energy = plus_minus(mean, error if error > EQUAL * abs(mean) else 0.0)  # no error where that is rounding
    return (
        f"At beta = {number(float(samples.betas[-1]))}, {many} in at least half of the sets of {samples.k}{columns}. "
        f"The set that was drawn most often ({percent(share)} of the draws) is {_named(samples.names, support)}; the "
        f"mean energy is {energy}."
    )


def _named(names: Sequence[str], columns: Sequence[int], chances: Floats | None = None) -> str:
    """Names in a sentence, each with its probability where that is given: the first few, and how many more."""
    labels = [named([label]) for label in column_labels(names, columns, NAME_LENGTH)]
    if chances is not None:
        labels = [f"{label} ({percent(chances[j])})" for label, j in zip(labels, columns, strict=True)]
    return joined(labels, _NAMED)


# What to doubt --------------------------------------------------------------------------------------------------------


def model_doubts(posterior: Posterior) -> list[str]:
    """What to doubt about walks among models; where all were visited, there is nothing."""
    return _walk_doubts(posterior, posterior.draws, _LONGER) if posterior.sizes.size else []


def set_doubts(samples: Samples) -> list[str]:
    """What to doubt about walks among sets: chains that disagree, temperatures that hardly trade."""
    drawn = samples.candidates[samples.supports[:, -1]]
    if samples.betas.size < 2:
        longer = "Walk longer (--sweeps), or use a ladder of temperatures (--temper, in Python temper)."
        return _walk_doubts(samples, drawn, longer)
    doubts, least = _walk_doubts(samples, drawn, _LONGER), int(samples.exchange.argmin())
    if samples.exchange[least] < _SELDOM:
        low, high = (number(float(beta)) for beta in samples.betas[least : least + 2])
        doubts.append(
            f"Neighbours on the ladder hardly trade places at beta = {low} and {high}: in "
            f"{percent(float(samples.exchange[least]))} of the attempts. In Python, temper(betas=...) takes a ladder "
            "with more temperatures there."
        )
    stuck = int((samples.round_trips == 0).sum())
    if stuck:
        doubts.append(
            f"In {stuck} of {plural(len(samples.round_trips), 'ladder')} no walker went from the hottest temperature "
            "to the coldest and back, so that cold walkers may remember where they began: use more sweeps (--sweeps)."
        )
    return doubts


def _walk_doubts(record: Samples | Posterior, drawn: np.ndarray, longer: str) -> list[str]:
    """What to doubt about probabilities that chains drew (chain, draw, column): sentences, none without a reason."""
    counts = [np.bincount(each[each >= 0], minlength=len(record.names)) for each in drawn]
    shares = np.array(counts) / drawn.shape[1]
    doubts = []
    if len(shares) == 1:
        doubts.append(f"There is one chain, with which no other can be compared: use more (--chains). {longer}")
    elif (column := disagreement(shares, record.inclusion_se)) is not None:
        (label,) = column_labels(record.names, [column], NAME_LENGTH)
        lowest, highest = (percent(float(share)) for share in (shares[:, column].min(), shares[:, column].max()))
        doubts.append(
            f"The chains disagree: “{label}” is in {lowest} of the draws of one chain and in {highest} of another. "
            "They have not gone everywhere, and the probabilities are less certain than their errors say. "
            f"{longer}"
        )
    error = float(record.inclusion_se.max())
    if error > _ROUGH:
        doubts.append(f"The probabilities are rough: their Monte Carlo errors go up to ± {100 * error:.0f} %. {longer}")
    return doubts


def disagreement(shares: Floats, errors: Floats) -> int | None:
    """The column about which chains disagree most, by more than chance; `shares` (chain, N) of their draws have it."""
    # The variance of C chains over C times their squared errors: chi-squared (C - 1 degrees of freedom, over these).
    chains = len(shares)
    limit = max(_UNDERRATED, float(chdtri(chains - 1, _CHANCE)) / (chains - 1))
    gap = np.ptp(shares, axis=0)
    gap[(gap < _CLEARLY) | (shares.var(axis=0, ddof=1) <= limit * chains * errors**2)] = 0.0
    worst = int(gap.argmax())
    return worst if gap[worst] else None


# What is supposed, and how the walks went -----------------------------------------------------------------------------


def model_conditions(posterior: Posterior) -> list[str]:
    """What the probabilities are conditional on."""
    return [
        posterior.assumptions,
        "If no set of columns is the truth, the probabilities say which sets come closest. Another g or another prior "
        "of the models gives other probabilities: try one, and see whether your conclusion changes.",
        "Columns that are alike share their probability: where one of two is needed and the data do not say which, "
        "each has about half. A low probability is then no evidence of no effect.",
    ]


def set_conditions(samples: Samples) -> list[str]:
    """What the probabilities are conditional on."""
    return [
        f"Every set has exactly {plural(samples.k, 'column')}, beside those that are always in, and the probability of "
        f"a set S is proportional to exp(-beta E(S)) with beta = {number(float(samples.betas[-1]))}; the energy E is "
        "half the sum of squared residuals. With beta = 1/v that is the likelihood of the set when the noise is normal "
        "with variance v, and all sets are alike before the data.",
        "A column is in some set of this size whether it is needed or not: before the data, each has the probability "
        f"{percent(samples.k / samples.candidates.size)}. How probable it is that a column belongs in a model of any "
        "size is what pairflip posterior says. Columns that are alike share their probability.",
    ]


def model_rates(posterior: Posterior) -> str:
    """How the walks among models went: their number and length, and how many moves were accepted."""
    if not posterior.sizes.size:
        return f"All {plural(posterior.visited, 'model')} were visited, so the probabilities have no Monte Carlo error."
    moves = [f"{percent(share)} of those that {name} {_MOVES[name]}" for name, share in posterior.acceptance.items()]
    chains, draws = posterior.sizes.shape
    return (
        f"{plural(chains, 'chain')} of {plural(draws, 'sweep')} among models, {posterior.visited:,} moves in all. "
        f"Accepted: {', '.join(moves)}."
    )


def set_rates(samples: Samples) -> str:
    """How the walks among sets went: their number and length, accepted flips, how often temperatures traded."""
    chains, places, _ = samples.energies.shape
    ladder, every = places > 1, "every sweep" if samples.thin == 1 else f"every {samples.thin:,} sweeps"
    words = (
        f"{plural(chains, 'ladder' if ladder else 'chain')} of {plural(samples.sweeps, 'sweep')} after "
        f"{samples.burn_in:,} that do not count, a draw after {every}: {percent(float(samples.acceptance[-1]))} of the "
        f"flips were accepted{' at the coldest temperature' if ladder else ''}."
    )
    if not ladder:
        return words
    low, high = percent(float(samples.exchange.min())), percent(float(samples.exchange.max()))
    trips = int(samples.round_trips.sum())
    return (
        f"{words} {places} temperatures; neighbours traded places in {low} to {high} of the attempts, and walkers went "
        f"from the hottest to the coldest and back {('never', 'once')[trips] if trips < 2 else f'{trips:,} times'}."
    )


# Tables ---------------------------------------------------------------------------------------------------------------


def column_table(posterior: Posterior, bars: InclusionBars) -> FigureTable:
    """The columns of the figure with coefficients averaged over models, then those that are always in."""
    columns, always = bars.columns.tolist(), posterior.problem.always.tolist()
    means = aligned([*posterior.coef_mean[[*columns, *always]].tolist(), posterior.intercept])
    sds = [*aligned(posterior.coef_sd[[*columns, *always]].tolist(), 2), ""]
    chances = [chance_text(p, e) for p, e in zip(bars.probability, bars.error, strict=True)]
    chances += [*["always"] * len(always), "constant"]
    labels = [*column_labels(posterior.names, [*columns, *always], 80), "(constant)"]
    error = " ± Monte Carlo error" if posterior.sizes.size else ""
    about = (
        f"Probability that a column belongs in the model{error}, and its coefficient in the units of the table, "
        f"averaged over models (zero where the column is not in), with its standard deviation; {bars.cut}"
    )
    cells = {"Column": labels, "In the model": chances, "Coefficient, averaged": means, "sd": sds}
    return FigureTable.of(cells, about)


def inclusion_table(samples: Samples, bars: InclusionBars) -> FigureTable:
    """The columns of the figure."""
    labels = column_labels(samples.names, bars.columns.tolist(), 80)
    chances = [chance_text(p, e) for p, e in zip(bars.probability, bars.error, strict=True)]
    about = f"Fraction of the sets that have the column, ± Monte Carlo error; {bars.cut}"
    return FigureTable.of({"Column": labels, "In the set": chances}, about)


def model_table(posterior: Posterior) -> FigureTable:
    """The most probable models."""
    top = posterior.models[:_SETS]
    shares = posterior.model_probability[: len(top)].tolist()
    cells = {
        "Columns": [_set(posterior.names, support.tolist()) for support in top],
        "Number": [str(support.size) for support in top],
        "Probability": list(map(_fine, shares)),
    }
    seen = "" if posterior.method == "enumeration" else "; probabilities are shares of the draws"
    models = plural(len(top), "most probable model")
    return FigureTable.of(cells, f"The {models}, {percent(sum(shares))} of the probability together{seen}")


def set_table(samples: Samples) -> FigureTable:
    """The sets that were drawn most often."""
    supports, shares = zip(*samples.often_drawn(_SETS), strict=True)
    about = f"{percent(sum(shares))} of the draws together" if len(shares) > 1 else "No other set was drawn"
    sets = [_set(samples.names, support) for support in supports]
    return FigureTable.of({"Columns": sets, "Draws": list(map(_fine, shares))}, about)


def _set(names: Sequence[str], columns: Sequence[int]) -> str:
    return ", ".join(column_labels(names, columns, NAME_LENGTH)) or "(none)"


def size_table(posterior: Posterior) -> FigureTable:
    """Numbers of columns with their probabilities, and what they were before the data."""
    top = np.sort(np.argsort(-posterior.size_probability, kind="stable")[:_SETS])
    top = top[posterior.size_probability[top] > 0]
    after, before = posterior.size_probability[top], posterior.prior.size_probability()[top]
    cells = {"Number of columns": [str(k) for k in top.tolist()], "Probability": list(map(_fine, after))}
    return FigureTable.of(cells | {"Before the data": list(map(_fine, before))}, "Probability of each number")


def pair_table(samples: Samples) -> FigureTable:
    """Pairs of columns that were in together most often."""
    rows = [[clean(a), clean(b), _fine(share)] for a, b, share in samples.pairs(_SETS)]
    summary = "Table: columns that are in together"
    return FigureTable(summary, ["Column", "and", "Draws"], rows, "Pairs that were in most often", 2)


def temperature_table(samples: Samples) -> FigureTable:
    """What each temperature of the ladder did."""
    energy, error = samples.energy
    cells = {
        "beta": list(map(number, samples.betas)),
        "Mean energy": aligned_plus_minus(energy.tolist(), error.tolist()),
        "Flips accepted": list(map(percent, samples.acceptance)),
        "Traded with the next": [*map(percent, samples.exchange), NOTHING],
    }
    return FigureTable.of(cells, "The ladder, from the hottest temperature to the coldest")


def _fine(share: float) -> str:
    """A probability in per cent, small ones with two digits, tiny ones by a bound."""
    if 0 < share < 1e-6:
        return "<0.0001 %"
    return percent(share) if share == 0 or share >= 0.01 else f"{number(100 * share, 2)} %"


# Pages ----------------------------------------------------------------------------------------------------------------


def posterior_page(posterior: Posterior, about: About) -> Page:
    """The page of probabilities of columns and models."""
    bars, doubts, problem = inclusion_bars(posterior), model_doubts(posterior), posterior.problem
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
        answer=model_answer(posterior),
        cautions=doubts,
        mood="not" if doubts else "fairly",
        conditions=model_conditions(posterior),
        sections=[
            _inclusion("How probable each column is", bars, column_table(posterior, bars)),
            Section("The most probable models", [{"models": model_table(posterior)}]),
            Section("How many columns", [{"sizes": size_table(posterior)}]),
            Section("How the models were visited", [model_rates(posterior)]),
            done,
        ],
    )


def samples_page(samples: Samples, about: About) -> Page:
    """The page of sets that were drawn."""
    bars, doubts, known = inclusion_bars(samples), set_doubts(samples), samples.settings
    sets = {"sets": set_table(samples)} | ({"pairs": pair_table(samples)} if samples.k > 1 else {})
    ladder = [{"temperatures": temperature_table(samples)}] if samples.betas.size > 1 else []
    columns, drawn_sets = plural(samples.k, "column"), plural(samples.energies[:, -1].size, "set")
    data = (known["rows"], known["columns"], known["data"])
    done = _done(samples, about, data, [("Engine", samples.engine)], known, _FLIPS)
    return Page(
        title=f"Sets of {columns} at a finite temperature",
        version=pairflip.__version__,
        lead=f"{known['rows']:,} rows, {known['columns']:,} columns, {drawn_sets} of {columns} drawn.",
        answer=set_answer(samples),
        cautions=doubts,
        mood="not" if doubts else "fairly",
        conditions=set_conditions(samples),
        sections=[
            _inclusion("How often each column is in the set", bars, inclusion_table(samples, bars)),
            Section("The sets that were drawn most often", [sets]),
            Section("How the walks went", [set_rates(samples), *ladder]),
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
    shown = drawing(PROBABILITIES, bars, label, f"Bars: {bars.cut}, the most probable first.")
    return Section(title, [shown, {"columns": table}])


def save_probability_figures(record: Posterior | Samples, folder: str | os.PathLike[str]) -> list[Path]:
    """Write the figure of the page as SVG and PNG into `folder` (made if missing)."""
    return save_all({"inclusion": figure_of(plot_inclusion(record))}, folder)
