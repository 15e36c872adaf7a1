"""Is the error told for the chosen size true? Corrected and uncorrected, on tables from known populations.

`python -m benchmarks chosen` (a quarter of an hour on two cores; PAIRFLIP_DRAWS=10 for a look). Told errors over the
true error of the final fit at the chosen size, and how often their 90 % intervals held it: cv_error with 1.645 standard
errors, and the corrected error (`Answer.error`); then the error of the average (`Answer.average`). Tables in which
nothing is found to predict are left out, and counted.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np

from benchmarks.common import cells, draws, in_processes, mean_error
from benchmarks.honesty import KINDS, NOISE, SIGNAL, SIZES, Population, few
from pairflip import SubsetProblem, select_size
from pairflip.selection.curve import ChosenError

DESIGNS = (
    *SIGNAL,
    Population("planted 4, 40 x 40", 40, 40, few(40, 4, gaussian=True), 0.7),
    Population("many weak, 80 x 150", 80, 150, few(150, 40, gaussian=True), 0.7),
)
HEAVY = tuple(
    Population(f"{tail}, {rows} x {columns}", rows, columns, few(columns, 3), 0.6, tail=tail)
    for tail in ("t3", "lognormal", "outliers")
    for rows, columns in ((80, 50), (250, 60))
)
ALL = (*DESIGNS, *HEAVY, *NOISE)
LEVEL_SE = 1.645


class Told(NamedTuple):
    """One table: errors over the truth, whether intervals held it, and the width of the corrected one over it."""

    naive: float
    corrected: float
    naive_held: bool
    held: bool
    below: bool
    above: bool
    width: float


def one(population: Population, seed: int, cv: str, effort: str = "quick") -> tuple[Told | None, Told | None]:
    """What one table's selection told of the chosen size and of the average; None if nothing was found to predict."""
    X, y, b, noise = population.draw(seed)
    curve = select_size(SubsetProblem(X, y), SIZES, cv=cv, seed=seed, effort=effort, progress=False)
    answer = curve.answer
    if answer.error is None or answer.average is None:
        return None, None
    at, spread = curve.at(answer.size), curve.average.observed - curve.average.predictions
    half = 0.5 * spread**2
    return (
        _told(answer.error, population.true_error(curve, answer.size, b, noise, seed),
              float(curve.cv_error[at]), float(curve.cv_error_se[at])),
        _told(answer.average, population.true_error(curve, None, b, noise, seed),
              float(half.mean()), float(half.std(ddof=1) / len(half) ** 0.5)),
    )  # fmt: skip


def _told(chosen: ChosenError, true: float, naive: float, se: float) -> Told:
    """What was reported over the truth, and whether intervals held it."""
    return Told(
        naive / true,
        chosen.error / true,
        abs(naive - true) <= LEVEL_SE * se,
        chosen.low <= true <= chosen.high,
        true < chosen.low,
        true > chosen.high,
        (chosen.high - chosen.low) / true,
    )


def line(records: list[Told | None]) -> str:
    """What the tables of one population say."""
    told = np.array([r for r in records if r is not None], dtype=float)
    if len(told) < 5:
        return f"{len(told):>6}"
    ratios = [mean_error(told[:, c]) for c in (0, 1)]
    held = [f"{100 * told[:, c].mean():.0f} %" for c in (2, 3, 4, 5)]
    return f"{len(told):>6}" + cells((*ratios, *held, f"{told[:, 6].mean():.2f}"), 14)


def report() -> None:
    """Print one line for each population and kind of cross validation."""
    seeds = draws(100)
    kinds = os.environ.get("PAIRFLIP_CV", ",".join(KINDS)).split(",")
    tasks = [(p, seed, cv) for p in ALL for cv in kinds for seed in seeds]
    found = in_processes(one, tasks)
    print(f"the error of the chosen size: {len(seeds)} tables of each population, sizes 1 to {SIZES[-1]}, quick search")
    heads = ("cv_error", "corrected", "1.645 SE", "corrected", "truth below", "truth above", "width")
    print(f"{'':36}{'told':>6}{'over the truth':>28}{'90 % intervals that hold it':>42}")
    print(f"{'':36}{'':>6}" + cells(heads, 14))
    for p in ALL:
        for cv in kinds:
            for part, what in enumerate(("", " avg")):
                some = [found[task][part] for task in tasks if task[::2] == (p, cv)]
                print(f"{p.name + what:30}{cv:>6}{line(some)}", flush=True)
    for name, some in (("all with normal noise", DESIGNS), ("all with heavy tails", HEAVY)):
        for part, what in enumerate(("", ", average")):
            print(f"{name + what:36}{line([found[task][part] for task in tasks if task[0] in some])}")
