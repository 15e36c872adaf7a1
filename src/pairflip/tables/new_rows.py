"""New rows for a model: the columns it needs, found by name in a file that may have others and another order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pairflip.inputs import ColumnsAbsent
from pairflip.least_squares import Floats
from pairflip.tables.categories import column_labels, filled_words, indicators, labels_of
from pairflip.tables.cleaning import odd_column
from pairflip.tables.columns import numbers_the_rows, position
from pairflip.tables.errors import TableError, close_matches, noted, raise_all
from pairflip.tables.files import read_raw
from pairflip.tables.kinds import as_numbers
from pairflip.tables.raw import Change, Raw, change
from pairflip.tables.table import about_commas, naming_sheets
from pairflip.text import listed, plural, quoted, row_numbers


class TableLacks(TableError, ColumnsAbsent):
    """A table of new rows lacks columns that predict them."""


@dataclass(frozen=True, eq=False)
class NewRows:
    """Rows to be predicted."""

    X: Floats  # (M, U): the needed columns and then the wished ones; NaN where a value is missing or infinite
    absent: list[str]  # wished columns that the file does not have; they are NaN in X
    y: Floats | None  # the target (M,), of survival times with the event (M, 2); NaN or None where it is missing
    row_names: list[str]  # from the index column, or numbers of the rows of the file from 1
    source: str  # name of the file, without its folder
    notes: list[Change]  # columns that are ignored, that stand in another order, that were renamed


def read_new_rows(
    path: str | Path,
    needed: Sequence[str],
    wished: Sequence[str] = (),
    *,
    known: Sequence[str] = (),
    target: str | None = None,
    event: str | None = None,
    index: str | None = None,
    usual_index: str | None = None,
    sheet: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    classes: Sequence[str] | None = None,
    categories: Mapping[str, Mapping[str, str]] | None = None,
    references: Mapping[str, str] | None = None,
    filled: Mapping[str, str] | None = None,
) -> NewRows:
    """Read the columns that a model needs from a file of new rows."""
    raw = read_raw(path, sheet=sheet, decimal=decimal, thousands=thousands, index=index or usual_index)
    source = Path(path).name
    names = raw.names
    if len(raw.frame) == 0:
        raise TableError(f"{source!r} has no rows below the header; expected at least one row to predict.")
    wanted = [*needed, *wished]
    made = {name: (column, levels) for column, levels in (categories or {}).items() for name in levels}
    exact = {name: j for j, name in enumerate(names)}
    places = [exact[name] if name in exact else position(name, names) for name in wanted]
    made = {name: made[name] for name, at in zip(wanted, places, strict=True) if at is None and name in made}
    places = [position(made[name][0], names) if name in made else at for name, at in zip(wanted, places, strict=True)]
    with naming_sheets(raw):
        _refuse_absent(needed, places, names, source)
        _refuse_twins(raw, places, known)
    rows, index_at = _row_names(raw, index, usual_index, {*wanted, *known, target, event})
    aim, happened = (None if name is None else position(name, names) for name in (target, event))
    X = np.full((len(raw.frame), len(places)), np.nan)
    problems: list[str] = []
    for j, (at, name) in enumerate(zip(places, wanted, strict=True)):
        if at is not None and name in made:
            column, levels = made[name]
            X[:, j] = indicators(labels_of(raw.frame[at], (filled or {}).get(column)), [levels[name]])[:, 0]
        elif at is not None:
            with noted(problems):
                X[:, j] = _column(raw, at, name, "which the model needs")
    raise_all(problems)
    y, about_target = _target(raw, aim, classes)
    if event is not None:
        also, more = _target(raw, happened)
        y, about_target = None if y is None or also is None else np.column_stack([y, also]), about_target + more
    others = (aim, happened, index_at, *(position(column, names) for column in categories or ()))
    notes = [*raw.dropped, *_read_notes(raw, places), *_columns(raw, known, others), *about_target]
    notes += _unknown_levels(raw, dict(made.values()), references or {}, filled or {})
    absent = [name for name, at in zip(wanted, places, strict=True) if at is None]
    return NewRows(X, absent, y, rows, source, notes)


def _refuse_absent(needed: Sequence[str], places: Sequence[int | None], names: Sequence[str], source: str) -> None:
    lost = [name for name, at in zip(needed, places, strict=False) if at is None]
    if not lost:
        return
    near = close_matches(lost[0], [name for name in names if name not in needed], 1)
    them = "it" if len(lost) == 1 else "them"
    fix = f"perhaps {quoted(near[0])} is meant as {quoted(lost[0])}" if near else f"add {them} to the table"
    raise TableLacks(
        f"{source!r} lacks {plural(len(lost), 'column')} that the model needs, {listed(lost)}; expected "
        f"{'it' if len(needed) == 1 else f'all {len(needed):,}'}: {fix}."
    )


def _refuse_twins(raw: Raw, places: Sequence[int | None], known: Sequence[str]) -> None:
    """Refuse two columns of one name where the model knows only one, so that either might be meant."""
    model, counts = set(known), Counter(raw.originals)
    for original in (raw.originals[at] for at in places if at is not None):
        if not original or counts[original] < 2:
            continue
        twins = [name for name, each in zip(raw.names, raw.originals, strict=True) if each == original]
        if not model.issuperset(twins):
            raise TableError(
                f"{plural(len(twins), 'column')} of the table are called {quoted(original)}, which the model needs; "
                "expected one: rename or remove the others."
            )


def _row_names(raw: Raw, index: str | None, usual: str | None, used: set[str | None]) -> tuple[list[str], int | None]:
    """Names of the rows, and the column that they come from; it is none of those in use."""
    at = None if index is None else position(index, raw.names)
    if index is not None and at is None:
        raise TableError(
            f"--index {quoted(index)} is not a column of the table; expected one of its columns: it has "
            f"{listed(raw.names)}."
        )
    if at is None and usual is not None:
        at = position(usual, raw.names)
    if at is None and raw.row_names is None and not raw.is_array and raw.names[0] not in used:
        at = 0 if numbers_the_rows(raw.frame[0], raw.names[0]) else None
    if at is not None:
        return raw.names_in(at), at
    return raw.row_names or row_numbers(len(raw.frame)), None


def _column(raw: Raw, at: int, name: str, why: str) -> Floats:
    """A column as numbers, NaN where there is none; `why` says in an error what it is needed for."""
    values = as_numbers(raw.frame[at])
    if values is None:
        raise odd_column(raw, at, f"The column {quoted(name)}, {why},", "correct these values, or leave them empty")
    return np.where(np.isfinite(values), values, np.nan)


def _target(raw: Raw, at: int | None, classes: Sequence[str] | None = None) -> tuple[Floats | None, list[Change]]:
    """The target, if the table has it in numbers; as 0, 1, ... where it has these classes, NaN for others."""
    if at is None:
        return None, []
    name = raw.names[at]
    if classes is not None:
        labels = column_labels(raw.frame[at])
        return np.array([float(classes.index(label)) if label in classes else np.nan for label in labels]), []
    try:
        return _column(raw, at, name, "the target"), []
    except TableError:
        says = f"the target {quoted(name)} of the table does not hold numbers, so predictions are not compared with it"
        return None, [Change("target", "not of numbers, not compared", (name,), says)]


def _read_notes(raw: Raw, places: Sequence[int | None]) -> list[Change]:
    """What reading decided, as far as it concerns the columns in use."""
    used = {raw.names[at] for at in places if at is not None}
    notes = list(raw.notes)
    for note in raw.renamed:
        notes += change(note.what, note.why, (name for name in note.names if name in used))
    return notes + about_commas(raw, used)


def _unknown_levels(
    raw: Raw, used: Mapping[str, Mapping[str, str]], references: Mapping[str, str], filled: Mapping[str, str]
) -> list[Change]:
    """Rows of a category that the result does not know, and rows that have none and count as one."""
    notes = []
    for column, levels in used.items():
        at = position(column, raw.names)
        if at is not None:
            labels, known = labels_of(raw.frame[at]), {references.get(column), *levels.values()}
            if None in labels and column in filled:
                says = f"in the column {quoted(column)}, {filled_words(labels.count(None), filled[column])}"
                notes.append(Change("row", "without a category, filled in", (column,), says))
            new = [label for label in labels if label is not None and label not in known]
            if new:
                says = (
                    f"{plural(len(new), 'row')} with a category of {quoted(column)} that the result has not seen "
                    f"({listed(dict.fromkeys(new))}): all its columns are 0 there"
                    + (f", as for {quoted(references[column])}" if column in references else "")
                )
                notes.append(Change("row", "of a category that was not seen", (column,), says))
    return notes


def _columns(raw: Raw, known: Sequence[str], others: Sequence[int | None]) -> list[Change]:
    """Columns that the model does not know, and columns in another order than the model knows them."""
    if not known:
        return []
    order = {name: j for j, name in enumerate(known)}
    extra = [name for at, name in enumerate(raw.names) if name not in order and name.strip() and at not in others]
    notes = change("column", "that the result was not chosen from, ignored", extra)
    here = [order[name] for name in raw.names if name in order]
    if here != sorted(here):
        says = "the columns stand in another order than in the table of the result; they were found by name"
        notes.append(Change("column", "in another order, found by name", (), says))
    return notes
