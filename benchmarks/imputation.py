"""Does imputation inside folds tell the truth, and does it help? Tables with values missing at random.

`python -m benchmarks imputation` (some minutes on one core): four equal columns of 20 in 100 rows, R2 at best 0.7. By
share of missing values and correlation of neighbours: what the selection tells (RMSE corrected for the choice) over
the RMSE of 4,000 new rows with as many gaps; R2 on complete new rows, also where rows with gaps are dropped; and how
many of the chosen columns are true ones where all three, or fewer, imputations with noise choose the same.
"""

from __future__ import annotations

import numpy as np

from benchmarks.common import cells, draws, in_processes, mean_error
from benchmarks.honesty import Population, few
from pairflip import SubsetProblem, select_size
from pairflip.preprocessing import Impute

SIZES, NEW = range(1, 9), 4000
SHARES, CORRELATIONS, METHODS = (0.05, 0.15), (0.0, 0.7), ("rows dropped", "median", "knn")


def one(share: float, correlation: float, method: str, seed: int) -> dict[str, float]:
    """What one table's selection said and what was true."""
    population = Population(f"gaps {correlation}", 100, 20, few(20, 4), 0.7, correlation)
    X, y, b, noise = population.draw(seed)
    rng = np.random.default_rng([35, seed])
    C = np.linalg.cholesky(population.covariance())
    fresh = rng.standard_normal((NEW, 20)) @ C.T
    target = fresh @ b + np.sqrt(noise) * rng.standard_normal(NEW)
    X[rng.random(X.shape) < share] = np.nan
    gaps = np.where(rng.random(fresh.shape) < share, np.nan, fresh)
    rows = ~np.isnan(X).any(axis=1) if method == "rows dropped" else np.ones(len(X), dtype=bool)
    if rows.sum() < 20:
        return {}
    preprocess = None if method == "rows dropped" else Impute(method)
    problem = SubsetProblem(X[rows], y[rows], preprocess=preprocess)
    curve = select_size(problem, SIZES, cv="10", seed=seed, effort="quick", progress=False)
    size = curve.answer.size
    chosen = curve.supports[curve.at(size)]
    result = {
        "r2": 1.0 - np.mean((target - curve.predict(fresh, size)) ** 2) / np.var(target),
        "true": float(np.mean(np.isin(chosen, np.flatnonzero(b)))) if size else 0.0,
        "indicators": float(np.count_nonzero(chosen >= 20)),
        "same": float(curve.facts.get("imputed", {"same": -1})["same"]),
    }
    if preprocess is not None:
        error = np.sqrt(np.mean((target - curve.predict(gaps, size)) ** 2))
        told = curve.answer.error
        result["told"] = np.nan if told is None else told.rmse[0] / error
    return result


def report() -> None:
    """Print one line for each share, correlation and method."""
    import warnings

    warnings.simplefilter("ignore", UserWarning)
    seeds = draws(40)
    tasks = [(s, c, m, seed) for s in SHARES for c in CORRELATIONS for m in METHODS for seed in seeds]
    results = in_processes(one, tasks)
    print(f"imputation: {len(seeds)} tables each, 100 x 20, four true columns; mean +- standard error")
    heads = ("R2 complete rows", "told/true RMSE", "true columns", "3 of 3", "fewer", "indicators")
    print(f"{'gaps, correlation, method':34}{cells(heads, 18)}")
    for share in SHARES:
        for correlation in CORRELATIONS:
            for method in METHODS:
                each = [results[share, correlation, method, seed] for seed in seeds]
                _line(f"{share:.0%}, {correlation:g}, {method}", [one for one in each if one])


def _line(name: str, each: list[dict[str, float]]) -> None:
    if len(each) < 2:
        print(f"{name:34}too few rows are left")
        return
    by_agreement = [
        [one["true"] for one in each if one["same"] >= 0 and (one["same"] == 3) == agree] for agree in (True, False)
    ]
    texts = [
        mean_error([one["r2"] for one in each], 3),
        mean_error([one["told"] for one in each if one["told"] == one["told"]]) if "told" in each[0] else "-",
        mean_error([one["true"] for one in each]),
        *(f"{mean_error(part)} ({len(part)})" if len(part) > 1 else f"({len(part)})" for part in by_agreement),
        f"{np.mean([one['indicators'] for one in each]):.2f}",
    ]
    print(f"{name:34}{cells(texts, 18)}")


if __name__ == "__main__":
    report()
