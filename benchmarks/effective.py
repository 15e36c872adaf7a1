"""Effective samples a second, by ArviZ; and probabilities of columns after a given time, beside millipede.

`python -m benchmarks ess` (needs arviz; millipede-regression and torch for the second part, which is left out without
them). Times are CPU seconds on one thread.
"""

from importlib.util import find_spec

import numpy as np

from benchmarks.common import cpu_timed, real_table
from pairflip import SubsetProblem, datasets, posterior, sample, temper

SEEDS = 5
LONG, PARTS = 40.0, 4  # seconds of the run that others are compared with, in so many parts
EXPECTED = 5.0  # columns before the data


def tables():
    """The table, the target and the size of each problem."""
    data = datasets.make_planted(N=500, alpha=0.2, seed=0)
    found = {"planted 100 x 500": (data.X, data.y, 10)}
    if (table := real_table("diabetes/diabetes_64.csv")) is not None:
        found["diabetes_64"] = (*table, 8)
    return found


def report():
    """Both parts, table by table."""
    for name, (X, y, k) in tables().items():
        if find_spec("arviz") is None:
            print("effective samples: arviz is not installed")
        else:
            _effective(name, SubsetProblem(X, y), k)
        _probabilities(name, X, y)


def _effective(name, problem, k):
    """Bulk effective sample size of the energy at the coldest temperature, and the least of any frequent column."""
    import arviz

    sample(problem, k, sweeps=20, n_jobs=1)  # compiles
    betas = temper(problem, k, sweeps=200, n_jobs=1).betas
    sweeps = max(1000, int(2e6 / problem.n_columns))
    runs = {
        "sample": lambda: sample(problem, k, sweeps=sweeps, chains=4, n_jobs=1),
        f"temper ({betas.size} temperatures)": lambda: temper(
            problem, k, betas, sweeps=sweeps // 8, chains=4, n_jobs=1
        ),
        "temper, a draw after every sweep": lambda: temper(
            problem, k, betas, sweeps=sweeps // 8, thin=1, chains=4, n_jobs=1
        ),
    }
    for which, run in runs.items():
        seconds, found = cpu_timed(run)
        tree = found.to_datatree()
        data = arviz.InferenceData.from_datatree(tree) if hasattr(arviz, "InferenceData") else tree
        ess, rhat = arviz.ess(data, method="bulk"), arviz.rhat(data)
        often = found.inclusion_probability
        inside = [v for v in ess["included"].values if np.isfinite(v)]
        print(
            f"{name}, k = {k}, {which}: {seconds:.2f} s, effective samples a second: energy "
            f"{float(ess['energy']) / seconds:.0f}, the {len(inside)} most frequent columns at least "
            f"{min(inside) / seconds:.0f}; R-hat of the energy {float(rhat['energy']):.3f} (columns in most draws: "
            f"{int(np.sum(often > 0.5))})"
        )


def _probabilities(name, X, y):
    """Root mean square error of inclusion probabilities at equal times, against a long run.

    Both have the g-prior with g = the number of rows, columns that are in independently of each other, and no constant:
    X and y are centred, so that the two distributions are the same.
    """
    X, y = X - X.mean(axis=0), y - y.mean()
    X /= np.linalg.norm(X, axis=0) / len(y) ** 0.5
    problem, h = SubsetProblem(X, y, center=None), EXPECTED / X.shape[1]

    def walk(sweeps, seed):
        return posterior(
            problem, prior=h, sizes=range(41), method="sample", sweeps=sweeps, seed=seed, n_jobs=1
        ).inclusion_probability

    walk(20, 0)  # compiles
    seconds, _ = cpu_timed(lambda: walk(400, 0))
    parts = np.array([walk(int(400 * LONG / PARTS / seconds), 100 + part) for part in range(PARTS)])
    truth, error = parts.mean(axis=0), parts.std(axis=0, ddof=1) / PARTS**0.5
    print(f"{name}: root mean square error of the long run {np.sqrt(np.mean(error**2)):.5f}")
    for budget in (1.0, 5.0):
        sweeps = max(20, int(400 * budget / seconds))
        _tell(name, "posterior", budget, truth, lambda seed, sweeps=sweeps: walk(sweeps, seed))
    if find_spec("millipede") is None:
        print("probabilities: millipede-regression is not installed")
        return
    _millipede(name, X, y, truth)


def _millipede(name, X, y, truth):
    import pandas as pd
    import torch
    from millipede import NormalLikelihoodVariableSelector

    torch.set_num_threads(1)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(y=y)

    def walk(draws, seed, precompute):
        selector = NormalLikelihoodVariableSelector(
            frame, "y", S=EXPECTED, prior="gprior", include_intercept=False, c=float(len(y)), precompute_XX=precompute
        )
        selector.run(T=draws, T_burnin=max(100, draws // 5), verbosity=None, seed=seed)
        return selector.summary["PIP"].loc[frame.columns[:-1]].to_numpy()

    for precompute in (False, True):
        seconds = cpu_timed(lambda p=precompute: walk(300, 0, p))[0] / 400  # a draw
        for budget in (1.0, 5.0):
            draws = int(budget / seconds / 1.2)
            which = f"millipede ({'with' if precompute else 'without'} all inner products)"
            _tell(name, which, budget, truth, lambda seed, n=draws, p=precompute: walk(n, seed, p))


def _tell(name, which, budget, truth, walk):
    errors, took = [], []
    for seed in range(SEEDS):
        seconds, found = cpu_timed(lambda seed=seed: walk(seed + 1))
        errors.append(np.sqrt(np.mean((found - truth) ** 2)))
        took.append(seconds)
    error = np.std(errors, ddof=1) / SEEDS**0.5
    print(
        f"{name}, {which}, {budget:g} s asked: {np.mean(took):.2f} s, root mean square error {np.mean(errors):.5f} ± "
        f"{error:.5f}"
    )
