r"""Several targets, one set of columns: the sum of their squared errors is minimized,

.. math:: E(S) = \tfrac12 \sum_t \min_{x, z} \|\sqrt w (y_t / \sigma_t - X_S x - Z z)\|^2 + \tfrac{\lambda}{2} \|x\|^2
          = \tfrac12 \operatorname{tr}\left(Y^T Y - B_S^T G_{SS}^{-1} B_S\right), \quad B = X^T Y .

:math:`\sigma_t` is the standard deviation of target t on the rows that are fitted (weighted, beside what is always in
the model), so that every target counts alike; 1 if targets are not scaled.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairflip.gram import Gram, HeldOutGram, OverForm
from pairflip.inputs import as_targets
from pairflip.least_squares import Floats, orthonormal_basis, qr_energy, qr_several
from pairflip.limits import Rules, no_rules
from pairflip.losses.base import Fit, HeldOutJudge, Words
from pairflip.losses.one_row_out import TRUSTED
from pairflip.projection import CONSTANT, Projected, check_range, is_nothing, project, take_out

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem
    from pairflip.selection.folds import Folds

Rows = NDArray[np.int64]


class SeveralForm(OverForm):
    r"""The inner products of some rows with several targets.

    Attributes
    ----------
    form : Gram
        The columns; its own target is zero.
    targets : (M, q)
        Projected and scaled.
    B, yy : (N, q), float
        :math:`X^T Y` and :math:`\operatorname{tr} Y^T Y`.
    target_scale : (q,)
        What each target was divided by.
    rules : Rules
        Which columns may be chosen together.
    """

    objective = "several"

    def __init__(self, form: Gram, targets: Floats, target_scale: Floats, rules: Rules | None = None) -> None:
        self._share(form)
        self.target_scale = target_scale
        self.rules = no_rules(form.n_columns) if rules is None else rules
        self.targets: Floats = targets / target_scale
        self.B: Floats = np.ascontiguousarray(form.products(np.ascontiguousarray(self.targets.T)).T)
        self.yy = float(np.vdot(self.targets, self.targets))

    @cached_property
    def target(self) -> Floats:  # type: ignore[override]
        """The combination (M,) of the targets that varies most: one that stands for all where one is asked for."""
        return np.asarray(self.targets @ np.linalg.svd(self.targets, full_matrices=False)[2][0])

    @cached_property
    def b(self) -> Floats:  # type: ignore[override]
        """Products (N,) of the columns with that combination."""
        return np.asarray(self.form.products(self.target[None])[0])

    @property
    def n_columns(self) -> int:
        """N, the number of candidate columns."""
        return int(self.B.shape[0])

    @property
    def n_rows(self) -> int:
        """M, the number of rows."""
        return int(self.targets.shape[0])

    @property
    def nbytes(self) -> int:
        """Bytes held beside the user's table, without the matrix."""
        return int(self.form.nbytes + self.targets.nbytes)

    def energy(self, support: Rows) -> float:
        """E(S) by QR on the columns, infinite when S is singular or against the rules."""
        if self.rules.any and not self.rules.allow(support):
            return np.inf
        return qr_energy(self.columns_of(support).T, self.targets, self.penalty[support])

    def explained(self, support: Rows) -> Floats:
        """The fraction (q,) of each target, beside what is always in the model, that a support explains."""
        found = qr_several(self.columns_of(support).T, self.targets, self.penalty[support])
        total = np.einsum("mq,mq->q", self.targets, self.targets)
        left = np.full(total.size, np.inf) if found is None else 2.0 * found[1]
        return 1.0 - left / np.where(total > 0, total, 1.0)


class SeveralTargets:
    """Squared error of several targets.

    Parameters
    ----------
    scaled : bool
        Whether targets are divided by their standard deviations.
    """

    name = "several"
    words = Words(
        error="RMSE",
        cv_error="half the mean squared error, over all targets, of held-out rows",
        meaning="RMSE over all targets, each in units of its standard deviation; R2, one minus the squared error over "
        "that of the means",
    )
    quadratic = False
    squared = True

    def __init__(self, scaled: bool = True) -> None:
        self.scaled = scaled

    def read_target(self, y: Any, n_rows: int) -> tuple[Floats, NDArray[Any] | None]:
        """Numbers (M, q)."""
        return as_targets(y, n_rows), None

    def mean(self, eta: Floats) -> Floats:
        """The linear predictor itself."""
        return eta

    def lacking(self, problem: SubsetProblem, kept: Rows) -> str | None:
        """Nothing: a target that does not vary is predicted by its mean."""
        return None

    def remark(self, problem: SubsetProblem, support: Rows) -> str:
        """Nothing: a support without a fit is refused."""
        return ""

    def row_errors(self, observed: Floats, predicted: Floats) -> Floats:
        """Squared errors, one for each target."""
        return np.asarray((observed - predicted) ** 2)

    def prepare(self, problem: SubsetProblem) -> Gram:
        """Project the forced columns out of all rows and targets; columns have unit norm, targets unit variance."""
        for target in problem.y.T:
            check_range(problem.X, target, problem.column_names)
        middle = problem.sample_weight @ problem.y / float(problem.sample_weight.sum())
        problem.target_means = np.zeros(middle.size) if problem.center is None else middle
        problem.means, problem.y_mean = np.zeros(problem.n_columns), 0.0
        whole = _projected(problem, np.arange(problem.n_rows), problem.center is None)
        left = _targets(problem, np.arange(problem.n_rows), whole.basis)
        for name, y, target in zip(problem.target_names, problem.y.T, left.T, strict=True):
            if is_nothing(target, y, problem.sample_weight):
                raise ValueError(
                    f"the target {name!r} is constant (or explained by what is always in the model), so there is "
                    "nothing to predict; leave it out."
                )
        if not whole.candidates.size:
            raise ValueError(
                f"none of the {problem.n_columns} columns of X varies (apart from what is always in the model); "
                "expected at least one column that is not constant."
            )
        if 8 * whole.candidates.size**2 > problem.memory_budget:
            raise ValueError(
                f"the matrix of {whole.candidates.size:,} columns takes more than the memory budget of "
                f"{problem.memory_budget:,} bytes, and several targets cannot be searched without it; expected fewer "
                f"columns, or memory_budget={8 * whole.candidates.size**2}."
            )
        problem.means, problem.powers = whole.means, whole.powers[problem.always]
        problem.forced, problem.forced_basis = whole.forced, whole.basis
        problem.candidates, problem.scale = whole.candidates, whole.scale
        form = Gram(whole.columns, np.zeros(problem.n_rows), whole.penalty, whole.candidates, dense=True)
        return SeveralForm(form, left, self.spread(left, problem.sample_weight))

    def spread(self, targets: Floats, weights: Floats) -> Floats:
        """Standard deviations (q,) of projected targets; 1 for one that does not vary."""
        if not self.scaled:
            return np.ones(targets.shape[1])
        spread = np.sqrt(np.einsum("mq,mq->q", targets, targets) / float(weights.sum()))
        return np.where(spread > 0, spread, 1.0)

    def without_rows(self, problem: SubsetProblem, rows: Rows, anew: bool = False) -> Gram:
        """A low-rank change of the Gram matrix where that is accurate, otherwise the remaining rows as a new problem.

        Targets, and their scale, come from the remaining rows in any case.

        Parameters
        ----------
        problem, rows
            The problem, and the rows left out.
        anew
            The remaining rows as a new problem in any case.
        """
        rest = np.delete(np.arange(problem.n_rows), rows)
        form: Gram | None = None
        if not anew:
            whole: Any = problem.gram
            fold = HeldOutGram(whole.form, problem.forced, problem.forced_basis, rows)
            form = fold if fold.trust >= TRUSTED else None
        if form is None:
            inside = _projected(problem, rest, problem.center != "fold")
            form = Gram(inside.columns, np.zeros(rest.size), inside.penalty, inside.candidates, dense=True)
            basis = inside.basis
        else:
            basis = orthonormal_basis(problem.forced[rest])
        return SeveralForm(form, *left_of_targets(self, problem, rest, basis))

    def fit(self, problem: SubsetProblem, support: Rows) -> Fit:
        """Coefficients (k, q), intercepts (q,) and energy, by QR on the columns of X, in the units of the targets."""
        form: Any = problem.gram
        at = problem.slots(support)
        found = qr_several(form.columns_of(at).T, form.targets, form.penalty[at])
        if found is None:
            raise ValueError(
                "the columns of this support are linearly dependent, so their coefficients are not determined; "
                "leave one of them out."
            )
        x, energies = found
        coef = x / problem.scale[at][:, None] * form.target_scale
        always_coef, intercept = constants(problem, np.arange(problem.n_rows), support, coef)
        return Fit(support, coef, intercept, always_coef, float(energies.sum()))

    def standard_errors(self, problem: SubsetProblem, support: Rows) -> Floats:
        """They are not computed for several targets."""
        raise NotImplementedError

    def held_out(self, problem: SubsetProblem, folds: Folds) -> HeldOutJudge:
        """Every support is fitted again on the training rows of its fold."""
        from pairflip.losses.several_held_out import HeldOutSeveral

        return HeldOutSeveral(self, problem, folds)


def left_of_targets(loss: SeveralTargets, problem: SubsetProblem, rows: Rows, basis: Floats) -> tuple[Floats, Floats]:
    """What the forced columns leave of the targets (m, q) on some rows, zero where that is nothing; its scale (q,).

    Parameters
    ----------
    loss, problem : SeveralTargets, SubsetProblem
        Whether targets are scaled; table and targets.
    rows : indices
        The rows that are fitted.
    basis : (m, f)
        Orthonormal basis of the forced columns on these rows.
    """
    left, weights = _targets(problem, rows, basis), problem.sample_weight[rows]
    raw = weights @ problem.y[rows] ** 2
    left[:, np.einsum("mq,mq->q", left, left) <= CONSTANT**2 * raw] = 0.0
    return left, loss.spread(left, weights)


def constants(
    problem: SubsetProblem, rows: Rows, support: Rows, coef: Floats, inside: Projected | None = None
) -> tuple[Floats, Floats]:
    """Coefficients of the forced columns (a, q) and intercepts (q,), given those of the chosen ones.

    Parameters
    ----------
    problem : SubsetProblem
        Table and targets.
    rows, support : indices
        What was fitted.
    coef : (k, q)
        Chosen coefficients, in the units of the table.
    inside : Projected, optional
        Forced and chosen columns on these rows; without it, the rows are those of the problem.
    """
    a, weights, y = problem.always.size, problem.sample_weight[rows], problem.y[rows]
    if inside is None:
        forced, powers, of_always, of_chosen = (
            problem.forced, problem.powers, problem.means[problem.always], problem.means[support],
        )  # fmt: skip
    else:
        forced, powers, of_always, of_chosen = inside.forced, inside.powers[:a], inside.means[:a], inside.means[a:]
    middle = weights @ y / float(weights.sum()) if problem.center == "fold" else problem.target_means
    rest = y - middle - (problem.X[np.ix_(rows, support)] - of_chosen) @ coef
    norms = np.linalg.norm(forced, axis=0)
    norms[norms == 0] = 1.0
    z: Floats = np.linalg.lstsq(forced / norms, np.sqrt(weights)[:, None] * rest, rcond=None)[0] / norms[:, None]
    first = int(problem.center == "fold")
    always_coef = z[first:] / powers[:, None]
    constant = z[0] if first else np.zeros(y.shape[1])
    return always_coef, constant + middle - of_chosen @ coef - of_always @ always_coef


def _projected(problem: SubsetProblem, rows: Rows, given: bool) -> Projected:
    """The columns of some rows, centred on the means of the problem if they are `given`, or on their own."""
    return project(
        problem.X[rows],
        problem.y[rows, 0],
        problem.sample_weight[rows],
        always=problem.always,
        ridge=problem.ridge,
        intercept=problem.center == "fold",
        means=(problem.means, 0.0) if given else None,
    )


def _targets(problem: SubsetProblem, rows: Rows, basis: Floats) -> Floats:
    """The targets (m, q) on some rows, times the root of the weights, the forced columns' `basis` projected out."""
    root, y = np.sqrt(problem.sample_weight[rows]), problem.y[rows]
    weights = problem.sample_weight[rows]
    middle = weights @ y / float(weights.sum()) if problem.center == "fold" else problem.target_means
    left = np.ascontiguousarray(((y - middle) * root[:, None]).T)
    take_out(left, basis)
    return np.ascontiguousarray(left.T)
