r"""Some rows of a table with a likelihood: what descents in the deviance walk on, and the exact judge of a support.

Chosen columns are standardized (weighted mean 0 where there is a constant, weighted mean square 1) on these rows, with
the penalty :math:`\tfrac12 \lambda W \sum_j \theta_j^2`, W the sum of the weights, so that rows counted twice and rows
of weight two are the same. Forced columns and the constant are not penalized.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats, orthonormal_basis
from pairflip.losses.likelihood import POISSON
from pairflip.losses.newton import Rows, Workspace, fit_rows, workspace
from pairflip.moments import Form, TrainingForm
from pairflip.projection import CONSTANT, powers_of_two, project

_SMALL = 1e-3  # a ridge, relative to the Hessian, that makes no difference to the working problem


@dataclass(frozen=True)
class Solved:
    """The fit of one support: energy, coefficients and standard errors in the units of the table, eta on the rows.

    Standard errors are those of the constant, the forced and the chosen columns; nan where there is none.
    """

    energy: float
    coef: Floats
    intercept: float
    always_coef: Floats
    errors: Floats
    eta: Floats


class LikelihoodForm(Form):
    """What engines need to know of rows with a likelihood.

    Where a quadratic form is asked for (stand-ins, shuffled targets, a first guess), it is that of the working problem:
    the Newton step from the model without chosen columns.

    Attributes
    ----------
    standard : (n, m)
        Candidate columns, standardized on these rows, each as a contiguous row.
    forced : (f, m)
        Orthogonal combinations of what is always in the model, of mean square 1.
    rows : Rows
        Target, weights, offset and family.
    penalty_weight : float
        The ridge times the sum of the weights.
    yy : float
        Twice the energy without chosen columns.
    """

    objective = "deviance"

    def __init__(
        self,
        X: Floats,
        y: Floats,
        w: Floats,
        offset: Floats,
        *,
        always: NDArray[np.int64],
        intercept: bool,
        ridge: float,
        family: int,
        dense: bool,
    ) -> None:
        """Rows of positive weight.

        Parameters
        ----------
        X, y, w, offset : (m, N), (m,), (m,), (m,)
            The rows.
        always, intercept
            Forced columns, and whether there is a constant.
        ridge : float
            Penalty on standardized coefficients, for each unit of weight.
        family : int
            LOGISTIC or POISSON.
        dense : bool
            Whether the matrix of the working problem may be formed.
        """
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
        forced = columns[always] if always.size else np.empty((0, y.size))
        self._forced_columns = np.vstack([np.ones((int(intercept), y.size)), forced])
        self.forced: Floats = np.ascontiguousarray(orthonormal_basis(self._forced_columns.T).T) * np.sqrt(y.size)
        if always.size:  # what forced columns explain is not a candidate
            root = np.sqrt(w)
            basis = orthonormal_basis((self._forced_columns * root).T)
            left = columns * root
            left -= (left @ basis) @ basis.T
            keep &= np.sqrt(np.einsum("jm,jm->j", left, left) / total) > 1e3 * CONSTANT
        keep[always] = False
        self.candidates = np.flatnonzero(keep)
        self.standard: Floats = columns if keep.all() else columns[self.candidates]
        self.always, self.intercept, self.dense = always, intercept, dense
        self.penalty_weight = ridge * total
        self._X, self.y, self.w = X, y, w
        logs = y * np.log(np.where(y > 0, y, 1.0)) - y if family == POISSON else np.zeros(y.size)
        rounding = 1e-15 * float(w @ (1.0 + np.abs(y) + np.abs(logs)))
        self.rows = Rows(y, w, np.ascontiguousarray(offset), family, float(w @ logs), rounding)
        self._null = self._start()
        self.yy = 2.0 * self.energy(np.empty(0, dtype=np.int64))

    def _start(self) -> Floats:
        """Coefficients of the forced columns alone."""
        rows, f = self.rows, self.forced.shape[0]
        theta = np.zeros(f)
        if f and self.intercept:
            mean = float(self.w @ self.y) / float(
                self.w @ np.exp(rows.offset) if rows.family == POISSON else self.w.sum()
            )
            level = np.log(mean) if rows.family == POISSON else np.log(mean / (1.0 - mean))
            theta = self.forced @ np.full(self.y.size, level) / self.y.size
        if f:
            fit_rows(self.forced, rows, np.zeros(f), theta, self.memory(0))
        return theta

    def memory(self, k: int) -> Workspace:
        """Memory for fits of up to k chosen columns."""
        return workspace(self.forced.shape[0] + k, self.y.size)

    @property
    def start(self) -> Floats:  # type: ignore[override]
        """Coefficients (f,) of `forced` without chosen columns."""
        return self._null

    def _fitted(self, at: NDArray[np.int64]) -> tuple[float, Floats, Workspace, Floats]:
        """Energy, theta, the factor of the Hessian and the columns of one support."""
        f = self.forced.shape[0]
        D = np.vstack([self.forced, self.standard[at]])
        theta = np.concatenate([self._null, np.zeros(at.size)])
        penalty = np.concatenate([np.zeros(f), np.full(at.size, self.penalty_weight)])
        work = self.memory(at.size)
        if D.shape[0] == 0:
            D, theta, penalty, work = np.zeros((1, self.y.size)), np.zeros(1), np.ones(1), workspace(1, self.y.size)
        return float(fit_rows(D, self.rows, penalty, theta, work)), theta, work, D

    def energy(self, support: NDArray[np.int64]) -> float:
        """E(S), minimized from the forced columns alone."""
        return self._fitted(np.asarray(support, dtype=np.int64))[0]

    def solve(self, support: NDArray[np.int64]) -> Solved:
        """The fit of candidate positions, in the units of the table."""
        at = np.asarray(support, dtype=np.int64)
        energy, theta, work, _ = self._fitted(at)
        f, which = self.forced.shape[0], self.candidates[at]
        p, names = f + at.size, np.concatenate([self.always, which])
        # The rows of `turn` give the constant, the forced and the chosen coefficients from theta.
        turn, to_forced = np.zeros((1 + names.size, p)), np.zeros((self._forced_columns.shape[0], 0))
        if f:
            to_forced = np.linalg.pinv(self._forced_columns.T) @ self.forced.T
        turn[1 : 1 + self.always.size, :f] = to_forced[int(self.intercept) :]
        turn[1 + self.always.size :, f:] = np.eye(at.size)
        turn[1:] /= (self._powers * self._spread)[names][:, None]
        if self.intercept:
            turn[0, :f] = to_forced[0]
            turn[0] -= (self._means * self._powers)[names] @ turn[1:]
        found = turn @ theta[:p]
        half = np.linalg.solve(np.tril(work.H[:p, :p]), turn.T)  # errors: turn inv(L L') turn'
        errors = np.sqrt(np.einsum("pa,pa->a", half, half))
        if not self.intercept:
            errors[0] = np.nan
        a = self.always.size
        return Solved(energy, found[1 + a :], float(found[0]), found[1 : 1 + a], errors, work.eta.copy())

    def separated(self, support: NDArray[np.int64]) -> bool:
        """Whether the fit of a support puts every row into its own class (never with counts)."""
        if self.rows.family == POISSON:
            return False
        eta = self._fitted(np.asarray(support, dtype=np.int64))[2].eta
        return bool(np.all(np.where(self.y > 0.5, eta, -eta) > 0))

    @property
    def n_columns(self) -> int:
        """Number of candidate columns."""
        return int(self.candidates.size)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.y.size)

    @cached_property
    def working(self) -> Form:
        """The quadratic form of the Newton step from the model without chosen columns, with the ridge unless small."""
        eta = self.rows.offset + self._null @ self.forced
        mean = np.exp(np.minimum(eta, 700.0)) if self.rows.family == POISSON else 1.0 / (1.0 + np.exp(-eta))
        slope = mean if self.rows.family == POISSON else mean * (1.0 - mean)
        slope = np.maximum(slope, 1e-12 * float(slope.max()))
        found = project(
            self._X, ((self.y - mean) / slope)[:, None], self.w * slope, always=self.always, ridge=0.0,
            intercept=self.intercept, means=None if self.intercept else (np.zeros(self._X.shape[1]), np.zeros(1)),
        )  # fmt: skip
        plain = _on(found.columns, found.targets, found.candidates, self.candidates, self.dense)
        relative = self.penalty_weight / float(self.w @ slope)
        none = np.zeros(0, np.int64)
        return TrainingForm(plain, found.forced, found.basis, none, ridge=relative) if relative > _SMALL else plain

    @property
    def columns(self) -> Floats:  # type: ignore[override]
        """Columns (n, m) of the working problem."""
        return self.working.columns

    @property
    def target(self) -> Floats:
        """Target (m,) of the working problem."""
        return self.working.target

    @property
    def b(self) -> Floats:
        """Products (n,) of the columns of the working problem with its target."""
        return self.working.b

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


def _on(columns: Floats, target: Floats, found: NDArray[np.int64], wanted: NDArray[np.int64], dense: bool) -> Form:
    """The working problem on the candidates `wanted`; what weights leave nothing of is a column of zeros.

    Parameters
    ----------
    columns, target : (c, m), (m, 1)
        Projected and scaled.
    found, wanted : (c,), (n,)
        Which columns of the table they are, and which are candidates.
    dense : bool
        Whether its matrix may be formed.
    """
    if not np.array_equal(found, wanted):
        _, at, there = np.intersect1d(found, wanted, return_indices=True)
        every = np.zeros((wanted.size, columns.shape[1]))
        every[there] = columns[at]
        columns = every
    return Form(columns, target, np.zeros(wanted.size), wanted, dense=dense)
