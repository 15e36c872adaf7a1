"""`pairflip report`: build the page again from a saved result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from pairflip.cli import options as o
from pairflip.cli.errors import plain_errors
from pairflip.cli.result_folder import refuse_input, result_file
from pairflip.cli.table_file import refuse_existing
from pairflip.text import visible

Saved = Annotated[Path, typer.Argument(help="A result folder, its result.json, or a file of SizeCurve.save.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FILE", help="The page.", show_default="report.html next to the result"),
]


def report(saved: Saved, out: Out = None, force: o.ForceFile = False) -> None:
    """Build the report again from a saved result.

    Example: pairflip report data-pairflip
    """
    with plain_errors():
        from pairflip.cli.result_files import write_page
        from pairflip.selection.curve_file import load_curve

        file = result_file(saved)
        place = file.with_name("report.html") if out is None else out
        refuse_input(place, file, "the saved result")
        curve = load_curve(file)
        record = json.loads(file.read_text(encoding="utf-8"))
        if out is not None:
            refuse_existing(out, force)
        page = write_page(curve, _known(record), place)
    typer.echo(f"Report: {visible(str(page))}")


def _known(record: dict[str, Any]) -> dict[str, Any]:
    """What select wrote in addition to the curve; a curve saved from Python has none of it."""
    table = record.get("table")
    whole = isinstance(table, dict) and {"source", "target"} <= table.keys()
    return {"table": table if whole else {}, "command": record.get("command")}
