"""Classifiers: thin shells around `best_subset` and `select_size`, logistic for two classes, multinomial for more."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from numbers import Real
from os import PathLike
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

from pairflip.engines import Engine
from pairflip.estimators.shared import SizeChooser, SizeGiven, SubsetModel
from pairflip.inputs import as_weights
from pairflip.least_squares import Floats
from pairflip.losses import RIDGE
from pairflip.losses.likelihood import CERTAIN
from pairflip.problem import SubsetProblem


class _SubsetClassifier(ClassifierMixin, SubsetModel):
    """Both classifiers: labels in, probabilities out."""

    class_weight: dict[Any, float] | Literal["balanced"] | None

    def _problem(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, least_rows: int) -> SubsetProblem:
        X, y = self._checked(X, y, least_rows)
        check_classification_targets(y)
        if self.class_weight is not None:
            each = compute_sample_weight(self.class_weight, y)
            sample_weight = each if sample_weight is None else as_weights(sample_weight, X.shape[0]) * each
        problem = self._as_problem(
            X,
            y,
            sample_weight,
            ridge=self.ridge if isinstance(self.ridge, (Real, float)) else RIDGE,
            loss="multinomial" if np.unique(y).size > 2 else "logistic",
        )
        assert problem.classes is not None
        self.classes_ = problem.classes
        return problem

    def _keep(self, problem: SubsetProblem, support: NDArray[np.int64]) -> Self:
        """Fit one support and keep it, with a warning where the classes are separated."""
        coef, intercept = self._fit_support(problem, support)
        self.coef_, self.intercept_ = np.atleast_2d(coef.T), np.atleast_1d(intercept)
        remark = problem.loss.remark(problem, np.sort(np.asarray(support, dtype=np.int64)))
        if remark:
            warnings.warn(f"{remark}.", UserWarning, stacklevel=3)
        return self

    def decision_function(self, X: Any) -> Floats:
        r"""Linear predictors :math:`X x + z` for X of shape (n_samples, n_features).

        Of two classes (n_samples,), the logarithm of the odds of ``classes_[1]``; of more (n_samples, n_classes), the
        logarithms of the probabilities up to a constant of each row.
        """
        predictors = self._used_columns(X) @ self.coef_[:, self.support_].T + self.intercept_
        return np.asarray(predictors[:, 0] if len(self.coef_) == 1 else predictors)

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities (n_samples, n_classes) of the classes, in the order of `classes_`."""
        odds = self.decision_function(X)
        if odds.ndim == 2:
            return np.asarray(softmax(odds, axis=1))
        return np.column_stack([expit(-odds), expit(odds)])

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row, for X of shape (n_samples, n_features)."""
        odds = self.decision_function(X)
        return np.asarray(self.classes_[np.argmax(odds, axis=1) if odds.ndim == 2 else (odds > 0).astype(np.int64)])


class SubsetClassifier(_SubsetClassifier, SizeGiven):
    r"""Logistic regression on the best k columns; of three and more classes, multinomial with one set of columns.

    .. math:: \min_{x, z} \sum_i w_i \left(\ln(1 + e^{\eta_i}) - y_i \eta_i\right), \quad \eta = X x + z,
              \quad\text{with } x \text{ nonzero in } k \text{ places.}

    This is the problem of two classes; `pairflip.losses.multinomial` has that of more.

    Columns are searched by descents in the deviance itself; docs/classes.md says how.

    Parameters
    ----------
    n_nonzero_coefs : int or None
        Number k of columns to choose; None means 10 % of them, at least one.
    effort : {"quick", "normal", "thorough"} or float
        How much to spend where chains do not agree, see `SubsetRegressor`.
    fit_intercept : bool
        Whether to fit a constant in addition to the chosen columns.
    always : names or indices of columns
        Columns that are in the model whatever is chosen; they are not counted in k, and not penalized.
    ridge : float
        Penalty on the squares of standardized coefficients, for each row: small, above 0.
    class_weight : dict, "balanced" or None
        Weights of the rows of each class; "balanced": all classes weigh the same.
    preprocess : scikit-learn transformer or None
        Makes the candidates from X, which may then have missing values; fitted on X alone. `always`, rules, ``coef_``
        and ``support_`` refer to the columns that it makes; `predict` applies it.
    random_state : int, RandomState or None
        Seed; an int gives the same result every time, for any number of threads.
    n_jobs : int or None
        Threads; None is one, -1 all cores.
    engine : {"auto", "numba"}
        What searches.

    Attributes
    ----------
    classes_ : (n_classes,)
        The labels, sorted.
    coef_ : (1, n_features), or (n_classes, n_features) of more than two classes
        Coefficients, zero outside the support.
    intercept_ : (1,) or (n_classes,)
    support_ : (k + forced,)
        Indices of the chosen and the forced columns, sorted; ``get_support()`` gives the same as a boolean mask.
    energy_ : float
        Half the deviance on the training rows (weighted), and the penalty.
    trace_ : Trace or None
        What the search did; None if there was nothing to choose.
    preprocess_ : transformer or None
        `preprocess`, fitted on all rows.
    n_features_in_, feature_names_in_
    """

    def __init__(
        self,
        n_nonzero_coefs: int | None = None,
        *,
        effort: Literal["quick", "normal", "thorough"] | float = "normal",
        fit_intercept: bool = True,
        always: Iterable[str | int] = (),
        ridge: float = RIDGE,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        preprocess: Any = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        engine: str | Engine = "auto",
    ) -> None:
        self.n_nonzero_coefs, self.effort, self.fit_intercept = n_nonzero_coefs, effort, fit_intercept
        self.always, self.ridge, self.class_weight, self.preprocess = always, ridge, class_weight, preprocess
        self.random_state, self.n_jobs, self.engine = random_state, n_jobs, engine

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # by default it keeps one of the two columns of scikit-learn's check
        return tags


class SubsetClassifierCV(_SubsetClassifier, SizeChooser):
    r"""Logistic regression on the best columns, their number chosen by cross validation.

    Every fold of every size gets its own search on its training rows; sizes are compared by the log loss of held-out
    rows. Folds keep the shares of the classes where `cv` is a number of folds or repeats of them.

    Parameters
    ----------
    sizes : iterable of int or None
        Numbers of columns to try; None: 1 to 10, or as many as the table allows.
    cv : int, str, splitter, iterable of splits or None
        As in `SubsetRegressorCV`; None means ``"auto"``.
    choose : {"auto", "best", "one_se", "bic", "ebic"}
        As in `SubsetRegressorCV`: by default the size that `print(model.curve_)` recommends.
    effort : {"quick", "normal", "thorough"}
        How long folds and final fits are searched.
    stability : int
        Pairs of random half-samples in which columns are selected again (0: none).
    predict_with : {"subset", "average"}
        ``"average"``: `predict` uses the weighted average of the folds' models (``curve_.average``), better
        where many columns matter a little; ``coef_`` and ``support_`` are those of the chosen columns all the same.
    fit_intercept : bool
        Whether to fit a constant in addition to the chosen columns (inside every fold).
    always : names or indices of columns
        Columns that are in the model whatever is chosen; they are not counted in the size.
    ridge : float, "auto" or list of float
        ``"auto"`` or a list: penalties on the squares of standardized coefficients, for each row; one is chosen
        together with the size. A number above 0: that penalty, in a third of the time.
    class_weight : dict, "balanced" or None
        Weights of the rows of each class, in training and in held-out errors.
    preprocess : scikit-learn transformer or None
        Makes the candidates from X, which may then have missing values; fitted on the training rows of every fold, for
        the final fit on all rows, and never on y. `always`, rules, ``coef_`` and ``support_`` refer to the columns that
        it makes; `predict` applies it.
    random_state : int, RandomState or None
        Seed of folds and searches; an int gives the same result every time, for any number of workers.
    n_jobs : int or None
        Threads; None is one (or what ``joblib.parallel_config`` says), -1 all cores.
    engine : {"auto", "numba"}
        What searches.
    journal : path or None
        Folder in which finished work is kept; fitting the same again resumes.
    verbose : int or None
        None: show progress of what takes longer than 5 s, on a terminal or in a notebook only; 0: never; 1: show
        progress on standard error.

    Attributes
    ----------
    n_nonzero_coefs_ : int
        The number of columns chosen.
    classes_ : (n_classes,)
        The labels, sorted.
    coef_ : (1, n_features), or (n_classes, n_features) of more than two classes
    intercept_ : (1,) or (n_classes,)
    support_ : (``n_nonzero_coefs_`` + forced,)
        Indices of the chosen and the forced columns, sorted.
    ridge_ : float
        The ridge that was chosen with the size; 0 where none was to be chosen.
    energy_ : float
        Half the deviance on the training rows (weighted), and the penalty.
    curve_ : SizeCurve
        Errors of all sizes; ``curve_.classes`` has misclassification and, of two classes, AUC.
    cv_results_ : dict of arrays, one entry per size
        As in `SubsetRegressorCV`; ``mean_test_score`` is minus the mean deviance of held-out rows.
    preprocess_ : transformer or None
        `preprocess`, fitted on all rows.
    n_features_in_, feature_names_in_
    """

    def __init__(
        self,
        sizes: Iterable[int] | None = None,
        *,
        cv: Any = None,
        choose: Literal["auto", "best", "one_se", "bic", "ebic"] = "auto",
        effort: Literal["quick", "normal", "thorough"] = "normal",
        stability: int = 0,
        predict_with: Literal["subset", "average"] = "subset",
        fit_intercept: bool = True,
        always: Iterable[str | int] = (),
        ridge: float | Literal["auto"] | Iterable[float] = "auto",
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        preprocess: Any = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        engine: str | Engine = "auto",
        journal: str | PathLike[str] | None = None,
        verbose: int | None = None,
    ) -> None:
        self.sizes, self.cv, self.choose, self.effort, self.stability = sizes, cv, choose, effort, stability
        self.predict_with, self.fit_intercept, self.always = predict_with, fit_intercept, always
        self.ridge, self.class_weight, self.preprocess = ridge, class_weight, preprocess
        self.random_state, self.n_jobs, self.engine, self.journal = random_state, n_jobs, engine, journal
        self.verbose = verbose

    def decision_function(self, X: Any) -> Floats:
        """Linear predictors of new rows (n_samples, n_features); of the average, logarithms of its odds.

        Of more than two classes (n_samples, n_classes), logarithms of its probabilities.
        """
        if self.predict_with == "subset":
            return super().decision_function(X)
        X = self._new_rows(X, raw=True)
        probability = np.clip(self.curve_.predict(X, predict_with="average"), CERTAIN, 1.0 - CERTAIN)
        return np.asarray(np.log(probability) if probability.ndim == 2 else logit(probability))
