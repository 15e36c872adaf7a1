"""What commands print: the answer first, then the table, then where the files are."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from pairflip.text import short, visible

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from pairflip.report.vocabulary import Piece
    from pairflip.selection import SizeCurve

_PLAIN_WIDTH = 160  # of a table where there is no terminal
_TEXT_WIDTH = 100  # of sentences, at most; longer lines are hard to read


def print_json(record: Any) -> None:
    """One JSON document on standard output."""
    json.dump(record, sys.stdout, allow_nan=False)
    typer.echo()


def print_text(text: str) -> None:
    """Sentences, wrapped at words to the width of the terminal; to a fixed width where there is none."""
    width = min(_TEXT_WIDTH, shutil.get_terminal_size().columns) if sys.stdout.isatty() else _TEXT_WIDTH
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    typer.echo("\n".join(lines))


def print_curve(curve: SizeCurve) -> None:
    """The answer, then one line for each size; names are made safe to show."""
    from pairflip.report.answer import answer_of
    from pairflip.report.curve_tables import plain_table

    groups = None if curve.groups is None else {short(name): members for name, members in curve.groups.items()}
    shown = replace(curve, names=[short(name) for name in curve.names], groups=groups)
    answer, table = answer_of(shown), plain_table(shown)
    pieces = [*answer.headline, (" ", False), *answer.details]
    notes = map(visible, curve.notes)
    print_result(pieces, answer.cautions, [(table.heads, table.rows)], [table.caption], notes)


def print_result(
    answer: Iterable[Piece],
    doubts: Iterable[str],
    tables: Iterable[tuple[Sequence[str], Sequence[Sequence[str]]]],
    texts: Iterable[str],
    notes: Iterable[str] = (),
) -> None:
    """The answer as plain text, what to doubt about it, tables of headings and rows, what they depend on, notes."""
    from pairflip.report.vocabulary import plain

    for text in (plain(answer), *doubts):
        print_text(text)
        typer.echo()
    for header, rows in tables:
        print_rows(header, rows)
        typer.echo()
    for text in (*texts, *(f"Note: {note}." for note in notes if note)):
        print_text(text)


def print_rows(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: numbers are aligned to the right, and the last column is text that may take several lines."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table: RichTable = Table(box=None, pad_edge=False)
    for at, name in enumerate(header):
        last = at == len(header) - 1
        table.add_column(Text(name), justify="left" if last else "right", overflow="fold", no_wrap=not last)
    for row in rows:
        table.add_row(*map(Text, row))  # Text: brackets and colons in names are not markup
    console = Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH)
    with console.capture() as lines:
        console.print(table)
    typer.echo("\n".join(line.rstrip() for line in lines.get().splitlines()))


def print_places(folder: Path) -> None:
    """Where the files of a result folder are; a single table is where it was named."""
    if not folder.is_dir():
        return
    typer.echo(f"Report: {visible(str(folder / 'report.html'))}")
    typer.echo(f"Tables, figures and settings: {visible(str(folder))}")
