"""Screening generated columns by their gain against the residuals of models, and the best models of what is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.features.expansion import Ints, Library, distinct, marked, marks_of
from pairflip.features.expressions import Expression, Operator
from pairflip.least_squares import Floats
from pairflip.supports import distinct_supports

ITSELF = -1
"""Code of a column of the library as it is."""
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

    def joined(self, other: Pool, most: int | None = None) -> Pool:
        """Both, equal columns once, and of these at most so many that gain most, the first ones of equal ones."""
        pairs, values, complexity = (np.concatenate(both) for both in zip(self, other, strict=True))
        at = distinct(values[:, 1:], complexity) if len(values) else np.zeros(0, np.int64)
        if most is not None and at.size > most:
            at = np.sort(at[np.argsort(-values[at, 0], kind="stable")[:most]])
        return Pool(pairs[at], values[at], complexity[at])

    def some(self, which: NDArray[Any]) -> Pool:
        """Some of them."""
        return Pool(self.pairs[which], self.values[which], self.complexity[which])

    def columns(self, library: Library) -> Floats:
        """Their values (c, M)."""
        made = np.empty((len(self.pairs), library.columns.shape[1]))
        for code in np.unique(self.pairs[:, 0]).tolist():
            at = np.flatnonzero(self.pairs[:, 0] == code)
            _, i, j = self.pairs[at].T
            made[at] = library.columns[i] if code == ITSELF else library.combined(code, i, j)
        return made

    def expression(self, at: int, library: Library) -> Expression:
        """What one of them is called."""
        code, i, j = self.pairs[at].tolist()
        return library.expressions[i] if code == ITSELF else library.expression(code, i, j)


def empty_pool() -> Pool:
    """A pool of nothing."""
    return Pool(np.zeros((0, 3), np.int64), np.zeros((0, 3)), np.zeros(0, np.int64))


def unit_columns(columns: Floats, centred: bool) -> Floats:
    """Columns (n, M) with unit norm, their means taken out where a model has an intercept."""
    shifted = columns - columns.mean(axis=1, keepdims=True) if centred else columns
    return np.asarray(shifted / np.sqrt(np.einsum("nm,nm->n", shifted, shifted))[:, None])


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

    rows = library.columns.shape[1]
    marks, columns = marks_of(rows), unit_columns(library.columns, centred)
    gained, n = gains(columns, models), len(columns)
    itself = np.column_stack([np.full(n, ITSELF), np.arange(n), np.arange(n)])
    own = Pool(itself, np.column_stack([gained, marked(columns, marks, False)]), library.complexity)
    pool = empty_pool().joined(own.some(gained > 0.0), keep)
    room = max(2 * keep, _FEWEST)
    pairs, values, at, v = np.zeros((room, 3), np.int64), np.zeros((room, 3)), np.zeros(4, np.int64), np.zeros(rows)
    least = 0.0

    def take_in() -> float:
        nonlocal pool
        count = int(at[2])
        complexity = np.empty(count, np.int64)
        for code in np.unique(pairs[:count, 0]).tolist():
            those = np.flatnonzero(pairs[:count, 0] == code)
            complexity[those] = library.complexities(code, *pairs[those, 1:].T)
        pool, at[2] = pool.joined(Pool(pairs[:count].copy(), values[:count].copy(), complexity), keep), 0
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
    found, errors = [], []
    for slot in range(support.size):
        others = np.delete(support, slot)
        basis, residual = _basis(columns[others]), y - _fit(columns[others], y)
        gained = gains(columns, Models(residual[None], basis[None]))
        gained[others] = -1.0
        few = np.argsort(-gained, kind="stable")[:most]
        found.append(np.sort(np.column_stack([np.tile(others, (few.size, 1)), few]), axis=1))
        errors.append(np.maximum(residual @ residual - gained[few], 0.0))
    every, squares = np.concatenate(found).astype(np.int64), np.concatenate(errors)
    first = distinct_supports(every).first
    best = first[np.argsort(squares[first], kind="stable")[:most]]
    return every[best], squares[best]


def descended(columns: Floats, y: Floats, support: Ints, most: int) -> tuple[Ints, Floats]:
    """The `neighbours` of the support that best exchanges of one column reach from another."""
    supports, squares = neighbours(columns, y, support, most)
    while True:
        others, lower = neighbours(columns, y, supports[0], most)
        if not lower[0] < squares[0] * (1.0 - _LOWER):
            return supports, squares
        supports, squares = others, lower


def _basis(columns: Floats) -> Floats:
    """An orthonormal basis (d, M) of columns (d, M)."""
    return np.asarray(np.linalg.qr(columns.T)[0].T)


def _fit(columns: Floats, y: Floats) -> Floats:
    """What columns (d, M) explain of y (M,)."""
    basis = _basis(columns)
    return np.asarray(basis.T @ (basis @ y))


def models_of(columns: Floats, y: Floats, supports: Ints) -> Models:
    """Residuals and bases of some supports (m, d) of unit-norm columns (n, M)."""
    bases = np.stack([_basis(columns[support]) for support in supports])
    residuals = y - np.einsum("mdr,md->mr", bases, bases @ y)
    return Models(np.ascontiguousarray(residuals), np.ascontiguousarray(bases))


@dataclass(frozen=True)
class Fitted:
    """A law of one size: expressions, their coefficients (d,), and the intercept."""

    expressions: tuple[Expression, ...]
    coef: Floats
    intercept: float

    def predict(self, columns: Any) -> Floats:
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
    total = float(target @ target)
    present = Models(target[None].copy(), np.zeros((1, 0, y.size)))
    pool, laws, chosen = empty_pool(), list[Fitted](), np.zeros((0, y.size))
    for size in range(1, largest + 1):
        error, starts = np.inf, chosen
        for turn in range(1 + _EXCHANGES if size > 1 else 1):
            pool = pool.joined(screen(library, operators, present, keep, intercept, tick))
            if len(pool.pairs) < size:
                return laws
            columns = unit_columns(pool.columns(library), intercept)
            known = np.argmax(abs(columns @ starts.T), axis=0)  # what was chosen before, with the best column added
            more = Models((target - _fit(columns[known], target))[None], _basis(columns[known])[None])
            first = [known if known.size == size else np.append(known, np.argmax(gains(columns, more)))]
            if size > 1:
                problem = SubsetProblem(columns.T, target, center=None)
                first.append(best_subset(problem, size, effort=effort, seed=seed + turn, prove=False).best_support)
            ends = [descended(columns, target, each, models) for each in first]
            supports, squares = min(ends, key=lambda end: float(end[1][0]))
            chosen = starts = columns[supports[0]]
            left = target - _fit(chosen, target)
            exact = left @ left <= _EXACT * total
            if exact or not squares[0] < error * (1.0 - _LOWER):
                break
            error = squares[0]
            present = models_of(columns, target, np.stack([np.delete(supports[0], slot) for slot in range(size)]))
        best = pool.some(supports[0])
        problem = SubsetProblem(best.columns(library).T, y, center="fold" if intercept else None)
        fit = problem.fit(np.arange(size))
        named = tuple(best.expression(at, library) for at in range(size))
        laws.append(Fitted(named, fit.coef, float(fit.intercept)))
        if exact:
            break
        present = models_of(columns, target, supports)
    return laws
