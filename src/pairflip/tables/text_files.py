"""Text tables separated by commas, semicolons, tabs, bars or spaces."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pairflip.tables.errors import TableError
from pairflip.tables.kinds import is_plain, written_numbers
from pairflip.tables.layout import (
    SPACES,
    Layout,
    encoding_of,
    find_layout,
    open_bytes,
    ragged,
    refuse_binary,
    refuse_short_rows,
    unclosed,
)
from pairflip.tables.marks import Marks
from pairflip.tables.raw import MISSING_WORDS, Change, Raw
from pairflip.text import numbered, quoted

if TYPE_CHECKING:
    import pandas as pd

EITHER = re.compile(r"\s*[+-]?[1-9]\d{0,2},\d{3}\s*")  # 1,499 is 1499 or 1.499
LOOKED_AT = 1000  # columns read a second time, as text


def read_text(path: Path, marks: Marks, index: str | None) -> Raw:
    """Read a text table."""
    refuse_binary(path)
    layout = find_layout(path)
    if marks == Marks():
        _refuse_commas(path, layout)
    as_text = [0] if layout.row_names else []
    if index in layout.header:
        as_text.append(layout.header.index(index) + layout.width - len(layout.header))
    frame = _parse(path, layout, marks.decimal, as_text)
    if frame.shape[1] != layout.width or frame.iloc[:, -1].isna().any():
        refuse_short_rows(path, layout)  # pandas fills them with missing values
    for j, dtype in enumerate(frame.dtypes):
        if dtype.kind == "O" and j not in as_text and (values := written_numbers(frame[j], marks)) is not None:
            frame[j] = values  # with a thousands mark, or too long for the integers of pandas
    either = _commas_of_two_meanings(path, layout, frame) if marks == Marks(decimal=",") else []
    if not layout.row_names:
        return Raw(frame, layout.header, marks=marks, either=either)
    rows = [str(name) for name in frame[0]]
    frame = frame.iloc[:, 1:].set_axis(range(layout.width - 1), axis=1)
    names = layout.header[1:] if len(layout.header) == layout.width else layout.header
    note = Change("column", "without a name at the front, taken as names of the rows", ("",))
    return Raw(frame, names, rows, [note], marks=marks, either=[j - 1 for j in either])


def _refuse_commas(path: Path, layout: Layout) -> None:
    """Refuse a table of decimal commas at once: reading it as text takes several times as long."""
    comma, grouped = Marks(decimal=","), Marks(thousands=",")
    first = layout.sample[0]
    commas = [each for each in first if "," in each and comma.number(each) is not None and grouped.number(each) is None]
    if 2 * len(commas) > len(first):
        raise TableError(
            f"{path.name!r} holds decimal commas ({numbered('row', 0)}: {quoted(commas[0])}); expected decimal points: "
            "read the table with --decimal ,."
        )


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
    found = suspects[LOOKED_AT:]
    for j in suspects[:LOOKED_AT]:
        commas = [text for text in texts[j].dropna() if "," in text]
        if commas and all(map(EITHER.fullmatch, commas)):
            found.append(j)
    return sorted(found)


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
    encoding = encoding_of(path)
    with open_bytes(path) as handle:
        try:
            frame: pd.DataFrame = pd.read_csv(
                handle,
                sep=r"\s+" if layout.separator == SPACES else layout.separator,
                header=None,
                skiprows=layout.skip,
                decimal=decimal,
                encoding=encoding,
                na_values=list(MISSING_WORDS),
                converters=dict.fromkeys(as_text, _marked),
                skipinitialspace=True,
                low_memory=False,  # one type per column, and half the memory
                engine="c",
                **options,
            )
            for column in as_text:
                frame[column] = [str(name)[1:] for name in frame[column]]
            return frame
        except pd.errors.ParserError as error:
            fields = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
            if fields is None:
                raise unclosed(path) from None
            error_at = int(fields[2]) - layout.skip
    raise ragged(path, layout.separator, layout.width, error_at, int(fields[3]))


def _marked(name: str) -> str:
    """A row may be called 007 or NA: with a letter before it, pandas takes it for neither number nor missing."""
    return f"_{name}"
