"""Reading a table from a file: which columns, which rows, and what was left out.

``reading`` (path to columns) -> ``columns`` (target, candidates) -> ``cleaning`` (finite numbers) -> ``table``.
What a column may hold is in ``kinds``, ``marks`` (commas and points) and ``dates``; messages about a column that
does not fit are in ``odd``.
"""

from pairflip.tables.errors import TableError
from pairflip.tables.raw import Change
from pairflip.tables.table import Table, read_table

__all__ = ["Change", "Table", "TableError", "read_table"]
