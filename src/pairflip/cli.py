"""The command line. Data go to standard output, progress and messages to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated

import typer

import pairflip

app = typer.Typer(
    help="Find the few columns of a table that predict a target.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pairflip {pairflip.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Find the few columns of a table that predict a target."""


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Bad input is one sentence and exit code 2; Ctrl-C is one sentence and 130."""
    try:
        yield
    except (ValueError, TypeError) as error:
        typer.echo(f"pairflip: {error}", err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        typer.echo("pairflip: interrupted; nothing was written.", err=True)
        raise typer.Exit(130) from None


@app.command()
def demo(
    sizes: Annotated[int, typer.Option(help="Largest number of columns.", min=1, max=63)] = 10,
    seed: Annotated[int, typer.Option(help="Same seed, same result.", min=0)] = 0,
    jobs: Annotated[int, typer.Option(help="Threads; -1 means all cores.")] = -1,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
) -> None:
    """Find the best subsets of a real table: diabetes progression, 442 patients, 64 columns."""
    with _plain_errors():
        from pairflip.demo import run_demo

        rows = run_demo(range(1, sizes + 1), seed=seed, n_jobs=jobs)
    if as_json:
        json.dump([asdict(row) for row in rows], sys.stdout, indent=1)
        typer.echo()
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None)
    for name in ("k", "energy", "R^2", "chains agree", "seconds"):
        table.add_column(name, justify="right")
    table.add_column("columns", overflow="fold")
    for row in rows:
        numbers = (
            f"{row.k}",
            f"{row.energy:.0f}",
            f"{row.r_squared:.4f}",
            f"{row.agreement:.0%}",
            f"{row.seconds:.2f}",
        )
        table.add_row(*numbers, escape(", ".join(row.columns)))
    typer.echo("Diabetes progression, 442 patients, 64 columns: the best columns of each size")
    Console(width=None if sys.stdout.isatty() else 160).print(table)
    typer.echo(
        "Energy is half the residual sum of squares. It falls with every column added, so it does not say how "
        "many to keep."
    )
