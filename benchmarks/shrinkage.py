"""Is shrinkage chosen with the size worth its time? R2 on new rows, beside the LASSO, ridge regression and PLS.

`python -m benchmarks shrinkage`: real tables from ../shared/data, or where PAIRFLIP_SHARED_DATA says; median over five
random splits, three quarters of the rows to learn from. `python -m benchmarks shrinkage-simulated`: populations with a
known truth, mean over ten draws. Sizes, shrinkage and the rivals' settings are chosen inside by ten folds (ridge
regression: by its leave-one-out formula). One thread, a few minutes each; PAIRFLIP_DRAWS=2 for a look,
PAIRFLIP_FIRST=10 for other draws, PAIRFLIP_TABLES=gasoline,noise for those whose names begin so.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from sklearn.cross_decomposition import PLSRegression
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LassoCV, RidgeCV
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks.honesty import Population, _few, _gauss
from pairflip import SizeCurve, SubsetProblem, select_size
from pairflip.selection.shrinkage import GRID, with_surface
from pairflip.selection.verdict import recommended_size
from pairflip.tables import read_table

TABLES = {
    "gasoline": ("gasoline/gasoline.csv", "target_octane", ()),
    "tecator": ("tecator/tecator.csv", "target_fat", ("target_water", "target_protein")),
    "supernova 74 x 276": ("supernova_bsnip/snia_74x276.csv", "target_M_B", ()),
    "diabetes_64": ("diabetes/diabetes_64.csv", "target_y", ()),
    "eyedata": ("eyedata/eyedata.csv", "target_TRIM32", ()),
    "aquatictox": ("aquatictox/aquatictox.csv", "target_Activity", ()),
    "riboflavin": ("riboflavin/riboflavin.csv", "target_q_RIBFLV", ()),
}
POPULATIONS = (
    Population("four equal columns, 80 x 100", 80, 100, _few(100, 4), 0.8),
    Population("planted 8, 60 x 120", 60, 120, _gauss(120, 8), 0.8),
    Population("40 weak columns, 80 x 100", 80, 100, _gauss(100, 40), 0.6),
    Population("all 60 weak, 100 x 60", 100, 60, _gauss(60, 60), 0.6),
    Population("neighbours 0.9, 6 columns, 80 x 100", 80, 100, _few(100, 6), 0.7, 0.9),
    Population("neighbours 0.95, 30 columns, 80 x 150", 80, 150, _gauss(150, 30), 0.8, 0.95),
    Population("noise 60 x 200", 60, 200, _few(200, 0), 0.0),
    Population("noise 100 x 50", 100, 50, _few(50, 0), 0.0),
)
LARGEST = 25
TRIED = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
GRIDS = {"no ridge": (0.0,), "auto": GRID, "six values": TRIED, "0, 0.3": (0.0, 0.3)}
Result = tuple[np.ndarray, float, int]
"""Coefficients in the units of the table, intercept, number of columns that are used."""


def subsets(X: np.ndarray, y: np.ndarray) -> tuple[dict[str, Result], dict[str, float]]:
    """Best subsets with every grid of ridge terms (each term is searched once), and seconds without and with auto."""
    problem = SubsetProblem(X, y)
    sizes = range(1, min(LARGEST, X.shape[1]) + 1)
    curves: dict[float, SizeCurve] = {}
    for ridge in TRIED:
        curves[ridge] = select_size(
            problem.with_shrinkage(ridge), sizes, cv=10, effort="quick", progress=False, n_jobs=1
        )
    found = {}
    for name, grid in GRIDS.items():
        curve = with_surface([curves[ridge] for ridge in grid], grid)
        size = recommended_size(curve)
        found[name] = curve.coef(size), float(curve.intercepts[curve.at(size)]), size
    seconds = {ridge: curve.seconds for ridge, curve in curves.items()}
    return found, {"no ridge": seconds[0.0], "auto": sum(seconds[ridge] for ridge in GRID)}


def rivals(X: np.ndarray, y: np.ndarray) -> dict[str, Result]:
    """What people use, with their tuning by ten folds on scaled columns."""
    folds = KFold(10, shuffle=True, random_state=0)
    most = min(15, X.shape[1], int(0.9 * len(y)) - 1)
    models = {
        "LASSO": LassoCV(cv=folds, max_iter=5000),
        "ridge": RidgeCV(np.logspace(-3, 6, 37)),
        "PLS": GridSearchCV(PLSRegression(scale=False), {"n_components": range(1, most + 1)}, cv=folds,
                            scoring="neg_mean_squared_error"),
    }  # fmt: skip
    found = {}
    for name, model in models.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = make_pipeline(StandardScaler(), model).fit(X, y)
        zero = float(np.ravel(fitted.predict(np.zeros((1, X.shape[1]))))[0])
        scaler, last = fitted[0], fitted[-1]
        coef = np.ravel(getattr(last, "best_estimator_", last).coef_) / scaler.scale_
        found[name] = coef, zero, int(np.count_nonzero(coef))
    return found


def compare(X: np.ndarray, y: np.ndarray, truth: Callable[[Result], float]) -> dict[str, tuple[float, int, float]]:
    """(R2 on new rows, columns, seconds) by method."""
    with threadpool_limits(1):
        found, seconds = subsets(X, y)
        began = time.perf_counter()
        found |= rivals(X, y)
        seconds["LASSO"] = time.perf_counter() - began
    return {name: (truth(result), result[2], seconds.get(name, np.nan)) for name, result in found.items()}


def report() -> None:
    """Real tables."""
    root = Path(os.environ.get("PAIRFLIP_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))
    print("\nMedian R2 on new rows (median number of columns), five splits 75/25, ten folds inside, sizes to 25:")
    for name, (file, target, drop) in TABLES.items():
        if not _wanted(name):
            continue
        table = read_table(root / file, target, drop=list(drop))
        records = []
        for split in _draws(5):
            order = np.random.default_rng(split).permutation(len(table.y))
            learn, new = np.split(order, [int(0.75 * order.size)])
            X, y = table.X[new], table.y[new]
            about = float(np.mean((y - table.y[learn].mean()) ** 2))

            def truth(result: Result, X: np.ndarray = X, y: np.ndarray = y, about: float = about) -> float:
                return 1.0 - float(np.mean((y - X @ result[0] - result[1]) ** 2)) / about

            records.append(compare(table.X[learn], table.y[learn], truth))
        _line(name, records, np.median)


def report_simulated() -> None:
    """Populations with a known truth."""
    print("\nMean R2 on new rows (median number of columns), analytic truth, ten folds inside, sizes to 25:")
    for population in filter(lambda each: _wanted(each.name), POPULATIONS):
        records = []
        for seed in _draws(10):
            X, y, b, noise = population.draw(seed)
            C = population.covariance()

            def truth(result: Result, b: np.ndarray = b, noise: float = noise, C: np.ndarray = C) -> float:
                off = result[0] - b
                return 1.0 - float(off @ C @ off + noise + result[1] ** 2) / float(b @ C @ b + noise)

            records.append(compare(X, y, truth))
        _line(population.name, records, np.mean)


def _wanted(name: str) -> bool:
    wanted = os.environ.get("PAIRFLIP_TABLES", "")
    return not wanted or name.split()[0] in wanted.split(",")


def _draws(default: int) -> range:
    first = int(os.environ.get("PAIRFLIP_FIRST", 0))
    return range(first, first + int(os.environ.get("PAIRFLIP_DRAWS", default)))


def _line(
    name: str, records: Sequence[dict[str, tuple[float, int, float]]], middle: Callable[..., np.floating]
) -> None:
    texts = []
    for method in records[0]:
        r2, columns, seconds = (np.array([record[method][i] for record in records]) for i in range(3))
        gain = r2 - [record["no ridge"][0] for record in records]
        error = np.std(gain, ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.nan
        time_text = f", {seconds.sum():.0f} s" if np.isfinite(seconds).all() else ""
        more = "" if method == "no ridge" else f" [{np.mean(gain):+.3f} ± {error:.3f}]"
        none = f", no columns in {np.mean(columns == 0):.0%}" if (columns == 0).any() else ""
        texts.append(f"{method}: {middle(r2):.3f} ({np.median(columns):g}{none}){more}{time_text}")
    print(f"- {name}\n    " + "\n    ".join(texts), flush=True)
