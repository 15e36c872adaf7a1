"""What is said about sets drawn at a temperature (`sample`, `temper`): the answer, what to doubt, tables of texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pairflip.engines.base import EQUAL
from pairflip.report.figures_by_column import chance_text
from pairflip.report.halves import NAME_LENGTH, Piece
from pairflip.report.mixing import ladder_doubts, walk_doubts
from pairflip.report.model_words import MOST_SETS, fine, named, named_chances
from pairflip.report.numbers import InclusionBars
from pairflip.report.registry import FigureTable
from pairflip.text import NOTHING, aligned_plus_minus, clean, column_labels, number, percent, plural, plus_minus

if TYPE_CHECKING:
    from pairflip.search.sampling import Samples


def set_answer(found: Samples) -> list[Piece]:
    """Which columns are in at least half of the sets, and the set that was drawn most often."""
    chances = found.inclusion_probability
    often = [int(j) for j in np.argsort(-chances, kind="stable") if chances[j] >= 0.5]
    beta = number(float(found.betas[-1]))
    counted = plural(int(found.candidates.size), "column")
    pieces: list[Piece] = [(f"At beta = {beta}, ", False)]
    pieces.append(
        (f"{len(often):,} of {counted} {'is' if len(often) == 1 else 'are'}" if often else "no column is", False)
    )
    pieces.append((f" in at least half of the sets of {found.k}", False))
    if often:
        pieces += [(": ", False), *named_chances(found.names, often, chances[often].tolist())]
    ((support, share),) = found.often_drawn(1)
    pieces.append((f". The set that was drawn most often ({percent(share)} of the draws) is ", False))
    pieces += named(found.names, support)
    pieces.append((f"; the mean energy is {mean_energy(found)}.", False))
    return pieces


def mean_energy(found: Samples) -> str:
    """The mean energy at the coldest temperature with its error, unless that is rounding."""
    mean, error = (float(each[-1]) for each in found.energy)
    return plus_minus(mean, error if error > EQUAL * abs(mean) else 0.0)


def set_doubts(found: Samples) -> list[str]:
    """What to doubt about the walks."""
    longer = "Walk longer (--sweeps), or use a ladder of temperatures (--temper, in Python temper)."
    if found.betas.size > 1:
        longer = "Walk longer (--sweeps, in Python sweeps=)."
    return [*walk_doubts(found, longer), *ladder_doubts(found)]


def set_conditions(found: Samples) -> list[str]:
    """What the probabilities are conditional on."""
    return [
        f"Every set has exactly {plural(found.k, 'column')}, beside those that are always in, and the probability of a "
        f"set S is proportional to exp(-beta E(S)) with beta = {number(float(found.betas[-1]))}; the energy E is half "
        "the sum of squared residuals. With beta = 1/v that is the likelihood of the set when the noise is normal with "
        "variance v, and all sets are alike before the data.",
        "A column is in some set of this size whether it is needed or not: before the data, each has the probability "
        f"{percent(found.k / found.candidates.size)}. How probable it is that a column belongs in a model of any size "
        "is what pairflip posterior says. Columns that are alike share their probability.",
    ]


def inclusion_table(found: Samples, bars: InclusionBars) -> FigureTable:
    """The columns of the figure."""
    labels = column_labels(found.names, bars.columns.tolist(), 80)
    rows = [[label, chance_text(p, e)] for label, p, e in zip(labels, bars.probability, bars.error, strict=True)]
    about = f"Fraction of the sets that have the column, ± Monte Carlo error; {bars.cut}"
    return FigureTable("", ["Column", "In the set"], rows, about)


def set_table(found: Samples) -> FigureTable:
    """The sets that were drawn most often."""
    top = found.often_drawn(MOST_SETS)
    rows = [[", ".join(column_labels(found.names, support, NAME_LENGTH)), fine(share)] for support, share in top]
    total = sum(share for _, share in top)
    about = f"{percent(total)} of the draws together" if len(top) > 1 else "No other set was drawn"
    return FigureTable("", ["Columns", "Draws"], rows, about)


def pair_table(found: Samples) -> FigureTable:
    """Pairs of columns that were in together most often."""
    rows = [[clean(a), clean(b), fine(share)] for a, b, share in found.pairs(MOST_SETS)]
    summary = "Table: columns that are in together"
    return FigureTable(summary, ["Column", "and", "Draws"], rows, "Pairs that were in most often", 2)


def temperature_table(found: Samples) -> FigureTable:
    """What each temperature of the ladder did."""
    energy, error = found.energy
    traded = [*(percent(share) for share in found.exchange.tolist()), NOTHING]
    rows = list(
        zip(
            [number(beta) for beta in found.betas.tolist()],
            aligned_plus_minus(energy.tolist(), error.tolist()),
            [percent(share) for share in found.acceptance.tolist()],
            traded,
            strict=True,
        )
    )
    heads = ["beta", "Mean energy", "Flips accepted", "Traded with the next"]
    return FigureTable("", heads, rows, "The ladder, from the hottest temperature to the coldest")
