"""`pairflip law`: an equation for the target, its terms made of columns by operators."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from pairflip.cli import options as o
from pairflip.cli.errors import say
from pairflip.cli.loading import load
from pairflip.cli.printing import print_json
from pairflip.cli.results import refuse_existing_file, refuse_input
from pairflip.text import visible


def law(
    *,
    table: Annotated[
        o.TableOptions,
        o.Without(
            "categories", "reference", "impute", "preprocess", "powers", "interactions", "weights", "groups"
        ),
    ],
    results: o.ResultOptions,
    units: Annotated[str | None, o.in_model("--units", metavar="LIST", help=
        "Unit of every column, perhaps of the target: m=kg,v=m/s,n=1; names, none of which is converted.")] = None,
    operators: Annotated[
        str | None, o.in_model("--operators", metavar="LIST", show_default="+ - |-| * / ^-1 ^2 ^3 sqrt log exp", help=
        "Some of + - |-| * / ^-1 ^2 ^3 ^6 sqrt cbrt log exp exp- sin cos; others for each rung with ; between.")
    ] = None,
    rungs: Annotated[
        int, o.in_model("--rungs", metavar="N", min=0, max=4, help="How often operators are applied.")] = 2,
    intercept: Annotated[bool, o.in_model("--intercept/--no-intercept", help="A constant beside the terms.")] = True,
    sizes: Annotated[
        str, o.in_search("--sizes", metavar="SIZES", help="Numbers of terms to try: 1-3, or 1,2.")] = "1-3",
    cv: Annotated[str | None, o.in_search("--cv", metavar="CV", show_default="10; loo below 20 rows", help=
        "Folds: 10, 5x10, blocks:5 or loo.")] = None,
    choose: Annotated[Literal["one_se", "best"], o.in_search("--choose", help=
        "one_se: the fewest terms within a standard error of the lowest error; best: that.")] = "one_se",
    keep_terms: Annotated[int, o.in_search("--keep-terms", metavar="N", min=1, help=
        "Terms that screening keeps for each size.")] = 10_000,
    effort: Annotated[
        o.EffortName, o.in_search("--effort", help="Of the search among terms that were kept.")] = "normal",
    seed: o.Seed = 0,
    jobs: o.Jobs = -1,
    out: Annotated[Path | None, o.out_file("Write the law to this .json file.")] = None,
) -> None:  # fmt: skip
    """Find an equation for the target: a few terms, made of columns by operators, with units.

    Example: pairflip law data.csv --target y --units "m=kg, v=m/s, y=kg m^2/s^2"
    """
    from pairflip.features import find_law
    from pairflip.features.expressions import DEFAULT
    from pairflip.report.save import write_whole
    from pairflip.sparse import dense

    if out is not None:
        if out.suffix.lower() != ".json":
            raise ValueError(f"--out {str(out)!r} has another suffix than .json, which is what is written.")
        refuse_input(out, table.data, "the table")
        refuse_existing_file(out, results.force)
    if cv is not None:
        o.check_cv(cv)
    loaded = load(table)
    if loaded.beside_y or loaded.table.classes is not None:
        raise ValueError(f"--target {table.target!r} is not one column of numbers, which is what a law predicts.")
    for item in [] if results.quiet else (*loaded.table.dropped, *loaded.table.notes):
        say(f"{item}.")
    import pandas as pd

    given: Any = DEFAULT if operators is None else operators
    if operators is not None and ";" in operators:
        given = [part.replace(",", " ").split() for part in operators.split(";")]
    equation = find_law(
        pd.DataFrame(dense(loaded.table.X), columns=loaded.table.names),
        pd.Series(loaded.table.y, name=loaded.table.target), units=units, operators=given, rungs=rungs,
        intercept=intercept, sizes=o.parse_sizes(sizes) or [], cv=cv, choose=choose, keep=keep_terms, effort=effort,
        seed=seed, n_jobs=o.check_jobs(jobs), progress=results.progress,
    )  # fmt: skip
    if out is not None:
        write_whole(out, (json.dumps(equation.to_dict(), indent=1, allow_nan=False) + "\n").encode(), "the law")
        say(f"The law is in {out}.")
    if results.as_json:
        print_json(equation.to_dict())
    else:
        typer.echo("\n".join(visible(line) for line in str(equation).split("\n")))
