"""abess, best subsets by splicing (Zhu et al. 2020), where it is installed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from pairflip.comparison.registry import Peer, Supports
from pairflip.comparison.training import Training
from pairflip.least_squares import Floats

IMPORTANT = 128


def no_abess() -> str:
    """What is missing; empty if abess is installed."""
    return "" if find_spec("abess") else "abess is not installed (pip install abess)"


def splicing(
    columns: Floats, target: Floats, sizes: int | Iterable[int], important_search: int = IMPORTANT
) -> NDArray[np.int64]:
    """Columns that abess ends with after `sizes`, each started from the one before; the last size counts.

    With ic_coef=0 its criterion is the training error alone, which falls with size: so it returns the last one. It
    stops splicing when the loss falls by less than a threshold that does not depend on the unit of the target, so the
    target gets a standard deviation of 1000, where the threshold does not matter; as it is, abess finds less.
    """
    from abess import LinearRegression

    model = LinearRegression(
        support_size=sizes, fit_intercept=False, ic_coef=0.0, cv=1, thread=1, important_search=important_search
    )
    return np.flatnonzero(model.fit(columns, target * (1000.0 / np.std(target))).coef_)


def _find(training: Training, sizes: Sequence[int]) -> Supports:
    found = [splicing(training.columns, training.target, size) for size in sizes]
    return {support.size: support for support in found}


ABESS = Peer(
    "abess", "abess", "Best subsets by splicing, each size by itself.", find=_find, path=False, lacking=no_abess
)
