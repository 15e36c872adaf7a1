"""Expressions of columns, as small trees, and the operators that make them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from pairflip.features.units import Unit
from pairflip.least_squares import Floats
from pairflip.search.effort import is_whole
from pairflip.text import clean, listed

_ATOM, _POWER, _PRODUCT, _SUM = 4, 3, 2, 1  # how tightly a text holds together


@dataclass(frozen=True)
class Operator:
    """What an operator computes of one or two arrays, how it is written, and what it does to units."""

    name: str
    codes: tuple[int, ...]  # of the kernel `pairflip.engines.numba.features.screen`
    compute: Callable[..., Any]
    inside: tuple[int, ...]  # how tightly arguments must hold together to need no brackets
    level: int = _PRODUCT
    text: str = ""  # empty for what is written as a product of powers
    latex: str = ""
    power: Fraction | None = None  # of the unit of its argument

    @property
    def arity(self) -> int:
        """How many arguments it takes."""
        return len(self.inside)

    def arguments(self, code: int, i: Any, j: Any) -> tuple[Any, ...]:
        """What it takes of a pair, in which order."""
        return ((i, j) if code == self.codes[0] else (j, i))[: self.arity]

    def unit(self, *units: Unit) -> Unit | None:
        """The unit of the result; None where the operator is not for such units."""
        if self.arity == 2:
            if self.name in "*/":
                return units[0] * units[1] ** (1 if self.name == "*" else -1)
            return units[0] if units[0] == units[1] else None
        if self.power is not None:
            return units[0] ** self.power
        return units[0] if units[0].pure else None


def _power(name: str, code: int, compute: Callable[..., Any]) -> Operator:
    return Operator(name, (code,), compute, (_ATOM,), power=Fraction(name[1:]))


def _function(name: str, code: int, compute: Callable[..., Any], latex: str, power: Fraction | None = None) -> Operator:
    return Operator(name, (code,), compute, (0,), _ATOM, f"{name}({{}})", latex, power)


OPERATORS: dict[str, Operator] = {
    each.name: each
    for each in (
        Operator("+", (0,), np.add, (_SUM, _SUM), _SUM, "{} + {}", "{} + {}"),
        Operator("-", (1,), np.subtract, (_SUM, _PRODUCT), _SUM, "{} - {}", "{} - {}"),
        Operator("|-|", (2,), lambda a, b: abs(a - b), (_SUM, _PRODUCT), _ATOM, "|{} - {}|", r"\left|{} - {}\right|"),
        Operator("*", (3,), np.multiply, (_PRODUCT, _PRODUCT)),
        Operator("/", (4, 5), np.divide, (_PRODUCT, _POWER)),
        _power("^-1", 6, lambda a: 1.0 / a),
        _power("^2", 7, lambda a: a * a),
        _power("^3", 8, lambda a: a * a * a),
        _power("^6", 9, lambda a: (a * a * a) * (a * a * a)),
        _function("sqrt", 10, np.sqrt, r"\sqrt{{{}}}", Fraction(1, 2)),
        _function("cbrt", 11, np.cbrt, r"\sqrt[3]{{{}}}", Fraction(1, 3)),
        _function("log", 12, np.log, r"\ln\left({}\right)"),
        _function("exp", 13, np.exp, r"\exp\left({}\right)"),
        Operator("exp-", (14,), lambda a: np.exp(-a), (_PRODUCT,), _ATOM, "exp(-{})", r"\exp\left(-{}\right)"),
        _function("sin", 15, np.sin, r"\sin\left({}\right)"),
        _function("cos", 16, np.cos, r"\cos\left({}\right)"),
    )
}
"""All operators by name."""
BY_CODE = {code: each for each in OPERATORS.values() for code in each.codes}
DEFAULT = ("+", "-", "|-|", "*", "/", "^-1", "^2", "^3", "sqrt", "log", "exp")


@dataclass(frozen=True)
class Expression:
    """A column of the table, or an operator of one or two expressions.

    Attributes
    ----------
    operator
        Name of the operator; empty for a column.
    arguments
        Its one or two expressions.
    column
        Name of the column, where there is no operator.
    """

    operator: str = ""
    arguments: tuple[Expression, ...] = ()
    column: str = ""

    def evaluate(self, columns: Mapping[str, Any]) -> Floats:
        """Values on rows; not finite where the expression is not defined.

        Parameters
        ----------
        columns
            Arrays or numbers by the names of columns.
        """
        if not self.operator:
            return np.asarray(columns[self.column], dtype=np.float64)
        with np.errstate(all="ignore"):
            values = [each.evaluate(columns) for each in self.arguments]
            return np.asarray(OPERATORS[self.operator].compute(*values), dtype=np.float64)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns in it, sorted."""
        if not self.operator:
            return (self.column,)
        return tuple(sorted({name for each in self.arguments for name in each.columns}))

    @cached_property
    def complexity(self) -> int:
        """How many columns and operators it has."""
        return 1 + sum(each.complexity for each in self.arguments)

    def unit(self, units: Mapping[str, Unit]) -> Unit | None:
        """Its unit by those of the columns; None where units forbid it."""
        if not self.operator:
            return units[self.column]
        parts = [each.unit(units) for each in self.arguments]
        return None if None in parts else OPERATORS[self.operator].unit(*(part for part in parts if part is not None))

    def __str__(self) -> str:
        return self._written(lambda name: name if name.isidentifier() else f"[{clean(name)}]", latex=False)[0]

    @property
    def latex(self) -> str:
        """The expression in LaTeX's mathematics."""
        from pairflip.publish.latex import escaped

        return self._written(lambda name: name if len(name) == 1 else rf"\text{{{escaped(clean(name))}}}", True)[0]

    def _factors(self) -> dict[Expression, Fraction]:
        """What is multiplied in it, and to which powers: where that is the same for numbers of any sign."""
        powers = dict[Expression, Fraction]()
        operator = OPERATORS.get(self.operator)
        if self.operator == "sqrt":
            inner = self.arguments[0]._factors()
            if len(inner) == 1 and all(power.numerator % 2 for power in inner.values()):
                return {each: power / 2 for each, power in inner.items()}
        if operator is None or operator.text:
            return {self: Fraction(1)}
        signs = (Fraction(1), Fraction(-1 if self.operator == "/" else 1)) if operator.arity == 2 else (operator.power,)
        for argument, sign in zip(self.arguments, signs, strict=True):
            for each, power in argument._factors().items():
                powers[each] = powers.get(each, Fraction(0)) + power * (sign or 1)
        return {each: power for each, power in powers.items() if power}

    def _written(self, named: Callable[[str], str], latex: bool) -> tuple[str, int]:
        """Its text, and how tightly that holds together."""
        if not self.operator:
            return named(self.column), _ATOM
        factors = self._factors()
        if factors != {self: 1}:
            return _product([(*each._written(named, latex), power) for each, power in factors.items()], latex)
        operator, texts = OPERATORS[self.operator], []
        for argument, needed in zip(self.arguments, operator.inside, strict=True):
            text, level = argument._written(named, latex)
            texts.append(text if level >= needed else fenced(text, latex))
        return (operator.latex if latex else operator.text).format(*texts), operator.level

    def to_list(self) -> Any:
        """A column's name, or a list of the operator and its arguments."""
        return [self.operator, *(each.to_list() for each in self.arguments)] if self.operator else self.column

    @classmethod
    def from_list(cls, record: Any) -> Expression:
        """What `to_list` gave.

        Parameters
        ----------
        record
            A name, or a list of an operator and one or two such records.
        """
        if isinstance(record, str):
            return cls(column=record)
        operator = OPERATORS.get(str(record[0])) if isinstance(record, list) and record else None
        if operator is not None and len(record) == 1 + operator.arity:
            return cls(operator.name, tuple(cls.from_list(each) for each in record[1:]))
        raise ValueError(f"an expression reads {record!r:.60}; expected a column, or an operator and its arguments.")


def fenced(text: str, latex: bool) -> str:
    """A text in brackets."""
    return rf"\left({text}\right)" if latex else f"({text})"


def _product(factors: list[tuple[str, int, Fraction]], latex: bool) -> tuple[str, int]:
    """The text of a product of texts that hold together so tightly, to some powers, sorted; and how tightly it does."""
    above, below = list[str](), list[str]()
    for text, level, power in sorted(factors):
        size = abs(power)
        if size == Fraction(1, 2):
            text, level = (rf"\sqrt{{{text}}}" if latex else f"sqrt({text})"), _ATOM
        elif size != 1:
            text = text if level >= _ATOM else fenced(text, latex)
            shown = str(size) if size.denominator == 1 else f"({size})"
            text, level = f"{text}^{{{size}}}" if latex else f"{text}^{shown}", _POWER
        alone = len(factors) == 1 and (latex or power > 0)
        text = text if alone or level >= _PRODUCT else fenced(text, latex)
        (above if power > 0 else below).append(text)
        if len(factors) == 1 and power > 0:
            return text, level
    if latex:
        top, bottom = (r"\,".join(each) for each in (above, below))
        return (rf"\frac{{{top or 1}}}{{{bottom}}}" if below else top), _PRODUCT
    return "/".join(["*".join(above) or "1", *below]), _PRODUCT


def read_operators(operators: Any, rungs: int) -> list[tuple[Operator, ...]]:
    """The operators of each rung: names in one text or list for all rungs, or such a list for each of them."""
    if not is_whole(rungs) or not 0 <= rungs <= 4:
        raise ValueError(f"rungs is {rungs!r}; expected how often operators are applied, a whole number from 0 to 4.")
    given: Sequence[Any] = _names(operators)
    each_rung = [given] * rungs if all(isinstance(each, str) for each in given) else [_names(each) for each in given]
    if len(each_rung) != rungs:
        raise ValueError(f"operators are given for {len(each_rung)} rungs; expected {rungs}, or one list for all.")
    unknown = list(dict.fromkeys(name for names in each_rung for name in names if name not in OPERATORS))
    if unknown or not all(each_rung):
        raise ValueError(f"operators have {listed(unknown) or 'no entry'}; expected some of: {' '.join(OPERATORS)}.")
    return [tuple(operator for name, operator in OPERATORS.items() if name in names) for names in each_rung]


def _names(operators: Any) -> list[Any]:
    return operators.replace(",", " ").split() if isinstance(operators, str) else list(operators)
