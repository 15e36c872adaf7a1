"""Rules for the size, and standard errors: draw tables from known populations, and count how often they are right.

`python -m benchmarks rules` (a minute on two cores): by each rule, how large the true error is, how far the told
one is from it, and how often the columns are the true ones. `python -m benchmarks standard-errors` (half a minute): how
often coefficients of columns that are fixed beforehand lie within 1.96 standard errors of the truth.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.common import cells, draws, in_processes, mean_error
from benchmarks.honesty import SIGNAL, SIZES, WEAK, Population, few
from pairflip import SubsetProblem, select_size
from pairflip.selection.coefficients import standard_errors
from pairflip.selection.settings import RULES

POPULATIONS = (
    *SIGNAL[1:],
    WEAK[0],
    Population("four columns, 400 x 40", 400, 40, few(40, 4), 0.5),
    Population("40 weak columns, 100 x 100", 100, 100, few(100, 40), 0.6),
)


def one(population: Population, seed: int) -> dict[str, dict[str, float]]:
    """What each rule takes from one table, how well that predicts, and what is told of it."""
    X, y, b, noise = population.draw(seed)
    curve = select_size(SubsetProblem(X, y), SIZES, cv=10, seed=seed, effort="quick", progress=False)
    true = {int(k): population.true_error(curve, int(k), b, noise, seed) for k in curve.sizes}
    by_rule = {}
    for rule in RULES:
        settings = {**curve.settings, "choose": rule}
        answer = replace(curve, settings=settings, facts={**curve.facts, "p_value": 0.0}).answer
        size, told = answer.size, answer.error
        if told is None:
            continue
        by_rule[rule] = {
            "size": size,
            "over": true[size] / min(true.values()),
            "told": np.log(told.error / true[size]),
            "inside": told.low <= true[size] <= told.high,
            "right": np.array_equal(curve.supports[curve.at(size)], np.flatnonzero(b)),
        }
    return by_rule


def report() -> None:
    """Print one line for each population and rule."""
    seeds = draws(30)
    found = in_processes(one, [(p, seed) for seed in seeds for p in POPULATIONS])
    print(f"rules for the size: {len(seeds)} tables of each population, ten folds, quick search, sizes to {SIZES[-1]}")
    print(f"{'':30}{'rule':>8}{'size':>14}{'true/lowest':>14}{'ln told/true':>14}{'in 90 %':>9}{'true columns':>14}")
    for p in POPULATIONS:
        for rule in RULES:
            rows = [found[p, seed][rule] for seed in seeds if rule in found[p, seed]]
            figures = (mean_error([float(row[name]) for row in rows]) for name in ("size", "over", "told"))
            shares = [np.mean([row[name] for row in rows]) for name in ("inside", "right")]
            print(f"{p.name:30}{rule:>8}{cells(figures, 14)}{shares[0]:>9.0%}{shares[1]:>14.0%}")


NOISES = ("same noise", "noise grows with a column", "noise shared in groups")


def covered(noise: str, n_rows: int, n_groups: int, seed: int) -> np.ndarray:
    """Whether each kind of errors (3,) holds the coefficients (4,) of fixed columns, one of them shared in groups."""
    rng = np.random.default_rng([2035, seed, n_rows, n_groups])
    group = np.arange(n_rows) % n_groups
    X = rng.standard_normal((n_rows, 4))
    X[:, 3] = rng.standard_normal(n_groups)[group]
    spread = np.exp(0.7 * X[:, 0]) if noise == NOISES[1] else 1.0
    shared = rng.standard_normal(n_groups)[group] if noise == NOISES[2] else 0.0
    y = X.sum(axis=1) + spread * rng.standard_normal(n_rows) + shared
    problem = SubsetProblem(X, y)
    fit = problem.fit([0, 1, 2, 3])
    errors = standard_errors(problem, [fit], group)
    return np.array([np.abs(fit.coef - 1.0) <= 1.96 * each.chosen[0] for each in errors])


def report_standard_errors() -> None:
    """Print one line for each kind of noise and number of rows."""
    seeds, shapes = draws(2000), ((40, 10), (200, 20))
    print(f"standard errors: coverage of 1.96 of them, {len(seeds)} tables each, columns fixed beforehand")
    heads = "".join(f"{name + ': x0':>14}{'shared':>8}" for name in ("ordinary", "HC3", "CR3"))
    print(f"{'':28}{'rows':>6}{'groups':>8}{heads}")
    for noise in NOISES:
        for shape in shapes:
            each = np.mean([covered(noise, *shape, seed) for seed in seeds], axis=0)
            values = "".join(f"{of[0]:>14.1%}{of[3]:>8.1%}" for of in each)
            print(f"{noise:28}{shape[0]:>6}{shape[1]:>8}{values}")
