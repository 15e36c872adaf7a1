"""The problem: a table of candidates, a target, and what is always in the model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairflip.gram import Gram, HeldOutGram, LooGram
from pairflip.inputs import as_table, as_target, as_weights, find_columns
from pairflip.least_squares import Floats, qr_solve
from pairflip.projection import Projected, check_range, is_nothing, project

Center = Literal["fold", "global"] | None
MEMORY_BUDGET = 256 * 2**20
TRUSTED = 0.05
"""A fold is had by subtraction if this fraction of every column and of the target is left: one digit lost at most."""


@dataclass(frozen=True)
class Fit:
    """Least squares on one support, in the units of the table, computed from X by QR."""

    support: NDArray[np.int64]
    coef: Floats
    intercept: float
    always_coef: Floats
    energy: float


class SubsetProblem:
    r"""Choose k columns of X that predict y best: :math:`\min_{|S|=k} E(S)`,

    .. math:: E(S) = \tfrac12 \min_{x, z} \|\sqrt w (y - X_S x - Z z)\|^2 + \tfrac{\lambda}{2} \|x\|^2 .

    Forced columns Z (the intercept is one of them) are projected out of X and y (Frisch-Waugh-Lovell),
    what remains is scaled to unit norm, and columns of which nothing remains are no candidates.

    Parameters
    ----------
    X : (M, N) array or data frame
        Table of candidates.
    y : (M,)
        Target.
    names : sequence of str, optional
        Column names; taken from a data frame, else ``x0, x1, ...``.
    center : {"fold", "global", None}
        Intercept inside every fold (default), means removed once from all rows (what the paper did), or
        no intercept.
    always : sequence of names or indices
        Columns that are in every model. They are not counted in k.
    sample_weight : (M,), optional
        Row weights w >= 0; a row of weight zero is an absent row.
    ridge : float
        Penalty lambda on the chosen coefficients, in the units of the table.
    memory_budget : int
        Bytes the N x N matrix of inner products may take; beyond it engines work from the columns.
    """

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        *,
        names: Sequence[str] | None = None,
        center: Center = "fold",
        always: Iterable[str | int] = (),
        sample_weight: ArrayLike | None = None,
        ridge: float = 0.0,
        memory_budget: int = MEMORY_BUDGET,
    ) -> None:
        if center not in ("fold", "global", None):
            raise ValueError(f"center is {center!r}; expected 'fold', 'global' or None.")
        if not (np.isfinite(ridge) and ridge >= 0):
            raise ValueError(f"ridge is {ridge}; expected a finite number >= 0.")
        table, self.names = as_table(X, names)
        self.X = table
        self.y = as_target(y, table.shape[0])
        self.sample_weight = as_weights(sample_weight, table.shape[0])
        self.center = center
        self.ridge = float(ridge)
        self.memory_budget = int(memory_budget)
        self.always = find_columns(always, self.names)
        self._project()

    @property
    def n_rows(self) -> int:
        """M, the number of rows."""
        return int(self.X.shape[0])

    @property
    def rows_present(self) -> int:
        """Number of rows with a weight above zero."""
        return int(np.count_nonzero(self.sample_weight))

    @property
    def n_columns(self) -> int:
        """Columns of X, candidates or not."""
        return int(self.X.shape[1])

    def __repr__(self) -> str:
        return (
            f"SubsetProblem({self.n_rows} rows, {self.candidates.size} candidate columns of {self.n_columns}, "
            f"center={self.center!r}, always={[self.names[j] for j in self.always]}, ridge={self.ridge:g})"
        )

    def _project(self) -> None:
        """Fill `gram`, `candidates`, `scale`, and the forced columns."""
        check_range(self.X, self.y, self.names)
        means = (np.zeros(self.n_columns), 0.0) if self.center is None else None
        whole = self._projected(np.arange(self.n_rows), means)
        if is_nothing(whole.target, self.y, self.sample_weight):
            raise ValueError(
                "y is constant (or explained by what is always in the model), so there is nothing to predict; "
                "check that the target column is the right one."
            )
        if not whole.candidates.size:
            raise ValueError(
                f"none of the {self.n_columns} columns of X varies (beside what is always in the model); expected "
                "at least one column that is not constant."
            )
        self._means, self._y_mean, self._powers = whole.means, whole.target_mean, whole.powers
        self.forced, self.forced_basis = whole.forced, whole.basis
        self.candidates, self.scale = whole.candidates, whole.scale
        self.gram = self._gram(whole)

    def _projected(self, rows: NDArray[np.int64], means: tuple[Floats, float] | None) -> Projected:
        """Some rows as a table of their own, centred on `means`, or on their own means."""
        everything = rows.size == self.n_rows
        return project(
            self.X if everything else self.X[rows],
            self.y if everything else self.y[rows],
            self.sample_weight[rows],
            always=self.always,
            ridge=self.ridge,
            intercept=self.center == "fold",
            means=means,
        )

    def _gram(self, of: Projected) -> Gram:
        dense = 8 * of.candidates.size**2 <= self.memory_budget
        return Gram(of.columns, of.target, of.penalty, of.candidates, dense=dense)

    def held_out(self, rows: ArrayLike) -> Gram:
        """The problem without some rows: a low-rank change of the Gram matrix where that is accurate.

        Where the held-out rows hold most of a column or of the target, or alone make a column vary, subtraction would
        leave rounding errors: then the remaining rows are a problem of their own, with candidates of their own.
        """
        given = np.asarray(rows)
        index = np.flatnonzero(given) if given.dtype == bool else np.unique(given.astype(np.int64))
        if index.size == 0 or index[0] < 0 or index[-1] >= self.n_rows:
            named = f"from {index[0]} to {index[-1]}" if index.size else "none"
            raise ValueError(f"held-out rows: {named}; expected at least one row number from 0 to {self.n_rows - 1}.")
        if np.count_nonzero(np.delete(self.sample_weight, index)) < 2:
            raise ValueError(f"holding out {index.size} of {self.n_rows} rows leaves fewer than two; hold out less.")
        fold = HeldOutGram(self.gram, self.forced, self.forced_basis, index)
        return fold if fold.trust >= TRUSTED else self._remaining(index)

    def _remaining(self, held_out: NDArray[np.int64]) -> Gram:
        """The rows that are left as a problem of their own; a target that does not vary there is zero."""
        rest = np.delete(np.arange(self.n_rows), held_out)
        means = None if self.center == "fold" else (self._means, self._y_mean)
        inside = self._projected(rest, means)
        if is_nothing(inside.target, self.y[rest], self.sample_weight[rest]):
            inside = replace(inside, target=np.zeros(rest.size))
        return self._gram(inside)

    @cached_property
    def loo_gram(self) -> LooGram:
        """The problem with the fixed-support leave-one-out error as its energy, which falls with k."""
        return LooGram(self.gram, self.forced_basis)

    def slots(self, support: ArrayLike) -> NDArray[np.int64]:
        """Positions among the candidates of the columns of `support` (any order, no repeats)."""
        given = np.asarray(support, dtype=np.int64).ravel()
        if np.unique(given).size != given.size:
            raise ValueError(f"support {given.tolist()} names a column twice; expected distinct column indices.")
        at = np.searchsorted(self.candidates, given)
        found = (at < self.candidates.size) & (self.candidates[np.minimum(at, self.candidates.size - 1)] == given)
        if not found.all():
            column = int(given[~found][0])
            why = "is out of range"
            if 0 <= column < self.n_columns:
                why = "is always in the model" if column in self.always else "is constant"
            raise ValueError(f"column {column} of the support {why}; expected indices of candidate columns.")
        return at

    def fit(self, support: ArrayLike) -> Fit:
        """Coefficients and energy of one support, by QR on the columns of X."""
        chosen = np.sort(np.asarray(support, dtype=np.int64).ravel())
        at = self.slots(chosen)
        x, energy = qr_solve(self.gram.columns[at].T, self.gram.target, self.gram.penalty[at])
        coef = x / self.scale[at]
        rest = self.y - self._y_mean - (self.X[:, chosen] - self._means[chosen]) @ coef
        norms = np.linalg.norm(self.forced, axis=0)
        norms[norms == 0] = 1.0
        z = np.linalg.lstsq(self.forced / norms, np.sqrt(self.sample_weight) * rest, rcond=None)[0] / norms
        intercept, always_coef = (float(z[0]), z[1:]) if self.center == "fold" else (0.0, z)
        always_coef = always_coef / self._powers[self.always]
        intercept += self._y_mean - float(self._means[chosen] @ coef + self._means[self.always] @ always_coef)
        return Fit(chosen, coef, intercept, always_coef, energy)

    def energy(self, support: ArrayLike) -> float:
        r""":math:`E(S)`, recomputed from X; infinite for a singular support."""
        return self.gram.energy(self.slots(support))

    def coef(self, support: ArrayLike) -> Floats:
        """Coefficients of the columns of the sorted `support`, in the units of the table."""
        return self.fit(support).coef
