"""Tables that commands write: .csv with commas or .tsv with tabs, every text in quotes, never over what is there."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
Cell = str | float | None
_FORMULA = re.compile(r"[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def is_table_file(out: Path) -> bool:
    """Whether a name is that of a table, and not of a folder."""
    return out.suffix.lower() in _DELIMITERS


def check_out(out: Path, force: bool) -> None:
    """Refuse, before any work, a file that cannot be what is written, or that would be lost."""
    if not is_table_file(out):
        has = f"has the suffix {out.suffix}" if out.suffix else "has no suffix"
        raise ValueError(f"--out {str(out)!r} {has}; expected a .csv or .tsv file, which is what is written.")
    refuse_existing(out, force)


def refuse_existing(out: Path, force: bool) -> None:
    """Refuse a file that is there, unless it may be replaced."""
    if out.exists() and not force:
        raise ValueError(f"{str(out)!r} exists; add --force to replace it, or name another file with --out.")


def lines_text(header: Sequence[str], lines: Iterable[Sequence[Cell]], delimiter: str = ",") -> str:
    """A table as text: names in quotes, numbers with all their digits, nothing where there is no number."""
    return "".join(delimiter.join(map(_cell, line)) + "\n" for line in (header, *lines))


def json_list(names: Sequence[str]) -> str:
    """Several names in one cell, so that commas in them do not matter."""
    return json.dumps(list(names), ensure_ascii=False)


def write_lines(out: Path, header: Sequence[str], lines: Iterable[Sequence[Cell]], what: str) -> None:
    """Write a table whole or not at all; the suffix of the file says what separates columns."""
    from pairflip.report.save import write_whole

    text = lines_text(header, lines, _DELIMITERS[out.suffix.lower()])
    write_whole(out, text.encode("utf-8", "backslashreplace"), what)


def defused(name: str) -> str:
    """A name with an apostrophe before it where a spreadsheet would take it for a formula; numbers stay as they are."""
    return f"'{name}" if _FORMULA.match(name) and not _NUMBER.fullmatch(name) else name


def _cell(value: Cell) -> str:
    if isinstance(value, str):
        return '"' + defused(value).replace('"', '""') + '"'
    if isinstance(value, int):
        return str(value).lower()  # true, false
    return "" if value is None or not math.isfinite(value) else repr(float(value))
