"""`pairflip fit`: the best columns of one size."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairflip.cli import options as o
from pairflip.cli.data import load
from pairflip.cli.errors import plain_errors, say
from pairflip.cli.limits import LimitOptions
from pairflip.cli.result_folder import refuse_input
from pairflip.cli.signature import Without
from pairflip.cli.subjects import LossOptions, ModelOptions, ResultOptions, RunOptions, SearchOptions, TableOptions
from pairflip.cli.table_file import check_out, write_lines

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem
    from pairflip.search.trace import Trace

Out = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the coefficients to this .csv or .tsv file.")
]


def fit(
    *,
    table: Annotated[TableOptions, Without("groups")],
    model: ModelOptions,
    limits: LimitOptions,
    fitted: LossOptions,
    search: Annotated[SearchOptions, Without("polish")],
    run: RunOptions,
    results: ResultOptions,
    k: o.K,
    ridge: o.Ridge = None,
    out: Out = None,
) -> None:
    """Find the best columns of one size, without asking whether it is the right size.

    Example: pairflip fit data.csv --target y --k 3
    """
    with plain_errors():
        from pairflip.interrupt import exit_code
        from pairflip.jobs import local_threads
        from pairflip.progress import expected_time
        from pairflip.search.best_subset import Interrupted, best_subset
        from pairflip.search.effort import check_size, model_seconds
        from pairflip.search.schedule import as_schedule
        from pairflip.selection.facts import copy_words, target_copies

        if out is not None:
            check_out(out, results.force)
            refuse_input(out, table.data, "the table")
        loaded = load(table, fitted)
        problem = loaded.problem(model, limits, ridge=ridge, quiet=results.quiet)
        size, threads = check_size(problem, k), o.check_jobs(run.jobs)
        for text in [] if results.quiet else copy_words({"target_copies": target_copies(problem)}):
            say(text)
        schedule, method = search.schedule.value_for_api, search.method
        if search.chains is not None or schedule != "auto" or method is o.MethodName.ANNEAL:
            seconds = model_seconds(problem, size, as_schedule(schedule), search.chains, threads)
            expected = expected_time(seconds, local_threads(threads))
            if expected is not None and not results.quiet:
                say(f"{expected}.")
        stopped = None
        try:
            trace = best_subset(
                problem,
                size,
                schedule=schedule,
                chains=search.chains,
                seed=run.seed,
                engine=run.engine,
                n_jobs=threads,
                progress=results.progress,
                method=None if method is None else method.value,
                effort=search.effort.value,
                prove=search.prove,
            )
        except Interrupted as error:
            say("interrupted; this is the best found so far.")
            stopped, trace = error, error.trace
        record = _record(problem, trace)
        record["target"], record["source"] = loaded.table.target, loaded.table.source
        if out is not None:
            _write_coefficients(record, out)
        _show(record, results.as_json)
        if stopped is not None:
            raise typer.Exit(exit_code())


def _record(problem: SubsetProblem, trace: Trace) -> dict[str, Any]:
    """What was found, in plain values; R^2 counts only what the forced columns leave unexplained."""
    import numpy as np

    from pairflip.report.proof_words import proof_record
    from pairflip.text import label_text

    best, quadratic = problem.fit(trace.best_support), problem.loss.squared
    classes = [] if problem.classes is None else [label_text(label) for label in problem.classes.tolist()]
    forced = [problem.names[j] for j in problem.always]
    proof = trace.proof
    return {
        "k": trace.k,
        "columns": trace.best_names,
        **({} if problem.units is None else {"groups": problem.units.names_of(best.support, problem.names)}),
        "coefficients": best.coef.tolist(),
        "always": dict(zip(forced, best.always_coef.tolist(), strict=True)),
        "intercept": np.asarray(best.intercept).tolist(),
        "energy": best.energy,
        **_of_targets(problem, trace),
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
        **({} if proof is None else {"proof": proof_record(proof, chosen=trace.best_support.tolist())}),
    }


def _of_targets(problem: SubsetProblem, trace: Trace) -> dict[str, Any]:
    """R^2 of each of several targets."""
    if not problem.target_names:
        return {}
    form: Any = problem.form
    shares = form.explained(problem.slots(trace.best_support)).tolist()
    pairs = zip(problem.target_names, shares, strict=True)
    return {"targets": [{"target": name, "r_squared": share} for name, share in pairs]}


def _rows(record: dict[str, Any]) -> list[tuple[Any, str, str]]:
    """(coefficient, column, kind), the intercept first; with several targets, a list of coefficients."""
    chosen = zip(record["coefficients"], record["columns"], strict=True)
    return [
        (record["intercept"], "", "intercept"),
        *((value, name, "always") for name, value in record["always"].items()),
        *((value, name, "selected") for value, name in chosen),
    ]


def _write_coefficients(record: dict[str, Any], out: Path) -> None:
    lines: list[list[str | float | None]] = [[name, kind, *_each(value)] for value, name, kind in _rows(record)]
    write_lines(out, ["column", "kind", *_heads(record)], lines, "the coefficients")


def _each(value: Any) -> list[float]:
    return list(value) if isinstance(value, list) else [value]


def _heads(record: dict[str, Any]) -> list[str]:
    """Headings of the coefficients: the targets, or three and more classes, where there are several."""
    if isinstance(record["intercept"], list):
        return list(record["classes"]) if "classes" in record else [each["target"] for each in record["targets"]]
    return ["coefficient"]


def _searched(record: dict[str, Any]) -> str:
    """How sure the search is, in words."""
    if record["solved"]:
        return "every set of this size was looked at"
    return f"{record['agreement']:.0%} of {record['chains']} chains agree"


def _show(record: dict[str, Any], as_json: bool) -> None:
    from pairflip.cli.shown import print_json, print_rows, print_text
    from pairflip.text import short

    if as_json:
        print_json(record)
        return
    count = record["k"]
    how = f"R^2 {record['r_squared']:.4f}" if "r_squared" in record else ""
    if not how:
        how = f"explained {100 * record['explained_deviance']:.1f} % of the deviance"
    if "targets" in record:
        own = ", ".join(f"{short(each['target'])} {each['r_squared']:.4f}" for each in record["targets"])
        how = f"{how} ({own})"
    if "classes" in record and not isinstance(record["intercept"], list):
        how = f"{how} (coefficients are log odds of {short(record['classes'][1])!r})"
    if record.get("loss") == "cox":
        how = f"{how} (coefficients are logarithms of hazard ratios)"
    what = "group" if "groups" in record else "column"
    own = f" ({', '.join(map(short, record['groups']))})" if "groups" in record else ""
    print_text(
        f"The best {count} {what}{'s' * (count != 1)}{own} for {short(record['target'])}: {how}, "
        f"energy {record['energy']:.6g}; {_searched(record)}."
    )
    typer.echo()
    labels = {"intercept": "(intercept)", "always": " (always)", "selected": ""}
    rows = [
        (*(f"{each:.6g}" for each in _each(value)), (short(name) if kind != "intercept" else "") + labels[kind])
        for value, name, kind in _rows(record)
    ]
    print_rows((*map(short, _heads(record)), "column"), rows)
    if "proof" in record:
        typer.echo()
        print_text(record["proof"]["sentence"])
    if record["note"]:
        print_text(f"Note: {record['note']}.")
