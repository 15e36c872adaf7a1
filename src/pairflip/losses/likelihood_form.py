r"""Some rows with a likelihood: fits by Newton's method, exact energies, and the quadratic problem that ranks moves.

With columns D (forced ones and chosen ones, standardized) and an offset o, each of T fits minimizes

.. math:: E = \ell(\eta) + \tfrac12 \sum_a \lambda_a |\theta_a|^2, \quad \eta = o + D^T \theta ,

where :math:`\ell`, half the deviance, is convex, so a step that does not lower E is halved until it does.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats, orthonormal_basis
from pairflip.losses.base import Fit, Fits, Quadratic
from pairflip.losses.influence import Influence
from pairflip.losses.sparse import SparseForm, centred
from pairflip.moments import Form, TrainingForm
from pairflip.projection import CONSTANT, column_blocks, powers_of_two, project
from pairflip.rules import Rules, Units, no_rules
from pairflip.sparse import DenseRows, SparseRows, is_sparse
from pairflip.supports import ABSENT, filled_up

if TYPE_CHECKING:
    from pairflip.losses.likelihood import Likelihood
    from pairflip.problem import SubsetProblem

Ints = NDArray[np.int64]
_SMALL = 1e-3  # a ridge, relative to the Hessian, that makes no difference to the working problem
_SLIGHT = 1e-7  # the least ridge, relative to the Hessian, by which moves are ranked
_DEPENDENT = 1e-7  # of the largest singular value of some columns
_OF_WORKING = ("columns", "targets", "B", "penalty", "diagonal")
_BATCH_BYTES = 32 * 2**20  # for the columns of supports that are fitted together
_STEPS, _HALVINGS = 100, 40
_ROUNDING = 1e-14  # of E and of its curvature: how far rounding moves E
_FLOOR = 1e-13  # of the diagonal: where all rows are certain, nothing is left of forced columns, which have no penalty
_FLAT = 1e-4  # a gradient this small beside what its rows add up to is that of a minimum
SEARCHING, FINAL = 1e-6, 1e-14
"""A step that promises less than this fraction of E is the last one, and squares what is left to gain."""


def newton(
    loss: Likelihood, rows: Any, D: Floats, offset: Floats, penalty: Floats, theta: Floats,
    close: float = FINAL, bound: float = np.inf,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Energies (T,) and coefficients (T, p, q) of the columns D (T, p, m), from the coefficients `theta`.

    A fit that is plainly going to stay above `bound` is given up with an energy above it.
    """
    count, p, q = theta.shape
    if p == 0:
        return np.asarray(loss.derivatives(rows, np.broadcast_to(offset, (count, *offset.shape)))[0]), theta
    energies, final, active, size = np.empty(count), theta.copy(), np.arange(count), p * q
    ridge, on_diagonal = penalty[:, None], np.repeat(penalty, q) + 1e-280

    def at(D: Floats, theta: Floats) -> tuple[Floats, Floats, Floats]:
        value, gradient, hessian = loss.system(rows, D, offset + D.transpose(0, 2, 1) @ theta)
        push = ridge * theta
        return value + 0.5 * np.einsum("tpq,tpq->t", push, theta), gradient - push, hessian

    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        value, gradient, hessian = at(D, theta)
        rounding = _ROUNDING * (np.abs(value) + np.einsum("tcc->t", hessian[:, 0, :, 0]))
        for _ in range(_STEPS):
            H = hessian.reshape(-1, size, size)
            diagonal = H.reshape(len(H), -1)[:, :: size + 1]
            diagonal *= 1.0 + _FLOOR
            diagonal += on_diagonal
            step = np.linalg.solve(H, gradient.reshape(-1, size, 1)).reshape(gradient.shape)
            promised = 0.5 * np.einsum("tpq,tpq->t", gradient, step)
            last = ~(promised > np.maximum(close * np.abs(value), rounding))
            last |= (promised < 0.05 * value) & (value - 2.0 * promised > bound)
            if last.any():
                energies[active[last]], final[active[last]] = (value - promised)[last], (theta + step)[last]
                if last.all():
                    return energies, final
                D, active, rounding, theta, step, value = (
                    each[~last] for each in (D, active, rounding, theta, step, value)
                )
            then, part = at(D, theta + step), np.ones((value.size, 1, 1))
            bad = ~(then[0] <= value + rounding)
            for _ in range(_HALVINGS if bad.any() else 0):
                part[bad] *= 0.5
                then = at(D, theta + part * step)
                bad = ~(then[0] <= value + rounding)
                if not bad.any():
                    break
            if bad.any():  # rounding hides what is left to gain
                energies[active[bad]], final[active[bad]] = value[bad], theta[bad]
                D, active, rounding, theta, step, part = (
                    each[~bad] for each in (D, active, rounding, theta, step, part)
                )
                then = then[0][~bad], then[1][~bad], then[2][~bad]
                if not active.size:
                    return energies, final
            theta, (value, gradient, hessian) = theta + part * step, then
    energies[active], final[active] = value, theta
    return energies, final


class LikelihoodForm(Form):
    """Some rows with a likelihood, as engines see them.

    Chosen columns are standardized (weighted mean 0 where there is a constant, weighted mean square 1) on these rows.
    Where a quadratic form is asked for (shuffled targets, correlations), it is that of the working problem: the Newton
    step from the model without chosen columns.
    """

    standard: DenseRows | SparseRows  # (m, n): columns that can be chosen; those of a unit together
    members: Ints  # (n,): which columns of the user's table these are
    forced: Floats  # (f, m): orthogonal combinations of what is always in the model, of mean square 1
    rows: Any  # what the loss knows of these rows
    penalty_weight: float  # the ridge times the sum of the weights; it makes columns independent
    yy: float  # twice the energy without chosen columns
    quadratic = False
    bound = False

    def __init__(
        self, loss: Likelihood, problem: SubsetProblem, X: Any, kept: Ints, always: Ints, limited: bool
    ) -> None:
        y, w, intercept = problem.y[kept], problem.sample_weight[kept], problem.center == "fold"
        self.intercept = intercept
        total = float(w.sum())
        columns, keep = self._sparse_columns(X, w) if is_sparse(X) else self._dense_columns(X, w)
        self._forced_columns = np.vstack([np.ones((int(intercept), w.size)), columns.columns(always)])
        self.forced: Floats = np.ascontiguousarray(orthonormal_basis(self._forced_columns.T).T) * np.sqrt(w.size)
        if always.size:  # what forced columns explain is not a candidate
            root = np.sqrt(w)
            basis = orthonormal_basis((self._forced_columns * root).T)
            for part in column_blocks(w.size, keep.size):
                rest = columns.columns(np.arange(keep.size)[part]) * root
                rest -= (rest @ basis) @ basis.T
                keep[part] &= np.sqrt(np.einsum("jm,jm->j", rest, rest) / total) > 1e3 * CONSTANT
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
        self.standard = columns if keep.all() and not self.grouped else columns.with_columns(self.members)
        self.loss, self.always = loss, always
        self._budget, self.dense = problem.memory_budget, 8 * problem.n_columns**2 <= problem.memory_budget
        self.penalty_weight = (problem.ridge + problem.shrinkage) * total
        self.rules: Rules = no_rules(self.candidates.size)
        if limited and limits.ruled:
            self.rules = limits.rules(self.candidates, always, first)
        self._X, self.y, self.w = X, y, w
        self.n_columns, self.n_rows = int(self.candidates.size), w.size
        offset = np.zeros(w.size) if problem.offset is None else problem.offset[kept]
        self.rows, self.q = loss.rows(y, w), loss.predictors(problem.y)
        self._offset: Floats = np.repeat(offset[:, None], self.q, axis=1)
        f = len(self.forced)
        level = np.zeros((1, f, self.q))
        if f and intercept:
            level[0] = np.outer(self.forced.sum(axis=1), loss.level(self.rows, offset)) / w.size
        energies, theta = self._minimized(self.forced[None], np.zeros(f), level)
        self._empty = Fits(np.zeros((1, 0), np.int64), energies, theta)
        self._at_empty: Quadratic | None = None
        self.yy = 2.0 * float(energies[0])

    def _dense_columns(self, X: Floats, w: Floats) -> tuple[DenseRows, NDArray[np.bool_]]:
        """Standardized columns, and which of them vary (N,)."""
        total = float(w.sum())
        self._powers = powers_of_two(X)
        columns = np.array(X.T, dtype=np.float64, order="C")
        columns /= self._powers[:, None]
        raw = np.einsum("jm,jm,m->j", columns, columns, w)
        self._means: Floats = columns @ w / total if self.intercept else np.zeros(len(columns))
        columns -= self._means[:, None]
        spread = np.sqrt(np.einsum("jm,jm,m->j", columns, columns, w) / total)
        keep = spread > CONSTANT * np.sqrt(raw / total)
        self._spread: Floats = np.where(keep, spread, 1.0)
        columns /= self._spread[:, None]
        return DenseRows(columns.T), keep

    def _sparse_columns(self, X: Any, w: Floats) -> tuple[SparseRows, NDArray[np.bool_]]:
        """The same of a sparse table, whose means are a low-rank term."""
        given = centred(X, w, None if self.intercept else np.zeros(X.shape[1]), np.zeros((w.size, 0)))
        self._powers, self._means, total = given.powers, given.means, float(w.sum())
        keep = given.spread > CONSTANT**2 * given.raw
        self._spread = np.where(keep, np.sqrt(given.spread / total), 1.0)
        table, rest = given.table, np.where(keep, given.rest / self._spread, 0.0)
        table.data /= np.repeat(self._spread, np.diff(table.indptr))
        return SparseRows(table, np.ones((w.size, 1)), rest[None]), keep

    def fit_many(
        self, supports: Ints, start: Fits | None = None, close: float = SEARCHING, bound: float = np.inf
    ) -> Fits:
        """Fits of supports (T, k), from the coefficients that their columns have in one other fit.

        Those that are plainly going to have an energy above `bound` are given up with some energy above it.
        """
        first, f = self._empty if start is None else start, len(self.forced)
        if not supports.shape[1] and start is None and close >= SEARCHING:
            return self._empty
        # Supports with fewer columns than others are filled up by columns of zeros, whose coefficients stay zero.
        places = filled_up([self.places(support) for support in supports]) if self.grouped else supports
        (count, p), begin = places.shape, np.zeros((self.members.size + 1, self.q))
        known = self.places(first.supports[0])
        begin[known] = first.theta[0, first.theta.shape[1] - known.size :]
        theta = np.concatenate([np.broadcast_to(first.theta[:, :f], (count, f, self.q)), begin[places]], axis=1)
        penalty, energies = np.repeat([0.0, self.penalty_weight], [f, p]), np.empty(count)
        step = max(1, _BATCH_BYTES // (8 * max(1, f + p, self.q**2) * self.w.size))
        for some in (slice(at, at + step) for at in range(0, count, step)):
            D = np.empty((len(places[some]), f + p, self.w.size))
            D[:, :f], D[:, f:] = self.forced, self.standard.columns(places[some])
            D[:, f:][places[some] == ABSENT] = 0.0
            energies[some], theta[some] = self._minimized(D, penalty, theta[some], close, bound)
        return Fits(supports, energies, theta)

    def _minimized(
        self, D: Floats, penalty: Floats, theta: Floats, close: float = FINAL, bound: float = np.inf
    ) -> tuple[Floats, Floats]:
        """What `newton` finds; refused where a final fit by a loss of the user's own is no minimum."""
        energies, theta = newton(self.loss, self.rows, D, self._offset, penalty, theta, close, bound)
        if self.loss.own and close == FINAL:
            score = self.loss.derivatives(self.rows, self._offset + D.transpose(0, 2, 1) @ theta)[1]
            push = penalty[:, None] * theta
            if not np.all(np.abs(D @ score - push) <= _FLAT * (np.abs(D) @ np.abs(score) + np.abs(push))):
                raise ValueError(
                    f"Newton's method found no minimum of the loss {self.loss.name!r}; expected a smooth convex loss "
                    "whose scale (such as delta) suits the residuals: rescale it or the target."
                )
        return energies, theta

    def _eta(self, fit: Fits) -> tuple[Floats, Floats, Floats]:
        """Columns (p, m) of one fit, their coefficients (p, q), and its linear predictors (m, q)."""
        places, f = self.places(fit.supports[0]), len(self.forced)
        D = np.vstack([self.forced, self.standard.columns(places)])
        theta = np.concatenate([fit.theta[0, :f], fit.theta[0, fit.theta.shape[1] - places.size :]])
        return D, theta, self._offset + D.T @ theta

    @cached_property
    def widths(self) -> Ints:
        """How many columns of each unit (U,) are independent of each other and of what is always in the model."""
        root, forced = np.sqrt(self.w), len(self.forced)
        units = [self.standard.columns(np.arange(a, b)) for a, b in pairwise(self.start)]
        ranks = [np.linalg.matrix_rank(np.vstack([self.forced, columns]) * root) for columns in units]
        return np.array(ranks, dtype=np.int64) - forced

    def quadratic_at(self, fit: Fits) -> Quadratic:
        """The Newton step at a fit, with one weight for each row; that without columns is remembered."""
        if fit is self._empty and self._at_empty is not None:
            return self._at_empty
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
        products = X.products(np.vstack([D_v, score.T]))
        G, R = products[: len(D)], products[len(D) :]
        P = np.linalg.inv(H)
        W = P @ G
        s = np.zeros((int(np.diff(self.start).max()) if self.grouped else 1, self.members.size))
        s[0] = (X.weighted_squares(weight) + ridge - np.einsum("an,an->n", G, W)) / unit
        of = np.repeat(np.arange(self.n_columns), np.diff(self.start)) if self.grouped else np.zeros(0)
        for b in range(1, len(s)):  # of columns of one unit
            at = b + np.flatnonzero(of[b:] == of[:-b])
            for part in (at[block] for block in column_blocks(weight.size, at.size)):
                s[b, part] = np.einsum("nm,m,nm->n", X.columns(part), weight, X.columns(part - b))
            s[b, at] -= np.einsum("an,an->n", G[:, at], W[:, at - b])
            s[b, at] /= unit
        swept = np.linalg.solve(np.linalg.cholesky(H[:f, :f]), G[:f]) if f else G[:0]

        def row(j: int) -> Floats:
            of_j: Floats = X.products(weight * X.columns(np.array([j])))[0]
            of_j -= swept[:, j] @ swept
            of_j[j] += ridge
            return of_j / unit

        root = np.sqrt(unit)
        newton_step = Quadratic(np.asarray(unit * P[f:, f:]), root * theta[f:].T, W[f:], R / root, s, row)
        if fit is self._empty:
            self._at_empty = newton_step
        return newton_step

    def energy(self, support: Ints) -> float:
        """E(S), minimized from the forced columns alone; infinite when S is against the rules."""
        at = np.asarray(support, dtype=np.int64)
        if self.rules.any and not self.rules.allow(at):
            return np.inf
        return float(self.fit_many(at[None], close=FINAL).energies[0])

    def solve(self, support: Ints) -> tuple[Fit, Floats]:
        """The fit of candidate positions in the units of the table, and its linear predictors (m, q)."""
        fit, chosen, turn = self._in_table(support)
        _, theta, eta = self._eta(fit)
        coef, a = turn @ theta if self.q > 1 else turn @ theta[:, 0], self.always.size
        intercept = coef[0] if self.q > 1 else float(coef[0])
        return Fit(chosen, coef[1 + a :], intercept, coef[1 : 1 + a], float(fit.energies[0])), eta

    def influence(self, support: Ints) -> Influence:
        """What rows contribute to the constant, the forced and the chosen coefficients, where q is 1."""
        fit, _, turn = self._in_table(support)
        D, _, eta = self._eta(fit)
        by_row, residual, root = self.loss.row_gradients(self.rows, D, eta)
        ordinary, along = np.full(len(turn), np.nan), self._determined(D)
        if len(D):
            information = self.loss.system(self.rows, D[None], eta[None])[2][0].reshape(len(D), -1)
            ridge = np.repeat([0.0, self.penalty_weight], [len(self.forced), len(D) - len(self.forced)])
            hessian = information + np.diag(ridge + 1e-13 * np.diag(information) + 1e-280)
            # H = C C' along what the rows determine, so that B B' is its inverse.
            B = along @ np.linalg.inv(np.linalg.cholesky(along.T @ hessian @ along)).T
            moved = turn @ B @ B.T  # by a gradient, whose covariance is the information
            ordinary = np.sqrt(np.maximum(np.einsum("xa,ab,xb->x", moved, information, moved), 0.0))
            by_row, hat = moved @ by_row, (D * root).T @ B
        else:
            by_row, hat = np.zeros((len(turn), residual.size)), np.zeros((residual.size, 0))
        ordinary[0] = ordinary[0] if self.intercept else np.nan
        return Influence(ordinary, by_row, residual, hat)

    def _in_table(self, support: Ints) -> tuple[Fits, Ints, Floats]:
        """A fit, its columns of the table (k,), and what makes coefficients in the units of the table of its own.

        Rows of that (1 + a + k, p) give the constant, the forced and the chosen coefficients from theta.
        """
        units = np.asarray(support, dtype=np.int64)
        fit, at = self.fit_many(units[None], close=FINAL), self.places(units)
        order = np.argsort(self.members[at])  # as in the table
        f, a, names = len(self.forced), self.always.size, np.concatenate([self.always, self.members[at[order]]])
        turn, to_forced = np.zeros((1 + names.size, f + at.size)), np.zeros((self._forced_columns.shape[0], 0))
        if f:
            to_forced = np.linalg.pinv(self._forced_columns.T) @ self.forced.T
        turn[1 : 1 + a, :f] = to_forced[int(self.intercept) :]
        turn[1 + a :, f:] = np.eye(at.size)[order]
        turn[1:] /= (self._powers * self._spread)[names][:, None]
        if self.intercept:
            turn[0, :f] = to_forced[0]
            turn[0] -= (self._means * self._powers)[names] @ turn[1:]
        return fit, names[a:], turn

    def _determined(self, D: Floats) -> Floats:
        """Directions (p, r) of coefficients of columns D (p, m), forced ones first, in which the rows determine them.

        In the others, which columns of one unit may have (dummies do), the ridge alone holds coefficients at zero.
        """
        from scipy.linalg import null_space

        free = null_space(D.T, rcond=_DEPENDENT) if self.grouped else np.zeros((len(D), 0))
        free[: len(self.forced)] = 0.0
        return np.asarray(null_space(free.T)) if free.size else np.eye(len(D))

    def rank(self) -> int:
        """All units can be chosen together, because of the ridge."""
        return self.n_columns

    def kick_nanoseconds(self, k: int) -> float:
        """Cost model: what one kick and the descent after it take on one core, some rankings and refits."""
        n = self.members.size
        p = k * n / self.n_columns
        return 5e5 + self.n_rows * self.q * (0.4 * n * (p + 4.0) + 120.0 * p * p * self.q)

    @cached_property
    def working(self) -> Form:
        """The quadratic form of the Newton step from the model without chosen columns, with the ridge unless small.

        It is that of the columns, in the order of the table, also where units have several.
        """
        score, weight = self.loss.exchangeable(self.rows, self._eta(self._empty)[2])
        weight = np.where(weight > 1e-9 * weight.mean(), weight, weight.mean() or 1.0)  # some or all have no curvature
        rules = no_rules(self.members.size) if self.grouped else self.rules
        step: Any = (SparseForm if is_sparse(self._X) else project)(
            self._X, score / weight[:, None], weight, always=self.always, ridge=0.0, intercept=self.intercept,
            means=None if self.intercept else (np.zeros(self._X.shape[1]), np.zeros(self.q)),
        )  # fmt: skip
        # What weights leave nothing of is a column of zeros.
        members, none = np.sort(self.members), np.zeros(0, np.int64)
        if isinstance(step, SparseForm):
            plain: Form = step.on_columns(members)
            step.finish(np.ones(self.q), rules, self.dense, self._budget)
        else:
            columns = step.columns
            if not np.array_equal(step.candidates, members):
                _, at, there = np.intersect1d(step.candidates, members, return_indices=True)
                columns = np.zeros((members.size, columns.shape[1]))
                columns[there] = step.columns[at]
            plain = Form(columns, step.targets, np.zeros(members.size), members, dense=self.dense, rules=rules)
        relative = self.penalty_weight / float(weight.sum())
        return TrainingForm(plain, step.forced, step.basis, none, ridge=relative) if relative > _SMALL else plain

    def __getattr__(self, name: str) -> Any:
        """What only the working problem has: its columns, targets, products, penalties and diagonal."""
        if name in _OF_WORKING:
            return getattr(self.working, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
