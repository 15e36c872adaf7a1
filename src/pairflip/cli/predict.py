"""`pairflip predict`: what a saved result says about new rows, and how far off that may be."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairflip.cli import options as o
from pairflip.cli.errors import plain_errors, say
from pairflip.cli.result_folder import refuse_input, result_file
from pairflip.cli.table_file import check_out, lines_text, write_lines

if TYPE_CHECKING:
    from pairflip.least_squares import Floats
    from pairflip.selection import SizeCurve
    from pairflip.selection.prediction import PredictionCheck
    from pairflip.tables.new_rows import NewRows

COVERAGE = 0.9
"""Of the intervals that are given unless something else is asked for."""

CHOSEN = (
    "the size was chosen on the same rows, for which coverage is not proved; in simulations that asked for 90 %, "
    "90 to 91 % of new rows were covered with 5x10 folds, and 86 to 90 % with leave-one-out (see "
    "'Predicting new rows' in the documentation)."
)
"""What intervals are conditional on."""

Saved = Annotated[
    Path | None,
    typer.Argument(metavar="RESULT", help="A result folder, its result.json, or a file of SizeCurve.save."),
]
NewData = Annotated[Path | None, typer.Argument(metavar="DATA", help="Table of new rows, of any kind select reads.")]
Interval = Annotated[
    float | None,
    typer.Option(metavar="FRACTION", help="Fraction of new rows that the intervals are to cover.",
                 show_default=str(COVERAGE)),
]  # fmt: skip
NoInterval = Annotated[bool, typer.Option("--no-interval", help="Predictions only; needs fewer columns.")]
Size = Annotated[
    int | None, typer.Option(metavar="K", min=0, help="Number of columns.", show_default="the recommended one")
]
IndexColumn = Annotated[
    str | None, typer.Option("--index", metavar="NAME", help="Column of row names.", show_default="as in the result")
]
Out = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write to this .csv or .tsv file instead of stdout.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing --out file.")]


def predict(
    result: Saved = None,
    data: NewData = None,
    size: Size = None,
    interval: Interval = None,
    no_interval: NoInterval = False,
    index: IndexColumn = None,
    sheet: o.Sheet = None,
    decimal: o.Decimal = None,
    thousands: o.Thousands = None,
    out: Out = None,
    force: Force = False,
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
    config: o.Config = None,
) -> None:
    """Predict new rows with a saved result, with intervals.

    Example: pairflip predict data-pairflip new.csv
    """
    with plain_errors():
        if result is None or data is None:
            what = "no result" if result is None else "no table of new rows"
            raise ValueError(f"{what} was named; expected both, such as: pairflip predict data-pairflip new.csv.")
        if no_interval and interval is not None:
            raise ValueError("--interval and --no-interval are both given; expected one or the other.")
        file = result_file(result)
        if out is not None:
            _check_place(out, data, file, result.is_dir(), force)
        from pairflip.selection.curve_file import load_curve

        curve = load_curve(file)
        if curve.targets is not None:
            raise ValueError(
                f"the result has {len(curve.targets.names)} targets, and this command predicts one; expected a result "
                "with one target, or in Python: SizeCurve.load(file).predict(rows)."
            )
        known = _Known.of(json.loads(file.read_text(encoding="utf-8")))
        how: dict[str, Any] = {"index": index, "usual_index": known.index, "categories": known.categories}
        how |= {"sheet": sheet, "decimal": decimal, "thousands": thousands}
        found = _predicted(curve, known, data, size, None if no_interval else interval, not no_interval, how)
        if not quiet:
            for remark in _remarks(found):
                say(remark)
        _show(found, out, as_json)


def _check_place(out: Path, data: Path, file: Path, is_folder: bool, force: bool) -> None:
    """Refuse to write over what is read, or into the result folder, which is replaced as a whole."""
    refuse_input(out, data, "the table")
    refuse_input(out, file, "the saved result")
    if is_folder and out.resolve().is_relative_to(file.parent.resolve()):
        raise ValueError(
            f"--out {str(out)!r} is in the result folder {str(file.parent)!r}; expected a file elsewhere, such as "
            f"--out {out.name}."
        )
    check_out(out, force)


@dataclass(frozen=True)
class _Known:
    """What select wrote in addition to the curve; a curve saved from Python has none of it."""

    target: str | None = None
    index: str | None = None
    categories: dict[str, dict[str, str]] | None = None

    @classmethod
    def of(cls, record: dict[str, Any]) -> _Known:
        texts: list[str | None] = []
        for part, key in (("table", "target"), ("run", "index")):
            found = record.get(part)
            text = found.get(key) if isinstance(found, dict) else None
            texts.append(text if isinstance(text, str) else None)
        table = record.get("table")
        return cls(texts[0], texts[1], table.get("categories") if isinstance(table, dict) else None)


@dataclass(frozen=True, eq=False)
class _Predicted:
    """Predictions of one file; `why_not`: why there are no intervals, `given`: whether the size was asked for."""

    rows: NewRows
    size: int
    columns: list[str]
    always: list[str]
    target: str | None
    coverage: float | None
    prediction: Floats
    lower: Floats
    upper: Floats
    comparison: PredictionCheck | None
    why_not: str | None
    given: bool
    classes: list[str] | None = None


def _predicted(
    curve: SizeCurve,
    known: _Known,
    data: Path,
    size: int | None,
    interval: float | None,
    wanted: bool,
    how: dict[str, Any],
) -> _Predicted:
    """Read the new rows and predict them; `interval` None and `wanted`: intervals as far as they can be given."""
    import numpy as np

    from pairflip.selection.prediction import compare, predict_known, used_columns, why_no_interval
    from pairflip.selection.verdict import recommended_size
    from pairflip.tables.new_rows import read_new_rows

    chosen = recommended_size(curve) if size is None else size
    needed = used_columns(curve, chosen, folds=False)
    coverage = COVERAGE if wanted and interval is None else interval
    why_not = None if coverage is None else why_no_interval(curve, chosen, coverage)
    if why_not is not None and interval is not None:
        raise ValueError(f"{'--' if why_not.startswith(('interval', 'size')) else ''}{why_not}")
    everything = used_columns(curve, chosen, folds=True)
    wished = np.setdiff1d(everything, needed) if coverage is not None and why_not is None else needed[:0]
    names = [[curve.names[j] for j in columns] for columns in (needed, wished)]
    labels = None if curve.classes is None else curve.classes.labels
    rows = read_new_rows(data, *names, known=curve.names, target=known.target, classes=labels, **how)
    X = np.full((len(rows.row_names), everything.size), np.nan)
    X[:, np.searchsorted(everything, np.concatenate([needed, wished]))] = rows.X
    if rows.absent and why_not is None:
        why_not = _folds_need(rows.absent)
        if interval is not None:
            raise ValueError(f"--interval is {interval:g}, but {why_not}.")
    coverage = coverage if why_not is None else None
    point, lower, upper = predict_known(curve, X, chosen, coverage)
    bounds = None if coverage is None else (lower, upper)
    compared = None if rows.y is None else compare(rows.y, point, bounds, classes=labels is not None)
    return _Predicted(
        rows=rows,
        size=chosen,
        columns=[curve.names[j] for j in curve.supports[curve.at(chosen)]],
        always=[curve.names[j] for j in curve.always],
        target=known.target,
        coverage=coverage,
        prediction=point,
        lower=lower,
        upper=upper,
        comparison=compared,
        why_not=why_not if curve.loss.squared else None,
        given=size is not None,
        classes=labels,
    )


def _folds_need(absent: list[str]) -> str:
    from pairflip.text import listed, plural

    return (
        f"intervals also need {plural(len(absent), 'column')} that folds chose and the table lacks, {listed(absent)}: "
        "add them, or give --no-interval"
    )


def _remarks(found: _Predicted) -> list[str]:
    """What a reader should know, each a sentence: what was done, what is missing, and how well it predicted."""
    import numpy as np

    from pairflip.text import listed, number, percent, plural, quoted

    remarks = [f"{note}." for note in found.rows.notes]
    if found.classes is not None:
        remarks.append(
            f"predictions are probabilities of {quoted(found.classes[1])}; the class is the more probable one."
        )
    names = [*found.always, *found.columns]
    lost = ~np.isfinite(found.prediction)
    how = f"with {plural(len(names), 'column')}, {listed(names)}"
    if not names:
        how = "without columns: every row gets the same number"
        if not found.given:
            how += ", since nothing in the result predicts better (--size K takes K columns all the same)"
    covers = (
        "" if found.coverage is None else f"; the intervals are made to cover {percent(found.coverage)} of new rows"
    )
    remarks.append(f"{plural(int((~lost).sum()), 'row')} predicted {how}{covers}.")
    if found.coverage is not None and not found.given:
        remarks.append(CHOSEN)
    if found.why_not is not None:
        remarks.append(f"there are no intervals: {found.why_not.rstrip('.')}.")
    for gone, what in ((lost, "prediction"), (~lost & ~np.isfinite(found.lower), "interval")):
        if gone.any() and (what == "prediction" or found.coverage is not None):
            some = [found.rows.row_names[i] for i in np.flatnonzero(gone)]
            why = "values are missing in columns that it needs"
            remarks.append(f"{plural(len(some), 'row')} without {what}, since {why}: {listed(some)}.")
    if found.comparison is not None:
        seen = found.comparison
        inside = "" if seen.inside is None else f"; {percent(seen.inside)} are inside their intervals"
        if seen.wrong is not None:
            remarks.append(
                f"compared with {quoted(found.target)} in {plural(seen.n_rows, 'row')}: {percent(seen.wrong)} wrong, "
                f"AUC {number(float('nan') if seen.auc is None else seen.auc, 3)}."
            )
            return remarks
        remarks.append(
            f"compared with {quoted(found.target)} in {plural(seen.n_rows, 'row')}: RMSE {number(seen.rmse, 3)}, R2 "
            f"{number(seen.r2, 3)}{inside}."
        )
    return remarks


def _show(found: _Predicted, out: Path | None, as_json: bool) -> None:
    """Write the file, or print the table; JSON has everything."""
    from pairflip.cli.shown import print_json
    from pairflip.selection.class_errors import HALF
    from pairflip.text import visible

    header = ["row", "prediction"]
    columns: list[list[Any]] = [found.prediction.tolist()]
    if found.classes is not None:
        header.append("class")
        columns.append(["" if p != p else found.classes[int(p > HALF)] for p in found.prediction.tolist()])
    if found.coverage is not None:
        header += ["lower", "upper"]
        columns += [found.lower.tolist(), found.upper.tolist()]
    lines = list(zip(found.rows.row_names, *columns, strict=True))
    if out is not None:
        write_lines(out, header, lines, "the predictions")
    if as_json:
        print_json(_record(found, header, lines))
    elif out is None:
        text = lines_text(header, lines)
        # A terminal would obey control characters in names; a file or a program gets them as they are.
        shown = "\n".join(map(visible, text.split("\n"))) if sys.stdout.isatty() else text
        typer.echo(shown, nl=False)
    else:
        typer.echo(f"Predictions: {visible(str(out))}")


def _record(found: _Predicted, header: list[str], lines: list[Any]) -> dict[str, Any]:
    """Everything in plain values; what is not a number is null."""
    from dataclasses import asdict
    from math import isfinite

    def plain(value: Any) -> Any:
        return None if isinstance(value, float) and not isfinite(value) else value

    seen = None if found.comparison is None else {k: plain(v) for k, v in asdict(found.comparison).items()}
    if seen is not None and found.classes is None:
        seen = {k: v for k, v in seen.items() if k not in ("wrong", "auc")}
    return {
        "table": found.rows.source,
        "target": found.target,
        "size": found.size,
        "columns": found.columns,
        "always": found.always,
        "interval": found.coverage,
        "rows": [dict(zip(header, map(plain, line), strict=True)) for line in lines],
        "comparison": seen,
        "remarks": _remarks(found),
    }
