"""What commands print: the answer first, then the table, then where the files are."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from pairflip.text import short, table_lines, text_width, visible, wrapped

if TYPE_CHECKING:
    from pairflip.selection import SizeCurve


def print_json(record: Any) -> None:
    """One JSON document on standard output."""
    json.dump(record, sys.stdout, allow_nan=False)
    typer.echo()


def print_text(text: str) -> None:
    """Sentences, wrapped at words to the width of the terminal; to a fixed width where there is none."""
    typer.echo("\n".join(wrapped(text, text_width())))


def print_curve(curve: SizeCurve, full: bool = False) -> None:
    """The answer, then one line for each size; names are made safe to show."""
    from pairflip.report.curve_tables import summary

    groups = None if curve.groups is None else {short(name): members for name, members in curve.groups.items()}
    names, notes = [short(name) for name in curve.names], tuple(map(visible, curve.notes))
    typer.echo(summary(replace(curve, names=names, groups=groups, notes=notes), full))


def print_rows(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: numbers are aligned to the right, and the last column is text that may take several lines."""
    typer.echo("\n".join(table_lines([header, *rows], width=text_width())))


def print_places(folder: Path, journal: Path | None) -> None:
    """Where the files of a result folder are (a single table is where it was named), and what becomes of a journal."""
    if folder.is_dir():
        typer.echo(f"Report: {visible(str(folder / 'report.html'))}")
        typer.echo(f"Tables, figures and settings: {visible(str(folder))}")
    if journal is not None:
        typer.echo(f"Journal: {visible(str(journal))} (the run is finished; it may be deleted)")
