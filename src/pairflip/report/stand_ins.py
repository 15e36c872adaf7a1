"""Columns that could take the place of a chosen one; neighbours in a spectrum are one window."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from pairflip.text import column_labels

if TYPE_CHECKING:
    from pairflip.selection.curve import SizeCurve

STRONG = 0.8
"""A column with a lower correlation is not a stand-in: most tables have some at 0.5 by chance."""
_NUMBERED = re.compile(r"(.*?)([-+]?\d+(?:\.\d+)?)\s*([^\W\d]{0,4}(?:/[^\W\d]+)?)")
_LABEL = 80


@dataclass(frozen=True)
class StandIn:
    """A column, or a window of neighbours, that could take the place of `chosen`.

    `correlation` is the one nearest zero in a window; `folds` counts those that selected any of it but not `chosen`.
    """

    chosen: int
    columns: tuple[int, ...]
    correlation: float
    text: str
    folds: int
    also_chosen: bool


def stand_ins(curve: SizeCurve, size: int, columns: Sequence[int]) -> list[StandIn]:
    """Stand-ins of the given columns of a size, the strongest of each first."""
    return [found for j in columns for found in _of_column(curve, size, int(j))]


def _of_column(curve: SizeCurve, size: int, chosen: int) -> list[StandIn]:
    known = curve.stand_ins.of(chosen)
    strong = {other: r for other, r in known if abs(r) > STRONG}
    at = curve.at(size)
    selected, support = curve.fold_supports[at], set(curve.supports[at].tolist())
    found = []
    for run in _windows(curve.names, [*strong, chosen]):
        others = [j for j in run if j != chosen]
        if not others:
            continue
        lowest = min((strong[j] for j in others), key=abs)
        first, last = column_labels(curve.names, [run[0], run[-1]], _LABEL)
        wider = " or wider" if chosen in run and len(strong) == len(known) else ""
        instead = np.isin(selected, others).any(axis=1) & ~np.isin(selected, chosen).any(axis=1)
        text = f"{first} to {last}{wider}" if len(run) > 1 else first
        both = bool(support.intersection(others))
        found.append(StandIn(chosen, tuple(run), lowest, text, int(np.count_nonzero(instead)), both))
    return sorted(found, key=lambda one: -max(abs(strong[j]) for j in one.columns if j != chosen))


def _windows(names: Sequence[str], columns: Sequence[int]) -> list[list[int]]:
    """Columns in runs: next to each other in the table, with names that are numbered upwards or downwards."""
    runs: list[list[int]] = []
    for j in sorted(columns):
        if runs and runs[-1][-1] == j - 1 and _numbered(names, [*runs[-1], j]):
            runs[-1].append(j)
        else:
            runs.append([j])
    return runs


def _numbered(names: Sequence[str], run: Sequence[int]) -> bool:
    """Whether the names are one name with a number that rises or falls: ``2152``, ``line 2154``, ``2156 nm``."""
    parts = [_NUMBERED.fullmatch(str(names[j]).strip()) for j in run]
    if any(part is None for part in parts):
        return False
    around = {(part[1], part[3]) for part in parts if part}
    values = [float(part[2]) for part in parts if part]
    steps = [b - a for a, b in pairwise(values)]
    return len(around) == 1 and (all(s > 0 for s in steps) or all(s < 0 for s in steps))
