"""The record of a selection, `SizeCurve`, and the small records that are its parts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats
from pairflip.losses import Loss, loss_named
from pairflip.preparation import Preparation
from pairflip.rules import Units
from pairflip.search.prove import Proof
from pairflip.selection.stability import Stability
from pairflip.supports import Ints

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from pathlib import Path

    import pandas as pd
    import polars as pl
    import xarray as xr
    from matplotlib.axes import Axes

    from pairflip.selection.decide import Answer
    from pairflip.selection.prediction import Prediction

PredictWith = Literal["auto", "subset", "average"]


@dataclass(frozen=True)
class StandIns:
    """Columns that could stand in for a chosen one: the candidates that are most correlated with it."""

    columns: Ints  # (U,) chosen at some size
    others: Ints  # (U, T), the strongest first; -1 where there are fewer
    correlation: Floats  # (U, T), signed, after what is always in the model was projected out

    def of(self, column: int) -> list[tuple[int, float]]:
        """(other column, correlation) of one chosen column, the strongest first."""
        at = np.flatnonzero(self.columns == column)
        if at.size == 0:
            return []
        pairs = zip(self.others[at[0]].tolist(), self.correlation[at[0]].tolist(), strict=True)
        return [(other, r) for other, r in pairs if other >= 0]


@dataclass(frozen=True)
class AnnealCurves:
    """How the final fits were annealed; NaN for a size that needed no annealing (all columns)."""

    betas: Floats  # (S, steps)
    energy: Floats  # (S, chains, steps)
    acceptance: Floats  # (S, chains, steps)


@dataclass(frozen=True)
class SampledErrors:
    """How far off the predictions of sampled rows were by fits without them: K quantiles for each of q targets.

    It stands in for the errors of single rows where moments were kept of all others.
    """

    rows: int  # of the sample
    error: Floats  # (K, q), each of the same weight
    fold: Ints | None = None  # (K, q) whose fit it was; None for the mean of several


@dataclass(frozen=True)
class FoldFits:
    """What the folds predict with: columns of their own, fitted on their training rows, in the units of the table.

    With q targets each array of coefficients has one more axis, of q.
    """

    sizes: Ints  # (T,), all sizes or some
    coefs: tuple[Floats, ...]  # T arrays (F, k), of `SizeCurve.fold_supports`
    always_coefs: tuple[Floats, ...]  # T arrays (F, A)
    intercepts: Floats  # (T, F)
    sampled: tuple[SampledErrors, ...] | None = None  # T, of a table that was read in blocks


@dataclass(frozen=True)
class TrainingRange:
    r"""Whether new rows lie among the rows that a model of d columns was fitted on, by their leverage.

    The leverage of a row x beside the training rows is :math:`\|F^T (x - m) / s\|^2` plus what the constant adds,
    which is the same for every row.
    """

    means: Floats  # m (d,)
    scales: Floats  # s (d,)
    factor: Floats  # F (d, r)
    limit: float  # rows above it are outside
    leverages: Floats | None = None  # (M,) of the rows fitted on, the constant included; None where that was not kept

    def outside(self, X: Floats) -> NDArray[np.bool_]:
        """Which rows of X (M, d) are outside; not those in which a value is missing."""
        with np.errstate(all="ignore"):
            scaled = np.clip((X - self.means) / self.scales, -1e100, 1e100)  # infinities would cancel to not-a-number
            leverage = np.sum((scaled @ self.factor) ** 2, axis=1)
        return np.asarray(leverage > self.limit)

    def fits(self, X: Floats) -> bool:
        """Whether rows X (M, d) may be those fitted on: their leverages then add up to the number of coefficients."""
        return bool(np.isclose(np.sum(((X - self.means) / self.scales @ self.factor) ** 2), self.factor.shape[1]))


@dataclass(frozen=True)
class StandardErrors:
    """Standard errors of the final fits, conditional on their columns: not-a-number where rows are too few."""

    chosen: tuple[Floats, ...]  # S arrays (k,)
    always: Floats  # (S, A)
    intercepts: Floats  # (S,)


@dataclass(frozen=True)
class ClassErrors:
    """How well classes are told apart on held-out rows, at each size (S,)."""

    labels: list[str]  # of c classes; of two, the second one is the event, whose probability is predicted
    shares: Floats  # (c,) fractions of the rows, by weight
    misclassified: Floats  # (S,) fraction of the rows whose most probable class is not theirs
    auc: Floats | None  # (S,) area under the ROC curve, 0.5 by chance; None for more than two classes

    @property
    def majority(self) -> float:
        """The misclassification of calling every row the most frequent class."""
        return 1.0 - float(self.shares.max())

    @property
    def several(self) -> bool:
        """Whether there are more than two, so that a row has a predicted probability for each of them."""
        return len(self.labels) > 2


@dataclass(frozen=True)
class SurvivalErrors:
    """How well survival times are ranked on held-out rows."""

    times: Floats  # (P,); `SizeCurve.observed` says whether the event happened then
    risks: Floats  # (S, P) linear predictors, from the means of the training rows
    concordance: Floats  # (S,) Harrell's index of all held-out rows together, 0.5 by chance


@dataclass(frozen=True)
class NullCheck:
    """What the same selection finds where there is nothing to find: one value for each shuffled target (n,)."""

    size: int
    pairs: int  # of half-samples
    r2: Floats  # explained variance of held-out rows
    set_frequency: Floats  # how often half-samples select exactly the columns selected on all rows
    overlap: Floats  # the fraction of these columns that they select
    highest: Floats  # the largest selection frequency of any column


@dataclass(frozen=True)
class OuterError:
    """How rows were predicted that had no part in choosing anything: a cross validation around the whole selection.

    With q targets the error is the mean over them, in units of their standard deviations on the rows not set aside.
    """

    error: float  # half the mean squared error, as `SizeCurve.cv_error`
    error_se: float
    r2: float
    sizes: Ints  # (F,) chosen without each outer fold; 0 where nothing predicted
    supports: tuple[Ints, ...]  # F arrays
    rows: Ints  # (P,) set aside
    fold: Ints  # (P,)
    predictions: Floats  # (P,), or (P, q)
    target_rmse: Floats | None = None  # (q,) of several targets, in their units
    target_r2: Floats | None = None

    @property
    def rmse(self) -> float:
        """Root mean square error in the unit of the target."""
        return float(np.sqrt(2.0 * self.error))


@dataclass(frozen=True)
class RidgeSurface:
    """What was tried where the ridge was chosen with the size: R relative ridge terms at the S sizes of the curve."""

    ridges: Floats  # (R,)
    errors: Floats  # (R, S) cv_error
    predictions: Floats | None  # (R, S, P) of held-out rows; None for one ridge, and where a file would have too many
    ridge: float  # the one that was chosen: that of the curve


@dataclass(frozen=True)
class TargetErrors:
    """Errors of held-out rows, target by target, where there are q of them."""

    names: list[str]
    cv_error: Floats  # (S, q) in units of the standard deviations on the training rows; their mean is the curve's
    rmse: Floats  # (S, q) in the units of the targets
    r2: Floats  # (S, q) one minus the squared error over that of the mean
    means: Floats  # (F, q) of each fold's training rows
    scales: Floats  # (F, q) their standard deviations; 1: not scaled


@dataclass(frozen=True)
class ChosenError:
    """Error of the chosen size on new rows, corrected for having chosen it."""

    size: int
    error: float  # half the mean squared error (or deviance), as `SizeCurve.cv_error`
    low: float  # ends of its interval
    high: float
    told: float  # `cv_error` at that size, before the correction
    variance: float  # half the variance (or mean deviance) of the target: what errors are compared with for `r2`
    level: float = 0.9  # nominal probability of the interval
    squares: bool = True  # whether errors are squared errors
    factor: float = 1.0  # how many times larger or smaller the error over the variance may be: the interval of `r2`
    ranked: tuple[float, float, float] | None = None  # AUC of two classes or concordance, and ends of its interval
    ranking: str = ""  # what that is called

    @property
    def auc(self) -> tuple[float, float, float] | None:
        """The area under the ROC curve on new rows, and the ends of its interval; None without two classes."""
        return self.ranked if self.ranking == "auc" else None

    @property
    def rmse(self) -> tuple[float, float, float]:
        """Root mean square error in the unit of the target, and the ends of its interval; nan for other errors."""
        if not self.squares:
            return float("nan"), float("nan"), float("nan")
        value, low, high = np.sqrt(2.0 * np.array([self.error, self.low, self.high])).tolist()
        return value, low, high

    @property
    def r2(self) -> tuple[float, float, float]:
        """Fraction of the variance that is explained, and the ends of its interval, the lower end first."""
        if not self.variance > 0:
            return float("nan"), float("nan"), float("nan")
        share, low, high = (1.0 - self.error * f / self.variance for f in (1.0, self.factor, 1.0 / self.factor))
        return share, low, high

    def to_json(self) -> dict[str, Any]:
        """Plain numbers by name."""
        values = {"error": (self.error, self.low, self.high)}
        values |= {"rmse": self.rmse, "r2": self.r2} if self.squares else {"explained_deviance": self.r2}
        if self.ranked is not None:
            values[self.ranking] = self.ranked
        record: dict[str, Any] = {"size": self.size, "level": self.level}
        for name, (value, low, high) in values.items():
            record |= {name: value, f"{name}_interval": [low, high]}
        return record


@dataclass(frozen=True)
class Average:
    """Prediction by a weighted mean of models of the folds, and of all columns with a ridge: one linear model.

    n are the rows that folds left out. With q targets or classes, arrays of coefficients and predictions have one more
    axis, q, at their end.
    """

    columns: Ints  # (U,) with a coefficient
    coefs: Floats  # (U,), in the units of the table
    always_coefs: Floats  # (A,)
    intercept: Floats  # ()
    selected: Ints  # of these, the columns that folds chose
    all_columns: float  # weight of ridge regression on all columns
    rows: Ints  # (n,)
    weights: Floats  # (n,)
    observed: Floats  # (n,) what predictions are compared with
    predictions: Floats  # (n,) of the rows, by models and weights that did not see them
    corrected: ChosenError | None  # the error of these predictions; None for very few rows
    sampled: SampledErrors | None = None  # of a table that was read in blocks


@dataclass(frozen=True)
class Inclusion:
    """How probable it is that columns belong in the model, averaged over all models: what `posterior` said."""

    columns: Ints  # (n,) that could be chosen
    probability: Floats  # (n,)
    error: Floats  # (n,) Monte Carlo error; 0 where all models were visited
    coef_mean: Floats  # (n,) averaged over models
    coef_sd: Floats
    prior: float  # probability of each column before the data
    assumptions: str  # what the probabilities are conditional on, in one sentence


@dataclass(frozen=True)
class SizeCurve:
    r"""Cross-validated error against the number of columns, and what was selected on the way.

    S sizes, F folds, C chains in a fold, N columns of X, P held-out predictions (leave-one-out: P = F = rows).

    Attributes
    ----------
    sizes : (S,)
        0 is always among them: the mean of the other rows, or the forced columns alone.
    cv_error, cv_error_se : (S,)
        :math:`\frac{1}{2P} \sum (y_\mu - \hat y_\mu)^2` over held-out rows, each predicted by columns chosen
        without it, and its standard error; for classes and counts, half their mean deviance. scikit-learn's mean
        squared error is twice that.
    energy_per_row : (S,)
        Training error :math:`\epsilon = E / M` of the folds, averaged.
    selection_counts : (S, N)
        In how many folds each column was selected.
    unchanged : (S,)
        Fraction of the folds that selected exactly the columns of the final fit: unchanged when those rows are left
        out. Noise passes this test, too; it says nothing about whether columns matter. (`stability` does.)
    agreement : (S,)
        Fraction of the chains that reached the lowest energy of their fold; low means that the search is hard.
    chain_cv_error : (S, C)
        cv_error if each fold had been searched by this chain only: how much results vary from run to run.
    fold_supports : S arrays (F, k)
        Columns selected in each fold. Groups have different numbers of columns: where a fold has fewer, -1 comes first.
    held_out_rows, held_out_fold, held_out_unit, observed, weights : (P,)
        Row and fold (indices from 0), the independent unit the row belongs to (itself, or its fold), target and weight.
    predictions : (S, P)
    supports, coefs : S arrays (k,)
        The final fit on all rows: columns and coefficients, in the units of the table.
    intercepts, energies, final_agreement : (S,)
        Its constant, its energy, and the fraction of its chains that agree.
    always, always_coefs : (A,), (S, A)
        Forced columns and their coefficients.
    criteria : dict of (S,)
        Information criteria of the final fits by name, see `selection.criteria`; `aic`, `bic`, `ebic` for short.
    stand_ins, annealing
        Correlated stand-ins of the chosen columns; curves of the final annealings.
    settings : dict
        All that determines the result; `data_hash` names the data.
    facts : dict
        What is plain to see in the table and matters for cross validation, see `selection.facts`.
    fold_fits : FoldFits or None
        What intervals of predictions are made from; None in results of older versions.
    stability, null, outer : Stability, NullCheck, OuterError, or None
        If they were asked for: what random halves of the rows selected; what the same selection finds in shuffled
        targets; errors of a cross validation around the whole selection.
    standard_errors, robust_errors, clustered_errors : StandardErrors or None
        Of the coefficients, as if their columns had not been chosen by looking at the target: of rows with the same
        noise; of rows that may differ in it (HC3); of groups of rows that may share it, where rows have groups.
    exact : (S,) or None
        For which sizes every fold was solved by looking at all supports: cv_error then owes nothing to luck.
    proved : S proofs, or None
        Proofs that final fits are the best of all supports, ``curve.proved[curve.at(3)]`` for size 3; None for sizes
        where that would have taken too long.
    ridge_surface : RidgeSurface or None
        Errors of all ridge terms where one was chosen with the size; `ridge`, `ridges`, `ridge_errors` and
        `ridge_predictions` for short.
    classes : ClassErrors or None
        Misclassification and AUC, where the target is a class; cv_error is then half the mean deviance (the log loss),
        and predictions are probabilities of the second class. Of c > 2 classes there is a held-out prediction for each
        row and class, those of a row together, and `observed` is 1 for its own class; coefficients are (k, c), as with
        several targets.
    survival : SurvivalErrors or None
        Concordance, where the target is a survival time; predictions of held-out rows are then probabilities of what
        was observed of them (`pairflip.losses.cox`), and `observed` says whether the event happened.
    targets : TargetErrors or None
        Errors of each target, where there are q of them. There is then a held-out prediction for each row and target,
        those of a row together; `observed` and `predictions` are in units of the target's standard deviation on the
        training rows, from its mean there, and cv_error is the mean over targets. Coefficients are (k, q), intercepts
        (S, q), coefficients of forced columns (S, A, q).
    groups : dict of columns by name, or None
        Groups of columns that were chosen as a whole: sizes then count groups (a column of no group is one by itself),
        and supports have all their columns.
    inclusion : Inclusion or None
        How probable it is that columns belong in the model, where `with_posterior` put that beside the selection.
    training_ranges : S records, or None
        Of each size, whether new rows are like the training rows; None where that was not kept, or without columns.
    average : Average or None
        The weighted average of models, another way to predict; None where none was made.
    preparation : Preparation or None
        Preprocessing of the table, fitted on all rows: from the columns `raw_names` to `names`. `predict` applies it;
        `preprocess` for short is the transformer.
    """

    sizes: Ints
    names: list[str]
    n_rows: int
    n_folds: int
    cv_error: Floats
    cv_error_se: Floats
    energy_per_row: Floats
    selection_counts: Ints
    unchanged: Floats
    agreement: Floats
    chain_cv_error: Floats
    fold_supports: tuple[Ints, ...]
    held_out_rows: Ints
    held_out_fold: Ints
    held_out_unit: Ints
    observed: Floats
    weights: Floats
    predictions: Floats
    supports: tuple[Ints, ...]
    coefs: tuple[Floats, ...]
    intercepts: Floats
    energies: Floats
    final_agreement: Floats
    always: Ints
    always_coefs: Floats
    criteria: dict[str, Floats]
    stand_ins: StandIns
    annealing: AnnealCurves
    settings: dict[str, Any]
    facts: dict[str, Any]
    data_hash: str
    engine: str
    version: str
    seconds: float
    notes: tuple[str, ...] = ()
    fold_fits: FoldFits | None = None
    stability: Stability | None = None
    null: NullCheck | None = None
    standard_errors: StandardErrors | None = None
    outer: OuterError | None = None
    ridge_surface: RidgeSurface | None = None
    exact: NDArray[np.bool_] | None = None
    proved: tuple[Proof | None, ...] | None = None
    classes: ClassErrors | None = None
    survival: SurvivalErrors | None = None
    targets: TargetErrors | None = None
    groups: dict[str, Ints] | None = None
    inclusion: Inclusion | None = None
    training_ranges: tuple[TrainingRange | None, ...] | None = None
    robust_errors: StandardErrors | None = None
    clustered_errors: StandardErrors | None = None
    average: Average | None = None
    preparation: Preparation | None = None

    @property
    def preprocess(self) -> Any:
        """The transformer of the table, fitted on all rows; None where there is none, or a file could not keep it."""
        return None if self.preparation is None else self.preparation.transformer

    @property
    def raw_names(self) -> list[str]:
        """Names of the columns before preprocessing; `names` where there is none."""
        return self.names if self.preparation is None else list(self.preparation.raw_names)

    @property
    def best_size(self) -> int:
        """Size with the lowest cv_error (the smaller one if two are equal)."""
        lowest = np.flatnonzero(self.cv_error == self.cv_error.min())
        return int(self.sizes[lowest].min())

    @property
    def one_se_size(self) -> int:
        """Smallest size whose cv_error is within one standard error of the lowest."""
        best = self.at(self.best_size)
        return int(np.min(self.sizes[self.cv_error <= self.cv_error[best] + self.cv_error_se[best]]))

    @property
    def aic(self) -> Floats:
        """Akaike's criterion of the final fits (S,)."""
        return self.criteria["aic"]

    @property
    def bic(self) -> Floats:
        """Schwarz's criterion of the final fits (S,)."""
        return self.criteria["bic"]

    @property
    def ebic(self) -> Floats:
        """The extended criterion for many candidates (S,)."""
        return self.criteria["ebic"]

    @property
    def ridge(self) -> float:
        """The relative ridge term that was chosen with the size; 0 where none was to be chosen."""
        return 0.0 if self.ridge_surface is None else self.ridge_surface.ridge

    @property
    def ridges(self) -> Floats | None:
        """The relative ridge terms (R,) that were tried; None where none was to be chosen."""
        return None if self.ridge_surface is None else self.ridge_surface.ridges

    @property
    def ridge_errors(self) -> Floats | None:
        """cv_error (R, S) of every ridge and size."""
        return None if self.ridge_surface is None else self.ridge_surface.errors

    @property
    def ridge_predictions(self) -> Floats | None:
        """Predictions (R, S, P) of held-out rows with every ridge and size; None where there was nothing to choose."""
        return None if self.ridge_surface is None else self.ridge_surface.predictions

    @cached_property
    def units(self) -> Units | None:
        """What is chosen as a whole, where there are groups."""
        return None if self.groups is None else Units.of(self.groups, len(self.names))

    @property
    def loss(self) -> Loss:
        """The loss that was minimized."""
        return loss_named(self.settings.get("loss", "squares"), self.settings.get("scale_targets", True))

    @property
    def outputs(self) -> list[str] | None:
        """What a row has a prediction for, by name: several targets, or three and more classes; None for one."""
        if self.targets is not None:
            return self.targets.names
        return self.classes.labels if self.classes is not None and self.classes.several else None

    @property
    def n_outputs(self) -> int:
        """How many predictions a held-out row has, one after the other."""
        return 1 if self.outputs is None else len(self.outputs)

    @property
    def single_rows(self) -> bool:
        """Whether single rows of the table are known; otherwise `held_out_rows` stand for blocks of many."""
        return "stands_for" not in self.facts

    @property
    def total_rows(self) -> int:
        """How many rows the table has, or the moments are of."""
        return self.n_rows if self.single_rows else int(self.facts["stands_for"]["rows"])

    @property
    def ranked(self) -> Floats | None:
        """How probable it is that two held-out rows are ranked rightly (S,): AUC or concordance, where there is one."""
        if self.survival is not None:
            return self.survival.concordance
        return None if self.classes is None else self.classes.auc

    def row_errors(self, predictions: Floats) -> Floats:
        """What each held-out row adds to twice cv_error (..., P), when it is predicted so (..., P)."""
        return self.loss.row_errors(self.observed, predictions)

    def at(self, size: int) -> int:
        """Index of a size in `sizes`."""
        places = np.flatnonzero(self.sizes == size)
        if places.size == 0:
            raise ValueError(f"size is {size}; expected one of {', '.join(map(str, self.sizes.tolist()))}.")
        return int(places[0])

    def columns(self, size: int | None = None) -> list[str]:
        """Names of the columns of the final fit of a size (None: the best one)."""
        return [self.names[j] for j in self.supports[self.at(self.best_size if size is None else size)]]

    def chosen_groups(self, size: int | None = None) -> list[str]:
        """Names of the groups of the final fit of a size (None: the best one); columns of no group by their own."""
        support = self.supports[self.at(self.best_size if size is None else size)]
        return [] if self.units is None else self.units.names_of(support, self.names)

    def coef(self, size: int | None = None) -> Floats:
        """Coefficients (N,) of the final fit of a size, zero outside its columns, forced columns included.

        Those of q targets, or of three and more classes, are (N, q).
        """
        at = self.at(self.best_size if size is None else size)
        dense = np.zeros((len(self.names), *self.intercepts.shape[1:]))
        dense[self.always] = self.always_coefs[at]
        dense[self.supports[at]] = self.coefs[at]
        return dense

    @overload
    def predict(
        self, X: Any, size: int | None = None, interval: None = None, *, predict_with: PredictWith | None = None
    ) -> Floats: ...
    @overload
    def predict(
        self, X: Any, size: int | None = None, *, interval: float, predict_with: PredictWith | None = None
    ) -> Prediction: ...
    def predict(
        self, X: Any, size: int | None = None, interval: float | None = None, *, predict_with: PredictWith | None = None
    ) -> Floats | Prediction:
        """Predict new rows by the final fit of a size; with `interval`, say how far off that may be.

        Parameters
        ----------
        X : (M, N) array, or data frame
            New rows, before preprocessing. Columns of an array are found by position, those of a data frame by name;
            others are ignored.
        size : int, optional
            Number of columns, one of `sizes`; by default the recommended one, which is 0 where nothing predicts.
        interval : float, optional
            Fraction of new rows that the intervals are to cover, such as 0.9. They come from the folds' own fits
            (jackknife+, CV+); docs/predicting.md says what holds. What comes back then has `prediction`, `lower` and
            `upper`, each (M,), or (M, q) with several targets.
        predict_with : {"subset", "average"}, optional
            The columns of one size, or the weighted average of models, which needs the columns of all of them; by
            default what the answer names (``curve.answer.predictor``), and the columns of `size` where that is given.
        """
        from pairflip.selection.prediction import predict

        return predict(self, X, size, interval, predict_with)

    @cached_property
    def answer(self) -> Answer:
        """What is recommended: size, predictor, corrected errors. It is made here, once."""
        from pairflip.selection.decide import decide

        return decide(self)

    def coefficients(self, size: int | None = None) -> pd.DataFrame:
        """The final fit of a size (None: the recommended one) with standard errors and the spread over half-samples.

        Standard errors hold for columns that were fixed beforehand, `standard_error` for rows with the same noise,
        `robust_error` (HC3) also where noise differs from row to row, and `clustered_error`, where rows have groups,
        also where those of a group share it. These columns were chosen because they fit, so true errors are larger;
        `coef_5` and `coef_95` are quantiles over the half-samples that selected the column. Several targets have a
        column of coefficients each, and no standard errors.
        """
        import pandas as pd

        from pairflip.selection.coefficients import coefficient_rows, target_coefficients

        shown = self.answer.shown if size is None else size
        if self.outputs is not None:
            lines = [(row.column, row.kind, *row.coefficients) for row in target_coefficients(self, shown)]
            return pd.DataFrame(lines, columns=["column", "kind", *self.outputs])
        unknown = [f"{name}_error" for name in ("robust", "clustered") if getattr(self, f"{name}_errors") is None]
        return pd.DataFrame(coefficient_rows(self, shown)).drop(columns=["place", *unknown])

    def top_columns(self, size: int, count: int = 5) -> list[tuple[str, int]]:
        """(name, folds) of the columns, or groups, selected most often at a size."""
        counts, names = self.selection_counts[self.at(size)], self.names
        if self.units is not None:
            counts, names = self.units.once(counts), self.units.labels(names)
        order = np.argsort(-counts, kind="stable")[:count]
        return [(names[j], int(counts[j])) for j in order if counts[j] > 0]

    def to_dict(self) -> dict[str, Any]:
        """Columns of the table of sizes, by name; errors of held-out rows as the answer has them."""
        from pairflip.selection.decide import held_out

        sizes = self.sizes.tolist()
        every = [held_out(self, k) for k in sizes]
        errors = {"rmse": np.array([each.rmse for each in every])}
        if self.classes is not None:
            errors = {"misclassified": self.classes.misclassified}
        if self.ranked is not None:
            errors = {**(errors if self.survival is None else {}), self.loss.words.ranking: self.ranked}
        return {
            "size": self.sizes,
            **errors,
            "r2" if self.loss.squared else "explained_deviance": np.array([each.r2 for each in every]),
            "cv_error": self.cv_error,
            "cv_error_se": self.cv_error_se,
            "energy_per_row": self.energy_per_row,
            "unchanged": self.unchanged,
            "agreement": self.agreement,
            "chain_sd": np.std(self.chain_cv_error, axis=1),
            "energy": self.energies,
            **self.criteria,
            "best": self.sizes == self.best_size,
            "one_se": self.sizes == self.one_se_size,
            "columns": [self.columns(k) for k in sizes],
            **({} if self.units is None else {"groups": [self.chosen_groups(k) for k in sizes]}),
        }

    def to_pandas(self) -> pd.DataFrame:
        """One row per size: errors, agreement, criteria, columns of the final fit."""
        import pandas as pd

        return pd.DataFrame(self.to_dict())

    def to_polars(self) -> pl.DataFrame:
        """One row for each size, as a polars frame."""
        try:
            import polars as pl
        except ImportError:
            raise ImportError("to_polars needs polars; install it with: pip install polars") from None
        return pl.DataFrame(self.to_dict())

    def to_datatree(self) -> xr.DataTree:
        """Labelled arrays (xarray): groups ``size_curve``, ``held_out`` and ``annealing``."""
        from pairflip.selection.curve_file import to_datatree

        return to_datatree(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to one JSON file; `SizeCurve.load` reads it back."""
        from pairflip.selection.curve_file import save_curve

        save_curve(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> SizeCurve:
        """Read a curve that `save` wrote."""
        from pairflip.selection.curve_file import load_record

        return load_record(path)[0]

    def summary(self) -> str:
        """The answer with everything it has to say, then the table of sizes; `print(curve)` shows the short answer."""
        from pairflip.report.curve_tables import summary

        return summary(self)

    def publish(
        self, folder: str | PathLike[str], target: str | None = None, row_names: Sequence[object] | None = None
    ) -> list[Path]:
        """Write what a paper needs into a folder: tables, figures, paragraphs, and the model to use elsewhere.

        The model is the final fit of the recommended size (docs/publishing.md). Excel and ONNX files are written where
        openpyxl and onnx are installed: ``pip install 'pairflip[publish]'``.

        Parameters
        ----------
        folder : path
            Made if missing; files of the same name in it are replaced.
        target : str, optional
            What the target is called, y by default. Several targets have their own names.
        row_names : sequence, optional
            Names of the rows; by default numbers from 1.

        Returns
        -------
        list of Path
            What was written. ``paper.tex`` shows all of it.
        """
        from pairflip.publish import publish

        return publish(self, folder, target, row_names)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the error of held-out rows against size with matplotlib, on `ax` or in a new pyplot figure."""
        from pairflip.report.notebook import plot

        return plot(self, ax)

    def _repr_html_(self) -> str:
        """The answer, the figure and the table, for notebooks."""
        from pairflip.report.notebook import curve_html

        return curve_html(self)

    def __str__(self) -> str:
        from pairflip.report.curve_tables import summary

        return summary(self, full=False)

    def __repr__(self) -> str:
        sizes, best = ", ".join(map(str, self.sizes.tolist())), self.at(self.best_size)
        return (
            f"SizeCurve(sizes=[{sizes}], best_size={self.best_size}, one_se_size={self.one_se_size}, "
            f"cv_error={self.cv_error[best]:.6g} +- {self.cv_error_se[best]:.2g}, "
            f"{self.n_folds} folds, {self.n_rows} rows, {len(self.names)} columns)"
        )
