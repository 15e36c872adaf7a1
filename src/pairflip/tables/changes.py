"""What reading a table left out or treated in a way worth saying."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pairflip.tables.errors import counted
from pairflip.text import listed


@dataclass(frozen=True)
class Change:
    """One thing that was done to a table, to be shown in the report.

    Attributes
    ----------
    what : {"column", "row", "sheet", "target"}
        What it was done to.
    why : str
        What was done, or for which reason, such as ``"hold text"``.
    names : tuple of str
        The columns or rows, all of them, as text.
    says : str
        The whole remark, without its full stop, where "2 columns hold text: 'a', 'b'" would not be good English.
    """

    what: str
    why: str
    names: tuple[str, ...]
    says: str = ""

    @property
    def count(self) -> int:
        """How many columns or rows."""
        return len(self.names)

    def __str__(self) -> str:
        return self.says or f"{counted(self.count, self.what)} {self.why}: {listed(self.names)}"


def change(what: str, why: str, names: Iterable[str]) -> list[Change]:
    """One change, or none where it concerns nothing."""
    every = tuple(names)
    return [Change(what, why, every)] if every else []
