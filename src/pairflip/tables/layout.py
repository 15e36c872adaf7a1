"""How a text table is written: its letters, separators and header, and whether its rows have names."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, cast

from pairflip.tables.errors import TableError
from pairflip.text import numbered, plural

MAGIC = {b"PK\x03\x04": ".xlsx or .npz", b"PAR1": ".parquet", b"ARROW1": ".feather", b"\xd0\xcf\x11\xe0": ".xls"}
UTF16 = (b"\xff\xfe", b"\xfe\xff")
SPACES = " "  # any run of spaces and tabs
MARKS = (",", "\t", ";", "|")
SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars", SPACES: "spaces"}
NUMBER = re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?")
LINES = 40  # looked at to find all this


def open_bytes(path: Path) -> IO[bytes]:
    """The bytes of the text; gzip is recognized by its first two bytes, whatever the file is called."""
    with path.open("rb") as handle:
        zipped = handle.read(2) == b"\x1f\x8b"
    return cast("IO[bytes]", gzip.open(path, "rb")) if zipped else path.open("rb")


def encoding_of(path: Path) -> str:
    """How the letters are encoded, recognized by the mark at the beginning; Excel's "Unicode text" is UTF-16."""
    with open_bytes(path) as handle:
        return "utf-16" if handle.read(2) in UTF16 else "utf-8-sig"


def open_text(path: Path) -> io.TextIOWrapper:
    """The letters of the text, with line ends as they are in the file."""
    encoding = encoding_of(path)
    return io.TextIOWrapper(open_bytes(path), encoding=encoding, newline="")


def refuse_binary(path: Path) -> None:
    """Refuse what is not a text table, whatever its name says."""
    with open_bytes(path) as handle:
        head = handle.read(1 << 16)
    name = path.name
    for magic, suffix in MAGIC.items():
        if head.startswith(magic):
            raise TableError(f"{name!r} is not a text table but a {suffix} file; expected that suffix: rename it.")
    if head.startswith(UTF16):
        if head[2:4] == b"\0\0":
            raise TableError(f"{name!r} is UTF-32 text; expected UTF-8 or UTF-16: save it as 'CSV UTF-8'.")
        head = head[: len(head) & ~1].decode("utf-16", "replace").encode("utf-8", "replace")
    if not head.removeprefix(b"\xef\xbb\xbf").strip():
        raise TableError(f"{name!r} is empty; expected a header of column names and at least two rows.")
    if b"\0" in head:
        raise TableError(f"{name!r} holds binary data; expected a text table with commas, semicolons or tabs.")


@dataclass(frozen=True)
class Layout:
    """How a text table is written.

    Attributes
    ----------
    separator : str
        The character between fields; a space stands for any run of spaces and tabs.
    header : list of str
        Names of the columns.
    skip : int
        Records before the first row: header, blank lines, a spreadsheet's ``sep=;``.
    row_names : bool
        Whether the first field of a row has no name in the header and so names the row.
    sample : list of lists of str
        Fields of the first rows, at least of one.
    """

    separator: str
    header: list[str]
    skip: int
    row_names: bool
    sample: list[list[str]]

    @property
    def width(self) -> int:
        """Number of fields of a row."""
        return len(self.header) + (self.row_names and self.header[0] != "")


def find_layout(path: Path) -> Layout:
    """Find separator, header and row names from the first lines of a text table."""
    with open_text(path) as text:
        lines: list[str] = []
        for line in islice(text, LINES):
            lines.append(line)
            if len(lines) > 3 and sum(map(len, lines)) > 1 << 22:
                break
        cut = bool(text.read(1))
    forced = re.fullmatch(r"sep=(.)\s*", lines[0])
    separator, records = _separate(lines, forced[1] if forced else None, cut)
    if not records:
        raise unclosed(path) if "".join(lines).count('"') % 2 else too_long(path)
    at = next((i for i, record in enumerate(records) if record and not (forced and i == 0)), len(records))
    rows = [record for record in records[at + 1 :] if record]
    if not rows and "".join(lines).count('"') % 2:
        raise unclosed(path)
    if not rows:
        raise TableError(f"{path.name!r} holds a header but no rows; expected rows of numbers below it.")
    header, first = records[at], rows[0]
    if len(first) == len(header):
        return Layout(separator, header, at + 1, header[0] == "" and len(header) > 1, rows)
    if len(first) == len(header) + 1 and first[-1] != "" and header[0] != "":
        return Layout(separator, header, at + 1, True, rows)  # as R's write.table writes them
    raise ragged(path, separator, len(header), 1, len(first))


def _separate(lines: list[str], forced: str | None, cut: bool) -> tuple[str, list[list[str]]]:
    """The separator and the first records. Spaces separate only where nothing else does, as in ``1, 2, 3``."""
    if forced is not None:
        return forced, _records(lines, forced, cut)
    found = [(mark, _records(lines, mark, cut)) for mark in MARKS]
    best = max(found, key=lambda each: _plausibility(each[1]))
    separates, even, *_ = _plausibility(best[1])
    if not separates or even == 0:
        records = _records(lines, SPACES, cut)
        separates, even, *_ = _plausibility(records)
        if separates and even >= 0.5:
            return SPACES, records
    return best


def _records(lines: list[str], separator: str, cut: bool) -> list[list[str]]:
    """The first records; a last one that may go on beyond `lines` is left out."""
    if separator == SPACES:
        lines = [line.replace("\t", " ").rstrip() + "\n" for line in lines]
    try:
        records = list(csv.reader(lines, delimiter=separator, skipinitialspace=True))
    except csv.Error:  # a field of more than 131,072 letters: not the separator
        return []
    return records[:-1] if cut and len(records) > 2 else records


def _plausibility(records: list[list[str]]) -> tuple[bool, float, float, int]:
    """How plausible a separator is: it separates, rows are as long as the header, fields are numbers and many."""
    header, *rows = [record for record in records if record] or [[]]
    if len(header) < 2:
        return (False, 0.0, 0.0, len(header))
    even = sum(len(row) - len(header) in (0, 1) for row in rows) / max(1, len(rows))
    fields = rows[0] if rows else []
    numbers = sum(NUMBER.fullmatch(field.strip()) is not None for field in fields) / max(1, len(fields))
    return (True, even, numbers, len(header))


def unclosed(path: Path) -> TableError:
    """The error of a quotation mark that swallows the rest of the table."""
    return TableError(
        f"{path.name!r} has a quotation mark that is never closed; expected them in pairs: "
        "look for a field that starts with one."
    )


def too_long(path: Path) -> TableError:
    """The error of a field that is longer than the csv module of Python reads."""
    return TableError(
        f"{path.name!r} has a field of more than {csv.field_size_limit():,} characters; expected names of columns and "
        "numbers, separated by commas, semicolons or tabs: shorten it, or check the separator and the line ends."
    )


def ragged(path: Path, separator: str, expected: int, row: int, fields: int) -> TableError:
    """The error of a row that is longer or shorter than the header."""
    fix = "complete or remove that row"
    if expected == 1:
        fix = "remove what stands above the row of column names"
    elif separator == SPACES:
        fix = "write NA for what is missing, and text with spaces in quotes"
    elif separator == "," and fields == 2 * expected:
        fix = "if its numbers have decimal commas, export it with semicolons or decimal points"
    elif row == 1 and fields == expected + 1:
        fix = "remove the comma at the end of the rows, or name the last column" if separator == "," else fix
    return TableError(
        f"{path.name!r} has {plural(fields, 'field')} in {numbered('row', row - 1)} but {plural(expected, 'column')} "
        f"(separated by {SEPARATORS.get(separator, repr(separator))}); expected as many fields as columns: {fix}."
    )


def refuse_short_rows(path: Path, layout: Layout) -> None:
    """Tell rows that end too early from rows whose last field is empty."""
    row = 0
    for fields in islice(_widths(path, layout.separator), layout.skip, None):
        row += fields > 0
        if 0 < fields < layout.width:
            raise ragged(path, layout.separator, layout.width, row, fields)


def _widths(path: Path, separator: str) -> Iterator[int]:
    """Number of fields of each record, 0 for a blank line; plain lines are only counted, not taken apart."""
    with open_text(path) as text:
        for line in text:
            if separator == SPACES:
                yield len(line.split()) if '"' not in line else len(_records([line], SPACES, cut=False)[0])
            elif '"' not in line:
                yield line.count(separator) + 1 if line.strip("\r\n ") else 0
            else:
                records = csv.reader(chain([line], text), delimiter=separator, skipinitialspace=True)
                yield len(next(records))
