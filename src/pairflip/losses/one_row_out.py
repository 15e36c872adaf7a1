r"""The problems that leave out one row each, as whole arrays: what `HeldOutGram` is for one of them.

With one row, :math:`B = X_m / \sqrt{1 - h_{mm}}` and :math:`c = y_m / \sqrt{1 - h_{mm}}` are a vector and a number, and
everything else is products of numbers: the same bits, for all rows at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pairflip.gram import Gram, HeldOutGram
from pairflip.least_squares import Floats

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem

Numbers = NDArray[np.int64]

TRUSTED = 0.05
"""A fold is computed by subtraction if at least this fraction of every column and of the target remains.

Then at most one digit or so is lost.
"""


@dataclass(frozen=True, eq=False)
class OneRowOut:
    """F problems without one row each; the fields are those of `HeldOutGram`, stacked.

    Attributes
    ----------
    problem : SubsetProblem
        The problem of all rows.
    rows : (F,)
        The row that each leaves out.
    left_out, unit, b : (F, N)
        See `HeldOutGram`.
    yy, trust : (F,)
        See `HeldOutGram`.
    """

    problem: SubsetProblem
    rows: Numbers
    left_out: Floats
    unit: Floats
    b: Floats
    yy: Floats
    trust: Floats

    @classmethod
    def of(cls, problem: SubsetProblem, rows: Numbers) -> OneRowOut:
        """The problems without each of `rows`."""
        base, basis = problem.gram, problem.forced_basis[rows]
        shrink = 1.0 - np.matmul(basis[:, None, :], basis[:, :, None])[:, 0, 0]
        fitted = shrink <= 1e-12  # a direction of the forced columns that only the held-out row sees
        root = np.where(fitted, 0.0, 1.0 / np.sqrt(np.where(fitted, 1.0, shrink)))
        B = root[:, None] * base.on_rows(rows)
        c = root * base.target[rows]
        left = base.diagonal - B * B
        yy = np.maximum(base.yy - c * c, 0.0)
        of_target = yy / base.yy if base.yy > 0 else np.ones(rows.size)
        trust = np.minimum(np.minimum(left.min(axis=1, initial=1.0), np.minimum(shrink, 1.0)), of_target)
        unit = 1.0 / np.sqrt(np.maximum(left, 1e-300))
        b = (base.b - B * c[:, None]) * unit
        return cls(problem, rows, B * unit, unit, b, yy, trust)

    @property
    def trusted(self) -> NDArray[np.bool_]:
        """Which of them (F,) may be computed by subtraction; the others are problems of their own."""
        return np.asarray(self.trust >= TRUSTED)

    def gram(self, at: int) -> HeldOutGram:
        """One of them."""
        problem = self.problem
        return HeldOutGram(problem.gram, problem.forced, problem.forced_basis, self.rows[at : at + 1])


def leaves_one_out(problem: SubsetProblem) -> bool:
    """Whether folds of this problem that leave out one row are those of `OneRowOut`, where they are trusted."""
    return type(problem.gram) is Gram and not problem.wide
