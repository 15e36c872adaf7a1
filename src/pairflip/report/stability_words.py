"""What random halves of the rows and shuffled targets say about the chosen columns, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from pairflip.report.vocabulary import (
    NAME_LENGTH,
    joined,
    named,
    named_columns,
    plain,
    unit_labels,
    vocabulary,
    what_is_counted,
)
from pairflip.rules import name_positions
from pairflip.selection.stability import THRESHOLD, Finding
from pairflip.text import column_labels, number, percent, plural, r2_text

if TYPE_CHECKING:
    from pairflip.selection.curve import SizeCurve
    from pairflip.selection.stability import Stability
    from pairflip.supports import Ints

_SINGLE = 6  # columns that are named one by one with their frequencies
_LISTED = 3  # columns of a cluster that are named one by one
_STEADIER = 0.5  # frequency of a band or cluster that is worth naming where its columns are not
_OTHERS = 3  # columns named that were not chosen, but selected more often than a chosen one


def known(curve: SizeCurve, size: int) -> Stability | None:
    """The half-samples of a size, where they say something: not where all columns are selected anyway."""
    halves = curve.stability
    return halves if halves is not None and size in halves.sizes and 0 < size < halves.n_candidates else None


def stability_words(curve: SizeCurve, size: int) -> str:
    """How often random halves of the rows selected the same set, and its columns or their bands and clusters."""
    halves = known(curve, size)
    if halves is None:
        return ""
    unit, same_set = what_is_counted(curve), percent(float(halves.set_frequency[halves.at(size)]))
    same = f"this {unit} was" if size == 1 else f"exactly these {size} {unit}s were"
    text = f"In {2 * halves.pairs} {halves.how}, {same} selected in {same_set}."
    chosen = levels(halves, size)
    stable = [level for level in chosen if level.columns.size == 1 and level.frequency >= THRESHOLD - 1e-9]
    others = [level for level in chosen if level not in stable]
    if size == 1 and all(level.columns.size == 1 for level in others):
        return text
    parts = []
    if stable:
        names = named(unit_labels(curve, [int(level.columns[0]) for level in stable], NAME_LENGTH))
        parts.append(f"{names} {'each ' if len(stable) > 1 else ''}in at least {percent(THRESHOLD)}")
    if len(others) > _SINGLE:
        low, high = percent(others[-1].frequency), percent(others[0].frequency)
        nouns = [f"{unit}s"] * any(level.columns.size == 1 for level in others)
        nouns += [f"{cluster_word(halves)}s"] * any(level.columns.size > 1 for level in others)
        parts.append(f"{'the other ' if stable else ''}{len(others)} {' and '.join(nouns)} in {low} to {high}")
    elif others:
        parts.append(joined([_with_frequency(curve, halves, size, level) for level in others]))
    return f"{text} One by one: {', '.join(parts)}."


def levels(halves: Stability, size: int) -> list[Finding]:
    """The chosen columns, each alone or within its cluster, at the level at which it is stable; most frequent first."""
    levels, clusters = list[Finding](), halves.stable_clusters(0.0, size)
    for j in halves.chosen[halves.at(size)].tolist():
        frequency = halves.frequency(j, size)
        level = _alone(j, frequency)
        for cluster in clusters:
            wider = cluster.columns.size > 1 and cluster.frequency > frequency
            if wider and j in cluster.members and frequency < THRESHOLD - 1e-9:
                level = cluster
        if level not in levels:
            levels.append(level)
    return sorted(levels, key=lambda level: -level.frequency)


def _alone(column: int, frequency: float) -> Finding:
    return Finding(np.array([column]), np.array([column]), frequency)


def steadier(curve: SizeCurve, halves: Stability, size: int) -> str:
    """Bands or clusters of chosen columns that at least half of the half-samples selected, as plain text."""
    wide = [level for level in levels(halves, size) if level.columns.size > 1 and level.frequency >= _STEADIER]
    return plain(joined([_with_frequency(curve, halves, size, level) for level in wide[:_SINGLE]]))


def cluster_word(halves: Stability) -> str:
    """Columns that stand in for each other are a band of a spectrum, or else a cluster."""
    return "band" if halves.profile is not None else "cluster"


def stability_details(curve: SizeCurve, size: int) -> str:
    """Columns that were selected more often than what was chosen, and the bound on what chance would make stable."""
    halves = known(curve, size)
    if halves is None:
        return ""
    chosen, sentences = levels(halves, size), []
    taken = np.concatenate([level.members for level in chosen] + [halves.chosen[halves.at(size)]])
    frequencies = zip(halves.columns.tolist(), halves.frequencies[halves.at(size)], strict=True)
    more_often = sorted((-float(f), j) for j, f in frequencies if j not in taken and f > chosen[-1].frequency + 1e-9)
    if more_often:
        columns = [_with_frequency(curve, halves, size, _alone(j, -f)) for f, j in more_often[:_OTHERS]]
        if len(more_often) > _OTHERS:
            columns.append(f"{len(more_often) - _OTHERS} more")
        least = level_label(curve, halves, size, chosen[-1].columns)
        sentences.append(f"Not chosen, but selected more often than {least}: {joined(columns)}.")
    stable = [level for level in chosen if level.frequency >= THRESHOLD - 1e-9]
    if stable:
        sentences.append(bound_words(curve, halves, size, any(level.columns.size > 1 for level in stable)))
    return " ".join(sentences)


def level_label(curve: SizeCurve, halves: Stability, size: int, columns: Ints) -> str:
    """A column, or a group, by its name; a band or cluster as `cluster_label` says."""
    if columns.size == 1:
        return named(unit_labels(curve, columns.tolist(), NAME_LENGTH))
    often = sorted(columns.tolist(), key=lambda j: -halves.frequency(j, size))
    return cluster_label(curve.names, often, halves.profile is not None)


def cluster_label(names: Sequence[str], columns: list[int], ordered: bool) -> str:
    """Columns that stand in for each other, the first of which matters most: a band by its ends, few by their names."""
    if ordered:
        order = np.argsort(name_positions([names[j] for j in columns]), kind="stable")
        ends = column_labels(names, [columns[order[0]], columns[order[-1]]], NAME_LENGTH)
        return f"one of {' to '.join(named([end]) for end in ends)}"
    if len(columns) > _LISTED:
        return f"one of {len(columns)} columns like {named_columns(names, columns[:1])}"
    return f"one of {named_columns(names, columns)}"


def _with_frequency(curve: SizeCurve, halves: Stability, size: int, level: Finding) -> str:
    return f"{level_label(curve, halves, size, level.columns)} in {percent(level.frequency)}"


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
        f"With the {vocabulary(curve).target} shuffled {times}, {columns} had R2 {middle} on held-out rows (median; "
        f"the highest {highest}), and {again}."
    )


def stability_record(curve: SizeCurve) -> dict[str, Any] | None:
    """What half-samples say about the size shown, for machines."""
    size, halves = curve.answer.shown, curve.stability
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
        "expected_false": [asdict(bound) for bound in bounds],
        "clusters": [
            {"columns": [names[j] for j in each.columns.tolist()], "frequency": each.frequency}
            for each in halves.stable_clusters(0.0, size)
        ],
        "expected_false_clusters": None
        if halves.clusters is None
        else [asdict(halves.cluster_bound(bound.threshold, size)) for bound in bounds],
    }


def bound_words(curve: SizeCurve, halves: Stability, size: int, clusters: bool = False) -> str:
    """Both bounds on the number of columns, or of bands and clusters, that chance would make stable."""
    unit = what_is_counted(curve)
    candidates = f"{cluster_word(halves)}s of {unit}s" if clusters else plural(halves.n_candidates, f"candidate {unit}")
    bound = halves.cluster_bound(THRESHOLD, size) if clusters else halves.bound(THRESHOLD, size)
    return (
        f"Of {candidates}, at most {number(bound.worst_case, 2)} without effect would be expected to reach "
        f"{percent(THRESHOLD)} by chance (Meinshausen and Bühlmann), if the size had been fixed beforehand and all "
        f"{unit}s without effect were equally likely to be selected; at most {number(bound.best, 2)} if their "
        "frequencies are also r-concave (Shah and Samworth)."
    )
