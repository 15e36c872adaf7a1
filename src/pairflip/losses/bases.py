"""An orthonormal basis of the columns of one unit, and the way back from it to coefficients of the table."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import SINGULAR, Floats

Ints = NDArray[np.int64]
_DEPENDENT = 1e-24
"""A column of which less than this (of its squared norm) is independent of its unit may take any coefficient."""


class Unit(NamedTuple):
    """The columns of one unit on some rows.

    `members` (d,): positions among the columns of the form, of which `kept` (r,) are independent. `basis` (r, m) and
    `tail` (r, d): an orthonormal basis of these, on the rows and on the rows of the ridge; `triangle` (r, r) and
    `others` (r, d - r): kept columns and the rest in terms of it; `free` (d - r,): which of the rest depend exactly.
    """

    members: Ints
    kept: Ints
    basis: Floats
    tail: Floats
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


def reduced(columns: Floats, penalty: Floats, members: Ints) -> Unit:
    """An orthonormal basis of the columns of one unit, built in their order; a dependent column adds nothing.

    Parameters
    ----------
    columns : (d, m)
        Columns that have unit norm together with their ridge terms.
    penalty : (d,)
        These terms.
    members : (d,)
        Which columns they are.
    """
    (d, m), ridge = columns.shape, bool(penalty.any())
    rows = np.hstack([columns, np.diag(np.sqrt(penalty))]) if ridge else columns
    basis, kept, left = np.empty((0, rows.shape[1])), list[int](), np.zeros(d)
    for j, row in enumerate(rows):
        rest = row
        for _ in range(2 if kept else 0):  # a second projection removes what rounding left of the first
            rest = rest - (basis @ rest) @ basis
        left[j] = float(rest @ rest)
        if left[j] > SINGULAR:
            basis = np.vstack([basis, rest / np.sqrt(left[j])])
            kept.append(j)
    triangle = np.triu(basis @ rows[kept].T)
    rest = np.setdiff1d(np.arange(d), kept)
    return Unit(
        members, members[kept], basis[:, :m], basis[:, m:], triangle, basis @ rows[rest].T, left[rest] <= _DEPENDENT
    )
