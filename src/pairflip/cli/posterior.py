"""`pairflip posterior`: how probable it is that a column belongs in the model."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairflip.cli import options as o
from pairflip.cli.errors import plain_errors
from pairflip.cli.loading import load
from pairflip.cli.results import COLUMNS, Lines, checked_place, finish_probabilities
from pairflip.text import json_list, number, percent, short

if TYPE_CHECKING:
    from pairflip.search.posterior import Posterior

G = Annotated[
    str,
    typer.Option("--g", metavar="G", help="Of Zellner's g-prior: a number, unit (the number of rows), bric (the "
                 "larger of that and the squared number of columns) or hyper (integrated out, hyper-g prior)."),
]  # fmt: skip
Prior = Annotated[
    str,
    typer.Option("--prior", metavar="PRIOR", help="Of the models: beta-binomial (all sizes alike), uniform (all models "
                 "alike), a,b (a beta distribution) or the probability of a column."),
]  # fmt: skip
Variance = Annotated[float | None, typer.Option(help="Variance of the noise, if it is known.")]
Sizes = Annotated[
    str | None, typer.Option("--sizes", metavar="SIZES", help="Possible numbers of columns: 0-10.", show_default="all")
]
Sweeps = Annotated[int, typer.Option(min=20, help="Length of a walk among models, if there are too many to visit all.")]
Chains = Annotated[int, typer.Option(min=1, help="Number of such walks.")]
Shown = Annotated[int, typer.Option("--show", metavar="N", min=1, help="How many columns and models to print.")]
Out = Annotated[Path | None, o.folder_or_table("posterior")]
_HEADS = ("column", "inclusion_probability", "inclusion_se", "coef_mean", "coef_sd")


def posterior(
    context: typer.Context,
    *,
    table: Annotated[o.TableOptions, o.Without("groups")],
    model: o.ModelOptions,
    limits: Annotated[o.LimitOptions, o.Without("one_per_group", "min_distance", "hierarchy", "positive", "negative")],
    run: Annotated[o.RunOptions, o.Without("engine")],
    results: o.ResultOptions,
    g: G = "unit",
    prior: Prior = "beta-binomial",
    variance: Variance = None,
    sizes: Sizes = None,
    sweeps: Sweeps = 2000,
    chains: Chains = 4,
    show: Shown = 10,
    journal: o.JournalFolder = None,
    out: Out = None,
) -> None:
    """Say how probable it is that each column belongs in the model, averaged over all models.

    Example: pairflip posterior data.csv --target y
    """
    with plain_errors(journal, context.obj):
        from pairflip.search.posterior import posterior as weigh_models

        threads, allowed = o.check_jobs(run.jobs), o.parse_sizes(sizes, least=0)
        place = checked_place("posterior", out, results.force, table.data, journal)
        loaded = load(table)
        problem = loaded.problem(model, limits, quiet=results.quiet)
        result = weigh_models(
            problem, _numbers(g), _numbers(prior), allowed, variance=variance, sweeps=sweeps, chains=chains,
            seed=run.seed, journal=journal, n_jobs=threads,
        )  # fmt: skip
        title = f"{loaded.table.source}: which columns belong in a model of {loaded.table.target}"
        files, shown = _files(result, show), partial(_shown, result, show)
        finish_probabilities(context, place, results, result, files, shown, title, loaded.table)


def _numbers(text: str) -> Any:
    """A number, several, or a name."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        return text
    return values[0] if len(values) == 1 else tuple(values)


def _rows(result: Posterior, most: int) -> list[tuple[str, float, float, float, float]]:
    """Columns by their probability: name, probability, its error, mean and standard deviation of the coefficient."""
    order = sorted(range(len(result.names)), key=lambda j: -result.inclusion_probability[j])[:most]
    values = (result.inclusion_probability, result.inclusion_se, result.coef_mean, result.coef_sd)
    return [(result.names[j], *(float(each[j]) for each in values)) for j in order]  # type: ignore[misc]


def _models(result: Posterior, most: int) -> list[tuple[float, list[str]]]:
    """The most probable models: probability and names of its columns, or groups of columns."""
    pairs = zip(result.model_probability[:most].tolist(), result.models[:most], strict=True)
    units = result.problem.units
    return [
        (share, [result.names[j] for j in support] if units is None else units.names_of(support, result.names))
        for share, support in pairs
    ]


def _files(result: Posterior, most: int) -> tuple[dict[str, Any], dict[str, Lines]]:
    """The record, and the tables by the name of their file."""
    from pairflip.report.probability_words import model_doubts

    columns = _rows(result, len(result.names))
    models = [(share, len(names), names) for share, names in _models(result, len(result.models))]
    before = result.prior.size_probability().tolist()
    sizes = list(zip(range(len(before)), result.size_probability.tolist(), before, strict=True))
    record = {
        "columns": [dict(zip(_HEADS, row, strict=True)) for row in columns],
        "models": [{"probability": share, "columns": names} for share, _, names in models[:most]],
        "size_probability": result.size_probability.tolist(),
        "median_probability_model": [result.names[j] for j in result.median_probability_model],
        "intercept": result.intercept,
        "g": "hyper" if result.prior.g is None else result.prior.g,
        "prior": result.prior.name,
        "method": result.method,
        "assumptions": result.assumptions,
        "cautions": model_doubts(result),
        "acceptance": result.acceptance,
    }
    tables: dict[str, Lines] = {
        COLUMNS: (_HEADS, columns),
        "models.csv": (("probability", "size", "columns"), [(p, k, json_list(names)) for p, k, names in models]),
        "sizes.csv": (("size", "probability", "prior_probability"), sizes),
    }
    return record, tables


def _shown(result: Posterior, most: int) -> tuple[Any, Any, Any, Any]:
    """The answer and its doubts, tables of columns and of models, and what the probabilities are conditional on."""
    from pairflip.report.figures_by_column import chance_text
    from pairflip.report.probability_words import model_answer, model_doubts, model_rates

    columns = [
        [chance_text(chance, error), number(mean, 4), number(sd, 2), short(name)]
        for name, chance, error, mean, sd in _rows(result, most)
    ]
    models = [[percent(share), ", ".join(map(short, names)) or "(none)"] for share, names in _models(result, most)]
    tables = [(["in the model", "coefficient", "sd", "column"], columns), (["model", "columns"], models)]
    return model_answer(result), model_doubts(result), tables, [model_rates(result), result.assumptions]
