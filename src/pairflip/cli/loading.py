"""From the options about the table to a problem: candidates, target, weights, groups, limits."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairflip.cli.errors import say
from pairflip.cli.options import EVERY_COLUMN, LimitOptions, LossName, LossOptions, ModelOptions, TableOptions

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from pairflip.least_squares import Floats
    from pairflip.problem import SubsetProblem
    from pairflip.tables import Change, Table
    from pairflip.tables.parts import Stream


TALL, TALL_PER_COLUMN = 50_000, 500
"""Rows, and rows for each column, from which only moments of a table in memory are kept (053-blocks-of-rows.md)."""


@dataclass(frozen=True, eq=False)
class Loaded:
    """A table, and what SubsetProblem takes beside it."""

    table: Table
    loss: LossName
    options: TableOptions
    groups: list[str] | None = None  # of each row, for folds
    arguments: dict[str, Any] = field(default_factory=dict)  # sample_weight, offset, target_names
    beside_y: list[Floats] = field(default_factory=list)  # other targets, or the events of survival times
    stream: Stream | None = None  # where the rows were not read yet; the table then has none

    def problem(
        self,
        model: ModelOptions,
        limits: LimitOptions | None = None,
        *,
        ridge: float | None = None,
        quiet: bool = False,
        journal: Path | None = None,
        n_jobs: int | None = None,
        sum_up: bool = False,
    ) -> SubsetProblem:
        """The problem that these options define; remarks on the table are said. A stream is read, with a journal.

        If it may `sum_up` rows, only moments are kept of a tall table, unless options need its rows.
        """
        import numpy as np

        from pairflip.problem import SubsetProblem
        from pairflip.selection.facts import row_facts
        from pairflip.tables.columns import separate_names
        from pairflip.tables.errors import perhaps
        from pairflip.tables.raw import Change
        from pairflip.text import plural, quoted

        table = self.table
        wanted = separate_names(model.always or [], [*table.names, *table.categories])
        always = [column for name in wanted for column in table.categories.get(name, (name,))]
        for name in always:
            if name not in table.names:
                hint = perhaps(name, table.names, "check the name.")
                if name == table.index:
                    hint = "it was taken as the names of the rows; add --keep '/./'."
                raise ValueError(
                    f"--always {quoted(name)} is not a column to choose from; expected one of them: {hint}"
                )
        y: Any = table.y
        if table.classes is not None:
            labels = np.array(table.classes, dtype=object)
            with suppress(ValueError):  # labels that are numbers are sorted as numbers
                labels = labels.astype(float)
            y = labels[table.y.astype(int)]
        if self.beside_y:
            y = np.column_stack([table.y, *self.beside_y])
        preprocess, after = preprocessing(self.options, table, wanted), table
        if preprocess is not None:
            from pairflip.preparation import Preparation

            after = replace(table, names=Preparation.fit(preprocess, table.X, table.names).names)
            products = self.options.interactions or self.options.powers > 1
            if products and limits is not None and limits.hierarchy is None:
                limits = replace(limits, hierarchy=True)
        arguments = {} if limits is None else limit_arguments(limits, after, wanted)
        groups = {name: columns for name, columns in table.groups.items() if name not in wanted}
        if groups:  # the columns that stand for the categories of one column
            arguments["groups"] = groups | arguments.get("groups", {})
        arguments |= {"center": None if model.center == "none" else model.center, "always": always, "ridge": ridge}
        if self.stream is not None:
            problem = SubsetProblem.from_blocks(
                self.stream.batches(), names=self.stream.names, target_names=self.stream.targets, in_memory=0,
                missing="refuse" if self.options.missing is None else "drop-rows", n_jobs=n_jobs,
                journal=None if journal is None else journal / "rows", about=self.stream.identity,
                progress=False if quiet else None, **arguments,
            )  # fmt: skip
        elif sum_up and self.loss == "squares" and preprocess is None and self.groups is None and self._is_tall:
            block, targets = (table.X, y, self.arguments.get("sample_weight")), self.arguments.get("target_names")
            problem = SubsetProblem.from_blocks(
                [block], names=table.names, target_names=targets, in_memory=0, n_jobs=n_jobs, **arguments
            )
            assert problem.condensed is not None
            problem.condensed = replace(problem.condensed, facts=row_facts(*block, several=targets is not None))
            says = (
                f"{plural(len(table.y), 'row')} are summed up in random blocks, since the table has far more rows than "
                "columns (--no-stream keeps single rows, and takes several times as long)"
            )
            table.notes.append(Change("row", "summed up in random blocks", (), says))
        else:
            problem = SubsetProblem(
                table.X, y, names=table.names, loss=self.loss, preprocess=preprocess, **self.arguments, **arguments
            )
        if not quiet:
            for item in (*table.dropped, *table.notes):
                say(f"{item}.")
        return problem

    @property
    def _is_tall(self) -> bool:
        """Whether nobody asked for all rows, and moments of random blocks are far fewer numbers than the table."""
        rows, columns = self.table.X.shape
        return self.options.stream is None and rows >= max(TALL, TALL_PER_COLUMN * columns)


def load(options: TableOptions, response: LossOptions | None = None) -> Loaded:
    """Read the table, for the loss that was asked for (by default squared error)."""
    from pairflip.tables import TableError
    from pairflip.tables.files import named_files
    from pairflip.tables.parts import is_large
    from pairflip.text import quoted

    if options.data is None:
        raise ValueError("no table was named; expected its file, such as: pairflip select data.csv --target y.")
    if options.impute is not None and options.missing is not None:
        raise ValueError(f"--impute and --missing {options.missing} are both given; expected one of them.")
    response = response or LossOptions("squares")
    files = named_files(options.data)
    if options.stream or (options.stream is None and is_large(files)):
        return _load_stream(options, response, files)
    if response.loss == "cox" or response.time is not None or response.event is not None:
        options, response = _survival(options, response)
    targets = _several(options, response) if options.target is not None and "," in options.target else []
    if targets:
        options = replace(options, target=targets[0], keep=[*options.keep, *targets[1:]] if options.keep else None)
    try:
        labels = None if options.groups is None else _group_labels(options, response, targets[1:])
        table = _read(options, response, targets[1:])
    except TableError as error:
        raise TableError(str(error) if response.time is None else str(error).replace("--target", "--time")) from None
    loss: LossName = response.loss or "squares" if table.classes is None else _loss_of_classes(table, response)
    if labels is not None and "" in labels:
        row = quoted(table.row_names[labels.index("")])
        raise ValueError(f"--groups {options.groups!r} has no value in row {row}; expected a group for every row.")
    if response.offset is not None and loss != "poisson":
        raise ValueError(f"--offset is given with --loss {loss}; expected it with --loss poisson only.")
    arguments: dict[str, Any] = {}
    beside: list[Floats] = []
    for option, argument, name in (
        ("--weights", "sample_weight", options.weights),
        ("--offset", "offset", response.offset),
        ("--event", "", response.event),
        *(("--target", "", name) for name in targets[1:]),
    ):
        if name is not None:
            table, values = _take_out(table, name, option)
            if argument:
                arguments[argument] = values
            else:
                beside.append(values)
    if beside:
        table = replace(table, notes=[note for note in table.notes if note.what != "target"], event=response.event)
    if response.event is not None:
        _check_survival(table.y, beside[0], response)
    if targets:
        table = replace(table, target=",".join(targets))
        arguments["target_names"] = targets
    loaded = Loaded(table, loss, options, labels, arguments, beside)
    return loaded if not options.leave_out else _without_rows(loaded, options.leave_out)


def _without_rows(loaded: Loaded, wanted: Sequence[str]) -> Loaded:
    """The table without some rows, by their names or numbers from 1."""
    import numpy as np

    from pairflip.tables.columns import separate_names
    from pairflip.tables.raw import change
    from pairflip.text import listed, quoted

    table, out = loaded.table, np.zeros(len(loaded.table.row_names), dtype=bool)
    for name in separate_names(wanted, table.row_names):
        rows = np.array([each == name for each in table.row_names])
        if not rows.any() and name.isdecimal() and 1 <= int(name) <= out.size:
            rows[int(name) - 1] = True
        if not rows.any():
            raise ValueError(
                f"--leave-out {quoted(name)} is no row of the table; expected names or numbers of rows, such as "
                f"{listed(table.row_names[:2])}."
            )
        out |= rows
    kept = np.flatnonzero(~out)
    names = [table.row_names[row] for row in kept]
    gone = change("row", "left out as asked", [table.row_names[row] for row in np.flatnonzero(out)])
    repeated = {name: codes[kept] for name, codes in table.repeated.items()}
    other = replace(
        table, X=table.X[kept], y=table.y[kept], row_names=names, repeated=repeated, dropped=[*table.dropped, *gone]
    )
    labels = None if loaded.groups is None else [loaded.groups[row] for row in kept]
    arguments = {name: each[kept] if isinstance(each, np.ndarray) else each for name, each in loaded.arguments.items()}
    beside = [each[kept] for each in loaded.beside_y]
    return replace(loaded, table=other, groups=labels, arguments=arguments, beside_y=beside)


def _load_stream(options: TableOptions, response: LossOptions, files: list[Path]) -> Loaded:
    """A table whose rows are to be read in batches."""
    from pairflip.tables.parts import open_stream

    refused = {
        "--loss": response.loss not in (None, "squares"), "--time and --event": response.time or response.event,
        "--offset": response.offset, "--groups": options.groups, "--index": options.index, "--sheet": options.sheet,
        "--thousands": options.thousands, "--decimal": options.decimal, "--impute": options.impute,
        "--leave-out": options.leave_out,
        "--preprocess": options.preprocess, "--powers": options.powers > 1, "--interactions": options.interactions,
        "--missing drop-columns": options.missing == "drop-columns",
    }  # fmt: skip
    if given := [option for option, value in refused.items() if value]:
        raise ValueError(
            f"{', '.join(given)} cannot be used for a table that is read in batches; expected squared error of its "
            "columns as they are, or --no-stream for a table that fits into memory."
        )
    targets = [name.strip() for name in (options.target or "").split(",") if name.strip()]
    stream = open_stream(
        files, targets[0] if targets else None, more_targets=targets[1:], weights=options.weights,
        drop=list(options.drop or ()), keep=list(options.keep or ()), drop_text=options.drop_text,
        categories=list(options.categories or ()), reference=list(options.reference or ()),
    )  # fmt: skip
    return Loaded(stream.table, "squares", options, stream=stream)


def preprocessing(options: TableOptions, table: Table, always: Sequence[str]) -> Pipeline | None:
    """What is done with the columns first: missing values are filled, then come the steps, then powers and products.

    Steps and products leave out columns that are always in the model, those that stand for categories, and indicators
    of missing values.
    """
    if options.impute is None and options.preprocess is None and options.powers == 1 and not options.interactions:
        return None
    from sklearn.pipeline import make_pipeline

    from pairflip.preprocessing import Impute, OnColumns, Products, parse_steps

    steps: list[Any] = [] if options.preprocess is None else [parse_steps(options.preprocess)]
    if options.powers > 1 or options.interactions:
        steps.append(Products(options.powers, options.interactions))
    aside = {*always, *(column for columns in table.categories.values() for column in columns)}
    plain = [j for j, name in enumerate(table.names) if name not in aside]
    if steps and not plain:
        raise ValueError("--preprocess, --powers and --interactions are for columns of numbers; expected at least one.")
    if steps and (options.impute is not None or len(plain) < len(table.names)):
        steps = [OnColumns(make_pipeline(*steps), plain)]
    return make_pipeline(*([] if options.impute is None else [Impute(options.impute)]), *steps)


def _survival(options: TableOptions, response: LossOptions) -> tuple[TableOptions, LossOptions]:
    """The options with the time as the target."""
    given = [name for name, value in (("--time", response.time), ("--event", response.event)) if value is not None]
    if response.loss not in (None, "cox"):
        raise ValueError(f"{given[0]} is given with --loss {response.loss}; expected it with --loss cox only.")
    if len(given) < 2:
        raise ValueError(
            "--loss cox needs the columns of the times and of the events; expected --time NAME --event NAME."
        )
    if options.target not in (None, response.time) or response.time == response.event:
        named = (
            f"--target {options.target!r}" if options.target not in (None, response.time) else "the same column twice"
        )
        raise ValueError(f"--loss cox is given with {named}; expected --time NAME and --event NAME, two columns.")
    return replace(options, target=response.time), replace(response, loss="cox")


def _check_survival(time: Floats, event: Floats, response: LossOptions) -> None:
    """Refuse times and events that cannot be meant."""
    if (time < 0).any():
        raise ValueError(f"--time {response.time!r} holds {time.min():g}; expected times of 0 or more.")
    odd = event[(event != 0) & (event != 1)]
    if odd.size:
        raise ValueError(
            f"--event {response.event!r} holds {odd[0]:g}; expected 1 (it happened) or 0 (it had not by then)."
        )
    if not event.any():
        raise ValueError(f"--event {response.event!r} is 0 in every row; expected 1 where the event happened.")


def _loss_of_classes(table: Table, response: LossOptions) -> LossName:
    """The loss that was asked for, or that of so many classes."""
    from pairflip.text import listed, quoted

    classes = table.classes or []
    loss = response.loss or ("logistic" if len(classes) == 2 else "multinomial")
    if (len(classes) == 2) != (loss == "logistic"):
        two = "two classes: --loss multinomial takes more"
        expected = two if len(classes) > 2 else "more: --loss logistic takes two"
        raise ValueError(
            f"The target {quoted(table.target)} has {len(classes)} different values ({listed(classes)}) with --loss "
            f"{loss}; expected {expected}."
        )
    return loss


def _several(options: TableOptions, response: LossOptions) -> list[str]:
    """The names in ``--target a,b,c``; none where that is the name of one column."""
    from pairflip.tables import TableError

    with suppress(TableError):
        _read(options, response)
        return []
    names = [name.strip() for name in str(options.target).split(",")]
    if "" in names or len(set(names)) < len(names):
        raise ValueError(f"--target is {options.target!r}; expected different names of columns, such as a,b,c.")
    if response.loss not in (None, "squares"):
        raise ValueError(f"--target names {len(names)} columns with --loss {response.loss}; expected one column.")
    return names


def _read(options: TableOptions, response: LossOptions, targets: Sequence[str] = (), **changes: Any) -> Table:
    """The table as the options ask for it; the column of groups is not among the candidates, other targets are."""
    from pairflip.tables import read_table

    assert options.data is not None
    beside = [name for name in (options.weights, response.offset, response.event) if name is not None]
    drop, keep = list(options.drop or ()), list(options.keep or ())
    if options.groups is not None and options.groups not in drop and "index" not in changes:
        drop.append(options.groups)
    settings: dict[str, Any] = {
        "drop": drop, "keep": keep + beside if keep else [], "index": options.index, "drop_text": options.drop_text,
        "missing": options.missing if options.impute is None else "keep", "sheet": options.sheet,
        "decimal": options.decimal, "thousands": options.thousands,
        "classes": None if response.loss is None else response.loss in ("logistic", "multinomial"),
        "categories": list(options.categories or ()), "reference": list(options.reference or ()),
        "used": [*beside, *targets] + [name.strip() for name in (options.target or "").split(",") if name.strip()],
    }  # fmt: skip
    table = read_table(options.data, options.target, **(settings | changes))
    if options.groups is None or options.groups in (options.drop or ()):
        return table
    return replace(table, dropped=_without(table.dropped, options.groups))


def _group_labels(options: TableOptions, response: LossOptions, targets: Sequence[str]) -> list[str]:
    """The group of each row: read as row names, so that they may be text and the same rows are left out."""
    from pairflip.tables import TableError

    assert options.groups is not None
    if options.groups == options.target:
        raise ValueError(f"--groups and --target are both {options.groups!r}; expected two columns.")
    others = [] if options.index in (None, options.groups) else [str(options.index)]
    try:
        return _read(options, response, targets, index=options.groups, drop=[*(options.drop or ()), *others]).row_names
    except TableError as error:
        raise TableError(str(error).replace("--index", "--groups")) from None


def _take_out(table: Table, name: str, option: str) -> tuple[Table, Floats]:
    """The table without a column that is not a candidate, and its values."""
    import numpy as np

    from pairflip.sparse import dense
    from pairflip.tables.errors import perhaps
    from pairflip.text import quoted

    if name not in table.names:
        hint = perhaps(name, table.names, "check the name and the column.")
        raise ValueError(f"{option} {quoted(name)} is not a column of numbers of the table; expected one: {hint}")
    at, others = table.names.index(name), np.array([other != name for other in table.names])
    values = dense(table.X[:, [at]]).ravel()
    names = [other for other in table.names if other != name]
    return replace(table, X=table.X[:, others], names=names, notes=_without(table.notes, name)), values


def _without(changes: Sequence[Change], name: str) -> list[Change]:
    """The remarks, but for this column."""
    others = [replace(item, names=tuple(each for each in item.names if each != name)) for item in changes]
    return [item for item in others if item.names]


def limit_arguments(limits: LimitOptions, table: Table, always: Sequence[str]) -> dict[str, Any]:
    """What SubsetProblem is told about columns that belong together and about signs: only what was asked for."""
    signs = _signs(limits, table.names, always) if limits.positive or limits.negative else {}
    asked = {
        "groups": None if limits.column_groups is None else _read_groups(limits.column_groups, table),
        "one_per_group": limits.one_per_group or None,
        "min_distance": limits.min_distance,
        "hierarchy": limits.hierarchy or None,
        "positive": signs or None,
    }
    return {name: value for name, value in asked.items() if value is not None}


def _signs(limits: LimitOptions, names: Sequence[str], always: Sequence[str]) -> dict[str, int]:
    """A sign for each column that has one; columns that are always in the model are not limited."""
    from pairflip.tables.columns import matching

    signs: dict[str, int] = {}
    for option, given, sign in (("--positive", limits.positive, 1), ("--negative", limits.negative, -1)):
        wanted = given or []
        named = [name for name in wanted if name != EVERY_COLUMN or name in names]
        columns = matching(named, names, option)
        if len(named) < len(wanted):
            columns = set(range(len(names)))
        for name in (names[j] for j in sorted(columns)):
            if signs.get(name, sign) != sign:
                raise ValueError(f"{name!r} is in --positive and in --negative; expected it in one of them.")
            if name not in always:
                signs[name] = sign
    return signs


def _read_groups(path: Path, table: Table) -> dict[str, list[str]]:
    """Columns of the table by group, from a file with the columns "column" and "group".

    Columns of the file that were left out of the table are passed over; one that the table never had is an error, which
    `SubsetProblem` says.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ","))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = getattr(error, "strerror", None) or "it is not a text table in UTF-8"
        raise ValueError(
            f"--column-groups {str(path)!r} cannot be read ({why}); expected a .csv file with the columns column and "
            "group."
        ) from None
    if not rows or not {"column", "group"} <= set(rows[0]):
        raise ValueError(
            f"--column-groups {str(path)!r} does not have the columns column and group; expected them in its first "
            "line, and a column of the table and its group in each line below."
        )
    left_out = {name for item in table.dropped for name in item.names}
    groups: dict[str, list[str]] = {}
    for row in rows:
        name, group = (row["column"] or "").strip(), (row["group"] or "").strip()
        if group and name and (name in table.names or name not in left_out):
            groups.setdefault(group, []).append(name)
    return groups
