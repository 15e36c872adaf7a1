r"""Shrinkage chosen with the size: the same folds and sizes, searched with each of a few relative ridge terms.

The ridge is in units of the scaled columns (`SubsetProblem.with_shrinkage`), so that one grid fits every table. The
pair with the lowest held-out error counts. Which grid, and what it is worth: docs/decisions/028-shrinkage.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pairflip.least_squares import Floats
from pairflip.losses.squares import check_shrinkage

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem
    from pairflip.selection.curve import SizeCurve

GRID = (0.0, 0.1, 1.0)
"""What ``ridge="auto"`` tries; six values chose about as well, in twice the time."""
LIKELIHOOD_GRID = (0.01, 0.1, 1.0)
"""The same for classes and counts, and their default. Without a penalty, training rows that are separated completely
give held-out probabilities of 0 and 1, and a few rows decide about everything (docs/decisions/031)."""
_EXPECTED = "expected 'auto', or values >= 0 in units of the scaled columns, for instance [0, 0.1, 1]"


@dataclass(frozen=True)
class RidgeSurface:
    """What was tried where the ridge was chosen with the size: R relative ridge terms at the S sizes of the curve."""

    ridges: Floats  # (R,)
    errors: Floats  # (R, S) cv_error
    predictions: Floats | None  # (R, S, P) of held-out rows; None for one ridge, and where a file would have too many
    ridge: float  # the one that was chosen: that of the curve


def as_ridges(ridge: Any) -> tuple[float, ...] | Literal["auto"] | None:
    """Relative ridge terms to choose from, sorted, each once; "auto" and None as they are."""
    if ridge is None or (isinstance(ridge, str) and ridge == "auto"):
        return None if ridge is None else "auto"
    if isinstance(ridge, (int, float, np.number)):
        raise TypeError(
            f"ridge is {ridge}; {_EXPECTED}. One penalty in the units of the table is a setting of SubsetProblem."
        )
    if isinstance(ridge, str) or not isinstance(ridge, Iterable):
        raise ValueError(f"ridge is {ridge!r}; {_EXPECTED}.")
    given = sorted({check_shrinkage(value) for value in ridge})
    if not given:
        raise ValueError(f"ridge is empty; {_EXPECTED}.")
    return tuple(given)


def ridges_for(problem: SubsetProblem, ridge: Iterable[float] | Literal["auto"] | None) -> Iterable[float] | None:
    """What is tried for a problem: "auto" is a grid, and so is None for classes and counts without a ridge given."""
    if ridge == "auto" or (ridge is None and not problem.loss.squared and not problem.ridge_given):
        return GRID if problem.loss.squared else LIKELIHOOD_GRID
    return None if isinstance(ridge, str) else ridge


def with_surface(curves: Sequence[SizeCurve], ridges: Sequence[float]) -> SizeCurve:
    """The curve of the ridge with the lowest held-out error at any size, and the errors of all.

    Of equal errors the smaller ridge counts. Which size of that curve to keep is then decided as without ridge, by
    `verdict.recommended_size`.
    """
    errors = np.stack([curve.cv_error for curve in curves])
    at = int(np.argmin(errors.min(axis=1)))
    surface = RidgeSurface(
        ridges=np.array(ridges, dtype=float),
        errors=errors,
        predictions=np.stack([curve.predictions for curve in curves]) if len(curves) > 1 else None,
        ridge=float(ridges[at]),
    )
    notes = dict.fromkeys(note for curve in curves for note in curve.notes)
    seconds = sum(curve.seconds for curve in curves)
    return replace(curves[at], ridge_surface=surface, notes=tuple(notes), seconds=seconds)
