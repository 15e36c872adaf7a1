"""`pairflip select`: how many columns, which, and how sure. The main job."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from pairflip.cli import options as o
from pairflip.cli.config import run_settings
from pairflip.cli.errors import plain_errors
from pairflip.cli.loading import load
from pairflip.cli.results import checked_place, finish, refuse_journal

DEFAULT_STABILITY = 50  # docs/decisions/027-stability.md
_WRITING_S = 3.5  # the page, figures and tables, on one core

RidgeOrAuto = Annotated[
    str | None,
    o.in_model("--ridge", metavar="RIDGE", show_default="0; auto for classes, counts and times",
             help="Penalty on the squares of the coefficients, in the units of the table; auto: choose the shrinkage "
             "together with the size; 0,0.1,1: from these, in units of the scaled columns."),
]  # fmt: skip
Cv = Annotated[
    str,
    o.in_search("--cv", metavar="CV", help="5x10: ten folds, five times; loo: leave one row out; 10: ten folds; "
              "blocks:5: five blocks of neighbouring rows, for tables in the order of time."),
]  # fmt: skip
StabilityPairs = Annotated[
    int,
    o.in_search("--stability", metavar="N", help="Pairs of random halves of the rows in which columns are selected "
              "again; 0: none."),
]  # fmt: skip
StabilityAt = Annotated[
    Literal["chosen", "all"], o.in_search("--stability-at", help="At the recommended size, or at all.")
]
PredictWith = Annotated[
    Literal["subset", "average"],
    o.in_search("--predict-with", help="What pairflip predict predicts with by default: the chosen columns, or the "
                "average over the models of half-samples."),
]  # fmt: skip
Null = Annotated[
    int, o.in_search("--null", metavar="N", help="Shuffle the target so often, to see what noise would give.")
]
Outer = Annotated[
    int,
    o.in_search("--outer", metavar="N", help="Folds of a second cross validation around everything; takes N times as "
              "long; 0: none."),
]  # fmt: skip
ShowPosterior = Annotated[
    bool,
    o.in_search("--posterior", help="Show how probable it is that each column belongs in the model, beside how often "
                "it was selected (pairflip posterior)."),
]  # fmt: skip
Choose = Annotated[
    Literal["auto", "best", "one_se", "bic", "ebic"],
    o.in_search("--choose", help="Rule for the size: the lowest held-out error (best), the smallest size within one "
                "standard error of it (one_se), the lowest BIC or EBIC of the fits on all rows; auto: best, with --cv "
                "loo one_se."),
]  # fmt: skip
Shard = Annotated[str | None, o.in_search(metavar="I/N", help="Do only one part of the work, into the journal.")]
Merge = Annotated[
    list[Path] | None, o.in_search(metavar="DIR", help="Journal of a shard to merge first. Repeat for more.")
]
Out = Annotated[
    Path | None,
    o.in_results("--out", "-o", metavar="DIR", help="Result folder.", show_default="name of the table + -pairflip"),
]

Full = Annotated[bool, o.in_results("--full", help="Print all that the answer has to say, as the report has it.")]


def select(
    context: typer.Context,
    *,
    table: o.TableOptions,
    model: o.ModelOptions,
    limits: o.LimitOptions,
    fitted: o.LossOptions,
    ridge: RidgeOrAuto = None,
    sizes: o.Sizes = None,
    cv: Cv = "5x10",
    choose: Choose = "auto",
    search: o.SearchOptions,
    stability: StabilityPairs = DEFAULT_STABILITY,
    stability_at: StabilityAt = "chosen",
    null: Null = 0,
    outer: Outer = 0,
    predict_with: PredictWith = "subset",
    posterior: ShowPosterior = False,
    run: o.RunOptions,
    journal: o.JournalFolder = None,
    shard: Shard = None,
    merge: Merge = None,
    out: Out = None,
    full: Full = False,
    results: o.ResultOptions,
) -> None:
    """Choose how many columns of a table predict the target best, and which, by cross validation.

    Example: pairflip select data.csv --target y
    """
    command: str = context.obj
    with plain_errors(journal, command):
        penalty = None if ridge is None else o.parse_ridge(ridge)
        fixed, choices = (penalty, None) if isinstance(penalty, float) else (None, penalty)
        how: dict[str, Any] = {"engine": run.engine, "n_jobs": o.check_jobs(run.jobs)}
        how["progress"] = False if results.quiet else "log"
        o.check_cv(cv)
        from pairflip.report.cautions import named_heavy_row
        from pairflip.search.effort import as_method
        from pairflip.selection import Selection, merge_journals, run_shard, select_size, with_posterior
        from pairflip.selection.progress import followed_by
        from pairflip.selection.run import identify

        method = None if search.method is None else as_method(search.method)
        chosen = Selection(
            sizes=o.parse_sizes(sizes), cv=cv, schedule=search.schedule, chains=search.chains, seed=run.seed,
            polish=search.polish, prove=search.prove, method=method, effort=search.effort, stability=stability,
            stability_at=stability_at, null=null, outer=outer, ridge=choices, choose=choose, predict_with=predict_with,
        )  # fmt: skip
        folder = Path()
        if journal is None and (shard is not None or merge):
            option = "--shard" if shard is not None else "--merge"
            raise ValueError(f"{option} is given without a journal; expected --journal DIR for the work of all shards.")
        if journal is not None and shard is not None:
            refuse_journal(journal, None, table.data)
        else:
            folder = checked_place("select", out, results.force, table.data, journal)
        loaded = load(table, fitted)
        problem = loaded.problem(model, limits, ridge=fixed, quiet=results.quiet, journal=journal, n_jobs=how["n_jobs"])
        how["groups"] = loaded.groups
        if journal is not None and shard is not None:
            _say_shard(shard, journal, run_shard(problem, chosen, journal=journal, shard=shard, **how))
            return
        chances = None
        if posterior:  # first, since it is the shorter work, and a problem without such probabilities is refused early
            from pairflip.search.posterior import posterior as weigh_models

            own_journal = None if journal is None else journal / "posterior"
            chances = weigh_models(problem, seed=run.seed, journal=own_journal, n_jobs=run.jobs)
        if journal is not None and merge:
            merge_journals(journal, merge, identify(problem, chosen, engine=run.engine, groups=loaded.groups))
        with followed_by(_WRITING_S):
            curve = select_size(problem, chosen, journal=journal, **how)
        if chances is not None:
            curve = with_posterior(curve, chances)
        dates = {"dates": True} if loaded.table.row_dates else {}
        curve = replace(curve, facts={**curve.facts, **dates, **named_heavy_row(curve, loaded.table.row_names)})
        used = {**context.params, "sizes": o.written_sizes(curve.settings["sizes"]), "method": chosen.method}
        used["stability"] = chosen.stability
        used["ridge"] = ridge if choices else "auto" if curve.ridge_surface is not None else problem.ridge
        used["loss"] = loaded.loss
        defaults = {"loss": loaded.loss == "squares", "posterior": not posterior}
        for name, is_default in defaults.items():
            if is_default:
                del used[name]
        settings = run_settings(context, used, folder)
        finish(curve, loaded.table, command, settings, folder, results.force, results.as_json, full)


def _say_shard(shard: str, journal: Path, chains: int) -> None:
    from pairflip.text import visible

    typer.echo(
        f"Shard {visible(shard)} is done: the journal {visible(str(journal))} holds {chains} finished chains. When all "
        "shards are done, the same command without --shard gives the result; add --merge DIR for journals elsewhere."
    )
