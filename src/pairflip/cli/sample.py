"""`pairflip sample`: supports of one size at a finite temperature, and how often each column is in them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairflip.cli import options as o
from pairflip.cli.config import run_settings
from pairflip.cli.data import load
from pairflip.cli.errors import plain_errors, typed
from pairflip.cli.probability_files import COLUMNS, Lines, ProbabilityResult, checked_place, folder_or_table
from pairflip.cli.shown import print_answer, print_json, print_rows, print_text, print_written
from pairflip.cli.signature import Without
from pairflip.cli.subjects import ModelOptions, PlainTable, ResultOptions, RunOptions
from pairflip.cli.table_file import Cell, json_list
from pairflip.interrupt import interrupted
from pairflip.text import percent, plural, short

if TYPE_CHECKING:
    from pairflip.search.sampling import Samples
    from pairflip.tables import Table

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
Out = Annotated[Path | None, folder_or_table("sample")]
_HEADS = ("column", "inclusion_probability", "inclusion_se")
_PAIRS = 1000  # in the file


def sample(
    context: typer.Context,
    *,
    table: PlainTable,
    model: ModelOptions,
    run: Annotated[RunOptions, Without("engine")],
    results: ResultOptions,
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
    command = typed(context)
    with plain_errors(partial(interrupted, journal, command)):
        from pairflip.search.sampling import sample as draw
        from pairflip.search.sampling import temper

        cold, threads = parse_beta(beta), o.check_jobs(run.jobs)
        place = checked_place("sample", out, results.force, table.data, journal)
        loaded = load(table)
        problem = loaded.problem(model, ridge=ridge, quiet=results.quiet)
        how: dict[str, Any] = {"sweeps": sweeps, "chains": chains, "engine": engine, "n_jobs": threads}
        how["seed"] = run.seed
        how["journal"] = journal
        found = temper(problem, k, coldest=cold, **how) if ladder else draw(problem, k, cold, **how)
        result = _result(found, show, loaded.table)
        result.write(place, results.force, loaded.table, command, run_settings(context, context.params, place))
        if results.as_json:
            print_json(result.record)
        else:
            _print(found, show)
            print_written(place)


def parse_beta(text: str) -> Any:
    """A number, or "noise"."""
    if text == "noise":
        return text
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--beta is {text!r}; expected a number >= 0, or noise.") from None


def _rows(found: Samples, most: int) -> list[tuple[str, float, float]]:
    """Columns that can be chosen by their probability: name, probability and its error."""
    told, error = found.inclusion_probability, found.inclusion_se
    order = sorted(found.candidates.tolist(), key=lambda j: -told[j])[:most]
    return [(found.names[j], float(told[j]), float(error[j])) for j in order]


def _result(found: Samples, most: int, table: Table) -> ProbabilityResult:
    """What is written, and printed for machines."""
    from pairflip.report.probability_words import set_doubts

    columns = _rows(found, len(found.names))
    sets = found.most_probable(found.energies.size)
    mean, error = found.energy
    record = {
        "k": found.k,
        "betas": found.betas.tolist(),
        "energy": mean.tolist(),
        "energy_se": error.tolist(),
        "acceptance": found.acceptance.tolist(),
        "exchange": found.exchange.tolist(),
        "round_trips": found.round_trips.tolist(),
        "cautions": set_doubts(found),
        "columns": [dict(zip(_HEADS, row, strict=True)) for row in columns],
        "supports": [{"columns": names, "share": share} for names, share in sets[:most]],
        "target": table.target,
        "source": table.source,
    }
    traded: list[Cell] = [*found.exchange.tolist(), None]
    ladder = zip(record["betas"], record["energy"], record["energy_se"], record["acceptance"], traded, strict=True)
    tables: dict[str, Lines] = {
        COLUMNS: (_HEADS, columns),
        "sets.csv": (("share", "columns"), [(share, json_list(names)) for names, share in sets]),
        "pairs.csv": (("column", "other", "share"), found.pairs(_PAIRS)),
        "temperatures.csv": (("beta", "energy", "energy_se", "acceptance", "exchange"), list(ladder)),
    }
    title = f"{table.source}: sets of {plural(found.k, 'column')} that predict {table.target}"
    return ProbabilityResult("sample", title, found, tables, record)


def _print(found: Samples, most: int) -> None:
    """The answer, columns and sets, and what the probabilities are conditional on."""
    from pairflip.report.figures_by_column import chance_text
    from pairflip.report.probability_words import set_answer, set_doubts, set_rates

    print_answer(set_answer(found), set_doubts(found))
    print_rows(["in the set", "column"], [[chance_text(p, e), short(name)] for name, p, e in _rows(found, most)])
    typer.echo()
    sets = [[percent(share), ", ".join(map(short, names))] for names, share in found.most_probable(most)]
    print_rows(["set", "columns"], sets)
    typer.echo()
    print_text(
        f"Sets of {plural(found.k, 'column')}, each with probability proportional to exp(-beta E) at beta = "
        f"{found.betas[-1]:g}."
    )
    print_text(set_rates(found))
    if found.note:
        print_text(f"Note: {found.note}.")
