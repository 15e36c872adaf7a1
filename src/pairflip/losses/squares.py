r"""Squared error of one target, or of several that share one set of columns: the energy is

.. math:: E(S) = \tfrac12 \sum_t \min_{x, z} \|\sqrt w (y_t / \sigma_t - X_S x - Z z)\|^2 + \tfrac{\lambda}{2} \|x\|^2 .

:math:`\sigma_t` is the standard deviation of target t on the rows that are fitted (weighted, beside what is always in
the model), so that every target counts alike; 1 for one target, or if targets are not scaled. Forced columns Z are
projected out, and the quadratic form is the whole truth. A relative ridge (`SubsetProblem.with_shrinkage`) is
:math:`\tfrac{\lambda}{2} \sum_j |X_j|^2 x_j^2` with :math:`|X_j|` the norm of column j on the rows that are fitted.
Where groups are chosen as a whole, S are all their columns (`losses.bases`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairflip.inputs import as_target, as_targets
from pairflip.least_squares import Floats, qr_several
from pairflip.losses.base import Fit, HeldOutJudge, Loss, Words
from pairflip.losses.bases import UnitForm
from pairflip.losses.influence import Influence, of_squares
from pairflip.losses.sparse import SparseForm
from pairflip.losses.wide import WideForm
from pairflip.moments import TRUSTED, Form, TrainingForm, spread
from pairflip.projection import Projected, check_range, project
from pairflip.rules import Units, no_rules
from pairflip.sparse import is_sparse, table_bytes

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem
    from pairflip.selection.folds import Folds

Rows = NDArray[np.int64]
HELD_OUT_BYTES = 64 * 2**20
"""Of a wide table, the left-out rows may take this much in a fold's form (and no more than the table).

Beyond it the fold makes its own pass.
"""
LARGEST = 1e6
"""More shrinkage than this leaves nothing of the coefficients."""
SEVERAL = "several"
"""Name of the loss in files and settings where there are several targets."""
_ONE = Words(error="RMSE")
_OF_MEANS = "R2, one minus the squared error over that of the means"
_MANY = Words(error="RMSE", meaning=f"RMSE over all targets, in their units; {_OF_MEANS}")
_SCALED = Words(
    error="RMSE (in SD)",
    long_error="Root mean square error (in SD)",
    meaning=f"RMSE over all targets, each in units of its standard deviation (SD); {_OF_MEANS}",
)


def check_shrinkage(ridge: object) -> float:
    """A relative ridge: a finite number >= 0."""
    if isinstance(ridge, (bool, str)) or not isinstance(ridge, (int, float, np.number)):
        raise TypeError(f"ridge holds {ridge!r}; expected numbers >= 0, in units of the scaled columns.")
    if not (np.isfinite(ridge) and 0 <= ridge <= LARGEST):
        raise ValueError(f"ridge holds {float(ridge):g}; expected numbers from 0 to {LARGEST:g}.")
    return float(ridge)


class SquaredError(Loss):
    """Squared error of one target or, if `several`, of several, divided by their standard deviations if `scaled`."""

    quadratic = True
    squared = True

    def __init__(self, several: bool = False, scaled: bool = True) -> None:
        self.several, self.scaled = several, several and scaled
        self.name = SEVERAL if several else "squares"
        self.words = _SCALED if self.scaled else _MANY if several else _ONE

    def read_target(self, y: Any, n_rows: int) -> tuple[Floats, NDArray[Any] | None]:
        """Numbers (M,), or (M, q) of several targets."""
        return (as_targets if self.several else as_target)(y, n_rows), None

    def row_errors(self, observed: Floats, predicted: Floats) -> Floats:
        """Squared errors."""
        return np.asarray((observed - predicted) ** 2)

    def prepare(self, problem: SubsetProblem) -> Form:
        """Project the forced columns out of all rows and scale what remains to unit norm."""
        if problem.shrinkage:  # a copy of a problem without: the ridge is added to its form
            problem.scale = problem.scale * np.sqrt(1.0 + problem.shrinkage)
            shrunken = self._shrunken(problem, problem.form.working)
            return shrunken if problem.units is None else self._in_units(problem, shrunken)
        n = problem.n_columns
        if problem.limits.whole_groups and 8 * n**2 > problem.memory_budget:
            raise ValueError(
                f"the matrix of {n:,} columns takes more than the memory budget of {problem.memory_budget:,} bytes, "
                "and groups of columns cannot be searched without it; expected fewer columns, or "
                f"memory_budget={8 * n**2}."
            )
        check_range(problem.X, problem.targets, problem.names)
        whole = project_rows(problem, None)
        for t, target in enumerate(whole.targets.T):
            if not target.any():
                named = f"the target {problem.target_names[t]!r}" if problem.target_names else "y"
                raise ValueError(
                    f"{named} is constant (or explained by what is always in the model), so there is nothing to "
                    + ("predict; leave it out." if self.several else "predict; check that the target column is right.")
                )
        if not whole.candidates.size:
            raise ValueError(
                f"none of the {problem.n_columns} columns of X varies (apart from what is always in the model); "
                "expected at least one column that is not constant."
            )
        problem.means, problem.target_means = whole.means, whole.target_means
        problem.powers = whole.powers if problem.wide else whole.powers[problem.always]
        problem.forced, problem.forced_basis = whole.forced, whole.basis
        problem.candidates, problem.scale = whole.candidates, whole.scale
        if problem.limits.whole_groups:
            problem.units = Units.of(problem.limits.groups, n, whole.candidates)
        form = self._form(problem, whole, problem.sample_weight)
        if not (form.dense or form.plain):
            what = "several targets cannot" if self.several else "limits on what may be chosen cannot"
            raise ValueError(
                f"the matrix of {form.n_columns:,} columns takes more than the memory budget of "
                f"{problem.memory_budget:,} bytes, and {what} be searched without it; expected fewer columns, or "
                f"memory_budget={8 * form.n_columns**2}."
            )
        return form

    def without_rows(self, problem: SubsetProblem, rows: Rows, anew: bool = False) -> Form:
        """The form of the remaining rows by subtraction where that is accurate, otherwise from these rows.

        Where the held-out rows hold most of a column or of a target, or alone make a column vary, subtraction would
        leave rounding errors. Which columns of a group depend on each other is decided on the remaining rows alone.
        """
        whole = problem.form.base if isinstance(problem.form, TrainingForm) else problem.form
        anew = anew or problem.units is not None
        room = min(HELD_OUT_BYTES, table_bytes(problem.X))
        if not anew and (problem.form.dense or 8 * rows.size * whole.n_columns <= room or not problem.wide):
            weight = float(np.delete(problem.sample_weight, rows).sum()) if self.scaled else None
            forced = problem.forced, problem.forced_basis
            fold = TrainingForm(whole, *forced, rows, ridge=problem.shrinkage, weight=weight)
            if fold.trust >= TRUSTED:
                fold.dense = problem.form.dense
                return fold
        rest = np.delete(np.arange(problem.n_rows), rows)
        form = self._form(problem, project_rows(problem, rest), problem.sample_weight[rest])
        return self._shrunken(problem, form) if problem.wide and problem.shrinkage else form

    def _shrunken(self, problem: SubsetProblem, form: Form) -> Form:
        """A form with the relative ridge of the problem."""
        none = np.zeros(0, np.int64)
        return TrainingForm(form, problem.forced, problem.forced_basis, none, ridge=problem.shrinkage)

    def _in_units(self, problem: SubsetProblem, form: Form) -> Form:
        """The form in units of several columns."""
        assert problem.units is not None
        first, limits = problem.units.first, problem.limits
        rules = limits.rules(np.unique(first[form.candidates]), problem.always, first) if limits.ruled else None
        return UnitForm(form, problem.units, rules)

    def _form(self, problem: SubsetProblem, of: Projected | WideForm, weights: Floats) -> Form:
        """The form to walk on; a wide table with few candidates is an ordinary problem."""
        n, limits = of.candidates.size, problem.limits
        dense = 8 * n**2 <= problem.memory_budget
        squares = np.einsum("mq,mq->q", of.targets, of.targets)
        scale = spread(squares, float(weights.sum()) if self.scaled else None)
        ruled = limits.ruled and problem.units is None
        rules = limits.rules(of.candidates, problem.always) if ruled else no_rules(n)
        form: Form
        if isinstance(of, SparseForm) or (isinstance(of, WideForm) and not dense):
            of.finish(scale, rules, dense, problem.memory_budget)
            form = of
        else:
            form = Form(of.columns, of.targets, of.penalty, of.candidates, dense=dense, target_scale=scale, rules=rules)
        return form if problem.units is None else self._in_units(problem, form)

    def fit(self, problem: SubsetProblem, support: Rows) -> Fit:
        """Coefficients and energy by QR on the columns of X: (k, q) and (q,) for several targets."""
        at, form = problem.slots(support), problem.form
        places = form.places(at)
        found = qr_several(form.columns_of(places).T, form.targets, form.penalty[places])
        if found is None:
            what, one = ("these groups", "the groups") if form.grouped else ("this support", "them")
            raise ValueError(
                f"the columns of {what} are linearly dependent, so their coefficients are not determined; "
                f"leave one of {one} out."
            )
        x, energies = found
        at, coef = form.coefficients(at, x, problem.scale)
        support, coef = problem.candidates[at], coef * form.target_scale
        always_coef, intercept, _ = constants(problem, None, support, coef)
        energy = float(energies.sum())
        if self.several:
            return Fit(support, coef, intercept, always_coef, energy)
        return Fit(support, coef[:, 0], float(intercept[0]), always_coef[:, 0], energy)

    def influence(self, problem: SubsetProblem, fit: Fit) -> Influence:
        """What rows contribute to the coefficients."""
        return of_squares(problem, fit)

    def judge(self, problem: SubsetProblem, folds: Folds) -> HeldOutJudge:
        """Held-out errors of supports that were chosen elsewhere: rules play no part."""
        from pairflip.losses.held_out import HeldOutErrors

        return HeldOutErrors(problem, folds) if self.quadratic else super().judge(problem, folds)


def project_rows(problem: SubsetProblem, rows: Rows | None, columns: Rows | None = None) -> Any:
    """Forced columns swept out of some rows (None: all), centred on their own means if the intercept is one of them."""
    own = problem.center == "fold" or (rows is None and problem.center == "global")
    means: tuple[Floats, Floats] | None = None
    if not own and problem.center is None:
        means = np.zeros(problem.n_columns), np.zeros(problem.targets.shape[1])
    elif not own:
        means = problem.means, problem.target_means
    options: dict[str, Any] = {"ridge": problem.ridge, "intercept": problem.center == "fold"}
    if columns is None and problem.wide:
        return (SparseForm if is_sparse(problem.X) else WideForm)(
            problem.X, problem.targets, problem.sample_weight, always=problem.always, means=means, rows=rows, **options
        )
    X, y, weight = problem.X, problem.targets, problem.sample_weight
    if columns is not None:
        X = problem.values(columns, rows)
        means = None if means is None else (means[0][columns], means[1])
    elif rows is not None:
        X = X[rows]
    if rows is not None:
        y, weight = y[rows], weight[rows]
    always = problem.always if columns is None else np.arange(problem.always.size)
    return project(X, y, weight, always=always, means=means, shrinkage=problem.shrinkage, **options)


def constants(
    problem: SubsetProblem, rows: Rows | None, support: Rows, coef: Floats, inside: Projected | None = None
) -> tuple[Floats, Floats, Floats]:
    """Coefficients of the forced columns (a, q), intercepts (q,), and intercepts for centred columns."""
    a, X, y, weights = problem.always.size, problem.values(support, rows), problem.targets, problem.sample_weight
    if rows is not None:
        y, weights = y[rows], weights[rows]
    if inside is None:
        forced, powers, means, middle = problem.forced, problem.powers, problem.means, problem.target_means
        of_always, of_chosen = means[problem.always], means[support]
    else:
        forced, powers, middle = inside.forced, inside.powers[:a], inside.target_means
        of_always, of_chosen = inside.means[:a], inside.means[a:]
    rest = y - middle - (X - of_chosen) @ coef
    norms = np.linalg.norm(forced, axis=0)
    norms[norms == 0] = 1.0
    z: Floats = np.linalg.lstsq(forced / norms, np.sqrt(weights)[:, None] * rest, rcond=None)[0] / norms[:, None]
    first = int(problem.center == "fold")
    always_coef = z[first:] / powers[:, None]
    constant = z[0] if first else np.zeros(y.shape[1])
    return always_coef, constant + middle - of_chosen @ coef - of_always @ always_coef, constant
