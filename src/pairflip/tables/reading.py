"""From a path to the columns of its file: which format, and what can be wrong with a file."""

from __future__ import annotations

import csv
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pairflip.tables.binary_files import read_arrow, read_excel, read_npz, read_parquet
from pairflip.tables.errors import TableError, perhaps, shown_path
from pairflip.tables.layout import too_long
from pairflip.tables.marks import Marks
from pairflip.tables.matrices import Matrix, read_npy
from pairflip.tables.raw import Raw
from pairflip.tables.text_files import read_text
from pairflip.text import quoted

TEXT = (".csv", ".tsv", ".tab", ".txt", ".dat")
PARQUET = (".parquet", ".pq")
ARROW = (".feather", ".arrow", ".ipc")
EXCEL = (".xlsx", ".xlsm")


def read_raw(
    path: str | Path,
    *,
    sheet: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    index: str | None = None,
    target: str | None = None,
) -> Raw | Matrix:
    """Read the columns of a file; its suffix says which format it has. Large arrays of numbers stay in one piece."""
    file = Path(path).expanduser()
    with _plain_file_errors(file):
        _check_exists(file)
        name = file.name.lower().removesuffix(".gz")
        suffix = Path(name).suffix
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
            return read_npz(file)
        if suffix == ".npy":
            return read_npy(file, target)
        if suffix in EXCEL:
            return read_excel(file, sheet)
    fix = "save it as .xlsx" if suffix == ".xls" else "save it as one of them or rename it"
    raise TableError(
        f"{file.name!r} has {f'the suffix {suffix}' if suffix else 'no suffix'}; expected .csv, .tsv, .txt (also .gz), "
        f".parquet, .feather, .arrow, .npz, .npy or .xlsx: {fix}."
    )


def _check_exists(file: Path) -> None:
    if file.is_dir():
        raise TableError(f"{shown_path(file)} is a folder; expected the file of a table in it.")
    if file.exists():
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
