"""Parquet, Feather and Arrow, NumPy archives and Excel workbooks."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pairflip.tables.errors import TableError, not_of_kind, perhaps, refuse_damaged
from pairflip.tables.matrices import Matrix, from_archive
from pairflip.tables.raw import MISSING_WORDS, Change, Raw
from pairflip.text import listed, plural, quoted

if TYPE_CHECKING:
    import pandas as pd


def _need(package: str, path: Path, kind: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        raise TableError(
            f"{path.name!r} is {kind}, which needs the package {package}: pip install 'pairflip[files]'."
        ) from None


def read_parquet(path: Path) -> Raw:
    """Read a Parquet file; an index that pandas saved with it names the rows."""
    _need("pyarrow", path, "a Parquet file")
    parquet = import_module("pyarrow.parquet")
    with refuse_damaged(not_of_kind(path, "a Parquet file")), path.open("rb") as handle:
        # not pandas.read_parquet, which refuses two columns of one name
        return _from_arrow(parquet.ParquetFile(handle).read())


def read_arrow(path: Path) -> Raw:
    """Read a Feather or Arrow file, or an Arrow stream."""
    _need("pyarrow", path, "an Arrow file")
    ipc = import_module("pyarrow.ipc")
    with refuse_damaged(not_of_kind(path, "a Feather or Arrow file")), path.open("rb") as handle:
        start = handle.read(6)
        handle.seek(0)
        if start.startswith(b"FEA1"):
            return _from_arrow(import_module("pyarrow.feather").read_table(handle))
        reader = ipc.open_file(handle) if start == b"ARROW1" else ipc.open_stream(handle)
        return _from_arrow(reader.read_all())


def read_npz(path: Path) -> Raw | Matrix:
    """Read a NumPy archive: ``X`` (M, N), ``y`` (M,) which becomes a column of that name, and perhaps ``names``."""
    import pandas as pd

    refusal = (
        f"{path.name!r} cannot be read as a NumPy archive of plain arrays; expected what "
        "np.savez(file, X=X, y=y, names=names) writes, without Python objects."
    )
    with refuse_damaged(refusal), np.load(path, allow_pickle=False) as archive:
        arrays = {key: archive[key] for key in archive.files if key in ("X", "y", "names")}
        found = list(archive.files)
    if "X" not in arrays:
        raise TableError(f"{path.name!r} holds {listed(found) or 'no arrays'}; expected an array X, and y and names.")
    X, y = arrays["X"], arrays.get("y")
    if X.ndim != 2:
        raise TableError(f"{path.name!r} has X of shape {X.shape}; expected a table of shape (rows, columns).")
    given = arrays.get("names")
    names = [f"x{j}" for j in range(X.shape[1])] if given is None else [str(name) for name in given]
    if len(names) != X.shape[1]:
        raise TableError(
            f"{path.name!r} has {plural(len(names), 'name')} for {plural(X.shape[1], 'column')} of X; expected one "
            "name per column."
        )
    if y is not None and y.shape not in ((len(X),), (len(X), 1)):
        raise TableError(f"{path.name!r} has y of shape {y.shape} for {len(X)} rows; expected one value per row.")
    matrix = from_archive(X, y, names)
    if matrix is not None:
        return matrix
    frame = pd.DataFrame(X)
    if y is not None:
        frame = pd.concat([pd.Series(y.reshape(-1)), frame], axis=1)
        names = ["y", *names]
    return _from_frame(frame, names)


def read_excel(path: Path, sheet: str | None) -> Raw:
    """Read one sheet of a workbook: the named one or the first, with the header in its first row."""
    _need("openpyxl", path, "an Excel workbook")
    import pandas as pd

    with refuse_damaged(not_of_kind(path, "an Excel workbook (.xlsx)")), pd.ExcelFile(path, engine="openpyxl") as book:
        sheets = [str(name) for name in book.sheet_names]
        if sheet is not None and sheet not in sheets:
            hint = perhaps(sheet, sheets, f"it has {listed(sheets)}.")
            raise TableError(f"{path.name!r} has no sheet {quoted(sheet)}; expected one of its sheets: {hint}")
        chosen = sheets[0] if sheet is None else sheet
        options: dict[str, Any] = {"sheet_name": chosen, "header": None, "na_values": list(MISSING_WORDS)}
        header = pd.read_excel(book, nrows=1, **options)
        if header.empty:
            others = "" if sheet is not None or len(sheets) < 2 else f"; {about_sheets(chosen, sheets[1:])}"
            raise TableError(f"{path.name!r} has an empty sheet {quoted(chosen)}; expected a header and rows{others}.")
        frame = pd.read_excel(book, skiprows=1, **options)
    names = ["" if pd.isna(name) else str(name) for name in header.iloc[0]]
    names += [""] * (frame.shape[1] - len(names))
    several = tuple(sheets) if sheet is None and len(sheets) > 1 else ()
    says = about_sheets(chosen, sheets[1:])
    notes = [Change("sheet", "read, the first of several", (chosen,), says)] if several else []
    if len(names) > 1 and names[0] == "" and frame.shape[1]:
        rows = ["" if pd.isna(name) else str(name) for name in frame[0]]
        notes.append(Change("column", "without a name at the front, taken as names of the rows", ("",)))
        frame = frame.iloc[:, 1:].set_axis(range(frame.shape[1] - 1), axis=1)
        return Raw(frame, names[1:], rows, notes, sheets=several)
    return Raw(frame, names, None, notes, sheets=several)


def about_sheets(chosen: str, others: Sequence[str]) -> str:
    """A remark on a sheet that was read although nobody had named it."""
    verb, them = ("is", "the other") if len(others) == 1 else ("are", "the others")
    return f"sheet {quoted(chosen)} was read; {them} {verb} {listed(others)}: --sheet"


def _from_arrow(table: Any) -> Raw:
    """The columns of an Arrow table; damaged text is refused here and not where it is first looked at."""
    table.validate(full=True)
    return _from_frame(table.to_pandas())


def _from_frame(frame: pd.DataFrame, names: list[str] | None = None) -> Raw:
    import pandas as pd

    names = [str(name) for name in frame.columns] if names is None else names
    rows = None
    called = ""
    notes = []
    numbered = isinstance(frame.index, pd.RangeIndex) and frame.index.name is None and frame.index.start == 0
    if not numbered:  # years are a range, too
        rows = [str(name) for name in frame.index]
        called = str(frame.index.name or "")
        notes = [Change("column", "saved as the index, taken as names of the rows", (called,))]
        frame = frame.reset_index(drop=True)
    frame = frame.set_axis(range(frame.shape[1]), axis=1)
    return Raw(frame, names, rows, notes, index_name=called)
