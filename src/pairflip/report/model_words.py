"""What is said about probabilities of columns and models (`posterior`): the answer, what to doubt, tables of texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pairflip.report.figures_by_column import chance_text
from pairflip.report.halves import NAME_LENGTH, Piece, joined
from pairflip.report.mixing import walk_doubts
from pairflip.report.numbers import InclusionBars
from pairflip.report.registry import FigureTable
from pairflip.text import aligned, column_labels, number, percent, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pairflip.search.posterior import Posterior

MOST_NAMED = 6
"""Columns that a sentence names one by one."""
MOST_SETS = 20
"""Models or sets in a table."""
_LONGER = "Walk longer (--sweeps, in Python sweeps=)."
_SIZES = 20  # numbers of columns in a table


def model_answer(found: Posterior) -> list[Piece]:
    """Which columns belong in the model with a probability of one half or more, and the most probable model."""
    often = sorted(found.median_probability_model.tolist(), key=lambda j: -found.inclusion_probability[j])
    chances = found.inclusion_probability[often].tolist()
    likely = int(found.size_probability.argmax())
    counted = plural(int(found.problem.candidates.size), "column")
    pieces: list[Piece] = [(f"No column of {counted} has", False)]
    if often:
        pieces = [(f"{len(often):,} of {counted} {'has' if len(often) == 1 else 'have'}", False)]
    pieces.append((" a probability of 50 % or more of belonging in the model", False))
    if often:
        pieces += [(": ", False), *named_chances(found.names, often, chances)]
    best = named(found.names, found.highest_probability_model.tolist())
    share = percent(float(found.model_probability[0]))
    pieces.append((f". The most probable model ({share}) has ", False))
    pieces += best or [("no columns", False)]
    pieces.append(
        (f"; the most probable number of columns is {likely} ({percent(found.size_probability[likely])}).", False)
    )
    return pieces


def model_doubts(found: Posterior) -> list[str]:
    """What to doubt about walks among models; where all were visited, there is nothing."""
    return walk_doubts(found, _LONGER) if found.sizes.size else []


def model_conditions(found: Posterior) -> list[str]:
    """What the probabilities are conditional on."""
    return [
        found.assumptions,
        "If no set of columns is the truth, the probabilities say which sets come closest. Another g or another prior "
        "of the models gives other probabilities: try one, and see whether your conclusion changes.",
        "Columns that are alike share their probability: where one of two is needed and the data do not say which, "
        "each has about half. A low probability is then no evidence of no effect.",
    ]


def column_table(found: Posterior, bars: InclusionBars) -> FigureTable:
    """The columns of the figure with coefficients averaged over models, then those that are always in."""
    columns, always = bars.columns.tolist(), found.problem.always.tolist()
    means = aligned([*found.coef_mean[[*columns, *always]].tolist(), found.intercept])
    sds = [*aligned(found.coef_sd[columns].tolist(), 2), *[""] * (len(always) + 1)]
    chances = [chance_text(p, e) for p, e in zip(bars.probability, bars.error, strict=True)]
    chances += [*["always"] * len(always), "constant"]
    labels = [*column_labels(found.names, [*columns, *always], 80), "(constant)"]
    rows = list(zip(labels, chances, means, sds, strict=True))
    error = " ± Monte Carlo error" if found.sizes.size else ""
    about = (
        f"Probability that a column belongs in the model{error}, and its coefficient in the units of the table, "
        f"averaged over models (zero where the column is not in), with its standard deviation; {bars.cut}"
    )
    return FigureTable("", ["Column", "In the model", "Coefficient, averaged", "sd"], rows, about)


def model_table(found: Posterior) -> FigureTable:
    """The most probable models."""
    top = found.models[:MOST_SETS]
    rows = [
        [", ".join(column_labels(found.names, model.tolist(), NAME_LENGTH)) or "(none)", str(model.size), fine(share)]
        for model, share in zip(top, found.model_probability.tolist(), strict=False)
    ]
    total = float(found.model_probability[: len(top)].sum())
    seen = "" if found.method == "enumeration" else "; probabilities are shares of the draws"
    about = f"The {plural(len(top), 'most probable model')}, {percent(total)} of the probability together{seen}"
    return FigureTable("", ["Columns", "Number", "Probability"], rows, about)


def size_table(found: Posterior) -> FigureTable:
    """Numbers of columns with their probabilities, and what they were before the data."""
    top = np.sort(np.argsort(-found.size_probability, kind="stable")[:_SIZES])
    top = top[found.size_probability[top] > 0]
    before = found.prior.size_probability()
    rows = [[str(k), fine(found.size_probability[k]), fine(before[k])] for k in top.tolist()]
    return FigureTable("", ["Number of columns", "Probability", "Before the data"], rows, "Probability of each number")


def named(names: Sequence[str], columns: Sequence[int]) -> list[Piece]:
    """Names in a sentence, the first few, and how many more there are."""
    labels = column_labels(names, columns[:MOST_NAMED], NAME_LENGTH)
    return joined([[(label, True)] for label in labels] + _more(len(columns)))


def named_chances(names: Sequence[str], columns: Sequence[int], chances: Sequence[float]) -> list[Piece]:
    """The same with a probability behind each name."""
    labels = column_labels(names, columns[:MOST_NAMED], NAME_LENGTH)
    each: list[list[Piece]] = [
        [(label, True), (f" ({percent(chance)})", False)] for label, chance in zip(labels, chances, strict=False)
    ]
    return joined(each + _more(len(columns)))


def _more(count: int) -> list[list[Piece]]:
    return [[(f"{count - MOST_NAMED:,} more", False)]] if count > MOST_NAMED else []


def fine(share: float) -> str:
    """A probability in per cent, small ones with two digits, tiny ones by a bound."""
    if 0 < share < 1e-6:
        return "<0.0001 %"
    return percent(share) if share == 0 or share >= 0.01 else f"{number(100 * share, 2)} %"
