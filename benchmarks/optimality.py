"""How often each method finds the exact optimum, on tables small enough to look at every subset."""

import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lars_path, orthogonal_mp

from pairflip import SubsetProblem, best_subset, datasets, prove
from pairflip.engines.base import reaches


def tables():
    """(name, X, y, sizes): diabetes with products, spectra, neighbours correlated, factors like genes, duplicates."""
    diabetes = datasets.load_diabetes_products()
    yield "diabetes 442 x 64", diabetes.X, diabetes.y, (2, 3, 4)
    for seed in range(5):
        spectra = datasets.make_spectra(M=60, N=300, components=3 + seed, noise=1e-3, seed=seed)
        yield "spectra 60 x 300", spectra.X, spectra.y, (2, 3)
        chain = datasets.make_correlated(M=80, N=300, k=5, correlation=0.99, snr=2.0, seed=seed)
        yield "neighbours 80 x 300", chain.X, chain.y, (2, 3)
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(90, 12)) @ rng.normal(size=(12, 250)) + 0.6 * rng.normal(size=(90, 250))
        y = X[:, :8] @ rng.normal(size=8) + 4.0 * rng.normal(size=90)
        yield "factors 90 x 250", X, y, (2, 3)
        yield "duplicates 90 x 240", np.tile(X[:, :80], 3), y, (2, 3)


def omp(problem, k):
    return np.flatnonzero(orthogonal_mp(problem.form.columns.T, problem.form.target, n_nonzero_coefs=k))


def lasso(problem, k):
    """The first k columns that are on the LASSO path together."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # duplicated columns
        _, _, path = lars_path(problem.form.columns.T, problem.form.target, method="lasso", max_iter=20 * k)
    sizes = np.count_nonzero(path, axis=0)
    return np.flatnonzero(path[:, np.flatnonzero(sizes == k)[0]]) if (sizes == k).any() else np.array([], int)


def annealed(problem, k):
    return problem.slots(best_subset(problem, k, seed=0, prove=False).best_support)


def report():
    methods = {"pairflip": annealed, "OMP": omp, "LASSO": lasso}
    found, seconds, cases = dict.fromkeys(methods, 0), dict.fromkeys(methods, 0.0), 0
    best_subset(SubsetProblem(np.eye(6), np.arange(6.0)), 2)  # compiles
    for _, X, y, sizes in tables():
        problem = SubsetProblem(X, y)
        for k in sizes:
            proof = prove(problem, k)
            assert proof.optimal, "no proof within its time"
            cases += 1
            for name, method in methods.items():
                began = time.perf_counter()
                support = method(problem, k)
                seconds[name] += time.perf_counter() - began
                if support.size == k:
                    found[name] += bool(reaches(problem.form.energy(support), proof.energy, problem.form.yy))
    print(f"\nExact optimum found, of {cases} problems (default settings, seed 0, one thread)")
    for name in methods:
        print(f"{name:>9}: {found[name]:3d}   {seconds[name]:.2f} s altogether", flush=True)
