"""`pairflip predict`: what a saved result says about new rows, and how far off that may be."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pairflip.cli import options as o
from pairflip.cli.errors import say
from pairflip.cli.printing import print_json
from pairflip.cli.results import (
    TABLE_FILES,
    check_file,
    is_result,
    lines_text,
    refuse_input,
    result_file,
    saved_table,
    write_lines,
)

if TYPE_CHECKING:
    from pairflip.least_squares import Floats
    from pairflip.preparation import Preparation
    from pairflip.report.predicted_words import PredictedRows
    from pairflip.selection import SizeCurve
    from pairflip.tables.new_rows import NewRows

COVERAGE = 0.9
"""Of the intervals that are given unless something else is asked for."""


def predict(
    *,
    result: Annotated[Path | None, typer.Argument(metavar="RESULT", help=
        "A result folder, its result.json, or a file of SizeCurve.save.")] = None,
    data: Annotated[
        Path | None, typer.Argument(metavar="DATA", help="Table of new rows, of any kind select reads.")] = None,
    size: Annotated[int | None, typer.Option(metavar="K", min=0, show_default="the recommended one", help=
        "Number of columns.")] = None,
    predict_with: Annotated[
        Literal["subset", "average"] | None, typer.Option("--predict-with", show_default="as in the result", help=
        "The recommended columns, or the weighted average of models, which needs more columns.")
    ] = None,
    interval: Annotated[float | None, typer.Option(metavar="FRACTION", show_default=str(COVERAGE), help=
        "Fraction of new rows that the intervals are to cover.")] = None,
    no_interval: Annotated[
        bool, typer.Option("--no-interval", help="Predictions only; needs fewer columns.")] = False,
    index: Annotated[str | None, typer.Option("--index", metavar="NAME", show_default="as in the result", help=
        "Column of row names.")] = None,
    sheet: o.Sheet = None,
    decimal: o.Decimal = None,
    thousands: o.Thousands = None,
    out: Annotated[Path | None, o.out_file(f"Write to this {TABLE_FILES} instead of stdout.")] = None,
    force: o.ForceFile = False,
    results: Annotated[o.ResultOptions, o.Without("force")],
) -> None:  # fmt: skip
    """Predict new rows with a saved result, with intervals.

    Example: pairflip predict data-pairflip new.csv
    """
    if result is None or data is None:
        lacks = "no result" if result is None else "no table of new rows"
        raise ValueError(f"{lacks} was named; expected both, such as: pairflip predict data-pairflip new.csv.")
    if no_interval and interval is not None:
        raise ValueError("--interval and --no-interval are both given; expected one or the other.")
    if is_result(data):
        second = "a table of new rows" if is_result(result) else f"the result first: pairflip predict {data} {result}"
        raise ValueError(f"{str(data)!r} is a result and was given as the table; expected {second}.")
    file = result_file(result)
    if out is not None:
        refuse_input(out, file, "the saved result")
        if result.is_dir() and out.resolve().is_relative_to(result.resolve()):
            raise ValueError(
                f"--out {str(out)!r} is in the result folder {str(result)!r}; expected a file elsewhere, such as "
                f"--out {out.name}."
            )
        check_file(out, force, data)
    from pairflip.inputs import ColumnsAbsent
    from pairflip.report.predicted_words import remarks_of
    from pairflip.selection.curve_file import load_record
    from pairflip.selection.prediction import INSTEAD

    curve, record = load_record(file)
    if curve.targets is not None:
        raise ValueError(
            f"the result has {len(curve.targets.names)} targets, and this command predicts one; expected a result "
            "with one target, or in Python: SizeCurve.load(file).predict(rows)."
        )
    table, run = saved_table(record, curve.n_rows), record.get("run")
    usual = run.get("index") if isinstance(run, dict) else None
    how: dict[str, Any] = {name: table.get(name) for name in ("target", "event", "categories", "references", "filled")}
    how |= {"index": index, "usual_index": usual if isinstance(usual, str) else table.get("index")}
    how |= {"sheet": sheet, "decimal": decimal, "thousands": thousands}
    try:
        predicted = _predicted(curve, data, size, predict_with, interval, not no_interval, how)
    except ColumnsAbsent:
        if size is not None or predict_with is not None or curve.answer.predictor == "subset":
            raise
        predicted = _predicted(curve, data, size, "subset", interval, not no_interval, how)
        if not results.quiet:
            say(f"{data.name} lacks columns of the average: {INSTEAD}.")
    if not results.quiet:
        for remark in remarks_of(predicted):
            say(remark)
    _show(predicted, out, results.as_json)


def _predicted(
    curve: SizeCurve,
    data: Path,
    size: int | None,
    predict_with: str | None,
    interval: float | None,
    wanted: bool,
    how: dict[str, Any],
) -> PredictedRows:
    """Read the new rows and predict them; `interval` None and `wanted`: intervals as far as they can be given."""
    import numpy as np

    from pairflip.report.predicted_words import PredictedRows, folds_need
    from pairflip.selection.prediction import (
        AVERAGE,
        chance_of,
        compare,
        outside,
        predict_known,
        predicting_size,
        training_rows,
        used_columns,
        why_no_interval,
    )
    from pairflip.tables.new_rows import read_new_rows

    chosen = predicting_size(curve, size, predict_with)
    needed = used_columns(curve, chosen, folds=False)
    coverage = COVERAGE if wanted and interval is None else interval
    why_not = None if coverage is None else why_no_interval(curve, chosen, coverage)
    if why_not is not None and interval is not None:
        raise ValueError(f"{'--' if why_not.startswith(('interval', 'size')) else ''}{why_not}")
    everything = used_columns(curve, chosen, folds=True)
    wished = np.setdiff1d(everything, needed) if coverage is not None and why_not is None else needed[:0]
    names = [[curve.names[j] for j in columns] for columns in (needed, wished)]
    if curve.preparation is not None:  # which may take any column from all of the table
        names = [curve.raw_names, []]
    labels = None if curve.classes is None else curve.classes.labels
    rows = read_new_rows(data, *names, known=curve.raw_names, classes=labels, **how)
    if curve.preparation is None:
        X = np.full((len(rows.row_names), everything.size), np.nan)
        X[:, np.searchsorted(everything, np.concatenate([needed, wished]))] = rows.X
    else:
        rows, X = _prepared(curve.preparation, rows, how["categories"])
        X = X[:, everything]
    if rows.absent and why_not is None:
        why_not = folds_need(rows.absent)
        if interval is not None:
            raise ValueError(f"--interval is {interval:g}, but {why_not}.")
    coverage = coverage if why_not is None else None
    point, lower, upper = predict_known(curve, X, chosen, coverage)
    bounds = None if coverage is None else (lower, upper)
    chance = None if coverage is None else partial(chance_of, curve, chosen, coverage)
    compared = None if rows.y is None else compare(rows.y, point, bounds, classes=labels is not None, chance=chance)
    average, of_model = chosen == AVERAGE, X[:, np.isin(everything, needed)]
    columns = np.setdiff1d(needed, curve.always) if average else curve.supports[curve.at(chosen)]
    return PredictedRows(
        rows=rows, size=columns.size if average else chosen,
        columns=[curve.names[j] for j in columns], always=[curve.names[j] for j in curve.always], target=how["target"],
        coverage=coverage, prediction=point, lower=lower, upper=upper, comparison=compared,
        why_not=why_not if curve.loss.squared else None, given=size is not None, classes=labels,
        risks=curve.survival is not None, outside=outside(curve, of_model, chosen), averaged=average,
        known=0 if rows.y is None else training_rows(curve, rows.y, of_model, chosen),
    )  # fmt: skip


def _prepared(preparation: Preparation, rows: NewRows, categories: Any) -> tuple[NewRows, Floats]:
    """New rows with all columns (M, N) after preprocessing; NaN in rows with gaps that it does not fill."""
    import numpy as np

    from pairflip.preprocessing import imputers
    from pairflip.tables.raw import Change
    from pairflip.text import plural

    X = np.full((len(rows.X), len(preparation.names)), np.nan)
    raw, complete = rows.X.copy(), np.isfinite(rows.X).all(axis=1)
    if imputers(preparation.transformer):
        filled = int(np.isnan(raw).sum())
        if filled:
            verb = "was" if filled == 1 else "were"
            says = f"{plural(filled, 'missing value')} of the new rows {verb} filled in as those of the table were"
            rows = replace(rows, notes=[*rows.notes, Change("value", "missing, filled in", (), says)])
        levels = {name for columns in (categories or {}).values() for name in columns}
        made = [name in levels for name in preparation.raw_names]
        raw[:, made] = np.nan_to_num(raw[:, made])
        complete = np.ones(len(raw), dtype=bool)
    if complete.any() or preparation.transformer is None:  # which refuses in words
        X[complete] = preparation.transform(raw[complete])
    return rows, X


def _show(predicted: PredictedRows, out: Path | None, as_json: bool) -> None:
    """Write the file, or print the table; JSON has everything."""
    from pairflip.report.predicted_words import predicted_record
    from pairflip.selection.criteria import class_of
    from pairflip.text import visible

    several = predicted.prediction.ndim == 2 and predicted.classes is not None
    header = ["row", *(predicted.classes or ())] if several else ["row", "prediction"]
    columns: list[list[Any]] = list(predicted.prediction.reshape(len(predicted.prediction), -1).T.tolist())
    if predicted.classes is not None:
        header.append("class")
        most = class_of(predicted.prediction.ravel(), len(columns)).tolist()
        columns.append(["" if p != p else predicted.classes[at] for p, at in zip(columns[0], most, strict=True)])
    if predicted.coverage is not None:
        header += ["lower", "upper"]
        columns += [predicted.lower.tolist(), predicted.upper.tolist()]
    if predicted.outside is not None:
        header.append("outside_training_range")
        columns.append([None if p != p else far for p, far in zip(columns[0], predicted.outside.tolist(), strict=True)])
    lines = list(zip(predicted.rows.row_names, *columns, strict=True))
    if out is not None:
        write_lines(out, header, lines, "the predictions")
    if as_json:
        print_json(predicted_record(predicted, header, lines))
    elif out is None:
        text = lines_text(header, lines)
        # A terminal would obey control characters in names; a file or a program gets them as they are.
        shown = "\n".join(map(visible, text.split("\n"))) if sys.stdout.isatty() else text
        typer.echo(shown, nl=False)
    else:
        typer.echo(f"Predictions: {visible(str(out))}")
