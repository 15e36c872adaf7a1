"""`pairflip report`: build the page again from a saved result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pairflip.cli import options as o
from pairflip.cli.errors import plain_errors
from pairflip.cli.results import page_settings, refuse_existing_file, refuse_input, result_file, saved_table
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
        from pairflip.report import write_report
        from pairflip.selection.curve_file import load_record

        file = result_file(saved)
        place = file.with_name("report.html") if out is None else out
        refuse_input(place, file, "the saved result")
        curve, record = load_record(file)
        if out is not None:
            refuse_existing_file(out, force)
        table = saved_table(record, curve.n_rows)
        page = write_report(curve, place, **page_settings({**record, "table": table}))
    typer.echo(f"Report: {visible(str(page))}")
