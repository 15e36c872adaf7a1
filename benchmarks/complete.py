"""Are the searches of the folds complete? `cv_error` of the default effort over that of a far longer search.

`python -m benchmarks complete` (some minutes on two cores; PAIRFLIP_DRAWS=5 for a look). Planted problems, 30 of each
shape, at one size each, and riboflavin where ../shared/data is there. The longer search is effort "thorough": six
chains with 100 kicks or more in every fold, instead of two with a few.
"""

from __future__ import annotations

import numpy as np

from benchmarks.common import cells, draws, in_processes, mean_error, real_table
from pairflip import SubsetProblem, datasets, select_size

SHAPES = ((60, 120, 8), (60, 120, 12), (60, 120, 16), (100, 200, 20), (100, 200, 25))


def one(M: int, N: int, k: int, seed: int, efforts: tuple[str, str] = ("normal", "thorough")) -> tuple[float, float]:
    """cv_error and training energy of the default search, over those of the longer one; ten folds."""
    planted = datasets.make_planted(N=N, alpha=M / N, seed=seed)
    problem = SubsetProblem(planted.X, planted.y)
    short, long = (
        select_size(problem, [k], 10, seed=seed, effort=effort, progress=False, prove=False) for effort in efforts
    )
    return short.cv_error[1] / long.cv_error[1], short.energy_per_row[1] / long.energy_per_row[1]


def report() -> None:
    """Print one line for each shape: means with standard errors."""
    seeds = draws(30)
    found = in_processes(one, [(*shape, seed) for shape in SHAPES for seed in seeds])
    print(f"folds: default effort over thorough, ten folds, {len(seeds)} planted problems of each shape; mean +- SE")
    print(f"{'table':>12}{'k':>4}{'cv_error':>18}{'training error':>18}")
    for shape in SHAPES:
        ratios = np.array([found[*shape, seed] for seed in seeds])
        told = [mean_error(ratio, 4) for ratio in ratios.T]
        print(f"{f'{shape[0]} x {shape[1]}':>12}{shape[2]:>4}" + cells(told, 18), flush=True)
    table = real_table("riboflavin/riboflavin.csv")
    if table is None:
        return
    problem = SubsetProblem(*table)
    short, long = (
        select_size(problem, range(2, 9), 10, effort=effort, n_jobs=-1, progress=False)
        for effort in ("normal", "thorough")
    )
    over = short.cv_error[1:] / long.cv_error[1:]
    ratios = ", ".join(f"{size}: {ratio:.3f}" for size, ratio in zip(range(2, 9), over, strict=True))
    print(f"riboflavin, ten folds, cv_error of the default over thorough by size: {ratios}")
    print(f"  agreement by size: {', '.join(f'{a:.2f}' for a in short.agreement[1:])}")
