r"""What a curve supports: does anything predict, how many columns to recommend, and what errors to expect.

Rules and constants were chosen by simulation (`python -m benchmarks honesty`, docs/decisions/020 and 029).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri

from pairflip.least_squares import Floats
from pairflip.losses.held_out import mean_and_error
from pairflip.selection.criteria import auc, concordance
from pairflip.selection.curve import ChosenError, SizeCurve
from pairflip.supports import Ints

UNCERTAIN = 0.3
"""Where a smaller fraction of many chains reached the best set of their fold, the search is uncertain at that size."""
CLEAR = 1.0
"""Columns are called predictive where the error is so many standard errors lower than that of the mean."""
CHANCE = 0.05
"""Columns are called predictive where no larger fraction of shuffled targets is fitted as well."""
LEVEL = 0.9
DRAWS = 1000
WIDER = 15.0
"""The interval is widened by 1 + WIDER / U for U independent rows (`corrected_error`)."""
UPWARD = 1.5
"""The upper end of the error is wider by 1 + UPWARD g, with the skewness g of `corrected_error`."""
FEWEST = 10
"""Independent rows (or blocks of rows) below which nothing is said."""
MOST_UNITS = 2000
"""More independent rows are drawn in random groups, so that the time does not grow with their number."""
_TOGETHER = 2**22  # numbers of a draw that are in memory at a time
_AUC_DRAWS = 200


@dataclass(frozen=True)
class HeldOut:
    """How held-out rows are predicted at a size."""

    rmse: float  # in the unit of the target
    r2: float  # one minus the squared error (for classes and counts: the deviance) over that of the mean


def held_out(curve: SizeCurve, size: int) -> HeldOut:
    """Root mean square error and R2 of the held-out predictions, rows weighted; below 0 the mean predicts better."""
    predictions, w = curve.predictions[curve.at(size)], curve.weights
    rmse = float(np.sqrt(np.average((curve.observed - predictions) ** 2, weights=w)))
    error, total = float(np.average(curve.row_errors(predictions), weights=w)), variance_of_target(curve)
    return HeldOut(rmse, 1.0 - error / total if total > 0 else float("nan"))


def variance_of_target(curve: SizeCurve) -> float:
    """Variance of held-out targets, rows weighted; or their mean deviance by the mean rate or without columns."""
    if "error_of_the_mean" in curve.facts:
        return float(curve.facts["error_of_the_mean"])
    mean = np.full(curve.observed.size, np.average(curve.observed, weights=curve.weights))
    return float(np.average(curve.row_errors(mean), weights=curve.weights))


def by_unit(values: Floats, unit: Ints, weights: Floats) -> tuple[Floats, Floats]:
    """Weighted sums (..., U) of what held-out rows have (..., P), and weights (U,), over independent units (P,)."""
    n = int(unit.max()) + 1
    total, rows = np.bincount(unit, weights, n), (weights * values).reshape(-1, unit.size)
    sums = np.stack([np.bincount(unit, row, n) for row in rows]).reshape(*values.shape[:-1], n)
    return np.asarray(sums[..., total > 0]), np.asarray(total[total > 0])


def difference(curve: SizeCurve, worse: int, better: int) -> tuple[float, float]:
    """How much lower cv_error is at one size than at another, and the standard error of that difference."""
    return paired_difference(curve, curve.predictions[[curve.at(worse), curve.at(better)]])


def paired_difference(curve: SizeCurve, predictions: Floats) -> tuple[float, float]:
    """How much lower the error of the second of two predictions (2, P) of held-out rows is, row by row, and its SE."""
    errors = curve.row_errors(predictions)
    mean, error = mean_and_error((errors[0] - errors[1])[None], curve.weights, curve.held_out_unit)
    return float(mean[0]), float(error[0])


def predicts(curve: SizeCurve) -> bool:
    """Whether some number of columns predicts clearly better than none, so that it may be called a finding.

    Few shuffled targets are fitted as well; held-out errors are lower than without columns by more than a standard
    error; and so is the error corrected for the choice of the size. Where rows are ranked, few rows must not decide:
    the corrected AUC, or concordance, is above one half.
    """
    best = curve.best_size
    if best == 0:
        return False
    gain, error = difference(curve, 0, best)
    two_classes = curve.classes is not None and not curve.classes.several
    if gain <= (0.0 if two_classes else CLEAR * error) or curve.facts.get("p_value", 0.0) > CHANCE:
        return False
    corrected = curve.corrected
    if corrected is not None and corrected.ranked is not None:
        return corrected.ranked[0] > 0.5
    return corrected is None or corrected.error < min(float(curve.cv_error[curve.at(0)]), corrected.variance)


def recommended_size(curve: SizeCurve) -> int:
    """The number of columns to keep, by the rule of the curve: 0 if nothing predicts."""
    return chosen_size(curve) if predicts(curve) else 0


def rule_of(curve: SizeCurve) -> str:
    """The rule by which the size is chosen, one of `settings.RULES`; "auto" where no other was asked for."""
    return str(curve.settings.get("choose", "auto"))


def chosen_size(curve: SizeCurve, rule: str | None = None) -> int:
    """The number of columns that a rule (None: that of the curve) takes where columns predict at all."""
    at = choose(curve.cv_error, curve.cv_error_se, curve.sizes, _applied(curve, rule))
    return int(curve.sizes[at])


def _applied(curve: SizeCurve, rule: str | None) -> str | int:
    """What `choose` needs to know of a rule: "best", "one_se", or the index of the size that a criterion takes."""
    rule = rule_of(curve) if rule is None else rule
    if rule in curve.criteria:
        return int(np.argmin(np.where(curve.sizes > 0, curve.criteria[rule], np.inf)))
    # Where single rows are left out, the lowest error is often low by luck: "one_se" was better in simulations.
    return ("one_se" if single_rows(curve) else "best") if rule == "auto" else rule


def choose(mean: Floats, error: Floats, sizes: Ints, rule: str | int) -> Any:
    """Indices (...) of the sizes that a rule takes by errors (..., S), where columns predict at all."""
    if isinstance(rule, int):
        return np.full(mean.shape[:-1], rule)
    with_columns = np.where(sizes > 0, mean, np.inf)
    best = np.argmin(with_columns, axis=-1)[..., None]
    if rule == "best":
        return best[..., 0]
    limit = np.take_along_axis(mean, best, axis=-1) + np.take_along_axis(error, best, axis=-1)
    return np.argmax(with_columns <= limit, axis=-1)


def single_rows(curve: SizeCurve) -> bool:
    """Whether every row was left out alone, once."""
    return bool(curve.n_folds == np.unique(curve.held_out_rows).size == curve.held_out_rows.size // curve.n_outputs)


def size_to_show(curve: SizeCurve) -> int:
    """The recommended size; where nothing predicts, the size above 0 with the lowest error, since 0 has no columns."""
    recommended = recommended_size(curve)
    tried = [int(k) for k in np.sort(curve.sizes) if k > 0]
    if recommended or not tried:
        return recommended
    return min(tried, key=lambda k: float(curve.cv_error[curve.at(k)]))


def sizes_by_repetition(curve: SizeCurve) -> list[int]:
    """The size with the lowest error in each repetition of the folds; empty where every row is held out once."""
    row, q = curve.held_out_rows, curve.n_outputs
    times, rest = divmod(row.size, q * np.unique(row).size)
    if rest or times < 2 or curve.n_folds % times:
        return []
    repetition = curve.held_out_fold // (curve.n_folds // times)
    if np.unique(np.stack([repetition, row]), axis=1).shape[1] * q != row.size:  # splits that the user gave
        return []
    errors = curve.weights * curve.row_errors(curve.predictions)
    sums = np.stack([np.bincount(repetition, each, times) for each in errors])
    return [int(size) for size in curve.sizes[np.argmin(sums, axis=0)]]


def baseline(curve: SizeCurve) -> str:
    """What predicts at size 0, in words."""
    if curve.always.size:
        return "forced columns alone"
    if curve.classes is not None:
        return "class frequencies alone"
    if curve.survival is not None:
        return "same risk for every row"
    return "mean alone" if curve.settings.get("center", "fold") is not None else "zero for every row"


def least_agreement(curve: SizeCurve) -> float:
    """Fraction of the chains that must agree for a search to count as certain; 0 for one chain, which tells nothing."""
    chains = curve.chain_cv_error.shape[1]
    return max(UNCERTAIN, 1.2 / chains) if chains > 1 else 0.0


def uncertain(curve: SizeCurve, size: int) -> bool:
    """Whether so few chains agree at this size that better columns may have been missed."""
    return bool(curve.agreement[curve.at(size)] < least_agreement(curve))


# The error of the size that was chosen --------------------------------------------------------------------------------


class Ranking(NamedTuple):
    """How well rows are ranked, where that is told of errors."""

    name: str  # "auc" or "concordance"
    measure: Callable[[Floats, Floats, Floats], float]  # (observed, scores, weights) to a number, 0.5 by chance
    observed: Floats  # (P, ...)
    scores: Floats  # (R, S, P)


class Candidates(NamedTuple):
    """What was chosen from, by errors of rows that were held out: R ridge terms at S sizes."""

    errors: Floats  # (R, S, P): what each row adds to twice the error
    weights: Floats  # (P,)
    unit: Ints  # (P,): the independent unit of each row, from 0 on
    sizes: Ints  # (S,)
    rule: str | int = "best"  # "one_se", or the index of the size that is taken whatever the errors are


def chosen_error(curve: SizeCurve, rule: str | None = None) -> ChosenError | None:
    """The corrected error of the size that a rule (None: that of the curve) takes; None if rows are too few to say."""
    size = chosen_size(curve, rule)
    predictions, ridge = curve.predictions[None], 0
    if curve.ridge_predictions is not None and curve.ridges is not None:
        predictions, ridge = curve.ridge_predictions, int(np.argmax(curve.ridges == curve.ridge))
    ranking = None
    if curve.survival is not None:  # risks are known for the ridge that was chosen, and hardly depend on it
        times = np.column_stack([curve.survival.times, curve.observed])
        scores = np.broadcast_to(curve.survival.risks, predictions.shape)
        ranking = Ranking(curve.loss.words.ranking, concordance, times, scores)
    elif curve.ranked is not None:
        ranking = Ranking(curve.loss.words.ranking, auc, curve.observed, predictions)
    return corrected_error(
        Candidates(
            curve.row_errors(predictions), curve.weights, curve.held_out_unit, curve.sizes, _applied(curve, rule)
        ),
        (ridge, curve.at(size)),
        variance=0.5 * variance_of_target(curve),
        squares=curve.loss.squared,
        ranking=ranking,
    )


def corrected_error(
    candidates: Candidates, chosen: tuple[int, int], *, variance: float, squares: bool, ranking: Ranking | None
) -> ChosenError | None:
    r"""The error of the chosen (ridge, size), corrected for the choice; None if rows are too few to say.

    Draw the rows with replacement, choose by the errors of the rows drawn, and take the error of that choice on the
    others (bootstrap bias-corrected cross validation, Tsamardinos, Greasidou & Borboudakis, Machine Learning 107,
    2018): the corrected error is the mean over many draws.

    The interval comes from the spread of these errors on a logarithmic scale, widened by :math:`1 + c / U` for U rows,
    because of few rows the spread is too small more often than too large. Large errors are rare and missing from many
    samples: the upper end is wider, by :math:`1 + a\, g` with :math:`g = \mathrm{skewness} / \sqrt U` of the rows'
    errors. For :math:`R^2`, whose numerator and denominator share these rows, the interval is symmetric on that scale.
    """
    sums, total = by_unit(candidates.errors, candidates.unit, candidates.weights)
    if total.size < FEWEST:
        return None
    row_means, group = sums[chosen] / total, np.arange(total.size)
    told = 0.5 * float(sums[chosen].sum() / total.sum())
    if total.size > MOST_UNITS:  # rows in no order, put together, vary as much
        group = np.random.default_rng([0, total.size]).permutation(total.size) % MOST_UNITS
        sums, total = by_unit(sums / total, group, total)
    scores, choices, outside = _outside_scores(sums, total, candidates.sizes, candidates.rule)
    error = float(scores.mean())
    quantile, spread = float(ndtri(0.5 + LEVEL / 2.0)), 0.0
    if np.all(scores > 0):
        spread = quantile * float(np.std(np.log(scores))) * (1.0 + WIDER / total.size)
    off = row_means - np.mean(row_means)
    scale = float(np.sqrt(np.mean(off**2)))
    skewness = max(0.0, float(np.mean((off / scale) ** 3))) if scale > 0 else 0.0
    return ChosenError(
        size=int(candidates.sizes[chosen[1]]),
        error=error,
        low=error * float(np.exp(-spread)),
        high=error * float(np.exp((1.0 + UPWARD * skewness / np.sqrt(off.size)) * spread)),
        told=told,
        variance=variance,
        level=LEVEL,
        squares=squares,
        factor=float(np.exp(spread)),
        ranked=None if ranking is None else _outside_rank(candidates, ranking, choices, outside[:, group], quantile),
        ranking="" if ranking is None else ranking.name,
    )


def _outside_rank(
    candidates: Candidates, ranking: Ranking, choices: Ints, outside: NDArray[np.bool_], quantile: float
) -> tuple[float, float, float] | None:
    """Mean AUC or concordance of `choices` (draws, 2) on units not drawn (draws, U), and an interval by logits."""
    unit = np.unique(candidates.unit, return_inverse=True)[1]
    observed, scores, weights = ranking.observed, ranking.scores, candidates.weights
    draws = zip(choices[: len(outside)], outside[:, unit], strict=True)
    areas = np.array([ranking.measure(observed[r], scores[at, k][r], weights[r]) for (at, k), r in draws])
    areas = areas[np.isfinite(areas)]
    if areas.size < len(outside) // 2:  # hardly any draw leaves rows of both classes
        return None
    middle, spread = logit(np.clip(areas.mean(), 1e-3, 1 - 1e-3)), np.std(logit(np.clip(areas, 1e-2, 1 - 1e-2)))
    low, high = expit(middle - quantile * spread), expit(middle + quantile * spread)
    return float(areas.mean()), float(low), float(high)


def _outside_scores(
    sums: Floats, total: Floats, sizes: Ints, rule: str | int
) -> tuple[Floats, Ints, NDArray[np.bool_]]:
    """Half the mean squared error, on the units that were not drawn, of what is chosen by those that were (draws,).

    Where there are several ridge terms, the one with the lowest error at any size is chosen first, as it was. Also the
    choices (draws, 2), ridge and size; and of the first draws, which units were not drawn (`_AUC_DRAWS`, U).
    """
    n, scores, choices, not_drawn = total.size, [], [], []
    squares, rng = sums**2 / total, np.random.default_rng(0)
    step = max(1, _TOGETHER // (n + sums.shape[0] * sums.shape[1]))
    for first in range(0, DRAWS, step):
        counts = rng.multinomial(n, np.full(n, 1.0 / n), size=min(step, DRAWS - first)).astype(np.float64)
        weight = (counts @ total)[:, None, None]
        mean = np.einsum("bu,rsu->brs", counts, sums, optimize=True) / weight
        spread = np.einsum("bu,rsu->brs", counts, squares, optimize=True) / weight - mean**2
        draws, ridge = np.arange(len(counts)), np.argmin(mean.min(axis=2), axis=1)
        error = np.sqrt(np.maximum(spread[draws, ridge], 0.0) / (n - 1))
        at = choose(mean[draws, ridge], error, sizes, rule)
        outside = (counts == 0).astype(np.float64)
        weight_outside = outside @ total
        known = weight_outside > 0
        scores.append(0.5 * np.einsum("bu,bu->b", outside, sums[ridge, at])[known] / weight_outside[known])
        choices.append(np.stack([ridge, at], axis=1))
        not_drawn.append(counts[: max(0, _AUC_DRAWS - first)] == 0)
    return np.concatenate(scores), np.concatenate(choices), np.concatenate(not_drawn)
