"""`pairflip theory` and `pairflip reproduce`: what the sampler should find, and whether the paper's claims hold."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pairflip.cli import options as o
from pairflip.cli.errors import say
from pairflip.cli.printing import print_json
from pairflip.cli.results import FolderContents, check_folder, new_folder

if TYPE_CHECKING:
    from pairflip.theory import TheoryCurve

_COLUMNS = ("rho", "beta", "epsilon", "epsilon_g", "entropy", "true_positive_rate", "precision", "at_stability")


def reproduce(
    context: typer.Context,
    what: Annotated[str, typer.Argument(help="fig1, fig2, fig3, table1, table2, section3 or all.", metavar="WHAT")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Result folder.")],
    scale: Annotated[
        Literal["quick", "paper"], typer.Option("--scale", help="Minutes on a laptop, or as in the paper.")
    ] = "quick",
    data: Annotated[
        Path | None, typer.Option("--data", metavar="TABLE", help="Supernova table of table1 and table2.")
    ] = None,
    engine: o.EngineName = "auto",
    seed: o.Seed = 0,
    jobs: o.Jobs = -1,
    journal: o.JournalFolder = None,
    force: o.Force = False,
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
) -> None:
    """Recompute the figures and tables of Obuchi & Kabashima (2016), with theory and a verdict on every claim.

    Example: pairflip reproduce all --scale quick --out results
    """
    from pairflip.engines import get_engine
    from pairflip.paper.reproduce.run import Settings, write_outcome
    from pairflip.paper.reproduce.run import reproduce as compute
    from pairflip.paper.reproduce.scales import FILES, SCALES, parts_of

    get_engine(engine)  # an unknown name is refused before anything is computed
    parts = parts_of(what, data)
    contents = FolderContents(FILES, "verdict.json")
    check_folder(out, force, contents)
    settings = Settings(parts, SCALES[scale], data, engine, seed, jobs, journal, context.obj)
    outcome = compute(settings, (lambda _: None) if quiet else say)
    with new_folder(out, force, contents) as part:
        write_outcome(outcome, settings, part)
    if as_json:
        print_json(outcome.verdict)
        return
    for claim in outcome.claims:
        typer.echo(f"{'holds' if claim.holds else 'FAILS'}  {claim.name}: {claim.claim}")
        typer.echo(f"       Here: {claim.reason}.")
    for name, why in outcome.skipped.items():
        typer.echo(f"left out  {name}: {why}.")
    typer.echo(f"Points, figures and verdict: {out}")


def theory(
    rho: Annotated[list[float] | None, typer.Option(help="Size k / N; repeat it for several.")] = None,
    beta: Annotated[list[str] | None, typer.Option(help="Inverse temperature, a number or inf; repeatable.")] = None,
    betas: Annotated[str | None, typer.Option(help="Many of them, as FIRST:LAST:COUNT, evenly spaced in log.")] = None,
    alpha: Annotated[float, typer.Option(help="Rows per column, M / N.")] = 0.5,
    rho0: Annotated[float, typer.Option(help="Fraction of the columns that are true.")] = 0.1,
    var_x: Annotated[float, typer.Option(help="Variance of the true coefficients.")] = 10.0,
    var_noise: Annotated[float, typer.Option(help="Variance of the noise.")] = 0.1,
    plot: Annotated[Path | None, typer.Option(help="Draw epsilon and epsilon_g: .svg, .png or .pdf.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
) -> None:
    """Compute, without sampling, the errors of the planted model: at the given betas, or at the AT point and T = 0."""
    from pairflip.theory import Planted, at_point, curve_over_beta, solve

    if not rho:
        raise ValueError(
            "no size was given; expected --rho with the fraction of the columns to select, for instance --rho 0.1."
        )
    model = Planted(alpha, rho0, var_x, var_noise)
    wanted = _betas(beta, betas)
    if plot is not None:
        _check_plot(plot, rho, wanted)
    rows: list[dict[str, Any]] = []
    curves = []
    for size in rho:
        if wanted:
            curves.append(curve_over_beta(wanted, size, model))
            rows += _rows(curves[-1])
        else:
            at = at_point(size, model)
            rows += [_row(at.state, "AT point", at.note), _row(solve(math.inf, size, model), "T = 0")]
    if plot is not None:
        _draw(plot, rho, wanted, curves, model)
    if as_json:
        typer.echo(json.dumps(rows, indent=1, allow_nan=False))
    else:
        _print(rows, f"alpha = {alpha:g}, rho0 = {rho0:g}, var_x = {var_x:g}, var_noise = {var_noise:g}")


def _betas(single: list[str] | None, many: str | None) -> list[float]:
    """The betas of both options, those of the range first."""
    import numpy as np

    from pairflip.paper.theory.model import check_beta

    betas: list[float] = []
    if many is not None:
        try:
            first, last, count = many.split(":")
            low, high, steps = float(first), float(last), int(count)
        except ValueError:
            low, high, steps = math.nan, math.nan, 0
        if not (0 < low <= high < math.inf and 1 <= steps <= 100_000):
            raise ValueError(
                f"--betas is {many!r}; expected FIRST:LAST:COUNT with 0 < FIRST <= LAST, as in 0.1:1e4:100."
            )
        betas += np.geomspace(low, high, steps).tolist()
    return betas + [check_beta(each) for each in single or []]


def _number(value: Any) -> float | None:
    """JSON knows neither NaN nor infinity."""
    return float(value) if math.isfinite(value) else None


def _row(state: Any, where: str, note: str = "") -> dict[str, Any]:
    row: dict[str, Any] = {"where": where, "exists": bool(state.exists), "stable": bool(state.stable)}
    row |= {"zero_energy": bool(state.zero_energy), "others": int(state.others)}
    row |= {name: _number(getattr(state, name)) for name in _COLUMNS}
    row["temperature"] = _number(state.temperature) if state.exists else None
    return row | {"note": "; ".join(dict.fromkeys(each for each in (state.note, note) if each))}


def _rows(curve: TheoryCurve) -> list[dict[str, Any]]:
    states: Any = curve.to_pandas().itertuples()
    return [_row(state, "T = 0" if math.isinf(state.beta) else "beta") for state in states]


def _check_plot(path: Path, sizes: list[float], betas: list[float]) -> None:
    if path.suffix.lower() not in (".svg", ".png", ".pdf"):
        raise ValueError(f"--plot is {str(path)!r}; expected a name that ends in .svg, .png or .pdf.")
    if not path.resolve().parent.is_dir():
        raise ValueError(f"--plot is {str(path)!r}, in a folder that does not exist; make the folder first.")
    if len(sizes) > 1 and len(betas) > 1:
        raise ValueError(
            f"--plot was given {len(sizes)} sizes and {len(betas)} betas; expected several of only one of them."
        )


def _draw(path: Path, sizes: list[float], betas: list[float], curves: list[TheoryCurve], model: Any) -> None:
    """Errors over the sizes, or over the temperature: at the given betas if they make a curve, or at many others."""
    import numpy as np
    from matplotlib.figure import Figure

    from pairflip.report.figures_temperature import plot_theory
    from pairflip.report.save import figure_bytes, write_whole
    from pairflip.theory import at_point, curve_over_beta, curve_over_rho

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    ax = figure.add_subplot()
    if len(sizes) > 1:
        plot_theory(curve_over_rho(sorted(sizes), model, at=betas[0] if betas else "at"), ax)
    else:
        centre = at_point(sizes[0], model).beta
        centre = centre if math.isfinite(centre) else 10.0
        many = len(betas) >= 10
        plot_theory(curves[0] if many else curve_over_beta(centre * np.geomspace(1e-3, 1e2, 200), sizes[0], model), ax)
    try:
        write_whole(path, figure_bytes(figure, path.suffix.lower()[1:]), "the plot")
    except OSError as error:
        raise ValueError(str(error)) from None


def _print(rows: list[dict[str, Any]], title: str) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None)
    heads = ("where", "rho", "beta", "epsilon", "epsilon_g", "entropy", "TPR", "precision", "AT stability", "note")
    for head in heads:
        table.add_column(head, justify="left" if head in ("where", "note") else "right", overflow="fold")
    for row in rows:
        numbers = ["-" if row[name] is None else f"{row[name]:.6g}" for name in _COLUMNS]
        if row["where"] == "T = 0":
            numbers[1] = "inf"
        table.add_row(row["where"], *numbers, escape(row["note"]))
    typer.echo(f"Replica-symmetric theory of the planted model, {title}")
    Console(width=None if sys.stdout.isatty() else 200).print(table)
    if any(row["exists"] and not row["stable"] for row in rows):
        typer.echo("AT stability above 1: replica symmetry is broken, and the numbers of that line are formal values.")
