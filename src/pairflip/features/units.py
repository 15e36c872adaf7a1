"""Units of physical quantities: products of powers of base units, such as kg m^2/s^2."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from pairflip.text import listed, quoted

_FACTOR = re.compile(r"([^\W\d]+|[%°Å])(?:(?:\s*(?:\^|\*\*)\s*)?(-?\d+|\(\s*-?\d+(?:/\d+)?\s*\)))?")
_HOW = "such as 'kg m^2/s^2', 'm^(1/2)', or '1' for pure numbers"


@dataclass(frozen=True)
class Unit:
    """Powers of base units, sorted by name, without those of power 0. Base units are names: none is converted."""

    powers: tuple[tuple[str, Fraction], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Unit:
        """Read a unit: base units with powers, multiplied by spaces or ``*``, divided by ``/``; ``1`` for none."""
        powers, sign, at, between = dict[str, Fraction](), 1, 0, True
        given = str(text).strip()
        while at < len(given):
            if given[at] in " */·":
                sign, at, between = (-1 if given[at] == "/" else sign if given[at] == " " else 1), at + 1, True
                continue
            if given[at] == "1" and between:
                at, between, sign = at + 1, False, 1
                continue
            factor = _FACTOR.match(given, at)
            if factor is None or not between:
                raise ValueError(f"the unit {quoted(text)} cannot be read; expected base units with powers, {_HOW}.")
            power = Fraction((factor[2] or "1").strip("() "))
            powers[factor[1]] = powers.get(factor[1], Fraction(0)) + sign * power
            at, between, sign = factor.end(), False, 1
        if not given:
            raise ValueError(f"a unit is empty; expected base units with powers, {_HOW}.")
        return cls._of(powers)

    @classmethod
    def _of(cls, powers: Mapping[str, Fraction]) -> Unit:
        return cls(tuple(sorted((name, power) for name, power in powers.items() if power)))

    def __mul__(self, other: Unit) -> Unit:
        powers = dict(self.powers)
        for name, power in other.powers:
            powers[name] = powers.get(name, Fraction(0)) + power
        return self._of(powers)

    def __pow__(self, power: Fraction | int) -> Unit:
        return self._of({name: each * power for name, each in self.powers})

    def __truediv__(self, other: Unit) -> Unit:
        return self * other**-1

    @property
    def pure(self) -> bool:
        """Whether this is a pure number."""
        return not self.powers

    def __str__(self) -> str:
        above = [_power(name, power) for name, power in self.powers if power > 0]
        below = [_power(name, -power) for name, power in self.powers if power < 0]
        return "/".join([" ".join(above) or "1", *below])

    @property
    def latex(self) -> str:
        """The unit in LaTeX's mathematics; empty for a pure number."""
        factors = [
            rf"\mathrm{{{name if name not in '%°' else {'%': chr(92) + '%', '°': '^{' + chr(92) + 'circ}'}[name]}}}"
            + (f"^{{{power}}}" if power != 1 else "")
            for name, power in self.powers
        ]
        return r"\,".join(factors)


def _power(name: str, power: Fraction) -> str:
    if power == 1:
        return name
    return f"{name}^{power}" if power.denominator == 1 else f"{name}^({power})"


def read_units(
    units: Mapping[str, str] | str | None, names: Sequence[str], target: str = ""
) -> tuple[list[Unit] | None, Unit | None]:
    """Units of all columns, or None where none are given, and that of the target, None where it is not given.

    A text has pairs such as ``m=kg, d=m``.
    """
    if units is None:
        return None, None
    if isinstance(units, str):
        pairs = [each.rpartition("=") for each in units.split(",") if each.strip()]
        for name, _, unit in pairs:
            if not name:
                raise ValueError(f"units have {quoted(unit.strip())}; expected name=unit, such as 'mass=kg, d=m'.")
        units = {name.strip(): unit.strip() for name, _, unit in pairs}
    unknown = [name for name in units if name not in names and name != target]
    if unknown:
        raise ValueError(f"units name {listed(unknown)}, which the table does not have; expected names of its columns.")
    missing = [name for name in names if name not in units]
    if missing:
        raise ValueError(
            f"units lack {listed(missing)}; expected a unit for every column ('1' for pure numbers), or no units."
        )
    return [Unit.parse(units[name]) for name in names], Unit.parse(units[target]) if target in units else None
