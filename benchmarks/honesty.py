"""Is what a selection says true? Draw tables from known populations, and count how often it was.

`python -m benchmarks honesty` (an hour on two cores; PAIRFLIP_DRAWS=5 for a look), and `python -m benchmarks intervals`
for the intervals of predictions (eight minutes). The true error of a fit is known
exactly, since rows are Gaussian with a known covariance C: (1/2) [(b - b0)' C (b - b0) + noise variance + intercept^2].
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.common import cells, draws, in_processes, mean_error
from pairflip import SubsetProblem, select_size

SIZES = range(1, 9)
KINDS = ("loo", "10", "auto")


@dataclass(frozen=True)
class Population:
    """Rows x ~ N(0, C), y = x'b + noise: where tables are drawn from. `r2` is the best possible share explained."""

    name: str
    n_rows: int
    n_columns: int
    coef: Callable[[np.random.Generator], np.ndarray]
    r2: float
    correlation: float = 0.0
    tail: str = (
        "normal"  # or "t3", "outliers" (one row in fifty has eight times the noise), "lognormal" (of the target)
    )

    def covariance(self) -> np.ndarray:
        """C_ij = correlation^|i - j|: neighbours are alike, as in spectra."""
        lag = np.abs(np.subtract.outer(np.arange(self.n_columns), np.arange(self.n_columns)))
        return np.where(lag == 0, 1.0, self.correlation**lag)

    def draw(self, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """A table X, y, the true coefficients, and the noise variance."""
        rng = np.random.default_rng([2016, seed, sum(self.name.encode())])
        C = self.covariance()
        X = rng.standard_normal((self.n_rows, self.n_columns)) @ np.linalg.cholesky(C).T
        b = self.coef(rng)
        signal = float(b @ C @ b)
        noise = signal * (1.0 - self.r2) / self.r2 if self.r2 > 0 else 1.0
        return X, self.target(X @ b, noise, rng), b, noise

    def target(self, signal: np.ndarray, noise: float, rng: np.random.Generator) -> np.ndarray:
        """Signal and noise of that variance (before outliers); lognormal: the exponential of their standardized sum."""
        n = signal.size
        if self.tail == "t3":
            return signal + np.sqrt(noise / 3.0) * rng.standard_t(3, n)
        y = signal + np.sqrt(noise) * rng.standard_normal(n) * np.where(
            (self.tail == "outliers") & (rng.random(n) < 0.02), 8.0, 1.0
        )
        return np.exp(0.8 * y / np.sqrt(noise / (1.0 - self.r2))) if self.tail == "lognormal" else y

    def true_error(self, curve, size: int | None, b: np.ndarray, noise: float, seed: int) -> float:
        """Half the mean squared error on new rows of a fit, or with None of the average.

        Exactly, or of 20,000 rows where noise is not normal.
        """
        C = self.covariance()
        coef, intercept = (
            np.zeros(b.size),
            curve.average.intercept if size is None else curve.intercepts[curve.at(size)],
        )
        if size is None:
            coef[curve.average.columns] = curve.average.coefs
        else:
            coef = curve.coef(size)
        if self.tail == "normal":
            off = coef - b
            return 0.5 * float(off @ C @ off + noise + intercept**2)
        rng = np.random.default_rng([2017, seed])
        X = rng.standard_normal((20_000, self.n_columns)) @ np.linalg.cholesky(C).T
        return 0.5 * float(np.mean((self.target(X @ b, noise, rng) - X @ coef - intercept) ** 2))


def few(n: int, k: int, gaussian: bool = False) -> Callable[[np.random.Generator], np.ndarray]:
    """k columns at random places with weights of equal size, or Gaussian ones as in the planted model."""

    def coef(rng: np.random.Generator) -> np.ndarray:
        b = np.zeros(n)
        places = rng.choice(n, k, replace=False)
        b[places] = rng.standard_normal(k) if gaussian else rng.choice([-1.0, 1.0], k) if k else []
        return b

    return coef


SIGNAL = (
    Population("three columns, 30 x 60", 30, 60, few(60, 3), 0.7),
    Population("three columns, 60 x 200", 60, 200, few(200, 3), 0.6),
    Population("planted 8, 60 x 120", 60, 120, few(120, 8, gaussian=True), 0.8),
    Population("planted 6, 100 x 100", 100, 100, few(100, 6, gaussian=True), 0.5),
    Population("neighbours 0.8, 60 x 100", 60, 100, few(100, 4), 0.6, 0.8),
    Population("neighbours 0.95, 100 x 150", 100, 150, few(150, 3), 0.5, 0.95),
)
WEAK = (
    Population("R2 0.3 in 1 of 50, 80 rows", 80, 50, few(50, 1), 0.3),
    Population("R2 0.3 in 1 of 200, 80 rows", 80, 200, few(200, 1), 0.3),
    Population("R2 0.5 in 2 of 100, 80 rows", 80, 100, few(100, 2), 0.5),
    Population("R2 0.5 in 3 of 100, 80 rows", 80, 100, few(100, 3), 0.5),
)
NOISE = (
    Population("noise 30 x 400", 30, 400, few(400, 0), 0.0),
    Population("noise 60 x 200", 60, 200, few(200, 0), 0.0),
    Population("noise 100 x 50", 100, 50, few(50, 0), 0.0),
)


def one(population: Population, seed: int, cv: str) -> dict[str, object]:
    """What one table's selection said and what was true, by size (0 first)."""
    X, y, b, noise = population.draw(seed)
    began = time.perf_counter()
    curve = select_size(SubsetProblem(X, y), SIZES, cv=cv, seed=seed, progress=False)
    true = [population.true_error(curve, int(size), b, noise, seed) for size in curve.sizes]
    return {
        "cv": curve.cv_error,
        "true": np.array(true),
        "best": curve.at(curve.best_size),
        "one_se": curve.at(curve.one_se_size),
        "recommended": curve.at(curve.answer.size),
        "predicts": curve.answer.predicts,
        "p": curve.facts["p_value"],
        "seconds": time.perf_counter() - began,
    }


def report() -> None:
    """Print one line for each population and kind of cross validation."""
    seeds, populations = draws(40), (*SIGNAL, *WEAK, *NOISE)
    found = in_processes(one, [(p, seed, cv) for seed in seeds for p in populations for cv in KINDS])
    print(
        f"honesty: {len(seeds)} tables of each population, sizes 1 to {SIZES[-1]}, default search; mean +- "
        "standard error"
    )
    for cv in KINDS:
        print(f"\ncv = {cv}")
        print(f"{'':30}{'called':>11}{'cv/true at':>14}{'  true error over the best of all sizes':<45}{'cv/true of'}")
        print(
            f"{'':30}{'predictive':>11}{'size 3':>14}{'recommended':>15}{'lowest':>14}{'one-SE':>14}{'recommended':>14}"
        )
        for p in populations:
            print(f"{p.name:30}{line([found[p, seed, cv] for seed in seeds])}")


def line(records: list[dict[str, object]]) -> str:
    """What the tables of one population say."""
    called = np.mean([r["predicts"] for r in records])
    fixed = [r["cv"][3] / r["true"][3] for r in records]
    over = {name: [r["true"][r[name]] / r["true"].min() for r in records] for name in ("recommended", "best", "one_se")}
    told = [r["cv"][r["recommended"]] / r["true"][r["recommended"]] for r in records]
    ratios = [fixed, over["recommended"], over["best"], over["one_se"], told]
    return f"{called:>11.0%}" + cells(map(mean_error, ratios), 14)


COVERAGE = 0.9
FIXED = 3
NEW_ROWS = 200
COVERED = (*SIGNAL[:3], SIGNAL[5], NOISE[0], NOISE[2])


def covered(population: Population, seed: int, cv: str) -> dict[str, tuple[float, float]]:
    """Coverage of new rows and width over the best possible, at a size fixed before, at that chosen, and the best one.

    New rows x are drawn; given x, how often y falls into the interval is known exactly.
    """
    from scipy.stats import norm

    X, y, b, noise = population.draw(seed)
    curve = select_size(SubsetProblem(X, y), SIZES, cv=cv, seed=seed, effort="quick", progress=False)
    rng = np.random.default_rng([7, seed])
    new = rng.standard_normal((NEW_ROWS, population.n_columns)) @ np.linalg.cholesky(population.covariance()).T
    found = {}
    for name, size in (("fixed", FIXED), ("chosen", curve.answer.size), ("lowest", curve.best_size)):
        told = curve.predict(new, size, interval=COVERAGE)
        low, high = ((bound - new @ b) / noise**0.5 for bound in (told.lower, told.upper))
        width = np.mean(told.upper - told.lower) / (2 * norm.ppf(0.5 + COVERAGE / 2) * noise**0.5)
        found[name] = float(np.mean(norm.cdf(high) - norm.cdf(low))), float(width)
    return found


def report_intervals() -> None:
    """Print how many new rows the intervals cover, one line for each population and kind of cross validation."""
    seeds = draws(100)
    found = in_processes(covered, [(p, seed, cv) for p in COVERED for cv in KINDS for seed in seeds])
    print(
        f"intervals: {len(seeds)} tables of each population, {NEW_ROWS} new rows, sizes 1 to {SIZES[-1]}, quick "
        f"search; {COVERAGE:.0%} asked for;\nper cent of new rows covered +- standard error "
        "(width over the true model's)"
    )
    print(f"{'':30}{'cv':>6}{f'size {FIXED}, fixed before':>24}{'size recommended':>24}{'size of lowest error':>24}")
    for p in COVERED:
        for cv in KINDS:
            told = []
            for name in ("fixed", "chosen", "lowest"):
                inside, width = np.array([found[p, seed, cv][name] for seed in seeds]).T
                told.append(f"{mean_error(100 * inside, 1)} ({np.mean(width):.2f})")
            print(f"{p.name:30}{cv:>6}" + cells(told, 24))


CLUSTERS = ((10, 10), (20, 6), (40, 3))  # clusters of rows, and rows of each
SHARES = (0.0, 0.2, 0.5)  # of the noise, and of each of the columns, that the rows of a cluster have in common


def clustered(clusters: int, each: int, share: float, seed: int) -> dict[str, float]:
    """Whether remarks appear on rows of clusters, in order and shuffled, and whether intervals hold in new clusters."""
    from pairflip.selection.facts import alike_rows

    warnings.simplefilter("ignore", UserWarning)  # about rows outside the range of the training rows
    rng, n_columns = np.random.default_rng([11, clusters, seed]), 20

    def draw(clusters: int, each: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        code = np.repeat(np.arange(clusters), each)
        values = share**0.5 * rng.normal(size=(clusters, n_columns + 1))[code]
        values += (1.0 - share) ** 0.5 * rng.normal(size=(code.size, n_columns + 1))
        return values[:, :-1], values[:, :-1] @ np.r_[1.0, -1.0, 0.5, np.zeros(n_columns - 3)] + values[:, -1], code

    X, y, code = draw(clusters, each)
    new, truth, _ = draw(4000, 5)
    found = {}
    for name in ("order", "shuffled", "groups"):
        at = np.random.default_rng(seed).permutation(y.size) if name == "shuffled" else np.arange(y.size)
        how = {"groups": code[at]} if name == "groups" else {}
        curve = select_size(SubsetProblem(X[at], y[at]), range(1, 7), "5x10", seed=seed, effort="quick", **how)
        found[f"{name}: neighbours"] = "autocorrelation" in curve.facts
        found[f"{name}: column"] = bool(alike_rows(curve, {"cluster": code[at]}))
        corrected, size = curve.answer.error, curve.answer.size
        if corrected is not None:
            error = truth - curve.predict(new, size)
            true = {"rmse": float(np.mean(error**2)) ** 0.5, "r2": 1.0 - float(np.mean(error**2) / truth.var())}
            for what, value in true.items():
                _, low, high = getattr(corrected, what)
                found[f"{name}: {what}"] = low <= value <= high
        told = curve.predict(new, size, interval=COVERAGE)
        found[f"{name}: rows"] = float(np.mean((told.lower <= truth) & (truth <= told.upper)))
    return found


def report_clusters() -> None:
    """Print how often clusters of rows are remarked on, and how often intervals hold, one line for each kind."""
    seeds = draws(60)
    found = in_processes(clustered, [(*kind, share, seed) for kind in CLUSTERS for share in SHARES for seed in seeds])
    print(
        f"clusters of rows: {len(seeds)} tables of each kind, 20 columns, 5x10 folds; per cent of the tables, or rows"
    )
    for name in ("order", "shuffled", "groups"):
        heads = ("neighbours", "column", "rmse", "r2", "rows")
        print(f"\n{name:22}" + cells(heads, 12))
        for clusters, each in CLUSTERS:
            for share in SHARES:
                records = [found[clusters, each, share, seed] for seed in seeds]
                values = [[r[f"{name}: {head}"] for r in records if f"{name}: {head}" in r] for head in heads]
                shown = [f"{100 * np.mean(v):.0f}" if v else "-" for v in values]
                print(f"{f'{clusters} x {each}, share {share:g}':22}" + cells(shown, 12))
