"""What a result folder holds: tables any program reads, everything as JSON, the page, the figures."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairflip.cli.config import config_text, settings_comment
from pairflip.cli.table_file import defused, json_list

if TYPE_CHECKING:
    import pandas as pd

    from pairflip.selection import SizeCurve
    from pairflip.tables import Table


@dataclass(frozen=True, eq=False)
class Result:
    """A finished selection: its curve, the table it is about, the command, and the settings for run.toml."""

    curve: SizeCurve
    table: Table
    command: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The curve's record (`SizeCurve.load` reads it) and what is known about the table and the run."""
        from pairflip.report.answer import answer_of
        from pairflip.report.stability_words import stability_record
        from pairflip.selection.curve_file import curve_to_json

        return {
            **curve_to_json(self.curve),
            "verdict": answer_of(self.curve).to_json(self.curve),
            "stability_shown": stability_record(self.curve),
            "table": table_record(self.table),
            "command": self.command,
            "run": dict(self.settings),
        }


def finish(
    curve: SizeCurve,
    table: Table,
    command: str,
    settings: dict[str, Any],
    folder: Path,
    force: bool,
    as_json: bool,
) -> None:
    """Write the result folder, then print the result."""
    from pairflip.cli.result_folder import new_folder
    from pairflip.cli.shown import print_curve, print_json, print_places

    result = Result(curve, table, command, settings)
    with new_folder(folder, force) as part:
        write_files(result, part)
    if as_json:
        print_json(result.to_json())
    else:
        print_curve(curve)
        print_places(folder)


def table_record(table: Table) -> dict[str, Any]:
    """What result.json says about the table: everything except its numbers."""
    return {
        "source": table.source,
        "target": table.target,
        "row_names": list(table.row_names),
        "dropped": [asdict(item) for item in table.dropped],
        "notes": [asdict(item) for item in table.notes],
        **({"categories": table.categories} if table.categories else {}),
        **({"index": table.index} if table.index is not None else {}),
        **({"event": table.event} if table.event is not None else {}),
    }


def saved_table(record: Mapping[str, Any], n_rows: int) -> dict[str, Any]:
    """What `table_record` wrote into result.json, checked; nothing where a curve was saved from Python."""
    table = record.get("table")
    if table is None:
        return {}
    whole = isinstance(table, dict) and isinstance(table.get("source"), str) and isinstance(table.get("target"), str)
    if whole:
        rows, categories = table.get("row_names"), table.get("categories", {})
        changes = [table.get(part, []) for part in ("dropped", "notes")]
        whole = (
            (rows is None or (_all(rows, str) and len(rows) == n_rows))
            and isinstance(table.get("index", ""), str)
            and isinstance(table.get("event", ""), str)
            and all(_all(part, dict) and all(map(_is_change, part)) for part in changes)
            and isinstance(categories, dict)
            and _all(list(categories.values()), dict)
            and all(_all(list(levels.values()), str) for levels in categories.values())
        )
    if not whole:
        raise ValueError("result.json is damaged (table); expected what pairflip select wrote: select again.")
    return dict(table)


def _all(values: Any, kind: type) -> bool:
    return isinstance(values, list) and all(isinstance(each, kind) for each in values)


def _is_change(item: dict[str, Any]) -> bool:
    """Whether this is a `Change`, as JSON."""
    texts = {name: value for name, value in item.items() if name != "names"}
    return {"what", "why"} <= texts.keys() <= {"what", "why", "says"} and (
        _all(list(texts.values()), str) and _all(item.get("names"), str)
    )


def write_files(result: Result, folder: Path) -> None:
    """Write all files into an empty folder."""
    from pairflip.figures import save_figures

    curve = result.curve
    sized = curve.to_pandas()
    sized["columns"] = [json_list(names) for names in sized["columns"]]
    if "groups" in sized:
        sized["groups"] = [json_list(names) for names in sized["groups"]]
    write_csv(sized, folder / "curve.csv")
    if curve.targets is not None:
        write_csv(target_table(curve), folder / "targets.csv")
    write_csv(selection_counts(curve), folder / "selection_counts.csv")
    write_csv(coefficients(curve), folder / "coefficients.csv")
    if curve.stability is not None:
        write_csv(curve.stability.to_pandas(), folder / "half_samples.csv")
    if curve.inclusion is not None:
        write_csv(inclusion(curve), folder / "inclusion.csv")
    write_csv(predictions(curve, result.table.row_names), folder / "predictions.csv")
    record = result.to_json()
    text = json.dumps(record, allow_nan=False) + "\n"
    (folder / "result.json").write_text(text, encoding="utf-8")
    write_page(curve, record, folder / "report.html")
    save_figures(curve, folder / "figures")
    if result.settings:
        text = config_text(result.settings, settings_comment("select"))
        (folder / "run.toml").write_text(text, encoding="utf-8")


def write_page(curve: SizeCurve, record: Mapping[str, Any], path: Path) -> Path:
    """Write the report."""
    from pairflip.report import write_report
    from pairflip.tables import Change

    table = record.get("table") or {}
    changes = [item for part in ("dropped", "notes") for item in table.get(part, [])]
    extra = {"Table": table["source"]} if "source" in table else {}
    return write_report(
        curve,
        path,
        title=f"{table['source']}: which columns predict {table['target']}" if table else None,
        target=table.get("target"),
        row_names=table.get("row_names"),
        dropped=[str(Change(**{**item, "names": tuple(item["names"])})) for item in changes],
        command=record.get("command"),
        extra=extra,
    )


def target_table(curve: SizeCurve) -> pd.DataFrame:
    """One row for each size and target: R2, RMSE in its unit, and cv_error in units of its standard deviation."""
    import numpy as np
    import pandas as pd

    found = curve.targets
    assert found is not None
    return pd.DataFrame(
        {
            "size": np.repeat(curve.sizes, len(found.names)),
            "target": np.tile(np.array(found.names, dtype=object), curve.sizes.size),
            "r2": found.r2.ravel(),
            "rmse": found.rmse.ravel(),
            "cv_error": found.cv_error.ravel(),
        }
    )


def selection_counts(curve: SizeCurve) -> pd.DataFrame:
    """One row for each size and column selected at least once: in how many folds, the most frequent first."""
    import pandas as pd

    rows = [
        (size, name, count, count / curve.n_folds)
        for size in curve.sizes.tolist()
        for name, count in curve.top_columns(size, len(curve.names))
    ]
    what = "column" if curve.groups is None else "group"
    return pd.DataFrame(rows, columns=["size", what, "folds", "fraction"])


def coefficients(curve: SizeCurve) -> pd.DataFrame:
    """One row for each size and column of the final fit; `kind` is selected, always or intercept."""
    import pandas as pd

    frames = [curve.coefficients(size) for size in curve.sizes.tolist()]
    for size, frame in zip(curve.sizes.tolist(), frames, strict=True):
        frame.insert(0, "size", size)
    return pd.concat(frames, ignore_index=True)


def inclusion(curve: SizeCurve) -> pd.DataFrame:
    """One row for each column that could be chosen, the most probable first: probability, its error, coefficient."""
    import numpy as np
    import pandas as pd

    found = curve.inclusion
    assert found is not None
    order = np.argsort(-found.probability, kind="stable")
    return pd.DataFrame(
        {
            "column": [curve.names[j] for j in found.columns[order]],
            "inclusion_probability": found.probability[order],
            "inclusion_se": found.error[order],
            "coef_mean": found.coef_mean[order],
            "coef_sd": found.coef_sd[order],
        }
    )


def predictions(curve: SizeCurve, row_names: list[str]) -> pd.DataFrame:
    """One row for each size and held-out row (and target, or class), predicted by columns that were chosen without it.

    Folds are counted from 1; rows have their names, or numbers from 1.
    """
    import numpy as np
    import pandas as pd

    sizes, places = curve.predictions.shape
    rows = np.array(row_names, dtype=object)[curve.held_out_rows]
    if curve.outputs is not None:
        from pairflip.selection.criteria import in_units

        return pd.DataFrame(
            {
                "size": np.repeat(curve.sizes, places),
                "row": np.tile(rows, sizes),
                "fold": np.tile(curve.held_out_fold + 1, sizes),
                "class" if curve.targets is None else "target": np.tile(
                    np.array(curve.outputs, dtype=object), sizes * places // curve.n_outputs
                ),
                "observed": np.tile(in_units(curve, curve.observed), sizes),
                "predicted": in_units(curve, curve.predictions).ravel(),
            }
        )
    return pd.DataFrame(
        {
            "size": np.repeat(curve.sizes, places),
            "row": np.tile(rows, sizes),
            "fold": np.tile(curve.held_out_fold + 1, sizes),
            "observed": np.tile(curve.observed, sizes),
            "predicted": curve.predictions.ravel(),
        }
        | _of_survival(curve)
    )


def _of_survival(curve: SizeCurve) -> dict[str, Any]:
    """Of survival times, also the time of each held-out row and the logarithm of its relative risk."""
    import numpy as np

    found = curve.survival
    return {} if found is None else {"time": np.tile(found.times, curve.sizes.size), "log_risk": found.risks.ravel()}


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """Every text in quotes, so that commas, quotes and line ends stay in their cell; see `defused` for formulas."""
    frame = frame.rename(columns=defused)
    for at, dtype in enumerate(frame.dtypes):
        if dtype.kind == "O":
            frame.isetitem(at, [defused(each) if isinstance(each, str) else each for each in frame.iloc[:, at]])
    frame.to_csv(path, index=False, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n", errors="backslashreplace")
