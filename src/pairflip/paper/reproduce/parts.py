"""What can be reproduced, and the files of a result: known before anything large is loaded."""

from __future__ import annotations

from pathlib import Path

PARTS = ("fig1", "fig2", "fig3", "table1", "table2", "section3")
TABLES = ("table1", "table2")
FILES = frozenset(
    {f"{part}.{kind}" for part in PARTS for kind in ("csv", "svg", "png")} | {"theory.csv", "run.json", "verdict.json"}
)
"""What a result folder may hold."""
TARGET = "target_M_B"
"""The column of the supernova table that is predicted."""


def parts_of(what: str, data: Path | None) -> tuple[str, ...]:
    """The parts that a word names; only the tables need data."""
    if what == "all":
        return PARTS
    if what not in PARTS:
        raise ValueError(f"{what!r} cannot be reproduced; expected one of {', '.join(PARTS)} or all.")
    if what in TABLES and data is None:
        raise ValueError(f"{what} needs the supernova table; expected --data TABLE.csv with the column {TARGET!r}.")
    return (what,)
