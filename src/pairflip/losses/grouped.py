r"""Whole groups of columns: a support is k units (`losses.units`), and its energy is that of all their columns,

.. math:: E(S) = \tfrac12 \min_{x, z} \|\sqrt w (y - \sum_{u \in S} X_u x_u - Z z)\|^2 + \tfrac{\lambda}{2} \|x\|^2 .

Columns of one unit may depend on each other (dummies beside a constant do). Each unit is therefore replaced by an
orthonormal basis of its columns, forced ones projected out and ridge terms among the rows: G then has identity blocks,
a unit is no candidate only if nothing of it is left, and units are singular together if these bases are.

Coefficients that the rows do not determine are those of the smallest norm in the units of the table, the limit of a
vanishing ridge: dummies of one category then add up to zero, and a level that was never seen is predicted by the mean
of the others.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import SINGULAR, Floats, qr_energy, qr_several
from pairflip.losses.base import Fit, HeldOutJudge
from pairflip.losses.bases import reduced
from pairflip.losses.squares import SquaredError, constants
from pairflip.losses.units import Units
from pairflip.moments import Form

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem
    from pairflip.selection.folds import Folds

Ints = NDArray[np.int64]
_LOOKS = 2000
_REMEMBERED = 100_000  # energies; searches come back to the same supports again and again


class GroupedForm(Form):
    """The units of a table on some rows; positions in a support are those of units.

    Attributes
    ----------
    form : Form
        The columns as they are.
    units : U units
        Their columns on these rows.
    candidates : (U,)
        The first column of each.
    start : (U + 1,)
        Where the basis of each unit begins among all `columns` (D, M) of the bases.
    """

    objective = "grouped"

    def __init__(self, form: Form, groups: Units) -> None:
        self.form = form
        self.candidates, place = np.unique(groups.first[form.candidates], return_inverse=True)
        order = np.argsort(place, kind="stable")
        edges = np.searchsorted(place[order], np.arange(self.candidates.size + 1))
        every = [order[a:b] for a, b in pairwise(edges)]
        self.units = [reduced(form.columns[own], form.penalty[own], own) for own in every]
        self.start: Ints = np.concatenate([[0], np.cumsum([unit.kept.size for unit in self.units])]).astype(np.int64)
        self.columns: Floats = np.vstack([np.empty((0, form.n_rows)), *(unit.basis for unit in self.units)])
        self.ridged = bool(form.penalty.any())
        self._known: dict[bytes, float] = {}
        self.target, self.yy, self.dense = form.target, form.yy, True
        self.b: Floats = self.columns @ self.target
        self.diagonal, self.penalty = np.ones(self.b.size), np.zeros(self.b.size)

    @property
    def working(self) -> Form:
        """The form of the columns, without their groups."""
        return self.form

    @property
    def n_columns(self) -> int:
        """U, the number of units."""
        return int(self.candidates.size)

    @property
    def nbytes(self) -> int:
        """Bytes held beside the user's table, without the matrix."""
        return int(self.form.nbytes + self.columns.nbytes)

    @property
    def widths(self) -> Ints:
        """How many independent columns each unit has (U,)."""
        return np.diff(self.start)

    def least_columns(self, k: int) -> int:
        """How many independent columns the k narrowest units have."""
        return int(np.sort(self.widths)[:k].sum())

    def places(self, support: Ints) -> Ints:
        """Where the bases of some units are among all columns, one unit after the other."""
        return np.concatenate([np.arange(self.start[u], self.start[u + 1]) for u in support] or [np.zeros(0, np.int64)])

    def design(self, support: Ints) -> tuple[Floats, Floats]:
        """The bases of some units (m, n), and the target (m,), rows of the ridge included."""
        columns = self.columns[self.places(support)].T
        if not (self.ridged and len(support)):
            return columns, self.target
        from scipy.linalg import block_diag

        tails = block_diag(*(self.units[u].tail for u in support)).T
        return np.vstack([columns, tails]), np.concatenate([self.target, np.zeros(tails.shape[0])])

    def energy(self, support: Ints) -> float:
        """E(S) by QR on all columns of the units, infinite when they are singular together; each support once."""
        own = np.sort(support)
        key = own.tobytes()
        if key not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            columns, target = self.design(own)
            self._known[key] = qr_energy(columns, target, np.zeros(columns.shape[1])) if own.size else 0.5 * self.yy
        return self._known[key]

    def solve(self, support: Ints, scale: Floats) -> tuple[Ints, Floats, float]:
        """Positions among the columns of the form, their coefficients in the units of the table, and the energy.

        Parameters
        ----------
        support : (k,)
            Positions of units.
        scale : (n,)
            What each column of the form was divided by.
        """
        columns, target = self.design(support)
        found = qr_several(columns, target[:, None], np.zeros(columns.shape[1]))
        if found is None:
            raise ValueError(
                "the columns of these groups are linearly dependent, so their coefficients are not determined; "
                "leave one of the groups out."
            )
        z, energy = found
        at, to_table = self.to_table(support, scale)
        return at, to_table @ z[:, 0], float(energy[0])

    def to_table(self, support: Ints, scale: Floats) -> tuple[Ints, Floats]:
        """Columns of some units, as sorted positions (n,), and what leads from coordinates to their coefficients.

        Parameters
        ----------
        support, scale
            As in `solve`.
        """
        if not len(support):
            return np.zeros(0, np.int64), np.zeros((0, 0))
        from scipy.linalg import block_diag

        own = [self.units[u] for u in support]
        at = np.concatenate([unit.members for unit in own])
        order = np.argsort(at)
        return at[order], block_diag(*(unit.to_table(scale[unit.members]) for unit in own))[order]

    def regular(self, k: int) -> Ints | None:
        """Some k units that are not singular together, narrow ones first; None if none were found.

        Which units are independent depends on which others were taken before, so that one look at each is not enough:
        choices are taken back, at most `_LOOKS` times.
        """
        order, looks = np.argsort(self.widths, kind="stable").tolist(), 0
        taken: list[int] = []
        at = 0
        while len(taken) < k and looks < _LOOKS:
            if at < len(order):
                looks += 1
                if np.isfinite(self.energy(np.array([*(order[i] for i in taken), order[at]]))):
                    taken.append(at)
            elif taken:
                at = taken.pop()
            else:
                break
            at += 1
        return np.array([order[i] for i in taken], dtype=np.int64) if len(taken) == k else None

    def rank(self) -> int:
        """How many units are independent together, as far as `regular` can tell."""
        k = 0
        while self.regular(k + 1) is not None:
            k += 1
        return k

    @cached_property
    def _every(self) -> tuple[Floats, Floats]:
        """All bases (D, m) and the target (m,), ridge terms among the rows; no more rows than carry all products."""
        columns, target = self.design(np.arange(self.n_columns))
        if target.size > 2 * (columns.shape[1] + 1):
            triangle: Floats = np.asarray(np.linalg.qr(np.column_stack([columns, target]), mode="r"))
            columns, target = triangle[:, :-1], triangle[:, -1]
        return np.ascontiguousarray(columns.T), np.ascontiguousarray(target)

    def gains(self, support: Ints) -> Floats:
        """What each unit (U,) lowers twice the energy of a support by, from the columns; -inf if it depends on it."""
        columns, target = self._every
        own = self.places(support)
        if own.size:
            q = np.linalg.qr(columns[own].T)[0]
            for _ in range(2):  # a second projection removes what rounding left of the first
                columns = columns - (columns @ q) @ q.T
        gains, widths = np.full(self.n_columns, -np.inf), self.widths
        for width in np.unique(widths):  # units of one width together
            units = np.flatnonzero(widths == width)
            rest = columns[self.places(units)].reshape(units.size, width, -1)
            values, vectors = np.linalg.eigh(rest @ rest.transpose(0, 2, 1))
            along = np.einsum("uab,ua->ub", vectors, rest @ target)
            may = values[:, 0] > 0.5 * SINGULAR
            gains[units[may]] = np.sum(along[may] ** 2 / values[may], axis=1)
        gains[support] = -np.inf
        return gains

    def forward_energies(self, k: int) -> list[float]:
        """Energies that forward selection leaves with 0, 1, ..., k units (fewer if no more are independent)."""
        energies, taken = [0.5 * self.yy], np.zeros(0, np.int64)
        for _ in range(k):
            gains = self.gains(taken)
            best = int(np.argmax(gains))
            if not np.isfinite(gains[best]):
                break
            taken = np.append(taken, best)
            energies.append(max(energies[-1] - 0.5 * float(gains[best]), 0.0))
        return energies

    @cached_property
    def matrix(self) -> Floats:
        """G (D, D) of the bases, formed at first use: identity blocks for units."""
        gram: Floats = self.columns @ self.columns.T
        for a, b in pairwise(self.start):
            gram[a:b, a:b] = np.eye(b - a)
        return gram


class GroupedError(SquaredError):
    """Squared error of whole groups of columns."""

    quadratic = False

    def prepare(self, problem: SubsetProblem) -> Form:
        """Project the forced columns out of all rows, and reduce units to independent columns."""
        n = problem.n_columns
        if problem.wide or 8 * n**2 > problem.memory_budget:
            raise ValueError(
                f"the matrix of {n:,} columns takes more than the memory budget of {problem.memory_budget:,} bytes, "
                "and groups of columns cannot be searched without it; expected fewer columns, or "
                f"memory_budget={8 * n**2}."
            )
        form = super().prepare(problem)
        varying = {name: np.intersect1d(own, form.candidates) for name, own in problem.limits.groups.items()}
        problem.units = Units.of({name: own for name, own in varying.items() if own.size}, n)
        return GroupedForm(form, problem.units)

    def without_rows(self, problem: SubsetProblem, rows: Ints, anew: bool = False) -> Form:
        """The remaining rows as a problem of their own, with units of what varies there.

        Parameters
        ----------
        problem, rows
            The problem, and the rows left out.
        anew
            Of no importance here.
        """
        assert problem.units is not None
        return GroupedForm(super().without_rows(problem, rows, anew=True), problem.units)

    def fit(self, problem: SubsetProblem, support: Ints) -> Fit:
        """Coefficients and energy by QR on the columns of X; the support consists of whole units."""
        form: Any = problem.gram
        at, coef, energy = form.solve(problem.slots(support), problem.scale)
        chosen = problem.candidates[at]
        always_coef, intercept = forced_part(problem, np.arange(problem.n_rows), chosen, coef)
        return Fit(chosen, coef, float(intercept), always_coef, energy)

    def standard_errors(self, problem: SubsetProblem, support: Ints) -> Floats:
        r"""Of the constant, the forced and the chosen coefficients, as `selection.coefficients` defines them.

        Coordinates z in the bases have the covariance :math:`s^2 A^{-1} D^T D A^{-1}` with D their columns and A the
        same with ridge terms; coefficients are linear in them. What is always in the model is fitted to what they
        leave.
        """
        form: Any = problem.gram
        at, unknown = problem.slots(support), np.full(1 + problem.always.size + support.size, np.nan)
        root, constant = np.sqrt(problem.sample_weight), problem.center is not None
        forced = np.hstack([np.ones((problem.n_rows, int(constant))), problem.X[:, problem.always]]) * root[:, None]
        norms = np.linalg.norm(forced, axis=0)
        norms[norms == 0] = 1.0
        inverse = np.linalg.pinv(forced / norms) / norms[:, None]
        design = form.design(at)[0]
        columns = design[: form.n_rows]
        A = np.linalg.inv(design.T @ design)
        z = A @ (columns.T @ form.target)
        spread = A @ (columns.T @ columns) @ A
        room = problem.rows_present - float(np.sum(A * (columns.T @ columns))) - np.linalg.matrix_rank(forced / norms)
        if room <= 1e-9:
            return unknown
        noise = float(np.sum((form.target - columns @ z) ** 2)) / room
        to_table = form.to_table(at, problem.scale)[1]
        chosen = to_table @ spread @ to_table.T
        beside = inverse @ (root[:, None] * problem.X[:, support])
        of_forced = np.diag(inverse @ inverse.T) + np.einsum("fi,ij,fj->f", beside, chosen, beside)
        every = np.sqrt(noise * np.maximum(np.concatenate([of_forced, np.diag(chosen)]), 0.0))
        return every if constant else np.append(np.nan, every)

    def held_out(self, problem: SubsetProblem, folds: Folds) -> HeldOutJudge:
        """Every support is fitted again on the training rows of its fold."""
        from pairflip.losses.grouped_held_out import HeldOutGroups

        return HeldOutGroups(problem, folds)


def forced_part(
    problem: SubsetProblem, rows: Ints, columns: Ints, coef: Floats, inside: Any = None
) -> tuple[Floats, float]:
    """Coefficients of the forced columns (a,) and the intercept, given those of the chosen ones.

    Parameters
    ----------
    problem : SubsetProblem
        Table and target.
    rows, columns : indices
        What was fitted.
    coef : (n,)
        Chosen coefficients, in the units of the table.
    inside : Projected, optional
        Forced and chosen columns on these rows; without it, the rows are those of the problem.
    """
    always_coef, intercept, _ = constants(problem, rows, columns, coef[:, None], inside)
    return always_coef[:, 0], float(intercept[0])
