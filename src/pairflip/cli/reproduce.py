"""`pairflip reproduce`: the paper's figures and tables, and whether its claims hold here."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from pairflip.cli import options as o
from pairflip.cli.errors import plain_errors, say, typed
from pairflip.interrupt import interrupted

What = Annotated[str, typer.Argument(help="fig1, fig2, fig3, table1, table2, section3 or all.", metavar="WHAT")]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Result folder.")]
Data = Annotated[Path | None, typer.Option("--data", metavar="TABLE", help="Supernova table of table1 and table2.")]


class ScaleName(StrEnum):
    """Scales by name."""

    QUICK = "quick"
    PAPER = "paper"


Scale = Annotated[ScaleName, typer.Option("--scale", help="Minutes on a laptop, or as in the paper.")]


def reproduce(
    context: typer.Context,
    what: What,
    out: Out,
    scale: Scale = ScaleName.QUICK,
    data: Data = None,
    engine: o.EngineName = "auto",
    seed: o.Seed = 0,
    jobs: o.Jobs = -1,
    journal: o.JournalFolder = None,
    force: o.Force = False,
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
) -> None:
    """Recompute the figures and tables of Obuchi & Kabashima (2016), with theory and a verdict on every claim.

    Example: pairflip reproduce all --scale quick --out results
    """
    command = typed(context)
    with plain_errors(partial(interrupted, journal, command)):
        from pairflip.cli.result_folder import FolderContents, check_folder, new_folder
        from pairflip.cli.shown import print_json
        from pairflip.engines import get_engine
        from pairflip.paper.reproduce.run import Settings, write_outcome
        from pairflip.paper.reproduce.run import reproduce as compute
        from pairflip.paper.reproduce.scales import FILES, SCALES, parts_of

        get_engine(engine)  # an unknown name is refused before anything is computed
        parts = parts_of(what, data)
        contents = FolderContents(FILES, "verdict.json")
        check_folder(out, force, contents)
        settings = Settings(parts, SCALES[scale.value], data, engine, seed, jobs, journal, command)
        outcome = compute(settings, (lambda _: None) if quiet else say)
        with new_folder(out, force, contents) as part:
            write_outcome(outcome, settings, part)
        if as_json:
            print_json(outcome.verdict)
            return
        for claim in outcome.claims:
            typer.echo(f"{'holds' if claim.holds else 'FAILS'}  {claim.name}: {claim.claim}")
            typer.echo(f"       Here: {claim.reason}.")
        for name, why in outcome.skipped.items():
            typer.echo(f"left out  {name}: {why}.")
        typer.echo(f"Points, figures and verdict: {out}")
