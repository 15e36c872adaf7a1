"""What random halves of the rows and shuffled targets say about the chosen columns, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pairflip.report.vocabulary import NAME_LENGTH, Piece, joined, named, unit_labels, vocabulary, what_is_counted
from pairflip.selection.stability import THRESHOLD
from pairflip.selection.verdict import size_to_show
from pairflip.text import number, percent, plural, r2_text

if TYPE_CHECKING:
    from pairflip.selection.curve import SizeCurve
    from pairflip.selection.stability import Stability

_SINGLE = 6  # columns that are named one by one with their frequencies
_OTHERS = 3  # columns named that were not chosen, but selected more often than a chosen one
_CONDITIONS = "if the size had been fixed beforehand and all {}s without effect were equally likely to be selected"


def known(curve: SizeCurve, size: int) -> Stability | None:
    """The half-samples of a size, where they say something: not where all columns are selected anyway."""
    halves = curve.stability
    return halves if halves is not None and size in halves.sizes and 0 < size < halves.n_candidates else None


def stability_words(curve: SizeCurve, size: int) -> list[Piece]:
    """How often random halves of the rows selected the same set and each of its columns, and the bound."""
    halves = known(curve, size)
    if halves is None:
        return []
    frequency = {j: halves.frequency(j, size) for j in halves.chosen[halves.at(size)].tolist()}
    chosen = sorted(frequency, key=lambda j: -frequency[j])
    same_set = percent(float(halves.set_frequency[halves.at(size)]))
    unit = what_is_counted(curve)
    same = f"the same {unit} was" if size == 1 else f"the same {size} {unit}s were"
    pieces: list[Piece] = [(f" In {2 * halves.pairs} {halves.how}, {same} selected in {same_set}", False)]
    stable = [j for j in chosen if frequency[j] >= THRESHOLD - 1e-9]
    rest = chosen[len(stable) :]
    if size > 1:
        pieces.append(("; ", False))
        if stable:
            each = "" if len(stable) == 1 else "each "
            pieces += named(unit_labels(curve, stable, NAME_LENGTH))
            pieces.append((f" {each}in at least {percent(THRESHOLD)}" + (", " if rest else ""), False))
        if len(rest) > _SINGLE:
            low, high = percent(frequency[rest[-1]]), percent(frequency[rest[0]])
            pieces.append((f"the {'other ' if stable else ''}{len(rest)} in {low} to {high}", False))
        else:
            pieces += joined([_with_frequency(curve, j, frequency[j]) for j in rest])
    pieces.append((".", False))
    # Columns that were selected in more half-samples than the chosen column with the fewest (the last one).
    least, every = frequency[chosen[-1]], zip(halves.columns.tolist(), halves.frequencies[halves.at(size)], strict=True)
    others = sorted((-float(often), j) for j, often in every if j not in frequency and often > least + 1e-9)
    if others:
        items = [_with_frequency(curve, j, -often) for often, j in others[:_OTHERS]]
        if len(others) > _OTHERS:
            items.append([(f"{len(others) - _OTHERS} more", False)])
        last = named(unit_labels(curve, chosen[-1:], NAME_LENGTH))
        pieces.append((" Not chosen, but selected more often than ", False))
        pieces += [*last, (": ", False), *joined(items), (".", False)]
    if stable:
        most = number(halves.bound(THRESHOLD, size).worst_case, 2)
        expected = f" Of {unit}s without effect, at most {most} would be expected to reach {percent(THRESHOLD)}"
        pieces.append((f"{expected} by chance, {_CONDITIONS.format(unit)}.", False))
    return pieces


def _with_frequency(curve: SizeCurve, unit: int, frequency: float) -> list[Piece]:
    return [*named(unit_labels(curve, [unit], NAME_LENGTH)), (f" in {percent(frequency)}", False)]


def null_words(curve: SizeCurve) -> str:
    """What shuffled targets give at the same size, or nothing."""
    shuffled = curve.null
    if shuffled is None:
        return ""
    times = "once" if shuffled.r2.size == 1 else f"{shuffled.r2.size} times"
    unit = what_is_counted(curve)
    columns = f"the best {unit}" if shuffled.size == 1 else f"the best {shuffled.size} {unit}s"
    overlap, same = percent(float(shuffled.overlap.mean())), percent(float(shuffled.set_frequency.mean()))
    again = f"random halves selected {overlap} of these {unit}s again on average, the same set in {same}"
    if shuffled.size == 1:
        again = f"on average {same} of the random halves selected that {unit} again"
    r2 = (float(np.median(shuffled.r2)), float(shuffled.r2.max()))
    middle, highest = ("below -1" if value < -1 else r2_text(value) for value in r2)
    return (
        f" With the {vocabulary(curve).target} shuffled {times}, {columns} had R2 {middle} on held-out rows (median; "
        f"the highest {highest}), and {again}."
    )


def stability_record(curve: SizeCurve) -> dict[str, Any] | None:
    """What half-samples say about the size shown, for machines."""
    size, halves = size_to_show(curve), curve.stability
    if halves is None or size not in halves.sizes:
        return None
    at, names = halves.at(size), dict(zip(halves.columns.tolist(), halves.names, strict=True))
    bounds = [halves.bound(threshold, size) for threshold in (0.6, 0.7, 0.8, 0.9)]
    return {
        "size": size,
        "half_samples": 2 * halves.pairs,
        "set_frequency": float(halves.set_frequency[at]),
        "overlap": float(halves.overlap[at]),
        "pair_overlap": float(halves.pair_overlap[at]),
        "frequencies": {names[j]: halves.frequency(j, size) for j in halves.chosen[at].tolist()},
        "threshold": THRESHOLD,
        "passing": [names[j] for j in halves.passing(THRESHOLD, size).tolist()],
        "expected_false": [
            {"threshold": b.threshold, "worst_case": b.worst_case, "r_concave": b.r_concave} for b in bounds
        ],
    }


def bound_words(curve: SizeCurve, halves: Stability, size: int) -> str:
    """Both bounds on the number of false columns, for the caption of the figure."""
    unit, bound = what_is_counted(curve), halves.bound(THRESHOLD, size)
    return (
        f"Of {plural(halves.n_candidates, f'candidate {unit}')}, at most {number(bound.worst_case, 2)} without effect "
        f"would be expected to reach {percent(THRESHOLD)} (Meinshausen and Bühlmann), {_CONDITIONS.format(unit)}; at "
        f"most {number(bound.best, 2)} if their frequencies are also r-concave (Shah and Samworth)."
    )
