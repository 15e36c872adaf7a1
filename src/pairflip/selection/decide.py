r"""The answer, made once: whether columns predict, how many to keep, what predicts new rows, what errors to expect.

Estimators, laws, command line, report and publication read `SizeCurve.answer`; none of them decides. Rules and
constants were chosen by simulation (`python -m benchmarks seeds noise honesty`, docs/decisions/020 and 029).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, expit, logit, ndtri

from pairflip.least_squares import Floats
from pairflip.losses.held_out import mean_and_error
from pairflip.selection.criteria import auc, concordance
from pairflip.selection.curve import ChosenError, SizeCurve
from pairflip.supports import Ints

UNCERTAIN = 0.3
"""Where a smaller fraction of many chains reached the best set of their fold, the search is uncertain at that size."""
CLEAR = 1.0
"""Columns are called predictive where the error is so many standard errors lower than that of the mean."""
NEAR = {"auto": 0.5, "paired": 1.0}
"""A smaller size is as good as the best one where its error is higher by no more of these paired standard errors."""
CLEARLY = 2.0
"""The recommended columns predict new rows only where their error is so many standard errors below the average's."""
ALIKE = 0.02
"""... or where their predictions differ from the average's by no more than this fraction of the mean squared error."""
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
SHAKY_NAMES = 0.5
"""Names are uncertain where half-samples select fewer of the recommended columns again, on average."""
_HEAVY = 0.25
_BY_CHANCE = 0.003
_ROUNDING = 1e-20  # of the square of the target: errors of columns that fit it exactly
_TOGETHER = 2**22  # numbers of a draw that are in memory at a time
_AUC_DRAWS = 200


class Claim(StrEnum):
    """What the evidence supports: shuffled targets, and errors of held-out rows of sizes and of the average."""

    COLUMNS = "columns"  # few columns predict clearly better than none
    TOGETHER = "together"  # the average over models does, and no set of few columns
    NOTHING = "nothing"


class Reason(StrEnum):
    """Why an answer may be doubted; `report.cautions` has the words of each."""

    SEPARATED = "separated"
    SEARCH = "search"
    LARGEST_SIZE = "largest size"
    FEW_ROWS = "few rows"
    TARGET_COPIES = "target copies"
    IMPUTED = "imputed"
    ALIKE_ROWS = "alike rows"
    ORDERED_ROWS = "ordered rows"
    COPIED_ROWS = "copied rows"
    TWO_VALUES = "two values"
    INFLUENTIAL_ROWS = "influential rows"
    HEAVY_ROW = "heavy row"
    NAMES = "names"


@dataclass(frozen=True)
class Doubt:
    """A reason to doubt an answer, with its numbers."""

    reason: Reason
    numbers: dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """What is recommended."""

    claim: Claim
    rule: str  # by which the size was chosen, one of `settings.RULES`
    size: int  # the number of columns to keep
    shown: int  # what tables and figures are about: `size`, or where that is 0, the best size above 0
    other: int | None  # a second size that is worth knowing
    error: ChosenError | None  # of `size`, corrected for having chosen it; None without columns, or for very few rows
    corrected: ChosenError | None  # of the size that rule "auto" takes where columns predict, whether they do or not
    average: ChosenError | None  # of the average
    predictor: Literal["subset", "average"]  # what predicts new rows
    gain: tuple[float, float] | None  # how much lower the error of the average is than that of `size`, and its SE
    doubts: tuple[Doubt, ...]

    @property
    def predicts(self) -> bool:
        """Whether columns predict clearly better than none, few of them or many together."""
        return self.claim != Claim.NOTHING


def decide(curve: SizeCurve) -> Answer:
    """The answer that a curve supports."""
    rule, average = str(curve.settings.get("choose", "auto")), curve.average
    few = size_by(curve, "auto")
    corrected = chosen_error(curve, "auto", few)
    claim = Claim.NOTHING
    if few and curve.facts.get("p_value", 0.0) <= CHANCE:
        if _beats_none(curve, curve.predictions[curve.at(few)], corrected):
            claim = Claim.COLUMNS
        elif average is not None and _beats_none(curve, average_predictions(curve), average.corrected):
            claim = Claim.TOGETHER
    size = size_by(curve, rule)
    if rule == "auto" and claim == Claim.NOTHING:
        size = 0
    predictor: Literal["subset", "average"] = "subset"
    gain = None
    if average is not None:
        both = np.stack([curve.predictions[curve.at(size)], average_predictions(curve)])
        gain = paired_difference(curve, both)
        if claim != Claim.NOTHING and gain[0] >= -CLEARLY * gain[1] and not _are_alike(curve, *both):
            predictor = "average"
    if average is not None and (asked := curve.settings.get("predict_with", "auto")) != "auto":
        predictor = asked
    others, shown = (curve.best_size, curve.one_se_size), size or _best_with_columns(curve)
    return Answer(
        claim=claim,
        rule=rule,
        size=size,
        shown=shown,
        other=next((k for k in others if k not in (size, 0)), None) if size else None,
        error=(corrected if rule == "auto" else chosen_error(curve, rule, size)) if size else None,
        corrected=corrected,
        average=None if average is None else average.corrected,
        predictor=predictor,
        gain=gain,
        doubts=tuple(_doubts(curve, size, shown, claim != Claim.NOTHING)),
    )


def _beats_none(curve: SizeCurve, predictions: Floats, corrected: ChosenError | None) -> bool:
    """Whether held-out rows are predicted (P,) clearly better than without columns.

    Errors are lower by more than a standard error, and so is the error corrected for what was chosen. Where rows are
    ranked, few rows must not decide: the corrected AUC, or concordance, is above one half.
    """
    gain, error = paired_difference(curve, np.stack([curve.predictions[curve.at(0)], predictions]))
    two_classes = curve.classes is not None and not curve.classes.several
    if gain <= (0.0 if two_classes else CLEAR * error):
        return False
    if corrected is not None and corrected.ranked is not None:
        return corrected.ranked[0] > 0.5
    return corrected is None or corrected.error < min(float(curve.cv_error[curve.at(0)]), corrected.variance)


def _are_alike(curve: SizeCurve, subset: Floats, average: Floats) -> bool:
    """Whether the columns of a size and the average predict rows (P,) about the same, the mean of repetitions."""
    row, w = np.unique(curve.held_out_rows, return_inverse=True)[1], curve.weights
    row = row * curve.n_outputs + np.arange(row.size) % curve.n_outputs
    total = np.maximum(np.bincount(row, w), 1e-300)
    apart, off = (np.bincount(row, w * (average - each)) / total for each in (subset, curve.observed))
    return bool(np.sum(total * apart**2) <= ALIKE * np.sum(total * off**2))


def average_predictions(curve: SizeCurve) -> Floats:
    """What the average predicts for each held-out row (P,), in the units of `SizeCurve.predictions`."""
    average, q = curve.average, curve.n_outputs
    assert average is not None
    values = average.predictions.reshape(average.rows.size, q)
    values = values[np.searchsorted(average.rows, curve.held_out_rows[::q])]
    if curve.targets is not None:  # in units of the training rows, as held-out rows are
        fold = curve.held_out_fold[::q]
        values = (values - curve.targets.means[fold]) / curve.targets.scales[fold]
    return np.asarray(values.ravel())


def size_by(curve: SizeCurve, rule: str) -> int:
    """The size that a rule takes.

    ``"best"`` is the lowest error, ``"one_se"`` the smallest size within one standard error of it, a criterion its
    lowest value, all of them among all sizes with 0. ``"auto"`` supposes that columns predict: the smallest size above
    0 whose error is above the lowest one by at most half (`NEAR`) a standard error of their difference, row by row.
    """
    if rule == "best":
        return curve.best_size
    if rule == "one_se":
        return curve.one_se_size
    if rule in curve.criteria:
        return int(curve.sizes[np.argmin(curve.criteria[rule])])
    sums, total = by_unit(curve.row_errors(curve.predictions), curve.held_out_unit, curve.weights)
    at = chosen_in_draws(sums, total, np.ones((1, total.size)), curve.sizes, "auto")
    return int(curve.sizes[at[0]])


def is_settled(curve: SizeCurve, folds: int) -> bool:
    """Whether three of four quarters of the repetitions, each of so many folds, take the size that all of them take."""
    rule, repetition = str(curve.settings.get("choose", "auto")), curve.held_out_fold // folds
    if rule in curve.criteria or curve.facts.get("p_value", 0.0) > CHANCE:
        return True
    errors, taken = curve.row_errors(curve.predictions), list[int]()
    for some in (repetition >= 0, *(repetition % 4 == quarter for quarter in range(4))):
        unit = np.unique(curve.held_out_unit[some], return_inverse=True)[1]
        sums, total = by_unit(errors[:, some], unit, curve.weights[some])
        taken.append(int(chosen_in_draws(sums, total, np.ones((1, total.size)), curve.sizes, rule)[0]))
    return taken.count(taken[0]) >= 4


def _best_with_columns(curve: SizeCurve) -> int:
    """The size above 0 with the lowest error; 0 where none was tried."""
    tried = [int(k) for k in np.sort(curve.sizes) if k > 0]
    return min(tried, key=lambda k: float(curve.cv_error[curve.at(k)]), default=0)


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


def single_rows(curve: SizeCurve) -> bool:
    """Whether every row was left out alone, once."""
    return bool(curve.n_folds == np.unique(curve.held_out_rows).size == curve.held_out_rows.size // curve.n_outputs)


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


# Doubts ---------------------------------------------------------------------------------------------------------------


def _doubts(curve: SizeCurve, size: int, shown: int, predicts: bool) -> Iterator[Doubt]:
    """Reasons to doubt an answer of a size, or that nothing predicts, where the best size tried is `shown`."""
    facts, together = curve.facts, curve.facts.get("left_out_together")
    separated, in_folds = facts.get("separated", []), facts.get("separated_folds", {}).get(str(shown), 0)
    if predicts and (shown in separated or in_folds):
        yield Doubt(Reason.SEPARATED, {"size": shown, "folds": 0 if shown in separated else in_folds})
    elif not predicts and separated and curve.ridge_surface is None:
        yield Doubt(Reason.SEPARATED, {"size": min(separated), "folds": 0})
    if uncertain(curve, shown):
        yield Doubt(Reason.SEARCH, {"size": shown, "agreement": float(curve.agreement[curve.at(shown)])})
    # Of sizes left out, which the notes name, there is nothing to try.
    tried, units = max(curve.settings.get("sizes") or curve.sizes), curve.units
    candidates = (len(curve.names) if units is None else np.unique(units.first).size) - curve.always.size
    if predicts and curve.sizes.size > 2 and tried == curve.best_size < candidates:
        yield Doubt(Reason.LARGEST_SIZE, {"size": curve.best_size})
    if "few_rows" in facts or "few_groups" in facts:
        yield Doubt(Reason.FEW_ROWS, {name: facts[name] for name in ("few_rows", "few_groups") if name in facts})
    if facts.get("target_copies"):
        yield Doubt(Reason.TARGET_COPIES, {"copies": facts["target_copies"]})
    if "imputed" in facts:
        yield Doubt(Reason.IMPUTED, facts["imputed"])
    if "alike_by" in facts and not together:
        numbers = {name: facts.get(f"alike_{name}", 0) for name in ("by", "values", "rows")}
        yield Doubt(Reason.ALIKE_ROWS, numbers)
    elif ("dates" in facts or "autocorrelation" in facts) and not together:
        yield Doubt(Reason.ORDERED_ROWS, {"autocorrelation": facts.get("autocorrelation")})
    if "identical_rows" in facts and together != "groups":
        yield Doubt(Reason.COPIED_ROWS, {"count": facts["identical_rows"], "rows": facts.get("copied_rows", [])})
    if "two_values" in facts:
        yield Doubt(Reason.TWO_VALUES, {"values": facts["two_values"]})
    influential = facts.get("influential")
    if influential is not None:
        yield Doubt(Reason.INFLUENTIAL_ROWS, {**influential, "names": facts.get("influential_rows")})
    heavy = _heavy_row(curve, size)
    if heavy is not None and not (influential is not None and heavy["row"] in influential["rows"]):
        yield Doubt(Reason.HEAVY_ROW, {**heavy, "name": facts.get("heavy_row")})
    if predicts and uncertain_names(curve, shown):
        halves = curve.stability
        assert halves is not None
        yield Doubt(Reason.NAMES, {"size": shown, "overlap": float(halves.overlap[halves.at(shown)])})


def uncertain_names(curve: SizeCurve, size: int) -> bool:
    """Whether half-samples selected fewer than half of the columns of a size again."""
    halves = curve.stability
    known = halves is not None and size in halves.sizes and 0 < size < halves.n_candidates
    return known and halves is not None and bool(halves.overlap[halves.at(size)] < SHAKY_NAMES)


def _heavy_row(curve: SizeCurve, size: int) -> dict[str, Any] | None:
    """The row with more than a quarter of the held-out error, its share, and the errors with it and without."""
    if not curve.single_rows:
        return None
    errors = curve.weights * curve.row_errors(curve.predictions[curve.at(size)])
    by_row, weight = np.bincount(curve.held_out_rows, errors), np.bincount(curve.held_out_rows, curve.weights)
    total, n = float(by_row.sum()), int(np.count_nonzero(weight))
    exact = _ROUNDING * float(weight.sum() * np.max(np.abs(curve.observed)) ** 2)
    if n < 3 or not exact < total < np.inf:
        return None
    row = int(np.argmax(by_row))
    share = float(by_row[row]) / total
    # Of few rows one carries more by chance: this the largest of n squared normal errors exceeds in 3 of 1000 tables.
    if share <= max(_HEAVY, float(betaincinv(0.5, (n - 1) / 2, 1.0 - _BY_CHANCE / n))):
        return None
    both = np.array([total / weight.sum(), (total - by_row[row]) / (weight.sum() - weight[row])])
    error, without = np.sqrt(both) if curve.loss.squared else both
    return {"row": row, "share": share, "error": float(error), "without": float(without)}


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
    rule: str | int = "best"  # "one_se", "auto", or the index of the size that is taken whatever the errors are


def chosen_error(curve: SizeCurve, rule: str, size: int) -> ChosenError | None:
    """The corrected error of the size that a rule takes; None if rows are too few to say."""
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
    taken = curve.at(size) if rule in curve.criteria else rule
    return corrected_error(
        Candidates(curve.row_errors(predictions), curve.weights, curve.held_out_unit, curve.sizes, taken),
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
    rng = np.random.default_rng(0)
    step = max(1, _TOGETHER // (n + sums.shape[0] * sums.shape[1]))
    for first in range(0, DRAWS, step):
        counts = rng.multinomial(n, np.full(n, 1.0 / n), size=min(step, DRAWS - first)).astype(np.float64)
        lowest = np.einsum("bu,rsu->brs", counts, sums, optimize=True).min(axis=2) if len(sums) > 1 else counts[:, :1]
        ridge, at = np.argmin(lowest, axis=1), np.zeros(len(counts), np.int64)
        for r in np.unique(ridge).tolist():
            at[ridge == r] = chosen_in_draws(sums[r], total, counts[ridge == r], sizes, rule)
        outside = (counts == 0).astype(np.float64)
        weight_outside = outside @ total
        known = weight_outside > 0
        scores.append(0.5 * np.einsum("bu,bu->b", outside, sums[ridge, at])[known] / weight_outside[known])
        choices.append(np.stack([ridge, at], axis=1))
        not_drawn.append(counts[: max(0, _AUC_DRAWS - first)] == 0)
    return np.concatenate(scores), np.concatenate(choices), np.concatenate(not_drawn)


def chosen_in_draws(sums: Floats, total: Floats, counts: Floats, sizes: Ints, rule: str | int) -> Ints:
    """Indices (B,) of the sizes that a rule takes by sums of errors (S, U), in draws (B, U) of units (U,)."""
    if isinstance(rule, int):
        return np.full(len(counts), rule)
    weight = (counts @ total)[:, None]
    mean = counts @ sums.T / weight
    if rule in NEAR:
        mean = np.where(sizes > 0, mean, np.inf)
    best = np.argmin(mean, axis=1)
    if rule == "best":
        return np.asarray(best)
    means, limit = sums / total, np.empty_like(mean)
    for lowest in np.unique(best).tolist():
        of = best == lowest
        # One standard error of the best, or a fraction of that of the difference from the best.
        off = means - means[lowest] if rule in NEAR else means[lowest : lowest + 1]
        first, second = (counts[of] @ (total * each).T / weight[of] for each in (off, off**2))
        spread = np.sqrt(np.maximum(second - first**2, 0.0) / (total.size - 1))
        limit[of] = mean[of, lowest][:, None] + NEAR.get(str(rule), 1.0) * spread
    return np.asarray(np.argmax(mean <= limit, axis=1))
