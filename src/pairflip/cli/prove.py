"""`pairflip prove`: the best sets of one size for certain, or how much better others could be."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairflip.cli import options as o
from pairflip.cli.errors import say
from pairflip.cli.loading import load
from pairflip.cli.printing import print_json, print_rows, print_text
from pairflip.cli.results import TABLE_FILES, check_file, write_lines
from pairflip.text import json_list

if TYPE_CHECKING:
    from pairflip.problem import SubsetProblem
    from pairflip.search.prove import Proof

_UNITS = {"": 1.0, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_LONG_S = 2.0  # what takes longer is announced


def prove(
    *,
    table: o.PlainTable,
    model: o.ModelOptions,
    limits: o.LimitOptions,
    run: o.RunOptions,
    results: o.ResultOptions,
    k: o.K,
    n_best: Annotated[
        int, typer.Option("--n-best", metavar="N", min=1, help="How many of the best sets to find.")] = 10,
    budget: Annotated[str, typer.Option("--budget", metavar="TIME", help=
        "How long it may take: 60 (seconds), 60s, 2min, 1h or 1d.")] = "60s",
    within: Annotated[str | None, typer.Option("--within", metavar="LIST", help=
        "Count the sets that are at most so much worse: 1%,5%.")] = None,
    ridge: o.Ridge = 0.0,
    out: Annotated[Path | None, o.out_file(f"Write the best sets to this {TABLE_FILES}.")] = None,
) -> None:  # fmt: skip
    """Prove which columns of one size fit best, and list the next best sets.

    Example: pairflip prove data.csv --target y --k 4 --n-best 20
    """
    from pairflip.interrupt import exit_code
    from pairflip.report.proof_words import r_squared
    from pairflip.search.prove import check_engine, first_support
    from pairflip.search.prove import prove as prove_best

    seconds, distances, threads = parse_time(budget), parse_distances(within), o.check_jobs(run.jobs)
    if out is not None:
        check_file(out, results.force, table.data)
    loaded = load(table)
    problem = loaded.problem(model, limits, ridge=ridge, quiet=results.quiet)
    alone = k == problem.form.n_columns  # a table's only set needs no search
    check_engine(run.engine)
    first = None if alone else first_support(problem, k, run.seed, seconds)
    if not results.quiet:
        _announce(problem, k, seconds, threads)
    proof = prove_best(
        problem, k, first, seconds, n_best, within=distances, engine=run.engine, n_jobs=threads,
        progress=results.progress,
    )  # fmt: skip
    if out is not None:
        names = [json_list([proof.names[j] for j in support]) for support in proof.supports.tolist()]
        ranks = range(1, len(names) + 1)
        lines = zip(ranks, proof.energies.tolist(), r_squared(proof), proof.excess(), names, strict=True)
        write_lines(out, ["rank", "energy", "r_squared", "excess", "columns"], lines, "the best sets")
    _show(proof, seconds, results.as_json, target=loaded.table.target, source=loaded.table.source)
    if proof.note == "interrupted":
        raise typer.Exit(exit_code())


def parse_time(text: str) -> float:
    """Seconds from ``60``, ``60s``, ``2min``, ``1.5 h`` or ``1d``."""
    match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([a-z]*)\s*", text.lower())
    seconds = float(match[1]) * _UNITS.get(match[2], 0.0) if match else 0.0
    if not seconds > 0.0:
        raise ValueError(f"--budget is {text!r}; expected a time such as 60 (seconds), 60s, 2min or 1h.")
    return seconds


def parse_distances(text: str | None) -> tuple[float, ...]:
    """Fractions from ``1%,5%`` or ``0.01,0.05``; 1 and more must have a per cent sign, to be sure of what is meant."""
    if text is None:
        return ()
    distances = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*(%?)\s*", part)
        value = float(match[1]) if match else -1.0
        if match is None or (value >= 1.0 and not match[2]):
            raise ValueError(f"--within is {text!r}; expected distances from the best such as 1%,5% or 0.01,0.05.")
        distances.append(value / 100.0 if match[2] else value)
    return tuple(distances)


def _announce(problem: SubsetProblem, k: int, budget: float, threads: int) -> None:
    """Before long work: how long looking at every set would take, and what is done if that is too long."""
    from math import comb

    from pairflip.jobs import local_threads
    from pairflip.report.proof_words import seconds_text
    from pairflip.search.exhaustive import all_seconds
    from pairflip.text import plural

    n, workers = problem.form.n_columns, local_threads(threads)
    seconds = all_seconds(problem.form, k) / workers
    if seconds < _LONG_S:
        return
    takes = f"looking at every one of {comb(n, k):.3g} sets takes about {seconds_text(seconds)} on "
    takes += plural(workers, "thread")
    if seconds <= budget:
        say(f"{takes}, if they cannot be ruled out in groups.")
    else:
        say(f"{takes}, more than the budget of {seconds_text(budget)}; they can only be ruled out in groups.")


def _show(proof: Proof, budget: float, as_json: bool, **about: Any) -> None:
    from pairflip.report.proof_words import HEADS, best_rows, count_words, proof_record, proof_sentence
    from pairflip.text import lower_heads, short

    if as_json:
        print_json(proof_record(proof, budget) | about)
        return
    shown = replace(proof, names=[short(name) for name in proof.names])
    print_rows(lower_heads(HEADS), best_rows(shown))
    typer.echo()
    if counts := count_words(proof):
        print_text(counts)
    print_text(proof_sentence(shown, budget))
    if proof.note not in ("", "interrupted", "not enough time"):  # these are in the sentence already
        print_text(f"Note: {proof.note}.")
