"""`pairflip report` and `pairflip publish`: the page of a saved result again, and what a paper needs of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pairflip.cli import options as o
from pairflip.cli.errors import say
from pairflip.cli.results import (
    FOLDERS,
    check_folder,
    new_folder,
    page_settings,
    refuse_existing_file,
    refuse_input,
    result_file,
    saved_table,
)
from pairflip.text import visible


def report(
    saved: o.Saved,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="The page.", show_default="report.html next to the result"),
    ] = None,
    force: o.ForceFile = False,
) -> None:
    """Build the report again from a saved result.

    Example: pairflip report data-pairflip
    """
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


def publish(
    saved: o.Saved,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Folder to write.", show_default="the result's name, -published"
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an older folder of this command.")] = False,
    quiet: o.Quiet = False,
) -> None:
    """Write what a paper needs: tables, figures, paragraphs, the model as equation, Python function and ONNX.

    Example: pairflip publish data-pairflip
    """
    file, contents = result_file(saved), FOLDERS["publish"]
    name = file.parent.resolve().name if file.name == "result.json" else file.stem
    place = Path(f"{name}-published") if out is None else out
    check_folder(place, force, contents)
    if file.resolve().is_relative_to(place.resolve()):
        raise ValueError(f"--out {str(place)!r} holds the result, which would be lost; name another folder.")
    from pairflip.publish import left_out
    from pairflip.selection.curve_file import load_record

    curve, record = load_record(file)
    table = saved_table(record, curve.n_rows)
    with new_folder(place, force, contents) as part:
        curve.publish(part, target=table.get("target"), row_names=table.get("row_names"))
    for sentence in [] if quiet else left_out():
        say(sentence)
    typer.echo(f"Published: {visible(str(place))} (paper.tex shows everything)")
