"""The options about what may be chosen together, and from them to arguments of `SubsetProblem`."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pairflip.cli.options import in_model
from pairflip.cli.subjects import Names

if TYPE_CHECKING:
    from pairflip.tables import Table

EVERY_COLUMN = "all"
"""In place of a name, for signs."""
_SIGN = "Column whose coefficient must not be {}; all: every column. Several: a,b, or repeat."


@dataclass(frozen=True)
class LimitOptions:
    """What was asked about columns that belong together, and about signs of coefficients."""

    column_groups: Annotated[
        Path | None,
        in_model("--column-groups", metavar="FILE", help="Table with the columns column and group: whole groups of "
                 "columns are chosen, and sizes count groups."),
    ] = None  # fmt: skip
    one_per_group: Annotated[bool, in_model("--one-per-group", help="At most one column of each group instead.")] = (
        False
    )
    min_distance: Annotated[
        float | None,
        in_model("--min-distance", metavar="D", min=0.0, help="No two chosen columns closer than this: in units of "
                 "their names if those are numbers, such as wavelengths, otherwise in places."),
    ] = None  # fmt: skip
    hierarchy: Annotated[
        bool, in_model("--hierarchy", help="A product such as a:b, a*b or a^2 only together with its factors.")
    ] = False
    positive: Annotated[Names, in_model(metavar="NAME", help=_SIGN.format("negative"))] = None
    negative: Annotated[Names, in_model(metavar="NAME", help=_SIGN.format("positive"))] = None

    def arguments(self, table: Table, always: Sequence[str]) -> dict[str, Any]:
        """The same for `SubsetProblem`: only what was asked for."""
        groups = None if self.column_groups is None else read_groups(self.column_groups, table)
        signs = self._signs(table.names, always)
        asked = {
            "groups": groups,
            "one_per_group": self.one_per_group or None,
            "min_distance": self.min_distance,
            "hierarchy": self.hierarchy or None,
            "positive": signs or None,
        }
        return {name: value for name, value in asked.items() if value is not None}

    def _signs(self, names: Sequence[str], always: Sequence[str]) -> dict[str, int]:
        """A sign for each column that has one; what is always in the model keeps its own."""
        from pairflip.tables.columns import matching

        signs: dict[str, int] = {}
        for option, given, sign in (("--positive", self.positive, 1), ("--negative", self.negative, -1)):
            wanted = given or []
            named = [name for name in wanted if name != EVERY_COLUMN or name in names]
            found = matching(named, names, option)
            if len(named) < len(wanted):
                found = set(range(len(names)))
            for name in (names[j] for j in sorted(found)):
                if signs.get(name, sign) != sign:
                    raise ValueError(f"{name!r} is in --positive and in --negative; expected it in one of them.")
                if name not in always:
                    signs[name] = sign
        return signs


def read_groups(path: Path, table: Table) -> dict[str, list[str]]:
    """Columns of the table by group, from a file with the columns "column" and "group".

    Columns of the file that were left out of the table are passed over; one that the table never had is an error, which
    `SubsetProblem` says.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ","))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = getattr(error, "strerror", None) or "it is not a text table in UTF-8"
        raise ValueError(
            f"--column-groups {str(path)!r} cannot be read ({why}); expected a .csv file with the columns column and "
            "group."
        ) from None
    if not rows or not {"column", "group"} <= set(rows[0]):
        raise ValueError(
            f"--column-groups {str(path)!r} does not have the columns column and group; expected them in its first "
            "line, and a column of the table and its group in each line below."
        )
    gone = {name for item in table.dropped for name in item.names}
    groups: dict[str, list[str]] = {}
    for row in rows:
        name, group = (row["column"] or "").strip(), (row["group"] or "").strip()
        if group and name and (name in table.names or name not in gone):
            groups.setdefault(group, []).append(name)
    return groups
