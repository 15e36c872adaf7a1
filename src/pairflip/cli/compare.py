"""`pairflip compare`: its search beside other methods, on the same folds of your table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pairflip.cli import options as o
from pairflip.cli.errors import say
from pairflip.cli.loading import load
from pairflip.cli.printing import print_json
from pairflip.cli.results import checked_place, write_folder
from pairflip.text import json_list

if TYPE_CHECKING:
    from pairflip.comparison import Comparison

_KNOWN = (
    "quick, normal, thorough, averaged (of pairflip); omp, forward, backward, lasso, lassocv, relaxed, pls, amp, "
    "amp-mean, abess, skglm"
)


def compare(
    context: typer.Context,
    *,
    table: Annotated[o.TableOptions, o.Without("categories", "reference")],
    sizes: o.Sizes = None,
    cv: Annotated[str, typer.Option("--cv", metavar="CV", help=
        "10: ten folds; 5x10: ten folds, five times; loo: leave one row out; blocks:5: five blocks of neighbouring "
        "rows, for tables in the order of time.")] = "10",
    methods: Annotated[str | None, typer.Option("--methods", metavar="NAMES", show_default="all", help=
        f"Which methods, separated by commas: {_KNOWN}.")] = None,
    model: o.ModelOptions,
    seed: o.Seed = 0,
    out: Annotated[Path | None, o.out_folder("compared")] = None,
    results: o.ResultOptions,
) -> None:  # fmt: skip
    """Compare pairflip with OMP, LASSO, stepwise selection, PLS, AMP, abess and skglm on the same folds.

    Example: pairflip compare data.csv --target y --sizes 1-20
    """
    from pairflip.comparison import compare as run
    from pairflip.comparison.registry import chosen_peers
    from pairflip.interrupt import exit_code
    from pairflip.report.compared import save_comparison_figures

    o.check_cv(cv)
    chosen_peers(methods, None)  # what is wrong with the names is said before the table is read
    folder = checked_place("compare", out, results.force, table.data)
    loaded = load(table)
    problem = loaded.problem(model, quiet=results.quiet)
    result = run(
        problem, o.parse_sizes(sizes), cv, methods=methods, groups=loaded.groups, seed=seed,
        progress=results.progress,
    )  # fmt: skip
    about = {"source": loaded.table.source, "target": loaded.table.target}
    record = {**result.to_json(), "table": about}
    sized = result.to_pandas()
    sized["columns"] = [json_list(names) for names in sized["columns"]]
    write_folder(
        "compare", folder, results.force, result, {"comparison.csv": sized, "methods.csv": result.summary_table()},
        {**record, "command": context.obj}, {}, save_comparison_figures,
        title=f"{about['source']}: methods that predict {about['target']}", command=context.obj,
        extra={"Table": about["source"]},
    )  # fmt: skip
    if results.as_json:
        print_json(record)
    else:
        _print(result, folder)
    if result.interrupted:
        say("interrupted; the methods that were finished are shown.")
        raise typer.Exit(exit_code())


def _print(result: Comparison, folder: Path) -> None:
    """The answer, one line for each method, and where the files are."""
    from pairflip.text import visible

    typer.echo(f"{result.summary()}\n")
    typer.echo(f"Page: {visible(str(folder / 'compare.html'))}")
    typer.echo(f"Tables and figures: {visible(str(folder))}")
