"""Generating columns by operators, rung after rung: all but the last rung are kept, the last one is streamed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.features.expressions import BY_CODE, DEFAULT, Expression, Operator, read_operators
from pairflip.features.units import Unit, read_units
from pairflip.inputs import as_table
from pairflip.least_squares import Floats
from pairflip.text import plural

Ints = NDArray[np.int64]
ITSELF = -1
"""Code of a column of the library as it is."""
ALIKE = 1e-9  # of the marks of unit-norm columns: what differs by less is taken as equal up to scale and sign
CONSTANT = 1e-20  # of a sum of squares: what the mean leaves of a constant
MOST = 500_000_000
"""More combinations than this are refused: hours, and most of them can predict anything."""
KEPT_BYTES = 512 * 2**20  # of rungs below the last one
_ARITY = np.array([*(BY_CODE[code].arity for code in sorted(BY_CODE)), 0])  # by code, of ITSELF at the end


@dataclass
class Library:
    """Columns (n, M) of all rungs but the last, those of the last of them from `first` on, and what they are."""

    columns: Floats
    expressions: list[Expression]
    units_by_name: Mapping[str, Unit] | None  # of columns of the table
    first: int = 0

    @cached_property
    def complexity(self) -> Ints:
        """How many columns and operators each expression has (n,)."""
        return np.array([each.complexity for each in self.expressions], dtype=np.int64)

    @cached_property
    def units(self) -> list[Unit | None]:
        """Units of all expressions; pure numbers where units do not matter."""
        known = self.units_by_name
        return [Unit() if known is None else each.unit(known) for each in self.expressions]

    def complexities(self, code: Any, i: Ints, j: Ints) -> Ints:
        """How many columns and operators combinations have, of one code or of codes (c,)."""
        of_two = np.where(_ARITY[code] == 2, self.complexity[j], 0)
        return np.asarray(self.complexity[i] + (_ARITY[code] > 0) + of_two)

    def combined(self, code: int, i: Ints, j: Ints) -> Floats:
        """Columns (c, M) that an operator makes of some pairs."""
        if code == ITSELF:
            return self.columns[i]
        operator = BY_CODE[code]
        with np.errstate(all="ignore"):
            return np.asarray(operator.compute(*(self.columns[each] for each in operator.arguments(code, i, j))))

    def expression(self, code: int, i: int, j: int) -> Expression:
        """What such a column is called."""
        if code == ITSELF:
            return self.expressions[i]
        operator = BY_CODE[code]
        return Expression(operator.name, tuple(self.expressions[each] for each in operator.arguments(code, i, j)))

    def unit_table(self, operator: Operator) -> tuple[NDArray[np.bool_], Ints]:
        """Whether an operator may combine units a and b (u, u), and the unit (n,) of every column by number."""
        kinds: dict[Any, int] = {unit: at for at, unit in enumerate(dict.fromkeys(self.units))}
        any_units = operator.name in "*/"
        pairs = [[any_units or operator.unit(*(a, b)[: operator.arity]) is not None for b in kinds] for a in kinds]
        return np.array(pairs), np.array([kinds[unit] for unit in self.units], dtype=np.int64)

    def pairs(self, operator: Operator) -> Iterator[tuple[int, Ints, Ints]]:
        """Kernel's code and pairs that `operator` combines, a block at a time: i from `first` on, j before i."""
        allowed, unit = self.unit_table(operator)
        if operator.arity == 1:
            i = self.first + np.flatnonzero(allowed[unit[self.first :], 0])
            yield operator.codes[0], i, np.zeros_like(i)
            return
        for last in range(max(self.first, 1), len(self.expressions)):
            j = np.flatnonzero(allowed[unit[last], unit[:last]])
            for code in operator.codes:
                yield code, np.full(j.size, last), j

    def made(self, operators: Sequence[Operator]) -> Iterator[tuple[Floats, int, Ints, Ints]]:
        """Usable columns (c, M) that operators make, their code and pairs, a block at a time."""
        for operator in operators:
            for code, i, j in self.pairs(operator):
                columns = self.combined(code, i, j)
                ok = np.flatnonzero(usable(columns))
                yield columns[ok], code, i[ok], j[ok]


def usable(columns: Floats) -> NDArray[np.bool_]:
    """Which columns (n, M) are finite and vary, their squares included."""
    with np.errstate(all="ignore"):
        shifted = columns - columns[:, :1]
        squares = np.einsum("nm,nm->n", shifted, shifted)
        norm = squares - shifted.sum(axis=1) ** 2 / columns.shape[1]
        raw = squares + columns.shape[1] * columns[:, 0] ** 2
        return np.asarray((norm > CONSTANT * raw) & np.isfinite(norm) & np.isfinite(columns).all(axis=1))


def unit_columns(columns: Floats, centred: bool) -> Floats:
    """Columns (n, M) with unit norm, their means taken out where a model has an intercept."""
    shifted = columns - columns.mean(axis=1, keepdims=True) if centred else columns
    return np.asarray(shifted / np.sqrt(np.einsum("nm,nm->n", shifted, shifted))[:, None])


@lru_cache(maxsize=16)
def fixed_vectors(rows: int) -> Floats:
    """Two vectors (2, M) with which unit-norm columns have inner products, their marks: equal for equal columns."""
    return np.random.default_rng(20160704).normal(size=(2, rows))


def marked(columns: Floats, centred: bool) -> Floats:
    """Marks (n, 2): equal where columns (n, M) are equal up to scale and sign."""
    return np.asarray(abs(unit_columns(columns, centred) @ fixed_vectors(columns.shape[1]).T))


def distinct(marks: Floats, complexity: Ints) -> Ints:
    """Of columns with equal marks (n, 2) the simplest, then the first one, in their order."""
    order = np.lexsort((marks[:, 1], marks[:, 0]))
    label = np.zeros(len(marks), np.int64)
    label[order[1:]] = np.cumsum((abs(np.diff(marks[order], axis=0)) > ALIKE).any(axis=1))
    by_group = np.lexsort((complexity, label))
    return np.sort(by_group[np.unique(label[by_group], return_index=True)[1]])


@dataclass
class Seen:
    """Marks of the columns so far, 16 bytes each, in sorted parts that double in size."""

    centred: bool
    parts: list[Floats] = field(default_factory=list)

    def new(self, columns: Floats, complexity: Ints) -> Ints:
        """Which of some columns (n, M) are not equal to each other or to earlier ones; remembers."""
        marks = marked(columns, self.centred)
        kept = distinct(marks, complexity)
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
    X: Floats,
    names: Sequence[str],
    units: Mapping[str, Unit] | None,
    operators: Sequence[Sequence[Operator]],
    most: int,
) -> Library:
    """The library of a table (M, N) before the last of the rungs, whose operators are not applied yet."""
    columns, seen = np.ascontiguousarray(X.T, dtype=np.float64), Seen(centred=False)
    ok = np.flatnonzero(usable(columns))
    ok = ok[seen.new(columns[ok], np.ones(ok.size, np.int64))]
    library = Library(columns[ok], [Expression(column=names[j]) for j in ok.tolist()], units)
    for rung, of_rung in enumerate(operators, start=1):
        n, first = len(library.expressions), library.first
        pairs = (n * (n - 1) - first * (first - 1)) // 2
        count = sum(len(each.codes) * pairs if each.arity == 2 else n - first for each in of_rung)
        is_last = rung == len(operators)
        room = most if is_last else min(most, KEPT_BYTES // (8 * len(X)))
        if count > room:
            raise ValueError(
                f"{plural(len(operators), 'rung')} of {len(of_rung)} operators would combine {plural(n, 'column')} to "
                f"{count:.2g} more; expected at most {room:.2g}: fewer rungs, fewer operators (perhaps others for each "
                "rung), fewer columns, or units."
            )
        if not is_last:
            library = _grown(library, of_rung, seen)
    return library


def _grown(library: Library, operators: Sequence[Operator], seen: Seen) -> Library:
    """The library with one more rung: what is new, finite, and varies; differences have a mean above zero."""
    columns, expressions = [library.columns], list(library.expressions)
    for made, code, i, j in library.made(operators):
        for at in seen.new(made, library.complexities(code, i, j)):
            text, column = library.expression(code, int(i[at]), int(j[at])), made[at]
            if text.operator == "-" and column.sum() < 0:  # so that differences have roots where they can
                text, column = Expression("-", text.arguments[::-1]), -column
            columns.append(column[None])
            expressions.append(text)
    return Library(np.concatenate(columns), expressions, library.units_by_name, len(library.expressions))


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
    library = build(X, labels, kinds, of_rungs, most)
    return _blocks(library, of_rungs[-1] if of_rungs else (), max(1, int(block)))


def _blocks(library: Library, operators: Sequence[Operator], size: int) -> Iterator[Block]:
    """The columns of a library, and those of its last rung, which are not equal to earlier ones."""
    seen, n = Seen(centred=True), len(library.expressions)
    waiting, expressions = list[Floats](), list[Expression]()

    def block() -> Block:
        known, made = library.units_by_name, expressions.copy()
        units = None if known is None else [str(each.unit(known)) for each in made]
        return Block(np.concatenate(waiting).T, made, units)

    parts = (np.arange(first, min(first + size, n)) for first in range(0, n, size))
    below = ((library.columns[part], ITSELF, part, part) for part in parts)
    for columns, code, i, j in chain(below, library.made(operators)):
        new = seen.new(columns, library.complexities(code, i, j))
        waiting.append(columns[new])
        expressions += [library.expression(code, int(i[at]), int(j[at])) for at in new]
        if len(expressions) >= size:
            yield block()
            waiting.clear()
            expressions.clear()
    if expressions:
        yield block()
