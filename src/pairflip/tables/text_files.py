"""Text tables: how one is written (letters, separators, header, names of the rows), and its columns."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np

from pairflip.tables.errors import TableError
from pairflip.tables.kinds import Marks, is_plain, written_numbers
from pairflip.tables.raw import MISSING_WORDS, NO_VALUE, Raw, names_at_the_front, units_left_out
from pairflip.text import numbered, plural, quoted

if TYPE_CHECKING:
    import pandas as pd

MAGIC = {b"PK\x03\x04": ".xlsx or .npz", b"PAR1": ".parquet", b"ARROW1": ".feather", b"\xd0\xcf\x11\xe0": ".xls"}
UTF16 = (b"\xff\xfe", b"\xfe\xff")
SPACES = " "  # any run of spaces and tabs
MARKS = (",", "\t", ";", "|")
SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars", SPACES: "spaces"}
NUMBER = re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?")
_NO_UNIT = re.compile(r"[<>≤≥~=±]|[+-]?[\d.,]+\W*$")  # numbers with a slip, such as limits of detection
EITHER = re.compile(r"\s*[+-]?[1-9]\d{0,2},\d{3}\s*")  # 1,499 is 1499 or 1.499
LINES = 40  # looked at to find how a table is written
LOOKED_AT = 1000  # columns read a second time, as text


@dataclass(frozen=True)
class Layout:
    """How a text table is written."""

    encoding: str
    separator: str  # between fields; a space stands for any run of spaces and tabs
    header: list[str]  # names of the columns
    skip: int  # records before the first row: header, blank lines, a spreadsheet's sep=;
    row_names: bool  # whether the first field of a row has no name in the header and so names the row
    width: int  # number of fields of a row
    sample: list[list[str]]  # fields of the first rows, at least of one
    units: list[str]  # fields of a row of units below the header; none where there is no such row


def read_text(path: Path, marks: Marks, index: str | None) -> Raw:
    """Read a text table."""
    layout = find_layout(path)
    first = layout.sample[0]
    comma, grouped = Marks(decimal=","), Marks(thousands=",")
    commas = [each for each in first if "," in each and comma.number(each) is not None and grouped.number(each) is None]
    if marks == Marks() and 2 * len(commas) > len(first):  # at once: reading it as text takes several times as long
        raise TableError(
            f"{path.name!r} holds decimal commas ({numbered('row', 0)}: {quoted(commas[0])}); expected decimal points: "
            "read the table with --decimal ,."
        )
    as_text = [0] if layout.row_names else []
    if index in layout.header:
        as_text.append(layout.header.index(index) + layout.width - len(layout.header))
    frame = _parse(path, layout, marks.decimal, as_text)
    if frame.shape[1] != layout.width or frame.iloc[:, -1].isna().any():
        refuse_short_rows(path, layout)  # pandas fills them with missing values
    for j, dtype in enumerate(frame.dtypes):
        if dtype.kind == "O" and j not in as_text and (values := written_numbers(frame[j], marks)) is not None:
            frame[j] = values  # with a thousands mark, or too long for the integers of pandas
    either = _commas_of_two_meanings(path, layout, frame) if marks == comma else []
    notes = units_left_out(layout.units)
    if not layout.row_names:
        return Raw(frame, layout.header, None, notes, marks=marks, either=either)
    frame, rows, note = names_at_the_front(frame, frame[0])
    names = layout.header[1:] if len(layout.header) == layout.width else layout.header
    return Raw(frame, names, rows, [*notes, note], marks=marks, either=[j - 1 for j in either])


def open_bytes(path: Path) -> IO[bytes]:
    """The bytes of the text; gzip is recognized by its first two bytes, whatever the file is called."""
    with path.open("rb") as handle:
        zipped = handle.read(2) == b"\x1f\x8b"
    return cast("IO[bytes]", gzip.open(path, "rb")) if zipped else path.open("rb")


def _open_text(path: Path, encoding: str) -> io.TextIOWrapper:
    """The letters of the text, with line ends as they are in the file."""
    return io.TextIOWrapper(open_bytes(path), encoding=encoding, newline="")


def find_layout(path: Path) -> Layout:
    """Find encoding (by its mark: Excel's "Unicode text" is UTF-16), separator, header and row names."""
    with open_bytes(path) as handle:
        head = handle.read(1 << 16)
    name, wide = path.name, head.startswith(UTF16)
    for magic, suffix in MAGIC.items():
        if head.startswith(magic):
            raise TableError(f"{name!r} is not a text table but a {suffix} file; expected that suffix: rename it.")
    if wide:
        if head[2:4] == b"\0\0":
            raise TableError(f"{name!r} is UTF-32 text; expected UTF-8 or UTF-16: save it as 'CSV UTF-8'.")
        head = head[: len(head) & ~1].decode("utf-16", "replace").encode("utf-8", "replace")
    if not head.removeprefix(b"\xef\xbb\xbf").strip():
        raise TableError(f"{name!r} is empty; expected a header of column names and at least two rows.")
    if b"\0" in head:
        raise TableError(f"{name!r} holds binary data; expected a text table with commas, semicolons or tabs.")
    encoding = "utf-16" if wide else "utf-8-sig"
    with _open_text(path, encoding) as text:
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
    header, units = records[at], rows[0] if are_units(rows) else []
    if units:
        at, rows = records.index(units, at + 1), rows[1:]
    width = len(rows[0])
    unnamed = header[0] == ""
    as_r_writes = width == len(header) + 1 and rows[0][-1] != "" and not unnamed  # no name above the names of the rows
    if width != len(header) and not as_r_writes:
        raise ragged(path, separator, len(header), 1, width)
    return Layout(encoding, separator, header, at + 1, as_r_writes or (unnamed and width > 1), width, rows, units)


def are_units(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first of some rows has no numbers, but text where the others have numbers (and no ``<0.1``)."""
    first = [field.strip() for field in rows[0]] if rows else []
    if any(map(NUMBER.fullmatch, first)):  # nearly always, at once
        return False
    text = [j for j, field in enumerate(first) if field not in NO_VALUE]
    below = ([row[j].strip() for row in rows[1:] if j < len(row)] for j in text)
    known = ([field for field in fields if field not in NO_VALUE] for fields in below)
    units = [first[j] for j, fields in zip(text, known, strict=True) if fields and all(map(NUMBER.fullmatch, fields))]
    return bool(units) and not any(map(_NO_UNIT.match, units))


def _separate(lines: list[str], forced: str | None, cut: bool) -> tuple[str, list[list[str]]]:
    """The separator and the first records. Spaces separate only where nothing else does, as in ``1, 2, 3``."""
    if forced is not None:
        return forced, _records(lines, forced, cut)
    ways = [(mark, _records(lines, mark, cut)) for mark in MARKS]
    best = max(ways, key=lambda each: _plausibility(each[1]))
    separates, even, *_ = _plausibility(best[1])
    if not separates or even == 0:
        records = _records(lines, SPACES, cut)
        separates, even, *_ = _plausibility(records)
        if separates and even >= 0.5:
            return SPACES, records
    return best


def _records(lines: list[str], separator: str, cut: bool) -> list[list[str]]:
    """The first records; a last one that may go on beyond `lines` is left out."""
    try:
        records = list(_fields(lines, separator))
    except csv.Error:  # a field of more than 131,072 letters: not the separator
        return []
    return records[:-1] if cut and len(records) > 2 else records


def _fields(lines: Iterable[str], separator: str) -> Iterator[list[str]]:
    """The fields of each record."""
    if separator == SPACES:
        lines = (line.replace("\t", " ").rstrip() + "\n" for line in lines)
    return csv.reader(lines, delimiter=separator, skipinitialspace=True)


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
    with _open_text(path, layout.encoding) as text:
        records = islice(_fields(text, layout.separator), layout.skip, None)
        for row, fields in enumerate((each for each in records if each not in ([], [""])), 1):
            if len(fields) < layout.width:
                raise ragged(path, layout.separator, layout.width, row, len(fields))


def _commas_of_two_meanings(path: Path, layout: Layout, frame: pd.DataFrame) -> list[int]:
    """Columns in which every comma, read as a decimal comma, might instead mark thousands.

    The numbers and the first lines tell for nearly all columns that it is not so; the rest is read once more as text.
    """
    rows = [row for row in layout.sample if len(row) == layout.width]
    suspects = []
    for j, dtype in enumerate(frame.dtypes):
        if is_plain(dtype) and dtype.kind == "f" and _three_decimals(frame[j].to_numpy()):
            commas = [row[j] for row in rows if "," in row[j]]
            if all(map(EITHER.fullmatch, commas)):
                suspects.append(j)
    if not suspects:
        return []
    texts = _parse(path, layout, ".", [], only=suspects[:LOOKED_AT])
    either = suspects[LOOKED_AT:]
    for j in suspects[:LOOKED_AT]:
        commas = [text for text in texts[j].dropna() if "," in text]
        if commas and all(map(EITHER.fullmatch, commas)):
            either.append(j)
    return sorted(either)


def _three_decimals(values: np.ndarray[Any, Any]) -> bool:
    """Whether every fraction may be one to three digits after one to three others, as in 1,499."""
    broken = np.abs(values[np.isfinite(values) & (values != np.rint(values))])
    thousands = 1000.0 * broken
    exact = np.abs(thousands - np.rint(thousands)) < 1e-6
    return bool((exact & (broken >= 1.0) & (broken < 1000.0)).all())


def _parse(path: Path, layout: Layout, decimal: str, as_text: list[int], only: list[int] | None = None) -> pd.DataFrame:
    """The rows, columns `as_text` letter for letter; or `only` some columns, all of them as text."""
    import pandas as pd

    # The exact reading of decimals is the default from pandas 3.1 on, which warns when it is asked for.
    release = tuple(int(part) for part in pd.__version__.split(".")[:2])
    options: dict[str, Any] = {} if release >= (3, 1) else {"float_precision": "round_trip"}
    if only is not None:
        options |= {"usecols": only, "dtype": str}
    with open_bytes(path) as handle:
        try:
            frame: pd.DataFrame = pd.read_csv(
                handle, sep=r"\s+" if layout.separator == SPACES else layout.separator, header=None,
                skiprows=layout.skip, decimal=decimal, encoding=layout.encoding, na_values=list(MISSING_WORDS),
                converters=dict.fromkeys(as_text, "_{}".format),  # so that 007 and NA stay names
                low_memory=False,  # one type per column, and half the memory
                skipinitialspace=True, engine="c", **options,
            )  # fmt: skip
            for column in as_text:
                frame[column] = [str(name)[1:] for name in frame[column]]
            return frame
        except pd.errors.ParserError as error:
            fields = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
            if fields is None:
                raise unclosed(path) from None
            error_at = int(fields[2]) - layout.skip
    raise ragged(path, layout.separator, layout.width, error_at, int(fields[3]))
