"""From the options about the table to a problem: candidates, target, weights, groups."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pairflip.cli.errors import say
from pairflip.cli.limits import LimitOptions
from pairflip.cli.options import LossName
from pairflip.cli.subjects import LossOptions, ModelOptions, TableOptions

if TYPE_CHECKING:
    from pairflip.least_squares import Floats
    from pairflip.problem import SubsetProblem
    from pairflip.tables import Change, Table


@dataclass(frozen=True, eq=False)
class Loaded:
    """A table, together with its weights and groups."""

    table: Table
    weights: Floats | None = field(default=None)
    offset: Floats | None = field(default=None)
    loss: LossName = field(default=LossName.SQUARES)
    groups: list[str] | None = field(default=None)
    more_targets: Floats | None = field(default=None)

    def problem(
        self,
        model: ModelOptions,
        limits: LimitOptions | None = None,
        *,
        ridge: float | None = None,
        quiet: bool = False,
    ) -> SubsetProblem:
        """The problem that these options define.

        Parameters
        ----------
        model, limits
            What was asked about models.
        ridge : float, optional
            Penalty on the squares of the coefficients.
        quiet : bool
            Otherwise, what was left out of the table is said.
        """
        import numpy as np

        from pairflip.problem import SubsetProblem
        from pairflip.tables.columns import separate_names
        from pairflip.tables.errors import perhaps
        from pairflip.text import quoted

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
        y: Any = table.y if table.classes is None else _labels(table.classes)[table.y.astype(int)]
        if self.more_targets is not None:
            y = np.column_stack([table.y, self.more_targets])
        problem = SubsetProblem(
            table.X,
            y,
            names=table.names,
            center=model.center.value_for_api,
            always=always,
            sample_weight=self.weights,
            ridge=ridge,
            loss=self.loss.value,
            offset=self.offset,
            target_names=None if self.more_targets is None else split_names(table.target),
            **_limits(table, limits or LimitOptions(), wanted),
        )
        if not quiet:
            for item in (*table.dropped, *table.notes):
                say(f"{item}.")
        return problem


def _limits(table: Table, limits: LimitOptions, always: Sequence[str]) -> dict[str, Any]:
    """Groups, bands and signs that were asked for, and the groups that columns of categories are."""
    asked = limits.arguments(table, always)
    own = {name: columns for name, columns in table.groups.items() if name not in always}
    return asked | {"groups": own | asked.get("groups", {})} if own else asked


def load(options: TableOptions, fitted: LossOptions | None = None) -> Loaded:
    """Read the table, for the loss that was asked for (by default squared error)."""
    import numpy as np

    from pairflip.tables.categories import one_by_one
    from pairflip.text import quoted

    if options.data is None:
        raise ValueError("no table was named; expected its file, such as: pairflip select data.csv --target y.")
    fitted = fitted or LossOptions()
    targets = _several(options, fitted)
    if targets:
        options = replace(options, target=targets[0], keep=[*options.keep, *targets[1:]] if options.keep else None)
    labels = None if options.groups is None else _group_labels(options, fitted)
    table = _read(options, fitted)
    if table.categories and fitted.loss is not LossName.SQUARES:
        table = one_by_one(table)
    if labels is not None and "" in labels:
        row = quoted(table.row_names[labels.index("")])
        raise ValueError(f"--groups {options.groups!r} has no value in row {row}; expected a group for every row.")
    weights, offset = None, None
    if options.weights is not None:
        table, weights = _take_out(table, options.weights, "--weights")
    if fitted.offset is not None:
        if fitted.loss is not LossName.POISSON:
            raise ValueError(
                f"--offset is given with --loss {fitted.loss.value}; expected it with --loss poisson only."
            )
        table, offset = _take_out(table, fitted.offset, "--offset")
    if not targets:
        return Loaded(table, weights, offset, fitted.loss, labels)
    columns = []
    for name in targets[1:]:
        table, values = _take_out(table, name, "--target")
        columns.append(values)
    table = replace(table, target=",".join(targets), notes=[note for note in table.notes if note.what != "target"])
    return Loaded(table, weights, offset, fitted.loss, labels, np.column_stack(columns))


def split_names(text: str) -> list[str]:
    """``a,b,c`` as three names."""
    return [name.strip() for name in text.split(",")]


def _several(options: TableOptions, fitted: LossOptions) -> list[str]:
    """The names in ``--target a,b,c``; none where that is the name of one column."""
    from pairflip.tables import TableError

    if options.target is None or "," not in options.target:
        return []
    with suppress(TableError):
        _read(options, fitted)
        return []
    names = split_names(options.target)
    if "" in names or len(set(names)) < len(names):
        raise ValueError(f"--target is {options.target!r}; expected different names of columns, such as a,b,c.")
    if fitted.loss is not LossName.SQUARES:
        raise ValueError(f"--target names {len(names)} columns with --loss {fitted.loss.value}; expected one column.")
    return names


def _labels(classes: list[str]) -> Any:
    """Labels as numbers where both are, so that they are sorted as numbers."""
    import numpy as np

    try:
        return np.array([float(label) for label in classes])
    except ValueError:
        return np.array(classes, dtype=object)


def _read(options: TableOptions, fitted: LossOptions, **changes: Any) -> Table:
    from pairflip.tables import read_table

    assert options.data is not None
    drop, keep = list(options.drop or ()), list(options.keep or ())
    if options.groups is not None and options.groups not in drop and "index" not in changes:
        drop.append(options.groups)
    if keep:
        keep += [name for name in (options.weights, fitted.offset) if name is not None]
    settings: dict[str, Any] = {
        "drop": drop,
        "keep": keep,
        "index": options.index,
        "drop_text": options.drop_text,
        "missing": None if options.missing is None else options.missing.value_for_api,
        "sheet": options.sheet,
        "decimal": options.decimal,
        "thousands": options.thousands,
        "classes": fitted.loss is LossName.LOGISTIC,
        "categories": list(options.categories or ()),
        "used": [name for name in (options.weights, fitted.offset, *split_names(options.target or "")) if name],
        **changes,
    }
    table = read_table(options.data, options.target, **settings)
    if options.groups is None or options.groups in (options.drop or ()):
        return table
    return replace(table, dropped=_without(table.dropped, options.groups))


def _group_labels(options: TableOptions, fitted: LossOptions) -> list[str]:
    """The group of each row: read as row names, so that they may be text and the same rows are left out."""
    from pairflip.tables import TableError

    assert options.groups is not None
    if options.groups == options.target:
        raise ValueError(f"--groups and --target are both {options.groups!r}; expected two columns.")
    others = [] if options.index in (None, options.groups) else [str(options.index)]
    try:
        labels = _read(options, fitted, index=options.groups, drop=[*(options.drop or ()), *others]).row_names
    except TableError as error:
        raise TableError(str(error).replace("--index", "--groups")) from None
    return labels


def _take_out(table: Table, name: str, option: str) -> tuple[Table, Floats]:
    """The column of weights or of the offset, and the table without it."""
    import numpy as np

    from pairflip.tables.errors import perhaps
    from pairflip.text import quoted

    if name not in table.names:
        hint = perhaps(name, table.names, "check the name and the column.")
        raise ValueError(f"{option} {quoted(name)} is not a column of numbers of the table; expected one: {hint}")
    at = table.names.index(name)
    weights = table.X[:, at].copy()
    names = [other for j, other in enumerate(table.names) if j != at]
    return replace(table, X=np.delete(table.X, at, axis=1), names=names, notes=_without(table.notes, name)), weights


def _without(changes: Sequence[Change], name: str) -> list[Change]:
    left = [replace(item, names=tuple(n for n in item.names if n != name)) for item in changes]
    return [item for item in left if item.names]
