r"""What may be chosen together: groups of columns, bands, products only with their factors, signs of coefficients.

A user gives names, labels and distances (`read_limits`). They become numbers for each column of the table (`Limits`),
groups that are chosen as a whole (`Units`), and arrays for the candidates of a problem (`Rules`), which engines ask
before a flip.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pairflip.inputs import find_columns
from pairflip.least_squares import Floats
from pairflip.text import plural

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
NOWHERE = -1
"""In place of a group: none; in place of a needed column: one that cannot be chosen."""
ALL_POSITIVE = "all positive"
"""What settings say in place of a sign for each column."""
SLACK = 1e-9
"""Of the least distance: 0.3 - 0.2 is less than 0.1 by rounding, and is not meant to be."""
_FACTORS = re.compile(r"\s*[:*×]\s*|\s+")  # a:b, a*b, and "a b", as scikit-learn's PolynomialFeatures writes it
_POWER = re.compile(r"(.+?)\^\d+$")
_AS_IS = re.compile(r"I\((.+)\)$")  # I(a ** 2), I(a * b): formulas of R and patsy
_NUMBERED = re.compile(r"(\D*?)([-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)(\D*)$")  # nm900, x_001, 1100.5 nm
_SIGNS = {"+": 1, "-": -1, "": 0, "0": 0, "+1": 1, "1": 1, "-1": -1}
_ORDERS = 8  # random orders in which columns are packed, where several kinds of rules have to be kept together


@dataclass(frozen=True, eq=False)
class Units:
    """What is chosen as a whole: groups of columns that vary, and every column of no group by itself.

    A unit is known by the first of its columns. Supports inside searches, journals and half-samples are sorted first
    columns, k of them; `columns_of` leads from there to all columns.
    """

    groups: Mapping[str, Ints]  # disjoint columns by the user's names; groups of which no column varies are left out
    first: Ints  # (N,): the first column of the unit that each column belongs to

    @classmethod
    def of(cls, groups: Mapping[str, Ints], n_columns: int, varying: Ints | None = None) -> Units:
        """Units of a table with so many columns, of which only some may vary."""
        first, present = np.arange(n_columns), dict[str, Ints]()
        for name, columns in groups.items():
            members = np.sort(columns) if varying is None else np.intersect1d(columns, varying)
            if members.size:
                present[name], first[members] = members, members[0]
        return cls(present, first)

    def columns_of(self, units: Sequence[int] | Ints) -> Ints:
        """All columns of some units, sorted."""
        return np.flatnonzero(np.isin(self.first, np.asarray(units, dtype=np.int64)))

    def units_of(self, columns: Sequence[int] | Ints) -> Ints:
        """The units that some columns belong to, sorted."""
        return np.unique(self.first[np.asarray(columns, dtype=np.int64)])

    def name(self, unit: int, names: Sequence[str]) -> str:
        """What a unit is called: its group, or its one column, of these `names`."""
        return next((group for group, columns in self.groups.items() if columns[0] == unit), names[unit])

    def names_of(self, columns: Sequence[int] | Ints, names: Sequence[str]) -> list[str]:
        """What the units of some columns are called."""
        return [self.name(unit, names) for unit in self.units_of(columns).tolist()]

    def labels(self, names: Sequence[str]) -> list[str]:
        """The names of all columns, with that of a group at its first column."""
        first = {int(columns[0]): group for group, columns in self.groups.items()}
        return [first.get(j, name) for j, name in enumerate(names)]

    def once(self, counts: Ints) -> Ints:
        """Counts (N,) of columns as those of units: zero but for the first column of each."""
        return np.where(self.first == np.arange(counts.size), counts, 0)


class Rules(NamedTuple):
    """Which candidates (columns, or units of several columns) may be in a support together, as arrays."""

    group: Ints  # (N,): no two of one group; NOWHERE: of none
    position: Floats  # (N,): of units, that of the first column
    apart: float  # no two closer than that
    need_start: Ints  # (N + 1,): where the needs of each candidate begin in `need`
    need: Ints  # candidates that must be there; NOWHERE: the candidate cannot be chosen at all
    clash: Mask  # (N, N) of units: which have columns that are too close; (0, 0) where units are columns

    @property
    def any(self) -> bool:
        """Whether anything is forbidden."""
        return self.apart > 0 or bool(self.need.size) or bool((self.group != NOWHERE).any())

    def needs_of(self, j: int) -> list[int]:
        """What candidate j needs."""
        return list(self.need[self.need_start[j] : self.need_start[j + 1]].tolist())

    def allow(self, support: Ints) -> bool:
        """Whether a support keeps all rules, literally."""
        groups = self.group[support]
        groups = groups[groups != NOWHERE]
        if np.unique(groups).size < groups.size:
            return False
        if self.clash.size:
            if self.clash[np.ix_(support, support)].any():
                return False
        elif np.any(np.diff(np.sort(self.position[support])) < self.apart):
            return False
        members = set(support.tolist())
        return all(members.issuperset(self.needs_of(j)) for j in members)


def no_rules(n: int) -> Rules:
    """Rules that forbid nothing among n candidates."""
    none, clash = np.zeros(0, np.int64), np.zeros((0, 0), dtype=bool)
    return Rules(np.full(n, NOWHERE), np.arange(n, dtype=np.float64), 0.0, np.zeros(n + 1, np.int64), none, clash)


@dataclass(frozen=True, eq=False)
class Limits:
    """What was asked for, in columns of the table."""

    groups: dict[str, Ints] = field(default_factory=dict)  # columns that belong together, by name
    one_per_group: bool = False  # at most one column of each group; otherwise groups are chosen as a whole
    min_distance: float = 0.0  # no two chosen columns closer than this
    positions: Floats = field(default_factory=lambda: np.zeros(0))  # (N,): where columns are
    by_names: bool = False  # whether positions are the numbers in the names, not the places in the table
    needs: dict[int, Ints] = field(default_factory=dict)  # what must be there for a column to be there
    signs: NDArray[np.int8] | None = None  # (N,): 1 not negative, -1 not positive, 0 free; None: all are free

    @property
    def whole_groups(self) -> bool:
        """Whether groups enter and leave as a whole."""
        return bool(self.groups) and not self.one_per_group

    @property
    def ruled(self) -> bool:
        """Whether some columns cannot be chosen together."""
        return bool((self.groups and self.one_per_group) or self.min_distance > 0 or self.needs)

    @property
    def asked(self) -> list[str]:
        """Names of the arguments of `SubsetProblem` that ask for something."""
        given = self.arguments() | {"positive": self.signs is not None}
        return [name for name, value in given.items() if value]

    def arguments(self) -> dict[str, Any]:
        """The limits as `SubsetProblem` takes them, for another table with these columns."""
        return {
            "groups": self.groups or None,
            "one_per_group": self.one_per_group,
            "min_distance": self.min_distance,
            "hierarchy": self.needs or None,
            "positive": self.signs,
        }

    def settings(self, names: Sequence[str]) -> dict[str, Any]:
        """What the settings of a run say about them; nothing where nothing was asked for."""
        settings: dict[str, Any] = {}
        if self.groups:
            settings["column_groups"] = {name: [names[int(c)] for c in each] for name, each in self.groups.items()}
            settings["one_per_group"] = self.one_per_group
        if self.min_distance > 0:
            settings["min_distance"] = self.min_distance
            settings["distance_by"] = "names" if self.by_names else "places"
        if self.needs:
            settings["hierarchy"] = {names[j]: [names[int(c)] for c in each] for j, each in self.needs.items()}
        if self.signs is not None:
            by_name = {names[j]: int(self.signs[j]) for j in np.flatnonzero(self.signs).tolist()}
            settings["signs"] = ALL_POSITIVE if (self.signs == 1).all() else by_name
        return settings

    def rules(self, candidates: Ints, always: Ints, first: Ints | None = None) -> Rules:
        """The rules between the candidates of a problem; what is always in the model is there for those that need it.

        Where groups are chosen as a whole, `first` (N,) is the first column of the unit of each column, and candidates
        are such first columns: a unit needs what its columns need, and two units clash if columns of theirs do.
        """
        n, place = candidates.size, {int(column): at for at, column in enumerate(candidates)}
        rules = no_rules(n)
        if self.one_per_group:
            for number, columns in enumerate(self.groups.values()):
                rules.group[[place[c] for c in columns.tolist() if c in place]] = number
        if self.min_distance > 0:
            rules = rules._replace(apart=self.min_distance * (1.0 - SLACK), position=self.positions[candidates])
        if first is not None:
            rules = rules._replace(clash=np.zeros((n, n), dtype=bool))
            if self.min_distance > 0:
                members = np.flatnonzero(np.isin(first, candidates))
                at, unit = self.positions[members], np.searchsorted(candidates, first[members])
                a, b = np.nonzero(np.abs(at[:, None] - at) < rules.apart)
                rules.clash[unit[a], unit[b]] = True
                np.fill_diagonal(rules.clash, False)
                np.minimum.at(rules.position, unit, at)
        needs = self.needs_of_units(always, first)
        needed = [[place.get(c, NOWHERE) for c in needs.get(int(j), ())] for j in candidates]
        start = np.concatenate([[0], np.cumsum([len(each) for each in needed])]).astype(np.int64)
        return rules._replace(need_start=start, need=np.array(list(chain.from_iterable(needed)), dtype=np.int64))

    def needs_of_units(self, always: Ints, first: Ints | None = None) -> dict[int, list[int]]:
        """The units (columns, without `first`) that each unit needs beside what is always there, by first columns."""
        needs: dict[int, set[int]] = {}
        for column, needed in self.needs.items():
            columns = np.append(column, np.setdiff1d(needed, always))
            unit, *others = (columns if first is None else first[columns]).tolist()
            needs.setdefault(unit, set()).update({*others} - {unit})
        return {unit: sorted(others) for unit, others in needs.items() if others}


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
    columns = {} if groups is None else _read_groups(groups, names, always)
    if one_per_group and not columns:
        raise ValueError("one_per_group is True without groups; expected groups={name: [columns], ...} with it.")
    distance, positions, by_names = 0.0, np.zeros(0), False
    if min_distance is not None:
        number = isinstance(min_distance, (int, float, np.number)) and not isinstance(min_distance, bool)
        if not (number and np.isfinite(min_distance) and min_distance >= 0):
            raise ValueError(
                f"min_distance is {min_distance!r}; expected a number >= 0, by the numbers in the names of the columns "
                "if all have one, otherwise in places."
            )
        distance = float(min_distance)
    if distance:
        positions, by_names = _positions(names, always)
    needs = {} if hierarchy is None or hierarchy is False else _read_hierarchy(hierarchy, names)
    signs = None if positive is None or positive is False else _read_signs(positive, names)
    limits = Limits(columns, bool(one_per_group), distance, positions, by_names, needs, signs)
    if limits.whole_groups and needs:
        first, labels = np.arange(len(names)), list(names)
        for name, members in columns.items():
            first[members], labels[int(members.min())] = members.min(), name
        _refuse_circles({unit: np.array(other) for unit, other in limits.needs_of_units(always, first).items()}, labels)
    return limits


def _read_groups(groups: Any, names: Sequence[str], always: Ints) -> dict[str, Ints]:
    """Groups of columns by name: from a mapping, a table with the columns "column" and "group", or N labels."""
    listed: dict[str, list[Any]] = {}
    if hasattr(groups, "columns"):
        if not {"column", "group"} <= set(groups.columns):
            raise ValueError(f"the table of groups has the columns {list(groups.columns)}; expected column and group.")
        for column, group in zip(groups["column"], groups["group"], strict=True):
            listed.setdefault(str(group), []).append(column)
    elif isinstance(groups, Mapping):
        listed = {str(name): each for name, each in groups.items()}
    else:
        labels = [groups] if isinstance(groups, str) else list(groups)
        if len(labels) != len(names):
            raise ValueError(
                f"groups has {plural(len(labels), 'label')} for {plural(len(names), 'column')}; expected a label for "
                "each column, or {name: [columns], ...}."
            )
        for j, label in enumerate(labels):
            if label is not None and label == label and label != "":  # not a number, or nothing: of no group
                listed.setdefault(str(label), [])
                listed[str(label)] += [] if j in always else [j]
    columns = {name: find_columns(each, names, f"group {name!r}") for name, each in listed.items()}
    taken: dict[int, str] = {int(j): "what is always in the model" for j in always}
    for name, members in columns.items():
        if not members.size:
            raise ValueError(f"the group {name!r} has no columns; expected at least one, or leave the group out.")
        for j in members.tolist():
            if j in taken:
                raise ValueError(
                    f"the column {names[j]!r} is in the group {name!r} and in {taken[j]}; expected groups that do not "
                    "overlap: name each column once."
                )
            taken[j] = f"the group {name!r}"
    return columns


def _positions(names: Sequence[str], always: Ints) -> tuple[Floats, bool]:
    """Positions (N,) of columns, and whether they are the numbers in the names.

    They are if every name (but those that are always in the model) is a number, or a number between the same letters:
    ``900``, ``nm900``, ``900 nm``.
    """
    numbers, places = name_positions(names), np.arange(len(names), dtype=np.float64)
    numbers[always] = places[always]
    return (numbers, True) if np.isfinite(numbers).all() else (places, False)


def name_positions(names: Sequence[str]) -> Floats:
    """The numbers (N,) in names that have the same letters around them, as most do; not-a-number for other names."""
    parts = [_NUMBERED.match(name.strip()) for name in names]
    letters = Counter((part[1], part[3]) for part in parts if part is not None).most_common(1)
    usual = letters[0][0] if letters else None
    return np.array([np.nan if part is None or (part[1], part[3]) != usual else float(part[2]) for part in parts])


def _read_hierarchy(hierarchy: Any, names: Sequence[str]) -> dict[int, Ints]:
    """What each product needs: from a mapping, or (True) from names such as a:b, a*b, "a b", a^2 and I(a ** 2)."""
    needs = {}
    if isinstance(hierarchy, Mapping):
        for product, factors in hierarchy.items():
            (column,) = find_columns([product], names, "hierarchy").tolist()
            needs[column] = find_columns(factors, names, "hierarchy")
        _refuse_circles(needs, names)
        return needs
    if hierarchy is not True:
        raise TypeError(
            f"hierarchy is a {type(hierarchy).__name__}; expected True (products are known by their names, such as "
            "a:b), or {product: [factors], ...}."
        )
    place = {name: j for j, name in reversed(list(enumerate(names)))}
    for j, name in enumerate(names):
        parts = _factors(name, place)
        if parts != {name} and parts <= place.keys():
            needs[j] = np.array(sorted(place[part] for part in parts), dtype=np.int64)
    if not needs:
        raise ValueError(
            "hierarchy is True and no name of a column is a product of others, such as a:b of a and b; expected such "
            "names, or {product: [factors], ...}."
        )
    return needs


def _factors(name: str, names: Mapping[str, int]) -> set[str]:
    """What a product is called after: whole names on both sides of a colon or before ^ first, whatever is in them."""
    colons = [at for at, character in enumerate(name) if character == ":"]
    for factors in ({name[:at], name[at + 1 :]} for at in colons):
        if factors <= names.keys():
            return factors
    power = _POWER.fullmatch(name)
    if power is not None and power[1] in names:
        return {power[1]}
    written = re.sub(r"\s*\*\*\s*", "^", _AS_IS.sub(r"\1", name.strip()))
    return {_POWER.sub(r"\1", part) for part in _FACTORS.split(written) if part}


def _refuse_circles(needs: Mapping[int, Ints], names: Sequence[str]) -> None:
    """Refuse a column that, by way of others, needs itself."""
    try:
        TopologicalSorter({column: others.tolist() for column, others in needs.items()}).prepare()
    except CycleError as error:
        column = next(column for column in needs if column in error.args[1])
        raise ValueError(
            f"hierarchy says that {names[column]!r} needs itself (perhaps by way of others); expected products "
            "that need their factors, and nothing in a circle."
        ) from None


def _read_signs(positive: Any, names: Sequence[str]) -> NDArray[np.int8] | None:
    """Signs (N,) of coefficients: all positive, some by name, or one for each column; None where all are free."""
    if positive is True:
        return np.ones(len(names), dtype=np.int8)
    given: list[Any] = [0] * len(names)
    if isinstance(positive, Mapping):
        for name, sign in positive.items():
            (column,) = find_columns([name], names, "positive").tolist()
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
    return np.array(signs, dtype=np.int8) if any(signs) else None


# Packing: how many candidates the rules let stand together, and sets of so many.
#
# Candidates that are taken one by one, at random or the best first, may leave no place for the last ones although
# another choice would have: two columns in the middle of a band block four. Here a candidate is taken only if enough
# others can follow. With one kind of rule that is decided exactly, so that nothing has to be taken back:
#
# - bands: of the columns that remain, the leftmost first, then the next that is far enough, and so on, are the most;
# - groups: as many as there are groups, and columns of none;
# - products with their factors: all whose factors can be there.
#
# With several kinds together, or units of several columns, the least of these numbers is a bound, and sets are looked
# for in several orders.


def _with_needs(rules: Rules, j: int) -> list[int]:
    """A candidate and all that it needs, directly or by way of others; empty where one of these cannot be chosen."""
    together = [j]
    for member in together:
        needed = rules.needs_of(member)
        if NOWHERE in needed:
            return []
        together += [other for other in needed if other not in together]
    return together


def choosable(rules: Rules) -> Mask:
    """Which candidates (N,) can be chosen at all: what they need is there, and may stand beside each other."""
    able = np.ones(rules.group.size, dtype=bool)
    for j in np.flatnonzero(np.diff(rules.need_start)).tolist():
        together = _with_needs(rules, j)
        able[j] = bool(together) and rules.allow(np.array(together))
    return able


def _free(rules: Rules, support: list[int], able: Mask) -> Mask:
    """Which candidates (N,) may still be chosen beside a support, what they need with them."""
    free = able.copy()
    for i in support:
        if rules.group[i] != NOWHERE:
            free &= rules.group != rules.group[i]
        if rules.apart > 0:
            free &= ~rules.clash[i] if rules.clash.size else np.abs(rules.position - rules.position[i]) >= rules.apart
    free[support] = False
    owner = np.repeat(np.arange(free.size), np.diff(rules.need_start))
    while rules.need.size:
        present = free.copy()
        present[support] = True
        lost = owner[~present[rules.need]]  # a candidate that needs NOWHERE is not able to be chosen
        if not free[lost].any():
            break
        free[lost] = False
    return free


def capacity(rules: Rules, support: Iterable[int] = (), able: Mask | None = None) -> int:
    """The most candidates that may be chosen beside a support: exact for one kind of rule, otherwise a bound."""
    free = _free(rules, list(support), choosable(rules) if able is None else able)
    groups = rules.group[free]
    most = int(np.unique(groups[groups != NOWHERE]).size + np.count_nonzero(groups == NOWHERE))
    if rules.apart > 0:
        count, last = 0, -np.inf
        for position in np.sort(rules.position[free]).tolist():
            if position - last >= rules.apart:
                count, last = count + 1, position
        most = min(most, count)
    return most


def packed(rules: Rules, k: int, order: Ints) -> Ints | None:
    """A set of k candidates that keeps the rules, sorted, the first in `order` preferred; None where none was found."""
    able = choosable(rules)
    if capacity(rules, (), able) < k:
        return None
    random = np.random.default_rng(0)
    by_place = np.argsort(rules.position, kind="stable")
    for one in (order, by_place, by_place[::-1], *(random.permutation(order) for _ in range(_ORDERS))):
        support = _packed_in_order(rules, k, one.tolist(), able)
        if support is not None:
            return support
    return None


def _packed_in_order(rules: Rules, k: int, order: list[int], able: Mask) -> Ints | None:
    """Candidates in one order: each is taken, with what it needs, if enough others can follow."""
    support: list[int] = []
    grown = True
    while len(support) < k and grown:
        grown, free = False, _free(rules, support, able)
        for j in order:
            if not free[j]:
                continue
            more = [c for c in _with_needs(rules, j) if c not in support]
            if len(support) + len(more) <= k <= len(support) + len(more) + capacity(rules, [*support, *more], able):
                support += more
                free, grown = _free(rules, support, able), True
            if len(support) == k:
                return np.sort(np.array(support, dtype=np.int64))
    return None


def largest_size(rules: Rules) -> int:
    """The most candidates that may be chosen together; with several kinds of rules the most that were found."""
    bound = capacity(rules)
    kinds = [rules.apart > 0, bool(rules.need.size), bool((rules.group != NOWHERE).any()), bool(rules.clash.any())]
    if sum(kinds) < 2:
        return bound
    order = np.arange(rules.group.size)
    return next((k for k in range(bound, 0, -1) if packed(rules, k, order) is not None), 0)
