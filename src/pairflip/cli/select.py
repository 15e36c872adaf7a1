"""`pairflip select`: how many columns, which, and how sure. The main job."""

from __future__ import annotations

import shlex
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from pairflip.cli import options as o
from pairflip.cli.config import run_settings
from pairflip.cli.data import ModelOptions, TableOptions, load
from pairflip.cli.errors import plain_errors
from pairflip.cli.limits import LimitOptions
from pairflip.cli.result_files import finish
from pairflip.cli.result_folder import default_folder, refuse_folder_of, refuse_journal
from pairflip.interrupt import interrupted

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem
    from pairflip.search.averaged import Posterior
    from pairflip.selection import Selection, SizeCurve


def select(
    context: typer.Context,
    data: o.Data = None,
    target: o.Target = None,
    drop: o.Drop = None,
    keep: o.Keep = None,
    index: o.Index = None,
    drop_text: o.DropText = False,
    categories: o.Categories = None,
    missing: o.MissingValues = None,
    sheet: o.Sheet = None,
    decimal: o.Decimal = None,
    thousands: o.Thousands = None,
    weights: o.Weights = None,
    groups: o.Groups = None,
    center: o.CenterOption = o.Center.FOLD,
    always: o.Always = None,
    column_groups: o.ColumnGroups = None,
    one_per_group: o.OnePerGroup = False,
    min_distance: o.MinDistance = None,
    hierarchy: o.Hierarchy = False,
    positive: o.Positive = None,
    negative: o.Negative = None,
    loss: o.LossOption = o.LossName.SQUARES,
    offset: o.Offset = None,
    ridge: o.RidgeOrAuto = None,
    sizes: o.Sizes = None,
    cv: o.Cv = "5x10",
    effort: o.EffortOption = o.EffortName.NORMAL,
    method: o.MethodOption = None,
    schedule: o.ScheduleOption = o.ScheduleName.AUTO,
    chains: o.Chains = None,
    polish: o.Polish = True,
    prove: o.Prove = True,
    stability: o.StabilityPairs = o.DEFAULT_STABILITY,
    stability_at: o.StabilityAt = o.StabilitySizes.CHOSEN,
    null: o.Null = 0,
    outer: o.Outer = 0,
    posterior: o.ShowPosterior = False,
    surface: o.WithSurface = False,
    seed: o.Seed = 0,
    jobs: o.Jobs = -1,
    engine: o.EngineName = "auto",
    journal: o.JournalFolder = None,
    shard: o.Shard = None,
    merge: o.Merge = None,
    out: o.Out = None,
    force: o.Force = False,
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
    config: o.Config = None,
) -> None:
    """Choose how many columns of a table predict the target best, and which, by cross validation.

    Example: pairflip select data.csv --target y
    """
    command = shlex.join(["pairflip", *(context.obj or [])])
    with plain_errors(partial(interrupted, journal, command)):
        from pairflip.cli.result_folder import check_folder

        given = TableOptions(
            data, target, drop or (), keep or (), index, drop_text, missing, sheet, decimal, thousands, weights, groups,
            offset, loss, categories or (),
        )  # fmt: skip
        penalty = o.parse_ridge(ridge)
        chooses = isinstance(penalty, (str, list))
        limits = LimitOptions(column_groups, one_per_group, min_distance, hierarchy, positive or (), negative or ())
        model = ModelOptions(center, always or (), penalty if isinstance(penalty, float) else None, limits)
        run = {"engine": engine, "n_jobs": o.check_jobs(jobs), "progress": False if quiet else "log"}
        o.check_cv(cv)
        from pairflip.search.effort import as_method
        from pairflip.selection import Selection, with_posterior

        how = None if method is None else as_method(method.value)
        chosen = Selection(
            o.parse_sizes(sizes), cv, schedule.value_for_api, chains, seed, polish, how, effort.value,
            stability, stability_at.value, null, outer, penalty if chooses else None, prove, surface,  # type: ignore[arg-type]
        )  # fmt: skip
        if journal is None and (shard is not None or merge):
            option = "--shard" if shard is not None else "--merge"
            raise ValueError(f"{option} is given without a journal; expected --journal DIR for the work of all shards.")
        folder = default_folder(data) if out is None else out
        refuse_journal(journal, folder if shard is None else None, data)
        if shard is not None:
            assert journal is not None
            loaded = load(given)
            problem = loaded.problem(model, quiet)
            _one_part(problem, chosen, journal, shard, groups=loaded.groups, **run)
            return
        check_folder(folder, force)
        refuse_folder_of(folder, data)
        loaded = load(given)
        problem = loaded.problem(model, quiet)
        probable = _probabilities(problem, seed, journal, jobs) if posterior else None
        curve = _whole(problem, chosen, journal, merge or [], groups=loaded.groups, **run)
        if probable is not None:
            curve = with_posterior(curve, probable)
        if loaded.table.row_dates:
            curve = replace(curve, facts={**curve.facts, "dates": True})
        used = {**context.params, "sizes": o.written_sizes(curve.settings["sizes"]), "method": chosen.method}
        used["stability"] = chosen.stability
        used["ridge"] = ridge if chooses else problem.ridge
        if loss is o.LossName.SQUARES:
            del used["loss"]
        if not posterior:
            del used["posterior"]
        finish(curve, loaded.table, command, run_settings(context, used, folder), folder, force, as_json)


def _whole(
    problem: SubsetProblem, chosen: Selection, journal: Path | None, shards: list[Path], **run: Any
) -> SizeCurve:
    from pairflip.selection import merge_journals, select_size
    from pairflip.selection.run import identify

    if shards:
        assert journal is not None
        merge_journals(journal, shards, identify(problem, chosen, engine=run["engine"], groups=run["groups"]))
    return select_size(problem, chosen, journal=journal, **run)


def _probabilities(problem: SubsetProblem, seed: int, journal: Path | None, jobs: int) -> Posterior:
    """First, since it is the shorter work, and what there are no such probabilities for is then said at once."""
    from pairflip.search.posterior import posterior as weigh_models

    folder = None if journal is None else journal / "posterior"
    return weigh_models(problem, seed=seed, journal=folder, n_jobs=jobs)


def _one_part(problem: SubsetProblem, chosen: Selection, journal: Path, shard: str, **run: Any) -> None:
    from pairflip.selection import run_shard
    from pairflip.text import visible

    chains = run_shard(problem, chosen, journal=journal, shard=shard, **run)
    typer.echo(
        f"Shard {visible(shard)} is done: the journal {visible(str(journal))} holds {chains} finished chains. When all "
        "shards are done, the same command without --shard gives the result; add --merge DIR for journals elsewhere."
    )
