"""`pairflip posterior` and `pairflip sample`: how probable columns are, in models of all sizes or sets of one size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairflip.cli import options as o
from pairflip.cli.config import run_settings
from pairflip.cli.loading import load
from pairflip.cli.printing import print_json, print_places, print_rows, print_text
from pairflip.cli.results import TABLE_FILES, Cell, Lines, checked_place, is_table_file, write_folder, write_lines
from pairflip.text import json_list, number, percent, plural, short

if TYPE_CHECKING:
    from pairflip.search.posterior import Posterior
    from pairflip.search.sampling import Samples
    from pairflip.tables import Table

_COLUMNS = "inclusion.csv"
_PAIRS = 1000  # in the file
_OUT = f"Result folder; a {TABLE_FILES}: the columns alone."


def posterior(
    context: typer.Context,
    *,
    table: Annotated[o.TableOptions, o.Without("groups")],
    model: o.ModelOptions,
    limits: Annotated[o.LimitOptions, o.Without("one_per_group", "min_distance", "hierarchy", "positive", "negative")],
    run: Annotated[o.RunOptions, o.Without("engine")],
    results: o.ResultOptions,
    g: Annotated[str, typer.Option("--g", metavar="G", help=
        "Of Zellner's g-prior: a number, unit (the number of rows), bric (the larger of that and the squared number of "
        "columns) or hyper (integrated out, hyper-g prior).")] = "unit",
    prior: Annotated[str, typer.Option("--prior", metavar="PRIOR", help=
        "Of the models: beta-binomial (all sizes alike), uniform (all models alike), a,b (a beta distribution) or the "
        "probability of a column.")] = "beta-binomial",
    variance: Annotated[float | None, typer.Option(help="Variance of the noise, if it is known.")] = None,
    sizes: Annotated[str | None, typer.Option("--sizes", metavar="SIZES", show_default="all", help=
        "Possible numbers of columns: 0-10.")] = None,
    sweeps: Annotated[int, typer.Option(min=20, help=
        "Length of a walk among models, if there are too many to visit all.")] = 2000,
    chains: Annotated[int, typer.Option(min=1, help="Number of such walks.")] = 4,
    show: Annotated[int, typer.Option(
        "--show", metavar="N", min=1, help="How many columns and models to print.")] = 10,
    journal: o.JournalFolder = None,
    out: Annotated[Path | None, o.out_folder("posterior", _OUT)] = None,
) -> None:  # fmt: skip
    """Say how probable it is that each column belongs in the model, averaged over all models.

    Example: pairflip posterior data.csv --target y
    """
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
    record, tables = _posterior_files(result, show)
    _write(context, place, results, result, record, tables, title, loaded.table)
    if not results.as_json:
        _print_posterior(result, record, show)
        print_places(place, journal)


def sample(
    context: typer.Context,
    *,
    table: o.PlainTable,
    model: o.ModelOptions,
    run: Annotated[o.RunOptions, o.Without("engine")],
    results: o.ResultOptions,
    k: o.K,
    beta: Annotated[str, typer.Option("--beta", metavar="BETA", help=
        "Inverse temperature, which multiplies the energy; noise: the inverse of the variance of the residuals of "
        "forward selection.")] = "noise",
    ladder: Annotated[bool, typer.Option("--temper", help=
        "Walk at a ladder of temperatures up to this one, which trade places.")] = False,
    sweeps: Annotated[int, typer.Option(min=1, help=
        "Sweeps (as many attempted flips as columns) that count.")] = 2000,
    chains: Annotated[int, typer.Option(min=1, help="Independent walks, or ladders.")] = 4,
    show: Annotated[int, typer.Option("--show", metavar="N", min=1, help="How many columns and sets to print.")] = 10,
    ridge: o.Ridge = 0.0,
    journal: o.JournalFolder = None,
    engine: o.EngineName = "auto",
    out: Annotated[Path | None, o.out_folder("sample", _OUT)] = None,
) -> None:  # fmt: skip
    """Draw sets of k columns, the better the more often, and say how often each column is in them.

    Example: pairflip sample data.csv --target y --k 5
    """
    from pairflip.search.sampling import sample as draw
    from pairflip.search.sampling import temper

    coldest, threads = _parse_beta(beta), o.check_jobs(run.jobs)
    place = checked_place("sample", out, results.force, table.data, journal)
    loaded = load(table)
    problem = loaded.problem(model, ridge=ridge, quiet=results.quiet)
    how: dict[str, Any] = {"sweeps": sweeps, "chains": chains, "engine": engine, "n_jobs": threads}
    how |= {"seed": run.seed, "journal": journal}
    result = temper(problem, k, coldest=coldest, **how) if ladder else draw(problem, k, coldest, **how)
    title = f"{loaded.table.source}: sets of {plural(result.k, 'column')} that predict {loaded.table.target}"
    record, tables = _sample_files(result, show)
    _write(context, place, results, result, record, tables, title, loaded.table)
    if not results.as_json:
        _print_sample(result, record, show)
        print_places(place, journal)


def _numbers(text: str) -> Any:
    """A number, several, or a name."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        return text
    return values[0] if len(values) == 1 else tuple(values)


def _parse_beta(text: str) -> Any:
    """A number, or "noise"."""
    try:
        return text if text == "noise" else float(text)
    except ValueError:
        raise ValueError(f"--beta is {text!r}; expected a number >= 0, or noise.") from None


def _by_probability(result: Posterior | Samples, among: Any = slice(None)) -> Lines:
    """Headings, and for each of these columns: name, probability, its error, and what is known of its coefficient."""
    table = result.to_pandas().iloc[among].sort_values("inclusion_probability", ascending=False, kind="stable")
    return list(table), list(table.itertuples(index=False, name=None))


def _posterior_files(result: Posterior, most: int) -> tuple[dict[str, Any], dict[str, Lines]]:
    """The record, and the tables by the name of their file."""
    from pairflip.report.probability_words import model_doubts

    heads, columns = _by_probability(result)
    units = result.problem.units
    supports = [
        [result.names[j] for j in support] if units is None else units.names_of(support, result.names)
        for support in result.models
    ]
    models = list(zip(result.model_probability.tolist(), supports, strict=True))
    before = result.prior.size_probability().tolist()
    sizes = list(zip(range(len(before)), result.size_probability.tolist(), before, strict=True))
    record = {
        "columns": [dict(zip(heads, row, strict=True)) for row in columns],
        "models": [{"probability": share, "columns": names} for share, names in models[:most]],
        "size_probability": result.size_probability.tolist(),
        "median_probability_model": [result.names[j] for j in result.median_probability_model],
        "intercept": result.intercept, "g": "hyper" if result.prior.g is None else result.prior.g,
        "prior": result.prior.name, "method": result.method, "assumptions": result.assumptions,
        "cautions": model_doubts(result), "acceptance": result.acceptance,
    }  # fmt: skip
    sized = [(share, len(names), json_list(names)) for share, names in models]
    tables: dict[str, Lines] = {
        _COLUMNS: (heads, columns),
        "models.csv": (("probability", "size", "columns"), sized),
        "sizes.csv": (("size", "probability", "prior_probability"), sizes),
    }
    return record, tables


def _sample_files(result: Samples, most: int) -> tuple[dict[str, Any], dict[str, Lines]]:
    """The record, and the tables by the name of their file."""
    from pairflip.report.probability_words import set_doubts

    heads, columns = _by_probability(result, result.candidates)
    sets = result.most_probable(result.energies.size)
    mean, error = result.energy
    record = {
        "k": result.k, "betas": result.betas.tolist(), "energy": mean.tolist(), "energy_se": error.tolist(),
        "acceptance": result.acceptance.tolist(), "exchange": result.exchange.tolist(),
        "round_trips": result.round_trips.tolist(), "cautions": set_doubts(result),
        "columns": [dict(zip(heads, row, strict=True)) for row in columns],
        "supports": [{"columns": names, "share": share} for names, share in sets[:most]],
    }  # fmt: skip
    exchange: list[Cell] = [*result.exchange.tolist(), None]
    ladder = zip(record["betas"], record["energy"], record["energy_se"], record["acceptance"], exchange, strict=True)
    tables: dict[str, Lines] = {
        _COLUMNS: (heads, columns),
        "sets.csv": (("share", "columns"), [(share, json_list(names)) for names, share in sets]),
        "pairs.csv": (("column", "other", "share"), result.pairs(_PAIRS)),
        "temperatures.csv": (("beta", "energy", "energy_se", "acceptance", "exchange"), list(ladder)),
    }
    return record, tables


def _write(
    context: typer.Context,
    place: Path,
    options: o.ResultOptions,
    result: Posterior | Samples,
    record: dict[str, Any],
    tables: Mapping[str, Lines],
    title: str,
    table: Table,
) -> None:
    """Write a folder, or the columns alone into a file; print the record if JSON is wanted."""
    from pairflip.report.probability_words import save_probability_figures

    record |= {"target": table.target, "source": table.source}
    if is_table_file(place):
        write_lines(place, *tables[_COLUMNS], "the probabilities")
    else:
        settings = run_settings(context, context.params, place)
        write_folder(
            str(context.command.name), place, options.force, result, tables,
            {**record, "command": context.obj, "run": dict(settings)}, settings, save_probability_figures,
            title=title, target=table.target, dropped=[str(item) for item in (*table.dropped, *table.notes)],
            command=context.obj, extra={"Table": table.source},
        )  # fmt: skip
    if options.as_json:
        print_json(record)


def _print_posterior(result: Posterior, record: Mapping[str, Any], most: int) -> None:
    from pairflip.report.figures_by_column import chance_text
    from pairflip.report.probability_words import model_answer, model_doubts, model_rates

    columns = [
        [chance_text(chance, error), number(mean, 4), number(sd, 2), short(name)]
        for name, chance, error, mean, sd in (each.values() for each in record["columns"][:most])
    ]
    models = [
        [percent(each["probability"]), ", ".join(map(short, each["columns"])) or "(none)"] for each in record["models"]
    ]
    tables = [(["in the model", "coefficient", "sd", "column"], columns), (["model", "columns"], models)]
    _print(model_answer(result), model_doubts(result), tables, [model_rates(result), result.assumptions], result.note)


def _print_sample(result: Samples, record: Mapping[str, Any], most: int) -> None:
    from pairflip.report.figures_by_column import chance_text
    from pairflip.report.probability_words import set_answer, set_doubts, set_rates

    columns = [
        [chance_text(chance, error), short(name)]
        for name, chance, error in (each.values() for each in record["columns"][:most])
    ]
    sets = [[percent(each["share"]), ", ".join(map(short, each["columns"]))] for each in record["supports"]]
    tables = [(["in the set", "column"], columns), (["set", "columns"], sets)]
    condition = (
        f"Sets of {plural(result.k, 'column')}, each with probability proportional to exp(-beta E) at beta = "
        f"{result.betas[-1]:g}."
    )
    _print(set_answer(result), set_doubts(result), tables, [condition, set_rates(result)], result.note)


def _print(
    answer: str,
    doubts: Iterable[str],
    tables: Iterable[tuple[Sequence[str], Sequence[Sequence[str]]]],
    conditions: Iterable[str],
    note: str,
) -> None:
    """The answer as plain text, what to doubt about it, tables of headings and rows, what they depend on, a note."""
    from pairflip.report.vocabulary import plain

    for text in (plain(answer), *doubts):
        print_text(text)
        typer.echo()
    for header, rows in tables:
        print_rows(header, rows)
        typer.echo()
    for text in (*conditions, *([f"Note: {note}."] if note else [])):
        print_text(text)
