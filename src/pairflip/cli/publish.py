"""`pairflip publish`: what a paper needs of a saved result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pairflip.cli.errors import plain_errors, say
from pairflip.cli.results import FOLDERS, check_folder, new_folder, result_file, saved_table
from pairflip.text import visible

Saved = Annotated[Path, typer.Argument(help="A result folder, its result.json, or a file of SizeCurve.save.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="DIR", help="Folder to write.", show_default="the result's name, -published"),
]
Force = Annotated[bool, typer.Option("--force", help="Replace an older folder of this command.")]


def publish(saved: Saved, out: Out = None, force: Force = False) -> None:
    """Write what a paper needs: tables, figures, paragraphs, the model as equation, Python function and ONNX.

    Example: pairflip publish data-pairflip
    """
    with plain_errors():
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
        for sentence in left_out():
            say(sentence)
    typer.echo(f"Published: {visible(str(place))} (paper.tex shows everything)")
