"""Generating columns by operators, rung after rung: all but the last rung are kept, the last one is streamed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.features.expressions import BY_CODE, DEFAULT, Expression, Operator, read_operators
from pairflip.features.units import Unit, read_units
from pairflip.inputs import as_table
from pairflip.least_squares import Floats
from pairflip.text import plural

Ints = NDArray[np.int64]
ALIKE = 1e-9  # of the marks of unit-norm columns: what differs by less is taken as equal up to scale and sign
CONSTANT = 1e-20  # of a sum of squares: what the mean leaves of a constant
MOST = 500_000_000
"""More combinations than this are refused: hours, and most of them can predict anything."""
KEPT_BYTES = 512 * 2**20  # of rungs below the last one


@dataclass
class Library:
    """Columns (n, M) of all rungs but the last, those of the last of them from `first` on, and what they are."""

    columns: Floats
    expressions: list[Expression]
    units: list[Unit] | None
    first: int = 0

    @cached_property
    def complexity(self) -> Ints:
        """How many columns and operators each expression has (n,)."""
        return np.array([each.complexity for each in self.expressions], dtype=np.int64)

    def complexities(self, code: int, i: Ints, j: Ints) -> Ints:
        """The same of combinations of pairs."""
        both = self.complexity[i] + 1
        return both + self.complexity[j] if BY_CODE[code].arity == 2 else both

    def combined(self, code: int, i: Ints, j: Ints) -> Floats:
        """Columns (c, M) that an operator makes of some pairs."""
        operator = BY_CODE[code]
        of = (i, j) if code == operator.codes[0] else (j, i)
        with np.errstate(all="ignore"):
            return np.asarray(operator.compute(*(self.columns[each] for each in of[: operator.arity])))

    def expression(self, code: int, i: int, j: int) -> Expression:
        """What such a column is called."""
        operator = BY_CODE[code]
        of = (i, j) if code == operator.codes[0] else (j, i)
        return Expression(operator.name, tuple(self.expressions[each] for each in of[: operator.arity]))

    def unit_table(self, operator: Operator) -> tuple[NDArray[np.bool_], Ints]:
        """Whether an operator may combine units a and b (u, u), and the unit (n,) of every column by number."""
        if self.units is None:
            return np.ones((1, 1), bool), np.zeros(len(self.expressions), np.int64)
        kinds = {unit: at for at, unit in enumerate(dict.fromkeys(self.units))}
        allowed = np.ones((len(kinds), len(kinds)), bool)
        if operator.name not in "*/":
            for a, at in kinds.items():
                for b, other in kinds.items():
                    allowed[at, other] = operator.unit(*(a, b)[: operator.arity]) is not None
        return allowed, np.array([kinds[unit] for unit in self.units], dtype=np.int64)

    def pairs(self, operator: Operator) -> Iterator[tuple[int, Ints, Ints]]:
        """Kernel's code and pairs that `operator` combines, a block at a time: i from `first` on, j before i."""
        allowed, unit = self.unit_table(operator)
        n = len(self.expressions)
        if operator.arity == 1:
            i = self.first + np.flatnonzero(allowed[unit[self.first :], unit[0]])
            yield operator.codes[0], i, np.zeros_like(i)
            return
        for last in range(max(self.first, 1), n):
            j = np.flatnonzero(allowed[unit[last], unit[:last]])
            for code in operator.codes:
                yield code, np.full(j.size, last), j


def marks_of(rows: int) -> Floats:
    """Two fixed vectors (2, M): columns are known as equal by their inner products with them."""
    return np.random.default_rng(20160704).normal(size=(2, rows))


def usable(columns: Floats) -> NDArray[np.bool_]:
    """Which columns (n, M) are finite and vary, their squares included."""
    with np.errstate(all="ignore"):
        shifted = columns - columns[:, :1]
        squares = np.einsum("nm,nm->n", shifted, shifted)
        norm = squares - shifted.sum(axis=1) ** 2 / columns.shape[1]
        raw = squares + columns.shape[1] * columns[:, 0] ** 2
        return np.asarray((norm > CONSTANT * raw) & np.isfinite(norm) & np.isfinite(columns).all(axis=1))


def marked(columns: Floats, marks: Floats, centred: bool) -> Floats:
    """Marks (n, 2) of unit-norm columns: equal where columns (n, M) are equal up to scale and sign."""
    if centred:
        columns = columns - columns.mean(axis=1, keepdims=True)
    norms = np.sqrt(np.einsum("nm,nm->n", columns, columns))
    return np.asarray(abs(columns @ marks.T) / norms[:, None])


def distinct(marks: Floats, complexity: Ints) -> Ints:
    """Of columns with equal marks (n, 2) the simplest, then the first one, in their order."""
    order = np.lexsort((marks[:, 1], marks[:, 0]))
    step = np.diff(marks[order], axis=0)
    group = np.concatenate([[0], np.cumsum((abs(step) > ALIKE).any(axis=1))])
    label = np.empty(len(marks), np.int64)
    label[order] = group
    by_group = np.lexsort((np.arange(len(marks)), complexity, label))
    ahead = np.ones(by_group.size, bool)
    ahead[1:] = np.diff(label[by_group]) > 0
    return np.sort(by_group[ahead])


@dataclass
class Seen:
    """Marks of the columns so far, 16 bytes each, in sorted parts that double in size."""

    parts: list[Floats] = field(default_factory=list)

    def new(self, marks: Floats, complexity: Ints) -> Ints:
        """Which of some columns, by their marks (n, 2), are not equal to each other or to earlier ones; remembers."""
        kept = distinct(marks, complexity) if len(marks) else np.zeros(0, np.int64)
        for part in self.parts:
            mine = marks[kept]
            low, high = (np.searchsorted(part[:, 0], mine[:, 0] + side) for side in (-ALIKE, ALIKE))
            old = np.zeros(kept.size, bool)
            for at in np.flatnonzero(high > low):
                old[at] = np.any(abs(part[low[at] : high[at], 1] - mine[at, 1]) <= ALIKE)
            kept = kept[~old]
        part = marks[kept]
        while self.parts and len(self.parts[-1]) <= len(part):
            part = np.concatenate([self.parts.pop(), part])
        if len(part):
            self.parts.append(part[np.argsort(part[:, 0], kind="stable")])
        return kept


def build(
    X: Floats, names: Sequence[str], units: Sequence[Unit] | None, operators: Sequence[Sequence[Operator]], most: int
) -> Library:
    """The library of a table (M, N) before the last of the rungs, whose operators are not applied yet."""
    columns = np.ascontiguousarray(X.T, dtype=np.float64)
    marks, seen, ok = marks_of(len(X)), Seen(), np.flatnonzero(usable(columns))
    ok = ok[seen.new(marked(columns[ok], marks, False), np.ones(ok.size, np.int64))]
    own = [Expression(column=names[j]) for j in ok.tolist()]
    library = Library(columns[ok], own, None if units is None else [units[j] for j in ok.tolist()])
    for of_rung in operators[:-1]:
        _check_count(library, of_rung, len(operators), min(most, KEPT_BYTES // (8 * len(X))))
        library = _grown(library, of_rung, marks, seen)
    if operators:
        _check_count(library, operators[-1], len(operators), most)
    return library


def _check_count(library: Library, operators: Sequence[Operator], rungs: int, most: int) -> None:
    """Refuse more combinations than can be looked at, or, below the last rung, kept."""
    n, first = len(library.expressions), library.first
    pairs = (n * (n - 1) - first * (first - 1)) // 2
    count = sum(len(each.codes) * pairs if each.arity == 2 else n - first for each in operators)
    if count > most:
        raise ValueError(
            f"{plural(rungs, 'rung')} of {len(operators)} operators would combine {plural(n, 'column')} to {count:.2g} "
            f"more; expected at most {most:.2g}: fewer rungs, fewer operators (perhaps others for each rung), fewer "
            "columns, or units."
        )


def _grown(library: Library, operators: Sequence[Operator], marks: Floats, seen: Seen) -> Library:
    """The library with one more rung: what is new, finite, and varies; differences have a mean above zero."""
    columns, expressions = [library.columns], list(library.expressions)
    units = None if library.units is None else list(library.units)
    for operator in operators:
        for code, i, j in library.pairs(operator):
            made = library.combined(code, i, j)
            ok = np.flatnonzero(usable(made))
            for at in ok[seen.new(marked(made[ok], marks, False), library.complexities(code, i[ok], j[ok]))]:
                text, column = library.expression(code, int(i[at]), int(j[at])), made[at]
                if operator.name == "-" and column.sum() < 0:  # so that differences have roots where they can
                    text, column = Expression("-", text.arguments[::-1]), -column
                columns.append(column[None])
                expressions.append(text)
                if units is not None and library.units is not None:
                    pair = library.units[i[at]], library.units[j[at]]
                    unit = operator.unit(*(pair if code == operator.codes[0] else pair[::-1])[: operator.arity])
                    assert unit is not None
                    units.append(unit)
    return Library(np.concatenate(columns), expressions, units, len(library.expressions))


@dataclass(frozen=True)
class Block:
    """Some of the generated columns.

    Attributes
    ----------
    columns : (M, n)
        Their values.
    expressions : list of n `Expression`
        What they are.
    units : list of n texts, or None
        Their units, where units were given.
    """

    columns: Floats
    expressions: list[Expression]
    units: list[str] | None


def expand(
    table: Any,
    operators: Any = DEFAULT,
    rungs: int = 2,
    *,
    names: Sequence[str] | None = None,
    units: Mapping[str, str] | str | None = None,
    block: int = 4096,
    most: int = MOST,
) -> Iterator[Block]:
    r"""Generate columns from a table by operators, in blocks.

    Every rung applies the operators to all that there was before. Columns that are not finite everywhere, do not vary,
    or equal an earlier one up to a factor and a constant are left out. All rungs but the last are kept in memory, of
    the last one 16 bytes for each column.

    Parameters
    ----------
    table : (M, N) array or data frame
        Numbers, without gaps.
    operators
        Some of ``+ - |-| * / ^-1 ^2 ^3 ^6 sqrt cbrt log exp exp- sin cos``, in a text or a list; a list of such lists
        gives each rung its own. ``exp-`` is :math:`e^{-x}`, ``|-|`` the absolute difference.
    rungs
        How often operators are applied.
    names
        Names of the columns; taken from a data frame, else ``x0, x1, ...``.
    units
        Unit of every column by its name, or a text such as ``"m=kg, v=m/s, n=1"``. Only like units are added, and
        logarithms, exponentials, sines and cosines take pure numbers. None: nothing is checked.
    block
        About how many columns come at a time.
    most
        More combinations than this are refused before anything is computed.

    Yields
    ------
    Block
        Columns, their expressions and their units.
    """
    X, labels = as_table(table, names)
    of_rungs, (kinds, _) = read_operators(operators, rungs), read_units(units, labels)
    library = build(np.asarray(X, dtype=np.float64), labels, kinds, of_rungs, most)
    return _blocks(library, of_rungs[-1] if of_rungs else (), max(1, int(block)))


def _blocks(library: Library, operators: Sequence[Operator], size: int) -> Iterator[Block]:
    """The columns of a library, and those of its last rung, which are not equal to earlier ones."""
    marks, seen = marks_of(library.columns.shape[1]), Seen()
    waiting, texts, count = list[Floats](), list[Expression](), 0

    def of(columns: list[Floats], expressions: list[Expression]) -> Block:
        units = None
        if library.units is not None:
            known = {e.column: unit for e, unit in zip(library.expressions, library.units, strict=True)}
            units = [str(each.unit(known)) for each in expressions]
        return Block(np.concatenate(columns).T, expressions, units)

    def streamed() -> Iterator[tuple[Floats, Ints, Callable[[int], Expression]]]:
        for at in range(0, len(library.expressions), size):
            part = slice(at, at + size)
            yield library.columns[part], library.complexity[part], library.expressions[part].__getitem__
        for operator in operators:
            for code, i, j in library.pairs(operator):
                made = library.combined(code, i, j)
                ok = np.flatnonzero(usable(made))
                i, j = i[ok], j[ok]
                named = lambda at, code=code, i=i, j=j: library.expression(code, int(i[at]), int(j[at]))  # noqa: E731
                yield made[ok], library.complexities(code, i, j), named

    for columns, complexity, named in streamed():
        new = seen.new(marked(columns, marks, True), complexity)
        waiting.append(columns[new])
        texts += [named(at) for at in new.tolist()]
        count += new.size
        if count >= size:
            yield of(waiting, texts)
            waiting, texts, count = [], [], 0
    if count:
        yield of(waiting, texts)
