"""A proof in words: what is certain about the best columns of one size, and what is not.

It is written here and nowhere else: `pairflip prove`, `pairflip fit`, notebooks, the answer and the page show this.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pairflip.engines.base import reaches
from pairflip.report.registry import FigureTable
from pairflip.report.vocabulary import NAME_LENGTH, named_columns, plain
from pairflip.text import NOTHING, aligned, column_labels, number, plural

if TYPE_CHECKING:
    from pairflip.search.prove import Proof
    from pairflip.selection.curve import SizeCurve

HEADS = ("Rank", "Energy", "R2", "Worse by", "Columns")
"""Headings of `best_rows`."""

_SETS = 3  # that are named in a sentence
_NAMED = 6  # columns of a set; of a larger one, or if fewer than half of them differ, only those are named that differ
_ROWS = 20  # sets in the page
_SECONDS = ((86_400.0, "days"), (3600.0, "h"), (60.0, "min"))


def proof_sentence(proof: Proof, budget: float | None = None, chosen: Sequence[int] | None = None) -> str:
    """What is proved, as plain text with names in quotes."""
    return plain(proof_words(proof, budget, chosen))


def proof_words(proof: Proof, budget: float | None = None, chosen: Sequence[int] | None = None) -> str:
    """What is proved, or how much is known without a proof; equally good sets are other ones than those `chosen`."""
    if proof.subsets == 1 and proof.optimal:
        return f"Proved: there is no other set of {plural(proof.k, proof.counted)} to choose."
    perfect = reaches(proof.energy, 0.0, proof.yy)  # only rounding is left of the energy
    if not (proof.optimal or perfect):
        return _unproved(proof, budget)
    one, unit = proof.k == 1, proof.counted
    units, fit = (unit, "fits") if one else (f"{proof.k} {unit}s", "fit")
    keeping = f" that {'keeps' if one else 'keep'} the limits" if proof.limited else ""
    proved = f"Proved: no other {units} of these {proof.n_candidates:,}{keeping} {fit} better"
    if perfect:
        these = "this" if one else "these"
        proved = f"Proved: {these} {units} {fit} the target perfectly, so that nothing can fit better"
    best = proof.support if chosen is None else np.sort(np.asarray(chosen, dtype=np.int64))
    others = [support for support in proof.supports[: proof.equals] if not np.isin(support, best).all()]
    if others:
        # Where all that was asked for are equal, there may be more of them.
        least = "at least " if proof.runner_up is None and len(proof.supports) < proof.subsets else ""
        many = plural(len(others), f"other {unit}" if one else "other set")
        proved += f"; {least}{many} {'fits' if len(others) == 1 else 'fit'} exactly as well: "
    elif proof.runner_up is not None and proof.optimal:
        others = [proof.supports[proof.runner_up]]
        proved += f"; the next best{'' if one else ' set'} "
        if perfect:
            proved += f"leaves an energy of {number(float(proof.energies[proof.runner_up]), 3)}: "
        else:
            proved += f"is {worse(float(proof.excess()[proof.runner_up]))} worse: "
    return f"{proved}{_sets(proof, others, best)}.{_left_out(proof)}"


def _left_out(proof: Proof) -> str:
    """Which columns count as dependent, where that matters."""
    if not proof.dependent:
        return ""
    groups = " or ".join(named_columns(proof.names, columns) for columns in proof.dependent[:_SETS])
    return f" Left out are sets with {groups} together, which count as dependent; such a set fits better."


def _unproved(proof: Proof, budget: float | None) -> str:
    """What is known without a proof."""
    if proof.note == "interrupted":
        began = f"Interrupted after {seconds_text(proof.seconds)}, before anything was proved"
    else:
        began = "No proof" + ("" if budget is None else f" within the budget of {seconds_text(budget)}")
    if proof.lower_bound <= 0.0:
        return f"{began}: better sets may exist, and no bound better than zero can be given."
    if proof.gap == 0.0:
        return f"{began} of which sets are the best, but no set has a lower energy than the one found."
    # Never rounded down: it is a promise.
    lower = "more than 99.9 %" if proof.gap > 0.999 else f"up to {math.ceil(1000.0 * proof.gap) / 10.0:g} %"
    return f"{began}: a better set could have an energy {lower} lower."


def _sets(proof: Proof, supports: Sequence[Any], best: Any) -> str:
    """Sets of columns in a sentence; of large ones, what they exchange for what."""
    texts = []
    for support in supports[:_SETS]:
        inside, outside = np.setdiff1d(support, best), np.setdiff1d(best, support)
        exchanged = [inside, outside] if 2 * inside.size < proof.k or proof.k > _NAMED else [support]
        texts.append(" in place of ".join(named_columns(proof.names, columns) for columns in exchanged))
    if len(supports) > _SETS:
        texts.append(f"and {len(supports) - _SETS:,} more")
    return "; ".join(texts)


def worse(excess: float) -> str:
    """By how much an energy exceeds the lowest: ``2.1 %``, ``0.0003 %``; never rounded to nothing."""
    if not math.isfinite(excess):
        return NOTHING
    if excess == 0.0:
        return "0 %"
    if excess < 1e-6:
        return "less than 0.0001 %"
    return f"{number(100.0 * excess, 2)} %"


def seconds_text(seconds: float) -> str:
    """A time: ``60 s``, ``5 min``, ``3 h``, ``12 days``."""
    for size, unit in _SECONDS:
        if seconds >= 2.0 * size:
            return f"{number(seconds / size, 2)} {unit}"
    return f"{number(seconds, 2)} s"


def best_rows(proof: Proof, names: int | None = NAME_LENGTH, most: int | None = None) -> list[tuple[str, ...]]:
    """The best sets as texts, in the order of `HEADS`."""
    energies, excess = proof.energies[:most], proof.excess()[:most]
    perfect = reaches(proof.energy, 0.0, proof.yy)  # only rounding is left of the energy
    shown = [NOTHING if perfect and at >= proof.equals else worse(float(e)) for at, e in enumerate(excess)]
    shown[: proof.equals] = ["0 %"] * len(shown[: proof.equals])  # rounding does not decide between equals
    return list(
        zip(
            [str(at + 1) for at in range(len(energies))],
            aligned(energies, 6, 3),
            [f"{r2:.4f}" for r2 in r_squared(proof)[:most]],
            shown,
            [", ".join(column_labels(proof.names, support.tolist(), names)) for support in proof.supports[:most]],
            strict=True,
        )
    )


def r_squared(proof: Proof) -> list[float]:
    """R2 of the best sets on the rows they were fitted to, beside columns that are always in the model."""
    return [float(1.0 - 2.0 * energy / proof.yy) for energy in proof.energies]


def count_words(proof: Proof) -> str:
    """How many sets are nearly as good, or nothing if that was not counted."""
    each = zip(proof.within.tolist(), proof.counts.tolist(), strict=True)
    parts = [f"{count:,} within {number(100.0 * distance)} %" for distance, count in each]
    if not parts:
        return ""
    have = "has" if proof.counts[0] == 1 else "have"
    parts[0] = parts[0].replace(" within", f" {have} an energy within").replace("%", "% of the lowest")
    return f"Of all {proof.subsets:,} sets, the best one included, {', '.join(parts)}."


def proof_record(proof: Proof, budget: float | None = None, chosen: Sequence[int] | None = None) -> dict[str, Any]:
    """What is proved, for machines."""
    excess = [float(e) if math.isfinite(e) else None for e in proof.excess()]
    sets = zip(proof.energies.tolist(), r_squared(proof), excess, proof.supports.tolist(), strict=True)
    return {
        "k": proof.k,
        "proved": proof.optimal,
        "columns": proof.columns,
        "energy": proof.energy,
        "lower_bound": proof.lower_bound,
        "gap": proof.gap,
        "equals": proof.equals,
        "dependent": [[proof.names[j] for j in columns] for columns in proof.dependent],
        "best": [
            {"rank": at, "energy": energy, "r_squared": r2, "excess": e, "columns": [proof.names[j] for j in support]}
            for at, (energy, r2, e, support) in enumerate(sets, 1)
        ],
        "within": [
            {"distance": distance, "count": count}
            for distance, count in zip(proof.within.tolist(), proof.counts.tolist(), strict=True)
        ],
        "candidates": proof.n_candidates,
        "subsets": proof.subsets,
        "looked": proof.looked,
        "method": proof.method,
        "seconds": proof.seconds,
        "budget": budget,
        "note": proof.note,
        "sentence": proof_sentence(proof, budget, chosen),
    }


def proof_of(curve: SizeCurve, size: int) -> Proof | None:
    """The proof that the final fit of a size is the best, with the names of the curve; None if there is none."""
    proof = None if curve.proved is None or not size else curve.proved[curve.at(size)]
    return None if proof is None or not proof.optimal else replace(proof, names=curve.names)


def next_best(curve: SizeCurve, size: int) -> tuple[FigureTable, str] | None:
    """The best sets of a size as a table, and how many more are nearly as good; None where these are not known."""
    proof = proof_of(curve, size)
    if proof is None or len(proof.energies) < 2:
        return None
    about = (
        "The sets that fit all rows best, proved: no other set has a lower energy (half the residual sum of squares) "
        "than the last one here. R2 on the rows that were fitted; worse by: how much higher the energy is than the "
        "lowest. Where the next ones are hardly worse, the names of the first are partly chance."
    )
    rows = [(row[-1], *row[:-1]) for row in best_rows(proof, most=_ROWS)]
    return FigureTable("", (HEADS[-1], *HEADS[:-1]), rows, about), count_words(proof)
