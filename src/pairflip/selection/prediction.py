r"""Predictions of new rows, and intervals from the folds' own fits (jackknife+, and CV+ with folds of several rows).

Row i was predicted by a fit that did not see it, with the error :math:`R_i = |y_i - \hat\mu_{-i}(x_i)|`. The same fit
predicts the new row x. With coverage c and n rows the interval goes from

.. math:: -q\{-\hat\mu_{-i}(x) + R_i\} \quad\text{to}\quad q\{\hat\mu_{-i}(x) + R_i\},

where q is the smallest value that at least c (n + 1) of the n rows do not exceed (Barber, Candes, Ramdas & Tibshirani,
2021; docs/predicting.md). A new row is unlike the training rows where its leverage :math:`h = x^T (X_S^T W X_S)^{-1} x`
is more than `OUTSIDE` times the largest :math:`h_i / (1 - w_i h_i)` of a training row beside the others.

The weighted average of models (`selection.averaging`) is one linear model; its interval goes as far to both sides as
c (n + 1) of the errors of rows predicted by models and weights that did not see them.

Where moments were kept of blocks of rows, the rows of a curve stand for blocks, whose errors are not distributed like
those of single rows. The n rows are then those of the sample that was kept beside (`SampledErrors`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairflip.inputs import ColumnsAbsent, as_new_rows
from pairflip.least_squares import Floats
from pairflip.losses.base import FoldCoefficients
from pairflip.losses.influence import scaled_columns
from pairflip.selection.criteria import HALF, auc, concordance
from pairflip.selection.curve import Average, FoldFits, SampledErrors, SizeCurve, TrainingRange
from pairflip.selection.decide import size_by
from pairflip.selection.settings import PREDICTORS
from pairflip.supports import ABSENT, Ints
from pairflip.text import listed

if TYPE_CHECKING:
    import pandas as pd

    from pairflip.losses import HeldOutJudge
    from pairflip.problem import SubsetProblem

INSTEAD = "the recommended columns predict in its place"
AVERAGE = -1
"""In place of a size: the weighted average of models."""
LEAST_COVERAGE = 0.5
"""Below it the two bounds might cross."""
KEPT_NUMBERS = 100_000
"""So many coefficients of folds are kept in a curve and its file (some 2 MB); of more, only those of a few sizes."""
OUTSIDE = 1.5
"""New rows are outside beyond so many times the largest leverage: with 1, some 2 % of new rows like 30 training rows
were called outside, with 1.5 fewer than 0.5 %."""
_FEW_OUTSIDE = 0.01  # no warning is given where no larger fraction of the new rows is outside
_LEAST_REST = 0.1  # least value of 1 - w h: a row that alone determines a coefficient must not hide all others
_DEPENDENT = 1e-9  # singular values that are smaller, of scaled columns, are rounding errors
_QUANTILES = 2000  # of the errors of sampled rows
_AT_A_TIME = 4_000_000  # values of new rows and held-out rows that are in memory together


@dataclass(frozen=True, eq=False)
class Prediction:
    """Predictions (M,) of new rows by the final fit of a size, and the interval from `lower` to `upper` of each.

    `coverage` is the fraction of new rows that the intervals are made to cover. With several `targets`, by name, all
    are (M, q), and the intervals of each target cover so many of its values. `outside` (M,) marks rows outside the
    range of the training rows, whose predictions are extrapolations; None in results of older versions.
    """

    prediction: Floats
    lower: Floats
    upper: Floats
    size: int
    coverage: float
    targets: list[str] | None = None
    outside: NDArray[np.bool_] | None = None

    def to_pandas(self) -> pd.DataFrame:
        """One row for each new row: prediction, lower, upper; with several targets, for each new row and target.

        ``outside_training_range`` is there where it is known.
        """
        import pandas as pd

        values = {"prediction": self.prediction, "lower": self.lower, "upper": self.upper}
        table = pd.DataFrame({name: each.ravel() for name, each in values.items()})
        if self.targets is not None:
            table.insert(0, "row", np.arange(self.prediction.size) // len(self.targets))
            table.insert(1, "target", self.targets * len(self.prediction))
        if self.outside is not None:
            table["outside_training_range"] = np.repeat(self.outside, 1 if self.targets is None else len(self.targets))
        return table


@dataclass(frozen=True)
class PredictionCheck:
    """How well rows were predicted whose target is known; what cannot be said of so few rows is NaN."""

    n_rows: int
    rmse: float
    r2: float  # about the mean of these rows
    inside: float | None  # fraction, of the rows that have intervals, that lie within them; None where none has
    wrong: float | None = None  # fraction put into another class
    auc: float | None = None  # of two classes
    concordance: float | None = None  # of survival times: Harrell's index
    chance: float | None = None  # of such a fraction inside, or a stranger one, for rows like those of the result


def predict(
    curve: SizeCurve, X: Any, size: int | None, interval: float | None, predict_with: str | None = None
) -> Floats | Prediction:
    """Predictions (M,) of new rows, or with `interval` a record that has bounds, too; warns of extrapolations."""
    predicted, far = predict_any(curve, X, size, interval, predict_with)
    warn_outside(far, outside_words, stacklevel=4)
    return predicted


def predict_any(
    curve: SizeCurve, X: Any, size: int | None, interval: float | None, predict_with: str | None = None
) -> tuple[Floats | Prediction, NDArray[np.bool_] | None]:
    """What `predict` gives, without a warning of these; and which rows lie outside the range of the training rows."""
    chosen = predicting_size(curve, size, predict_with)
    try:
        return _predict_by(curve, X, chosen, interval)
    except ColumnsAbsent:
        if chosen != AVERAGE or predict_with == "average":
            raise
        predicted = _predict_by(curve, X, curve.answer.size, interval)  # which says what it lacks
    warnings.warn(f"X lacks columns of the average: {INSTEAD}.", UserWarning, stacklevel=4)
    return predicted


def _predict_by(
    curve: SizeCurve, X: Any, size: int, interval: float | None
) -> tuple[Floats | Prediction, NDArray[np.bool_] | None]:
    """Predictions by the final fit of a size, or the average, and which rows lie outside the training rows' range."""
    used = used_columns(curve, size, folds=interval is not None)
    needs = "the folds chose (without interval, those of the model will do)"
    if interval is None or size == AVERAGE:
        needs = "the model needs" if size != AVERAGE else "the average needs (predict_with='subset' needs few)"
    rows = as_new_rows(X if curve.preparation is None else curve.preparation.transform(X), curve.names, used, needs)
    of_model = rows[:, np.isin(used, used_columns(curve, size, folds=False))]
    far = outside(curve, of_model, size)
    points = _points(curve, of_model, size)
    bounds = None if interval is None else _bounds(curve, rows, size, interval)
    if bounds is None or interval is None:
        return points, far
    targets = None if curve.targets is None else list(curve.targets.names)
    n_columns = _average_of(curve).columns.size if size == AVERAGE else size
    return Prediction(points, *bounds, n_columns, float(interval), targets, far), far


def predicting_size(curve: SizeCurve, size: int | None, predict_with: str | None) -> int:
    """The size whose final fit predicts, or `AVERAGE`: as asked for, else what the answer names; a size is a subset."""
    if predict_with is None or (predict_with == "auto" and size is not None):
        predict_with = "subset" if size is not None else "auto"
    if predict_with not in PREDICTORS:
        raise ValueError(f"predict_with is {predict_with!r}; expected {', '.join(map(repr, PREDICTORS))}.")
    if predict_with == "auto":
        predict_with = curve.answer.predictor
    if predict_with == "subset":
        size = curve.answer.size if size is None else size
        curve.at(size)  # refuses a size that was not tried
        return size
    if size is not None:
        raise ValueError(f"size is {size} and predict_with is 'average', which has no size; expected one or the other.")
    if curve.average is None:
        raise ValueError("the result has no average of models; expected predict_with='subset'.")
    return AVERAGE


def predict_known(curve: SizeCurve, X: Floats, size: int, interval: float | None) -> tuple[Floats, Floats, Floats]:
    """Predictions and bounds (M,) of rows X of `used_columns`, some values missing; NaN for what is left open."""
    everything, needed = (used_columns(curve, size, folds=folds) for folds in (True, False))
    of_model = X[:, np.isin(everything, needed)]
    point, lower, upper = (np.full((len(X), *curve.intercepts.shape[1:]), np.nan) for _ in range(3))
    known, whole = np.isfinite(of_model).all(axis=1), np.isfinite(X).all(axis=1)
    point[known] = _points(curve, of_model[known], size)
    if interval is not None and whole.any():
        lower[whole], upper[whole] = _bounds(curve, X[whole], size, interval)
    return point, lower, upper


def _points(curve: SizeCurve, X: Floats, size: int) -> Floats:
    """Predictions by the columns of the final fit, or by the average."""
    if size == AVERAGE:
        average, used = _average_of(curve), used_columns(curve, AVERAGE, folds=False)
        coef = np.zeros((used.size, *curve.intercepts.shape[1:]))
        coef[np.searchsorted(used, curve.always)] = average.always_coefs
        coef[np.searchsorted(used, average.columns)] = average.coefs
        return np.asarray(curve.loss.mean(X @ coef + average.intercept))
    coef = curve.coef(size)[used_columns(curve, size, folds=False)]
    return np.asarray(curve.loss.mean(X @ coef + curve.intercepts[curve.at(size)]))


def used_columns(curve: SizeCurve, size: int, *, folds: bool) -> Ints:
    """Columns that a prediction needs, sorted: of the final fit and, for intervals, of the folds; or of the average."""
    if size == AVERAGE:
        supports = [_average_of(curve).columns, curve.supports[curve.at(curve.answer.size)]]
    else:
        supports = [curve.supports[curve.at(size)], *([curve.fold_supports[curve.at(size)]] if folds else [])]
    used = np.unique(np.concatenate([curve.always, *(each.ravel() for each in supports)])).astype(np.int64)
    return np.asarray(used[used != ABSENT])


def with_predictors(curve: SizeCurve, problem: SubsetProblem, errors: HeldOutJudge) -> SizeCurve:
    """The curve with what its folds predict with, and the range of its training rows."""
    sizes = _saved_sizes(curve, curve.n_outputs * sum(supports.size for supports in curve.fold_supports))
    fits = [errors.fits(curve.fold_supports[curve.at(size)]) for size in sizes]
    columns = {size: used_columns(curve, size, folds=False) for size in curve.sizes.tolist()}
    with_range = _saved_sizes(curve, sum(each.size**2 for each in columns.values()))
    with_leverages = _saved_sizes(curve, KEPT_NUMBERS + 1) if curve.n_rows <= KEPT_NUMBERS else []
    left_out = [curve.held_out_rows[curve.held_out_fold == f] for f in range(curve.n_folds)]
    sampled = [
        sampled_errors(problem, left_out, fit, curve.fold_supports[curve.at(size)])
        for size, fit in zip(sizes, fits, strict=True)
    ]
    return replace(
        curve,
        fold_fits=FoldFits(
            sizes=np.array(sizes, dtype=np.int64),
            coefs=tuple(fit.coefs for fit in fits),
            always_coefs=tuple(fit.always_coefs for fit in fits),
            intercepts=np.stack([fit.intercepts for fit in fits]),
            sampled=tuple(filter(None, sampled)) or None,
        ),
        training_ranges=tuple(
            training_range(problem, each, size in with_leverages)
            if size in with_range and each.size**2 <= KEPT_NUMBERS and problem.condensed is None
            else None
            for size, each in columns.items()
        ),
    )


def sampled_errors(
    problem: SubsetProblem, left_out: Sequence[Ints], fits: FoldCoefficients, supports: Ints
) -> SampledErrors | None:
    """Errors of sampled rows by each fit that left their block out; None without a sample."""
    if problem.condensed is None or problem.condensed.sample is None:
        return None
    predicted, unseen = by_folds_of_sample(problem, left_out, fits, supports)
    row, fold = np.nonzero(unseen)
    return error_quantiles(problem.condensed.sample, predicted[row, fold], row, fold)


def by_folds_of_sample(
    problem: SubsetProblem, left_out: Sequence[Ints], fits: FoldCoefficients, supports: Ints
) -> tuple[Floats, NDArray[np.bool_]]:
    """Predictions (n, F, q) of sampled rows by each fold, and which folds left their blocks out (n, F)."""
    condensed = problem.condensed
    assert condensed is not None
    assert condensed.sample is not None
    sample, used = condensed.sample, np.unique(np.append(problem.always, supports[supports != ABSENT]))
    coefs, intercepts = _dense(used, problem.always, fits, supports)
    unseen = np.stack([np.isin(sample.block, condensed.block[rows]) for rows in left_out], axis=1)
    return np.einsum("nu,fuq->nfq", sample.values[:, used], coefs, optimize=True) + intercepts, unseen


def error_quantiles(sample: Any, predicted: Floats, row: Ints, fold: Ints | None = None) -> SampledErrors:
    """Quantiles of how far predictions (P, q) of sampled rows (P,), by folds (P,), are off."""
    errors, places = [], []
    q = predicted.shape[1]
    for y, each in zip(sample.values[:, -q:].T, predicted.T, strict=True):
        error = np.abs(y[row] - each)
        order = np.argsort(error, kind="stable")
        total, count = np.cumsum(sample.weight[row[order]]), min(_QUANTILES, row.size)
        reached = np.searchsorted(total, total[-1] * (np.arange(1, count + 1) / count - 1e-9))
        places.append(order[reached])
        errors.append(error[places[-1]])
    folds = None if fold is None else fold[np.stack(places, axis=1)]
    return SampledErrors(sample.key.size, np.stack(errors, axis=1), folds)


def _saved_sizes(curve: SizeCurve, numbers: int) -> list[int]:
    """Sizes of which a curve keeps what predictions need: all or, of too many numbers, those an answer may name."""
    sizes = {size_by(curve, rule) for rule in ("auto", str(curve.settings.get("choose", "auto")))}
    named = {0, curve.best_size, curve.one_se_size, *sizes} if numbers > KEPT_NUMBERS else curve.sizes
    return [size for size in curve.sizes.tolist() if size in named]


def training_range(problem: SubsetProblem, columns: Ints, with_leverages: bool = False) -> TrainingRange | None:
    """What tells whether new rows are like those of the problem, in the columns of a model; None without columns."""
    if columns.size == 0:
        return None
    Z, unit, means, norms, w = scaled_columns(problem, columns)
    _, s, V = np.linalg.svd(np.sqrt(w)[:, None] * Z, full_matrices=False)
    independent = s > _DEPENDENT * s[0]
    factor = V[independent].T / s[independent]
    of_constant = 0.0 if problem.center is None else 1.0 / float(w.sum())
    leverage = of_constant + np.sum((Z @ factor) ** 2, axis=1)
    beside = leverage / np.maximum(1.0 - w * leverage, _LEAST_REST)
    leverages = None
    if with_leverages:
        leverages = np.zeros(problem.n_rows)
        leverages[problem.sample_weight > 0] = w * leverage
    return TrainingRange(means * unit, norms * unit, factor, OUTSIDE * float(beside.max()) - of_constant, leverages)


def outside(curve: SizeCurve, X: Floats, size: int) -> NDArray[np.bool_] | None:
    """Which new rows lie outside the range of the training rows; None where the result does not know that."""
    if curve.training_ranges is None:
        return None
    X, size = _of_subset(curve, X, size)
    known = curve.training_ranges[curve.at(size)]
    if known is None:
        return None if X.shape[1] else np.zeros(len(X), dtype=bool)
    return known.outside(X)


def _of_subset(curve: SizeCurve, X: Floats, size: int) -> tuple[Floats, int]:
    """Columns by which rows are like others: in those of the average, more than there are rows, no row is."""
    if size != AVERAGE:
        return X, size
    used, size = used_columns(curve, AVERAGE, folds=False), curve.answer.size
    return X[:, np.isin(used, used_columns(curve, size, folds=False))], size


def training_rows(curve: SizeCurve, y: Floats, X: Floats, size: int) -> int:
    """How many rows with the targets y (M,), or times and events (M, 2), are those that the curve was made from.

    They are all of them or none, in any order: by their targets and the moments of the model's columns X (M, d).
    """
    if not curve.single_rows or curve.targets is not None:
        return 0
    q, known = curve.n_outputs, curve.training_ranges
    X, size = _of_subset(curve, X, size)
    observed = curve.observed if curve.survival is None else curve.survival.times
    seen = np.full(curve.n_rows, np.nan)
    seen[curve.held_out_rows[::q]] = observed.reshape(-1, q).argmax(axis=1) if q > 1 else observed
    given = y if y.ndim == 1 else y[:, 0]
    same = np.isfinite(X).all(axis=1) & np.isin(given, seen)
    if not np.array_equal(np.sort(given[same]), np.sort(seen)):
        return 0
    moments = None if known is None else known[curve.at(size)]
    fits = moments.fits(X[same]) if moments is not None else np.unique(seen).size > seen.size // 2
    return seen.size if fits else 0


def outside_words(outside: NDArray[np.bool_], names: Sequence[str] | None = None) -> str:
    """The sentence on rows outside the range of the training rows: by their names, or numbers from 1."""
    rows = np.flatnonzero(outside).tolist()
    verb, predictions, noun = "lie", "their predictions are extrapolations", "rows"
    if len(rows) == 1:
        verb, predictions, noun = "lies", "its prediction is an extrapolation", "row"
    few = ", ".join(str(row + 1) for row in rows[:3]) + (", ..." if len(rows) > 3 else "")
    named = f"{noun} {few}" if names is None else listed([names[row] for row in rows])
    return (
        f"{len(rows):,} of {outside.size:,} rows {verb} outside the range of the training rows (leverage above "
        f"{OUTSIDE:g} times the largest one there): {predictions} ({named})."
    )


def outside_of_fold(outside: NDArray[np.bool_]) -> str:
    """The same sentence without numbers: Python shows it once for all folds of a cross validation."""
    return (
        f"some rows lie outside the range of the training rows (leverage above {OUTSIDE:g} times the largest one "
        "there): their predictions are extrapolations."
    )


def warn_outside(outside: NDArray[np.bool_] | None, words: Callable[[NDArray[np.bool_]], str], stacklevel: int) -> None:
    """Warn of rows outside the range of the training rows, unless they are as few as among rows of the same kind."""
    if outside is not None and outside.size and np.mean(outside) > _FEW_OUTSIDE:
        warnings.warn(words(outside), UserWarning, stacklevel=stacklevel)


def why_no_interval(curve: SizeCurve, size: int, interval: float) -> str | None:
    """One sentence on why there cannot be such intervals at a size, or of the average; None where there can."""
    if isinstance(interval, bool) or not LEAST_COVERAGE <= interval < 1:
        return f"interval is {interval}; expected the fraction to cover, from {LEAST_COVERAGE} to below 1, such as 0.9."
    if not curve.loss.squared:
        return (
            f"interval is {interval:g}, but predictions are those of loss={curve.loss.name!r}: probabilities of a "
            "class, means of counts and risks have no such interval; leave the interval out."
        )
    fits = curve.fold_fits
    if not curve.single_rows and (fits is None or fits.sampled is None):
        return (
            f"interval is {interval:g}, but the result comes from moments alone, which do not show how errors of "
            "single rows vary; leave the interval out, or select from the rows (SubsetProblem.from_blocks)."
        )
    if size != AVERAGE and fits is None:
        return (
            "the result was saved by an older version and lacks the fits of its folds, so it gives predictions but no "
            "intervals; leave the interval out, or select again."
        )
    if size != AVERAGE and fits is not None and size not in fits.sizes:
        sizes = ", ".join(map(str, fits.sizes.tolist()))
        return (
            f"size is {size}, but of this many folds the result keeps fits of sizes {sizes} only; take one of these "
            f"for intervals, or select again with size {size} alone."
        )
    n = _rows_behind(curve, size)
    if _needed(interval, n) > n:
        return (
            f"interval is {interval:g}, but {n} held-out rows give intervals of coverage up to "
            f"{np.floor(1000 * n / (n + 1)) / 1000:g} only; expected at most that."
        )
    return None


def _rows_behind(curve: SizeCurve, size: int) -> int:
    """How many rows the intervals of a size, or of the average, are made of."""
    fits = curve.fold_fits
    if fits is not None and fits.sampled is not None:
        return fits.sampled[0].rows
    return _average_of(curve).rows.size if size == AVERAGE else np.unique(curve.held_out_rows).size


def chance_of(curve: SizeCurve, size: int, interval: float, inside: int, of: int) -> float:
    """Probability that so many of some new rows, or a stranger number, lie inside intervals: beta-binomial, two-sided.

    As if the size had been fixed and all rows, new ones and those of the result, had been drawn alike.
    """
    from scipy.special import betaln

    n = _rows_behind(curve, size)
    a, x = np.ceil(_needed(interval, n)), np.arange(of + 1.0)
    b = n + 1 - a
    each = np.exp(betaln(x + a, of - x + b) - betaln(a, b) - betaln(x + 1, of - x + 1)) / (of + 1)
    return float(min(1.0, 2.0 * min(each[: inside + 1].sum(), each[inside:].sum())))


def compare(
    observed: Floats,
    prediction: Floats,
    bounds: Sequence[Floats] | None,
    *,
    classes: bool = False,
    chance: Callable[[int, int], float] | None = None,
) -> PredictionCheck | None:
    """Predictions and truth; rows in which either is not a number do not count. None where no row is left.

    `chance` says how probable it is that so many of so many rows, or a stranger number, lie inside their intervals.
    """
    known = np.isfinite(np.column_stack([observed, prediction])).all(axis=1)
    if not known.any():
        return None
    y, p, nan = observed[known], prediction[known], float("nan")
    if y.ndim == 2:  # survival times and events
        return PredictionCheck(p.size, nan, nan, None, concordance=concordance(y, p, np.ones(p.size)))
    if p.ndim == 2:  # probabilities of three and more classes
        return PredictionCheck(y.size, nan, nan, None, wrong=float(np.mean(np.argmax(p, axis=1) != y)))
    squared, about, inside, by_chance = float(np.mean((y - p) ** 2)), float(np.mean((y - y.mean()) ** 2)), None, None
    if bounds is not None and (bounded := known & np.isfinite(bounds[0])).any():
        within = ((bounds[0] <= observed) & (observed <= bounds[1]))[bounded]
        inside = float(np.mean(within))
        by_chance = None if chance is None else chance(int(within.sum()), within.size)
    r2 = 1.0 - squared / about if about > 0 else nan
    wrong = float(np.mean((p > HALF) != (y > HALF))) if classes else None
    area = auc(y, p, np.ones(y.size)) if classes else None
    return PredictionCheck(y.size, squared**0.5, r2, inside, wrong, area, chance=by_chance)


def _needed(interval: float, n: int) -> float:
    """How many of n rows must not exceed a bound; rounding must not ask for one more."""
    return interval * (n + 1) - 1e-9 * n


def _bounds(curve: SizeCurve, X: Floats, size: int, interval: float) -> tuple[Floats, Floats]:
    """Lower and upper bounds (M,) of new rows; (M, q) of several targets, each by its own errors."""
    refusal = why_no_interval(curve, size, interval)
    if refusal is not None:
        raise ValueError(refusal)
    if size == AVERAGE:
        return _average_bounds(curve, X, interval)
    fits, supports = curve.fold_fits, curve.fold_supports[curve.at(size)]
    assert fits is not None
    saved = int(np.flatnonzero(fits.sizes == size)[0])
    of_folds = FoldCoefficients(fits.coefs[saved], fits.always_coefs[saved], fits.intercepts[saved])
    coefs, intercepts = _dense(used_columns(curve, size, folds=True), curve.always, of_folds, supports)
    q, fold = curve.n_outputs, curve.held_out_fold[:: curve.n_outputs, None]
    if fits.sampled is not None:
        sampled = fits.sampled[saved]
        assert sampled.fold is not None
        n, error, fold, shared = sampled.rows, sampled.error, sampled.fold, np.ones(len(sampled.error))
    else:
        error = np.abs(curve.observed - curve.predictions[curve.at(size)]).reshape(fold.size, q)
        error = error * (1.0 if curve.targets is None else curve.targets.scales[fold[:, 0]])
        # Each row counts once: where it was predicted several times, its values share its weight.
        _, row, times = np.unique(curve.held_out_rows[::q], return_inverse=True, return_counts=True)
        n, shared = times.size, curve.weights[::q] / times[row]
    weight, needed = shared * (n / shared.sum()), _needed(interval, n)  # all weigh n together
    lower, upper = np.empty((len(X), q)), np.empty((len(X), q))
    step = max(1, _AT_A_TIME // len(error))
    for first in range(0, len(X), step):
        part = slice(first, first + step)
        for t, of_row in enumerate(np.broadcast_to(fold, error.shape).T):
            by_row = (X[part] @ coefs[..., t].T + intercepts[:, t])[:, of_row]
            upper[part, t] = _reached(by_row + error[:, t], weight, needed)
            lower[part, t] = -_reached(error[:, t] - by_row, weight, needed)
    shape = len(X), *curve.intercepts.shape[1:]
    return lower.reshape(shape), upper.reshape(shape)


def _average_bounds(curve: SizeCurve, X: Floats, interval: float) -> tuple[Floats, Floats]:
    """The average minus and plus the error that enough of the rows do not exceed when they had no part in it."""
    average, points = _average_of(curve), _points(curve, X, AVERAGE)
    n, weights = average.rows.size, average.weights
    errors = np.abs(average.observed - average.predictions).reshape(n, -1)
    if average.sampled is not None:
        n, errors, weights = average.sampled.rows, average.sampled.error, np.ones(len(average.sampled.error))
    reached = _reached(np.ascontiguousarray(errors.T), weights * (n / weights.sum()), _needed(interval, n))
    reached = reached if points.ndim == 2 else reached[0]
    return points - reached, points + reached


def _average_of(curve: SizeCurve) -> Average:
    assert curve.average is not None  # `predicting_size` refuses a curve without
    return curve.average


def _dense(used: Ints, always: Ints, fits: FoldCoefficients, supports: Ints) -> tuple[Floats, Floats]:
    """Coefficients (F, U, q) of the `used` columns, zero where a fold (F, k) did not choose them; intercepts (F, q)."""
    intercepts, fold = fits.intercepts.reshape(len(supports), -1), np.arange(len(supports))[:, None]
    q = intercepts.shape[1]
    coefs = np.zeros((len(supports), used.size, q))
    coefs[fold, np.searchsorted(used, always)[None, :]] = fits.always_coefs.reshape(len(supports), -1, q)
    chosen = supports != ABSENT
    chosen_coefs = fits.coefs.reshape(*supports.shape, q)[chosen]
    coefs[np.broadcast_to(fold, supports.shape)[chosen], np.searchsorted(used, supports[chosen])] = chosen_coefs
    return coefs, intercepts


def _reached(values: Floats, weight: Floats, needed: float) -> Floats:
    """For each line of (m, P), the smallest value such that those up to it weigh `needed`."""
    if np.ptp(weight) <= 1e-12 * weight[0]:
        place = int(np.ceil(needed / weight[0])) - 1
        return np.asarray(np.partition(values, place, axis=1)[:, place])
    order = np.argsort(values, axis=1, kind="stable")
    total = np.cumsum(weight[order], axis=1)
    place = np.argmax(total >= needed, axis=1)
    return np.asarray(np.take_along_axis(values, np.take_along_axis(order, place[:, None], 1), 1)[:, 0])
