"""Finite temperature: what sampling costs, the theory beside it, and predictions averaged over models.

`python -m benchmarks temperature` (cost and theory), `averaging` (predictions).
"""

import os

import numpy as np
from sklearn.linear_model import LassoCV, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.common import cpu_timed, real_table
from pairflip import BayesianSubsetRegressor, SubsetProblem, SubsetRegressorCV, datasets, sample, temper, theory
from pairflip.engines import WalkPlan, get_engine
from pairflip.philox import chain_keys

SPLITS = int(os.environ.get("PAIRFLIP_SPLITS", 10))


def effective(series):
    """How many independent draws the energies (chain, draw) of a sample are worth, by means of 20 parts of each."""
    parts = np.array([part.mean() for chain in series for part in np.array_split(chain, 20)])
    length = series.shape[1] // 20
    return series.size * min(1.0, series.var() / max(length * parts.var(ddof=1), 1e-300))


def report_cost():
    """Nanoseconds a flip inside `anneal` and `sample`, what exchanging adds, and independent draws a second."""
    data = datasets.make_planted(N=500, alpha=0.2, seed=0)
    _cost_of("planted 100 x 500", SubsetProblem(data.X, data.y), 10)
    if (table := real_table("diabetes/diabetes_64.csv")) is not None:
        _cost_of("diabetes_64", SubsetProblem(*table), 8)


def _cost_of(name, problem, k):
    n, keys, engine = problem.form.n_columns, chain_keys(0, k, None, np.arange(4)), get_engine("numba")
    beta = float(sample(problem, k, sweeps=20).betas[0])
    temper(problem, k, [0.0, beta], sweeps=20)
    sweeps = max(100, int(4e6 / n))
    plan = WalkPlan(k, np.full(2, beta), np.array([n, sweeps * n]), keys)
    walk, _ = cpu_timed(lambda: engine.walk([(problem.form, plan)]))
    draw, found = cpu_timed(lambda: sample(problem, k, beta, sweeps=sweeps, burn_in=1, n_jobs=1))
    ladder = temper(problem, k, sweeps=200, n_jobs=1).betas
    short = {"sweeps": sweeps // 8, "burn_in": 1, "chains": 2, "n_jobs": 1}
    alone = sum(cpu_timed(lambda b=b: sample(problem, k, float(b), **short))[0] for b in ladder)
    traded, rungs = cpu_timed(lambda: temper(problem, k, ladder, **short))
    print(
        f"{name}, k = {k}, beta {beta:.3g}: anneal {1e9 * walk / (4 * sweeps * n):.0f} ns a flip, sample "
        f"{draw / walk:.2f} x; {ladder.size} temperatures with exchanges {traded / alone:.2f} x without; exchange "
        f"rates {rungs.exchange.min():.2f} to {rungs.exchange.max():.2f}; independent energies a second: sample "
        f"{effective(found.energies[:, 0]) / draw:.0f}, temper {effective(rungs.energies[:, -1]) / traded:.0f}"
    )


def report_theory():
    """Energies of tempered planted problems beside the replica theory."""
    model, rho, coldest = theory.Planted(), 0.1, 10.0
    for N, problems in ((100, 40), (200, 20), (400, 10)):
        k, rows, betas = round(rho * N), [], None
        for seed in range(problems):
            data = datasets.make_planted(N, alpha=model.alpha, seed=seed)
            problem = SubsetProblem(data.X, data.y, center=None)
            betas = temper(problem, k, coldest=coldest, sweeps=200).betas if betas is None else betas
            found = temper(problem, k, betas, sweeps=3000, chains=1, seed=seed)
            rows.append(found.energy[0] / data.X.shape[0])
        mean, error = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1) / problems**0.5
        for at in np.linspace(1, betas.size - 1, 5).astype(int):
            state = theory.solve(float(betas[at]), rho, model)
            print(
                f"N = {N}, beta {betas[at]:.3g}: epsilon {mean[at]:.4f} ± {error[at]:.4f} (theory "
                f"{state.epsilon:.4f}){'' if state.stable else ', below AT'}"
            )


def report():
    """Cost, then theory."""
    report_cost()
    report_theory()


def _predictors(sizes):
    """What is compared: estimators made anew for each seed."""
    quick = {"sizes": sizes, "effort": "quick", "cv": 10, "n_jobs": -1}
    return {
        "averaged": lambda seed: BayesianSubsetRegressor(random_state=seed, sweeps=1000, n_jobs=-1),
        "subset": lambda seed: SubsetRegressorCV(**quick, random_state=seed),
        "subset and ridge": lambda seed: SubsetRegressorCV(**quick, ridge="auto", random_state=seed),
        "LASSO": lambda seed: make_pipeline(StandardScaler(), LassoCV(cv=10, max_iter=20_000)),
        "ridge": lambda seed: make_pipeline(StandardScaler(), RidgeCV(np.geomspace(1e-3, 1e5, 60))),
    }


def report_averaging():
    """R2 on new rows over random halves of tables: averaged over models, the chosen subset, LASSO, ridge."""
    tables = {
        "diabetes": real_table("diabetes/diabetes_10.csv"),
        "diabetes_64": real_table("diabetes/diabetes_64.csv"),
        "hitters": real_table("hitters/hitters.csv"),
        "aquatictox": real_table("aquatictox/aquatictox.csv"),
        "riboflavin": real_table("riboflavin/riboflavin.csv"),
    }
    for snr in (0.5, 3.0):
        data = datasets.make_correlated(M=200, N=100, k=5, correlation=0.7, snr=snr, seed=1)
        tables[f"planted, snr {snr}"] = data.X, data.y
    for name, table in tables.items():
        if table is None:
            continue
        X, y = table
        models = _predictors(range(1, min(16, X.shape[1] + 1)))
        rng, scores = np.random.default_rng(0), []
        for seed in range(SPLITS):
            order = rng.permutation(len(y))
            train, test = order[: (2 * len(y)) // 3], order[(2 * len(y)) // 3 :]
            about = np.sum((y[test] - y[train].mean()) ** 2)
            scores.append(
                [
                    1 - np.sum((y[test] - make(seed).fit(X[train], y[train]).predict(X[test])) ** 2) / about
                    for make in models.values()
                ]
            )
        every = np.array(scores)
        ahead = every - every[:, :1]
        error = ahead.std(axis=0, ddof=1) / SPLITS**0.5
        told = [f"averaged {every[:, 0].mean():.3f}"]
        for at, which in enumerate(list(models)[1:], 1):
            told.append(f"{which} {every[:, at].mean():.3f} ({ahead[:, at].mean():+.3f} ± {error[at]:.3f})")
        print(f"{name} ({X.shape[0]} x {X.shape[1]}), R2 on new rows: {', '.join(told)}")
