"""Tables in several files, or too large for memory: read in batches of rows, with the options of small tables.

Small tables in several files are put together; large ones become a `Stream`, whose batches `SubsetProblem.from_blocks`
sums. Parquet, CSV and Arrow files are read by pyarrow, NumPy files are mapped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.blocks import Rows
from pairflip.tables.categories import MOST_LEVELS, Category, find_references, indicators, most_frequent
from pairflip.tables.columns import matching, select
from pairflip.tables.errors import TableError, shown_path
from pairflip.tables.files import ARROW, PARQUET, TEXT, arrow_reader, mapped_table, need, suffix_of, unlike
from pairflip.tables.raw import NO_VALUE, change, units_left_out
from pairflip.tables.table import Table
from pairflip.tables.text_files import SPACES, find_layout
from pairflip.text import label_text, plural, quoted

LARGE = 2**26
"""Numbers: a larger table is read in batches."""
_TEXT_NUMBER_BYTES = 8  # of a number in a text table, about; a third of that in a compressed one
_BATCH = 2**17  # rows
_TEXT_BLOCK, _FIRST_BYTES = 2**24, 2**20  # bytes of text tables that are read together, and that tell what columns hold


def is_large(files: Sequence[Path]) -> bool:
    """Whether the table in these files has more than `LARGE` numbers, as far as can be told without reading it."""
    numbers = 0.0
    for file in files:
        suffix = suffix_of(file)
        try:
            if suffix in PARQUET:
                meta = import_module("pyarrow.parquet").ParquetFile(file).metadata
                numbers += meta.num_rows * meta.num_columns
            elif suffix == ".npy":
                numbers += np.load(file, mmap_mode="r", allow_pickle=False).size
            elif suffix in (*TEXT, *ARROW):
                packed = 3 if file.name.lower().endswith(".gz") else 1
                numbers += packed * file.stat().st_size / _TEXT_NUMBER_BYTES
        except Exception:  # whatever is wrong with it is said where it is read
            return False
    return numbers > LARGE


@dataclass(frozen=True, eq=False)
class Stream:
    """A table that is read in batches of rows."""

    files: Sequence[Path]
    table: Table  # without any row
    targets: list[str]
    columns: list[str]  # of the files, in the order in which batches have them
    weights: str | None

    @property
    def names(self) -> list[str]:
        """Names of the candidates."""
        return self.table.names

    @property
    def identity(self) -> list[Any]:
        """What tells these files from others."""
        return [[file.name, file.stat().st_size, self.columns] for file in self.files]

    def batches(self) -> Iterator[Rows]:
        """All rows, file by file."""
        categories = self.table.categories
        plain = [name for name in self.columns if name not in {*categories, *self.targets, self.weights}]
        for file in self.files:
            for batch in _batches(file, self.columns, set(categories)):
                columns = [_numbers(batch, name, file) for name in plain]
                for name, level_of in categories.items():
                    columns += list(indicators(_labels(batch[name]), level_of.values()).T)
                columns += [_numbers(batch, name, file) for name in self.targets]
                weight = None if self.weights is None else _numbers(batch, self.weights, file)
                yield Rows(columns, weight)


def open_stream(
    files: Sequence[Path],
    target: str | None,
    *,
    more_targets: Sequence[str] = (),
    weights: str | None = None,
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    drop_text: bool = False,
    categories: Sequence[str] = (),
    reference: Sequence[str] = (),
) -> Stream:
    """Decide by the first rows which columns a table in parts has, and find the levels of its categories."""
    kinds = _kinds_of_columns(files[0])
    names = list(kinds)
    for file in files[1:]:
        others = list(_kinds_of_columns(file))
        if others != names:
            raise unlike(file, others, files[0], names)
    beside = [name for name in (weights,) if name is not None]
    chosen = select(names, target, keep=[*keep, *beside, *more_targets] if keep else (), drop=drop)
    targets = [names[chosen.target], *more_targets]
    wanted = matching(categories, names, "--categories") if categories else set()
    candidates = [j for j in chosen.candidates if names[j] not in (*targets, *beside)]
    for name in (*beside, *targets):
        if kinds.get(name) != "numbers":
            holds = kinds.get(name)
            was = f"holds {holds}" if holds else "is not a column of the table"
            raise TableError(f"{quoted(name)} {was}; expected a column of numbers (classes need a table in memory).")
    odd = [j for j in candidates if kinds[names[j]] != "numbers" and j not in wanted]
    dropped = list(chosen.dropped)
    if odd and not drop_text:
        each = ", ".join(f"{quoted(names[j])} ({kinds[names[j]]})" for j in odd[:5])
        more = f" and {len(odd) - 5} more" if len(odd) > 5 else ""
        raise TableError(
            f"{plural(len(odd), 'column')} of {files[0].name!r} {'does' if len(odd) == 1 else 'do'} not hold numbers: "
            f"{each}{more}; expected numbers: leave them out with --drop-text, or read text as categories "
            "(--categories NAME)."
        )
    dropped += change("column", "of text or dates dropped", (names[j] for j in odd))
    used = [names[j] for j in candidates if j not in odd]
    levels, often = _categories(files, [names[j] for j in sorted(wanted)], set(names))
    asked = find_references(reference, levels.values())
    references = {name: asked.get(name) or often[name] for name in levels}
    levels = {name: category.without(references[name]) for name, category in levels.items()}
    plain = [name for name in used if name not in levels]
    made = [name for category in levels.values() for name in category.level_of]
    table = Table(
        X=np.empty((0, len(plain) + len(made))), y=np.empty(0), names=[*plain, *made], row_names=[],
        target=",".join(targets), source=files[0].name + (f" and {len(files) - 1} more" if len(files) > 1 else ""),
        dropped=dropped, references=references,
        notes=[
            *units_left_out(find_layout(files[0]).units if suffix_of(files[0]) in TEXT else []),
            *(category.note(references[name], name in asked) for name, category in levels.items()),
        ],
        categories={name: category.level_of for name, category in levels.items()},
    )  # fmt: skip
    return Stream(files, table, targets, [*plain, *levels, *targets, *beside], weights)


def _categories(
    files: Sequence[Path], wanted: Sequence[str], taken: set[str]
) -> tuple[dict[str, Category], dict[str, str]]:
    """The levels of columns of categories, and the most frequent ones, from a pass over these columns alone."""
    if not wanted:
        return {}, {}
    labels: dict[str, Counter[str]] = {name: Counter() for name in wanted}
    for file in files:
        for batch in _batches(file, list(wanted), set(wanted)):
            for name in wanted:
                labels[name].update(label for label in _labels(batch[name]) if label is not None)
                if len(labels[name]) > MOST_LEVELS:
                    raise TableError(
                        f"The column {quoted(name)} of --categories has more than {MOST_LEVELS} different values; "
                        f"expected at most {MOST_LEVELS} categories."
                    )
    for name, found in labels.items():
        if len(found) < 2:
            raise TableError(f"The column {quoted(name)} of --categories has {plural(len(found), 'value')}; expected "
                             "at least two categories.")  # fmt: skip
    levels = {name: Category.of(name, found, taken) for name, found in labels.items()}
    often = {
        name: most_frequent(each, [labels[name][level] for level in each.level_of.values()])
        for name, each in levels.items()
    }
    return levels, often


# Files ----------------------------------------------------------------------------------------------------------------


@contextmanager
def _plain_errors(file: Path, header: Sequence[str] = ()) -> Iterator[list[int]]:
    """What pyarrow and the operating system have to say about a file, in one sentence, after how many rows."""
    arrow, done = import_module("pyarrow"), list[int]()
    try:
        yield done
    except TableError:
        raise
    except (arrow.ArrowException, OSError, ValueError) as error:
        reason = " ".join(str(error).split()).split(". Detail")[0].rstrip(".")
        reason = re.sub(r"In CSV column #(\d+)", lambda at: f"column {quoted(header[int(at[1])])}", reason)
        after = f" after row {sum(done):,}" if sum(done) else ""
        raise TableError(
            f"{file.name!r} cannot be read{after} ({reason[:200]}); expected a whole table with the same columns and "
            "kinds of values as the other parts."
        ) from None


def _kinds_of_columns(file: Path) -> dict[str, str]:
    """What each column holds by its name: numbers, text, dates, or something else."""
    suffix = suffix_of(file)
    if suffix == ".npy":
        return dict.fromkeys((f"x{j}" for j in range(mapped_table(file).shape[1])), "numbers")
    if suffix not in (*PARQUET, *ARROW, *TEXT):
        raise TableError(
            f"{file.name!r} cannot be read in batches; expected parts in .parquet, .csv, .arrow, .feather or .npy."
        )
    if not file.is_file():
        raise TableError(f"{shown_path(file)} is not a file; expected parts of a table.")
    need("pyarrow", file, "read in batches")
    with _plain_errors(file):
        if suffix in PARQUET:
            schema = import_module("pyarrow.parquet").read_schema(file)
        elif suffix in ARROW:
            schema = _arrow_reader(file).schema
        else:
            schema = _text_reader(file, None, set()).schema
    kinds: dict[str, str] = {}
    for item in schema:
        name = str(item.name)
        kinds[name] = _kind(item.type) if name not in kinds else kinds[name]
    if len(kinds) < len(schema):
        twice = next(item.name for item in schema if schema.names.count(item.name) > 1)
        raise TableError(f"{file.name!r} has several columns called {quoted(twice)}; expected different names.")
    kinds.pop("__index_level_0__", None)  # that pandas saved
    return kinds


def _kind(of: Any) -> str:
    types = import_module("pyarrow").types
    if any(getattr(types, f"is_{kind}")(of) for kind in ("integer", "floating", "boolean", "null", "decimal")):
        return "numbers"
    if types.is_temporal(of):
        return "dates"
    value = of.value_type if types.is_dictionary(of) else of
    return "text" if types.is_string(value) or types.is_large_string(value) else str(of)


def _batches(file: Path, columns: Sequence[str], as_text: set[str]) -> Iterator[Any]:
    """Batches of rows with these columns."""
    suffix = suffix_of(file)
    if suffix == ".npy":
        X = mapped_table(file)
        at = [int(name.removeprefix("x")) for name in columns]
        for first in range(0, len(X), _BATCH):
            yield dict(zip(columns, np.asarray(X[first : first + _BATCH])[:, at].T, strict=True))
        return
    text = suffix in TEXT
    with _plain_errors(file, find_layout(file).header if text else ()) as done:
        if suffix in PARQUET:
            # One row group at a time, without reading ahead: otherwise the whole file stays in memory.
            parquet = import_module("pyarrow.parquet").ParquetFile(file, pre_buffer=False)
            how: dict[str, Any] = {"batch_size": _BATCH, "columns": list(columns)}
            groups = range(parquet.num_row_groups)
            batches: Iterable[Any] = chain.from_iterable(
                parquet.iter_batches(row_groups=[group], **how) for group in groups
            )
        elif text:
            batches = _text_reader(file, list(columns), as_text)
        else:
            reader = _arrow_reader(file)
            is_file = hasattr(reader, "num_record_batches")
            whole = map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader
            batches = (batch.select(list(columns)) for batch in whole)
        for batch in batches:
            yield batch
            done.append(batch.num_rows)


def _arrow_reader(file: Path) -> Any:
    return arrow_reader(import_module("pyarrow").memory_map(str(file)))


def _text_reader(file: Path, columns: list[str] | None, as_text: set[str]) -> Any:
    """A reader of a text table: some columns as numbers and as text; None: all, of the kinds of its first rows."""
    arrow, csv = import_module("pyarrow"), import_module("pyarrow.csv")
    layout = find_layout(file)
    if layout.separator == SPACES or layout.row_names:
        raise TableError(
            f"{file.name!r} has {'columns separated by spaces' if layout.separator == SPACES else 'names of rows'}; "
            "expected a header and separators for a table in parts: save it as .csv or .parquet."
        )
    types = {}
    if columns is not None:
        kinds = _text_reader(file, None, set()).schema
        types = {name: arrow.float64() for name in columns if not arrow.types.is_boolean(kinds.field(name).type)}
        types |= dict.fromkeys(as_text, arrow.string())
    return csv.open_csv(
        file,
        read_options=csv.ReadOptions(
            block_size=_FIRST_BYTES if columns is None else _TEXT_BLOCK, encoding=layout.encoding,
            skip_rows=layout.skip, column_names=layout.header,
        ),
        parse_options=csv.ParseOptions(delimiter=layout.separator, newlines_in_values=False),
        convert_options=csv.ConvertOptions(
            column_types=types, include_columns=columns, strings_can_be_null=True,
            null_values=list(NO_VALUE),
        ),
    )  # fmt: skip


def _numbers(batch: Any, name: str, file: Path) -> NDArray[Any]:
    """A column of a batch, missing values as not-a-number."""
    if isinstance(batch, dict):
        return np.asarray(batch[name])
    column = batch.column(batch.schema.get_field_index(name))
    types = import_module("pyarrow").types
    if types.is_boolean(column.type) or types.is_decimal(column.type) or types.is_null(column.type):
        column = column.cast("float64") if not types.is_boolean(column.type) else column.cast("int8")
    values = np.asarray(column.to_numpy(zero_copy_only=False))
    if values.dtype.kind not in "iuf":
        raise TableError(
            f"{file.name!r} holds {column.type} in {quoted(name)}; expected numbers, as in the first part."
        )
    return values


def _labels(column: Any) -> list[str | None]:
    """Categories of the rows as text; None where there is none."""
    values = column.tolist() if isinstance(column, np.ndarray) else column.to_pylist()
    labels = (None if value is None or value != value else label_text(value).strip() for value in values)
    return [label or None for label in labels]
