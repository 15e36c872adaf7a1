r"""Classes and counts: half the deviance is minimized in place of half the squared error.

.. math:: E(S) = \min_{x, z} \sum_i w_i\, \ell(y_i, \eta_i) + \tfrac12 \lambda W \sum_{j \in S} s_j^2 x_j^2, \quad
          \eta = o + X_S x + Z z

with :math:`s_j` the standard deviation of column j on the rows that are fitted, W the sum of their weights. The ridge
:math:`\lambda` is small (`RIDGE`) and there for one reason: classes that some columns separate completely have no
finite maximum of the likelihood. Forced columns Z, the constant among them, are not penalized.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairflip.inputs import as_labels, as_target
from pairflip.least_squares import Floats
from pairflip.losses.base import Fit, FoldCoefficients, HeldOutJudge, Words
from pairflip.losses.fold_by_fold import FoldByFold
from pairflip.moments import Form
from pairflip.projection import check_range

if TYPE_CHECKING:
    from pairflip.losses.likelihood_form import LikelihoodForm
    from pairflip.problem import SubsetProblem
    from pairflip.selection.folds import Folds

LOGISTIC, POISSON = 0, 1
"""Families, as compiled code tells them apart."""
RIDGE = 1e-5
"""Default penalty on standardized coefficients, for each row: it moves ordinary fits by some 1e-4 of themselves."""
CERTAIN = 1e-12
"""Predicted probabilities lie between this and one minus this, counts above it, so that no error is infinite."""
_EXPLAINED = 1e-9  # of the weight: half the deviance that forced columns may leave at least
ONE_CLASS = "one class only"


class Likelihood:
    """What logistic and Poisson regression share."""

    name: str
    words: Words
    family: int
    quadratic = False
    squared = False

    def prepare(self, problem: SubsetProblem) -> Form:
        """Standardize the columns of all rows, and fit what is always in the model."""
        if problem.center == "global":
            raise ValueError(
                f"center is 'global' with loss={self.name!r}; expected 'fold' (a constant is fitted) or None (none is)."
            )
        if problem.ridge == 0:
            raise ValueError(
                f"ridge is 0 with loss={self.name!r}; expected a small number above 0, by default {RIDGE:g}: without "
                "it there is no finite fit where columns separate the rows."
            )
        check_range(problem.X, np.arange(2.0), problem.column_names)
        present = np.flatnonzero(problem.sample_weight > 0)
        why = self.lacking(problem, present)
        if why is not None:
            raise ValueError(f"y has {why} (in the rows that count), so there is nothing to predict; {_CHECK}")
        form = self.form(problem, present)
        if not form.candidates.size:
            raise ValueError(
                f"none of the {problem.n_columns} columns of X varies (apart from what is always in the model); "
                "expected at least one column that is not constant."
            )
        if form.yy <= 2.0 * _EXPLAINED * float(problem.sample_weight.sum()):
            raise ValueError(f"what is always in the model predicts y without error, so nothing is left; {_CHECK}")
        problem.candidates, problem.scale = form.candidates, np.ones(form.candidates.size)
        problem.forced = np.zeros((problem.n_rows, form.forced.shape[0]))
        problem.forced[present] = form.forced.T
        problem.forced_basis, problem.powers = problem.forced, np.ones(problem.always.size)
        problem.means, problem.target_means = np.zeros(problem.n_columns), np.zeros(1)
        return form

    def form(
        self, problem: SubsetProblem, kept: NDArray[np.int64], columns: NDArray[np.int64] | None = None
    ) -> LikelihoodForm:
        """Some rows as a problem of their own, standardized on these rows alone.

        Parameters
        ----------
        problem : SubsetProblem
            Table and target.
        kept : indices
            Rows; those of weight zero do not count.
        columns : indices, optional
            Only these columns, in place of all; they begin with those that are always in the model.
        """
        from pairflip.losses.likelihood_form import LikelihoodForm  # compiled

        kept = kept[problem.sample_weight[kept] > 0]
        some, always = problem.X, problem.always
        if columns is not None:
            some, always = problem.X[:, columns], np.arange(problem.always.size)
        return LikelihoodForm(
            some if kept.size == problem.n_rows else some[kept],
            problem.y[kept],
            problem.sample_weight[kept],
            np.zeros(kept.size) if problem.offset is None else problem.offset[kept],
            always=always,
            intercept=problem.center == "fold",
            ridge=problem.ridge + problem.shrinkage,
            family=self.family,
            dense=8 * problem.n_columns**2 <= problem.memory_budget,
        )

    def lacking(self, problem: SubsetProblem, kept: NDArray[np.int64]) -> str | None:
        """What makes it impossible to learn from some rows, in words; None where nothing does."""
        y = problem.y[kept[problem.sample_weight[kept] > 0]]
        if self.family == LOGISTIC:
            return ONE_CLASS if np.unique(y).size < 2 else None
        return "no count above 0" if not np.any(y > 0) else None

    def without_rows(self, problem: SubsetProblem, rows: NDArray[np.int64], anew: bool = False) -> Form:
        """The remaining rows as a problem of their own.

        Parameters
        ----------
        problem, rows
            The problem, and the rows left out.
        anew
            Nothing here: it is always made from the remaining rows.
        """
        kept = np.delete(np.arange(problem.n_rows), rows)
        why = self.lacking(problem, kept)
        if why is not None:
            raise ValueError(
                f"without {rows.size} held-out rows the target has {why}; expected folds that leave rows of both kinds "
                "to learn from: fewer folds, or more rows."
            )
        return self.form(problem, kept)

    def fit(self, problem: SubsetProblem, support: NDArray[np.int64]) -> Fit:
        """Coefficients and energy by Newton's method on the columns of X."""
        found = _form_of(problem).solve(problem.slots(support))
        return Fit(support, found.coef, found.intercept, found.always_coef, found.energy)

    def standard_errors(self, problem: SubsetProblem, support: NDArray[np.int64]) -> Floats:
        """Of the constant, the forced and the chosen coefficients, from the inverse of the Hessian."""
        return _form_of(problem).solve(problem.slots(support)).errors

    def remark(self, problem: SubsetProblem, support: NDArray[np.int64]) -> str:
        """Whether the columns tell the rows apart completely, so that the ridge alone limits their coefficients."""
        form = _form_of(problem)
        if not form.separated(problem.slots(support)):
            return ""
        return (
            "the columns separate the classes completely, so that only the ridge keeps the coefficients finite: their "
            "sizes mean nothing, and a few more rows may change the columns"
        )

    def held_out(self, problem: SubsetProblem, folds: Folds) -> HeldOutJudge:
        """Every support is fitted again on the training rows of its fold."""
        return HeldOutDeviance(self, problem, folds)

    def read_target(self, y: Any, n_rows: int) -> tuple[Floats, NDArray[Any] | None]:
        """The target as numbers, and the labels of its classes if it has classes."""
        raise NotImplementedError

    def mean(self, eta: Floats) -> Floats:
        """What is predicted, from the linear predictor."""
        raise NotImplementedError

    def observed(self, y: Floats) -> Floats:
        """What predictions are compared with: the target."""
        return y

    def strata(self, y: Floats) -> NDArray[Any] | None:
        """Kinds of rows whose shares random folds keep; None where there are none."""
        return None

    def separates(self, y: Floats, eta: Floats) -> bool:
        """Whether linear predictors (M, q) put every row into its own class."""
        return False

    def told_by_the_mean(self, y: Floats, w: Floats, offset: Floats | None) -> Floats:
        """The weighted mean; with an offset, the mean rate."""
        exposure = np.ones(w.size) if offset is None else np.exp(offset)
        return np.asarray(np.multiply.outer(exposure, w @ y / (w @ exposure)))

    def row_errors(self, observed: Floats, predicted: Floats) -> Floats:
        """Deviance of each row: twice what it adds to cv_error."""
        raise NotImplementedError


_CHECK = "check that the target column is the right one."


def _form_of(problem: SubsetProblem) -> LikelihoodForm:
    """The form of all rows."""
    form: Any = problem.gram
    return form  # type: ignore[no-any-return]


class LogisticLoss(Likelihood):
    r"""Two classes: :math:`\ell = \ln(1 + e^\eta) - y \eta`, with y = 1 for the second class in sorted order."""

    name, family = "logistic", LOGISTIC
    words = Words(
        error="wrong",
        cv_error="the log loss of held-out rows",
        share="AUC",
        ranking="auc",
        long_error="Misclassification",
        explained="deviance",
        meaning="wrong, the fraction put into the other class (probability above one half); AUC, the probability that "
        "a row of the event is ranked above one of the other class (chance gives 0.5)",
    )

    def read_target(self, y: Any, n_rows: int) -> tuple[Floats, NDArray[Any] | None]:
        """0 or 1 for each row, and the two labels."""
        return as_labels(y, n_rows, self.name)

    def strata(self, y: Floats) -> NDArray[Any] | None:
        """Folds keep the shares of the classes."""
        return y

    def separates(self, y: Floats, eta: Floats) -> bool:
        """Whether every row is on the side of its class."""
        return bool(np.all(np.where(y > 0.5, eta[:, 0], -eta[:, 0]) > 0))

    def mean(self, eta: Floats) -> Floats:
        """Probability of the second class."""
        with np.errstate(over="ignore"):
            return np.asarray(np.clip(1.0 / (1.0 + np.exp(-eta)), CERTAIN, 1.0 - CERTAIN))

    def row_errors(self, observed: Floats, predicted: Floats) -> Floats:
        """Twice the log loss."""
        p = np.clip(predicted, CERTAIN, 1.0 - CERTAIN)
        return np.asarray(-2.0 * (observed * np.log(p) + (1.0 - observed) * np.log1p(-p)))


class PoissonLoss(Likelihood):
    r"""Counts: :math:`\ell = e^\eta - y - y (\eta - \ln y)`, the logarithm of the mean is linear."""

    name, family = "poisson", POISSON
    words = Words(
        error="RMSE",
        cv_error="half the mean Poisson deviance of held-out rows",
        share="D2",
        explained="deviance",
        meaning="RMSE of the counts; D2, one minus the deviance over that of the mean (with an offset, of the mean "
        "rate)",
    )

    def read_target(self, y: Any, n_rows: int) -> tuple[Floats, NDArray[Any] | None]:
        """Whole numbers from 0 on."""
        counts = as_target(y, n_rows)
        bad = counts[(counts < 0) | (counts != np.floor(counts))]
        if bad.size:
            kind = "negative numbers" if bad[0] < 0 else "fractions"
            raise ValueError(
                f"y holds {kind} such as {bad[0]:g} with loss='poisson'; expected counts: whole numbers from 0 on."
            )
        return counts, None

    def mean(self, eta: Floats) -> Floats:
        """Expected count."""
        return np.asarray(np.maximum(np.exp(np.minimum(eta, 300.0)), CERTAIN))

    def row_errors(self, observed: Floats, predicted: Floats) -> Floats:
        """The Poisson deviance."""
        mean, some = np.maximum(predicted, CERTAIN), np.where(observed > 0, observed, 1.0)
        return np.asarray(2.0 * (observed * np.log(some / mean) - (observed - mean)) + 0.0)


class HeldOutDeviance(FoldByFold):
    """Held-out rows under supports that are fitted on the training rows of each fold."""

    def __init__(self, loss: Likelihood, problem: SubsetProblem, folds: Folds) -> None:
        super().__init__(folds.places)
        self._loss, self._problem, self._folds = loss, problem, folds
        everything = np.arange(problem.n_rows)
        self._kept = [np.setdiff1d(everything, left) for left in folds.left_out]
        self.yy = np.array([loss.form(problem, kept, problem.always).yy for kept in self._kept])

    def fits(self, supports: NDArray[np.int64]) -> FoldCoefficients:
        """Coefficients of supports (F, k), each on the training rows of its fold.

        Parameters
        ----------
        supports : (F, k)
            Columns that each fold chose.
        """
        found = [self._fit(fold, support)[0] for fold, support in enumerate(supports)]
        a = self._problem.always.size
        table = np.stack(found)
        return FoldCoefficients(table[:, 1 + a :], table[:, 1 : 1 + a], table[:, 0])

    def row_errors(self, residuals: Floats) -> Floats:
        """Deviances."""
        observed = self._problem.y[self._folds.row]
        return self._loss.row_errors(observed, observed - residuals)

    def _fit(self, fold: int, support: NDArray[np.int64]) -> tuple[Floats, float]:
        """Constant, forced and chosen coefficients on the training rows of a fold, and the energy.

        A column that does not vary there has the coefficient 0.
        """
        a = self._problem.always.size
        columns = np.concatenate([self._problem.always, support]).astype(np.int64)
        form = self._loss.form(self._problem, self._kept[fold], columns)
        found = form.solve(np.arange(form.n_columns))
        coef = np.zeros(1 + columns.size)
        coef[0], coef[1 : 1 + a] = found.intercept, found.always_coef
        coef[1 + form.candidates] = found.coef
        return coef, found.energy

    def _judge(self, fold: int, support: NDArray[np.int64]) -> tuple[Floats, float]:
        problem, rows = self._problem, self._folds.rows[fold]
        coef, energy = self._fit(fold, support)
        columns = np.concatenate([problem.always, support]).astype(np.int64)
        eta = coef[0] + problem.X[np.ix_(rows, columns)] @ coef[1:]
        if problem.offset is not None:
            eta = eta + problem.offset[rows]
        return np.asarray(problem.y[rows] - self._loss.mean(eta)), energy
