"""A table ready for the analysis, and the function that reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pairflip.inputs import data_hash
from pairflip.least_squares import Floats
from pairflip.tables.binary_files import about_sheets
from pairflip.tables.categories import (
    Asked,
    check_present,
    find_categories,
    labels_of,
    may_be_classes,
)
from pairflip.tables.classes import as_classes, column_labels
from pairflip.tables.cleaning import as_candidates, as_target, without_missing
from pairflip.tables.columns import (
    ChosenColumns,
    about_numbers,
    numbers_the_rows,
    select,
    separate_names,
    visible_names,
)
from pairflip.tables.dates import in_order
from pairflip.tables.errors import TableError, noted, raise_all
from pairflip.tables.matrices import Matrix, check_shape, choose, constant_columns
from pairflip.tables.raw import Change, Raw, change
from pairflip.tables.reading import read_raw
from pairflip.text import label_text, listed, plural, quoted, row_numbers


@dataclass(frozen=True, eq=False)
class Table:
    """Candidates and target, all finite numbers, and how they were obtained.

    Attributes
    ----------
    X : (M, N) float64, C order
        Candidates. Those of NumPy files with many columns are as the file holds them: float32 or float64, in any order,
        perhaps mapped from the file.
    y : (M,) float64
        Target.
    names : N names
        Of the columns of X, all different.
    row_names : M names
        From the index column, or numbers of the rows of the file, the first below the header being 1.
    target : str
        Name of y.
    source : str
        Name of the file, without its folder.
    dropped : list of Change
        Columns and rows that the file has and X has not, and why.
    notes : list of Change
        What else a reader of the results should know.
    row_dates : bool
        Whether the names of the rows are dates in increasing or decreasing order.
    classes : list of str or None
        Labels of the classes that y (then 0, 1, ...) stands for.
    groups : dict of names by name
        Columns that belong together: those that stand for the categories of one column of the file.
    categories : dict of levels by column
        Of each such column of the file, what its columns of 0 and 1 are called and which level each stands for.
    index : str or None
        The column that the names of the rows come from.
    event : str or None
        The column that says whether the event happened, where the target is a survival time.
    """

    X: NDArray[Any]
    y: Floats
    names: list[str]
    row_names: list[str]
    target: str
    source: str
    dropped: list[Change] = field(default_factory=list)
    notes: list[Change] = field(default_factory=list)
    row_dates: bool = False
    classes: list[str] | None = None
    groups: dict[str, list[str]] = field(default_factory=dict)
    categories: dict[str, dict[str, str]] = field(default_factory=dict)
    index: str | None = None
    event: str | None = None

    @cached_property
    def hash(self) -> str:
        """Identity of the data without weights, see `inputs.data_hash`; the `data_hash` of curves made from it."""
        return data_hash(self.names, self.X, self.y, np.ones(len(self.y)))


def read_table(
    path: str | Path,
    target: str | None = None,
    *,
    drop: Iterable[str] = (),
    keep: Iterable[str] = (),
    index: str | None = None,
    drop_text: bool = False,
    missing: Literal["drop-rows", "drop-columns"] | None = None,
    sheet: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    classes: bool | None = False,
    categories: Asked = (),
    used: Iterable[str] = (),
) -> Table:
    """Read a table of candidates and a target.

    Parameters
    ----------
    path : str or Path
        ``.csv``, ``.tsv``, ``.txt``, ``.dat`` (with commas, semicolons, tabs, bars or runs of spaces, in UTF-8 or
        UTF-16; also ``.gz``), ``.parquet``, ``.feather``, ``.arrow``, ``.npz`` (arrays X, y, names), ``.npy`` (one
        array, whose columns are called x0, x1, ...), ``.xlsx``. Columns have names, in the first row of text tables.
    target : str
        Column to predict; in an ``.npz`` file with y it need not be given, and beside an ``.npy`` file it may be
        another ``.npy`` file that holds the target alone.
    drop, keep : lists of str
        Columns to leave out, or the only ones to choose from: names, or regular expressions between slashes
        (``/^gene_/``), which may match anywhere in a name.
    index : str, optional
        Column of row names. A first column without a name is also taken as one.
    drop_text : bool
        Leave out columns of text and dates instead of refusing them.
    missing : {"drop-rows", "drop-columns"}, optional
        What to leave out because of missing or infinite values, which are refused otherwise. Missing is what is empty
        or reads NA, N/A, NaN, null, None, ``?``, ``.``, ``-`` or a spreadsheet's error.
    sheet : str, optional
        Sheet of a workbook, the first one otherwise.
    decimal : {".", ","}, optional
        Decimal mark of a text table.
    thousands : {",", "."}, optional
        What stands between groups of three digits in a text table: ``1,499``, or ``1.499,5`` with ``decimal=","``.
    classes : bool or None
        Whether the target has labels of classes, in words, numbers, or true and false; None: if it holds text of 2 to
        20 kinds.
    categories : list of str, or True
        Columns of categories (names, or expressions as in `drop`; True: all columns of text that can be), each of which
        becomes columns of 0 and 1 behind all others: ``race`` becomes ``race=a``, ``race=b``, ... They make up a group
        of ``Table.groups``. Categories are at least two and at most 20 different values, each in two rows or more.
    used : list of str
        Columns that stay what they are. A first column called ``Unnamed: 0``, or of 0, 1, 2, ... or 1, 2, 3, ...,
        otherwise names the rows, or is left out where they have names; not if `keep` or `categories` have it.

    Raises
    ------
    TableError
        In one sentence, for anything that cannot be used without guessing.
    """
    raw = read_raw(path, sheet=sheet, decimal=decimal, thousands=thousands, index=index, target=target)
    source = Path(path).name
    if isinstance(raw, Matrix):
        if categories is not True and list(categories):
            raise TableError(f"{source!r} holds numbers only, and --categories is given; expected a table with text.")
        table = _from_matrix(raw, source, target, index=index, keep=keep, drop=drop, missing=missing)
        return _with_classes(table) if classes else table
    raw, dropped = without_blank_columns(raw)
    with naming_sheets(raw):
        n_rows = len(raw.frame)
        if n_rows < 2:
            raise TableError(f"{source!r} has {plural(n_rows, 'row')} below the header; expected at least two rows.")
        if not raw.names:
            raise TableError(f"{source!r} has no columns; expected a target and at least one column to choose from.")
        if target is None and source.lower().endswith(".npz") and raw.names[0] == "y":
            target = "y"
        names, notes = visible_names(raw.names)
        keep = [keep] if isinstance(keep, str) else list(keep)
        chosen = select(names, target, index=index, keep=keep, drop=drop, originals=raw.names)
        asked = [*used, *(() if categories is True else [categories] if isinstance(categories, str) else categories)]
        free = not keep and raw.row_names is None and names[0] not in separate_names(asked, names)
        if free and 0 in chosen.candidates[:-1] and numbers_the_rows(raw.frame[0], raw.names[0]):
            done = "taken as their names" if chosen.index is None else "left out"
            notes.append(about_numbers(names[0], done))
            chosen = replace(chosen, index=chosen.index or 0, candidates=chosen.candidates[1:])
    labels: list[str] | None = None
    y, target_notes, problems = np.zeros(n_rows), list[Change](), list[str]()
    by_itself = classes is None and may_be_classes(raw.frame[chosen.target], raw.marks)
    classes = classes or by_itself
    with noted(problems):
        if classes:
            y, labels = as_classes(column_labels(raw.frame[chosen.target]), names[chosen.target])
        else:
            y, target_notes = as_target(raw.frame, chosen.target, names[chosen.target], raw.marks)
    named = chosen.index is not None or raw.row_names is not None
    kinds = find_categories(raw.frame, chosen.candidates, names, categories, raw.marks)
    before = len(problems)
    with noted(problems):
        check_present(raw.frame, kinds, missing)
    gaps_are_told = len(problems) > before
    others = [j for j in chosen.candidates if j not in kinds]
    X, left, text, candidate_notes = np.empty((n_rows, 0)), list[str](), list[Change](), list[Change]()
    if others or not kinds:
        with noted(problems):
            X, left, text, candidate_notes = as_candidates(raw.frame, others, names, drop_text, raw.marks, named)
        if not left:  # values may be missing in the columns of numbers, too
            with suppress(TableError):
                X, left, _, _ = as_candidates(raw.frame, others, names, True, raw.marks, named)
    for j, category in kinds.items():
        indicators = category.indicators(labels_of(raw.frame[j]))
        X = np.hstack([X, np.nan_to_num(indicators) if gaps_are_told else indicators])
        left = [*left, *category.names]
        candidate_notes = [*candidate_notes, category.note]
    row_names = _row_names(raw, chosen.index)
    lost = list[Change]()
    with noted(problems):
        X, y, left, row_names, lost = without_missing(X, y, left, row_names, names[chosen.target], missing)
    raise_all(problems)
    if labels is None:
        _refuse_constant_target(y, names[chosen.target])
    else:  # rows that were left out may have taken a class with them
        as_classes([labels[int(code)] for code in y.tolist()], names[chosen.target])
    same = np.flatnonzero((X[:1] == X).all(axis=0))
    constant = change("column", "with a single value, kept", (left[j] for j in same))
    called = raw.index_name if chosen.index is None else names[chosen.index]
    present = [category for category in kinds.values() if category.names[0] in left]
    return Table(
        X=X,
        y=y,
        names=left,
        row_names=row_names,
        target=names[chosen.target],
        source=source,
        dropped=dropped + chosen.dropped + text + lost,
        notes=raw.notes
        + notes
        + _commas(raw, names, chosen, left)
        + target_notes
        + candidate_notes
        + constant
        + (_two_values(y, names[chosen.target]) if labels is None else [])
        + (_classes(labels, names[chosen.target]) if labels is not None and by_itself else []),
        row_dates=named and in_order(row_names, called),
        classes=labels,
        groups={category.name: category.names for category in present},
        categories={each.name: dict(zip(each.names, each.levels, strict=True)) for each in present},
        index=None if chosen.index is None else names[chosen.index],
    )


def _with_classes(table: Table) -> Table:
    """The same with its target, numbers of two kinds, as classes."""
    y, labels = as_classes([label_text(value) for value in table.y.tolist()], table.target)
    notes = [note for note in table.notes if note.what != "target"]
    return replace(table, y=y, classes=labels, notes=notes)


def _from_matrix(
    matrix: Matrix,
    source: str,
    target: str | None,
    *,
    index: str | None,
    keep: Iterable[str],
    drop: Iterable[str],
    missing: str | None,
) -> Table:
    """A table whose numbers are used as they are; see `matrices`."""
    check_shape(matrix, source)
    found = choose(matrix, target, index=index, keep=keep, drop=drop, missing=missing)
    _refuse_constant_target(found.y, found.target)
    constant = change("column", "with a single value, kept", (found.names[j] for j in constant_columns(found.X)))
    return Table(
        X=found.X,
        y=found.y,
        names=found.names,
        row_names=found.row_names,
        target=found.target,
        source=source,
        dropped=found.dropped,
        notes=found.notes + constant + _two_values(found.y, found.target),
        row_dates=found.named and in_order(found.row_names, index or ""),
    )


def _refuse_constant_target(y: Floats, target: str) -> None:
    if (y == y[0]).all():
        raise TableError(
            f"The target {quoted(target)} is {y[0]:g} in every row; expected values that differ: choose another "
            "--target."
        )


def _commas(raw: Raw, names: Sequence[str], chosen: ChosenColumns, left: Sequence[str]) -> list[Change]:
    """Columns in use whose commas were read as decimal commas though they may mark thousands."""
    used = {names[chosen.target], *left}
    why = "with commas that may mark thousands (as in 1,499), read as decimal commas"
    return change("column", why, (names[j] for j in raw.either if names[j] in used))


def _two_values(y: Floats, target: str) -> list[Change]:
    """A target of two values may be meant as two classes; two rows always have two values."""
    values = np.unique(y)
    if len(values) != 2 or len(y) < 3:
        return []
    says = (
        f"the target {quoted(target)} has two values only, {values[0]:g} and {values[1]:g}; it is treated as a number, "
        "so predictions are numbers and not classes (select and fit have --loss logistic for two classes)"
    )
    return [Change("target", "of two values, treated as a number", (target,), says)]


def _classes(labels: Sequence[str], target: str) -> list[Change]:
    """A target of text that is taken for classes without having been asked to."""
    loss = "logistic" if len(labels) == 2 else "multinomial"
    what = f"text of {len(labels)} kinds ({listed(labels)})"
    says = f"the target {quoted(target)} holds {what}, taken as classes (--loss {loss})"
    return [Change("target", "of text, taken as classes", (target,), says)]


@contextmanager
def naming_sheets(raw: Raw) -> Iterator[None]:
    """Where a workbook has several sheets and none was named, what is missing may be on another one."""
    try:
        yield
    except TableError as error:
        if not raw.sheets:
            raise
        raise TableError(f"{str(error).removesuffix('.')}; {about_sheets(raw.sheets[0], raw.sheets[1:])}.") from None


def without_blank_columns(raw: Raw) -> tuple[Raw, list[Change]]:
    """Leave out columns with neither name nor values: separators at the end of the lines, or spreadsheet margins."""
    blank = [j for j, name in enumerate(raw.names) if name == "" and raw.frame[j].isna().all()]
    if not blank:
        return raw, []
    left = [j for j in range(len(raw.names)) if j not in set(blank)]
    frame = raw.frame[left].set_axis(range(len(left)), axis=1)
    dropped = change("column", "with neither name nor values dropped", (f"column {j + 1}" for j in blank))
    either = [left.index(j) for j in raw.either]
    return replace(raw, frame=frame, names=[raw.names[j] for j in left], either=either), dropped


def _row_names(raw: Raw, index: int | None) -> list[str]:
    if index is not None:
        column = raw.frame[index]
        return ["" if gone else str(name) for name, gone in zip(column, column.isna(), strict=True)]
    return raw.row_names or row_numbers(len(raw.frame))
