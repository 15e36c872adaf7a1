"""A claim of the paper, the numbers found here, and whether it holds, with the reason."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from pairflip.least_squares import Floats

BARS = 3.0
"""Error bars within which a number counts as equal."""


@dataclass(frozen=True)
class Claim:
    """One claim of the paper and the verdict on it."""

    name: str
    claim: str  # what the paper says
    holds: bool
    criterion: str  # the test in words, with its thresholds and why they are what they are
    reason: str  # what was found, in one sentence with numbers
    numbers: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Numbers with ten digits; what is not finite becomes null."""
        return dict(_plain(asdict(self)))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return float(f"{value:.10g}") if math.isfinite(value) else None
    return value


def mean_and_bar(values: Floats) -> tuple[Floats, Floats]:
    r"""Mean over problems (axis 0) and the paper's error bar :math:`\mathrm{sd} / \sqrt{n - 1}`; NaN are left out."""
    n = np.sum(np.isfinite(values), axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.nansum(values, axis=0) / n
        bar = np.sqrt(np.nansum((values - mean) ** 2, axis=0) / n) / np.sqrt(n - 1)
    return np.asarray(mean), np.asarray(bar)


class Limit(NamedTuple):
    """A value at N = infinity and its error bar."""

    value: float
    bar: float


def extrapolate(N: Sequence[int], values: Sequence[float], bars: Sequence[float]) -> Limit:
    """Value at N = infinity of a straight line in 1 / N, weighted by the error bars; a single point stays as it is.

    Corrections of higher order are neglected: a percent of the value is not to be trusted.
    """
    if len(N) == 1:
        return Limit(float(values[0]), float(bars[0]))
    A = np.column_stack([np.ones(len(N)), 1.0 / np.asarray(N, dtype=float)])
    weighted = A / np.maximum(np.asarray(bars, dtype=float), 1e-300)[:, None] ** 2
    covariance = np.linalg.inv(weighted.T @ A)
    value = covariance @ weighted.T @ np.asarray(values, dtype=float)
    return Limit(float(value[0]), float(np.sqrt(covariance[0, 0])))


def shown(value: float, bar: float) -> str:
    """``+0.012 +- 0.004``."""
    return f"{value:+.3g} +- {bar:.1g}"
