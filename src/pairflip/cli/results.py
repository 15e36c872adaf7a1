"""Results as files: where they may go, what they hold, and that they appear whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pairflip import interrupt
from pairflip.cli.config import config_text

if TYPE_CHECKING:
    import pandas as pd

    from pairflip.selection import SizeCurve
    from pairflip.tables import Table

Cell = str | float | None
Lines = tuple[Sequence[str], Sequence[Sequence[Cell]]]
"""Headings and rows of a file."""
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
TABLE_FILES = ".csv, .tsv or .parquet file"
_FORMULA = re.compile(r"[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_YOUNG_S = 2.0  # in which a temporary folder that was just made gets its lock


class FolderContents(NamedTuple):
    """What a kind of result folder holds, by which an older one is recognized."""

    files: frozenset[str]  # the only names in it; a folder with any other name is never replaced
    mark: str  # the file that it always has, as JSON
    suffix: str = ""  # behind the name of the table, where no folder is named
    page: str = "report.html"


def _contents(files: str, mark: str, suffix: str, page: str = "report.html") -> FolderContents:
    return FolderContents(frozenset(files.split()), mark, suffix, page)


FOLDERS = {
    # surface.csv and states.csv are of version 0.2: --force replaces its folders, too
    "select": _contents(
        "clusters.csv coefficients.csv curve.csv figures half_samples.csv inclusion.csv predictions.csv report.html "
        "result.json run.toml selection_counts.csv surface.csv targets.csv", "result.json", "pairflip",
    ),
    "compare": _contents(
        "compare.html comparison.csv comparison.json figures methods.csv", "comparison.json", "compared", "compare.html"
    ),
    "posterior": _contents(
        "figures inclusion.csv models.csv posterior.json report.html run.toml sizes.csv", "posterior.json", "posterior"
    ),
    "publish": _contents(
        "equation.json equation.tex equation.txt figures methods.tex methods.txt model.onnx model.py paper.tex "
        "references.bib results.tex results.txt table_coefficients.tex table_sizes.tex tables.xlsx", "equation.json",
        "published",
    ),
    "sample": _contents(
        "figures inclusion.csv pairs.csv report.html run.toml sample.json sets.csv states.csv temperatures.csv",
        "sample.json", "sample",
    ),
}  # fmt: skip


def checked_place(command: str, out: Path | None, force: bool, data: Path | None, journal: Path | None = None) -> Path:
    """Where a result goes, after making sure, before hours of work, that it can go there.

    ``data.csv`` and ``data.csv.gz`` give ``data-pairflip`` in the current folder. The columns of `posterior` and
    `sample` alone may go into a .csv, .tsv or .parquet file.
    """
    place = out
    if place is None:
        name = Path("table" if data is None else data.name)
        stem = Path(name.stem).stem if name.suffix == ".gz" else name.stem
        stem = re.sub(r"[*?[\]]+", "", stem).rstrip("-_. ") or "table"  # a pattern of parts
        place = Path(f"{stem}-{FOLDERS[command].suffix}")
    if command in ("posterior", "sample") and is_table_file(place):
        check_file(place, force, data)
        if journal is not None:
            refuse_journal(journal, None, data)
        return place
    if journal is not None:
        refuse_journal(journal, place, data)
    check_folder(place, force, FOLDERS[command])
    if data is not None and data.resolve().is_relative_to(place.resolve()):
        raise ValueError(
            f"--out {str(place)!r} holds the table {str(data)!r}, which would be lost; name another folder with --out."
        )
    return place


def refuse_journal(journal: Path, folder: Path | None, data: Path | None) -> None:
    """Refuse a journal in the result folder, which is replaced as a whole, or among the user's data."""
    place = journal.resolve()
    if folder is not None and place.is_relative_to(folder.resolve()):
        raise ValueError(
            f"--journal {str(journal)!r} is in the result folder {str(folder)!r}; expected a folder of its own."
        )
    if data is not None and place in (data.resolve(), data.resolve().parent, data.parent.resolve()):
        where = "the table" if place == data.resolve() else "the folder of the table"
        raise ValueError(
            f"--journal {str(journal)!r} is {where}; expected a folder of its own, such as --journal work."
        )


def check_folder(out: Path, force: bool, contents: FolderContents) -> None:
    """Make sure that a folder can be written; leaves nothing behind."""
    _refuse_existing(out, force, contents)
    above = out.absolute().parent
    while not above.exists() and above != above.parent:
        above = above.parent
    probe = above / f".pairflip-{secrets.token_hex(4)}"
    with _plain_write_errors(out):
        probe.mkdir()
        probe.rmdir()


@contextmanager
def new_folder(out: Path, force: bool, contents: FolderContents) -> Iterator[Path]:
    """A temporary folder next to `out` to write into; it becomes `out` when the block ends without an error."""
    _refuse_existing(out, force, contents)
    given, out = out, out.absolute()
    _remove_remnants(out, contents)
    part = out.with_name(f".{out.name[:100]}.{secrets.token_hex(4)}.part")
    older = part.with_suffix(".old")
    made = [folder for folder in out.parents if not folder.exists()]
    lock: int | None = None

    def remove() -> None:
        shutil.rmtree(part, ignore_errors=True)
        for folder in made:
            with suppress(OSError):
                folder.rmdir()

    interrupt.clean_up = remove
    try:
        with _plain_write_errors(given):
            part.mkdir(parents=True)
            lock = _locked(part)
            yield part
            if out.exists():
                os.rename(out, older)
            try:
                os.rename(part, out)
            except OSError:
                if older.exists():
                    os.rename(older, out)
                raise
    except BaseException:
        remove()
        raise
    finally:
        if lock is not None:
            os.close(lock)
    interrupt.sentence = lambda: f"interrupted; the results are in {_shown(given)}."
    shutil.rmtree(older, ignore_errors=True)


def _remove_remnants(out: Path, contents: FolderContents) -> None:
    """Remove the temporary folders of earlier runs for `out` that were killed: nobody has them locked any more."""
    ours = re.compile(rf"\.{re.escape(out.name[:100])}\.[0-9a-f]{{8}}\.part")
    with suppress(OSError):
        for part in out.parent.iterdir():
            if not ours.fullmatch(part.name) or part.is_symlink() or not part.is_dir():
                continue
            names = {each.name for each in part.iterdir() if not each.name.startswith(".pairflip-")}
            age = time.time() - part.stat().st_mtime
            if names <= contents.files and age > _YOUNG_S and (lock := _locked(part)) is not None:
                shutil.rmtree(part, ignore_errors=True)
                os.close(lock)


def _locked(folder: Path) -> int | None:
    """A lock on a folder, which ends with this process; None where it is taken, or where there are no such locks."""
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def _refuse_existing(out: Path, force: bool, contents: FolderContents) -> None:
    """An older result may be replaced if asked; anything else that is there may not."""
    with _plain_write_errors(out):
        if not out.exists() and not out.is_symlink():
            return
        if not out.is_dir() or out.is_symlink():
            raise ValueError(
                f"{_shown(out)} exists and is not a folder; expected the name of a new folder: give another --out."
            )
        names = sorted(path.name for path in out.iterdir())
    if not force:
        raise ValueError(f"the folder {_shown(out)} exists; add --force to replace it, or name another one with --out.")
    others = [name for name in names if name not in contents.files]
    if others or (names and contents.mark not in names):
        holds = f"holds {others[0]!r}, which pairflip did not write" if others else "holds no result of pairflip"
        raise ValueError(f"the folder {_shown(out)} {holds}, so it is not replaced; name another one with --out.")


@contextmanager
def _plain_write_errors(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        first = error.__context__ if error.strerror is None else error
        reason = getattr(first, "strerror", None) or str(error)
        raise ValueError(
            f"the result folder {_shown(out)} cannot be written ({reason}); nothing was written: make room, or name a "
            "folder that can be written with --out."
        ) from error


def _shown(path: Path) -> str:
    from pairflip.tables.errors import shown_path

    return shown_path(path)


def write_folder(
    kind: str,
    place: Path,
    force: bool,
    result: Any,
    tables: Mapping[str, pd.DataFrame | Lines],
    record: Mapping[str, Any],
    settings: Mapping[str, Any],
    save_figures: Callable[[Any, Path], Any],
    **about: Any,
) -> None:
    """Write a result folder, whole or not at all: tables, the record as JSON, the page, the figures, run.toml."""
    from pairflip.report import write_report

    contents = FOLDERS[kind]
    with new_folder(place, force, contents) as part:
        for name, table in tables.items():
            if isinstance(table, tuple):
                write_lines(part / name, *table, "the table")
                continue
            frame = table.rename(columns=_defused)
            for at, dtype in enumerate(frame.dtypes):
                if dtype.kind == "O":
                    frame.isetitem(at, [_defused(v) if isinstance(v, str) else v for v in frame.iloc[:, at]])
            # Every text is in quotes, so that commas, quotes and line ends stay in their cell.
            look: dict[str, Any] = {"quoting": csv.QUOTE_NONNUMERIC, "lineterminator": "\n"}
            frame.to_csv(part / name, index=False, errors="backslashreplace", **look)
        (part / contents.mark).write_text(json.dumps(record, allow_nan=False) + "\n", encoding="utf-8")
        write_report(result, part / contents.page, **about)
        save_figures(result, part / "figures")
        if settings:
            (part / "run.toml").write_text(config_text(kind, settings), encoding="utf-8")


def finish(
    curve: SizeCurve,
    table: Table,
    command: str,
    settings: Mapping[str, Any],
    folder: Path,
    force: bool,
    as_json: bool,
    full: bool = False,
    journal: Path | None = None,
) -> None:
    """Write the result folder of a selection, then print the result."""
    from pairflip.cli.printing import print_curve, print_json, print_places
    from pairflip.figures import save_figures
    from pairflip.report.answer import answer_of
    from pairflip.report.frames import curve_tables
    from pairflip.report.stability_words import stability_record
    from pairflip.selection.curve_file import curve_to_json

    about_table = {
        "source": table.source,
        "target": table.target,
        "row_names": list(table.row_names) if curve.single_rows else None,
        "dropped": [asdict(item) for item in table.dropped],
        "notes": [asdict(item) for item in table.notes],
        **{name: value for name in ("categories", "references", "filled") if (value := getattr(table, name))},
        **({"index": table.index} if table.index is not None else {}),
        **({"event": table.event} if table.event is not None else {}),
    }
    record = {
        **curve_to_json(curve),  # which SizeCurve.load reads
        "verdict": answer_of(curve).to_json(curve),
        "stability_shown": stability_record(curve),
        "table": about_table,
        "command": command,
        "run": dict(settings),
    }
    tables = curve_tables(curve, table.row_names)
    write_folder("select", folder, force, curve, tables, record, settings, save_figures, **page_settings(record))
    if as_json:
        print_json(record)
    else:
        print_curve(curve, full)
        print_places(folder, journal)


def page_settings(record: Mapping[str, Any]) -> dict[str, Any]:
    """What the page of a selection says about the table and the command, from result.json."""
    from pairflip.tables import Change

    table, command = record.get("table") or {}, record.get("command")
    changes = [item for part in ("dropped", "notes") for item in table.get(part, [])]
    return {
        "title": f"{table['source']}: which columns predict {table['target']}" if table else None,
        "target": table.get("target"),
        "row_names": table.get("row_names"),
        "dropped": [str(Change(**{**item, "names": tuple(item["names"])})) for item in changes],
        "command": command if isinstance(command, str) else None,
        "extra": {"Table": table["source"]} if "source" in table else {},
    }


def is_result(place: Path) -> bool:
    """Whether a name is that of a saved result: a folder with one, or a JSON file."""
    return place.suffix.lower() == ".json" or (place / "result.json").is_file()


def result_file(saved: Path) -> Path:
    """The JSON file that is meant; a journal alone lacks the data."""
    from pairflip.tables.files import TABLES, suffix_of

    if saved.is_file() and suffix_of(saved) in TABLES:
        raise ValueError(f"{str(saved)!r} is a table; expected a result folder of pairflip select.")
    folder = saved if saved.is_dir() else saved.parent
    if (saved.is_dir() and not (saved / "result.json").exists()) or saved.name == "manifest.json":
        if (folder / "manifest.json").exists():
            raise ValueError(
                f"{str(folder)!r} is a journal, which holds no data; expected a result folder: the command that made "
                "it (pairflip select ... --journal) completes it and writes the report."
            )
        raise ValueError(f"{str(saved)!r} holds no result.json; expected a result folder of pairflip select.")
    return saved / "result.json" if saved.is_dir() else saved


_CHANGE = {"what": str, "why": str, "names": [str], "says": str}
_TABLE = {
    "source": str, "target": str, "row_names": [str], "dropped": [_CHANGE], "notes": [_CHANGE], "index": str,
    "event": str, "categories": {"*": {"*": str}}, "references": {"*": str},
    "filled": {"*": str},
}  # fmt: skip


def saved_table(record: Mapping[str, Any], n_rows: int) -> dict[str, Any]:
    """What result.json says about the table, checked; nothing where a curve was saved from Python."""
    if record.get("table") is None:
        return {}
    table: Any = record["table"]
    if isinstance(table, dict):
        table = {name: value for name, value in table.items() if value is not None}
    whole = _has_shape(table, _TABLE)
    if whole:
        changes = [*table.get("dropped", []), *table.get("notes", [])]
        whole = {"source", "target"} <= table.keys()
        whole = whole and ("row_names" not in table or len(table["row_names"]) == n_rows)
        whole = whole and all({"what", "why", "names"} <= item.keys() <= _CHANGE.keys() for item in changes)
    if not whole:
        raise ValueError("result.json is damaged (table); expected what pairflip select wrote: select again.")
    return dict(table)


def _has_shape(value: Any, shape: Any) -> bool:
    """Whether a value of JSON is of a type; of [shape], a list of such; of {key: shape}, "*" being any other key."""
    if isinstance(shape, type):
        return isinstance(value, shape)
    if isinstance(shape, list):
        return isinstance(value, list) and all(_has_shape(each, shape[0]) for each in value)
    return isinstance(value, dict) and all(
        _has_shape(each, shape.get(key, shape.get("*", object))) for key, each in value.items()
    )


def is_table_file(out: Path) -> bool:
    """Whether a name is that of a table, and not of a folder."""
    return out.suffix.lower() in (*_DELIMITERS, ".parquet")


def check_file(out: Path, force: bool, data: Path | None) -> None:
    """Refuse, before any work, a file that cannot be what is written, or that would be lost."""
    refuse_input(out, data, "the table")
    if not is_table_file(out):
        has = f"has the suffix {out.suffix}" if out.suffix else "has no suffix"
        raise ValueError(f"--out {str(out)!r} {has}; expected a {TABLE_FILES}, which is what is written.")
    if out.suffix.lower() == ".parquet":
        from pairflip.tables.files import need

        need("pyarrow", out, "a Parquet file")
    refuse_existing_file(out, force)


def refuse_existing_file(out: Path, force: bool) -> None:
    """Refuse a file that is there, unless it may be replaced."""
    if out.exists() and not force:
        raise ValueError(f"{str(out)!r} exists; add --force to replace it, or name another file with --out.")


def refuse_input(out: Path, source: Path | None, name: str) -> None:
    """Refuse to write over the file that is read, however it is spelled or linked."""
    if source is None:
        return
    try:
        same = out.samefile(source)
    except OSError:  # one of them does not exist
        same = out.resolve() == source.resolve()
    if same:
        raise ValueError(f"--out {str(out)!r} is {name} itself, which would be lost; name another file with --out.")


def write_lines(out: Path, header: Sequence[str], lines: Iterable[Sequence[Cell]], name: str) -> None:
    """Write a table whole or not at all; the suffix of the file says how."""
    from pairflip.report.save import write_whole

    suffix = out.suffix.lower()
    if suffix in _DELIMITERS:
        data = lines_text(header, lines, _DELIMITERS[suffix]).encode("utf-8", "backslashreplace")
    else:
        data = _parquet(header, lines)
    write_whole(out, data, name)


def _parquet(header: Sequence[str], lines: Iterable[Sequence[Cell]]) -> bytes:
    """A table as a Parquet file; null where there is no number."""
    from importlib import import_module

    def plain(value: Cell) -> Cell:
        if isinstance(value, str):
            return value.encode("utf-8", "backslashreplace").decode()
        return None if value is None or not math.isfinite(value) else value

    arrow, buffer = import_module("pyarrow"), io.BytesIO()
    columns = [arrow.array([plain(value) for value in column]) for column in zip(*lines, strict=True)]
    table = arrow.Table.from_arrays(columns, names=[str(plain(name)) for name in header])
    import_module("pyarrow.parquet").write_table(table, buffer)
    return buffer.getvalue()


def lines_text(header: Sequence[str], lines: Iterable[Sequence[Cell]], delimiter: str = ",") -> str:
    """A table as text: names in quotes, numbers with all their digits, nothing where there is no number."""
    return "".join(delimiter.join(map(_cell, line)) + "\n" for line in (header, *lines))


def _cell(value: Cell) -> str:
    if isinstance(value, str):
        return '"' + _defused(value).replace('"', '""') + '"'
    if isinstance(value, int):
        return str(value).lower()  # true, false
    return "" if value is None or not math.isfinite(value) else repr(float(value))


def _defused(name: str) -> str:
    """A name with an apostrophe before it where a spreadsheet would take it for a formula; numbers stay as they are."""
    return f"'{name}" if _FORMULA.match(name) and not _NUMBER.fullmatch(name) else name
