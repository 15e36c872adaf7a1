"""`pairflip reproduce`: the paper's figures and tables, and whether its claims hold here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from pairflip.cli import options as o
from pairflip.cli.errors import plain_errors, say
from pairflip.cli.printing import print_json
from pairflip.cli.results import FolderContents, check_folder, new_folder

What = Annotated[str, typer.Argument(help="fig1, fig2, fig3, table1, table2, section3 or all.", metavar="WHAT")]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Result folder.")]
Data = Annotated[Path | None, typer.Option("--data", metavar="TABLE", help="Supernova table of table1 and table2.")]
Scale = Annotated[Literal["quick", "paper"], typer.Option("--scale", help="Minutes on a laptop, or as in the paper.")]


def reproduce(
    context: typer.Context,
    what: What,
    out: Out,
    scale: Scale = "quick",
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
    with plain_errors(journal, context.obj):
        from pairflip.engines import get_engine
        from pairflip.paper.reproduce.run import Settings, write_outcome
        from pairflip.paper.reproduce.run import reproduce as compute
        from pairflip.paper.reproduce.scales import FILES, SCALES, parts_of

        get_engine(engine)  # an unknown name is refused before anything is computed
        parts = parts_of(what, data)
        contents = FolderContents(FILES, "verdict.json")
        check_folder(out, force, contents)
        settings = Settings(parts, SCALES[scale], data, engine, seed, jobs, journal, context.obj)
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
