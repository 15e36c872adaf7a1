"""`pairflip demo`: the main job on a real table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pairflip.cli import options as o
from pairflip.cli.errors import plain_errors, typed
from pairflip.cli.result_files import finish

FOLDER = Path("pairflip-demo")
Sizes = Annotated[str, typer.Option("--sizes", metavar="SIZES", help="Numbers of columns to try: 1-12, or 1,2,5.")]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Result folder; an older result is replaced.")]


def demo(
    context: typer.Context,
    sizes: Sizes = "1-12",
    seed: o.Seed = 0,
    jobs: o.Jobs = -1,
    out: Out = FOLDER,
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
) -> None:
    """Choose columns of a real table: diabetes progression of 442 patients, 64 columns."""
    with plain_errors():
        wanted = o.parse_sizes(sizes)
        from pairflip.cli.result_folder import check_folder
        from pairflip.demo import demo_table, run_demo

        check_folder(out, force=True)
        table = demo_table()
        curve = run_demo(table, wanted or [], seed=seed, n_jobs=o.check_jobs(jobs), progress=False if quiet else "log")
        command = typed(context)
        finish(curve, table, command, {}, out, force=True, as_json=as_json)
    if not as_json:
        typer.echo("The table: diabetes progression of 442 patients; 10 measurements, their squares and products.")
