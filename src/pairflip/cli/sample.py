"""`pairflip sample`: supports of one size at a finite temperature, and how often each column is in them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairflip.cli import options as o
from pairflip.cli.errors import plain_errors
from pairflip.cli.loading import load
from pairflip.cli.results import COLUMNS, Cell, Lines, checked_place, finish_probabilities
from pairflip.text import json_list, percent, plural, short

if TYPE_CHECKING:
    from pairflip.search.sampling import Samples

Beta = Annotated[
    str,
    typer.Option("--beta", metavar="BETA", help="Inverse temperature, which multiplies the energy; noise: the inverse "
                 "of the variance of the residuals of forward selection."),
]  # fmt: skip
Ladder = Annotated[
    bool, typer.Option("--temper", help="Walk at a ladder of temperatures up to this one, which trade places.")
]
Sweeps = Annotated[int, typer.Option(min=1, help="Sweeps (as many attempted flips as columns) that count.")]
Chains = Annotated[int, typer.Option(min=1, help="Independent walks, or ladders.")]
Shown = Annotated[int, typer.Option("--show", metavar="N", min=1, help="How many columns and sets to print.")]
Out = Annotated[Path | None, o.folder_or_table("sample")]
_HEADS = ("column", "inclusion_probability", "inclusion_se")
_PAIRS = 1000  # in the file


def sample(
    context: typer.Context,
    *,
    table: o.PlainTable,
    model: o.ModelOptions,
    run: Annotated[o.RunOptions, o.Without("engine")],
    results: o.ResultOptions,
    k: o.K,
    beta: Beta = "noise",
    ladder: Ladder = False,
    sweeps: Sweeps = 2000,
    chains: Chains = 4,
    show: Shown = 10,
    ridge: o.Ridge = 0.0,
    journal: o.JournalFolder = None,
    engine: o.EngineName = "auto",
    out: Out = None,
) -> None:
    """Draw sets of k columns, the better the more often, and say how often each column is in them.

    Example: pairflip sample data.csv --target y --k 5
    """
    with plain_errors(journal, context.obj):
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
        files, shown = _files(result, show), partial(_shown, result, show)
        finish_probabilities(context, place, results, result, files, shown, title, loaded.table)


def _parse_beta(text: str) -> Any:
    """A number, or "noise"."""
    if text == "noise":
        return text
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--beta is {text!r}; expected a number >= 0, or noise.") from None


def _rows(result: Samples, most: int) -> list[tuple[str, float, float]]:
    """Columns that can be chosen by their probability: name, probability and its error."""
    chance, error = result.inclusion_probability, result.inclusion_se
    order = sorted(result.candidates.tolist(), key=lambda j: -chance[j])[:most]
    return [(result.names[j], float(chance[j]), float(error[j])) for j in order]


def _files(result: Samples, most: int) -> tuple[dict[str, Any], dict[str, Lines]]:
    """The record, and the tables by the name of their file."""
    from pairflip.report.probability_words import set_doubts

    columns = _rows(result, len(result.names))
    sets = result.most_probable(result.energies.size)
    mean, error = result.energy
    record = {
        "k": result.k, "betas": result.betas.tolist(), "energy": mean.tolist(), "energy_se": error.tolist(),
        "acceptance": result.acceptance.tolist(), "exchange": result.exchange.tolist(),
        "round_trips": result.round_trips.tolist(), "cautions": set_doubts(result),
        "columns": [dict(zip(_HEADS, row, strict=True)) for row in columns],
        "supports": [{"columns": names, "share": share} for names, share in sets[:most]],
    }  # fmt: skip
    exchange: list[Cell] = [*result.exchange.tolist(), None]
    ladder = zip(record["betas"], record["energy"], record["energy_se"], record["acceptance"], exchange, strict=True)
    tables: dict[str, Lines] = {
        COLUMNS: (_HEADS, columns),
        "sets.csv": (("share", "columns"), [(share, json_list(names)) for names, share in sets]),
        "pairs.csv": (("column", "other", "share"), result.pairs(_PAIRS)),
        "temperatures.csv": (("beta", "energy", "energy_se", "acceptance", "exchange"), list(ladder)),
    }
    return record, tables


def _shown(result: Samples, most: int) -> tuple[Any, Any, Any, Any]:
    """The answer and its doubts, tables of columns and of sets, and what the probabilities are conditional on."""
    from pairflip.report.figures_by_column import chance_text
    from pairflip.report.probability_words import set_answer, set_doubts, set_rates

    columns = [[chance_text(p, e), short(name)] for name, p, e in _rows(result, most)]
    sets = [[percent(share), ", ".join(map(short, names))] for names, share in result.most_probable(most)]
    tables = [(["in the set", "column"], columns), (["set", "columns"], sets)]
    condition = (
        f"Sets of {plural(result.k, 'column')}, each with probability proportional to exp(-beta E) at beta = "
        f"{result.betas[-1]:g}."
    )
    return set_answer(result), set_doubts(result), tables, [condition, set_rates(result)]
