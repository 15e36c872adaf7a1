r"""Prediction by a weighted mean of models: of the folds at every ridge and size, and of all columns with a ridge.

Every fold has its own columns at each ridge and size. Row i gets, for each of these pairs, the mean of the linear
predictors :math:`\eta` of the folds that left it out, and likewise for ridge regression on all columns. Weights
:math:`w_c \ge 0` with :math:`\sum_c w_c \le 1` over these candidates c minimize the error of

.. math:: \eta_i = \eta_{i0} + \sum_c w_c (\eta_{ic} - \eta_{i0}) ,

where candidate 0 has no columns (the mean, or the forced columns alone) and gets what is left of the weight. Linear
predictors are added, so the whole average is one linear model. Its error is that of rows predicted with weights that
were chosen without them, in `_PARTS` parts of the rows. Survival times, whose predictions need the hazard of the
training rows, get one candidate, the best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import LinearConstraint, minimize, nnls

from pairflip.blas import one_blas_thread
from pairflip.least_squares import Floats, orthonormal_basis
from pairflip.losses import HeldOutJudge
from pairflip.losses.base import FoldCoefficients
from pairflip.problem import SubsetProblem
from pairflip.projection import powers_of_two
from pairflip.selection.criteria import auc, concordance
from pairflip.selection.curve import Average, SampledErrors
from pairflip.selection.decide import Candidates, Ranking, corrected_error
from pairflip.selection.facts import told_by_the_mean
from pairflip.selection.folds import Folds
from pairflip.selection.prediction import by_folds_of_sample, error_quantiles
from pairflip.sparse import is_sparse
from pairflip.supports import ABSENT, Ints, filled_up

PENALTIES = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
"""Of ridge regression on all columns, in units of the mean eigenvalue of X X'."""
_AFFORDABLE = 5e9  # multiplications of ridge regression on all columns in the folds
_ENOUGH = 100  # folds of ridge regression
_WIDEST = 50_000  # columns of a predictor that needs all of them
_PARTS = 10
_NEGLIGIBLE = 1e-3  # weights below are left out
_SUM = 1e3  # how much more the sum of the weights counts than the rows


class Model(NamedTuple):
    """A linear model of columns (U,), with q targets or classes."""

    columns: Ints  # (U,)
    coefs: Floats  # (U, q)
    always_coefs: Floats  # (A, q)
    intercepts: Floats  # (q,)


class Candidate(NamedTuple):
    """What may have a weight: what rows (n, q) get from folds that left them out, and the model for new rows."""

    eta: Floats  # linear predictors, without offsets
    predicted: Floats
    model: Model
    sample: Floats | None = None  # predictions (n, q) of the sampled rows of a table that was read in blocks
    selected: bool = True  # whether folds chose its columns, rather than taking all


@dataclass(frozen=True)
class HeldOutRows:
    """The rows that folds predict, each once."""

    problem: SubsetProblem
    folds: Folds

    @cached_property
    def rows(self) -> Ints:
        """Indices (n,) of the rows."""
        return np.unique(self.folds.row)

    @cached_property
    def place(self) -> Ints:
        """Which of them each held-out prediction (P,) is of."""
        return np.searchsorted(self.rows, self.folds.row)

    @cached_property
    def observed(self) -> Floats:
        """What predictions are compared with (n, q)."""
        return self.problem.loss.observed(self.problem.y[self.rows]).reshape(self.rows.size, -1)

    def mean(self, values: Floats) -> Floats:
        """Means (n, q) over the folds that left a row out, of values (P, ...)."""
        sums = [np.bincount(self.place, column, self.rows.size) for column in values.reshape(self.place.size, -1).T]
        return np.asarray(np.stack(sums, axis=1) / np.bincount(self.place)[:, None])

    def expected(self, eta: Floats) -> Floats:
        """Predictions (n, q) by linear predictors (n, q)."""
        offset = 0.0 if self.problem.offset is None else self.problem.offset[self.rows][:, None]
        eta = eta + offset
        return np.asarray(self.problem.loss.mean(eta if eta.shape[1] > 1 else eta[:, 0])).reshape(eta.shape)

    def errors(self, predicted: Floats) -> Floats:
        """What rows add to twice the error (n q,), when they are predicted so (n, q)."""
        scale = self.problem.form.target_scale if self.problem.target_names else 1.0
        return np.asarray(self.problem.loss.row_errors(self.observed / scale, predicted / scale)).ravel()


class FoldModels(NamedTuple):
    """What the folds of one search predict with: at size 0, and at the other sizes."""

    held_out: HeldOutRows
    nothing: Candidate
    candidates: list[Candidate]


def fold_models(problem: SubsetProblem, folds: Folds, judge: HeldOutJudge, supports: Sequence[Ints]) -> FoldModels:
    """The means of the models of all folds, whose supports are (F, k) for each size, size 0 first."""
    held_out = HeldOutRows(problem, folds)
    nothing, *candidates = (_mean_of_folds(held_out, judge, each) for each in supports)
    return FoldModels(held_out, nothing, candidates)


def _mean_of_folds(held_out: HeldOutRows, judge: HeldOutJudge, supports: Ints) -> Candidate:
    """The mean of the models of all folds, whose supports are (F, k)."""
    problem, columns = held_out.problem, supports
    if problem.units is not None:  # where folds have different numbers of columns, -1 comes first
        columns = filled_up([problem.columns_of(each) for each in supports])
    predicted = held_out.mean(judge.predicted(judge.judged(supports[:, None])[0])[0])
    eta = predicted if problem.loss.squared else held_out.mean(judge.predictors(columns))
    if problem.loss.name != "cox":
        predicted = held_out.expected(eta)
    fits, sample = judge.fits(columns), None
    if problem.condensed is not None and problem.condensed.sample is not None:
        by_fold, unseen = by_folds_of_sample(problem, held_out.folds.left_out, fits, columns)
        sample = np.einsum("nfq,nf->nq", by_fold, unseen) / unseen.sum(axis=1)[:, None]
    return Candidate(eta, predicted, _mean_model(fits, columns, held_out.observed.shape[1]), sample)


@one_blas_thread()
def weighted_average(searches: Sequence[FoldModels]) -> Average:
    """The average, over the models of several searches, with the weights that predict held-out rows best.

    The first search says which rows are held out; others, at other ridge terms, may have some of its folds.
    """
    held_out, nothing, _ = searches[0]
    problem, loss, rows = held_out.problem, held_out.problem.loss, held_out.rows
    candidates = [each for search in searches for each in search.candidates]
    if loss.name != "cox":
        candidates += _ridge_on_all_columns(held_out)
    q = held_out.observed.shape[1]
    first = np.unique(held_out.place, return_index=True)[1]
    w = problem.sample_weight[rows].repeat(q)
    unit = np.unique(held_out.folds.unit[first], return_inverse=True)[1].repeat(q)
    part = np.random.default_rng(0).permutation(int(unit.max()) + 1)[unit] % _PARTS
    find = _Weights(held_out, nothing, candidates, w)
    weights, honest = find(np.ones(w.size, dtype=bool)), np.empty_like(held_out.observed)
    for number in np.unique(part).tolist():
        inside = (part == number).reshape(honest.shape)[:, 0]
        honest[inside] = find.predicted(find(part != number))[inside]
    weighed = [(float(weight), c) for weight, c in zip(weights, candidates, strict=True) if weight > 0]
    model = _sum_of([(1.0 - float(weights.sum()), nothing.model), *((weight, c.model) for weight, c in weighed)])
    used = [c.model.columns for _, c in weighed if c.selected]
    middle = told_by_the_mean(problem, rows)
    variance = held_out.errors(nothing.predicted if middle is None else middle.reshape(honest.shape))
    ranking = None
    if loss.words.ranking and q == 1:
        times = loss.name == "cox"
        scores = candidates[int(np.argmax(weights))].eta[:, 0] if times else honest[:, 0]
        ranking = Ranking(loss.words.ranking, concordance if times else auc, problem.y[rows], scores[None, None])
    several = slice(None) if q > 1 else 0
    return Average(
        columns=model.columns,
        coefs=model.coefs[:, several],
        always_coefs=model.always_coefs[:, several],
        intercept=np.asarray(model.intercepts[several]),
        selected=np.unique(np.concatenate([np.zeros(0, np.int64), *used])),
        all_columns=sum(weight for weight, c in weighed if not c.selected),
        rows=rows,
        weights=problem.sample_weight[rows],
        observed=held_out.observed[:, several],
        predictions=honest[:, several],
        corrected=corrected_error(
            Candidates(held_out.errors(honest)[None, None], w, unit, np.zeros(1, np.int64), 0),
            (0, 0),
            variance=0.5 * float(np.average(variance, weights=w)),
            squares=loss.squared,
            ranking=ranking,
        ),
        sampled=_sampled(problem, nothing, weighed),
    )


def _sampled(
    problem: SubsetProblem, nothing: Candidate, weighed: Sequence[tuple[float, Candidate]]
) -> SampledErrors | None:
    """Errors of sampled rows by the average of folds that left their blocks out; None without a sample."""
    if nothing.sample is None or problem.condensed is None:
        return None
    predicted = nothing.sample.copy()
    for weight, each in weighed:
        assert each.sample is not None
        predicted += weight * (each.sample - nothing.sample)
    return error_quantiles(problem.condensed.sample, predicted, np.arange(len(predicted)))


class _Weights:
    """Weights (C,) of candidates by some of the errors (n q,) of held-out rows, which count `w`."""

    def __init__(self, held_out: HeldOutRows, nothing: Candidate, candidates: Sequence[Candidate], w: Floats) -> None:
        self._held_out, self._nothing, self._candidates, self._w = held_out, nothing.eta, candidates, w
        self._etas = np.stack([each.eta for each in candidates])
        self._errors = np.stack([held_out.errors(each.predicted) for each in candidates])
        if held_out.problem.loss.squared:
            scale = held_out.problem.form.target_scale if held_out.problem.target_names else 1.0
            self._A = ((self._etas - nothing.eta) / scale).reshape(len(candidates), -1).T * np.sqrt(w)[:, None]
            self._b = ((held_out.observed - nothing.eta) / scale).ravel() * np.sqrt(w)

    def __call__(self, some: NDArray[np.bool_]) -> Floats:
        """The best weights of some rows."""
        loss = self._held_out.problem.loss
        if loss.squared:
            return _nonnegative(self._A[some], self._b[some])
        best = int(np.argmin(np.average(self._errors[:, some], axis=1, weights=self._w[some])))
        start = np.eye(len(self._etas))[best]
        return start if loss.name == "cox" else self._searched(some, start)

    def predicted(self, weights: Floats) -> Floats:
        """Predictions (n, q) with weights."""
        if self._held_out.problem.loss.name == "cox":
            return self._candidates[int(np.argmax(weights))].predicted
        return self._held_out.expected(self._nothing + np.tensordot(weights, self._etas - self._nothing, 1))

    def _searched(self, some: NDArray[np.bool_], start: Floats) -> Floats:
        """Weights that minimize the mean error of some rows, from a start on."""

        def error(weights: Floats) -> float:
            return float(np.average(self._held_out.errors(self.predicted(weights))[some], weights=self._w[some]))

        at_most_one = LinearConstraint(np.ones((1, start.size)), -np.inf, 1.0)
        found = minimize(error, start, method="SLSQP", bounds=[(0.0, 1.0)] * start.size, constraints=at_most_one).x
        found = _settled(np.clip(found, 0.0, 1.0))
        return found if error(found) < error(start) else start


def _nonnegative(A: Floats, b: Floats) -> Floats:
    """Weights (C,) >= 0 with a sum of at most 1 that minimize the squares of A w - b."""
    large = _SUM * (float(np.linalg.norm(b)) or 1.0)
    rows = np.vstack([np.column_stack([A, np.zeros(b.size)]), np.full(A.shape[1] + 1, large)])
    weights, _ = nnls(rows, np.append(b, large), maxiter=50 * rows.shape[1])
    return _settled(weights[:-1])


def _settled(weights: Floats) -> Floats:
    """Without weights that make no difference; a sum above 1 is rounding."""
    kept = np.where(weights > _NEGLIGIBLE, weights, 0.0)
    return np.asarray(kept / max(1.0, float(kept.sum())))


def _mean_model(fits: FoldCoefficients, columns: Ints, q: int) -> Model:
    """The mean of the models of all folds, whose columns are (F, k)."""
    used = np.unique(columns[columns != ABSENT])
    count, coefs = len(columns), np.zeros((used.size, q))
    chosen = columns != ABSENT
    np.add.at(coefs, np.searchsorted(used, columns[chosen]), fits.coefs.reshape(*columns.shape, q)[chosen] / count)
    always = fits.always_coefs.reshape(count, -1, q).mean(axis=0)
    return Model(used, coefs, always, fits.intercepts.reshape(count, q).mean(axis=0))


def _sum_of(models: Sequence[tuple[float, Model]]) -> Model:
    """The weighted sum of models."""
    columns = np.unique(np.concatenate([model.columns for _, model in models]))
    coefs = np.zeros((columns.size, models[-1][1].coefs.shape[1]))
    for weight, model in models:
        coefs[np.searchsorted(columns, model.columns)] += weight * model.coefs
    always = sum(weight * model.always_coefs for weight, model in models)
    return Model(columns, coefs, np.asarray(always), np.asarray(sum(w * model.intercepts for w, model in models)))


# Ridge regression on all columns --------------------------------------------------------------------------------------


def _ridge_on_all_columns(held_out: HeldOutRows) -> list[Candidate]:
    """Ridge regression on all candidates, one for each penalty, fitted in the folds; none where it takes too long.

    As many folds are taken as predict every row, and at least `_ENOUGH`. There is none for losses other than squared
    errors, for sparse tables, nor where signs of coefficients are given.
    """
    problem, folds, n = held_out.problem, held_out.folds, held_out.problem.candidates.size
    m, present = held_out.rows.size, np.flatnonzero(problem.sample_weight > 0)
    if not problem.loss.squared or problem.limits.signs is not None or is_sparse(problem.X) or n > _WIDEST:
        return []
    if problem.condensed is not None:  # of so many rows, a ridge adds nothing
        return []
    affordable = int(_AFFORDABLE / (m * n * (min(m, n) + len(PENALTIES) * problem.targets.shape[1])))
    first = np.unique(held_out.place, return_index=True)[1]
    needed = 1 + int(folds.fold[first].max())
    some = folds.some(range(max(needed, min(len(folds), _ENOUGH))))
    if len(some) > max(affordable, 1):
        return []
    predicted = np.bincount(np.searchsorted(held_out.rows, some.row), minlength=m)
    sums = np.zeros((len(PENALTIES), m, problem.targets.shape[1]))
    for rows, left_out in zip(some.rows, some.left_out, strict=True):
        part = problem.in_fold(left_out)
        coefs, always, intercepts = _ridge_fits(part, problem.candidates, np.setdiff1d(present, left_out))
        eta = np.einsum("mn,lnq->lmq", part.values(problem.candidates, rows), coefs, optimize=True)
        eta += np.einsum("ma,laq->lmq", part.values(problem.always, rows), always) + intercepts[:, None]
        sums[:, np.searchsorted(held_out.rows, rows)] += eta
    coefs, always, intercepts = _ridge_fits(problem, problem.candidates, present)
    etas = sums / predicted[:, None]
    return [
        Candidate(eta, eta, Model(problem.candidates, *whole), selected=False)
        for eta, *whole in zip(etas, coefs, always, intercepts, strict=True)
    ]


def _ridge_fits(problem: SubsetProblem, columns: Ints, rows: Ints) -> tuple[Floats, Floats, Floats]:
    """Coefficients (L, n, q), of forced columns (L, A, q), and constants (L, q) at each penalty, of some rows.

    Columns count as much as they vary on these rows; the constant and forced columns have no penalty.
    """
    root = np.sqrt(problem.sample_weight[rows])[:, None]
    Y, X = problem.targets[rows], problem.values(columns, rows).astype(np.float64)
    powers = powers_of_two(X)  # no square overflows
    X = X / powers
    constant = np.ones((rows.size, int(problem.center is not None)))
    always = np.hstack([constant, problem.values(problem.always, rows)])
    middle = X.mean(axis=0) if constant.shape[1] else np.zeros(X.shape[1])
    basis = orthonormal_basis(root * always)
    A = root * (X - middle)
    size = np.linalg.norm(A, axis=0)
    A -= basis @ (basis.T @ A)
    B = root * Y - basis @ (basis.T @ (root * Y))
    norms = np.linalg.norm(A, axis=0)
    unit = np.where(norms > 1e-6 * size, norms, np.inf)  # of columns that do not vary on these rows
    A /= unit
    if A.shape[0] <= A.shape[1]:
        values, vectors = np.linalg.eigh(A @ A.T)
        left, right = A.T @ vectors, vectors.T @ B
    else:
        values, vectors = np.linalg.eigh(A.T @ A)
        left, right = vectors, vectors.T @ (A.T @ B)
    values = np.maximum(values, 0.0)
    penalties = np.array(PENALTIES) * float(values.sum()) / rows.size
    coefs = np.stack([left @ (right / (values + each)[:, None]) for each in np.maximum(penalties, 1e-300)])
    coefs /= unit[:, None]  # of the columns of X
    rest = root * (Y - np.einsum("mn,lnq->lmq", X - middle, coefs, optimize=True))
    of_always = np.linalg.pinv(root * always) @ rest
    intercepts = of_always[:, 0] if constant.shape[1] else np.zeros(coefs.shape[::2])
    intercepts = intercepts - np.einsum("n,lnq->lq", middle, coefs)
    return coefs / powers[:, None], of_always[:, constant.shape[1] :], intercepts
