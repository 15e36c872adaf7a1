"""Parts of a `SizeCurve`: small records of arrays, each made by the file that its name says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pairflip.least_squares import Floats
from pairflip.search.prove import Proof

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class StandIns:
    """Columns that could stand in for a chosen one: for each of `columns` (U,), the most correlated `others` (U, T).

    `correlation` (U, T) is signed, and computed after what is always in the model was projected out; unused places
    hold column -1.
    """

    columns: Ints
    others: Ints
    correlation: Floats

    def of(self, column: int) -> list[tuple[int, float]]:
        """(other column, correlation) of one chosen column, the strongest first."""
        at = np.flatnonzero(self.columns == column)
        if at.size == 0:
            return []
        pairs = zip(self.others[at[0]].tolist(), self.correlation[at[0]].tolist(), strict=True)
        return [(other, r) for other, r in pairs if other >= 0]


@dataclass(frozen=True)
class AnnealCurves:
    """How the final fits were annealed: `betas` (S, steps), `energy` and `acceptance` (S, chains, steps).

    NaN for a size that needed no annealing (all columns).
    """

    betas: Floats
    energy: Floats
    acceptance: Floats


@dataclass(frozen=True)
class FoldFits:
    """What the folds predict with, for some `sizes` (T,): each fold's own columns, fitted on its training rows.

    Coefficients of `SizeCurve.fold_supports` are T arrays (F, k), those of forced columns T arrays (F, A), in the units
    of the table; `intercepts` is (T, F). With q targets each has one more axis, of q.
    """

    sizes: Ints
    coefs: tuple[Floats, ...]
    always_coefs: tuple[Floats, ...]
    intercepts: Floats


@dataclass(frozen=True)
class TrainingRange:
    r"""Whether new rows lie among the rows that a model of d columns was fitted on, by their leverage.

    The leverage of a row x beside the training rows is :math:`\|F^T (x - m) / s\|^2` plus what the constant adds,
    which is the same for every row: `means` m and `scales` s (d,), `factor` F (d, r). Rows above `limit` are outside.
    """

    means: Floats
    scales: Floats
    factor: Floats
    limit: float

    def outside(self, X: Floats) -> NDArray[np.bool_]:
        """Which rows of X (M, d) are outside; not those in which a value is missing."""
        with np.errstate(all="ignore"):
            scaled = np.clip((X - self.means) / self.scales, -1e100, 1e100)  # infinities would cancel to not-a-number
            leverage = np.sum((scaled @ self.factor) ** 2, axis=1)
        return np.asarray(leverage > self.limit)


@dataclass(frozen=True)
class StandardErrors:
    """Ordinary standard errors of the final fits, conditional on their columns: not-a-number where rows are too few.

    `chosen`: S arrays (k,); `always` (S, A); `intercepts` (S,).
    """

    chosen: tuple[Floats, ...]
    always: Floats
    intercepts: Floats


@dataclass(frozen=True)
class ClassErrors:
    """How well classes are told apart on held-out rows, at each size (S,).

    Attributes
    ----------
    labels : c str
        Names of the classes; of two, the second one is the event, whose probability is predicted.
    shares : (c,)
        Fractions of the rows, by weight, that are of each class.
    misclassified : (S,)
        Fraction of the rows whose most probable class (of two, that with a probability above one half) is not theirs.
    auc : (S,) or None
        Area under the ROC curve; 0.5 is what chance gives. None for more than two classes.
    """

    labels: list[str]
    shares: Floats
    misclassified: Floats
    auc: Floats | None

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
    """How well survival times are ranked on held-out rows.

    Attributes
    ----------
    times : (P,)
        Of the held-out rows; `observed` of the curve says whether the event happened then.
    risks : (S, P)
        Their linear predictors, from the means of the training rows, at each size.
    concordance : (S,)
        Harrell's index of all held-out rows together; 0.5 is what chance gives.
    """

    times: Floats
    risks: Floats
    concordance: Floats


@dataclass(frozen=True)
class NullCheck:
    """What the same selection finds where there is nothing to find: one value for each shuffled target (n,).

    Attributes
    ----------
    size, pairs : int
        Number of columns; pairs of half-samples.
    r2 : (n,)
        Explained variance of held-out rows.
    set_frequency, overlap : (n,)
        How often half-samples select exactly the columns selected on all rows; the fraction of these that they select.
    highest : (n,)
        The largest selection frequency of any column.
    """

    size: int
    pairs: int
    r2: Floats
    set_frequency: Floats
    overlap: Floats
    highest: Floats


@dataclass(frozen=True)
class Proved:
    """Proofs of the final fits: for each size of the curve one, or None where that would have taken too long."""

    proofs: tuple[Proof | None, ...]

    def __getitem__(self, at: int) -> Proof | None:
        return self.proofs[at]

    def __len__(self) -> int:
        return len(self.proofs)


@dataclass(frozen=True)
class OuterError:
    """How rows were predicted that had no part in choosing anything: a cross validation around the whole selection.

    Attributes
    ----------
    error, error_se, r2 : float
        Half the mean squared error, as `cv_error`; its standard error over rows; the fraction of variance explained.
    sizes, supports : (F,), F arrays
        Numbers of columns and columns that were chosen without each of the F folds; size 0 where nothing predicted.
    rows, fold, predictions : (P,)
        Rows that were set aside, the fold of each, and how they were predicted; predictions are (P, q) of q targets.
    target_rmse, target_r2 : (q,) or None
        Of each of several targets, in its own unit; the error above is then the mean over the targets, in units of
        their standard deviations on the rows that were not set aside.
    """

    error: float
    error_se: float
    r2: float
    sizes: Ints
    supports: tuple[Ints, ...]
    rows: Ints
    fold: Ints
    predictions: Floats
    target_rmse: Floats | None = None
    target_r2: Floats | None = None

    @property
    def rmse(self) -> float:
        """Root mean square error in the unit of the target."""
        return float(np.sqrt(2.0 * self.error))


@dataclass(frozen=True)
class RidgeSurface:
    """What was tried where the ridge was chosen with the size: R relative ridge terms at the S sizes of the curve.

    `ridges` (R,); `errors` (R, S), cv_error; `predictions` (R, S, P) of held-out rows (None for one ridge, and where a
    file would have very many of them); `ridge`, the one that was chosen: that of the curve.
    """

    ridges: Floats
    errors: Floats
    predictions: Floats | None
    ridge: float


@dataclass(frozen=True)
class TargetErrors:
    """Errors of held-out rows, target by target, where there are several.

    `names` (q); `cv_error` (S, q) in units of the targets' standard deviations on the training rows, whose mean is the
    curve's cv_error; `rmse` (S, q) in the units of the targets; `r2` (S, q), one minus the squared error over that of
    the mean. `means` and `scales` (F, q) are those of each fold's training rows (scales of 1: not scaled).
    """

    names: list[str]
    cv_error: Floats
    rmse: Floats
    r2: Floats
    means: Floats
    scales: Floats


@dataclass(frozen=True)
class Inclusion:
    """How probable it is that columns belong in the model, averaged over all models: what `posterior` said.

    Attributes
    ----------
    columns, probability, error : (n,)
        Columns that could be chosen, their probabilities, and Monte Carlo errors (0 where all models were visited).
    coef_mean, coef_sd : (n,)
        Coefficients, averaged over models.
    prior : float
        The probability of each column before the data.
    assumptions : str
        What the probabilities are conditional on, in one sentence.
    """

    columns: Ints
    probability: Floats
    error: Floats
    coef_mean: Floats
    coef_sd: Floats
    prior: float
    assumptions: str
