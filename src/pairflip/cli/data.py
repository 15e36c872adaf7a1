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
    event: Floats | None = field(default=None)

    def problem(
        self,
        model: ModelOptions,
        limits: LimitOptions | None = None,
        *,
        ridge: float | None = None,
        quiet: bool = False,
    ) -> SubsetProblem:
        """The problem that these options define."""
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
        if self.event is not None:
            y = np.column_stack([table.y, self.event])
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

    from pairflip.tables import TableError
    from pairflip.text import quoted

    if options.data is None:
        raise ValueError("no table was named; expected its file, such as: pairflip select data.csv --target y.")
    fitted = fitted or LossOptions(LossName.SQUARES)
    options, fitted = _survival(options, fitted)
    targets = _several(options, fitted)
    if targets:
        options = replace(options, target=targets[0], keep=[*options.keep, *targets[1:]] if options.keep else None)
    try:
        labels = None if options.groups is None else _group_labels(options, fitted)
        table = _read(options, fitted)
    except TableError as error:
        raise TableError(str(error) if fitted.time is None else str(error).replace("--target", "--time")) from None
    loss = _loss(table, fitted)
    if labels is not None and "" in labels:
        row = quoted(table.row_names[labels.index("")])
        raise ValueError(f"--groups {options.groups!r} has no value in row {row}; expected a group for every row.")
    weights, offset, event = None, None, None
    if options.weights is not None:
        table, weights = _take_out(table, options.weights, "--weights")
    if fitted.offset is not None:
        if loss is not LossName.POISSON:
            raise ValueError(f"--offset is given with --loss {loss.value}; expected it with --loss poisson only.")
        table, offset = _take_out(table, fitted.offset, "--offset")
    if fitted.event is not None:
        table, event = _take_out(table, fitted.event, "--event")
        table = replace(table, notes=[note for note in table.notes if note.what != "target"], event=fitted.event)
        _check_survival(table.y, event, fitted)
    if not targets:
        return Loaded(table, weights, offset, loss, labels, event=event)
    columns = []
    for name in targets[1:]:
        table, values = _take_out(table, name, "--target")
        columns.append(values)
    table = replace(table, target=",".join(targets), notes=[note for note in table.notes if note.what != "target"])
    return Loaded(table, weights, offset, loss, labels, np.column_stack(columns))


def _survival(options: TableOptions, fitted: LossOptions) -> tuple[TableOptions, LossOptions]:
    """The options with the time as the target, where survival times are meant."""
    given = [name for name, value in (("--time", fitted.time), ("--event", fitted.event)) if value is not None]
    if fitted.loss not in (None, LossName.COX) and given:
        raise ValueError(f"{given[0]} is given with --loss {fitted.loss.value}; expected it with --loss cox only.")
    if fitted.loss is not LossName.COX and not given:
        return options, fitted
    if len(given) < 2:
        raise ValueError(
            "--loss cox needs the columns of the times and of the events; expected --time NAME --event NAME."
        )
    if options.target not in (None, fitted.time) or fitted.time == fitted.event:
        named = f"--target {options.target!r}" if options.target not in (None, fitted.time) else "the same column twice"
        raise ValueError(f"--loss cox is given with {named}; expected --time NAME and --event NAME, two columns.")
    return replace(options, target=fitted.time), replace(fitted, loss=LossName.COX)


def _check_survival(time: Floats, event: Floats, fitted: LossOptions) -> None:
    """Refuse times and events that cannot be meant."""
    if (time < 0).any():
        raise ValueError(f"--time {fitted.time!r} holds {time.min():g}; expected times of 0 or more.")
    odd = event[(event != 0) & (event != 1)]
    if odd.size:
        raise ValueError(
            f"--event {fitted.event!r} holds {odd[0]:g}; expected 1 (it happened) or 0 (it had not by then)."
        )
    if not event.any():
        raise ValueError(f"--event {fitted.event!r} is 0 in every row; expected 1 where the event happened.")


def _loss(table: Table, fitted: LossOptions) -> LossName:
    """The loss that was asked for, or that of what the target holds."""
    count = 0 if table.classes is None else len(table.classes)
    loss = fitted.loss or {0: LossName.SQUARES, 2: LossName.LOGISTIC}.get(count, LossName.MULTINOMIAL)
    if table.classes is not None and (count == 2) != (loss is LossName.LOGISTIC):
        from pairflip.text import listed, quoted

        expected = "two classes: --loss multinomial takes more" if count > 2 else "more: --loss logistic takes two"
        raise ValueError(
            f"The target {quoted(table.target)} has {count} different values ({listed(table.classes)}) with --loss "
            f"{loss.value}; expected {expected}."
        )
    return loss


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
    if fitted.loss not in (None, LossName.SQUARES):
        raise ValueError(f"--target names {len(names)} columns with --loss {fitted.loss.value}; expected one column.")
    return names


def _labels(classes: list[str]) -> Any:
    """Labels as numbers where all are, so that they are sorted as numbers."""
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
        keep += [name for name in (options.weights, fitted.offset, fitted.event) if name is not None]
    settings: dict[str, Any] = {
        "drop": drop,
        "keep": keep,
        "index": options.index,
        "drop_text": options.drop_text,
        "missing": None if options.missing is None else options.missing.value_for_api,
        "sheet": options.sheet,
        "decimal": options.decimal,
        "thousands": options.thousands,
        "classes": None if fitted.loss is None else fitted.loss in (LossName.LOGISTIC, LossName.MULTINOMIAL),
        "categories": list(options.categories or ()),
        "used": [
            name for name in (options.weights, fitted.offset, fitted.event, *split_names(options.target or "")) if name
        ],
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
