r"""What may be chosen together: groups of columns, bands, products only with their factors, signs of coefficients.

A user gives names, labels and distances; here they become numbers for each column of the table, checked once, and
`Rules` for the candidates of a problem, which engines ask before a flip.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.inputs import find_columns
from pairflip.least_squares import Floats
from pairflip.text import plural

Ints = NDArray[np.int64]
NOWHERE = -1
"""In place of a group: none; in place of a needed column: one that cannot be chosen."""
_FACTORS = re.compile(r"\s*[:*×]\s*|\s+")  # a:b, a*b, and "a b", as scikit-learn's PolynomialFeatures writes it
_POWER = re.compile(r"(.+?)\^\d+$")
ALL_POSITIVE = "all positive"
"""What settings say in place of a sign for each column."""
_AS_IS = re.compile(r"I\((.+)\)$")  # I(a ** 2), I(a * b): formulas of R and patsy
_NUMBERED = re.compile(r"(\D*?)([-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)(\D*)$")  # nm900, x_001, 1100.5 nm
SLACK = 1e-9
"""Of the least distance: 0.3 - 0.2 is less than 0.1 by rounding, and is not meant to be."""
_SIGNS = {"+": 1, "-": -1, "": 0, "0": 0, "+1": 1, "1": 1, "-1": -1}


class Rules(NamedTuple):
    """Which candidates (columns, or units of several columns) may be in a support together, as arrays.

    `group` (N,): no two of one group (`NOWHERE`: of none); `position` (N,) and `apart`: no two closer than that; of
    units, `position` is that of the first column, and those of which columns are too close `clash` (N, N);
    `need` from `need_start[j]` to `need_start[j + 1]`: candidates that must be there for j to be there (`NOWHERE`: j
    cannot be chosen at all).
    """

    group: Ints
    position: Floats
    apart: float
    need_start: Ints
    need: Ints
    clash: NDArray[np.bool_]

    @property
    def any(self) -> bool:
        """Whether anything is forbidden."""
        return self.apart > 0 or bool(self.need.size) or bool((self.group != NOWHERE).any())

    def allow(self, support: Ints) -> bool:
        """Whether a support keeps all rules, literally."""
        own = self.group[support]
        own = own[own != NOWHERE]
        if np.unique(own).size < own.size:
            return False
        if self.clash.size:
            if self.clash[np.ix_(support, support)].any():
                return False
        elif np.any(np.diff(np.sort(self.position[support])) < self.apart):
            return False
        here = set(support.tolist())
        return all(here.issuperset(self.need[self.need_start[j] : self.need_start[j + 1]].tolist()) for j in here)

    def near(self, j: int) -> NDArray[np.bool_]:
        """Which candidates (N,) are too close to candidate j."""
        near = self.clash[j] if self.clash.size else np.abs(self.position - self.position[j]) < self.apart
        return np.asarray(near)

    def needed(self, support: Ints) -> NDArray[np.bool_]:
        """Which columns (k,) of a support others of it need."""
        asked = [self.need[self.need_start[j] : self.need_start[j + 1]] for j in support.tolist()]
        return np.isin(support, np.concatenate([np.zeros(0, np.int64), *asked]))


def no_rules(n: int) -> Rules:
    """Rules that forbid nothing among n candidates."""
    none = np.zeros(0, np.int64)
    places, clash = np.arange(n, dtype=np.float64), np.zeros((0, 0), dtype=bool)
    return Rules(np.full(n, NOWHERE), places, 0.0, np.zeros(n + 1, np.int64), none, clash)


@dataclass(frozen=True, eq=False)
class Limits:
    """What was asked for, in columns of the table.

    Attributes
    ----------
    groups : dict of columns (n,) by name
        Columns that belong together; those of no group stand for themselves.
    one_per_group : bool
        At most one column of each group; otherwise whole groups are chosen, and sizes count groups.
    min_distance : float
        No two chosen columns closer than this.
    positions : (N,)
        Where columns are: by the numbers in their names if all have one, otherwise by their places.
    by_names : bool
        Whether positions are those of the names.
    needs : dict of columns (n,) by column
        What must be there for a column to be there.
    signs : (N,) or None
        1 and -1 for coefficients that must not be negative or positive, 0 for others; None: all are free.
    """

    groups: dict[str, Ints] = field(default_factory=dict)
    one_per_group: bool = False
    min_distance: float = 0.0
    positions: Floats = field(default_factory=lambda: np.zeros(0))
    by_names: bool = False
    needs: dict[int, Ints] = field(default_factory=dict)
    signs: NDArray[np.int8] | None = None

    @property
    def whole_groups(self) -> bool:
        """Whether groups enter and leave as a whole."""
        return bool(self.groups) and not self.one_per_group

    @property
    def ruled(self) -> bool:
        """Whether some columns cannot be chosen together."""
        return bool((self.groups and self.one_per_group) or self.min_distance > 0 or self.needs)

    @property
    def any(self) -> bool:
        """Whether anything was asked for."""
        return bool(self.groups) or self.ruled or self.signs is not None

    @property
    def asked(self) -> list[str]:
        """Names of the arguments of `SubsetProblem` that ask for something."""
        given = {
            "groups": self.groups, "one_per_group": self.one_per_group, "min_distance": self.min_distance,
            "hierarchy": self.needs, "positive": self.signs is not None,
        }  # fmt: skip
        return [name for name, value in given.items() if value]

    def rules(self, candidates: Ints, always: Ints, first: Ints | None = None) -> Rules:
        """The same for the candidates of a problem; what is always in the model is there for those that need it.

        Where groups are chosen as a whole, `first` (N,) is the first column of the unit of each column, and candidates
        are such first columns: a unit needs what its columns need, and two units clash if columns of theirs do.
        """
        if first is not None:
            return self._rules_of_units(candidates, always, first)
        n = candidates.size
        at = {int(column): place for place, column in enumerate(candidates)}
        free = no_rules(n)
        group = free.group
        if self.one_per_group:
            for number, columns in enumerate(self.groups.values()):
                group[[at[int(c)] for c in columns if int(c) in at]] = number
        position = self.positions[candidates] if self.min_distance > 0 else free.position
        needed = [
            [at.get(int(c), NOWHERE) for c in self.needs.get(int(j), ()) if int(c) not in always] for j in candidates
        ]
        start = np.concatenate([[0], np.cumsum([len(each) for each in needed])]).astype(np.int64)
        apart = self.min_distance * (1.0 - SLACK)
        need = np.array(list(chain.from_iterable(needed)), dtype=np.int64)
        return free._replace(group=group, position=position, apart=apart, need_start=start, need=need)

    def _rules_of_units(self, candidates: Ints, always: Ints, first: Ints) -> Rules:
        n, members = candidates.size, np.flatnonzero(np.isin(first, candidates))
        place, clash, found = np.searchsorted(candidates, first[members]), np.zeros((n, n), dtype=bool), no_rules(n)
        if self.min_distance > 0:
            at, apart = self.positions[members], self.min_distance * (1.0 - SLACK)
            a, b = np.nonzero(np.abs(at[:, None] - at) < apart)
            clash[place[a], place[b]] = True
            np.fill_diagonal(clash, False)
            position = np.full(n, np.inf)
            np.minimum.at(position, place, at)
            found = found._replace(position=position, apart=apart)
        there = {int(column): at for at, column in enumerate(candidates)}
        needs = self.needs_of_units(first, always)
        needed = [[there.get(c, NOWHERE) for c in needs.get(int(j), ())] for j in candidates]
        start = np.concatenate([[0], np.cumsum([len(each) for each in needed])]).astype(np.int64)
        need = np.array(list(chain.from_iterable(needed)), dtype=np.int64)
        return found._replace(need_start=start, need=need, clash=clash)

    def needs_of_units(self, first: Ints, always: Ints) -> dict[int, list[int]]:
        """Which units each unit needs, both by their first columns."""
        found: dict[int, set[int]] = {}
        for column, needed in self.needs.items():
            other = {int(first[c]) for c in needed if c not in always} - {int(first[column])}
            found.setdefault(int(first[column]), set()).update(other)
        return {unit: sorted(needed) for unit, needed in found.items() if needed}

    def arguments(self) -> dict[str, Any]:
        """The same as `SubsetProblem` takes it, for another table with these columns."""
        return {
            "groups": self.groups or None,
            "one_per_group": self.one_per_group,
            "min_distance": self.min_distance,
            "hierarchy": self.needs or None,
            "positive": self.signs,
        }

    def settings(self, names: Sequence[str]) -> dict[str, Any]:
        """What the settings of a run say about it; nothing where nothing was asked for."""
        said: dict[str, Any] = {}
        if self.groups:
            said["column_groups"] = {name: [names[int(c)] for c in each] for name, each in self.groups.items()}
            said["one_per_group"] = self.one_per_group
        if self.min_distance > 0:
            said["min_distance"] = self.min_distance
            said["distance_by"] = "names" if self.by_names else "places"
        if self.needs:
            said["hierarchy"] = {names[j]: [names[int(c)] for c in each] for j, each in self.needs.items()}
        if self.signs is not None:
            each = {names[j]: int(self.signs[j]) for j in np.flatnonzero(self.signs).tolist()}
            said["signs"] = ALL_POSITIVE if (self.signs == 1).all() else each
        return said


def read_limits(
    names: Sequence[str],
    always: Ints,
    groups: Any = None,
    one_per_group: bool = False,
    min_distance: float | None = None,
    hierarchy: Any = None,
    positive: Any = None,
) -> Limits:
    """What a user gave, checked."""
    found = _read_groups(groups, names, always)
    if one_per_group and not found:
        raise ValueError("one_per_group is True without groups; expected groups={name: [columns], ...} with it.")
    distance = _read_distance(min_distance)
    positions, by_names = _positions(names, always) if distance else (np.zeros(0), False)
    limits = Limits(
        groups=found,
        one_per_group=bool(one_per_group),
        min_distance=distance,
        positions=positions,
        by_names=by_names,
        needs=_read_hierarchy(hierarchy, names),
        signs=_read_signs(positive, names),
    )
    if limits.whole_groups and limits.needs:
        first, labels = np.arange(len(names)), list(names)
        for name, columns in found.items():
            first[columns], labels[int(columns.min())] = columns.min(), name
        needs = {unit: np.array(other) for unit, other in limits.needs_of_units(first, always).items()}
        _check_circles(needs, labels)
    return limits


def _read_groups(groups: Any, names: Sequence[str], always: Ints) -> dict[str, Ints]:
    """Groups of columns by name: from a mapping, a table with the columns "column" and "group", or N labels."""
    if groups is None:
        return {}
    if hasattr(groups, "columns"):
        if not {"column", "group"} <= set(groups.columns):
            raise ValueError(f"the table of groups has the columns {list(groups.columns)}; expected column and group.")
        listed: dict[str, list[Any]] = {}
        for column, group in zip(groups["column"], groups["group"], strict=True):
            listed.setdefault(str(group), []).append(column)
        groups = listed
    elif not isinstance(groups, Mapping):
        labels = [groups] if isinstance(groups, str) else list(groups)
        if len(labels) != len(names):
            raise ValueError(
                f"groups has {plural(len(labels), 'label')} for {plural(len(names), 'column')}; expected a label for "
                "each column, or {name: [columns], ...}."
            )
        listed = {}
        for j, label in enumerate(labels):
            if label is not None and label == label and label != "":  # not a number, or nothing: of no group
                listed.setdefault(str(label), []).append(j)
        groups = {label: [j for j in each if j not in always] for label, each in listed.items()}
    found = {str(name): _columns(each, names, f"group {name!r}") for name, each in groups.items()}
    taken: dict[int, str] = {int(j): "what is always in the model" for j in always}
    for name, columns in found.items():
        if not columns.size:
            raise ValueError(f"the group {name!r} has no columns; expected at least one, or leave the group out.")
        for j in columns.tolist():
            if j in taken:
                raise ValueError(
                    f"the column {names[j]!r} is in the group {name!r} and in {taken[j]}; expected groups that do not "
                    "overlap: name each column once."
                )
            taken[j] = f"the group {name!r}"
    return found


def _columns(wanted: Any, names: Sequence[str], what: str) -> Ints:
    """Indices of columns, in the words of what named them."""
    try:
        return find_columns(wanted, names)
    except (ValueError, TypeError) as error:
        raise type(error)(f"{what}{str(error).removeprefix('always')}") from None


def _read_distance(distance: Any) -> float:
    """The least distance between two columns, 0 for none."""
    if distance is None:
        return 0.0
    number = isinstance(distance, (int, float, np.number)) and not isinstance(distance, bool)
    if not (number and np.isfinite(distance) and distance >= 0):
        raise ValueError(
            f"min_distance is {distance!r}; expected a number >= 0, by the numbers in the names of the columns if "
            "all have one, otherwise in places."
        )
    return float(distance)


def _positions(names: Sequence[str], always: Ints) -> tuple[Floats, bool]:
    """Positions (N,) of columns, and whether they are the numbers in the names.

    They are if every name (but those that are always in the model) is a number, or a number between the same letters:
    ``900``, ``nm900``, ``900 nm``.
    """
    places, forced = np.arange(len(names), dtype=np.float64), set(always.tolist())
    found, around = places.copy(), set()
    for j, name in enumerate(names):
        if j in forced:
            continue
        parts = _NUMBERED.match(name.strip())
        if parts is None:
            return places, False
        around.add((parts[1], parts[3]))
        found[j] = float(parts[2])
    return (found, True) if len(around) == 1 and np.isfinite(found).all() else (places, False)


def _read_hierarchy(hierarchy: Any, names: Sequence[str]) -> dict[int, Ints]:
    """What each product needs: from a mapping, or (True) from names such as a:b, a*b, "a b", a^2 and I(a ** 2)."""
    if hierarchy is None or hierarchy is False:
        return {}
    if isinstance(hierarchy, Mapping):
        needs = {}
        for product, factors in hierarchy.items():
            (column,) = _columns([product], names, "hierarchy").tolist()
            needs[column] = _columns(factors, names, "hierarchy")
        _check_circles(needs, names)
        return needs
    if hierarchy is not True:
        raise TypeError(
            f"hierarchy is a {type(hierarchy).__name__}; expected True (products are known by their names, such as "
            "a:b), or {product: [factors], ...}."
        )
    place = {name: j for j, name in reversed(list(enumerate(names)))}
    needs = {}
    for j, name in enumerate(names):
        written = re.sub(r"\s*\*\*\s*", "^", _AS_IS.sub(r"\1", name.strip()))
        parts = {_POWER.sub(r"\1", part) for part in _FACTORS.split(written) if part}
        if parts != {name} and parts <= place.keys():
            needs[j] = np.array(sorted(place[part] for part in parts), dtype=np.int64)
    if not needs:
        raise ValueError(
            "hierarchy is True and no name of a column is a product of others, such as a:b of a and b; expected such "
            "names, or {product: [factors], ...}."
        )
    return needs


def _check_circles(needs: Mapping[int, Ints], names: Sequence[str]) -> None:
    """Refuse a column that, by way of others, needs itself."""
    for column in needs:
        asked, seen = needs[column].tolist(), set[int]()
        while asked:
            other = asked.pop()
            if other == column:
                raise ValueError(
                    f"hierarchy says that {names[column]!r} needs itself (perhaps by way of others); expected products "
                    "that need their factors, and nothing in a circle."
                )
            if other not in seen:
                seen.add(other)
                asked += needs.get(other, np.zeros(0, np.int64)).tolist()


def _read_signs(positive: Any, names: Sequence[str]) -> NDArray[np.int8] | None:
    """Signs (N,) of coefficients: all positive, some by name, or one for each column."""
    if positive is None or positive is False:
        return None
    if positive is True:
        return np.ones(len(names), dtype=np.int8)
    given: list[Any] = [0] * len(names)
    if isinstance(positive, Mapping):
        for name, sign in positive.items():
            (column,) = _columns([name], names, "positive").tolist()
            given[column] = sign
    else:
        given = list(positive)
        if len(given) != len(names):
            raise ValueError(
                f"positive has {plural(len(given), 'sign')} for {plural(len(names), 'column')}; expected True, a sign "
                "(1, -1 or 0) for each column, or {column: sign, ...}."
            )
    signs = [_SIGNS.get(f"{sign:g}" if isinstance(sign, (int, float, np.number)) else str(sign)) for sign in given]
    if None in signs:
        bad = given[signs.index(None)]
        raise ValueError(f"positive names the sign {bad!r}; expected 1 (or '+'), -1 (or '-') or 0 (free).")
    found = np.array(signs, dtype=np.int8)
    return found if found.any() else None
