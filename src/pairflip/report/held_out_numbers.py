"""The numbers behind the figure of held-out rows: what was observed, what was predicted, and which rows stand out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pairflip.least_squares import Floats
from pairflip.report.numbers import Ints
from pairflip.report.vocabulary import what_is_counted
from pairflip.selection.verdict import held_out as errors_of
from pairflip.selection.verdict import size_to_show
from pairflip.text import clean, row_numbers, shorten

if TYPE_CHECKING:
    from pairflip.selection.curve import SizeCurve

_LARGEST_KEPT = 20  # residuals that thinning never removes: outliers are what a reader looks for


@dataclass(frozen=True)
class Scatter:
    """Held-out rows of one size: `observed`, `predicted`, `residual` (observed - predicted) of the rows shown.

    `rows` count from 0, `names` are what a reader is shown. `rmse` and `r2` (a fraction of the variance, or `of` what)
    are those of all rows, each by its weight.
    `axis` holds the observed values and those predictions that are not further outside than their range is wide;
    `beyond` says how many of those shown are outside.
    """

    size: int
    rows: Ints
    names: list[str]
    observed: Floats
    predicted: Floats
    residual: Floats
    rmse: float
    of: str
    r2: float
    axis: tuple[float, float]
    residual_axis: tuple[float, float]
    beyond: int
    cut: str
    what: str = "column"


def shown_rows(curve: SizeCurve, limit: int) -> Ints:
    """Places of at most `limit` held-out predictions: evenly spread over the observed values, outliers kept."""
    total = curve.observed.size
    if total <= limit:
        return np.arange(total)
    residual = np.abs(curve.observed - curve.predictions[curve.at(size_to_show(curve))])
    largest = np.argsort(-residual, kind="stable")[: min(_LARGEST_KEPT, limit // 2)]
    others = np.setdiff1d(np.argsort(curve.observed, kind="stable"), largest, assume_unique=True)
    others = others[np.argsort(curve.observed[others], kind="stable")]
    spread = np.linspace(0, others.size - 1, limit - largest.size).round().astype(np.int64)
    return np.sort(np.concatenate([largest, others[spread]]))


def row_labels(curve: SizeCurve, names: Sequence[object] | None) -> list[str]:
    """Names of the rows where they are given, otherwise numbers from 1."""
    if names is None:
        return row_numbers(curve.n_rows)
    labels = [shorten(clean(name), 60) for name in names]
    if len(labels) != curve.n_rows:
        raise ValueError(
            f"row_names has {len(labels)} names for a table of {curve.n_rows} rows; expected one for each row, in the "
            "order of the table."
        )
    return labels


def _called(curve: SizeCurve, at: Ints, names: Sequence[str]) -> list[str]:
    """What held-out predictions are called: their rows, and their targets where there are several."""
    rows = [names[row] for row in curve.held_out_rows[at].tolist()]
    if curve.targets is None:
        return rows
    which = [clean(curve.targets.names[t]) for t in (at % len(curve.targets.names)).tolist()]
    return [f"{row} ({name})" for row, name in zip(rows, which, strict=True)]


def held_out(
    curve: SizeCurve, size: int | None = None, limit: int = 5000, names: Sequence[str] | None = None
) -> Scatter:
    """Held-out prediction against truth at a size (None: the size to show), thinned to `limit` rows."""
    names = row_labels(curve, None) if names is None else names
    size = size_to_show(curve) if size is None else int(size)
    predicted = curve.predictions[curve.at(size)]
    at = shown_rows(curve, limit)
    now = errors_of(curve, size)
    total = curve.observed.size
    x, y = curve.observed[at], predicted[at]
    residual = x - y
    low, high = float(curve.observed.min()), float(curve.observed.max())
    room = high - low if high > low else np.inf
    inside = (y >= low - room) & (y <= high + room)
    kept = y[inside]
    return Scatter(
        size=size,
        rows=curve.held_out_rows[at],
        names=_called(curve, at, names),
        observed=x,
        predicted=y,
        residual=residual,
        rmse=now.rmse,
        of=curve.loss.words.explained,
        r2=now.r2,
        axis=(min(low, float(np.min(kept, initial=low))), max(high, float(np.max(kept, initial=high)))),
        residual_axis=(float(np.min(residual[inside], initial=0.0)), float(np.max(residual[inside], initial=0.0))),
        beyond=int(np.count_nonzero(np.isfinite(y) & ~inside)),
        cut=f"{at.size:,} of {total:,} held-out predictions"
        if at.size < total
        else f"all {total:,} held-out predictions",
        what=what_is_counted(curve),
    )
