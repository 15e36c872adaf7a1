"""`SubsetRegressor`, a thin shell around `best_subset`, and what both regressors share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from pairflip.engines import Engine
from pairflip.estimators.shared import SubsetModel, as_column
from pairflip.inputs import refuse_date_target
from pairflip.least_squares import Floats
from pairflip.problem import SubsetProblem
from pairflip.search.best_subset import best_subset
from pairflip.search.schedule import Schedule
from pairflip.search.trace import Trace


class LinearSubset(RegressorMixin, SubsetModel):
    """Both regressors: numbers in, numbers out."""

    schedule: Schedule | Literal["auto", "paper"]
    chains: int | None
    method: Literal["auto", "descend", "anneal"] | None
    groups: Any
    one_per_group: bool
    min_distance: float | None
    hierarchy: Any
    positive: Any

    def _problem(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, least_rows: int) -> SubsetProblem:
        refuse_date_target(y)
        labels = getattr(y, "columns", None)
        X, y = self._checked(X, y, least_rows, y_numeric=True, multi_output=True)
        y = as_column(y)
        return SubsetProblem(
            X,
            y,
            names=getattr(self, "feature_names_in_", None),
            center="fold" if self.fit_intercept else None,
            always=self.always,
            sample_weight=sample_weight,
            ridge=self._penalty(),
            groups=self.groups,
            one_per_group=self.one_per_group,
            min_distance=self.min_distance,
            hierarchy=self.hierarchy,
            positive=self.positive,
            target_names=None if labels is None else list(labels),
        )

    def _penalty(self) -> Any:
        """The ridge in the units of X."""
        return self.ridge

    def _keep(self, problem: SubsetProblem, support: NDArray[np.int64]) -> Self:
        """Fit one support and keep it."""
        coef, self.intercept_ = self._kept(problem, support)
        self.coef_ = coef.T
        return self

    def predict(self, X: Any) -> Floats:
        r"""Predict the target of new rows, :math:`\hat y = X x + z`, for X of shape (n_samples, n_features)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        self._warn_outside(X, stacklevel=3)
        return np.asarray(X[:, self.support_] @ self.coef_.T[self.support_] + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        """Several targets may be given as the columns of y."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class SubsetRegressor(LinearSubset):
    r"""Linear regression on the best k columns, found by descents, kicks and simulated annealing.

    .. math:: \min_{x, z} \tfrac12 \|y - X x - z\|^2 \quad\text{with } x \text{ nonzero in } k \text{ places.}

    Use it when few columns should explain y and the best few matter: it finds better subsets than greedy
    selection (OMP) or a LASSO of the same size.

    Parameters
    ----------
    n_nonzero_coefs : int or None
        Number k of columns to choose; None means 10 % of them, at least one.
    schedule : {"auto", "paper"} or Schedule
        How walks are cooled down; anything but "auto" asks for simulated annealing alone.
    chains : int or None
        Independent walks of simulated annealing; None: as the effort says.
    effort : {"quick", "normal", "thorough"} or float
        How much to spend where chains do not agree: the names count work, so results are the same everywhere; a number
        is seconds by the clock.
    method : {"auto", "descend", "anneal"} or None
        See `anneal`; None: "anneal" if a schedule or a number of chains is given, else "auto" ("descend" with several
        targets).
    prove : bool
        Whether to prove that no other k columns fit better, where that takes at most half a second: `proof_`.
    fit_intercept : bool
        Whether to fit a constant in addition to the chosen columns.
    always : names or indices of columns
        Columns that are in the model whatever is chosen; they are not counted in k.
    ridge : float
        Penalty on the squares of the chosen coefficients, in the units of X.
    groups : dict of columns by name, table, or labels of the columns, or None
        Columns that are chosen as a whole, so that sizes count groups; see `SubsetProblem`, also for the next four.
    one_per_group : bool
        At most one column of each group instead.
    min_distance : float or None
        No two chosen columns closer than this.
    hierarchy : True, dict of columns by column, or None
        Products only together with their factors.
    positive : True, signs of all columns, dict of signs by column, or None
        Signs that coefficients must have.
    random_state : int, RandomState or None
        Seed; an int gives the same result every time, for any number of threads.
    n_jobs : int or None
        Threads; None is one, -1 all cores.
    engine : {"auto", "numba", "reference"}
        What walks the chains.

    Attributes
    ----------
    coef_ : (n_features,) or (n_targets, n_features)
        Coefficients, zero outside the support.
    intercept_ : float or (n_targets,)
    support_ : (k + forced,)
        Indices of the chosen and the forced columns, sorted: always whole numbers, as `supports` are in the whole
        package. ``get_support()`` gives the same columns as a boolean mask, as scikit-learn's selectors do, and
        ``get_support(indices=True)`` is `support_`.
    energy_ : float
        Half the residual sum of squares on the training rows (weighted).
    trace_ : Trace or None
        What the annealing did; None if there was nothing to choose.
    proof_ : Proof or None
        That no other k columns fit better; None where proving that would have taken too long.
    n_features_in_, feature_names_in_
    """

    def __init__(
        self,
        n_nonzero_coefs: int | None = None,
        *,
        schedule: Schedule | Literal["auto", "paper"] = "auto",
        chains: int | None = None,
        effort: Literal["quick", "normal", "thorough"] | float = "normal",
        method: Literal["auto", "descend", "anneal"] | None = None,
        prove: bool = True,
        fit_intercept: bool = True,
        always: Iterable[str | int] = (),
        ridge: float = 0.0,
        groups: Any = None,
        one_per_group: bool = False,
        min_distance: float | None = None,
        hierarchy: Any = None,
        positive: Any = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        engine: str | Engine = "auto",
    ) -> None:
        self.n_nonzero_coefs = n_nonzero_coefs
        self.schedule = schedule
        self.chains = chains
        self.effort = effort
        self.method = method
        self.prove = prove
        self.fit_intercept = fit_intercept
        self.always = always
        self.ridge = ridge
        self.groups = groups
        self.one_per_group = one_per_group
        self.min_distance = min_distance
        self.hierarchy = hierarchy
        self.positive = positive
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.engine = engine

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> SubsetRegressor:
        """Find the best columns of X for y and fit them.

        Parameters
        ----------
        X : (n_samples, n_features)
            Table of candidates: an array, or a data frame of pandas or polars.
        y : (n_samples,) or (n_samples, n_targets)
            Target; several targets are predicted from one set of columns, each scaled to unit variance.
        sample_weight : (n_samples,), optional
            Weight of each squared residual; a row of weight zero counts as absent.

        Returns
        -------
        self
        """
        problem = self._problem(X, y, sample_weight, least_rows=2)
        size = self._size(problem, self.n_nonzero_coefs)
        self.trace_: Trace | None = None
        if size == problem.form.n_columns:
            support = problem.candidates
        else:
            self.trace_ = best_subset(
                problem, size, schedule=self.schedule, chains=self.chains, seed=self._seed(), engine=self.engine,
                n_jobs=self.n_jobs, method=self.method, effort=self.effort, prove=self.prove,
            )  # fmt: skip
            support = self.trace_.best_support
        self.proof_ = None if self.trace_ is None else self.trace_.proof
        return self._keep(problem, support)
