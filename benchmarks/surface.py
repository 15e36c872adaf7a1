"""Held-out error over size and temperature: what it costs, and the replica theory beside it on planted problems.

`python -m benchmarks surface-cost`, `python -m benchmarks surface`. PAIRFLIP_PROBLEMS is the number of planted problems
of 100 columns (half as many of 200; 40 by default). Real tables are read from a folder named by PAIRFLIP_DATA.
"""

import os
import time

import numpy as np

from benchmarks.temperature import real
from pairflip import Schedule, SubsetProblem, datasets, select_size, theory

PROBLEMS = int(os.environ.get("PAIRFLIP_PROBLEMS", 40))
RHOS = (0.05, 0.06, 0.1, 0.15, 0.2)
CHAINS = 4
_REPEATS = 3


def report_cost():
    """CPU seconds of a selection with errors at every temperature over those of one without."""
    data = datasets.make_planted(N=200, seed=0)
    _cost_of("planted 100 x 200, loo", SubsetProblem(data.X, data.y, center=None), "loo", (5, 10, 20, 30))
    _cost_of("planted 100 x 200, 10 folds", SubsetProblem(data.X, data.y, center=None), 10, (5, 10, 20, 30, 40))
    for name, file in (("diabetes", "diabetes_64.csv"), ("aquatictox", "aquatictox.csv"), ("tecator", "tecator.csv")):
        if (table := real(name, file)) is not None:
            _cost_of(f"{name} {table[0].shape}, 10 folds", SubsetProblem(*table), 10, (2, 5, 10, 15))


def _cost_of(name, problem, cv, sizes):
    took = np.zeros((_REPEATS, 2))
    for repeat in range(-1, _REPEATS):  # the first one compiles
        for surface in (0, 1):
            began = time.process_time()
            select_size(problem, sizes, cv, method="anneal", chains=8, surface=bool(surface), prove=False, n_jobs=1)
            took[repeat, surface] = time.process_time() - began
    plain, more = took.min(axis=0)
    print(f"{name}, sizes {sizes}: {plain:.2f} s without, {more:.2f} s with, ratio {more / plain:.3f}")


def report():
    """epsilon_g along the paper's annealing of planted problems, by leaving out one row, and the theory's."""
    for N, problems in ((100, PROBLEMS), (200, PROBLEMS // 2)):
        compare(N, [measured(N, seed) for seed in range(problems)])


def measured(N, seed):
    """cv_error of single supports and of the mean of the chains, each (sizes, steps), and of the lowest energies."""
    data = datasets.make_planted(N, seed=seed)
    curve = select_size(
        SubsetProblem(data.X, data.y, center=None), [round(rho * N) for rho in RHOS], schedule=Schedule.paper(),
        chains=CHAINS, seed=seed, surface=True, polish=False, prove=False, n_jobs=-1,
    )  # fmt: skip
    return curve.surface.cv_error, curve.surface.averaged_error, curve.cv_error[1:]


def compare(N, problems):
    """Print the errors of some problems beside the theory of a table with one row less, as a fold has."""
    model, betas = theory.Planted(alpha=(round(0.5 * N) - 1) / N), np.array(Schedule.paper().betas)
    told = [np.array(each) for each in zip(*problems, strict=True)]
    for s, rho in enumerate(RHOS):
        _compare(N, rho, model, *(each[:, s] for each in told), betas)


def _mean(values):
    """Mean over problems and its standard error."""
    return values.mean(axis=0), values.std(axis=0, ddof=1) / len(values) ** 0.5


def _compare(N, rho, model, single, averaged, chosen, betas):
    """Print errors (problems, steps) at some temperatures beside the theory, and what stopping early gains."""
    point = theory.at_point(rho, model)
    at = 1 / point.temperature if point.exists else np.inf
    print(f"N = {N}, k = {round(rho * N)}, {len(single)} problems; AT at beta {at:.1f}")
    for beta in (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 200.0, betas[-1]):
        t = int(np.abs(np.log(betas[1:] / beta)).argmin()) + 1
        state = theory.solve(float(betas[t]), rho, model)
        mean = 0.5 * model.alpha * (state.tau2 + state.V / (CHAINS * (model.alpha - rho)))
        (one, one_se), (many, many_se) = _mean(single[:, t]), _mean(averaged[:, t])
        print(
            f"  beta {betas[t]:8.2f}: epsilon_g {one:.4f} ± {one_se:.4f} (theory {state.epsilon_g:.4f}), mean of "
            f"{CHAINS} {many:.4f} ± {many_se:.4f} (theory {mean:.4f}){'' if state.stable else ', below AT'}"
        )
    for name, errors in (("single", single), (f"mean of {CHAINS}", averaged)):
        best = int(errors.mean(axis=0).argmin())
        gain, gain_se = _mean(errors[:, -1] - errors[:, best])
        energy, energy_se = _mean(chosen - errors[:, best])
        (low, low_se), (cold, cold_se) = _mean(errors[:, best]), _mean(errors[:, -1])
        print(
            f"  {name}: lowest {low:.4f} ± {low_se:.4f} at beta {betas[best]:.1f}, coldest {cold:.4f} ± {cold_se:.4f}, "
            f"coldest less lowest {gain:+.4f} ± {gain_se:.4f}; lowest energy of all chains less lowest "
            f"{energy:+.4f} ± {energy_se:.4f}"
        )
