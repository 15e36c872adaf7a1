"""The designs of Hastie, Tibshirani & Tibshirani (Statistical Science 35, 579, 2020): which predicts best?

`python -m benchmarks designs` draws tables of normal columns (neighbours correlated by rho^|i - j|, five coefficients
of 1 in front, noise by the signal-to-noise ratio) and fits every method to each, its penalty or size chosen by ten
folds. Relative test error is the mean squared error on new rows, computed from the coefficients, over that of the
noise: 1 is perfect, 1 + SNR is the mean. PAIRFLIP_DRAWS (10) tables of each design, PAIRFLIP_JOBS (all cores)
processes. What docs/results/designs.csv holds already is not run again, so that the same command goes on where it was
stopped (remove the file to begin anew); `designs-table` shows what there is. Writes that file and its figure.
"""

import csv
import os
import time
from itertools import product

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from benchmarks.common import DOCS, save_figure

DRAWS = int(os.environ.get("PAIRFLIP_DRAWS", 10))
JOBS = int(os.environ.get("PAIRFLIP_JOBS", -1))
ROWS, COLUMNS, CORRELATIONS = (100, 500), (10, 100, 1000), (0.0, 0.35, 0.7)
SNRS = (0.05, 0.25, 1.22, 6.0)
ACTIVE = 5
HEADS = ("rows", "columns", "correlation", "snr", "draw", "method", "relative_test_error", "nonzero", "seconds")


def drawn(n, p, rho, snr, seed):
    """X, y, the true coefficients, and the standard deviation of the noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    beta = np.zeros(p)
    beta[:ACTIVE] = 1.0
    noise = np.sqrt(covariance(beta, rho) / snr)
    return X, X @ beta + noise * rng.standard_normal(n), beta, noise


def covariance(coef, rho):
    """coef' Sigma coef for Sigma_ij = rho^|i - j|, in one pass."""
    total = carried = 0.0
    for value in coef:
        total += value * (value + 2.0 * rho * carried)
        carried = value + rho * carried
    return total


def subset(X, y):
    """pairflip: one subset, size by ten folds."""
    from pairflip import SubsetRegressorCV

    most = min(20, X.shape[1], int(0.45 * len(X)))
    model = SubsetRegressorCV(sizes=range(1, most + 1), cv=10, effort="quick", random_state=0).fit(X, y)
    return model.coef_, model.intercept_


def average(X, y):
    """pairflip: the weighted average of models."""
    from pairflip import SubsetProblem, select_size

    most = min(20, X.shape[1], int(0.45 * len(X)))
    curve = select_size(
        SubsetProblem(X, y), range(1, most + 1), cv=10, effort="quick", seed=0, predict_with="average", prove=False
    )
    coef = np.zeros(X.shape[1])
    coef[curve.average.columns] = curve.average.coefs
    return coef, float(curve.average.intercept)


def _sklearn(name, **options):
    def fit(X, y):
        from sklearn import linear_model

        model = getattr(linear_model, name)(**options).fit(X, y)
        return model.coef_, model.intercept_

    return fit


def relaxed(X, y):
    """The relaxed LASSO, penalty and relaxation by ten folds."""
    from sklearn.model_selection import KFold

    from pairflip.comparison.peers.predictors import relaxed_paths

    def scaled(rows):
        middle, mean = X[rows].mean(axis=0), y[rows].mean()
        norm = np.linalg.norm(X[rows] - middle, axis=0)
        return (X[rows] - middle) / norm, y[rows] - mean, middle, mean, norm

    every = np.arange(len(y))
    columns, target, middle, mean, norm = scaled(every)
    alphas = np.max(np.abs(columns.T @ target)) * np.geomspace(1.0, 1e-3, 50)
    errors = 0.0
    for inside, outside in KFold(10, shuffle=True, random_state=0).split(X):
        A, b, m, c, d = scaled(inside)
        paths = relaxed_paths(A, b, alphas * np.sqrt(inside.size / len(y)))
        errors = errors + np.sum((y[outside] - c - paths @ ((X[outside] - m) / d).T) ** 2, axis=-1)
    relaxation, at = np.unravel_index(int(np.argmin(errors)), errors.shape)
    coef = relaxed_paths(columns, target, alphas[: at + 1])[relaxation, at] / norm
    return coef, mean - middle @ coef


def abess(X, y):
    """abess, size by ten folds."""
    from abess import LinearRegression

    most = min(20, X.shape[1], int(0.45 * len(X)))
    model = LinearRegression(support_size=range(most + 1), cv=10, thread=1).fit(X, y)
    return model.coef_, model.intercept_


def mcp(X, y):
    """The minimax concave penalty of skglm, by ten folds."""
    from skglm import MCPRegression
    from sklearn.model_selection import GridSearchCV

    mean, middle = y.mean(), X.mean(axis=0)
    largest = np.max(np.abs((X - middle).T @ (y - mean))) / len(y)
    alphas = {"alpha": largest * np.geomspace(1.0, 0.01, 20)}
    found = GridSearchCV(MCPRegression(), alphas, cv=10, scoring="neg_mean_squared_error").fit(X, y).best_estimator_
    return found.coef_, found.intercept_


def forest(X, y):
    """A random forest, whose predictions are judged on new rows of the same design: it has no coefficients."""
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(100, max_features=1 / 3, random_state=0).fit(X, y)


METHODS = {
    "pairflip, subset": subset,
    "pairflip, average": average,
    "OMP": _sklearn("OrthogonalMatchingPursuitCV", cv=10),
    "LASSO": _sklearn("LassoCV", cv=10),
    "relaxed LASSO": relaxed,
    "elastic net": _sklearn("ElasticNetCV", cv=10, l1_ratio=0.5),
    "ridge": _sklearn("RidgeCV", alphas=np.geomspace(1e-2, 1e5, 30)),
    "abess": abess,
    "MCP": mcp,
    "random forest": forest,
}
NEW_ROWS = 2000


def run(n, p, rho, snr, draw, names):
    """A line for each method."""
    X, y, beta, noise = drawn(n, p, rho, snr, [draw, n, p, int(100 * rho), int(100 * snr)])
    lines = []
    with threadpool_limits(1):
        for name in names:
            began = time.process_time()
            fitted = METHODS[name](X, y)
            seconds = time.process_time() - began
            if name == "random forest":
                fresh, _, _, _ = drawn(NEW_ROWS, p, rho, snr, [1 + draw, n, p])
                error = 1.0 + float(np.mean((fitted.predict(fresh) - fresh @ beta) ** 2)) / noise**2
                nonzero = int(np.count_nonzero(fitted.feature_importances_))
            else:
                coef, intercept = fitted
                error = 1.0 + (covariance(coef - beta, rho) + float(intercept) ** 2) / noise**2
                nonzero = int(np.count_nonzero(np.abs(coef) > 1e-12))
            lines.append((n, p, rho, snr, draw, name, f"{error:.5g}", nonzero, f"{seconds:.3g}"))
    return lines


def installed():
    """The methods that can be run here."""
    from importlib.util import find_spec

    needs = {"abess": "abess", "MCP": "skglm"}
    return [name for name in METHODS if name not in needs or find_spec(needs[name])]


def report():
    """Run all designs, draw by draw, writing lines as they come; then the table and the figure."""
    import warnings

    warnings.simplefilter("ignore")
    os.environ["PYTHONWARNINGS"] = "ignore"
    names = installed()
    run(100, 10, 0.0, 1.22, 0, names)  # compiles
    path, done = DOCS / "results" / "designs.csv", set()
    if path.is_file():
        with path.open(encoding="utf-8") as file:
            for line in csv.DictReader(file):
                design = int(line["rows"]), int(line["columns"]), float(line["correlation"]), float(line["snr"])
                done.add((*design, int(line["draw"]), line["method"]))
    designs = sorted(product(ROWS, COLUMNS, CORRELATIONS, SNRS), key=lambda each: -each[0] * each[1])
    jobs = [((*design, draw), name) for draw in range(DRAWS) for design in designs for name in names]
    missing = {}
    for job, name in jobs:
        if (*job, name) not in done:
            missing.setdefault(job, []).append(name)
    pool = Parallel(JOBS, batch_size=1, return_as="generator_unordered")
    with path.open("a", newline="", encoding="utf-8") as file:
        lines = csv.writer(file, lineterminator="\n")
        if not done:
            lines.writerow(HEADS)
        for part in pool(delayed(run)(*job, left) for job, left in missing.items()):
            lines.writerows(part)
            file.flush()
    show()


def read(path):
    """{(rows, columns, correlation, snr): {method: [(error, nonzero, seconds)]}}."""
    found = {}
    with path.open(encoding="utf-8") as file:
        for line in csv.DictReader(file):
            key = int(line["rows"]), int(line["columns"]), float(line["correlation"]), float(line["snr"])
            numbers = tuple(float(line[name]) for name in HEADS[6:])
            found.setdefault(key, {}).setdefault(line["method"], []).append(numbers)
    return found


def show(path=DOCS / "results" / "designs.csv"):
    """The table for the documentation, and the figure."""
    found = read(path)
    names = list(dict.fromkeys(name for each in found.values() for name in each))
    print("| method | error within 1 % of the best | mean excess error | nonzero | seconds at 500 x 1,000 |")
    print("| --- | --- | --- | --- | --- |")
    means = {key: {name: np.mean([e for e, _, _ in each[name]]) for name in each} for key, each in found.items()}
    for name in names:
        ratios = np.array([each[name] / min(each.values()) for each in means.values() if name in each])
        size = np.mean([n for each in found.values() for _, n, _ in each.get(name, [])])
        large = [s for key, each in found.items() if key[:2] == (500, 1000) for _, _, s in each.get(name, [])]
        excess, spread = np.mean(ratios - 1), np.std(ratios) / np.sqrt(len(ratios))
        told = f"{np.mean(ratios <= 1.01):.0%} | {excess:.1%} ± {spread:.1%}"
        print(f"| {name} | {told} | {size:.0f} | {np.mean(large) if large else np.nan:.2g} |")
    draw(means, names, path.with_suffix(".svg"))


def draw(means, names, path):
    """Test error above the noise against the signal-to-noise ratio, a panel for each shape, correlation 0.35."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 5.4))
    axes = figure.subplots(len(ROWS), len(COLUMNS), squeeze=False)
    for (n, p), ax in zip(product(ROWS, COLUMNS), axes.ravel(), strict=True):
        for at, name in enumerate(names):
            here = {snr: means.get((n, p, 0.35, snr), {}) for snr in SNRS}
            points = [(snr, errors[name] - 1) for snr, errors in here.items() if name in errors]
            if points:
                x, y = zip(*points, strict=True)
                look = {"lw": 2, "ls": "-"} if name.startswith("pairflip") else {"lw": 1, "ls": "--"}
                ax.plot(x, y, marker="o", ms=3, color=f"C{at}", label=name, **look)
        ax.set(xscale="log", yscale="log", title=f"{n} rows, {p:,} columns")
        ax.title.set_fontsize(9)
    for row in axes:
        row[0].set_ylabel("error above the noise,\nin units of the noise")
    for ax in axes[-1]:
        ax.set_xlabel("signal-to-noise ratio")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=5, fontsize=8)
    figure.tight_layout(rect=(0, 0.09, 1, 1))
    save_figure(figure, path)
