"""The seam between losses and everything else: engines see quadratic forms only, folds and reports see this."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats
from pairflip.moments import Form

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem
    from pairflip.selection.folds import Folds


@dataclass(frozen=True)
class Fit:
    """The model of one support, in the units of the table, computed from X.

    With several targets `coef` is (k, q), `intercept` (q,) and `always_coef` (a, q).
    """

    support: NDArray[np.int64]
    coef: Floats
    intercept: Any
    always_coef: Floats
    energy: float


class Fits(NamedTuple):
    """Fits of supports (T, k): energies (T,) and coefficients (T, p, q), those of forced columns first.

    Where units have different numbers of columns, some zeros may stand between these and the others.
    """

    supports: NDArray[np.int64]
    energies: Floats
    theta: Floats

    def one(self, t: int) -> Fits:
        """Fit t alone."""
        return Fits(self.supports[t : t + 1], self.energies[t : t + 1], self.theta[t : t + 1])


class Quadratic(NamedTuple):
    r"""The quadratic problem at a fit, as a table has it.

    :math:`P = G_{SS}^{-1}` (k, k), coefficients C (q, k), :math:`W = P G_{S:}` (k, N), what columns share with what is
    left, R (q, N), and the band s (width, N) of Schur complements, their diagonal where units are columns; `row` gives
    a row of G. Columns of units stand for k and N where units have several. G has a diagonal of about 1.
    """

    P: Floats
    C: Floats
    W: Floats
    R: Floats
    s: Floats
    row: Callable[[int], Floats]


@dataclass(frozen=True)
class FoldCoefficients:
    """What F folds predict with: coefficients (F, k) of their columns, (F, A) of forced ones, intercepts (F,).

    With q targets these are (F, k, q), (F, A, q) and (F, q).
    """

    coefs: Floats
    always_coefs: Floats
    intercepts: Floats


@dataclass(frozen=True)
class Words:
    """Names of the errors of held-out rows.

    `error` and `share` head the columns of tables, `meaning` says what they are; `cv_error` is what is minimized;
    `explained` is what a fraction of which is explained; `ranking` names how well rows are ranked, where that is told.
    """

    error: str
    cv_error: str
    share: str = "R2"
    long_error: str = "Root mean square error"
    explained: str = "variance"
    ranking: str = ""
    meaning: str = "RMSE in the unit of the target; R2, one minus the squared error over that of the mean"


class HeldOutJudge(Protocol):
    """Errors of held-out rows under supports fitted without them; `yy` (F,) is y'y on the rows of each fold."""

    @property
    def yy(self) -> Floats:
        """Twice the energies (F,) without chosen columns."""
        ...

    def residuals(self, supports: NDArray[np.int64]) -> Floats:
        """Observed minus predicted (C, P) when fold f is predicted by supports[f, c] of (F, C, k)."""
        ...

    def judged(self, supports: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """The same, and the energies (F, C) of the supports on the training rows of their folds."""
        ...

    def without_columns(self) -> Floats:
        """Observed minus predicted (P,) when no columns are chosen."""
        ...

    def fits(self, supports: NDArray[np.int64]) -> FoldCoefficients:
        """What the folds predict with: coefficients of supports (F, k), each on the training rows of its fold."""
        ...

    def row_errors(self, residuals: Floats) -> Floats:
        """What each held-out row adds to twice cv_error."""
        ...


class Loss(Protocol):
    """All that depends on what is minimized.

    Attributes
    ----------
    name : str
        As in ``SubsetProblem(..., loss=name)``.
    words : Words
        What its errors are called.
    quadratic : bool
        Whether the form it prepares is the whole truth; otherwise the form's `energy` is, and engines descend in that.
    squared : bool
        Whether errors are squared errors of numbers (RMSE, R2), of one target or of several.
    """

    name: str
    words: Words
    quadratic: bool
    squared: bool

    def read_target(self, y: Any, n_rows: int) -> tuple[Floats, NDArray[Any] | None]:
        """The target as numbers (M,), and the labels of its classes if it has classes."""
        ...

    def mean(self, eta: Floats) -> Floats:
        """What is predicted, from the linear predictor."""
        ...

    def observed(self, y: Floats) -> Floats:
        """What predictions of rows are compared with, (M,), or (M, q) of several targets or classes."""
        ...

    def strata(self, y: Floats) -> NDArray[Any] | None:
        """Kinds of rows (M,) whose shares random folds keep; None where there are none."""
        ...

    def told_by_the_mean(self, y: Floats, w: Floats, offset: Floats | None) -> Floats | None:
        """What the mean of some rows predicts for each, (P,) or (P, q) of q targets; None where there is none."""
        ...

    def lacking(self, problem: SubsetProblem, kept: NDArray[np.int64]) -> str | None:
        """What makes it impossible to learn from some rows, in words; None where nothing does."""
        ...

    def remark(self, problem: SubsetProblem, support: NDArray[np.int64]) -> str:
        """What a reader should know about the fit of a support; empty when all is as usual."""
        ...

    def row_errors(self, observed: Floats, predicted: Floats) -> Floats:
        """What each row adds to twice cv_error."""
        ...

    def prepare(self, problem: SubsetProblem) -> Form:
        """The quadratic form of all rows, on which engines walk; fills `candidates`, `scale` and the forced columns."""
        ...

    def without_rows(self, problem: SubsetProblem, rows: NDArray[np.int64], anew: bool = False) -> Form:
        """The quadratic form without some rows; nothing in it may depend on them."""
        ...

    def fit(self, problem: SubsetProblem, support: NDArray[np.int64]) -> Fit:
        """Coefficients and exact energy of one sorted support."""
        ...

    def standard_errors(self, problem: SubsetProblem, support: NDArray[np.int64]) -> Floats:
        """Of the constant, the forced and the chosen coefficients, where the energy is not quadratic."""
        ...

    def held_out(self, problem: SubsetProblem, folds: Folds) -> HeldOutJudge:
        """The judge of held-out rows."""
        ...
