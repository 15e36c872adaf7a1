"""A table ready for the analysis, and the function that reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from pairflip.inputs import data_hash
from pairflip.least_squares import Floats
from pairflip.projection import column_blocks
from pairflip.sparse import dense
from pairflip.tables.categories import (
    NO_CATEGORY,
    as_classes,
    column_labels,
    find_categories,
    find_references,
    indicators,
    labels_of,
    may_be_classes,
    most_frequent,
)
from pairflip.tables.cleaning import as_candidates, as_target, repeated_values, without_missing
from pairflip.tables.columns import ChosenColumns, numbers_the_rows, select, separate_names
from pairflip.tables.errors import TableError, noted, raise_all
from pairflip.tables.files import LARGE, about_sheets, read_raw
from pairflip.tables.kinds import in_order, is_plain
from pairflip.tables.raw import Change, Raw, change
from pairflip.text import listed, plural, quoted, row_numbers

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Table:
    """Candidates and target, all finite numbers (unless missing values were kept), and how they were obtained.

    Attributes
    ----------
    X : (M, N) float64, C order
        Candidates. Those of NumPy files with many columns are as the file holds them: float32 or float64, in any order,
        perhaps mapped from the file. A sparse matrix stays sparse, by columns.
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
    categories : dict of levels by column
        Of each such column of the file, what its columns of 0 and 1 are called and which level each stands for.
    references : dict of str by column
        The level of each such column that has no column of 0 and 1.
    filled : dict of str by column
        The level of each such column that rows without one count as, where missing values are kept.
    index : str or None
        The column that the names of the rows come from.
    event : str or None
        The column that says whether the event happened, where the target is a survival time.
    repeated : dict of codes of the rows by column
        Columns of the file that may say which rows belong together, candidates or not.
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
    categories: dict[str, dict[str, str]] = field(default_factory=dict)
    references: dict[str, str] = field(default_factory=dict)
    filled: dict[str, str] = field(default_factory=dict)
    index: str | None = None
    event: str | None = None
    repeated: dict[str, NDArray[np.int64]] = field(default_factory=dict)

    @property
    def groups(self) -> dict[str, list[str]]:
        """Columns that belong together: those that stand for the categories of one column of the file."""
        return {name: list(levels) for name, levels in self.categories.items()}

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
    missing: Literal["drop-rows", "drop-columns", "keep"] | None = None,
    sheet: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    classes: bool | None = False,
    categories: Iterable[str] | Literal[True] = (),
    reference: Iterable[str] = (),
    used: Iterable[str] = (),
) -> Table:
    """Read a table of candidates and a target.

    Parameters
    ----------
    path : str or Path
        ``.csv``, ``.tsv``, ``.txt``, ``.dat`` (with commas, semicolons, tabs, bars or runs of spaces, in UTF-8 or
        UTF-16; also ``.gz``), ``.parquet``, ``.feather``, ``.arrow``, ``.npz`` (arrays X, y, names, or a sparse
        matrix), ``.npy`` (one array), ``.xlsx``. Columns have names, in the first row of text tables; those of
        ``.npy`` files and of sparse matrices are called x0, x1, ...
    target : str
        Column to predict; in an ``.npz`` file with y it need not be given, and beside a NumPy file without it may
        be another ``.npy`` file that holds the target alone.
    drop, keep : lists of str
        Columns to leave out, or the only ones to choose from: names, or regular expressions between slashes
        (``/^gene_/``), which may match anywhere in a name.
    index : str, optional
        Column of row names. A first column without a name is also taken as one.
    drop_text : bool
        Leave out columns of text and dates instead of refusing them.
    missing : {"drop-rows", "drop-columns", "keep"}, optional
        What to leave out because of missing or infinite values, which are refused otherwise; "keep": only rows that
        lack the target or a column of `used`, other values are NaN. Missing is what is empty or reads NA, N/A, NaN,
        null, None, ``?``, ``.``, ``-`` or a spreadsheet's error. Rows without a category count as one called
        "missing" if they are two or more, otherwise as the most frequent one.
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
        becomes columns of 0 and 1 behind all others: ``race`` becomes ``race=a``, ``race=b``, ..., all but the
        reference. They make up a group of ``Table.groups``. Categories are at least two and at most 20 different
        values, each in two rows or more.
    reference : list of str
        References as ``column=category``; otherwise the category in most rows is the reference.
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
    by_name = [] if categories is True else categories
    keep, drop, used, by_name, reference = (
        [each] if isinstance(each, str) else list(each) for each in (keep, drop, used, by_name, reference)
    )
    if raw.is_array and by_name:
        raise TableError(f"{source!r} holds numbers only, and --categories is given; expected a table with text.")
    with naming_sheets(raw):
        if raw.target is not None and (target is None or target.lower().endswith(".npy")):
            target = raw.target
        chosen, notes = _choose_columns(raw, source, target, index, keep, drop, [*used, *by_name])
    names = raw.names
    label, column = names[chosen.target], raw.frame[chosen.target]
    taken_as_classes = classes is None and not is_plain(column.dtype) and may_be_classes(raw, chosen.target)
    y, labels = np.zeros(len(raw.frame)), None
    about_values, problems = list[Change](), list[str]()
    with noted(problems):
        if classes or taken_as_classes:
            y, labels = as_classes(column_labels(column), label)
        else:
            y, about_values = as_target(raw, chosen.target)
    kinds = find_categories(raw, chosen.candidates, True if categories is True else by_name, missing == "keep")
    asked = find_references(reference, kinds.values())
    made, gaps, about_categories = list[Floats](), dict[str, int](), list[Change]()
    references, filled = dict[str, str](), dict[str, str]()
    for j, category in kinds.items():
        name, levels, labels_here = category.name, [*category.level_of.values()], labels_of(raw.frame[j])
        zeros_and_ones = indicators(labels_here, levels)
        gaps[name] = labels_here.count(None)
        if missing is None and gaps[name]:
            problems.append(category.without_level(gaps[name]))
            zeros_and_ones = np.nan_to_num(zeros_and_ones)
        if missing == "keep":
            filled[name] = NO_CATEGORY
            if NO_CATEGORY not in levels:
                filled[name] = most_frequent(category, np.nansum(zeros_and_ones, axis=0))
            zeros_and_ones = indicators(labels_of(raw.frame[j], filled[name]), levels)
        made.append(zeros_and_ones)
    X, columns, text, lost = np.empty((len(y), 0)), list[str](), list[Change](), list[Change]()
    others = [j for j in chosen.candidates if j not in kinds]
    named = chosen.index is not None or raw.row_names is not None
    as_it_is: Any = None
    if raw.sparse is not None:
        as_it_is = raw.sparse[:, [j - (raw.target is not None) for j in others]]
    elif raw.is_array and len(others) >= LARGE:
        as_it_is = _without_copy(raw.frame, others)
    if as_it_is is not None:
        X, columns = as_it_is, [names[j] for j in others]
    elif others or not kinds:
        with noted(problems):
            X, columns, text, boolean = as_candidates(raw, others, drop_text, named)
            about_values += boolean
        if not columns:  # values may be missing in the columns of numbers, too
            with suppress(TableError):
                X, columns, _, _ = as_candidates(raw, others, True, named)
    if kinds:
        X = np.hstack([X, *made])
        columns += [name for category in kinds.values() for name in category.level_of]
    rows = raw.row_names or row_numbers(len(y)) if chosen.index is None else raw.names_in(chosen.index)
    with noted(problems):
        X, y, columns, kept, lost = without_missing(X, y, columns, rows, label, missing, used)
        rows = [name for name, left in zip(rows, kept.tolist(), strict=True) if left]
    raise_all(problems)
    for j, category in kinds.items():
        if not category.level_of.keys() <= {*columns}:
            continue  # it was left out because of its gaps
        at = [columns.index(name) for name in category.level_of]
        name, level = category.name, asked.get(category.name) or most_frequent(category, X[:, at].sum(axis=0))
        references[name], kinds[j] = level, category.without(level)
        without = at[[*category.level_of.values()].index(level)]
        X, columns = np.delete(X, without, axis=1), columns[:without] + columns[without + 1 :]
        about_categories.append(kinds[j].note(level, name in asked, gaps[name], filled.get(name)))
    if labels is not None:  # rows that were left out may have taken a class with them
        as_classes([labels[int(code)] for code in y.tolist()], label)
    notes = [
        *raw.notes, *raw.renamed, *notes, *about_commas(raw, {label, *columns}), *about_values, *about_categories,
        *_constant_columns(X, columns), *_about_target(y, label, labels, taken_as_classes),
    ]  # fmt: skip
    return Table(
        X=X, y=y, names=columns, row_names=rows, target=label, source=source,
        dropped=raw.dropped + chosen.dropped + text + lost, notes=notes,
        row_dates=named and in_order(rows, raw.index_name if chosen.index is None else names[chosen.index]),
        classes=labels,
        categories={each.name: each.level_of for each in kinds.values() if each.name in references},
        references=references, filled=filled, index=None if chosen.index is None else names[chosen.index],
        repeated={} if problems else {name: codes[kept] for name, codes in repeated_values(raw, chosen.target).items()},
    )  # fmt: skip


def _choose_columns(
    raw: Raw,
    source: str,
    target: str | None,
    index: str | None,
    keep: Sequence[str],
    drop: Sequence[str],
    used: Sequence[str],
) -> tuple[ChosenColumns, list[Change]]:
    """The columns that are asked for, and a note where one of them numbers the rows."""
    if len(raw.frame) < 2:
        where = "" if raw.is_array else " below the header"
        raise TableError(f"{source!r} has {plural(len(raw.frame), 'row')}{where}; expected at least two rows.")
    if not raw.names:
        raise TableError(f"{source!r} has no columns; expected a target and at least one column to choose from.")
    names, notes = raw.names, list[Change]()
    chosen = select(names, target, index=index, keep=keep, drop=drop, originals=raw.originals)
    free = not (keep or raw.is_array) and raw.row_names is None and names[0] not in separate_names(used, names)
    if free and 0 in chosen.candidates[:-1] and numbers_the_rows(raw.frame[0], names[0]):
        use, first = "taken as their names" if chosen.index is None else "left out", quoted(names[0])
        says = f"the first column, {first}, numbers the rows and was {use} (--keep '/./' chooses from it, too)"
        notes.append(Change("column", f"that numbers the rows, {use}", (names[0],), says))
        chosen = replace(chosen, index=chosen.index or 0, candidates=chosen.candidates[1:])
    return chosen, notes


def _without_copy(frame: pd.DataFrame, at: Sequence[int]) -> NDArray[Any] | None:
    """Columns of one array of floats, a view of it where they are neighbours; None for other numbers."""
    neighbours = at[-1] - at[0] + 1 == len(at)
    X = (frame.iloc[:, at[0] : at[-1] + 1] if neighbours else frame.iloc[:, list(at)]).to_numpy()
    return X if X.dtype in (np.float32, np.float64) else None


def _constant_columns(X: NDArray[Any], names: Sequence[str]) -> list[Change]:
    """Columns with a single value, looked at in blocks, since X may be large."""
    constant: list[int] = []
    for part in column_blocks(*X.shape):
        block = dense(X[:, part])
        constant += (part.start + np.flatnonzero((block[:1] == block).all(axis=0))).tolist()
    return change("column", "with a single value, kept", (names[j] for j in constant))


def _about_target(y: Floats, target: str, labels: Sequence[str] | None, taken_as_classes: bool) -> list[Change]:
    """What is to be said about a target that may mean two things; one that is the same in every row is refused."""
    if labels is None:
        values = np.unique(y)
        if values.size == 1:
            raise TableError(
                f"The target {quoted(target)} is {y[0]:g} in every row; expected values that differ: choose another "
                "--target."
            )
        if values.size != 2 or y.size < 3:  # two rows always have two values
            return []
        says = (
            f"the target {quoted(target)} has two values only, {values[0]:g} and {values[1]:g}; it is treated as a "
            "number, so predictions are numbers and not classes (select and fit have --loss logistic for two classes)"
        )
        return [Change("target", "of two values, treated as a number", (target,), says)]
    if not taken_as_classes:
        return []
    loss = "logistic" if len(labels) == 2 else "multinomial"
    text = f"text of {len(labels)} kinds ({listed(labels)})"
    says = f"the target {quoted(target)} holds {text}, taken as classes (--loss {loss})"
    return [Change("target", "of text, taken as classes", (target,), says)]


def about_commas(raw: Raw, used: set[str]) -> list[Change]:
    """Columns in use whose commas were read as decimal commas though they may mark thousands."""
    why = "with commas that may mark thousands (as in 1,499), read as decimal commas"
    return change("column", why, (raw.names[j] for j in raw.either if raw.names[j] in used))


@contextmanager
def naming_sheets(raw: Raw) -> Iterator[None]:
    """Where a workbook has several sheets and none was named, what is missing may be on another one."""
    try:
        yield
    except TableError as error:
        if not raw.sheets:
            raise
        sheets = about_sheets(raw.sheets[0], raw.sheets[1:])
        raise TableError(f"{str(error).removesuffix('.')}; {sheets}.") from None
