"""Finite temperature: what sampling costs, the theory beside it, finding optima, and predictions averaged over models.

`python -m benchmarks temperature` (cost and theory), `hits` (against annealing and kicks), `averaging` (predictions).
Real tables are read from a folder named by PAIRFLIP_DATA, where there is one.
"""

import csv
import os
import time
from pathlib import Path

import numpy as np
from sklearn.linear_model import LassoCV, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pairflip import (
    BayesianSubsetRegressor,
    SubsetProblem,
    SubsetRegressorCV,
    anneal,
    best_subset,
    datasets,
    sample,
    temper,
    theory,
)
from pairflip.engines import WalkPlan, get_engine
from pairflip.philox import chain_keys
from pairflip.search.sampling import noise_beta

DATA = Path(os.environ.get("PAIRFLIP_DATA", "../shared/data"))
SPLITS = int(os.environ.get("PAIRFLIP_SPLITS", 10))


def real(name, file):
    """Columns of numbers and the target of a table, or None where it is not there."""
    path = DATA / name / file
    if not path.exists():
        return None
    with path.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    target = next(key for key in rows[0] if key.startswith("target"))

    def is_number(key):
        try:
            [float(row[key]) for row in rows]
        except ValueError:
            return False
        return True

    names = [key for key in rows[0] if key != target and is_number(key)]
    X = np.array([[float(row[key]) for key in names] for row in rows])
    return X[:, X.std(axis=0) > 0], np.array([float(row[target]) for row in rows])


def effective(series):
    """How many independent draws the energies (chain, draw) of a sample are worth, by means of 20 parts of each."""
    parts = np.array([part.mean() for chain in series for part in np.array_split(chain, 20)])
    length = series.shape[1] // 20
    return series.size * min(1.0, series.var() / max(length * parts.var(ddof=1), 1e-300))


def timed(work):
    """CPU seconds of a call, and what it gives."""
    began = time.process_time()
    found = work()
    return time.process_time() - began, found


def report_cost():
    """Nanoseconds a flip inside `anneal` and `sample`, what exchanging adds, and independent draws a second."""
    data = datasets.make_planted(N=500, alpha=0.2, seed=0)
    _cost_of("planted 100 x 500", SubsetProblem(data.X, data.y), 10)
    if (table := real("diabetes", "diabetes_64.csv")) is not None:
        _cost_of("diabetes_64", SubsetProblem(*table), 8)


def _cost_of(name, problem, k):
    n, keys, engine = problem.form.n_columns, chain_keys(0, k, None, np.arange(4)), get_engine("numba")
    beta = float(sample(problem, k, sweeps=20).betas[0])
    temper(problem, k, [0.0, beta], sweeps=20)
    sweeps = max(100, int(4e6 / n))
    plan = WalkPlan(k, np.full(2, beta), np.array([n, sweeps * n]), keys)
    walk, _ = timed(lambda: engine.walk([(problem.form, plan)]))
    draw, found = timed(lambda: sample(problem, k, beta, sweeps=sweeps, burn_in=1, n_jobs=1))
    ladder = temper(problem, k, sweeps=200, n_jobs=1).betas
    short = {"sweeps": sweeps // 8, "burn_in": 1, "chains": 2, "n_jobs": 1}
    alone = sum(timed(lambda b=b: sample(problem, k, float(b), **short))[0] for b in ladder)
    traded, rungs = timed(lambda: temper(problem, k, ladder, **short))
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


def report_hits():
    """How often kicks, annealing and tempering find the lowest energy known, each given the same time."""
    data = datasets.make_correlated(M=100, N=300, k=10, correlation=0.9, snr=3.0, seed=0)
    tables = {
        "diabetes_64": (real("diabetes", "diabetes_64.csv"), 12),
        "aquatictox": (real("aquatictox", "aquatictox.csv"), 12),
        "riboflavin": (real("riboflavin", "riboflavin.csv"), 6),
        "correlated 100 x 300": ((data.X, data.y), 10),
    }
    for name, (table, k) in tables.items():
        if table is not None:
            _hits_of(name, SubsetProblem(*table), k)


def _hits_of(name, problem, k):
    searches = {
        "tempering": lambda s: _tempered(problem, k, s),
        "annealing": lambda s: anneal(problem, k, chains=1, seed=s, n_jobs=1).best_energy,
        "kicks": lambda s: (
            best_subset(problem, k, method="descend", effort="quick", seed=s, n_jobs=1, prove=False).best_energy
        ),
    }
    best, took = np.zeros((3, SPLITS)), np.zeros((3, SPLITS))
    for search in searches.values():
        search(0)  # compiles
    for seed in range(SPLITS):
        for which, search in enumerate(searches.values()):
            # One ladder takes as long as it takes; the others begin anew until that time is over.
            took[which, seed], best[which, seed] = timed(lambda f=search, s=seed, t=took[0, seed]: _until(t, f, s))
    lowest = best.min()
    hits = (best <= lowest * (1 + 1e-9)).mean(axis=1)
    for which, search in enumerate(searches):
        error = np.sqrt(hits[which] * (1 - hits[which]) / SPLITS)
        print(
            f"{name}, k = {k}, {search}: found {hits[which]:.0%} ± {error:.0%}, mean excess "
            f"{best[which].mean() / lowest - 1:.2%}, {took[which].mean():.2f} s"
        )


def _until(seconds, search, seed):
    """The lowest energy of searches with one seed after the other, until the time is over."""
    began, low, at = time.process_time(), np.inf, 0
    while not at or time.process_time() - began < seconds:
        low, at = min(low, search(1000 * seed + at)), at + 1
    return low


def _tempered(problem, k, seed):
    """The lowest energy met by a ladder that gets much colder than the noise."""
    cold = 30.0 * noise_beta(problem, k)
    return float(temper(problem, k, coldest=cold, sweeps=400, chains=1, seed=seed, n_jobs=1).energies.min())


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
        "diabetes": real("diabetes", "diabetes_10.csv"),
        "diabetes_64": real("diabetes", "diabetes_64.csv"),
        "hitters": real("hitters", "hitters.csv"),
        "aquatictox": real("aquatictox", "aquatictox.csv"),
        "riboflavin": real("riboflavin", "riboflavin.csv"),
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
