"""Screening generated columns by their gain against the residuals of models, and the best models of what is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.features.expansion import ITSELF, Ints, Library, distinct, fixed_vectors, unit_columns
from pairflip.features.expressions import Expression, Operator
from pairflip.least_squares import Floats
from pairflip.supports import distinct_supports

_DEPENDENT = 1e-8  # as in the kernel
_EXACT = 1e-22  # of the squares of the target: what is left of them is rounding
_EXCHANGES = 4  # times that all columns are screened for a better one in place of each, at most
_LOWER = 1e-9  # of an error: what is lower by less is not
_CALL = 3e8  # numbers that a kernel may look at before the interpreter sees Ctrl-C
_FEWEST = 2**14  # combinations that wait to be sorted


class Models(NamedTuple):
    """Some models of one size: residuals (m, M), and an orthonormal basis of the columns of each (m, d, M)."""

    residuals: Floats
    bases: Floats


class Pool(NamedTuple):
    """Kept combinations: code and two columns (c, 3), the gain and two marks (c, 3), complexity (c,)."""

    pairs: Ints
    values: Floats
    complexity: Ints

    def some(self, index: NDArray[Any]) -> Pool:
        """Some of them."""
        return Pool(*(each[index] for each in self))

    def columns(self, library: Library) -> Floats:
        """Their values (c, M)."""
        made = np.empty((len(self.pairs), library.columns.shape[1]))
        for code in np.unique(self.pairs[:, 0]).tolist():
            at = np.flatnonzero(self.pairs[:, 0] == code)
            made[at] = library.combined(code, *self.pairs[at, 1:].T)
        return made


def joined(pools: Sequence[Pool], most: int | None = None) -> Pool:
    """All of them, equal columns once, and of these at most so many that gain most, the first ones of equal ones."""
    pool = Pool(*(np.concatenate(parts) for parts in zip(*pools, strict=True)))
    at = distinct(pool.values[:, 1:], pool.complexity)
    if most is not None and at.size > most:
        at = np.sort(at[np.argsort(-pool.values[at, 0], kind="stable")[:most]])
    return pool.some(at)


def models_of(columns: Floats, y: Floats, supports: Ints) -> Models:
    """Residuals and bases of some supports (m, d) of unit-norm columns (n, M)."""
    bases = np.swapaxes(np.linalg.qr(np.swapaxes(columns[supports], 1, 2))[0], 1, 2)
    residuals = y - np.einsum("mdr,md->mr", bases, bases @ y)
    return Models(np.ascontiguousarray(residuals), np.ascontiguousarray(bases))


def gains(columns: Floats, models: Models) -> Floats:
    """By how much unit-norm columns (n, M) lower the squared error of models, the largest for each (n,)."""
    best = np.zeros(len(columns))
    for residual, basis in zip(*models, strict=True):
        rest = 1.0 - np.sum((columns @ basis.T) ** 2, axis=1)
        free = rest > _DEPENDENT
        best[free] = np.maximum(best[free], (columns[free] @ residual) ** 2 / rest[free])
    return best


def screen(
    library: Library,
    operators: Sequence[Operator],
    models: Models,
    keep: int,
    centred: bool,
    tick: Callable[[int], None] | None = None,
) -> Pool:
    """The `keep` columns of a library and of its last rung that gain most with the best of some models."""
    from pairflip.engines.numba import announce_compilation
    from pairflip.engines.numba.features import screen as screen_pairs

    rows, marks = library.columns.shape[1], fixed_vectors(library.columns.shape[1])
    columns = unit_columns(library.columns, centred)
    gained, n = gains(columns, models), len(columns)
    itself = np.column_stack([np.full(n, ITSELF), np.arange(n), np.arange(n)])
    as_they_are = Pool(itself, np.column_stack([gained, abs(columns @ marks.T)]), library.complexity)
    pool = joined([as_they_are.some(gained > 0.0)], keep)
    room = max(2 * keep, _FEWEST)
    pairs, values, at, v = np.zeros((room, 3), np.int64), np.zeros((room, 3)), np.zeros(4, np.int64), np.zeros(rows)
    least = 0.0

    def take_in() -> float:
        nonlocal pool
        more, at[2] = pairs[: at[2]], 0
        pool = joined([pool, Pool(more, values[: len(more)], library.complexities(*more.T))], keep)
        return float(pool.values[:, 0].min()) if len(pool.pairs) >= keep else 0.0

    announce_compilation(screen_pairs)
    in_a_call = max(1, int(_CALL / (rows * (4 + models.residuals.shape[0] * (1 + models.bases.shape[1])))))
    for operator in operators:
        allowed, unit = library.unit_table(operator)
        for code in operator.codes:
            first = max(library.first, int(operator.arity == 2))
            while first < n:
                # Column i is combined with i others.
                end = min(n, first + max(1, in_a_call // max(first, 1) if operator.arity == 2 else in_a_call))
                at[:2], looked = (first, 0), int(at[3])
                while not screen_pairs(
                    code, library.columns, first, end, at, allowed, unit, centred, models.residuals, models.bases,
                    marks, least, pairs, values, v,
                ):  # fmt: skip
                    least = take_in()
                first = end
                if tick is not None:
                    tick(int(at[3]) - looked)
    take_in()
    return pool


def neighbours(columns: Floats, y: Floats, support: Ints, most: int) -> tuple[Ints, Floats]:
    """The best supports (m, d) that differ from one in at most one column, and their squared errors (m,).

    All columns (n, M) have unit norm, and y (M,) is centred where they are.
    """
    supports, errors = [], []
    for slot in range(support.size):
        others = np.delete(support, slot)
        model = models_of(columns, y, others[None])
        gained = gains(columns, model)
        gained[others] = -1.0
        best = np.argsort(-gained, kind="stable")[:most]
        supports.append(np.sort(np.column_stack([np.tile(others, (best.size, 1)), best]), axis=1))
        errors.append(np.maximum(np.square(model.residuals).sum() - gained[best], 0.0))
    all_supports, squares = np.concatenate(supports).astype(np.int64), np.concatenate(errors)
    first = distinct_supports(all_supports).first
    best = first[np.argsort(squares[first], kind="stable")[:most]]
    return all_supports[best], squares[best]


def descended(columns: Floats, y: Floats, support: Ints, most: int) -> tuple[Ints, Floats]:
    """The `neighbours` of the support that best exchanges of one column reach from another."""
    supports, squares = support[None], np.array([np.inf])
    while True:
        others, lower = neighbours(columns, y, supports[0], most)
        if not lower[0] < squares[0] * (1.0 - _LOWER):
            return supports, squares
        supports, squares = others, lower


@dataclass(frozen=True)
class Fitted:
    """A law of one size: expressions, their coefficients (d,), and the intercept."""

    expressions: tuple[Expression, ...]
    coef: Floats
    intercept: float

    def predict(self, columns: Mapping[str, Any]) -> Floats:
        """Predictions of rows, given as arrays by the names of columns; not finite where the law is not defined."""
        with np.errstate(all="ignore"):
            terms = [b * each.evaluate(columns) for b, each in zip(self.coef, self.expressions, strict=True)]
            return np.asarray(sum(terms, start=np.asarray(self.intercept)), dtype=np.float64)


def search(
    library: Library,
    y: Floats,
    operators: Sequence[Operator],
    *,
    largest: int,
    keep: int,
    models: int,
    intercept: bool,
    effort: Any,
    seed: int,
    tick: Callable[[int], None] | None = None,
) -> list[Fitted]:
    """Laws of sizes 1 to `largest`, fewer where no more columns add anything.

    For each size columns are screened against the residuals of the best models of the size before, and the best subset
    of all that were kept so far is searched. Then all columns are screened once more, against the best subset without
    one of its columns: until no exchange with any generated column lowers the error.
    """
    from pairflip.problem import SubsetProblem
    from pairflip.search.best_subset import best_subset

    target = y - y.mean() if intercept else y
    present = models_of(library.columns, target, np.zeros((1, 0), np.int64))
    pools, laws, chosen = list[Pool](), list[Fitted](), np.zeros((0, y.size))
    for size in range(1, largest + 1):
        error, starts = np.inf, chosen
        for turn in range(1 + _EXCHANGES if size > 1 else 1):
            pools = [joined([*pools, screen(library, operators, present, keep, intercept, tick)])]
            if len(pools[0].pairs) < size:
                return laws
            columns = unit_columns(pools[0].columns(library), intercept)
            known = np.argmax(abs(columns @ starts.T), axis=0)  # what was chosen before, with the best column added
            if known.size < size:
                known = np.append(known, np.argmax(gains(columns, models_of(columns, target, known[None]))))
            first = [known]
            if size > 1:
                problem = SubsetProblem(columns.T, target, center=None)
                first.append(best_subset(problem, size, effort=effort, seed=seed + turn, prove=False).best_support)
            ends = [descended(columns, target, each, models) for each in first]
            supports, squares = min(ends, key=lambda end: float(end[1][0]))
            chosen = starts = columns[supports[0]]
            residual = models_of(columns, target, supports[:1]).residuals[0]
            exact = residual @ residual <= _EXACT * (target @ target)
            if exact or not squares[0] < error * (1.0 - _LOWER):
                break
            error = squares[0]
            present = models_of(columns, target, np.stack([np.delete(supports[0], slot) for slot in range(size)]))
        best = pools[0].some(supports[0])
        problem = SubsetProblem(best.columns(library).T, y, center="fold" if intercept else None)
        fit = problem.fit(np.arange(size))
        named = tuple(library.expression(*combination) for combination in best.pairs.tolist())
        laws.append(Fitted(named, fit.coef, float(fit.intercept)))
        if exact:
            break
        present = models_of(columns, target, supports)
    return laws
