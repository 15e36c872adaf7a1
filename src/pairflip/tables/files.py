"""From a path to the columns of its file: text tables, Parquet, Feather and Arrow, NumPy files, Excel workbooks."""

from __future__ import annotations

import csv
import glob
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairflip.sparse import is_sparse
from pairflip.tables.columns import visible_names
from pairflip.tables.errors import TableError, not_of_kind, perhaps, refuse_damaged, shown_path
from pairflip.tables.kinds import Marks
from pairflip.tables.raw import MISSING_WORDS, Change, Raw, change, names_at_the_front, texts_of, units_left_out
from pairflip.tables.text_files import LINES, are_units, read_text, too_long
from pairflip.text import listed, plural, quoted

if TYPE_CHECKING:
    import pandas as pd

TEXT = (".csv", ".tsv", ".tab", ".txt", ".dat")
PARQUET = (".parquet", ".pq")
ARROW = (".feather", ".arrow", ".ipc")
EXCEL = (".xlsx", ".xlsm")
TABLES = (*TEXT, *PARQUET, *ARROW, *EXCEL, ".npz", ".npy")
LARGE = 1000
"""A NumPy archive of fewer columns is read as all other files are."""


def named_files(data: Path) -> list[Path]:
    """The files that a path or a pattern such as ``part-*.parquet`` names, sorted; of a folder, the tables in it."""
    path = data.expanduser()
    if os.path.isdir(path):
        files = sorted(
            each for each in path.iterdir() if each.is_file() and suffix_of(each) in (*PARQUET, *ARROW, *TEXT)
        )
        suffixes = {suffix_of(each) for each in files}
        if len(suffixes) != 1:
            has = f"tables of {plural(len(suffixes), 'kind')}" if suffixes else "no .parquet, .csv or .arrow files"
            raise TableError(f"{shown_path(path)} is a folder with {has}; expected one table, or parts of one kind.")
        return files
    if not glob.has_magic(str(path)) or path.exists():
        return [path]
    files = sorted(Path(each) for each in glob.glob(str(path)))
    if not files:
        raise TableError(f"no file matches {shown_path(path)}; expected parts of a table: check the pattern.")
    return files


def suffix_of(file: Path) -> str:
    """The suffix that says which format a file has."""
    return Path(file.name.lower().removesuffix(".gz")).suffix


def read_raw(
    path: str | Path,
    *,
    sheet: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    index: str | None = None,
    target: str | None = None,
) -> Raw:
    """Read the columns of a file or of its parts; columns with neither name nor values are left out, names differ."""
    files = named_files(Path(path))
    raw = _together(files, [_read_file(file, sheet, decimal, thousands, index, target) for file in files])
    blank = [j for j, name in enumerate(raw.names) if name == "" and raw.frame[j].isna().all()]
    if blank:  # separators at the end of the lines, or spreadsheet margins
        others = [j for j in range(len(raw.names)) if j not in set(blank)]
        raw = replace(
            raw, frame=raw.frame[others].set_axis(range(len(others)), axis=1), names=[raw.names[j] for j in others],
            either=[others.index(j) for j in raw.either],
            dropped=change("column", "with neither name nor values dropped", (f"column {j + 1}" for j in blank)),
        )  # fmt: skip
    names, renamed = visible_names(raw.names)
    return replace(raw, names=names, originals=raw.names, renamed=renamed)


def _read_file(
    file: Path, sheet: str | None, decimal: str | None, thousands: str | None, index: str | None, target: str | None
) -> Raw:
    """Read the columns of one file; its suffix says which format it has. Large arrays of numbers stay in one piece."""
    with _plain_file_errors(file):
        if not file.is_file():
            _refuse_absent(file)
        name, suffix = file.name.lower().removesuffix(".gz"), suffix_of(file)
        if sheet or decimal or thousands:
            _check_options(file, suffix, sheet, decimal, thousands)
        if suffix in TEXT:
            return read_text(file, Marks(decimal or ".", thousands), index)
        if name != file.name.lower():
            raise TableError(
                f"{file.name!r} is a compressed file of a kind that is not read; expected .csv.gz: unpack it."
            )
        if suffix in PARQUET:
            return read_parquet(file)
        if suffix in ARROW:
            return read_arrow(file)
        if suffix == ".npz":
            return read_npz(file, target)
        if suffix == ".npy":
            return read_npy(file, target)
        if suffix in EXCEL:
            return read_excel(file, sheet)
    fix = "save it as .xlsx" if suffix == ".xls" else "save it as one of them or rename it"
    raise TableError(
        f"{file.name!r} has {f'the suffix {suffix}' if suffix else 'no suffix'}; expected .csv, .tsv, .txt (also .gz), "
        f".parquet, .feather, .arrow, .npz, .npy or .xlsx: {fix}."
    )


def _together(files: Sequence[Path], parts: Sequence[Raw]) -> Raw:
    """The rows of several files as one table."""
    import pandas as pd

    first = parts[0]
    if len(parts) == 1:
        return first
    for file, part in zip(files[1:], parts[1:], strict=True):
        if part.names != first.names:
            raise unlike(file, part.names, files[0], first.names)
    rows = [name for part in parts for name in part.row_names or ()]
    either = sorted({j for part in parts for j in part.either})
    frame = pd.concat([part.frame for part in parts], ignore_index=True)
    return replace(first, frame=frame, row_names=rows if first.row_names is not None else None, either=either)


def unlike(file: Path, names: Sequence[str], first: Path, expected: Sequence[str]) -> TableError:
    """The error of a part of a table that has other columns than the first one."""
    extra, lacking = sorted({*names} - {*expected}), sorted({*expected} - {*names})
    what = f"also has {listed(extra)}" if extra else "has its columns in another order"
    what = f"lacks {listed(lacking)}" if lacking else what
    return TableError(f"{file.name!r} {what}, unlike {first.name!r}; expected parts with the same columns.")


def _refuse_absent(file: Path) -> None:
    if file.is_dir():
        raise TableError(f"{shown_path(file)} is a folder; expected the file of a table in it.")
    if file.exists():  # a pipe, perhaps
        return
    if not file.parent.is_dir():
        raise TableError(f"{shown_path(file)} does not exist, nor does its folder; expected the file of a table.")
    here = sorted(each.name for each in file.parent.iterdir() if each.is_file())
    hint = perhaps(file.name, here, "check the name and the folder.")
    raise TableError(f"{shown_path(file)} does not exist; expected the file of a table: {hint}")


def _check_options(file: Path, suffix: str, sheet: str | None, decimal: str | None, thousands: str | None) -> None:
    for option, mark in (("--decimal", decimal), ("--thousands", thousands)):
        if mark not in (None, ".", ","):
            raise TableError(f"{option} is {quoted(mark)}; expected '.' or ','.")
        if mark is not None and suffix not in TEXT:
            raise TableError(
                f"{option} is given but {file.name!r} is not a text table; expected .csv or .tsv: leave it out."
            )
    if thousands == (decimal or "."):
        raise TableError(
            f"--thousands and the decimal mark are both {quoted(thousands)}; expected two marks: --thousands , "
            "alone, or --decimal , --thousands '.' together."
        )
    if sheet is not None and suffix not in EXCEL:
        raise TableError(f"--sheet is given but {file.name!r} is not an Excel workbook; expected .xlsx: leave it out.")


@contextmanager
def _plain_file_errors(file: Path) -> Iterator[None]:
    """What the operating system and the decoders have to say, as one sentence."""
    try:
        yield
    except UnicodeDecodeError as error:
        if error.encoding.startswith("utf-16"):
            raise TableError(f"{file.name!r} is damaged UTF-16 text; expected a whole file: save it again.") from None
        byte = error.object[error.start : error.start + 1].hex()
        raise TableError(
            f"{file.name!r} is not UTF-8 text (byte 0x{byte}); expected UTF-8: save it as 'CSV UTF-8', or convert it "
            "with iconv -f latin1 -t utf-8."
        ) from None
    except csv.Error:
        raise too_long(file) from None
    except (EOFError, zlib.error):
        raise TableError(f"{file.name!r} is cut off or damaged; expected a whole .gz file: copy it again.") from None
    except PermissionError:
        raise TableError(f"{shown_path(file)} may not be read; expected a readable file: chmod u+r it.") from None
    except OSError as error:
        reason = error.strerror or "the file is damaged"
        raise TableError(f"{shown_path(file)} cannot be read ({reason}); expected a readable file.") from None


def need(package: str, path: Path, kind: str) -> Any:
    """A package that files of a kind need."""
    try:
        return import_module(package)
    except ImportError:
        raise TableError(
            f"{path.name!r} is {kind}, which needs the package {package}: pip install 'pairflip[files]'."
        ) from None


def read_parquet(path: Path) -> Raw:
    """Read a Parquet file; an index that pandas saved with it names the rows."""
    need("pyarrow", path, "a Parquet file")
    parquet = import_module("pyarrow.parquet")
    with refuse_damaged(not_of_kind(path, "a Parquet file")), path.open("rb") as handle:
        # not pandas.read_parquet, which refuses two columns of one name
        return _from_arrow(parquet.ParquetFile(handle).read())


def read_arrow(path: Path) -> Raw:
    """Read a Feather or Arrow file, or an Arrow stream."""
    need("pyarrow", path, "an Arrow file")
    with refuse_damaged(not_of_kind(path, "a Feather or Arrow file")), path.open("rb") as handle:
        if handle.peek(4).startswith(b"FEA1"):
            return _from_arrow(import_module("pyarrow.feather").read_table(handle))
        return _from_arrow(arrow_reader(handle).read_all())


def arrow_reader(source: Any) -> Any:
    """A reader of an Arrow file or stream that is open for reading."""
    ipc = import_module("pyarrow.ipc")
    is_file = source.read(6) == b"ARROW1"
    source.seek(0)
    return ipc.open_file(source) if is_file else ipc.open_stream(source)


def read_npz(path: Path, target: str | None) -> Raw:
    """Read a NumPy archive: ``X`` (M, N), ``y`` (M,) which becomes a column of that name, and perhaps ``names``.

    Of a sparse matrix that SciPy saved, columns are called x0, x1, ...
    """
    refusal = (
        f"{path.name!r} cannot be read as a NumPy archive of plain arrays; expected what "
        "np.savez(file, X=X, y=y, names=names) writes, without Python objects."
    )
    with refuse_damaged(refusal), np.load(path, allow_pickle=False) as archive:
        if {"format", "shape", "data"} <= {*archive.files}:
            from scipy.sparse import csc_array, load_npz

            arrays: dict[str, Any] = {"X": csc_array(load_npz(path))}
        else:
            arrays = {key: archive[key] for key in archive.files if key in ("X", "y", "names")}
        holds = listed(archive.files) or "no arrays"
    if "X" not in arrays:
        raise TableError(f"{path.name!r} holds {holds}; expected an array X, and y and names, or a sparse matrix.")
    X, y = arrays["X"], arrays.get("y")
    if is_sparse(X):
        if X.dtype.kind not in "iufb":
            raise TableError(f"{path.name!r} holds a sparse matrix of {X.dtype}; expected real numbers.")
        return _from_arrays(X.astype(np.float64), [f"x{j}" for j in range(X.shape[1])], *_target_file(target, X))
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
    plain = X.dtype in (np.float32, np.float64) and (y is None or y.dtype.kind in "iufb")
    y, called = (y, "y") if y is not None else _target_file(target, X)
    return _from_arrays(X, names, y, called, is_array=plain and X.shape[1] >= LARGE)


def read_excel(path: Path, sheet: str | None) -> Raw:
    """Read one sheet of a workbook: the named one or the first, with the header in its first row."""
    need("openpyxl", path, "an Excel workbook")
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
        texts = [texts_of(frame[j].iloc[:LINES]) for j in frame]
        first_rows = [list(row) for row in zip(*texts, strict=True)]
        units = first_rows[0] if are_units(first_rows) else []
        if units:
            frame = pd.read_excel(book, skiprows=2, **options)
    names = ["" if pd.isna(name) else str(name) for name in header.iloc[0]]
    names += [""] * (frame.shape[1] - len(names))
    several = tuple(sheets) if sheet is None and len(sheets) > 1 else ()
    says = about_sheets(chosen, sheets[1:])
    notes = [Change("sheet", "read, the first of several", (chosen,), says)] if several else []
    notes += units_left_out(units)
    if len(names) > 1 and names[0] == "" and frame.shape[1]:
        frame, rows, note = names_at_the_front(frame, texts_of(frame[0]))
        return Raw(frame, names[1:], rows, [*notes, note], sheets=several)
    return Raw(frame, names, None, notes, sheets=several)


def about_sheets(chosen: str, others: Sequence[str]) -> str:
    """A remark on a sheet that was read although nobody had named it."""
    verb, them = ("is", "the other") if len(others) == 1 else ("are", "the others")
    return f"sheet {quoted(chosen)} was read; {them} {verb} {listed(others)}: --sheet"


def _from_arrow(table: Any) -> Raw:
    """The columns of an Arrow table; damaged text is refused here and not where it is first looked at."""
    table.validate(full=True)
    return _from_frame(table.to_pandas())


def _from_frame(frame: pd.DataFrame) -> Raw:
    """The columns of a data frame; an index that is not 0, 1, 2, ... names the rows (years are a range, too)."""
    import pandas as pd

    names, index = [str(name) for name in frame.columns], frame.index
    frame = frame.reset_index(drop=True).set_axis(range(frame.shape[1]), axis=1)
    if isinstance(index, pd.RangeIndex) and index.name is None and index.start == 0:
        return Raw(frame, names)
    called = str(index.name or "")
    note = Change("column", "saved as the index, taken as names of the rows", (called,))
    return Raw(frame, names, [str(name) for name in index], [note], index_name=called)


def _from_arrays(X: Any, names: list[str], y: NDArray[Any] | None, target: str, is_array: bool = True) -> Raw:
    """Columns that are views of X (M, N), behind the target y (M,) or (M, 1) where there is one."""
    import pandas as pd

    sparse = X if is_sparse(X) else None
    of_sparse: Any = pd.DataFrame.sparse
    frame: Any = pd.DataFrame(X, copy=False) if sparse is None else of_sparse.from_spmatrix(X)
    if y is None:
        return Raw(frame, names, is_array=is_array, sparse=sparse)
    frame.insert(0, "target", y.reshape(-1))
    frame.columns = range(frame.shape[1])
    return Raw(frame, [target, *names], target=target, is_array=is_array, sparse=sparse)


def read_npy(path: Path, target: str | None) -> Raw:
    """Map a NumPy file of one array (M, N); columns are called x0, x1, ..."""
    X = mapped_table(path)
    return _from_arrays(X, [f"x{j}" for j in range(X.shape[1])], *_target_file(target, X))


def _target_file(target: str | None, X: Any) -> tuple[NDArray[Any] | None, str]:
    """The target of the rows of X (M, N) in a NumPy file of its own, and its name; None where no file is named."""
    if target is None or not target.lower().endswith(".npy"):
        return None, ""
    file, rows = Path(target).expanduser(), X.shape[0]
    if not file.is_file():
        raise TableError(f"--target {shown_path(file)} does not exist; expected a NumPy file with one value per row.")
    y = np.array(_mapped(file, "one value per row"))
    if y.shape not in ((rows,), (rows, 1)):
        raise TableError(f"{file.name!r} has shape {y.shape} for {rows} rows; expected one value per row.")
    return y, file.stem


def mapped_table(path: Path) -> NDArray[Any]:
    """The table (M, N) of a NumPy file, mapped."""
    X = _mapped(path, "a table of shape (rows, columns)")
    if X.ndim != 2:
        raise TableError(f"{path.name!r} has an array of shape {X.shape}; expected a table of shape (rows, columns).")
    return X


def _mapped(path: Path, what: str) -> NDArray[Any]:
    refusal = f"{path.name!r} cannot be read as a NumPy file of plain numbers; expected what np.save writes: {what}."
    with refuse_damaged(refusal):
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iufb":
        raise TableError(f"{path.name!r} does not hold one array of real numbers; expected {what}.")
    return np.asarray(array).view(np.uint8) if array.dtype == bool else np.asarray(array)
