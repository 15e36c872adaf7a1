"""Reading a table from a file: which columns, which rows, and what was left out.

``reading`` (path to columns) -> ``columns`` (target, candidates) -> ``cleaning`` (finite numbers) -> ``table``.
"""

from pairflip.tables.changes import Change
from pairflip.tables.errors import TableError
from pairflip.tables.table import Table, read_table

__all__ = ["Change", "Table", "TableError", "read_table"]
