"""`pairflip fit`: the best columns of one size."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairflip.cli import options as o
from pairflip.cli.errors import say
from pairflip.cli.loading import load
from pairflip.cli.printing import print_json, print_rows, print_text
from pairflip.cli.results import TABLE_FILES, check_file, write_lines

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem
    from pairflip.search.best_subset import Trace


def fit(
    *,
    table: Annotated[o.TableOptions, o.Without("groups")],
    model: o.ModelOptions,
    limits: o.LimitOptions,
    response: o.LossOptions,
    search: Annotated[o.SearchOptions, o.Without("polish")],
    run: o.RunOptions,
    results: o.ResultOptions,
    k: o.K,
    ridge: o.Ridge = None,
    out: Annotated[Path | None, o.out_file(f"Write the coefficients to this {TABLE_FILES}.")] = None,
) -> None:
    """Find the best columns of one size, without asking whether it is the right size.

    Example: pairflip fit data.csv --target y --k 3
    """
    from pairflip.interrupt import exit_code
    from pairflip.search.best_subset import Interrupted, best_subset
    from pairflip.search.effort import check_size
    from pairflip.selection.facts import copy_words, target_copies

    if out is not None:
        check_file(out, results.force, table.data)
    loaded = load(table, response)
    problem = loaded.problem(model, limits, ridge=ridge, quiet=results.quiet)
    size, threads = check_size(problem, k), o.check_jobs(run.jobs)
    for text in [] if results.quiet else copy_words({"target_copies": target_copies(problem)}):
        say(text)
    interrupted = False
    try:
        trace = best_subset(
            problem, size, schedule=search.schedule, chains=search.chains, seed=run.seed, engine=run.engine,
            n_jobs=threads, progress=results.progress, method=search.method, effort=search.effort,
            prove=search.prove,
        )  # fmt: skip
    except Interrupted as error:
        say("interrupted; this is the best found so far.")
        interrupted, trace = True, error.trace
    record = _record(problem, trace) | {"target": loaded.table.target, "source": loaded.table.source}
    if out is not None:
        lines: list[list[Any]] = [[name, kind, *values] for name, kind, values in _rows(record)]
        write_lines(out, ["column", "kind", *_heads(record)], lines, "the coefficients")
    if results.as_json:
        print_json(record)
    else:
        _print(record)
    if interrupted:
        raise typer.Exit(exit_code())


def _record(problem: SubsetProblem, trace: Trace) -> dict[str, Any]:
    """The fit in plain values; R^2 counts only what the forced columns leave unexplained."""
    import numpy as np

    from pairflip.report.proof_words import proof_record
    from pairflip.text import label_text

    best, quadratic = problem.fit(trace.best_support), problem.loss.squared
    classes = [] if problem.classes is None else [label_text(label) for label in problem.classes.tolist()]
    forced = [problem.names[j] for j in problem.always]
    targets: list[dict[str, Any]] = []
    if problem.target_names:
        form: Any = problem.form
        shares = form.explained(problem.slots(trace.best_support)).tolist()
        targets = [
            {"target": name, "r_squared": share} for name, share in zip(problem.target_names, shares, strict=True)
        ]
    return {
        "k": trace.k,
        "columns": trace.best_names,
        **({} if problem.units is None else {"groups": problem.units.names_of(best.support, problem.names)}),
        "coefficients": best.coef.tolist(),
        "always": dict(zip(forced, best.always_coef.tolist(), strict=True)),
        "intercept": np.asarray(best.intercept).tolist(),
        "energy": best.energy,
        **({"targets": targets} if targets else {}),
        "r_squared" if quadratic else "explained_deviance": 1.0 - 2.0 * best.energy / problem.form.yy,
        **({} if quadratic else {"loss": problem.loss.name}),
        **({"classes": classes} if classes else {}),
        "chains": int(trace.supports.shape[0]),
        "solved": trace.solved,
        "agreement": trace.agreement,
        "seed": trace.seed,
        "engine": trace.engine,
        "seconds": trace.seconds,
        "note": trace.note,
        **({"proof": proof_record(trace.proof, chosen=trace.best_support.tolist())} if trace.proof else {}),
    }


def _rows(record: dict[str, Any]) -> list[tuple[str, str, list[float]]]:
    """(column, kind, coefficients), the intercept first; several coefficients for several targets or classes."""
    chosen = zip(record["columns"], record["coefficients"], strict=True)
    rows = [
        ("", "intercept", record["intercept"]),
        *((name, "always", value) for name, value in record["always"].items()),
        *((name, "selected", value) for name, value in chosen),
    ]
    return [(name, kind, value if isinstance(value, list) else [value]) for name, kind, value in rows]


def _heads(record: dict[str, Any]) -> list[str]:
    """Headings of the coefficients: the targets, or three and more classes, where there are several."""
    if isinstance(record["intercept"], list):
        return list(record["classes"]) if "classes" in record else [each["target"] for each in record["targets"]]
    return ["coefficient"]


def _print(record: dict[str, Any]) -> None:
    """The answer, the coefficients, and what is proved."""
    from pairflip.text import plural, short

    quality = f"R^2 {record['r_squared']:.4f}" if "r_squared" in record else ""
    if not quality:
        quality = f"explained {100 * record['explained_deviance']:.1f} % of the deviance"
    if "targets" in record:
        each_target = ", ".join(f"{short(each['target'])} {each['r_squared']:.4f}" for each in record["targets"])
        quality = f"{quality} ({each_target})"
    if "classes" in record and not isinstance(record["intercept"], list):
        quality = f"{quality} (coefficients are log odds of {short(record['classes'][1])!r})"
    if record.get("loss") == "cox":
        quality = f"{quality} (coefficients are logarithms of hazard ratios)"
    units = plural(record["k"], "group" if "groups" in record else "column")
    groups = f" ({', '.join(map(short, record['groups']))})" if "groups" in record else ""
    searched = f"{record['agreement']:.0%} of {record['chains']} chains agree"
    if record["solved"]:
        searched = "every set of this size was looked at"
    print_text(
        f"The best {units}{groups} for {short(record['target'])}: {quality}, energy {record['energy']:.6g}; {searched}."
    )
    typer.echo()
    labels = {"intercept": "(intercept)", "always": " (always)", "selected": ""}
    rows = [
        (*(f"{each:.6g}" for each in values), (short(name) if name else "") + labels[kind])
        for name, kind, values in _rows(record)
    ]
    print_rows((*map(short, _heads(record)), "column"), rows)
    if "proof" in record:
        typer.echo()
        print_text(record["proof"]["sentence"])
    if record["note"]:
        print_text(f"Note: {record['note']}.")
