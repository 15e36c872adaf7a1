"""What all estimators do: check the input, keep a support, say what was tried."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.model_selection import LeaveOneGroupOut
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metadata_routing import UNUSED, MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted, validate_data

from pairflip.engines import Engine, RankTooSmall
from pairflip.inputs import as_frame, as_table, refuse_dates
from pairflip.least_squares import Floats
from pairflip.preparation import Preparation
from pairflip.problem import SubsetProblem
from pairflip.search.best_subset import Trace, best_subset
from pairflip.selection import Selection, SizeCurve, select_size
from pairflip.selection.decide import baseline
from pairflip.selection.facts import copy_words
from pairflip.selection.folds import DEFAULT_CV
from pairflip.selection.prediction import outside_of_fold, training_range, warn_outside
from pairflip.sparse import dense


class SubsetModel(SelectorMixin, BaseEstimator):
    """A support of columns of X and its coefficients."""

    fit_intercept: bool
    always: Iterable[str | int]
    ridge: float | Literal["auto"] | Iterable[float]
    random_state: int | np.random.RandomState | None
    n_jobs: int | None
    engine: str | Engine
    effort: Any
    preprocess: Any = None
    preprocess_: Any
    _of_search: ClassVar[tuple[str, ...]] = ()
    _preparation: Preparation | None = None

    def _checked(self, X: Any, y: Any, least_rows: int, **how: Any) -> tuple[Any, Any]:
        """X as numbers, and y; what scikit-learn says about text is said with the name of the column."""
        X, y = as_frame(X), as_frame(y, "y")
        refuse_dates(X)
        if self.preprocess is not None:  # the transformer says which values it takes
            y = validate_data(self, y=y, **how)
            return self._raw_rows(X, ensure_min_samples=least_rows), y
        try:
            checked: tuple[Any, Any] = validate_data(
                self, X, y, dtype=np.float64, accept_sparse=True, ensure_min_samples=least_rows, **how
            )
        except ValueError as error:
            if "could not convert" in str(error):
                as_table(X)  # says which column holds text
            raise
        return checked

    def _as_problem(self, X: Any, y: Any, sample_weight: Any, **options: Any) -> SubsetProblem:
        """The problem of checked X and y, with what all estimators know of it."""
        problem = SubsetProblem(
            X, y, names=getattr(self, "feature_names_in_", None) if self.preprocess is None else None,
            center="fold" if self.fit_intercept else None, always=self.always, sample_weight=sample_weight,
            preprocess=self.preprocess, **options,
        )  # fmt: skip
        self._preparation, self.preprocess_ = problem.preparation, problem.preprocess
        return problem

    def _raw_rows(self, X: Any, **how: Any) -> Any:
        """Rows before they are preprocessed: a frame as it is, otherwise an array, of any values."""
        frame = hasattr(X, "columns") and hasattr(X, "dtypes")
        options: dict[str, Any] = {"skip_check_array": frame, "dtype": None, "ensure_all_finite": False}
        return validate_data(self, X, accept_sparse=True, **options, **how)

    def _new_rows(self, X: Any, raw: bool = False) -> Any:
        """New rows, checked, as columns of the model (m, n); if `raw`, before they are preprocessed."""
        check_is_fitted(self)
        X = as_frame(X)
        if self._preparation is None:
            return validate_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False)
        X = self._raw_rows(X, reset=False)
        return X if raw else as_table(self._preparation.transform(X), self._preparation.names, least_rows=1)[0]

    def _problem(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, least_rows: int) -> SubsetProblem:
        raise NotImplementedError

    def _keep(self, problem: SubsetProblem, support: NDArray[np.int64]) -> Self:
        raise NotImplementedError

    def _fit_support(self, problem: SubsetProblem, support: NDArray[np.int64]) -> tuple[Floats, Any]:
        """Fit one support: coefficients (n_features,) and the constant; (n_features, q) and (q,) of q targets."""
        best = problem.fit(support)
        self.support_ = np.sort(np.concatenate([best.support, problem.always]))
        coef = np.zeros((problem.n_columns, *best.coef.shape[1:]))
        coef[best.support] = best.coef
        coef[problem.always] = best.always_coef
        self.energy_ = best.energy
        self._training_range = training_range(problem, self.support_)
        return coef, best.intercept

    def _used_columns(self, X: Any) -> Floats:
        """The columns `support_` of new rows; warns of rows outside the range of the training rows.

        As `SizeCurve.predict` does, for the caller of the caller, but in words that are the same for all folds.
        """
        used = dense(self._new_rows(X)[:, self.support_])
        known = self._training_range
        warn_outside(None if known is None else known.outside(used), outside_of_fold, stacklevel=4)
        return used

    def __sklearn_tags__(self) -> Any:
        """Sparse tables are taken as they are, where preprocessing takes them."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.preprocess is None or get_tags(self.preprocess).input_tags.sparse
        return tags

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_ if self._preparation is None else len(self._preparation.names), dtype=bool)
        mask[self.support_] = True
        return mask

    def transform(self, X: Any) -> Any:
        """The chosen and the forced columns of X, after preprocessing if there is any."""
        return super().transform(as_frame(X)) if self._preparation is None else self._transform(self._new_rows(X))

    def inverse_transform(self, X: Any) -> Any:
        """Rows with zeros in the place of columns that were not chosen; preprocessing cannot be undone."""
        if self._preparation is not None:
            raise ValueError("preprocess was applied before columns were chosen, which inverse_transform cannot undo.")
        return super().inverse_transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the chosen and the forced columns."""
        if self._preparation is None:
            return np.asarray(super().get_feature_names_out(input_features))
        return np.array(self._preparation.names, dtype=object)[self._get_support_mask()]

    def _seed(self) -> int:
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _options(self) -> dict[str, Any]:
        """Parameters of the estimator that are those of the search, too."""
        return {name: getattr(self, name) for name in self._of_search}


class SizeGiven(SubsetModel):
    """Estimators of one size."""

    n_nonzero_coefs: int | None
    trace_: Trace | None

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Find the best columns of X for y and fit them.

        Parameters
        ----------
        X : (n_samples, n_features)
            Table of candidates: an array, a sparse one of SciPy, or a frame of pandas, polars or PyArrow.
        y : (n_samples,) or (n_samples, n_targets)
            Target of a regressor: several targets are predicted from one set of columns, each scaled to unit variance.
            Of a classifier the labels (n_samples,) of two or more classes.
        sample_weight : (n_samples,), optional
            Weight of each row (of its squared residual); a row of weight zero counts as absent.

        Returns
        -------
        self
        """
        problem = self._problem(X, y, sample_weight, 2)
        size, support = self._size(problem), problem.candidates
        self.trace_ = None
        if size < problem.form.n_columns:  # with all columns there is nothing to choose
            self.trace_ = best_subset(
                problem, size, seed=self._seed(), engine=self.engine, n_jobs=self.n_jobs, effort=self.effort,
                **self._options(),
            )  # fmt: skip
            support = self.trace_.best_support
        return self._keep(problem, support)

    def _size(self, problem: SubsetProblem) -> int:
        """The number of columns, checked against the number of those that vary."""
        k, n, noun = self.n_nonzero_coefs, problem.form.n_columns, problem.form.what
        if k is None:
            rows = problem.rows_present - problem.forced.shape[1]
            return int(max(1, min(problem.n_columns // 10, n, rows)))
        if isinstance(k, bool) or not isinstance(k, Integral):
            raise TypeError(f"n_nonzero_coefs is {k!r}; expected a whole number of {noun} from 1 to {n}.")
        size = int(k)
        if not 1 <= size <= n:
            raise ValueError(f"n_nonzero_coefs is {k}, but X has {n} {noun} that vary; expected 1 to {n}.")
        if size == n and not np.isfinite(problem.energy(problem.candidates)):
            raise RankTooSmall(n, problem.form.rank(), noun)
        return size


class SizeChooser(SubsetModel):
    """What both estimators do that choose the size, too; `_keep` of the estimator fits what was chosen."""

    sizes: Iterable[int] | None
    cv: Any
    choose: Literal["auto", "best", "one_se", "bic", "ebic"]
    stability: int
    predict_with: Literal["subset", "average"]
    journal: Any
    verbose: int | None
    __metadata_request__fit: ClassVar[dict[str, str]] = {"groups": UNUSED}  # it is the splitter that asks for groups

    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Self:
        """Choose the size and the columns of X for y, and fit them on all rows.

        Parameters
        ----------
        X : (n_samples, n_features)
            Table of candidates: an array, a sparse one of SciPy, or a frame of pandas, polars or PyArrow.
        y : (n_samples,) or (n_samples, n_targets)
            Target of a regressor: several targets are predicted from one set of columns, each scaled to unit variance.
            Of a classifier the labels (n_samples,) of two or more classes.
        sample_weight : (n_samples,), optional
            Weight of each row (of its squared residual), in training and in held-out errors; zero counts as an absent
            row.
        groups : (n_samples,), optional
            Label of the group of each row, for instance the patient; the rows of a group are held out together.

        Returns
        -------
        self
        """
        labels = None if groups is None else process_routing(self, "fit", groups=groups).splitter.split["groups"]
        problem = self._problem(X, y, sample_weight, 4)
        selection = Selection(
            sizes=self.sizes, cv=DEFAULT_CV if self.cv is None else self.cv, seed=self._seed(), effort=self.effort,
            stability=self.stability,
            ridge=None if isinstance(self.ridge, (Real, float)) else self.ridge, choose=self.choose, **self._options(),
        )  # fmt: skip
        self.curve_ = curve = select_size(
            problem, selection, engine=self.engine, n_jobs=self.n_jobs, journal=self.journal,
            progress="late" if self.verbose is None else "log" if self.verbose else False, groups=labels,
        )  # fmt: skip
        self.n_nonzero_coefs_ = curve.answer.size
        self.cv_results_ = search_results(curve)
        self.ridge_ = curve.ridge
        for text in copy_words(curve.facts):
            warnings.warn(text, UserWarning, stacklevel=2)
        if self.n_nonzero_coefs_ == 0 and self.predict_with == "subset":
            beside = "" if problem.always.size == 0 else " beside the forced ones"
            warnings.warn(
                f"no column was kept{beside}: none predicts clearly better than the {baseline(curve)}, so that is what "
                "predict gives (choose='best' takes the lowest error as it is).",
                UserWarning,
                stacklevel=2,
            )
        shrunken = problem.with_shrinkage(self.ridge_) if self.ridge_ else problem
        return self._keep(shrunken, curve.supports[curve.at(self.n_nonzero_coefs_)])

    def get_metadata_routing(self) -> MetadataRouter:
        """Groups go to the splitter."""
        splitter = self.cv if hasattr(self.cv, "split") else LeaveOneGroupOut()
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(splitter=splitter, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        )


def search_results(curve: SizeCurve) -> dict[str, Any]:
    """The curve as `cv_results_` of scikit-learn's searches, where larger scores are better."""
    error, fold = 2.0 * curve.cv_error, curve.held_out_fold
    rows = np.bincount(fold, curve.weights)  # weighted numbers of held-out rows of the folds
    sums = np.stack([np.bincount(fold, curve.weights * row) for row in curve.row_errors(curve.predictions)])
    return {
        "params": [{"n_nonzero_coefs": k} for k in curve.sizes.tolist()],
        "param_n_nonzero_coefs": curve.sizes.copy(),
        "mean_test_score": -error,
        "std_test_score": np.std(sums[:, rows > 0] / rows[rows > 0], axis=1),
        "se_test_score": 2.0 * curve.cv_error_se,
        "rank_test_score": np.searchsorted(np.sort(error), error) + 1,
        **{name: values for name, values in curve.to_dict().items() if name not in ("best", "one_se", "columns")},
    }
