"""What half-samples and shuffled targets say, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pairflip.report.group_words import unit_labels, what_is_counted
from pairflip.selection.stability import THRESHOLD
from pairflip.selection.verdict import size_to_show
from pairflip.text import column_labels, number, percent, plural, r2_text

if TYPE_CHECKING:
    from pairflip.selection.curve import SizeCurve
    from pairflip.selection.stability import Stability

Piece = tuple[str, bool]
"""A text, and whether it is a name: names are set apart, so that they are never read as markup."""

NAME_LENGTH = 48
_SINGLE = 6  # columns that are named one by one with their frequencies
_OTHERS = 3  # columns named that were not chosen, but selected more often than a chosen one
_SHAKY_NAMES = 0.5
CONDITIONS = "if the size had been fixed beforehand and all columns without effect were equally likely to be selected"


def listed(curve: SizeCurve, columns: Sequence[int]) -> list[Piece]:
    """Names in a sentence: a, b and c."""
    return joined([[(label, True)] for label in column_labels(curve.names, columns, NAME_LENGTH)])


def _named(curve: SizeCurve, units: Sequence[int]) -> list[Piece]:
    """The same for what is counted: columns, or groups by their first columns."""
    return joined([[(label, True)] for label in unit_labels(curve, units, NAME_LENGTH)])


def conditions(curve: SizeCurve) -> str:
    """What the bounds on false columns, or groups, suppose."""
    return CONDITIONS.replace("column", what_is_counted(curve))


def joined(items: Sequence[list[Piece]]) -> list[Piece]:
    """Parts of a list in a sentence, with commas and "and"."""
    pieces: list[Piece] = []
    for i, item in enumerate(items):
        if i:
            pieces.append((" and " if i == len(items) - 1 else ", ", False))
        pieces += item
    return pieces


def plain(pieces: Iterable[Piece]) -> str:
    """Pieces as plain text, names in quotes."""
    return "".join(f"“{text}”" if is_name else text for text, is_name in pieces)


def known(curve: SizeCurve, size: int) -> Stability | None:
    """The half-samples of a size, where they say something: not where all columns are selected anyway."""
    halves = curve.stability
    return halves if halves is not None and size in halves.sizes and 0 < size < halves.n_candidates else None


def stability_words(curve: SizeCurve, size: int) -> list[Piece]:
    """How often random halves of the rows selected the same set and each of its columns, and the bound."""
    halves = known(curve, size)
    if halves is None:
        return []
    chosen = halves.chosen[halves.at(size)].tolist()
    chosen.sort(key=lambda j: -halves.frequency(j, size))
    often = percent(float(halves.set_frequency[halves.at(size)]))
    what = what_is_counted(curve)
    same = f"the same {what} was" if size == 1 else f"the same {size} {what}s were"
    pieces: list[Piece] = [(f" In {2 * halves.pairs} {halves.how}, {same} selected in {often}", False)]
    stable = [j for j in chosen if halves.frequency(j, size) >= THRESHOLD - 1e-9]
    if size > 1:
        pieces += [("; ", False), *_by_column(curve, halves, size, chosen, len(stable))]
    pieces.append((".", False))
    pieces += _passed_over(curve, halves, size, chosen)
    if stable:
        most = number(halves.bound(THRESHOLD, size).worst_case, 2)
        pieces.append(
            (f" Of {what}s without effect, at most {most} would be expected to reach {percent(THRESHOLD)} ", False)
        )
        pieces.append((f"by chance, {conditions(curve)}.", False))
    return pieces


def _by_column(curve: SizeCurve, halves: Stability, size: int, chosen: list[int], stable: int) -> list[Piece]:
    """Columns that were selected nearly always, then the others with their frequencies."""
    parts: list[Piece] = []
    top, rest = chosen[:stable], chosen[stable:]
    if top:
        each = "" if len(top) == 1 else "each "
        parts += [*_named(curve, top), (f" {each}in at least {percent(THRESHOLD)}", False)]
    if rest:
        parts.append((", " if top else "", False))
        if len(rest) <= _SINGLE:
            parts += joined([[*_named(curve, [j]), (f" in {percent(halves.frequency(j, size))}", False)] for j in rest])
        else:
            most, least = halves.frequency(rest[0], size), halves.frequency(rest[-1], size)
            parts.append((f"the {'other ' if top else ''}{len(rest)} in {percent(least)} to {percent(most)}", False))
    return parts


def _passed_over(curve: SizeCurve, halves: Stability, size: int, chosen: list[int]) -> list[Piece]:
    """Columns that were selected in more half-samples than the chosen column with the fewest (the last one)."""
    least = halves.frequency(chosen[-1], size)
    every = zip(halves.columns.tolist(), halves.frequencies[halves.at(size)].tolist(), strict=True)
    others = sorted((-often, j) for j, often in every if j not in chosen and often > least + 1e-9)
    if not others:
        return []
    named = [[*_named(curve, [j]), (f" in {percent(-often)}", False)] for often, j in others[:_OTHERS]]
    if len(others) > _OTHERS:
        named.append([(f"{len(others) - _OTHERS} more", False)])
    return [(" Not chosen, but selected more often than ", False), *_named(curve, chosen[-1:]), (": ", False),
            *joined(named), (".", False)]  # fmt: skip


def null_words(curve: SizeCurve) -> str:
    """What shuffled targets give at the same size, or nothing."""
    null = curve.null
    if null is None:
        return ""
    target = "target" if curve.targets is None else "targets"
    times = "once" if null.r2.size == 1 else f"{null.r2.size} times"
    what = what_is_counted(curve)
    columns = f"the best {what}" if null.size == 1 else f"the best {null.size} {what}s"
    overlap, same = percent(float(null.overlap.mean())), percent(float(null.set_frequency.mean()))
    again = f"random halves selected {overlap} of these {what}s again on average, the same set in {same}"
    if null.size == 1:
        again = f"on average {same} of the random halves selected that {what} again"
    middle, highest = _r2(float(np.median(null.r2))), _r2(float(null.r2.max()))
    return (
        f" With the {target} shuffled {times}, {columns} had R2 {middle} on held-out rows (median; the highest "
        f"{highest}), and {again}."
    )


def _r2(value: float) -> str:
    return "below -1" if value < -1 else r2_text(value)


def unstable_names(curve: SizeCurve, size: int) -> list[str]:
    """The doubt where halves of the rows select mostly other columns."""
    halves = known(curve, size)
    if halves is None or halves.overlap[halves.at(size)] >= _SHAKY_NAMES:
        return []
    again, what = percent(float(halves.overlap[halves.at(size)])), f"{what_is_counted(curve)}s"
    return [
        f"Which {what} is not certain: {halves.how} selected only {again} of these {what} again, on average. Do not "
        f"read the names as a finding; other {what} may predict as well."
    ]


def stability_record(curve: SizeCurve) -> dict[str, Any] | None:
    """The same for machines: what result.json says about the size shown, beside the whole record."""
    size = size_to_show(curve)
    halves = curve.stability
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
    """Both bounds, for the caption of the figure."""
    bound, count = halves.bound(THRESHOLD, size), plural(halves.n_candidates, f"candidate {what_is_counted(curve)}")
    return (
        f"Of {count}, at most {number(bound.worst_case, 2)} without effect would be expected to reach "
        f"{percent(THRESHOLD)} (Meinshausen and Bühlmann), {conditions(curve)}; at most {number(bound.best, 2)} if "
        "their frequencies are also r-concave (Shah and Samworth)."
    )
