"""The seam between losses and everything else: engines see quadratic forms only, folds and reports see this."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.inputs import as_target
from pairflip.least_squares import Floats
from pairflip.losses.influence import Influence
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
    """What F folds predict with; with q targets (or classes) each array has one more axis, q, at its end."""

    coefs: Floats  # (F, k) of the chosen columns
    always_coefs: Floats  # (F, A) of forced ones
    intercepts: Floats  # (F,)


@dataclass(frozen=True)
class Words:
    """Names of the errors of held-out rows."""

    error: str  # head of a column of tables
    share: str = "R2"  # head of the next column
    long_error: str = "Root mean square error"
    explained: str = "variance"  # of which a fraction is explained
    ranking: str = ""  # how well rows are ranked, where that is told
    meaning: str = "RMSE in the unit of the target; R2, one minus the squared error over that of the mean"


@dataclass(frozen=True)
class Link:
    """How a prediction follows from the linear predictor eta, for those who publish a model or run it elsewhere."""

    formula: str = "eta"  # as Python and SymPy read it
    latex: str = r"\eta"
    operator: str = ""  # of ONNX
    predicted: str = "{}"  # in words, of a target or a class
    limits: tuple[float, float] | None = None  # linear predictors beyond are as good as these
    shared: bool = False  # whether the predictions of a row are divided by their sum


class HeldOutJudge:
    """Errors of held-out rows under supports fitted without them; a subclass has `judged` and `fits`."""

    yy: Floats  # (F,): twice the energies without chosen columns
    observed: Floats  # (P q,): what predictions are compared with
    means: Floats  # (F, q) of several targets on the training rows
    scales: Floats  # (F, q) of several targets: their standard deviations there, 1 if they are not scaled
    _problem: SubsetProblem
    _folds: Folds

    def judged(self, supports: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Observed minus predicted (C, P) when fold f is predicted by supports[f, c] of (F, C, k), and energies (F, C).

        Energies are those of the supports on the training rows of their folds. With q predictions of a row, residuals
        are (C, P q), those of a row together.
        """
        raise NotImplementedError

    def without_columns(self) -> Floats:
        """Observed minus predicted (P,) by the constant, or by the forced columns alone."""
        return np.asarray(self.judged(np.empty((len(self._folds), 1, 0), dtype=np.int64))[0][0])

    def predicted(self, residuals: Floats) -> Floats:
        """Predictions (C, P, q) of the held-out rows in the units of the targets, from what `judged` gives."""
        problem, row = self._problem, self._folds.row
        observed = problem.loss.observed(problem.y[row]).reshape(row.size, -1)
        scales = self.scales[self._folds.fold] if problem.target_names else 1.0
        return np.asarray(observed - residuals.reshape(len(residuals), *observed.shape) * scales)

    def fits(self, supports: NDArray[np.int64]) -> FoldCoefficients:
        """What the folds predict with: coefficients of columns (F, n), each on the training rows of its fold."""
        raise NotImplementedError

    def predictors(self, supports: NDArray[np.int64]) -> Floats:
        """Linear predictors (P,) of the held-out rows by columns (F, n), where predictions are not the whole answer."""
        raise NotImplementedError

    def row_errors(self, residuals: Floats) -> Floats:
        """What each held-out row adds to twice cv_error."""
        return np.asarray(self._problem.loss.row_errors(self.observed, self.observed - residuals))


class Loss:
    """All that depends on what is minimized."""

    name: str  # as in ``SubsetProblem(..., loss=name)``
    words: Words  # what its errors are called
    link: Link | None = Link()  # what `mean` does, in formulas; None where that is not known
    quadratic = False  # whether its form is the whole truth; otherwise engines descend in the form's `energy`
    squared = False  # whether errors are squared errors of numbers (RMSE, R2), of one target or of several
    takes_offset = False
    robust = "HC3"  # what its robust standard errors are called

    def read_target(self, y: Any, n_rows: int) -> tuple[Floats, NDArray[Any] | None]:
        """The target as numbers (M,) or (M, c), and the labels of its classes if it has classes."""
        return as_target(y, n_rows), None

    def mean(self, eta: Floats) -> Floats:
        """What is predicted, from the linear predictor (m,), or (m, q) where there are several."""
        return eta

    def observed(self, y: Floats) -> Floats:
        """What predictions of rows are compared with, (M,), or (M, q) of several targets or classes."""
        return y

    def expected(self, y: Floats, eta: Floats, baseline: Any) -> Floats:
        """Predictions of held-out rows with targets y, as `observed` gives them, and linear predictors `eta`."""
        return self.mean(eta)

    def strata(self, y: Floats) -> NDArray[Any] | None:
        """Kinds of rows (M,) whose shares random folds keep; None where there are none."""
        return None

    def told_by_the_mean(self, y: Floats, w: Floats, offset: Floats | None) -> Floats | None:
        """What the weighted mean of some rows (with an offset, their mean rate) predicts for each; None: nothing."""
        exposure = np.ones(w.size) if offset is None else np.exp(offset)
        return np.asarray(np.multiply.outer(exposure, w @ y / (w @ exposure)))

    def lacking(self, problem: SubsetProblem, kept: NDArray[np.int64]) -> str | None:
        """What makes it impossible to learn from some rows, in words; None where nothing does."""
        return None

    def remark(self, problem: SubsetProblem, support: NDArray[np.int64]) -> str:
        """What a reader should know about the fit of a support; empty when all is as usual."""
        return ""

    def row_errors(self, observed: Floats, predicted: Floats) -> Floats:
        """What each row adds to twice cv_error."""
        raise NotImplementedError

    def prepare(self, problem: SubsetProblem) -> Form:
        """The quadratic form of all rows, on which engines walk; fills `candidates`, `scale` and the forced columns."""
        raise NotImplementedError

    def without_rows(self, problem: SubsetProblem, rows: NDArray[np.int64], anew: bool = False) -> Form:
        """The quadratic form without some rows; nothing in it may depend on them."""
        raise NotImplementedError

    def fit(self, problem: SubsetProblem, support: NDArray[np.int64]) -> Fit:
        """Coefficients and exact energy of one sorted support."""
        raise NotImplementedError

    def influence(self, problem: SubsetProblem, fit: Fit) -> Influence:
        """What rows contribute to the constant, the forced and the chosen coefficients: their standard errors."""
        raise NotImplementedError

    def judge(self, problem: SubsetProblem, folds: Folds) -> HeldOutJudge:
        """The judge of held-out rows where the table is the same for all folds: every support is fitted there anew."""
        from pairflip.losses.held_out import FoldByFold

        return FoldByFold(problem, folds)

    def held_out(self, problem: SubsetProblem, folds: Folds) -> HeldOutJudge:
        """The judge of held-out rows; where every fold has a table of its own, it asks the judges of these."""
        from pairflip.losses.held_out import JudgeInFolds

        in_folds = problem.in_fold(folds.left_out[0]) is not problem
        return JudgeInFolds(problem, folds) if in_folds else self.judge(problem, folds)
