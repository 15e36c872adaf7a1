"""scikit-learn estimators: a thin shell around `anneal`."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from pairflip.annealing import Trace, anneal
from pairflip.engines import Engine, RankTooSmall
from pairflip.inputs import as_table
from pairflip.least_squares import Floats
from pairflip.problem import SubsetProblem
from pairflip.schedule import Schedule


class AnnealedSubset(SelectorMixin, RegressorMixin, BaseEstimator):
    r"""Linear regression on the best k columns, found by simulated annealing.

    .. math:: \min_{x, z} \tfrac12 \|y - X x - z\|^2 \quad\text{with } x \text{ nonzero in } k \text{ places.}

    Use it when few columns should explain y and the best few matter: it finds better subsets than greedy
    selection (OMP) or a LASSO of the same size.

    Parameters
    ----------
    n_nonzero_coefs : int or None
        Number k of columns to choose; None means 10 % of them, at least one.
    schedule : {"auto", "paper"} or Schedule
        How the walk is cooled down.
    chains : int or None
        Independent walks; None: as many as take about a second on one core.
    fit_intercept : bool
        Whether to fit a constant beside the chosen columns.
    random_state : int, RandomState or None
        Seed; an int gives the same result every time, on every engine and any number of threads.
    n_jobs : int or None
        Threads; None is one, -1 all cores.
    engine : {"auto", "numba", "reference"}
        What walks the chains.

    Attributes
    ----------
    coef_ : (n_features,)
        Coefficients, zero outside the support.
    intercept_ : float
    support_ : (k,)
        Indices of the chosen columns.
    energy_ : float
        Half the residual sum of squares on the training rows (weighted).
    trace_ : Trace or None
        What the annealing did; None if there was nothing to choose.
    n_features_in_, feature_names_in_
    """

    def __init__(
        self,
        n_nonzero_coefs: int | None = None,
        *,
        schedule: Schedule | Literal["auto", "paper"] = "auto",
        chains: int | None = None,
        fit_intercept: bool = True,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        engine: str | Engine = "auto",
    ) -> None:
        self.n_nonzero_coefs = n_nonzero_coefs
        self.schedule = schedule
        self.chains = chains
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.engine = engine

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> AnnealedSubset:
        """Find the best columns of X (n_samples, n_features) for y (n_samples,) and fit them."""
        try:
            X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        except ValueError as error:
            if "could not convert" in str(error):
                as_table(X)  # says which column holds text
            raise
        problem = SubsetProblem(
            X,
            y,
            names=getattr(self, "feature_names_in_", None),
            center="fold" if self.fit_intercept else None,
            sample_weight=sample_weight,
        )
        size = self._size(problem)
        self.trace_: Trace | None = None
        if size == problem.candidates.size:
            support = problem.candidates
        else:
            self.trace_ = anneal(
                problem, size, self.schedule, self.chains, self._seed(), self.engine, n_jobs=self.n_jobs
            )
            support = self.trace_.best_support
        best = problem.fit(support)
        self.support_ = best.support
        self.coef_ = np.zeros(problem.n_columns)
        self.coef_[best.support] = best.coef
        self.intercept_ = best.intercept
        self.energy_ = best.energy
        return self

    def predict(self, X: Any) -> Floats:
        """Predicted target (n_samples,) of the rows of X."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(X[:, self.support_] @ self.coef_[self.support_] + self.intercept_)

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.support_] = True
        return mask

    def _seed(self) -> int:
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _size(self, problem: SubsetProblem) -> int:
        """k, checked against the number of columns that vary."""
        n = int(problem.candidates.size)
        k = self.n_nonzero_coefs
        if k is None:
            rows = int(np.count_nonzero(problem.sample_weight)) - int(self.fit_intercept)
            return max(1, min(problem.n_columns // 10, n, rows))
        if isinstance(k, bool) or not isinstance(k, Integral):
            raise TypeError(f"n_nonzero_coefs is {k!r}; expected a whole number of columns from 1 to {n}.")
        if not 1 <= k <= n:
            raise ValueError(f"n_nonzero_coefs is {k}, but X has {n} columns that vary; expected 1 to {n}.")
        if k == n and not np.isfinite(problem.energy(problem.candidates)):
            raise RankTooSmall(n, int(np.linalg.matrix_rank(problem.gram.columns)))
        return int(k)
