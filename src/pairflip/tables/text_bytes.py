"""The letters of a text table: plain or gzipped, UTF-8 or UTF-16."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import IO, cast

from pairflip.tables.errors import TableError

MAGIC = {b"PK\x03\x04": ".xlsx or .npz", b"PAR1": ".parquet", b"ARROW1": ".feather", b"\xd0\xcf\x11\xe0": ".xls"}
UTF16 = (b"\xff\xfe", b"\xfe\xff")


def open_bytes(path: Path) -> IO[bytes]:
    """The bytes of the text; gzip is known by its first two bytes, whatever the file is called."""
    with path.open("rb") as handle:
        zipped = handle.read(2) == b"\x1f\x8b"
    return cast("IO[bytes]", gzip.open(path, "rb")) if zipped else path.open("rb")


def encoding_of(path: Path) -> str:
    """How the letters are written, known by the mark at the front; Excel's "Unicode text" is UTF-16."""
    with open_bytes(path) as handle:
        return "utf-16" if handle.read(2) in UTF16 else "utf-8-sig"


def open_text(path: Path) -> io.TextIOWrapper:
    """The letters of the text, line ends as they are."""
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
