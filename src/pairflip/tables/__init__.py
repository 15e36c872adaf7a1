"""Reading a table from a file: which columns, which rows, and what was left out.

``files`` and ``text_files`` (path to columns) -> ``columns`` (target, candidates) -> ``categories``, ``cleaning``
(finite numbers, or a sentence about a column that does not fit) -> ``table``; ``new_rows`` for predictions.
"""

from pairflip.tables.errors import TableError
from pairflip.tables.raw import Change
from pairflip.tables.table import Table, read_table

__all__ = ["Change", "Table", "TableError", "read_table"]
