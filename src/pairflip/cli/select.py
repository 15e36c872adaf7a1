"""`pairflip select`: how many columns, which, and how sure, the main job; `pairflip demo`: the same on a real table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from pairflip.cli import options as o
from pairflip.cli.config import run_settings
from pairflip.cli.loading import load
from pairflip.cli.results import FOLDERS, check_folder, checked_place, finish, refuse_journal
from pairflip.text import visible

DEFAULT_STABILITY = 50  # docs/decisions/027-stability.md


def select(
    context: typer.Context,
    *,
    table: o.TableOptions,
    model: o.ModelOptions,
    limits: o.LimitOptions,
    response: o.LossOptions,
    ridge: Annotated[
        str | None, o.in_model("--ridge", metavar="RIDGE", show_default="0; auto for classes, counts and times", help=
        "Penalty on the squares of the coefficients, in the units of the table; auto: choose the shrinkage together "
        "with the size; 0,0.1,1: from these, in units of the scaled columns.")] = None,
    sizes: o.Sizes = None,
    cv: Annotated[str, o.in_search("--cv", metavar="CV", help=
        "auto: ten folds, repeated 5 to 100 times as the table allows; 5x10: five times; loo: leave one row out; "
        "blocks:5: five blocks of neighbouring rows, for tables in the order of time.")] = "auto",
    choose: Annotated[Literal["auto", "best", "one_se", "bic", "ebic"], o.in_search("--choose", help=
        "Rule for the size: the lowest held-out error (best), the smallest size within one standard error of it "
        "(one_se), the lowest BIC or EBIC of the fits on all rows; auto: none where nothing predicts, else the "
        "smallest about as good as the best.")] = "auto",
    search: o.SearchOptions,
    stability: Annotated[int, o.in_search("--stability", metavar="N", help=
        "Pairs of random halves of the rows in which columns are selected again; 0: none.")] = DEFAULT_STABILITY,
    stability_at: Annotated[
        Literal["chosen", "all"], o.in_search("--stability-at", help="At the recommended size, or at all.")] = "chosen",
    null: Annotated[int, o.in_search("--null", metavar="N", help=
        "Shuffle the target so often, to see what noise would give.")] = 0,
    outer: Annotated[int, o.in_search("--outer", metavar="N", help=
        "Folds of a second cross validation around everything; takes N times as long; 0: none.")] = 0,
    predict_with: Annotated[Literal["auto", "subset", "average"], o.in_search("--predict-with", help=
        "What pairflip predict predicts with by default: the recommended columns, or the weighted average of models; "
        "auto: the average, unless the columns are clearly better or alike.")] = "auto",
    posterior: Annotated[bool, o.in_search("--posterior", help=
        "Show how probable it is that each column belongs in the model, beside how often it was selected (pairflip "
        "posterior).")] = False,
    run: o.RunOptions,
    journal: o.JournalFolder = None,
    shard: Annotated[
        str | None, o.in_search(metavar="I/N", help="Do only one part of the work, into the journal.")] = None,
    merge: Annotated[
        list[Path] | None, o.in_search(metavar="DIR", help="Journal of a shard to merge first. Repeat for more.")
    ] = None,
    out: Annotated[Path | None, o.out_folder("pairflip", rich_help_panel="Results")] = None,
    full: Annotated[
        bool, o.in_results("--full", help="Print all that the answer has to say, as the report has it.")] = False,
    results: o.ResultOptions,
) -> None:  # fmt: skip
    """Choose how many columns of a table predict the target best, and which, by cross validation.

    Example: pairflip select data.csv --target y
    """
    command: str = context.obj
    penalty = None if ridge is None else o.parse_ridge(ridge)
    fixed, choices = (penalty, None) if isinstance(penalty, float) else (None, penalty)
    how: dict[str, Any] = {"engine": run.engine, "n_jobs": o.check_jobs(run.jobs)}
    how["progress"] = False if results.quiet else "log"
    o.check_cv(cv)
    from pairflip.report.cautions import named_rows
    from pairflip.search.effort import as_method
    from pairflip.selection import Selection, merge_journals, run_shard, select_size, with_posterior
    from pairflip.selection.facts import alike_rows
    from pairflip.selection.folds import DEFAULT_CV, Repeats, parse_cv
    from pairflip.selection.run import identify

    method = None if search.method is None else as_method(search.method)
    selection = Selection(
        sizes=o.parse_sizes(sizes), cv=cv, schedule=search.schedule, chains=search.chains, seed=run.seed,
        polish=search.polish, prove=search.prove, method=method, effort=search.effort, stability=stability,
        stability_at=stability_at, null=null, outer=outer, ridge=choices, choose=choose, predict_with=predict_with,
    )  # fmt: skip
    if journal is None and (shard is not None or merge):
        option = "--shard" if shard is not None else "--merge"
        raise ValueError(f"{option} is given without a journal; expected --journal DIR for the work of all shards.")
    folder = Path()
    if journal is not None and shard is not None:
        refuse_journal(journal, None, table.data)
    else:
        folder = checked_place("select", out, results.force, table.data, journal)
    loaded = load(table, response)
    problem = loaded.problem(
        model, limits, ridge=fixed, quiet=results.quiet, journal=journal, n_jobs=how["n_jobs"],
        sum_up=cv == DEFAULT_CV or isinstance(parse_cv(cv), Repeats),
    )  # fmt: skip
    how["groups"] = loaded.groups
    if journal is not None and shard is not None:
        n_chains = run_shard(problem, selection, journal=journal, shard=shard, **how)
        typer.echo(
            f"Shard {visible(shard)} is done: the journal {visible(str(journal))} holds {n_chains} finished "
            "chains. When all shards are done, the same command without --shard gives the result; add --merge DIR "
            "for journals elsewhere."
        )
        return
    inclusion = None
    if posterior:  # first, since it is the shorter work, and a problem without such probabilities is refused early
        from pairflip.search.posterior import posterior as weigh_models

        own_journal = None if journal is None else journal / "posterior"
        inclusion = weigh_models(problem, seed=run.seed, journal=own_journal, n_jobs=run.jobs)
    if journal is not None and merge:
        merge_journals(journal, merge, identify(problem, selection, engine=run.engine, groups=loaded.groups))
    curve = select_size(problem, selection, journal=journal, **how)
    if inclusion is not None:
        curve = with_posterior(curve, inclusion)
    dates = {"dates": True} if loaded.table.row_dates else {}
    alike = {} if loaded.groups else alike_rows(curve, loaded.table.repeated)
    curve = replace(curve, facts={**curve.facts, **dates, **alike, **named_rows(curve, loaded.table.row_names)})
    used = context.params | {
        "sizes": o.written_sizes(curve.settings["sizes"]), "method": selection.method, "loss": loaded.loss,
        "stability": selection.stability,
        "ridge": ridge if choices else "auto" if curve.ridge_surface is not None else problem.ridge,
    }  # fmt: skip
    if loaded.loss == "squares":
        del used["loss"]
    if not posterior:
        del used["posterior"]
    settings = run_settings(context, used, folder)
    finish(curve, loaded.table, command, settings, folder, results.force, results.as_json, full, journal)


def demo(
    context: typer.Context,
    sizes: Annotated[str, typer.Option("--sizes", metavar="SIZES", help=
        "Numbers of columns to try: 1-12, or 1,2,5.")] = "1-12",
    seed: o.Seed = 0,
    jobs: o.Jobs = -1,
    out: Annotated[Path, typer.Option(
        "--out", "-o", metavar="DIR", help="Result folder; an older result is replaced.")] = Path("pairflip-demo"),
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
) -> None:  # fmt: skip
    """Choose columns of a real table: diabetes progression of 442 patients, 64 columns."""
    wanted, threads = o.parse_sizes(sizes), o.check_jobs(jobs)
    from pairflip.datasets import load_diabetes_products
    from pairflip.problem import SubsetProblem
    from pairflip.selection import select_size
    from pairflip.tables import Table
    from pairflip.text import row_numbers

    check_folder(out, True, FOLDERS["select"])
    data = load_diabetes_products()
    table = Table(data.X, data.y, data.names, row_numbers(len(data.y)), "diabetes progression", "diabetes")
    problem = SubsetProblem(table.X, table.y, names=table.names)
    curve = select_size(
        problem, wanted, seed=seed, stability=DEFAULT_STABILITY, n_jobs=threads,
        progress=False if quiet else "log",
    )  # fmt: skip
    finish(curve, table, context.obj, {}, out, force=True, as_json=as_json)
    if not as_json:
        typer.echo("The table: diabetes progression of 442 patients; 10 measurements, their squares and products.")
