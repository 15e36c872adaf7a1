"""`pairflip posterior`: how probable it is that a column belongs in the model."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairflip.cli import options as o
from pairflip.cli.config import run_settings
from pairflip.cli.data import load
from pairflip.cli.errors import plain_errors, typed
from pairflip.cli.limits import LimitOptions
from pairflip.cli.probability_files import COLUMNS, Lines, ProbabilityResult, checked_place, folder_or_table
from pairflip.cli.shown import print_answer, print_json, print_rows, print_text, print_written
from pairflip.cli.signature import Without
from pairflip.cli.subjects import ModelOptions, ResultOptions, RunOptions, TableOptions
from pairflip.cli.table_file import json_list
from pairflip.interrupt import interrupted
from pairflip.text import number, percent, short

if TYPE_CHECKING:
    from pairflip.search.posterior import Posterior
    from pairflip.tables import Table

G = Annotated[
    str,
    typer.Option("--g", metavar="G", help="Of Zellner's g-prior: a number, unit (the number of rows) or bric (the "
                 "larger of that and the squared number of columns)."),
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
Out = Annotated[Path | None, folder_or_table("posterior")]
_HEADS = ("column", "inclusion_probability", "inclusion_se", "coef_mean", "coef_sd")


def posterior(
    context: typer.Context,
    *,
    table: Annotated[TableOptions, Without("groups")],
    model: ModelOptions,
    limits: Annotated[LimitOptions, Without("one_per_group", "min_distance", "hierarchy", "positive", "negative")],
    run: Annotated[RunOptions, Without("engine")],
    results: ResultOptions,
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
    command = typed(context)
    with plain_errors(partial(interrupted, journal, command)):
        from pairflip.search.posterior import posterior as weigh_models

        threads, allowed = o.check_jobs(run.jobs), parse_counts(sizes)
        place = checked_place("posterior", out, results.force, table.data, journal)
        loaded = load(table)
        problem = loaded.problem(model, limits, quiet=results.quiet)
        found = weigh_models(
            problem, parse_g(g), parse_prior(prior), allowed, variance=variance, sweeps=sweeps, chains=chains,
            seed=run.seed, journal=journal, n_jobs=threads,
        )  # fmt: skip
        result = _result(found, show, loaded.table)
        result.write(place, results.force, loaded.table, command, run_settings(context, context.params, place))
        if results.as_json:
            print_json(result.record)
        else:
            _print(found, show)
            print_written(place)


def parse_g(text: str) -> Any:
    """A number, or a name."""
    try:
        return float(text)
    except ValueError:
        return text


def parse_prior(text: str) -> Any:
    """A name, a probability, or two numbers."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        return text
    return values[0] if len(values) == 1 else tuple(values)


def parse_counts(text: str | None) -> list[int] | None:
    """As `options.parse_sizes`, and 0 is a possible number of columns, too."""
    if text is None:
        return None
    first = text.strip()
    if first == "0":
        return [0]
    if first.startswith(("0-", "0,")):
        rest = o.parse_sizes(("1-" if first[1] == "-" else "") + first[2:])
        return [0, *(rest or [])]
    return o.parse_sizes(text)


def _rows(found: Posterior, most: int) -> list[tuple[str, float, float, float, float]]:
    """Columns by their probability: name, probability, its error, mean and standard deviation of the coefficient."""
    order = sorted(range(len(found.names)), key=lambda j: -found.inclusion_probability[j])[:most]
    return [
        (
            found.names[j],
            float(found.inclusion_probability[j]),
            float(found.inclusion_se[j]),
            float(found.coef_mean[j]),
            float(found.coef_sd[j]),
        )
        for j in order
    ]


def _models(found: Posterior, most: int) -> list[tuple[float, list[str]]]:
    pairs = zip(found.model_probability[:most].tolist(), found.models[:most], strict=True)
    units = found.problem.units
    return [
        (share, [found.names[j] for j in support] if units is None else units.names_of(support, found.names))
        for share, support in pairs
    ]


def _result(found: Posterior, most: int, table: Table) -> ProbabilityResult:
    """What is written, and printed for machines."""
    from pairflip.report.probability_words import model_doubts

    columns = _rows(found, len(found.names))
    models = [(share, len(names), names) for share, names in _models(found, len(found.models))]
    before = found.prior.size_probability().tolist()
    sizes = list(zip(range(len(before)), found.size_probability.tolist(), before, strict=True))
    record = {
        "columns": [dict(zip(_HEADS, row, strict=True)) for row in columns],
        "models": [{"probability": share, "columns": names} for share, _, names in models[:most]],
        "size_probability": found.size_probability.tolist(),
        "median_probability_model": [found.names[j] for j in found.median_probability_model],
        "intercept": found.intercept,
        "g": found.prior.g,
        "prior": found.prior.name,
        "method": found.method,
        "assumptions": found.assumptions,
        "cautions": model_doubts(found),
        "acceptance": found.acceptance,
        "target": table.target,
        "source": table.source,
    }
    tables: dict[str, Lines] = {
        COLUMNS: (_HEADS, columns),
        "models.csv": (("probability", "size", "columns"), [(p, k, json_list(names)) for p, k, names in models]),
        "sizes.csv": (("size", "probability", "prior_probability"), sizes),
    }
    title = f"{table.source}: which columns belong in a model of {table.target}"
    return ProbabilityResult("posterior", title, found, tables, record)


def _print(found: Posterior, most: int) -> None:
    """The answer, columns and models, and what the probabilities are conditional on."""
    from pairflip.report.figures_by_column import chance_text
    from pairflip.report.probability_words import model_answer, model_doubts, model_rates

    cells = [
        [chance_text(chance, error), number(mean, 4), number(sd, 2), short(name)]
        for name, chance, error, mean, sd in _rows(found, most)
    ]
    print_answer(model_answer(found), model_doubts(found))
    print_rows(["in the model", "coefficient", "sd", "column"], cells)
    typer.echo()
    models = [[percent(share), ", ".join(map(short, names)) or "(none)"] for share, names in _models(found, most)]
    print_rows(["model", "columns"], models)
    typer.echo()
    print_text(model_rates(found))
    print_text(found.assumptions)
    if found.note:
        print_text(f"Note: {found.note}.")
