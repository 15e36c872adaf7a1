r"""Energies that are half a deviance: what logistic, Poisson and any other likelihood share.

.. math:: E(S) = \min_{x, z} \sum_i w_i\, \ell(y_i, \eta_i) + \tfrac12 \lambda W \sum_{j \in S} s_j^2 x_j^2, \quad
          \eta = o + X_S x + Z z

with :math:`s_j` the standard deviation of column j on the rows that are fitted, W the sum of their weights. The ridge
:math:`\lambda` is small (`RIDGE`) and there for one reason: classes that some columns separate completely have no
finite maximum of the likelihood. Forced columns Z, the constant among them, are not penalized.

A likelihood is one class with `derivatives` and a few words. There may be q linear predictors (one for each of several
classes): then coefficients of a column are q numbers. Moves are ranked by the Newton step at a fit (`quadratic_at`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats
from pairflip.losses.base import Fit, Loss, Words
from pairflip.losses.influence import Influence
from pairflip.losses.likelihood_form import LikelihoodForm
from pairflip.moments import Form
from pairflip.projection import check_range

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem

Ints = NDArray[np.int64]
RIDGE = 1e-5
"""Default penalty on standardized coefficients, for each row: it moves ordinary fits by some 1e-4 of themselves."""
CERTAIN = 1e-12
"""Predicted probabilities lie between this and one minus this, counts above it, so that no error is infinite."""
_EXPLAINED = 1e-9  # of the weight: half the deviance that forced columns may leave at least
_CHECK = "check that the target column is the right one."


class Rows(NamedTuple):
    """Target (m,) or (m, c) and weights (m,) of the rows that are fitted."""

    y: Any
    w: Any


class Likelihood(Loss):
    """What all likelihoods share; a subclass has at least `name` and `derivatives`."""

    own = False  # whether it is of the user's own, so that its derivatives are not known to be those of a convex loss
    words = Words(
        error="RMSE", share="D2", explained="deviance",
        meaning="RMSE of the predictions; D2, one minus the deviance over that of the mean",
    )  # fmt: skip

    def predictors(self, y: Floats) -> int:
        """How many linear predictors there are, q."""
        return 1

    def rows(self, y: Floats, w: Floats) -> Any:
        """What `derivatives` needs to know of some rows, computed once."""
        return Rows(y, w)

    def level(self, rows: Any, offset: Floats) -> Floats:
        """The linear predictors (q,) of a model with a constant only, roughly: where fits begin."""
        return np.zeros(1)

    def derivatives(self, rows: Any, eta: Floats) -> tuple[Floats, Floats, Floats]:
        """Half the deviance (T,), minus its derivatives (T, m, q), and its second ones, (T, m) or (T, m, q, q).

        The linear predictors `eta` (T, m, q) are those of T fits on the same rows, the offset included.
        """
        raise NotImplementedError

    def system(self, rows: Any, D: Floats, eta: Floats) -> tuple[Floats, Floats, Floats]:
        """Half the deviance (T,), minus its gradient (T, p, q) and Hessian (T, p, q, p, q) by columns D (T, p, m)."""
        value, score, curvature = self.derivatives(rows, eta)
        across = D.transpose(0, 2, 1)
        if curvature.ndim == 2:
            hessian = ((D * curvature[:, None, :]) @ across)[:, :, None, :, None]
        else:
            q = curvature.shape[-1]
            hessian = np.empty((*D.shape[:2], q, D.shape[1], q))
            for c in range(q):
                for d in range(c + 1):
                    hessian[:, :, c, :, d] = (D * curvature[:, None, :, c, d]) @ across
                    hessian[:, :, d, :, c] = hessian[:, :, c, :, d]
        return value, D @ score, hessian

    def ranking(self, rows: Any, eta: Floats) -> tuple[Floats, Floats]:
        """Scores (m, q) and one weight (m,) for each row, by which moves are ranked at `eta` (m, q)."""
        _, score, curvature = self.derivatives(rows, eta[None])
        return score[0], curvature[0] if curvature.ndim == 2 else np.einsum("mcc->m", curvature[0]) / curvature.shape[2]

    def exchangeable(self, rows: Any, eta: Floats) -> tuple[Floats, Floats]:
        """The same at a model without columns, with weights under which shuffled rows are as good as observed ones."""
        return self.ranking(rows, eta)

    def baseline(self, rows: Any, eta: Floats) -> Any:
        """What predictions need to know of the fitted rows beside coefficients; nothing, as a rule."""
        return None

    def row_errors(self, observed: Floats, predicted: Floats) -> Floats:
        """Deviance of each row: twice what it adds to cv_error. By default predictions are linear predictors."""
        y, eta = np.broadcast_arrays(observed, predicted)
        one, found = np.ones(1), np.empty(y.shape)
        for at in np.ndindex(y.shape):
            found[at] = 2.0 * self.derivatives(self.rows(y[at].reshape(1), one), eta[at].reshape(1, 1, 1))[0][0]
        return found

    def separates(self, y: Floats, eta: Floats) -> bool:
        """Whether linear predictors (m, q) put every row into its own class."""
        return False

    def remark(self, problem: SubsetProblem, support: Ints) -> str:
        """Whether the columns tell the rows apart completely, so that the ridge alone limits their coefficients."""
        form: Any = problem.form
        if not self.separates(form.y, form.solve(problem.slots(support))[1]):
            return ""
        return (
            "the columns separate the classes completely, so that only the ridge keeps the coefficients finite: their "
            "sizes mean nothing, and a few more rows may change the columns"
        )

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
        check_range(problem.X, np.arange(2.0), problem.names)
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
        problem.candidates, problem.units = np.sort(form.members), form.units
        problem.scale = np.ones(problem.candidates.size)
        problem.forced = np.zeros((problem.n_rows, form.forced.shape[0]))
        problem.forced[present] = form.forced.T
        problem.forced_basis, problem.powers = problem.forced, np.ones(problem.always.size)
        problem.means, problem.target_means = np.zeros(problem.n_columns), np.zeros(1)
        return form

    def form(self, problem: SubsetProblem, kept: Ints, columns: Ints | None = None) -> LikelihoodForm:
        """Some rows as a problem of their own, standardized on these rows alone; those of weight zero do not count.

        `columns`, which begin with those that are always in the model, stand for all columns.
        """
        kept = kept[problem.sample_weight[kept] > 0]
        every = kept.size == problem.n_rows
        X, always = problem.X if every or columns is not None else problem.X[kept], problem.always
        if columns is not None:
            X = problem.values(columns, None if every else kept)
            always = np.arange(problem.always.size)
        return LikelihoodForm(self, problem, X, kept, always, columns is None)

    def without_rows(self, problem: SubsetProblem, rows: Ints, anew: bool = False) -> Form:
        """The remaining rows as a problem of their own; it is always made anew."""
        kept = np.delete(np.arange(problem.n_rows), rows)
        why = self.lacking(problem, kept)
        if why is not None:
            raise ValueError(
                f"without {rows.size} held-out rows the target has {why}; expected folds that leave rows of all kinds "
                "to learn from: fewer folds, or more rows."
            )
        return self.form(problem, kept)

    def fit(self, problem: SubsetProblem, support: Ints) -> Fit:
        """Coefficients and energy by Newton's method on the columns of X."""
        form: Any = problem.form
        fit: Fit = form.solve(problem.slots(support))[0]
        return fit

    def fit_rows(self, problem: SubsetProblem, kept: Ints, support: Ints) -> tuple[Fit, Any]:
        """The same on some rows, and the `baseline` there; a column that does not vary there has the coefficient 0."""
        columns = np.concatenate([problem.always, support]).astype(np.int64)
        form = self.form(problem, kept, columns)
        fit, eta = form.solve(np.arange(form.n_columns))
        coef = np.zeros((support.size, *fit.coef.shape[1:]))
        coef[form.candidates - problem.always.size] = fit.coef
        return replace(fit, support=support, coef=coef), self.baseline(form.rows, eta)

    def row_gradients(self, rows: Any, D: Floats, eta: Floats) -> tuple[Floats, Floats, Floats]:
        """What m rows add to the gradient by columns D (p, m) of one fit: L (p, m) times r (m,), and their curvature.

        With these, r are Pearson residuals and the hat matrix is that of the last Newton step.
        """
        _, score, curvature = self.derivatives(rows, eta[None])
        root = np.sqrt(np.maximum(curvature.reshape(-1), CERTAIN * float(curvature.max())))
        return D * root, score[0, :, 0] / root, root

    def influence(self, problem: SubsetProblem, fit: Fit) -> Influence:
        """What rows contribute to the coefficients, which a ridge shrinks."""
        form: Any = problem.form
        influence: Influence = form.influence(problem.slots(fit.support))
        return influence
