"""Several targets: energy and time beside abess, on planted tables, made-up spectra and (where it is) tecator."""

import os
import time
from pathlib import Path

import numpy as np

from pairflip import SubsetProblem, anneal, best_subset

try:
    from abess import MultiTaskRegression
except ImportError:
    MultiTaskRegression = None

FIRST = int(os.environ.get("PAIRFLIP_FIRST", 10))
DATA = Path(os.environ.get("PAIRFLIP_SHARED_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


def planted(rows, columns, q, k, seed):
    """Independent normal columns; k of them make each of q targets, with as much noise again."""
    rng = np.random.default_rng([rows, columns, q, k, seed])
    X = rng.normal(size=(rows, columns))
    Y = X[:, rng.choice(columns, k, replace=False)] @ rng.normal(size=(k, q))
    return X, Y + np.sqrt(k) * rng.normal(size=(rows, q))


def spectra(rows, columns, q, k, seed):
    """Sums of 20 smooth bands of random amounts; k wavelengths make each of q targets."""
    rng = np.random.default_rng([rows, columns, q, k, seed, 1])
    at, centre, width = np.arange(columns), rng.uniform(0, columns, 20), rng.uniform(15, 80, 20)
    bands = np.exp(-(((at - centre[:, None]) / width[:, None]) ** 2))
    X = rng.lognormal(size=(rows, 20)) @ bands + 1e-3 * rng.normal(size=(rows, columns))
    Y = (X / X.std(axis=0))[:, rng.choice(columns, k, replace=False)] @ rng.normal(size=(k, q))
    return X, Y + 0.1 * Y.std(axis=0) * rng.normal(size=(rows, q))


def tecator():
    """Fat, water and protein of 215 samples by 100 absorbances; None where the table is not there."""
    file = DATA / "tecator" / "tecator.csv"
    if not file.exists():
        return None
    values = np.loadtxt(file, delimiter=",", skiprows=1)
    return values[:, 3:], values[:, :3]


def splicing(X, Y, sizes):
    """Columns that abess ends with after `sizes`, each started from the one before; targets of unit variance."""
    model = MultiTaskRegression(support_size=sizes, ic_coef=0.0, cv=1, thread=1)
    fitted = model.fit(X, (Y - Y.mean(axis=0)) / Y.std(axis=0))
    return np.flatnonzero(np.abs(fitted.coef_).sum(axis=1))


def compare(name, tables, k):
    """One line for each search: mean energy, how often no higher than abess, median seconds."""
    rows = []
    for X, Y in tables:
        problem, row = SubsetProblem(X, Y), []
        for options in ({"effort": "quick"}, {}, {"method": "anneal", "chains": 8}):
            began = time.perf_counter()
            row += [best_subset(problem, k, **options).best_energy, time.perf_counter() - began]
        for sizes in ([k], range(1, k + 1)) if MultiTaskRegression is not None else ():
            began = time.perf_counter()
            support = splicing(X, Y, sizes)
            row += [problem.energy(support) if support.size == k else np.inf, time.perf_counter() - began]
        rows.append(row)
    table = np.array(rows)
    energy, seconds = table[:, ::2], np.median(table[:, 1::2], axis=0)
    rival = energy[:, 3:].min(axis=1, initial=np.inf)
    for which, search in enumerate(("quick", "normal", "anneal", "abess k", "abess 1..k")[: energy.shape[1]]):
        own = energy[:, which]
        print(
            f"{name}, k = {k:2d}, {search:10s}: energy {own.mean():9.4f}, no higher than abess "
            f"{np.sum(own <= rival * (1 + 1e-9)):2d} of {len(own)}, lower {np.sum(own < rival * (1 - 1e-9)):2d}, "
            f"{1e3 * seconds[which]:7.1f} ms",
            flush=True,
        )


def report():
    """Half the sum of squared errors of all targets (each of unit variance) at one size, and seconds."""
    if MultiTaskRegression is None:
        print("abess is not installed (pip install abess): its lines are missing")
    warm = SubsetProblem(*spectra(30, 40, 2, 2, 0))
    best_subset(warm, 3)  # compiles
    anneal(warm, 3, chains=2)
    table = tecator()
    for k in (4, 6, 8) if table is not None else ():
        compare("tecator, 3 targets", [table], k)
    for k in (3, 5, 8):
        compare("spectra 72 x 700, 4 targets", [spectra(72, 700, 4, k, seed) for seed in range(FIRST)], k)
    for k in (5, 10, 20):
        compare("planted 200 x 500, 3 targets", [planted(200, 500, 3, k, seed) for seed in range(FIRST)], k)
