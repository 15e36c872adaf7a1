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

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.inputs import as_target
from pairflip.least_squares import Floats, orthonormal_basis
from pairflip.losses.base import Fit, Fits, HeldOutJudge, Quadratic, Words
from pairflip.losses.fold_by_fold import FoldByFold
from pairflip.losses.newton import FINAL, SEARCHING, newton
from pairflip.moments import Form, TrainingForm
from pairflip.projection import CONSTANT, check_range, powers_of_two, project
from pairflip.rules import Rules, Units, no_rules
from pairflip.supports import ABSENT, filled_up

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem
    from pairflip.selection.folds import Folds

Ints = NDArray[np.int64]
RIDGE = 1e-5
"""Default penalty on standardized coefficients, for each row: it moves ordinary fits by some 1e-4 of themselves."""
CERTAIN = 1e-12
"""Predicted probabilities lie between this and one minus this, counts above it, so that no error is infinite."""
_EXPLAINED = 1e-9  # of the weight: half the deviance that forced columns may leave at least
_SMALL = 1e-3  # a ridge, relative to the Hessian, that makes no difference to the working problem
_SLIGHT = 1e-7  # the least ridge, relative to the Hessian, by which moves are ranked
_DEPENDENT = 1e-7  # of the largest singular value of some columns
_CHECK = "check that the target column is the right one."
_BATCH_BYTES = 32 * 2**20  # for the columns of supports that are fitted together


class Rows(NamedTuple):
    """Target (m,) or (m, c) and weights (m,) of the rows that are fitted."""

    y: Any
    w: Any


@dataclass(frozen=True)
class Solved:
    """The fit of one support: energy, coefficients and standard errors in the units of the table, eta (m, q).

    Standard errors are those of the constant, the forced and the chosen columns; nan where there is none. With q linear
    predictors, coefficients are (k, q), the constant is (q,).
    """

    energy: float
    coef: Floats
    intercept: Any
    always_coef: Floats
    errors: Floats
    eta: Floats


class Likelihood:
    """What all likelihoods share; a subclass has at least `name` and `derivatives`."""

    name: str
    words = Words(
        error="RMSE", cv_error="half the mean deviance of held-out rows", share="D2", explained="deviance",
        meaning="RMSE of the predictions; D2, one minus the deviance over that of the mean",
    )  # fmt: skip
    quadratic = False
    squared = False
    takes_offset = False

    def read_target(self, y: Any, n_rows: int) -> tuple[Floats, NDArray[Any] | None]:
        """The target as numbers (M,) or (M, c), and the labels of its classes if it has classes."""
        return as_target(y, n_rows), None

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

    def mean(self, eta: Floats) -> Floats:
        """What is predicted, from the linear predictor (m,), or (m, q) where there are several."""
        return eta

    def observed(self, y: Floats) -> Floats:
        """What predictions are compared with."""
        return y

    def strata(self, y: Floats) -> NDArray[Any] | None:
        """Kinds of rows (M,) whose shares random folds keep; None where there are none."""
        return None

    def told_by_the_mean(self, y: Floats, w: Floats, offset: Floats | None) -> Floats | None:
        """What the weighted mean of some rows (with an offset, their mean rate) predicts for each of them."""
        exposure = np.ones(w.size) if offset is None else np.exp(offset)
        return np.asarray(np.multiply.outer(exposure, w @ y / (w @ exposure)))

    def baseline(self, rows: Any, eta: Floats) -> Any:
        """What predictions need to know of the fitted rows beside coefficients; nothing, as a rule."""
        return None

    def expected(self, y: Floats, eta: Floats, baseline: Any) -> Floats:
        """Predictions of held-out rows with targets y, as `observed` gives them, and linear predictors `eta`."""
        return self.mean(eta)

    def row_errors(self, observed: Floats, predicted: Floats) -> Floats:
        """Deviance of each row: twice what it adds to cv_error. By default predictions are linear predictors."""
        y, eta = np.broadcast_arrays(observed, predicted)
        one, found = np.ones(1), np.empty(y.shape)
        for at in np.ndindex(y.shape):
            found[at] = 2.0 * self.derivatives(self.rows(y[at].reshape(1), one), eta[at].reshape(1, 1, 1))[0][0]
        return found

    def lacking(self, problem: SubsetProblem, kept: Ints) -> str | None:
        """What makes it impossible to learn from some rows, in words; None where nothing does."""
        return None

    def separates(self, y: Floats, eta: Floats) -> bool:
        """Whether linear predictors (m, q) put every row into its own class."""
        return False

    def remark(self, problem: SubsetProblem, support: Ints) -> str:
        """Whether the columns tell the rows apart completely, so that the ridge alone limits their coefficients."""
        form: Any = problem.form
        if not self.separates(form.y, form.solve(problem.slots(support)).eta):
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
        X, always = problem.X if every else problem.X[kept], problem.always
        if columns is not None:
            X = problem.X[:, columns] if every else problem.X[np.ix_(kept, columns)]
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
        found = form.solve(problem.slots(support))
        return Fit(support, found.coef, found.intercept, found.always_coef, found.energy)

    def fit_rows(self, problem: SubsetProblem, kept: Ints, support: Ints) -> tuple[Fit, Any]:
        """The same on some rows, and the `baseline` there; a column that does not vary there has the coefficient 0."""
        columns = np.concatenate([problem.always, support]).astype(np.int64)
        form = self.form(problem, kept, columns)
        found = form.solve(np.arange(form.n_columns))
        coef = np.zeros((support.size, *found.coef.shape[1:]))
        coef[form.candidates - problem.always.size] = found.coef
        fit = Fit(support, coef, found.intercept, found.always_coef, found.energy)
        return fit, self.baseline(form.rows, found.eta)

    def standard_errors(self, problem: SubsetProblem, support: Ints) -> Floats:
        """Of the constant, the forced and the chosen coefficients, from the inverse of the Hessian."""
        form: Any = problem.form
        return np.asarray(form.solve(problem.slots(support)).errors)

    def held_out(self, problem: SubsetProblem, folds: Folds) -> HeldOutJudge:
        """Every support is fitted again on the training rows of its fold."""
        return FoldByFold(self, problem, folds)


class LikelihoodForm(Form):
    """Some rows with a likelihood: fits, exact energies, and the quadratic problem by which moves are ranked.

    Chosen columns are standardized (weighted mean 0 where there is a constant, weighted mean square 1) on these rows.
    Where a quadratic form is asked for (shuffled targets, correlations), it is that of the working problem: the Newton
    step from the model without chosen columns.

    Attributes
    ----------
    standard : (n, m)
        Columns that can be chosen, standardized on these rows, each as a contiguous row; those of a unit together. The
        ridge makes them independent, so that units need no bases.
    members : (n,)
        Which columns of the user's table these are.
    forced : (f, m)
        Orthogonal combinations of what is always in the model, of mean square 1.
    rows : Any
        What the loss knows of these rows.
    penalty_weight : float
        The ridge times the sum of the weights.
    yy : float
        Twice the energy without chosen columns.
    """

    quadratic = False
    bound = False

    def __init__(
        self, loss: Likelihood, problem: SubsetProblem, X: Floats, kept: Ints, always: Ints, limited: bool
    ) -> None:
        y, w, intercept = problem.y[kept], problem.sample_weight[kept], problem.center == "fold"
        total = float(w.sum())
        self._powers = powers_of_two(X)
        columns = np.array(X.T, dtype=np.float64, order="C")
        columns /= self._powers[:, None]
        raw = np.einsum("jm,jm,m->j", columns, columns, w)
        self._means: Floats = columns @ w / total if intercept else np.zeros(len(columns))
        columns -= self._means[:, None]
        spread = np.sqrt(np.einsum("jm,jm,m->j", columns, columns, w) / total)
        keep = spread > CONSTANT * np.sqrt(raw / total)
        self._spread = np.where(keep, spread, 1.0)
        columns /= self._spread[:, None]
        self._forced_columns = np.vstack([np.ones((int(intercept), w.size)), columns[always]])
        self.forced: Floats = np.ascontiguousarray(orthonormal_basis(self._forced_columns.T).T) * np.sqrt(w.size)
        if always.size:  # what forced columns explain is not a candidate
            root = np.sqrt(w)
            basis = orthonormal_basis((self._forced_columns * root).T)
            left = columns * root
            left -= (left @ basis) @ basis.T
            keep &= np.sqrt(np.einsum("jm,jm->j", left, left) / total) > 1e3 * CONSTANT
        keep[always] = False
        self.members = self.candidates = np.flatnonzero(keep)
        limits, self.units, first = problem.limits, problem.units if limited else None, None
        if limited and limits.whole_groups and self.units is None:
            self.units = Units.of(limits.groups, problem.n_columns, self.candidates)
        if self.units is not None:
            self.grouped, self.what, first = True, "groups", self.units.first
            self.members = self.members[np.argsort(first[self.members], kind="stable")]
            self.candidates, begin = np.unique(first[self.members], return_index=True)
            self.start = np.append(begin, self.members.size)
        self.standard: Floats = columns if keep.all() and not self.grouped else columns[self.members]
        self.loss, self.always, self.intercept = loss, always, intercept
        self.dense = 8 * problem.n_columns**2 <= problem.memory_budget
        self.penalty_weight = (problem.ridge + problem.shrinkage) * total
        self.rules: Rules = no_rules(self.candidates.size)
        if limited and limits.ruled:
            self.rules = limits.rules(self.candidates, always, first)
        self._X, self.y, self.w = X, y, w
        offset = np.zeros(w.size) if problem.offset is None else problem.offset[kept]
        self.rows, self.q = loss.rows(y, w), loss.predictors(problem.y)
        self._offset: Floats = np.repeat(offset[:, None], self.q, axis=1)
        f = len(self.forced)
        level = np.zeros((1, f, self.q))
        if f and intercept:
            level[0] = np.outer(self.forced.sum(axis=1), loss.level(self.rows, offset)) / w.size
        energies, theta = newton(loss, self.rows, self.forced[None], self._offset, np.zeros(f), level)
        self._null = Fits(np.zeros((1, 0), np.int64), energies, theta)
        self.yy = 2.0 * float(energies[0])

    def fit_many(
        self, supports: Ints, start: Fits | None = None, close: float = SEARCHING, bound: float = np.inf
    ) -> Fits:
        """Fits of supports (T, k), from the coefficients that their columns have in one other fit.

        Those that are plainly going to have an energy above `bound` are given up with some energy above it.
        """
        first, f = self._null if start is None else start, len(self.forced)
        if not supports.shape[1] and start is None and close >= SEARCHING:
            return self._null
        # Supports with fewer columns than others are filled up by columns of zeros, whose coefficients stay zero.
        places = filled_up([self.places(support) for support in supports]) if self.grouped else supports
        (count, p), begin = places.shape, np.zeros((len(self.standard) + 1, self.q))
        own = self.places(first.supports[0])
        begin[own] = first.theta[0, first.theta.shape[1] - own.size :]
        theta = np.concatenate([np.broadcast_to(first.theta[:, :f], (count, f, self.q)), begin[places]], axis=1)
        penalty, energies = np.repeat([0.0, self.penalty_weight], [f, p]), np.empty(count)
        step = max(1, _BATCH_BYTES // (8 * max(1, f + p, self.q**2) * self.w.size))
        for some in (slice(at, at + step) for at in range(0, count, step)):
            D = np.empty((len(places[some]), f + p, self.w.size))
            D[:, :f], D[:, f:] = self.forced, self.standard[places[some]]
            D[:, f:][places[some] == ABSENT] = 0.0
            energies[some], theta[some] = newton(
                self.loss, self.rows, D, self._offset, penalty, theta[some], close, bound
            )
        return Fits(supports, energies, theta)

    def _eta(self, fit: Fits) -> tuple[Floats, Floats, Floats]:
        """Columns (p, m) of one fit, their coefficients (p, q), and its linear predictors (m, q)."""
        places, f = self.places(fit.supports[0]), len(self.forced)
        D = np.vstack([self.forced, self.standard[places]])
        theta = np.concatenate([fit.theta[0, :f], fit.theta[0, fit.theta.shape[1] - places.size :]])
        return D, theta, self._offset + D.T @ theta

    @cached_property
    def widths(self) -> Ints:
        """How many columns of each unit (U,) are independent of each other and of what is always in the model."""
        root, forced = np.sqrt(self.w), len(self.forced)
        each = [np.vstack([self.forced, self.standard[a:b]]) * root for a, b in pairwise(self.start)]
        return np.array([np.linalg.matrix_rank(rows) - forced for rows in each], dtype=np.int64)

    @cached_property
    def _squares(self) -> Floats:
        return self.standard**2

    def quadratic_at(self, fit: Fits) -> Quadratic:
        """The Newton step at a fit, with one weight for each row."""
        return self._at_null if fit is self._null else self._quadratic_at(fit)

    @cached_property
    def _at_null(self) -> Quadratic:
        return self._quadratic_at(self._null)

    def _quadratic_at(self, fit: Fits) -> Quadratic:
        D, theta, eta = self._eta(fit)
        score, weight = self.loss.ranking(self.rows, eta)
        f, X = len(self.forced), self.standard
        weight = np.maximum(weight, 1e-12 * float(weight.max()))
        # Columns of one unit may be dependent (dummies are), and the table takes in what a ridge makes independent.
        ridge = max(self.penalty_weight, _SLIGHT * float(weight.sum()))
        unit = float(weight.sum()) + ridge  # of the diagonal
        D_v = D * weight
        H = D_v @ D.T
        H[np.diag_indices(len(D))] += np.repeat([1e-13 * unit, ridge], [f, len(D) - f])
        products = np.vstack([D_v, score.T]) @ X.T
        G, R = products[: len(D)], products[len(D) :]
        P = np.linalg.inv(H)
        W = P @ G
        s = np.zeros((int(np.diff(self.start).max()) if self.grouped else 1, len(X)))
        s[0] = (self._squares @ weight + ridge - np.einsum("an,an->n", G, W)) / unit
        of = np.repeat(np.arange(self.n_columns), np.diff(self.start)) if self.grouped else np.zeros(0)
        for b in range(1, len(s)):  # of columns of one unit
            at = b + np.flatnonzero(of[b:] == of[:-b])
            s[b, at] = np.einsum("nm,m,nm->n", X[at], weight, X[at - b]) - np.einsum("an,an->n", G[:, at], W[:, at - b])
            s[b, at] /= unit
        swept = np.linalg.solve(np.linalg.cholesky(H[:f, :f]), G[:f]) if f else G[:0]

        def row(j: int) -> Floats:
            of_j: Floats = X @ (weight * X[j])
            of_j -= swept[:, j] @ swept
            of_j[j] += ridge
            return of_j / unit

        root = np.sqrt(unit)
        return Quadratic(np.asarray(unit * P[f:, f:]), root * theta[f:].T, W[f:], R / root, s, row)

    def energy(self, support: Ints) -> float:
        """E(S), minimized from the forced columns alone; infinite when S is against the rules."""
        at = np.asarray(support, dtype=np.int64)
        if self.rules.any and not self.rules.allow(at):
            return np.inf
        return float(self.fit_many(at[None], close=FINAL).energies[0])

    def solve(self, support: Ints) -> Solved:
        """The fit of candidate positions, in the units of the table; columns in its order."""
        units = np.asarray(support, dtype=np.int64)
        fit = self.fit_many(units[None], close=FINAL)
        D, theta, eta = self._eta(fit)
        at = self.places(units)
        order = np.argsort(self.members[at])  # as in the table
        f, names = len(self.forced), np.concatenate([self.always, self.members[at[order]]])
        # The rows of `turn` give the constant, the forced and the chosen coefficients from theta.
        turn, to_forced = np.zeros((1 + names.size, len(D))), np.zeros((self._forced_columns.shape[0], 0))
        if f:
            to_forced = np.linalg.pinv(self._forced_columns.T) @ self.forced.T
        a = self.always.size
        turn[1 : 1 + a, :f] = to_forced[int(self.intercept) :]
        turn[1 + a :, f:] = np.eye(at.size)[order]
        turn[1:] /= (self._powers * self._spread)[names][:, None]
        if self.intercept:
            turn[0, :f] = to_forced[0]
            turn[0] -= (self._means * self._powers)[names] @ turn[1:]
        found, errors = turn @ theta, np.full((len(turn), self.q), np.nan)
        if len(D):
            hessian = self.loss.system(self.rows, D[None], eta[None])[2][0].reshape(len(D) * self.q, -1)
            ridge = np.repeat([0.0, self.penalty_weight], [f * self.q, at.size * self.q])
            hessian[np.diag_indices(len(hessian))] += ridge + 1e-13 * np.diag(hessian) + 1e-280
            along = np.kron(self._determined(D), np.eye(self.q))
            inverse = along @ np.linalg.solve(along.T @ hessian @ along, along.T)
            inverse = inverse.reshape(len(D), self.q, len(D), self.q)
            errors[:] = np.sqrt(np.maximum(np.einsum("xa,acbc,xb->xc", turn, inverse, turn), 0.0))
        if not self.intercept:
            errors[0] = np.nan
        energy = float(fit.energies[0])
        if self.q == 1:
            return Solved(energy, found[1 + a :, 0], float(found[0, 0]), found[1 : 1 + a, 0], errors[:, 0], eta)
        return Solved(energy, found[1 + a :], found[0], found[1 : 1 + a], errors, eta)

    def _determined(self, D: Floats) -> Floats:
        """Directions (p, r) of coefficients of columns D (p, m), forced ones first, in which the rows determine them.

        In the others, which columns of one unit may have (dummies do), the ridge alone holds coefficients at zero.
        """
        from scipy.linalg import null_space

        free = null_space(D.T, rcond=_DEPENDENT) if self.grouped else np.zeros((len(D), 0))
        free[: len(self.forced)] = 0.0
        return np.asarray(null_space(free.T)) if free.size else np.eye(len(D))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.w.size)

    def rank(self) -> int:
        """All units can be chosen together, because of the ridge."""
        return self.n_columns

    def kick_nanoseconds(self, k: int) -> float:
        """Cost model: what one kick and the descent after it take on one core, some rankings and refits."""
        n = len(self.standard)
        p = k * n / self.n_columns
        return 5e5 + self.n_rows * self.q * (0.4 * n * (p + 4.0) + 120.0 * p * p * self.q)

    @cached_property
    def working(self) -> Form:
        """The quadratic form of the Newton step from the model without chosen columns, with the ridge unless small.

        It is that of the columns, in the order of the table, also where units have several.
        """
        score, weight = self.loss.exchangeable(self.rows, self._eta(self._null)[2])
        weight = np.where(weight > 1e-9 * weight.mean(), weight, weight.mean())  # rows may have no curvature at all
        found = project(
            self._X, score / weight[:, None], weight, always=self.always, ridge=0.0, intercept=self.intercept,
            means=None if self.intercept else (np.zeros(self._X.shape[1]), np.zeros(self.q)),
        )  # fmt: skip
        columns, every = found.columns, np.sort(self.members)
        if not np.array_equal(found.candidates, every):  # what weights leave nothing of is a column of zeros
            _, at, there = np.intersect1d(found.candidates, every, return_indices=True)
            columns = np.zeros((every.size, columns.shape[1]))
            columns[there] = found.columns[at]
        none, rules = np.zeros(0, np.int64), None if self.grouped else self.rules
        plain = Form(columns, found.targets, np.zeros(every.size), every, dense=self.dense, rules=rules)
        relative = self.penalty_weight / float(weight.sum())
        return TrainingForm(plain, found.forced, found.basis, none, ridge=relative) if relative > _SMALL else plain

    @property
    def columns(self) -> Floats:  # type: ignore[override]
        """Columns (n, m) of the working problem."""
        return self.working.columns

    @property
    def targets(self) -> Floats:  # type: ignore[override]
        """Targets (m, q) of the working problem."""
        return self.working.targets

    @property
    def B(self) -> Floats:  # type: ignore[override]
        """Products (q, n) of the columns of the working problem with its targets."""
        return self.working.B

    @property
    def penalty(self) -> Floats:  # type: ignore[override]
        """Share of the ridge in the unit norms of the working problem."""
        return self.working.penalty

    @property
    def diagonal(self) -> Floats:  # type: ignore[override]
        """Columns of the working problem have unit norm."""
        return self.working.diagonal

    @property
    def nbytes(self) -> int:
        """Bytes held beside the user's table, without the matrix."""
        return int(self.standard.nbytes)

    @cached_property
    def matrix(self) -> Floats:
        """G (n, n) of the working problem."""
        return self.working.matrix

    def row(self, j: int) -> Floats:
        """Row j (n,) of that matrix."""
        return self.working.row(j)

    def write_rows(self, which: Sequence[int], out: Sequence[Floats]) -> None:
        """Rows of that matrix into as many arrays (n,)."""
        self.working.write_rows(which, out)
