"""How much the ridge bound proves: gap at the root, columns that it leaves, and what `prove` makes of it.

`python -m benchmarks ridge-bound`: tables from ../shared/data, or where PAIRFLIP_SHARED_DATA says, and a planted one,
with shrinkage 1, 0.1 and 0.01. One thread, 20 s for each proof (PAIRFLIP_BUDGET), some minutes in all;
PAIRFLIP_TABLES=gasoline,planted for those whose names begin so.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.shrinkage import TABLES
from pairflip import SubsetProblem, best_subset, prove
from pairflip.search.ridge_bound import ridge_bound, ridge_form
from pairflip.tables import read_table

USED = ("diabetes_64", "eyedata", "gasoline", "supernova 74 x 276", "riboflavin")
SHRINKAGE, SIZES = (1.0, 0.1, 0.01), (3, 5, 10)


def problems() -> Iterator[tuple[str, SubsetProblem]]:
    """Names and problems, without ridge."""
    root = Path(os.environ.get("PAIRFLIP_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))
    chosen = tuple(os.environ.get("PAIRFLIP_TABLES", "").split(","))
    for name in USED:
        file, target, dropped = TABLES[name]
        if name.startswith(chosen) and (root / file).exists():
            table = read_table(root / file, target=target, drop=list(dropped))
            yield name.split()[0], SubsetProblem(table.X, table.y)
    if "planted".startswith(chosen):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 1000))
        yield "planted 7", SubsetProblem(X, X[:, :7] @ np.linspace(1.0, 0.5, 7) + 1.5 * rng.normal(size=200))


def report() -> None:
    budget = float(os.environ.get("PAIRFLIP_BUDGET", "20"))
    small = np.random.default_rng(0).normal(size=(20, 15))
    for shrinkage in (0.0, 0.1):  # compiles the kernels
        prove(SubsetProblem(small, small[:, 0] ** 2).with_shrinkage(shrinkage), 4)
    print(f"\nBound of the root, and proofs within {budget:g} s on one thread")
    print("| table | shrinkage | k | gap of the root | its seconds | columns left | proof | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for name, plain in problems():
        for shrinkage in SHRINKAGE:
            problem = plain.with_shrinkage(shrinkage)
            gram = problem.form
            for k in SIZES:
                best = best_subset(problem, k, effort="quick", seed=0).best_support
                upper = 2.0 * gram.energy(gram.positions(best)) * (1.0 + 1e-9)
                began = time.perf_counter()
                form = ridge_form(gram.columns, gram.target, gram.penalty)
                said = ridge_bound(form, k, upper, np.zeros(0, np.int64), np.arange(gram.n_columns))
                seconds, left = time.perf_counter() - began, int(np.count_nonzero(~said.dropped))
                proof = prove(problem, k, best, budget=budget)
                told = proof.method if proof.optimal else f"not proved, gap {100 * proof.gap:.1f} %"
                case = f"{name} {gram.n_rows} x {gram.n_columns} | {shrinkage:g} | {k}"
                print(
                    f"| {case} | {100 * max(1 - said.bound / upper, 0):.2f} % | {seconds:.2f} | {left} | {told} "
                    f"| {proof.seconds:.2g} |",
                    flush=True,
                )
