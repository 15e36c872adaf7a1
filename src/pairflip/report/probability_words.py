"""What is said about probabilities of columns: in models of any size (`posterior`), in sets that were drawn (`sample`).

The answer, what to doubt (whether chains went everywhere they should), what is supposed, and tables of texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import chdtri

from pairflip.engines.base import EQUAL
from pairflip.least_squares import Floats
from pairflip.report.figures_by_column import chance_text
from pairflip.report.numbers import InclusionBars
from pairflip.report.registry import FigureTable
from pairflip.report.stability_words import cluster_label
from pairflip.report.vocabulary import NAME_LENGTH, Piece, joined
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
_MOVES = {"add": "a column", "drop": "one", "flip": "a pair"}


# The answer -----------------------------------------------------------------------------------------------------------


def model_answer(posterior: Posterior) -> list[Piece]:
    """Which columns belong in the model with a probability of one half or more, and the most probable model."""
    often = sorted(posterior.median_probability_model.tolist(), key=lambda j: -posterior.inclusion_probability[j])
    likely = int(posterior.size_probability.argmax())
    candidates = plural(int(posterior.problem.candidates.size), "column")
    begin = f"{len(often):,} of {candidates} {'has' if len(often) == 1 else 'have'}" if often else ""
    pieces: list[Piece] = [(begin or f"No column of {candidates} has", False)]
    pieces.append((" a probability of 50 % or more of belonging in the model", False))
    if often:
        pieces += [(": ", False), *_named(posterior.names, often, posterior.inclusion_probability)]
    share = percent(float(posterior.model_probability[0]))
    pieces.append((f". The most probable model ({share}) has ", False))
    pieces += _named(posterior.names, posterior.highest_probability_model.tolist()) or [("no columns", False)]
    chance = percent(posterior.size_probability[likely])
    pieces.append((f"; the most probable number of columns is {likely} ({chance}).", False))
    return pieces + _cluster_words(posterior)


def _cluster_words(posterior: Posterior) -> list[Piece]:
    """Clusters of which one column or another is probable although none of them is by itself."""
    problem, chances = posterior.problem, posterior.inclusion_probability
    if problem.units is not None:
        return []
    family, taken, items = Family(problem), set[int](), list[list[Piece]]()
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
            label = cluster_label(posterior.names, often, family.ordered)
            items.append([*label, (f" ({percent(probability)})", False)])
            taken.update(columns)
    if not items:
        return []
    return [(" Columns that stand in for each other share their probability: ", False), *joined(items), (".", False)]


def set_answer(samples: Samples) -> list[Piece]:
    """Which columns are in at least half of the sets, and the set that was drawn most often."""
    chances = samples.inclusion_probability
    often = [int(j) for j in np.argsort(-chances, kind="stable") if chances[j] >= 0.5]
    many = f"{len(often):,} of {plural(int(samples.candidates.size), 'column')} {'is' if len(often) == 1 else 'are'}"
    begin = f"At beta = {number(float(samples.betas[-1]))}, {many if often else 'no column is'}"
    pieces: list[Piece] = [(f"{begin} in at least half of the sets of {samples.k}", False)]
    if often:
        pieces += [(": ", False), *_named(samples.names, often, chances)]
    ((support, share),) = samples.often_drawn(1)
    pieces.append((f". The set that was drawn most often ({percent(share)} of the draws) is ", False))
    mean, error = (float(each[-1]) for each in samples.energy)
    energy = plus_minus(mean, error if error > EQUAL * abs(mean) else 0.0)  # no error where that is rounding
    return [*pieces, *_named(samples.names, support), (f"; the mean energy is {energy}.", False)]


def _named(names: Sequence[str], columns: Sequence[int], chances: Floats | None = None) -> list[Piece]:
    """Names in a sentence, each with its probability where that is given: the first few, and how many more."""
    labels = zip(columns, column_labels(names, columns, NAME_LENGTH), strict=True)
    told = [[(label, True), ("" if chances is None else f" ({percent(chances[j])})", False)] for j, label in labels]
    return joined(told, _NAMED)


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
    sds = [*aligned(posterior.coef_sd[columns].tolist(), 2), *[""] * (len(always) + 1)]
    chances = [chance_text(p, e) for p, e in zip(bars.probability, bars.error, strict=True)]
    chances += [*["always"] * len(always), "constant"]
    labels = [*column_labels(posterior.names, [*columns, *always], 80), "(constant)"]
    rows = list(zip(labels, chances, means, sds, strict=True))
    error = " ± Monte Carlo error" if posterior.sizes.size else ""
    about = (
        f"Probability that a column belongs in the model{error}, and its coefficient in the units of the table, "
        f"averaged over models (zero where the column is not in), with its standard deviation; {bars.cut}"
    )
    return FigureTable("", ["Column", "In the model", "Coefficient, averaged", "sd"], rows, about)


def inclusion_table(samples: Samples, bars: InclusionBars) -> FigureTable:
    """The columns of the figure."""
    labels = column_labels(samples.names, bars.columns.tolist(), 80)
    rows = [[label, chance_text(p, e)] for label, p, e in zip(labels, bars.probability, bars.error, strict=True)]
    about = f"Fraction of the sets that have the column, ± Monte Carlo error; {bars.cut}"
    return FigureTable("", ["Column", "In the set"], rows, about)


def model_table(posterior: Posterior) -> FigureTable:
    """The most probable models."""
    top = posterior.models[:_SETS]
    shares = posterior.model_probability[: len(top)].tolist()
    pairs = zip(top, shares, strict=True)
    rows = [[_set(posterior.names, each.tolist()), str(each.size), _fine(p)] for each, p in pairs]
    seen = "" if posterior.method == "enumeration" else "; probabilities are shares of the draws"
    models = plural(len(top), "most probable model")
    about = f"The {models}, {percent(sum(shares))} of the probability together{seen}"
    return FigureTable("", ["Columns", "Number", "Probability"], rows, about)


def set_table(samples: Samples) -> FigureTable:
    """The sets that were drawn most often."""
    top = samples.often_drawn(_SETS)
    rows = [[_set(samples.names, support), _fine(share)] for support, share in top]
    total = percent(sum(share for _, share in top))
    about = f"{total} of the draws together" if len(top) > 1 else "No other set was drawn"
    return FigureTable("", ["Columns", "Draws"], rows, about)


def _set(names: Sequence[str], columns: Sequence[int]) -> str:
    return ", ".join(column_labels(names, columns, NAME_LENGTH)) or "(none)"


def size_table(posterior: Posterior) -> FigureTable:
    """Numbers of columns with their probabilities, and what they were before the data."""
    top = np.sort(np.argsort(-posterior.size_probability, kind="stable")[:_SETS])
    top = top[posterior.size_probability[top] > 0]
    before = posterior.prior.size_probability()
    rows = [[str(k), _fine(posterior.size_probability[k]), _fine(before[k])] for k in top.tolist()]
    return FigureTable("", ["Number of columns", "Probability", "Before the data"], rows, "Probability of each number")


def pair_table(samples: Samples) -> FigureTable:
    """Pairs of columns that were in together most often."""
    rows = [[clean(a), clean(b), _fine(share)] for a, b, share in samples.pairs(_SETS)]
    summary = "Table: columns that are in together"
    return FigureTable(summary, ["Column", "and", "Draws"], rows, "Pairs that were in most often", 2)


def temperature_table(samples: Samples) -> FigureTable:
    """What each temperature of the ladder did."""
    energy, error = samples.energy
    columns = (
        [number(beta) for beta in samples.betas.tolist()],
        aligned_plus_minus(energy.tolist(), error.tolist()),
        [percent(share) for share in samples.acceptance.tolist()],
        [*(percent(share) for share in samples.exchange.tolist()), NOTHING],
    )
    heads = ["beta", "Mean energy", "Flips accepted", "Traded with the next"]
    rows = list(zip(*columns, strict=True))
    return FigureTable("", heads, rows, "The ladder, from the hottest temperature to the coldest")


def _fine(share: float) -> str:
    """A probability in per cent, small ones with two digits, tiny ones by a bound."""
    if 0 < share < 1e-6:
        return "<0.0001 %"
    return percent(share) if share == 0 or share >= 0.01 else f"{number(100 * share, 2)} %"
