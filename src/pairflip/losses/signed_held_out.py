"""Held-out rows where coefficients have signs: each fold decides on its training rows which columns carry its fit.

Leaving rows out may change which coefficients are zero, so that the identities of ordinary least squares hold for the
columns that carry the fit *of the fold* only. These are found on the training rows, from the columns; the fold's fit
is then the ordinary one of these columns, and `HeldOutErrors` gives its errors and coefficients.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pairflip.distinct import distinct_supports
from pairflip.least_squares import Floats
from pairflip.losses.base import FoldCoefficients
from pairflip.losses.held_out import HeldOutErrors
from pairflip.losses.sign_fit import carrying_columns
from pairflip.losses.signed import SignedForm, with_signs, without_signs

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem
    from pairflip.selection.folds import Folds

Supports = NDArray[np.int64]


class HeldOutSigned:
    """Residuals of held-out rows under supports fitted without them; `yy` (F,) is y'y on the rows of each fold."""

    def __init__(self, problem: SubsetProblem, folds: Folds) -> None:
        self._problem, self._folds = problem, folds
        self._ordinary = without_signs(problem)
        self._errors = HeldOutErrors(self._ordinary, folds)
        self.yy = self._errors.yy

    def residuals(self, supports: Supports) -> Floats:
        """Observed minus predicted (C, P) when fold f is predicted by supports[f, c] of (F, C, k)."""
        return self.judged(supports)[0]

    def judged(self, supports: Supports) -> tuple[Floats, Floats]:
        """The same, and the energies (F, C) of the supports on the training rows of their folds.

        Parameters
        ----------
        supports : (F, C, k)
            Columns chosen by each chain of each fold.
        """
        folds, chains, _ = supports.shape
        nothing = self.without_columns()
        residuals, energies = np.tile(nothing, (chains, 1)), np.repeat(0.5 * self.yy[:, None], chains, axis=1)
        for where, carrying in self._by_number(supports):
            # Cells with another number of carrying columns are given some support, and what comes of it is dropped.
            every = np.tile(carrying[0], (folds, chains, 1))
            every[where] = carrying
            left, energy = self._errors.judged(every)
            energies[where] = energy[where]
            fold, chain = where[0], where[1]
            own = np.zeros((chains, folds), dtype=bool)
            own[chain, fold] = True
            rows = own[:, self._folds.fold]
            residuals[rows] = left[rows]
        return residuals, energies

    def without_columns(self) -> Floats:
        """Observed minus predicted (P,) when no columns are chosen."""
        return self._errors.without_columns()

    def fits(self, supports: Supports) -> FoldCoefficients:
        """What the folds predict with: coefficients of supports (F, k), each on the training rows of its fold.

        Parameters
        ----------
        supports : (F, k)
            Columns that each fold chose.
        """
        nothing = np.empty((len(supports), 0), dtype=np.int64)
        found = self._errors.fits(nothing)
        coefs, always, intercepts = np.zeros(supports.shape), found.always_coefs.copy(), found.intercepts.copy()
        signs = self._problem.limits.signs
        assert signs is not None
        for (fold, _), carrying in self._by_number(supports[:, None, :]):
            own = HeldOutErrors(self._ordinary, self._folds.some(fold)).fits(carrying)
            places = np.argmax(supports[fold][:, None, :] == carrying[:, :, None], axis=2)
            coefs[fold[:, None], places] = with_signs(own.coefs, signs[carrying])
            always[fold], intercepts[fold] = own.always_coefs, own.intercepts
        return FoldCoefficients(coefs, always, intercepts)

    def row_errors(self, residuals: Floats) -> Floats:
        """Squared errors."""
        return np.asarray(residuals**2)

    def _by_number(self, supports: Supports) -> Iterator[tuple[tuple[Supports, Supports], Supports]]:
        """For each number p > 0 of carrying columns: which (fold, chain) have so many, and these columns (n, p)."""
        if not supports.shape[2]:
            return
        carrying = np.stack([self._carrying(fold, own) for fold, own in enumerate(supports)])
        numbers = carrying.sum(axis=2)
        for p in np.unique(numbers[numbers > 0]):
            where = np.nonzero(numbers == p)
            yield (where[0], where[1]), supports[where][carrying[where]].reshape(-1, int(p))

    def _carrying(self, fold: int, supports: Supports) -> NDArray[np.bool_]:
        """Which columns (C, k) carry the fits of some supports on the training rows of a fold."""
        form = self._problem.held_out(self._folds.left_out[fold])
        assert isinstance(form, SignedForm)
        distinct, _, which, _ = distinct_supports(supports)
        found = np.zeros(distinct.shape, dtype=bool)
        for u, support in enumerate(distinct):
            there = np.isin(support, form.candidates)  # a column that is constant there carries nothing
            at = form.positions(support[there])
            columns = np.vstack([form.columns_of(at).T, np.diag(np.sqrt(form.penalty[at]))])
            target = np.concatenate([form.target, np.zeros(at.size)])
            found[u, there] = carrying_columns(columns, target, form.signs[at])
        return found[which]
