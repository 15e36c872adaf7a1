"""`pairflip sample`: supports of one size at a finite temperature, and how often each column is in them."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairflip.cli import options as o
from pairflip.cli.data import ModelOptions, TableOptions, load
from pairflip.cli.errors import plain_errors
from pairflip.cli.result_folder import refuse_input, refuse_journal
from pairflip.cli.table_file import check_out, write_lines
from pairflip.interrupt import interrupted

if TYPE_CHECKING:
    from pairflip.search.samples import Samples

K = Annotated[int, typer.Option("--k", "-k", metavar="K", min=1, help="Number of columns.")]
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
Out = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write all columns to this .csv or .tsv file.")
]
_HEADS = ("column", "inclusion_probability", "inclusion_se")


def sample(
    context: typer.Context,
    data: o.Data = None,
    k: K = ...,  # type: ignore[assignment]
    target: o.Target = None,
    beta: Beta = "noise",
    ladder: Ladder = False,
    sweeps: Sweeps = 2000,
    chains: Chains = 4,
    show: Shown = 10,
    drop: o.Drop = None,
    keep: o.Keep = None,
    index: o.Index = None,
    drop_text: o.DropText = False,
    missing: o.MissingValues = None,
    sheet: o.Sheet = None,
    decimal: o.Decimal = None,
    thousands: o.Thousands = None,
    weights: o.Weights = None,
    center: o.CenterOption = o.Center.FOLD,
    always: o.Always = None,
    ridge: o.Ridge = 0.0,
    seed: o.Seed = 0,
    jobs: o.Jobs = -1,
    journal: o.JournalFolder = None,
    engine: o.EngineName = "auto",
    out: Out = None,
    force: o.Force = False,
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
    config: o.Config = None,
) -> None:
    """Draw sets of k columns, the better the more often, and say how often each column is in them.

    Example: pairflip sample data.csv --target y --k 5
    """
    command = shlex.join(["pairflip", *(context.obj or [])])
    with plain_errors(partial(interrupted, journal, command)):
        from pairflip.search.sampling import sample as draw
        from pairflip.search.sampling import temper

        cold, threads = parse_beta(beta), o.check_jobs(jobs)
        if out is not None:
            check_out(out, force)
            refuse_input(out, data, "the table")
        refuse_journal(journal, None, data)
        given = TableOptions(
            data, target, drop or (), keep or (), index, drop_text, missing, sheet, decimal, thousands, weights
        )
        loaded = load(given)
        problem = loaded.problem(ModelOptions(center, always or (), ridge), quiet)
        how: dict[str, Any] = {"sweeps": sweeps, "chains": chains, "seed": seed, "engine": engine, "n_jobs": threads}
        how["journal"] = journal
        found = temper(problem, k, coldest=cold, **how) if ladder else draw(problem, k, cold, **how)
        if out is not None:
            write_lines(out, _HEADS, _rows(found, len(found.names)), "the probabilities")
        if as_json:
            _print_json(found, show, target=loaded.table.target, source=loaded.table.source)
        else:
            _print(found, show)


def parse_beta(text: str) -> Any:
    """A number, or "noise"."""
    if text == "noise":
        return text
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--beta is {text!r}; expected a number >= 0, or noise.") from None


def _rows(found: Samples, most: int) -> list[tuple[str, float, float]]:
    """Columns by their probability: name, probability and its error."""
    told, error = found.inclusion_probability, found.inclusion_se
    order = sorted(range(len(found.names)), key=lambda j: -told[j])[:most]
    return [(found.names[j], float(told[j]), float(error[j])) for j in order]


def _print_json(found: Samples, most: int, **about: Any) -> None:
    from pairflip.cli.shown import print_json

    mean, error = found.energy
    print_json(
        {
            "k": found.k,
            "betas": found.betas.tolist(),
            "energy": mean.tolist(),
            "energy_se": error.tolist(),
            "acceptance": found.acceptance.tolist(),
            "exchange": found.exchange.tolist(),
            "round_trips": found.round_trips.tolist(),
            "columns": [dict(zip(_HEADS, row, strict=True)) for row in _rows(found, len(found.names))],
            "supports": [{"columns": names, "share": share} for names, share in found.most_probable(most)],
            **about,
        }
    )


def _print(found: Samples, most: int) -> None:
    from pairflip.cli.shown import print_rows
    from pairflip.text import number, percent, short

    cells = [[f"{percent(chance)} ± {100 * error:.1f}", short(name)] for name, chance, error in _rows(found, most)]
    print_rows(["in the set", "column"], cells)
    typer.echo()
    sets = [[percent(share), ", ".join(map(short, names))] for names, share in found.most_probable(most)]
    print_rows(["set", "columns"], sets)
    typer.echo()
    mean, error = found.energy
    typer.echo(
        f"Sets of {found.k} columns, each with probability proportional to exp(-beta E) at beta = {found.betas[-1]:g}: "
        f"mean energy {number(float(mean[-1]), 4)} ± {number(float(error[-1]), 2)}, "
        f"{percent(float(found.acceptance[-1]))} of flips accepted."
    )
    if found.exchange.size:
        low, high = percent(float(found.exchange.min())), percent(float(found.exchange.max()))
        typer.echo(
            f"{found.betas.size} temperatures; neighbours traded places in {low} to {high} of attempts; "
            f"{int(found.round_trips.sum())} round trips."
        )
    if found.note:
        typer.echo(f"Note: {found.note}.")
