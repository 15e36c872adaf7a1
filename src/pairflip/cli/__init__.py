"""The command line: one file per command. Data go to standard output, progress and messages to standard error."""

from __future__ import annotations

from typing import Annotated

import typer

import pairflip
from pairflip.cli.compare import compare
from pairflip.cli.doctor import doctor
from pairflip.cli.errors import PlainCommand, PlainGroup
from pairflip.cli.fit import fit
from pairflip.cli.law import law
from pairflip.cli.options import expanded
from pairflip.cli.paper import reproduce, theory
from pairflip.cli.predict import predict
from pairflip.cli.probabilities import posterior, sample
from pairflip.cli.prove import prove
from pairflip.cli.saved import publish, report
from pairflip.cli.select import demo, select

app = typer.Typer(cls=PlainGroup, no_args_is_help=True, pretty_exceptions_enable=False)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pairflip {pairflip.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Find the few columns of a table that predict a target, how many to keep, and how sure that is."""


for command in (
    select, fit, prove, posterior, sample, predict, compare, law, report, publish, theory, reproduce, demo, doctor,
):  # fmt: skip
    app.command(cls=PlainCommand)(expanded(command))
