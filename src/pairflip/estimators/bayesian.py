"""`BayesianSubsetRegressor`: regression averaged over models, a thin shell around `posterior`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from pairflip.estimators.shared import SubsetModel
from pairflip.inputs import refuse_date_target
from pairflip.search.posterior import posterior


class BayesianSubsetRegressor(RegressorMixin, SubsetModel):
    r"""Linear regression averaged over all sets of columns, each weighed by its posterior probability.

    Use it when the question is how probable it is that a column belongs in the model, or when no single set of columns
    is much better than all others and predictions should not depend on which one is picked.

    Parameters
    ----------
    g : float, "unit", "bric" or "hyper"
        Of Zellner's g-prior on the coefficients; "unit" is the number of rows, "hyper" leaves g to the data.
    prior : "beta-binomial", "uniform", float or (a, b)
        Of the models, see `posterior`.
    sizes : iterable of int or None
        Numbers of columns that are possible, without gaps; None: all.
    method : {"auto", "enumerate", "sample"}
        Visit all models, or walk among them; "auto": all, if there are at most a million.
    sweeps, chains : int
        How long walks are, and how many.
    fit_intercept : bool
        Whether there is a constant in every model.
    always : names or indices of columns
        Columns that are in every model.
    preprocess : scikit-learn transformer or None
        Makes the candidates from X, which may then have missing values; fitted on X alone. `always`, rules, ``coef_``
        and ``support_`` refer to the columns that it makes; `predict` applies it.
    random_state : int, RandomState or None
        Seed of the walks.
    n_jobs : int or None
        Threads; None is one, -1 all cores.

    Attributes
    ----------
    coef_, intercept_ : (n_features,), float
        Averages over models.
    coef_sd_ : (n_features,)
        Posterior standard deviations of the coefficients.
    inclusion_probability_ : (n_features,)
        Probability that a column is in the model.
    support_ : (k + forced,)
        The median probability model: columns with a probability of at least one half, and the forced ones;
        `get_support` and `transform` use it.
    posterior_ : Posterior
        All that is known of the models.
    preprocess_ : transformer or None
        `preprocess`, fitted on all rows.
    n_features_in_, feature_names_in_
    """

    ridge = 0.0

    def __init__(
        self,
        g: float | Literal["unit", "bric", "hyper"] = "unit",
        *,
        prior: str | float | tuple[float, float] = "beta-binomial",
        sizes: Iterable[int] | None = None,
        method: Literal["auto", "enumerate", "sample"] = "auto",
        sweeps: int = 2000,
        chains: int = 4,
        fit_intercept: bool = True,
        always: Iterable[str | int] = (),
        preprocess: Any = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.g, self.prior, self.sizes, self.method, self.sweeps = g, prior, sizes, method, sweeps
        self.chains, self.fit_intercept, self.always = chains, fit_intercept, always
        self.preprocess, self.random_state, self.n_jobs = preprocess, random_state, n_jobs

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BayesianSubsetRegressor:
        """Weigh the models of the columns of X for y.

        Parameters
        ----------
        X : (n_samples, n_features)
            Table of candidates: an array, a sparse one of SciPy, or a data frame of pandas or polars.
        y : (n_samples,)
            Target.
        sample_weight : (n_samples,), optional
            Weight of each squared residual; a row of weight zero counts as absent.

        Returns
        -------
        self
        """
        refuse_date_target(y)
        X, y = self._checked(X, y, 2, y_numeric=True)
        problem = self._as_problem(X, y, sample_weight)
        self.posterior_ = averaged = posterior(
            problem, self.g, self.prior, self.sizes, method=self.method, sweeps=self.sweeps, chains=self.chains,
            seed=self._seed(), n_jobs=self.n_jobs,
        )  # fmt: skip
        self.coef_, self.intercept_, self.coef_sd_ = averaged.coef_mean, averaged.intercept, averaged.coef_sd
        self.inclusion_probability_ = averaged.inclusion_probability
        self.support_ = np.sort(np.concatenate([averaged.median_probability_model, problem.always]))
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict the target of new rows, averaged over models.

        Parameters
        ----------
        X : (n_samples, n_features)
            New rows.
        return_std : bool
            Whether to give the standard deviation of a new observation, too.
        """
        X = self._new_rows(X)
        return self.posterior_.predict(X, return_std)
