r"""Groups of columns as units: each is replaced by an orthonormal basis of its columns.

Columns of one unit may depend on each other (dummies beside a constant do). In a basis of each, forced columns swept
out and ridge terms among the rows, G has identity blocks; a unit is no candidate only if nothing of it is left, and
units are singular together if their bases are.

Coefficients that the rows do not determine are those of the smallest norm in the units of the table, the limit of a
vanishing ridge: dummies of one category then add up to zero, and a level that was never seen is predicted by the mean
of the others.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import SINGULAR, Floats
from pairflip.moments import Form
from pairflip.rules import Rules, Units

Ints = NDArray[np.int64]
_DEPENDENT = 1e-24
"""A column of which less than this (of its squared norm) is independent of its unit may take any coefficient."""
_LOOKS = 2000


class UnitForm(Form):
    """Units of a table on some rows; positions in a support are those of units.

    `candidates` (U,) are the first columns of units, `bases` their columns on these rows; the basis of each begins at
    `start` (U + 1,) among all `columns` (D, M).
    """

    what = "groups"
    grouped = True

    def __init__(self, form: Form, groups: Units, rules: Rules | None = None) -> None:
        candidates, unit = np.unique(groups.first[form.candidates], return_inverse=True)
        order = np.argsort(unit, kind="stable")
        members = np.split(order, np.searchsorted(unit[order], np.arange(1, candidates.size)))
        ridge, q = np.flatnonzero(form.penalty), form.targets.shape[1]
        rows = form.columns  # ridge terms are rows, too
        if ridge.size:
            tail = np.zeros((len(rows), ridge.size))
            tail[ridge, np.arange(ridge.size)] = np.sqrt(form.penalty[ridge])
            rows = np.hstack([rows, tail])
        self.bases = [basis_of(rows[columns], columns) for columns in members]
        columns = np.vstack([unit.basis for unit in self.bases])
        targets = np.vstack([form.targets, np.zeros((ridge.size, q))])
        super().__init__(columns, targets, np.zeros(len(columns)), candidates, dense=True, rules=rules)
        self._form, self.target_scale = form, form.target_scale
        self.start = np.concatenate([[0], np.cumsum([unit.kept.size for unit in self.bases])]).astype(np.int64)

    @property
    def working(self) -> Form:
        """The form of the columns, without their groups."""
        return self._form

    def to_table(self, support: Ints, scale: Floats) -> tuple[Ints, Floats]:
        """Columns of some units, as sorted positions (n,), and what leads from coordinates to their coefficients."""
        if not len(support):
            return np.zeros(0, np.int64), np.zeros((0, 0))
        from scipy.linalg import block_diag

        units = [self.bases[u] for u in support]
        at = np.concatenate([unit.members for unit in units])
        order = np.argsort(at)
        return at[order], block_diag(*(unit.to_table(scale[unit.members]) for unit in units))[order]

    def coefficients(self, support: Ints, x: Floats, scale: Floats) -> tuple[Ints, Floats]:
        """Sorted positions (n,) of the units' columns among those of `working`, and their coefficients (n, q)."""
        at, to_table = self.to_table(support, scale)
        return at, to_table @ x

    def narrow(self, k: int) -> Ints | None:
        """Some k units that are not singular together and keep the rules, narrow ones first; None if none were found.

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
        return np.sort([order[i] for i in taken]) if len(taken) == k else None

    def rank(self) -> int:
        """How many units are independent together, as far as `narrow` can tell."""
        k = 0
        while self.narrow(k + 1) is not None:
            k += 1
        return k

    @cached_property
    def matrix(self) -> Floats:
        """G (D, D) of the bases, formed at first use: identity blocks for units."""
        G: Floats = self.columns @ self.columns.T
        for a, b in pairwise(self.start):
            G[a:b, a:b] = np.eye(b - a)
        return G


class Basis(NamedTuple):
    """The columns of one unit on some rows.

    `members` (d,): positions among the columns of the form, of which `kept` (r,) are independent. `basis` (r, m): an
    orthonormal basis of these; `triangle` (r, r) and `others` (r, d - r): kept columns and the rest in terms of it;
    `free` (d - r,): which of the rest depend exactly.
    """

    members: Ints
    kept: Ints
    basis: Floats
    triangle: Floats
    others: Floats
    free: NDArray[np.bool_]

    def to_table(self, scale: Floats) -> Floats:
        """What leads from coordinates in the basis to coefficients in the units of the table (d, r).

        `scale` (d,) is what each column was divided by. Along directions in which nothing that is fitted changes,
        coefficients are the smallest.
        """
        from scipy.linalg import solve_triangular

        kept = np.isin(self.members, self.kept)
        rest = np.flatnonzero(~kept)[self.free]
        x = np.zeros((self.members.size, self.kept.size))
        x[kept] = solve_triangular(self.triangle, np.eye(self.kept.size))
        x /= scale[:, None]
        if rest.size:
            null = np.zeros((self.members.size, rest.size))
            null[kept] = -solve_triangular(self.triangle, self.others[:, self.free])
            null[rest, np.arange(rest.size)] = 1.0
            null /= scale[:, None]
            null /= np.linalg.norm(null, axis=0)
            x -= null @ np.linalg.lstsq(null, x, rcond=None)[0]
        return x


def basis_of(rows: Floats, members: Ints) -> Basis:
    """An orthonormal basis of the unit-norm columns (d, m) of one unit, built in their order."""
    basis, kept, independent = np.empty((0, rows.shape[1])), list[int](), np.zeros(len(rows))
    for j, row in enumerate(rows):
        rest = row
        for _ in range(2 if kept else 0):  # a second projection removes what rounding left of the first
            rest = rest - (basis @ rest) @ basis
        independent[j] = float(rest @ rest)
        if independent[j] > SINGULAR:
            basis = np.vstack([basis, rest / np.sqrt(independent[j])])
            kept.append(j)
    others = np.setdiff1d(np.arange(len(rows)), kept)
    triangle = np.triu(basis @ rows[kept].T)
    return Basis(members, members[kept], basis, triangle, basis @ rows[others].T, independent[others] <= _DEPENDENT)
