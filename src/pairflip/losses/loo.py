"""The fixed-support leave-one-out error as an energy: the paper's second objective, which must not choose a size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pairflip.gram import Gram
from pairflip.least_squares import SATURATED, Floats, qr_loo_energy
from pairflip.text import numbered


class LooGram(Gram):
    r"""The same problem with the fixed-support leave-one-out error (the paper's LOOE2, times M) as its energy:

    .. math:: E_\mathrm{loo}(S) = \tfrac12 \sum_i \left(\frac{e_i}{1 - h_{ii}}\right)^2 ,

    the sum of squared errors at each row of the fit of the *same* support on all other rows. e are the residuals on all
    rows and h is the hat matrix of S and the forced columns. The identity is exact, also with weights (rows times
    :math:`\sqrt{w}`; an absent row has e = h = 0) and with ridge (:math:`h = X_S (G_{SS} + \lambda)^{-1} X_S^T`).

    Attributes
    ----------
    leverage : (M,)
        Diagonal of the hat matrix of the forced columns.
    """

    objective = "loo"

    def __init__(self, base: Gram, forced_basis: Floats) -> None:
        basis = forced_basis
        self.leverage: Floats = np.einsum("mf,mf->m", basis, basis)
        row = int(np.argmax(self.leverage))
        if self.leverage[row] >= 1.0 - SATURATED:
            raise ValueError(
                f"{numbered('row', row)} (the first is row 1) is fitted exactly by what is always in the model, so it "
                "has no leave-one-out error; give it weight 0, or leave out the column that only this row has."
            )
        self.base, self.candidates = base, base.candidates
        self.target, self.penalty = base.target, base.penalty
        self.b, self.yy, self.diagonal, self.dense = base.b, base.yy, base.diagonal, base.dense

    @property
    def columns(self) -> Floats:  # type: ignore[override]
        """Columns (N, M) of the underlying problem."""
        return self.base.columns

    def columns_of(self, which: NDArray[np.int64]) -> Floats:
        """Some columns of the underlying problem."""
        return self.base.columns_of(which)

    def row(self, j: int) -> Floats:
        """Row j of G of the underlying problem."""
        return self.base.row(j)

    @property
    def matrix(self) -> Floats:
        """G (N, N) of the underlying problem."""
        return self.base.matrix

    def energy(self, support: NDArray[np.int64]) -> float:
        """E_loo(S) by QR on the columns, infinite when S is singular or makes some row's leverage 1."""
        return qr_loo_energy(self.columns_of(support).T, self.target, self.penalty[support], self.leverage)
