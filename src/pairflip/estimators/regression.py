"""Regressors: thin shells around `best_subset`, `select_size` and `posterior`."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from os import PathLike
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import column_or_1d

from pairflip.engines import Engine
from pairflip.estimators.shared import SizeChooser, SizeGiven, SubsetModel
from pairflip.inputs import as_frame, refuse_date_target
from pairflip.least_squares import Floats
from pairflip.problem import SubsetProblem
from pairflip.search.posterior import posterior
from pairflip.search.schedule import Schedule


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
    _of_search: ClassVar[tuple[str, ...]] = ("schedule", "chains", "method", "prove")

    def _problem(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, least_rows: int) -> SubsetProblem:
        y = as_frame(y, "y")
        refuse_date_target(y)
        labels = getattr(y, "columns", None)
        X, target = self._checked(X, y, least_rows, y_numeric=True, multi_output=True)
        return self._as_problem(
            X, column_or_1d(target, warn=True) if target.ndim == 2 and target.shape[1] == 1 else target, sample_weight,
            ridge=0.0 if isinstance(self, SizeChooser) and not isinstance(self.ridge, Real) else self.ridge,
            groups=self.groups, one_per_group=self.one_per_group, min_distance=self.min_distance,
            hierarchy=self.hierarchy, positive=self.positive, target_names=None if labels is None else list(labels),
        )  # fmt: skip

    def _keep(self, problem: SubsetProblem, support: NDArray[np.int64]) -> Self:
        """Fit one support and keep it."""
        coef, self.intercept_ = self._fit_support(problem, support)
        self.coef_ = coef.T
        return self

    def predict(self, X: Any) -> Floats:
        r"""Predict the target of new rows, :math:`\hat y = X x + z`, for X of shape (n_samples, n_features)."""
        return np.asarray(self._used_columns(X) @ self.coef_.T[self.support_] + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        """Several targets may be given as the columns of y."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class SubsetRegressor(LinearSubset, SizeGiven):
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
    preprocess : scikit-learn transformer or None
        Makes the candidates from X, which may then have missing values; fitted on X alone. `always`, rules, ``coef_``
        and ``support_`` refer to the columns that it makes; `predict` applies it.
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
    preprocess_ : transformer or None
        `preprocess`, fitted on all rows.
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
        preprocess: Any = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        engine: str | Engine = "auto",
    ) -> None:
        self.n_nonzero_coefs, self.schedule, self.chains = n_nonzero_coefs, schedule, chains
        self.effort, self.method, self.prove, self.fit_intercept = effort, method, prove, fit_intercept
        self.always, self.ridge, self.groups, self.one_per_group = always, ridge, groups, one_per_group
        self.min_distance, self.hierarchy, self.positive = min_distance, hierarchy, positive
        self.preprocess, self.random_state, self.n_jobs, self.engine = preprocess, random_state, n_jobs, engine

    def _keep(self, problem: SubsetProblem, support: NDArray[np.int64]) -> Self:
        self.proof_ = None if self.trace_ is None else self.trace_.proof
        return super()._keep(problem, support)


class SubsetRegressorCV(LinearSubset, SizeChooser):
    r"""Linear regression on the best columns, their number chosen by cross validation.

    Every fold of every size gets its own search, so the held-out error

    .. math:: \epsilon(k) = \frac{1}{2M} \sum_\mu \left(y_\mu - \hat y_\mu^{\setminus\mu}(k)\right)^2

    does not depend on the rows it is measured on. Use it when you do not know how many columns to keep.

    Parameters
    ----------
    sizes : iterable of int or None
        Numbers of columns to try; None: 1 to 10, or as many as the table allows.
    cv : int, str, splitter, iterable of splits or None
        None means ``"auto"``: ten folds, repeated 5 to 100 times (with groups, groups stay together).
        ``"loo"`` leaves one row (or group) out, as in the paper; ``"blocks:5"`` leaves out blocks of neighbouring rows,
        for tables in the order of time.
    choose : {"auto", "best", "one_se", "bic", "ebic"}
        ``"auto"``: the size that `print(model.curve_)` recommends, which is 0 (the mean) when nothing predicts clearly
        better than that. Or the size with the lowest error, the smallest one within one standard error of it, or the
        one with the lowest BIC or EBIC of the fits on all rows, each whether columns predict or not.
    effort : {"quick", "normal", "thorough"}
        How long folds and final fits are searched.
    method : {"auto", "descend", "anneal"} or None
        None: "anneal" if a schedule or a number of chains is given, else "auto"; see `Selection`.
    schedule : {"auto", "paper"} or Schedule
        How walks of simulated annealing are cooled down.
    chains : int or None
        Walks of simulated annealing for each size and fold.
    polish : bool
        Whether final fits are improved by what the folds found and by best flips.
    prove : bool
        Whether final fits are proved to be the best, and folds solved exactly, where that is cheap; see `Selection`.
    stability : int
        Pairs of random half-samples in which columns are selected again (0: none; the command line makes 50): how
        stable the choice is, in ``curve_.stability``. It changes neither the choice nor predictions.
    predict_with : {"subset", "average"}
        ``"average"``: `predict` uses the weighted average of the folds' models (``curve_.average``), better
        where many columns matter a little; ``coef_`` and ``support_`` are those of the chosen columns all the same.
    fit_intercept : bool
        Whether to fit a constant in addition to the chosen columns (inside every fold).
    always : names or indices of columns
        Columns that are in the model whatever is chosen; they are not counted in the size.
    ridge : float, "auto" or list of float
        A number: penalty on the squares of the chosen coefficients, in the units of X. ``"auto"``: shrinkage chosen
        together with the size, from a short grid in units of the scaled columns; or from the values of a list. Each is
        searched by itself, so that this takes as many times longer.
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
    preprocess : scikit-learn transformer or None
        Makes the candidates from X, which may then have missing values; fitted on the training rows of every fold, for
        the final fit on all rows, and never on y. `always`, rules, ``coef_`` and ``support_`` refer to the columns that
        it makes; `predict` applies it.
    random_state : int, RandomState or None
        Seed of folds and searches; an int gives the same result every time, for any number of workers.
    n_jobs : int or None
        Threads; None is one (or what ``joblib.parallel_config`` says), -1 all cores.
    engine : {"auto", "numba", "cuda", "reference"}
        What walks the chains.
    journal : path or None
        Folder in which finished work is kept; fitting the same again resumes.
    verbose : int or None
        None: show progress of what takes longer than 5 s, on a terminal or in a notebook only; 0: never; 1: show
        progress on standard error.

    Attributes
    ----------
    n_nonzero_coefs_ : int
        The number of columns chosen.
    coef_ : (n_features,) or (n_targets, n_features)
    intercept_ : float or (n_targets,)
    support_ : (``n_nonzero_coefs_`` + forced,)
        Indices of the chosen and the forced columns, sorted; ``get_support()`` gives the same as a boolean mask.
    ridge_ : float
        The relative ridge term that was chosen with the size; 0 where none was to be chosen.
    energy_ : float
        Half the residual sum of squares on the training rows (weighted).
    proof_ : Proof or None
        That no other columns of that number fit better on all rows; None where proving that would have taken too long.
    curve_ : SizeCurve
        Errors, selection counts, final fits of all sizes, and half-samples if asked for.
    cv_results_ : dict of arrays, one entry per size
        The curve in the words of scikit-learn's searches, ready for ``pandas.DataFrame(model.cv_results_)``.

        ``params``, ``param_n_nonzero_coefs``
            The sizes; 0, the mean of the other rows, is always among them.
        ``mean_test_score``
            Negative mean squared error of all held-out predictions, ``-2 * curve_.cv_error``.
        ``std_test_score``
            Standard deviation over the folds (not over the rows) of the mean squared error of a fold, divided by the
            number of folds F and not by F - 1, as scikit-learn does; with ``cv="loo"`` a fold is a row.
        ``se_test_score``
            Standard error of ``mean_test_score`` from the spread between independent units: rows, or groups of rows.
        ``rank_test_score``
            1 for the best score; equal scores have the same rank.

        The other entries are those of ``curve_.to_dict()``, such as ``unchanged`` and ``agreement``.
    preprocess_ : transformer or None
        `preprocess`, fitted on all rows.
    n_features_in_, feature_names_in_
    """

    _of_search = (*LinearSubset._of_search, "polish")

    def __init__(
        self,
        sizes: Iterable[int] | None = None,
        *,
        cv: Any = None,
        choose: Literal["auto", "best", "one_se", "bic", "ebic"] = "auto",
        schedule: Schedule | Literal["auto", "paper"] = "auto",
        chains: int | None = None,
        effort: Literal["quick", "normal", "thorough"] = "normal",
        method: Literal["auto", "descend", "anneal"] | None = None,
        polish: bool = True,
        prove: bool = True,
        stability: int = 0,
        predict_with: Literal["subset", "average"] = "subset",
        fit_intercept: bool = True,
        always: Iterable[str | int] = (),
        ridge: float | Literal["auto"] | Iterable[float] = 0.0,
        groups: Any = None,
        one_per_group: bool = False,
        min_distance: float | None = None,
        hierarchy: Any = None,
        positive: Any = None,
        preprocess: Any = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        engine: str | Engine = "auto",
        journal: str | PathLike[str] | None = None,
        verbose: int | None = None,
    ) -> None:
        self.sizes, self.cv, self.choose, self.schedule, self.chains = sizes, cv, choose, schedule, chains
        self.effort, self.method, self.polish, self.prove = effort, method, polish, prove
        self.stability, self.predict_with, self.fit_intercept = stability, predict_with, fit_intercept
        self.always, self.ridge, self.groups, self.one_per_group = always, ridge, groups, one_per_group
        self.min_distance, self.hierarchy, self.positive = min_distance, hierarchy, positive
        self.preprocess, self.random_state, self.n_jobs, self.engine = preprocess, random_state, n_jobs, engine
        self.journal, self.verbose = journal, verbose

    def _keep(self, problem: SubsetProblem, support: NDArray[np.int64]) -> Self:
        proved = self.curve_.proved
        self.proof_ = None if proved is None else proved[self.curve_.at(self.n_nonzero_coefs_)]
        return super()._keep(problem, support)

    def predict(self, X: Any) -> Floats:
        """Predict the target of new rows (n_samples, n_features): by the chosen columns, or by the average."""
        if self.predict_with == "subset":
            return super().predict(X)
        X = self._new_rows(X, raw=True)
        return self.curve_.predict(X, predict_with="average")

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """Lower and upper bounds (n_samples, 2) around the predictions of new rows, from the folds' own fits.

        X has the shape (n_samples, n_features). `coverage` is the fraction of new rows that the intervals are to cover;
        docs/predicting.md says what holds, and how often it was true. With several targets (n_samples, 2, n_targets).
        """
        X = self._new_rows(X, raw=True)
        size = self.n_nonzero_coefs_ if self.predict_with == "subset" else None
        predicted = self.curve_.predict(X, size, interval=coverage, predict_with=self.predict_with)
        return np.stack([predicted.lower, predicted.upper], axis=1)


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
            Table of candidates: an array, a sparse one of SciPy, or a frame of pandas, polars or PyArrow.
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
