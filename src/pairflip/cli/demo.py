"""`pairflip demo`: the main job on a real table, which comes with scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pairflip.cli import options as o
from pairflip.cli.errors import plain_errors
from pairflip.cli.results import FOLDERS, check_folder, finish

Sizes = Annotated[str, typer.Option("--sizes", metavar="SIZES", help="Numbers of columns to try: 1-12, or 1,2,5.")]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Result folder; an older result is replaced.")]


def demo(
    context: typer.Context,
    sizes: Sizes = "1-12",
    seed: o.Seed = 0,
    jobs: o.Jobs = -1,
    out: Out = Path("pairflip-demo"),
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
) -> None:
    """Choose columns of a real table: diabetes progression of 442 patients, 64 columns."""
    with plain_errors():
        wanted, threads = o.parse_sizes(sizes), o.check_jobs(jobs)
        from pairflip.cli.select import DEFAULT_STABILITY
        from pairflip.datasets import load_diabetes_products
        from pairflip.problem import SubsetProblem
        from pairflip.selection import select_size
        from pairflip.selection.folds import DEFAULT_CV
        from pairflip.tables import Table
        from pairflip.text import row_numbers

        check_folder(out, True, FOLDERS["select"])
        data = load_diabetes_products()
        table = Table(data.X, data.y, data.names, row_numbers(len(data.y)), "diabetes progression", "diabetes")
        problem = SubsetProblem(table.X, table.y, names=table.names)
        curve = select_size(
            problem, wanted, cv=DEFAULT_CV, seed=seed, stability=DEFAULT_STABILITY, n_jobs=threads,
            progress=False if quiet else "log",
        )  # fmt: skip
        finish(curve, table, context.obj, {}, out, force=True, as_json=as_json)
    if not as_json:
        typer.echo("The table: diabetes progression of 442 patients; 10 measurements, their squares and products.")
