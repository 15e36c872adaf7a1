"""Units of physical quantities: products of powers of base units, such as kg m^2/s^2."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from pairflip.text import listed, quoted

_PART = re.compile(
    r"[ *·]*(/?)[ *·/]*(?:1|([^\W\d]+|[%°Å])(?:(?:\s*(?:\^|\*\*)\s*)?(-?\d+|\(\s*-?\d+(?:/\d+)?\s*\)))?)(?=[ */·]|$)"
)
_HOW = "such as 'kg m^2/s^2', 'm^(1/2)', or '1' for pure numbers"


@dataclass(frozen=True)
class Unit:
    """Powers of base units, sorted by name, without those of power 0. Base units are names: none is converted."""

    powers: tuple[tuple[str, Fraction], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Unit:
        """Read a unit: base units with powers, multiplied by spaces or ``*``, divided by ``/``; ``1`` for none."""
        given, unit, at = str(text).strip(), cls(), 0
        if not given:
            raise ValueError(f"a unit is empty; expected base units with powers, {_HOW}.")
        while at < len(given):
            part = _PART.match(given, at)
            if part is None:
                raise ValueError(f"the unit {quoted(text)} cannot be read; expected base units with powers, {_HOW}.")
            over, name, power = part.groups()
            if name:
                unit *= cls(((name, Fraction((power or "1").strip("() "))),)) ** (-1 if over else 1)
            at = part.end()
        return unit

    def __mul__(self, other: Unit) -> Unit:
        powers = dict(self.powers)
        for name, power in other.powers:
            powers[name] = powers.get(name, 0) + power
        return Unit(tuple(sorted((name, power) for name, power in powers.items() if power)))

    def __pow__(self, power: Fraction | int) -> Unit:
        return Unit(tuple((name, each * power) for name, each in self.powers if power))

    def __truediv__(self, other: Unit) -> Unit:
        return self * other**-1

    @property
    def pure(self) -> bool:
        """Whether this is a pure number."""
        return not self.powers

    def __str__(self) -> str:
        texts = {name: f"({abs(power)})" if power.denominator > 1 else str(abs(power)) for name, power in self.powers}
        texts = {name: name if text == "1" else f"{name}^{text}" for name, text in texts.items()}
        above = " ".join(texts[name] for name, power in self.powers if power > 0)
        return "/".join([above or "1", *(texts[name] for name, power in self.powers if power < 0)])

    @property
    def latex(self) -> str:
        """The unit in LaTeX's mathematics; empty for a pure number."""
        shown = {"%": r"\%", "°": r"^{\circ}"}
        powers = [(rf"\mathrm{{{shown.get(name, name)}}}", power) for name, power in self.powers]
        return r"\,".join(name + (f"^{{{power}}}" if power != 1 else "") for name, power in powers)


def read_units(
    units: Mapping[str, str] | str | None, names: Sequence[str], target: str = ""
) -> tuple[dict[str, Unit] | None, Unit | None]:
    """Units of all columns by name, None where none are given, and that of the target, None where it is not given."""
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
    return {name: Unit.parse(units[name]) for name in names}, Unit.parse(units[target]) if target in units else None
