"""Is what a selection says true where its table is preprocessed? Draw tables from known populations, and count.

`python -m benchmarks preprocessing` (four minutes on two cores; PAIRFLIP_DRAWS=10 for a look). Rows are Gaussian; then
each row is shifted and stretched at random (scatter, as in spectra), or values are lost at random. The transformer is
fitted in every fold, or once on all rows before the selection; held-out errors are compared with those of new rows, and
it is counted how many of these lie within their intervals.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.common import cells, draws, in_processes, mean_error
from benchmarks.honesty import Population
from pairflip import SubsetProblem, select_size
from pairflip.preprocessing import MSC, Impute

SIZE, COVERAGE, NEW_ROWS = 3, 0.9, 1000
LOST = 0.15
POPULATION = Population("three columns", 40, 30, lambda rng: 1.0 * (np.arange(30) % 10 == 4), 0.8, 0.6)
STEPS = {
    "MSC": (MSC(), "scatter"),
    "standardized": (StandardScaler(), "as drawn"),
    "imputed by median": (Impute("median"), "lost"),
    "imputed by neighbours": (Impute("knn"), "lost"),
    "five components": (make_pipeline(StandardScaler(), PCA(5)), "as drawn"),
}
CVS = ("loo", "10")


def disturbed(X: np.ndarray, kind: str, rng: np.random.Generator) -> np.ndarray:
    """The rows as they are measured."""
    if kind == "scatter":
        base = 5.0 + np.sin(np.linspace(0, 5, X.shape[1]))  # what all rows share
        return rng.uniform(0.7, 1.4, (len(X), 1)) * (base + 0.1 * X) + rng.normal(size=(len(X), 1))
    return np.where(rng.random(X.shape) < LOST, np.nan, X) if kind == "lost" else X


def told_and_true(name: str, cv: str, seed: int) -> dict[str, tuple[float, float]]:
    """Held-out error over that of new rows, and the fraction of these in their intervals: in folds, and before."""
    transformer, kind = STEPS[name]
    X, y, b, noise = POPULATION.draw(seed)
    rng = np.random.default_rng([35, seed])
    clean = rng.standard_normal((NEW_ROWS, X.shape[1])) @ np.linalg.cholesky(POPULATION.covariance()).T
    target = clean @ b + noise**0.5 * rng.standard_normal(NEW_ROWS)
    rows, new = disturbed(X, kind, rng), disturbed(clean, kind, rng)
    before = clone(transformer).fit(rows)
    found = {}
    for how, problem, asked in (
        ("in folds", SubsetProblem(rows, y, preprocess=transformer), new),
        ("before", SubsetProblem(before.transform(rows), y), before.transform(new)),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            curve = select_size(problem, [SIZE], cv, seed=seed, effort="quick", prove=False, progress=False)
            predicted = curve.predict(asked, SIZE, interval=COVERAGE)
        ratio = 2.0 * curve.cv_error[curve.at(SIZE)] / np.mean((target - predicted.prediction) ** 2)
        found[how] = float(ratio), float(np.mean((predicted.lower <= target) & (target <= predicted.upper)))
    return found


def report() -> None:
    """Print one line for each transformer and kind of cross validation."""
    seeds = draws(80)
    found = in_processes(told_and_true, [(name, cv, seed) for name in STEPS for cv in CVS for seed in seeds])
    print(
        f"preprocessing: {len(seeds)} tables of {POPULATION.n_rows} rows and {POPULATION.n_columns} columns, size "
        f"{SIZE}, {NEW_ROWS} new rows each, quick search;\nheld-out error over that of new rows, and per cent of new "
        f"rows in intervals of {COVERAGE:.0%}, +- standard errors"
    )
    heads = [f"{what}, {how}" for how in ("in folds", "before") for what in ("error", "covered")]
    print(f"{'':24}{'cv':>6}" + cells(heads, 20))
    for name in STEPS:
        for cv in CVS:
            told = []
            for how in ("in folds", "before"):
                ratio, inside = np.array([found[name, cv, seed][how] for seed in seeds]).T
                told += [mean_error(ratio), mean_error(100 * inside, 1)]
            print(f"{name:24}{cv:>6}" + cells(told, 20))
