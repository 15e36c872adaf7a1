"""Comma, semicolon or tab separated text, plain or gzipped."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from pairflip.tables.changes import Change
from pairflip.tables.errors import TableError, counted, quoted
from pairflip.tables.kinds import COMMA, THOUSANDS
from pairflip.tables.raw import MISSING_WORDS, Raw

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
MAGIC = {b"PK\x03\x04": ".xlsx or .npz", b"PAR1": ".parquet", b"ARROW1": ".feather", b"\xd0\xcf\x11\xe0": ".xls"}
NUMBER = re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True)
class Layout:
    """How a text table is written.

    Attributes
    ----------
    separator : str
        The character between fields.
    header : list of str
        Names of the columns.
    skip : int
        Records before the first row: header, blank lines, a spreadsheet's ``sep=;``.
    row_names : bool
        Whether the first field of a row has no name in the header and so names the row.
    first : list of str
        Fields of the first row.
    """

    separator: str
    header: list[str]
    skip: int
    row_names: bool
    first: list[str]

    @property
    def width(self) -> int:
        """Number of fields of a row."""
        return len(self.header) + (self.row_names and self.header[0] != "")


def read_text(path: Path, decimal: str | None, index: str | None) -> Raw:
    """Read a text table; the column `index` is kept as text, letter for letter."""
    _refuse_binary(path)
    layout = _layout(path)
    if decimal is None:
        _refuse_commas(path, layout)
    as_text = [0] if layout.row_names else []
    if index in layout.header:
        as_text.append(layout.header.index(index) + layout.width - len(layout.header))
    frame = _parse(path, layout, decimal or ".", as_text)
    if frame.shape[1] != layout.width or frame.iloc[:, -1].isna().any():
        _refuse_short_rows(path, layout)  # pandas fills them with missing values
    if not layout.row_names:
        return Raw(frame, layout.header)
    rows = [str(name) for name in frame[0]]
    frame = frame.iloc[:, 1:].set_axis(range(layout.width - 1), axis=1)
    names = layout.header[1:] if len(layout.header) == layout.width else layout.header
    note = Change("column", "without a name at the front, taken as names of the rows", ("",))
    return Raw(frame, names, rows, [note])


def _open(path: Path) -> IO[bytes]:
    """The bytes of the text; gzip is known by its first two bytes, whatever the file is called."""
    with path.open("rb") as handle:
        zipped = handle.read(2) == b"\x1f\x8b"
    return cast("IO[bytes]", gzip.open(path, "rb")) if zipped else path.open("rb")


def _refuse_binary(path: Path) -> None:
    with _open(path) as handle:
        head = handle.read(1 << 16)
    name = path.name
    if not head.removeprefix(b"\xef\xbb\xbf").strip():
        raise TableError(f"{name!r} is empty; expected a header of column names and at least two rows.")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise TableError(f"{name!r} is UTF-16 text; expected UTF-8: save it as 'CSV UTF-8'.")
    for magic, suffix in MAGIC.items():
        if head.startswith(magic):
            raise TableError(f"{name!r} is no text table but a {suffix} file; expected that suffix: rename it.")
    if b"\0" in head:
        raise TableError(f"{name!r} holds binary data; expected a text table with commas, semicolons or tabs.")


def _layout(path: Path) -> Layout:
    with _open(path) as handle, io.TextIOWrapper(handle, encoding="utf-8-sig", newline="") as text:
        lines: list[str] = []
        for line in islice(text, 40):
            lines.append(line)
            if len(lines) > 3 and sum(map(len, lines)) > 1 << 22:
                break
        cut = bool(text.read(1))
    forced = re.fullmatch(r"sep=(.)\s*", lines[0])
    separators = [forced[1]] if forced else list(SEPARATORS)
    found = [(separator, _records(lines, separator, cut)) for separator in separators]
    separator, records = max(found, key=lambda each: _plausibility(*each))
    at = next((i for i, record in enumerate(records) if record and not (forced and i == 0)), len(records))
    rows = [record for record in records[at + 1 :] if record]
    if not rows and "".join(lines).count('"') % 2:
        raise _unclosed(path)
    if not rows:
        raise TableError(f"{path.name!r} holds a header but no rows; expected at least two rows of numbers.")
    header, first = records[at], rows[0]
    if len(first) == len(header):
        return Layout(separator, header, at + 1, header[0] == "" and len(header) > 1, first)
    if len(first) == len(header) + 1 and first[-1] != "" and header[0] != "":
        return Layout(separator, header, at + 1, True, first)  # as R's write.table writes them
    raise _ragged(path, separator, len(header), 1, len(first))


def _refuse_commas(path: Path, layout: Layout) -> None:
    """Refuse a table of decimal commas at once: reading it as text takes several times as long."""
    commas = [field for field in layout.first if COMMA.fullmatch(field) and not THOUSANDS.fullmatch(field)]
    if 2 * len(commas) > len(layout.first):
        raise TableError(
            f"{path.name!r} holds decimal commas (row 1: {quoted(commas[0])}); expected decimal points: "
            "read it with --decimal ,."
        )


def _records(lines: list[str], separator: str, cut: bool) -> list[list[str]]:
    """The first records; a last one that may go on beyond `lines` is left out."""
    try:
        records = list(csv.reader(lines, delimiter=separator, skipinitialspace=True))
    except csv.Error:  # a field of more than 131,072 letters: not the separator
        return []
    return records[:-1] if cut and len(records) > 2 else records


def _plausibility(separator: str, records: list[list[str]]) -> tuple[bool, float, float, int]:
    """Of several separators: one that separates, gives rows as long as the header, of numbers, and most of them."""
    header, *rows = [record for record in records if record] or [[]]
    if len(header) < 2:
        return (False, 0.0, 0.0, len(header))
    even = sum(len(row) - len(header) in (0, 1) for row in rows) / max(1, len(rows))
    fields = rows[0] if rows else []
    numbers = sum(NUMBER.fullmatch(field.strip()) is not None for field in fields) / max(1, len(fields))
    return (True, even, numbers, len(header))


def _parse(path: Path, layout: Layout, decimal: str, as_text: list[int]) -> pd.DataFrame:
    import pandas as pd

    # The exact reading of decimals is the default from pandas 3.1 on, which warns when it is asked for.
    release = tuple(int(part) for part in pd.__version__.split(".")[:2])
    exact: dict[str, Any] = {} if release >= (3, 1) else {"float_precision": "round_trip"}
    with _open(path) as handle:
        try:
            frame: pd.DataFrame = pd.read_csv(
                handle,
                sep=layout.separator,
                header=None,
                skiprows=layout.skip,
                decimal=decimal,
                encoding="utf-8-sig",
                na_values=list(MISSING_WORDS),
                converters=dict.fromkeys(as_text, _marked),
                skipinitialspace=True,
                low_memory=False,  # one type a column, and half the memory
                engine="c",
                **exact,
            )
            for column in as_text:
                frame[column] = [str(name)[1:] for name in frame[column]]
            return frame
        except pd.errors.ParserError as error:
            fields = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
            if fields is None:
                raise _unclosed(path) from None
            error_at = int(fields[2]) - layout.skip
    raise _ragged(path, layout.separator, layout.width, error_at, int(fields[3]))


def _marked(name: str) -> str:
    """A row may be called 007 or NA: with a letter before it, pandas takes it for neither number nor missing."""
    return f"_{name}"


def _unclosed(path: Path) -> TableError:
    return TableError(
        f"{path.name!r} has a quotation mark that is never closed; expected them in pairs: "
        "look for a field that starts with one."
    )


def _ragged(path: Path, separator: str, expected: int, row: int, fields: int) -> TableError:
    fix = "complete or remove that row"
    if expected == 1:
        fix = "remove what stands above the row of column names"
    elif separator == "," and fields == 2 * expected:
        fix = "if its numbers have decimal commas, export it with semicolons or decimal points"
    elif row == 1 and fields == expected + 1:
        fix = "remove the comma at the end of the rows, or name the last column" if separator == "," else fix
    return TableError(
        f"{path.name!r} has {counted(fields, 'field')} in row {row:,} but {counted(expected, 'column')} "
        f"(separated by {SEPARATORS.get(separator, repr(separator))}); expected as many fields as columns: {fix}."
    )


def _refuse_short_rows(path: Path, layout: Layout) -> None:
    """Tell rows that end too early from rows whose last field is empty."""
    row = 0
    for fields in islice(_widths(path, layout.separator), layout.skip, None):
        row += fields > 0
        if 0 < fields < layout.width:
            raise _ragged(path, layout.separator, layout.width, row, fields)


def _widths(path: Path, separator: str) -> Iterator[int]:
    """Number of fields of each record, 0 for a blank line; plain lines are only counted, not taken apart."""
    with _open(path) as handle, io.TextIOWrapper(handle, encoding="utf-8-sig", newline="") as text:
        for line in text:
            if '"' not in line:
                yield line.count(separator) + 1 if line.strip("\r\n ") else 0
                continue
            records = csv.reader(chain([line], text), delimiter=separator, skipinitialspace=True)
            yield len(next(records))
