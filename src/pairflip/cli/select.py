"""`pairflip select`: how many columns, which, and how sure. The main job."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairflip.cli import options as o
from pairflip.cli.config import run_settings
from pairflip.cli.data import load
from pairflip.cli.errors import plain_errors, typed
from pairflip.cli.limits import LimitOptions
from pairflip.cli.options import in_model, in_results, in_search
from pairflip.cli.result_files import finish
from pairflip.cli.result_folder import default_folder, refuse_folder_of, refuse_journal
from pairflip.cli.subjects import LossOptions, ModelOptions, ResultOptions, RunOptions, SearchOptions, TableOptions
from pairflip.interrupt import interrupted

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem
    from pairflip.search.posterior import Posterior
    from pairflip.selection import Selection, SizeCurve


DEFAULT_STABILITY = 50  # docs/decisions/027-stability.md
_WRITING_S = 3.5  # the page, figures and tables, on one core


class StabilitySizes(StrEnum):
    """Which sizes half-samples look at."""

    CHOSEN = "chosen"
    ALL = "all"


RidgeOrAuto = Annotated[
    str | None,
    in_model("--ridge", metavar="RIDGE", show_default="0; auto for classes, counts and times",
             help="Penalty on the squares of the coefficients, in the units of the table; auto: choose the shrinkage "
             "together with the size; 0,0.1,1: from these, in units of the scaled columns."),
]  # fmt: skip
Cv = Annotated[
    str,
    in_search("--cv", metavar="CV", help="5x10: ten folds, five times; loo: leave one row out; 10: ten folds; "
              "blocks:5: five blocks of neighbouring rows, for tables in the order of time."),
]  # fmt: skip
StabilityPairs = Annotated[
    int,
    in_search("--stability", metavar="N", help="Pairs of random halves of the rows in which columns are selected "
              "again; 0: none."),
]  # fmt: skip
StabilityAt = Annotated[StabilitySizes, in_search("--stability-at", help="At the recommended size, or at all.")]
Null = Annotated[
    int, in_search("--null", metavar="N", help="Shuffle the target so often, to see what noise would give.")
]
Outer = Annotated[
    int,
    in_search("--outer", metavar="N", help="Folds of a second cross validation around everything; takes N times as "
              "long; 0: none."),
]  # fmt: skip
ShowPosterior = Annotated[
    bool,
    in_search("--posterior", help="Show how probable it is that each column belongs in the model, beside how often it "
              "was selected (pairflip posterior)."),
]  # fmt: skip
Shard = Annotated[str | None, in_search(metavar="I/N", help="Do only one part of the work, into the journal.")]
Merge = Annotated[
    list[Path] | None, in_search(metavar="DIR", help="Journal of a shard to merge first. Repeat for more.")
]
Out = Annotated[
    Path | None,
    in_results("--out", "-o", metavar="DIR", help="Result folder.", show_default="name of the table + -pairflip"),
]


def select(
    context: typer.Context,
    *,
    table: TableOptions,
    model: ModelOptions,
    limits: LimitOptions,
    fitted: LossOptions,
    ridge: RidgeOrAuto = None,
    sizes: o.Sizes = None,
    cv: Cv = "5x10",
    search: SearchOptions,
    stability: StabilityPairs = DEFAULT_STABILITY,
    stability_at: StabilityAt = StabilitySizes.CHOSEN,
    null: Null = 0,
    outer: Outer = 0,
    posterior: ShowPosterior = False,
    run: RunOptions,
    journal: o.JournalFolder = None,
    shard: Shard = None,
    merge: Merge = None,
    out: Out = None,
    results: ResultOptions,
) -> None:
    """Choose how many columns of a table predict the target best, and which, by cross validation.

    Example: pairflip select data.csv --target y
    """
    command = typed(context)
    with plain_errors(partial(interrupted, journal, command)):
        from pairflip.cli.result_folder import check_folder

        penalty = o.parse_ridge(ridge)
        chooses = isinstance(penalty, (str, list))
        fixed = penalty if isinstance(penalty, float) else None
        progress = False if results.quiet else "log"
        how = {"engine": run.engine, "n_jobs": o.check_jobs(run.jobs), "progress": progress}
        o.check_cv(cv)
        from pairflip.search.effort import as_method
        from pairflip.selection import Selection, with_posterior

        method = None if search.method is None else as_method(search.method.value)
        chosen = Selection(
            o.parse_sizes(sizes), cv, search.schedule.value_for_api, search.chains, run.seed, search.polish, method,
            search.effort.value, stability, stability_at.value, null, outer,
            penalty if chooses else None, search.prove,  # type: ignore[arg-type]
        )  # fmt: skip
        if journal is None and (shard is not None or merge):
            option = "--shard" if shard is not None else "--merge"
            raise ValueError(f"{option} is given without a journal; expected --journal DIR for the work of all shards.")
        folder = default_folder(table.data) if out is None else out
        refuse_journal(journal, folder if shard is None else None, table.data)
        if shard is not None:
            assert journal is not None
            loaded = load(table, fitted)
            problem = loaded.problem(model, limits, ridge=fixed, quiet=results.quiet)
            _one_part(problem, chosen, journal, shard, groups=loaded.groups, **how)
            return
        check_folder(folder, results.force)
        refuse_folder_of(folder, table.data)
        loaded = load(table, fitted)
        problem = loaded.problem(model, limits, ridge=fixed, quiet=results.quiet)
        probable = _probabilities(problem, run, journal) if posterior else None
        curve = _whole(problem, chosen, journal, merge or [], groups=loaded.groups, **how)
        if probable is not None:
            curve = with_posterior(curve, probable)
        if loaded.table.row_dates:
            curve = replace(curve, facts={**curve.facts, "dates": True})
        from pairflip.report.cautions import named_heavy_row

        curve = replace(curve, facts={**curve.facts, **named_heavy_row(curve, loaded.table.row_names)})
        used = {**context.params, "sizes": o.written_sizes(curve.settings["sizes"]), "method": chosen.method}
        used["stability"] = chosen.stability
        used["ridge"] = ridge if chooses else "auto" if curve.ridge_surface is not None else problem.ridge
        if loaded.loss is o.LossName.SQUARES:
            del used["loss"]
        else:
            used["loss"] = loaded.loss
        if not posterior:
            del used["posterior"]
        finish(
            curve, loaded.table, command, run_settings(context, used, folder), folder, results.force, results.as_json
        )


def _whole(
    problem: SubsetProblem, chosen: Selection, journal: Path | None, shards: list[Path], **run: Any
) -> SizeCurve:
    from pairflip.selection import merge_journals, select_size
    from pairflip.selection.progress import followed_by
    from pairflip.selection.run import identify

    if shards:
        assert journal is not None
        merge_journals(journal, shards, identify(problem, chosen, engine=run["engine"], groups=run["groups"]))
    with followed_by(_WRITING_S):
        return select_size(problem, chosen, journal=journal, **run)


def _probabilities(problem: SubsetProblem, run: RunOptions, journal: Path | None) -> Posterior:
    """First, since it is the shorter work, and what there are no such probabilities for is then said at once."""
    from pairflip.search.posterior import posterior as weigh_models

    folder = None if journal is None else journal / "posterior"
    return weigh_models(problem, seed=run.seed, journal=folder, n_jobs=run.jobs)


def _one_part(problem: SubsetProblem, chosen: Selection, journal: Path, shard: str, **run: Any) -> None:
    from pairflip.selection import run_shard
    from pairflip.text import visible

    chains = run_shard(problem, chosen, journal=journal, shard=shard, **run)
    typer.echo(
        f"Shard {visible(shard)} is done: the journal {visible(str(journal))} holds {chains} finished chains. When all "
        "shards are done, the same command without --shard gives the result; add --merge DIR for journals elsewhere."
    )
