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
BETAS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 1e4)
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
        compare(N, range(problems), [measured(N, seed) for seed in range(problems)])


def measured(N, seed):
    """cv_error of single supports and of the mean of the chains, each (sizes, steps), and of the lowest energies."""
    data = datasets.make_planted(N, seed=seed)
    curve = select_size(
        SubsetProblem(data.X, data.y, center=None), [round(rho * N) for rho in RHOS], schedule=Schedule.paper(),
        chains=CHAINS, seed=seed, surface=True, polish=False, prove=False, n_jobs=-1,
    )  # fmt: skip
    return curve.surface.cv_error, curve.surface.averaged_error, curve.cv_error[1:]


def own_model(N, seed):
    """The planted model with the signal and the noise that this problem happens to have, and the rows of a fold."""
    data = datasets.make_planted(N, seed=seed)
    return theory.Planted(
        alpha=(data.y.size - 1) / N, rho0=data.support.size / N, var_x=float(np.mean(data.x0[data.support] ** 2)),
        var_noise=float(np.mean(data.noise**2)),
    )  # fmt: skip


def compare(N, seeds, problems):
    """Print the errors of some problems beside the theory, for each with its own signal and noise."""
    models, betas = [own_model(N, seed) for seed in seeds], np.array(Schedule.paper().betas)
    told = [np.array(each) for each in zip(*problems, strict=True)]
    for s, rho in enumerate(RHOS):
        print(f"N = {N}, k = {round(rho * N)}, {len(models)} problems")
        _beside_theory(rho, models, *(each[:, s] for each in told[:2]), betas)
        _gain("single", told[0][:, s], told[2][:, s], betas)
        _gain(f"mean of {CHAINS}", told[1][:, s], told[2][:, s], betas)
    # The best size and temperature of all, against the best size of the coldest supports.
    for name, errors in (("single", told[0]), (f"mean of {CHAINS}", told[1])):
        mean = errors.mean(axis=0)
        s, t = np.unravel_index(mean.argmin(), mean.shape)
        cold = int(mean[:, -1].argmin())
        gain, gain_se = _mean(errors[:, cold, -1] - errors[:, s, t])
        print(
            f"N = {N}, {name}: lowest {mean[s, t]:.4f} with k = {round(RHOS[s] * N)} at beta {betas[t]:.1f}; of the "
            f"coldest {mean[cold, -1]:.4f} with k = {round(RHOS[cold] * N)}: {gain:+.4f} ± {gain_se:.4f}"
        )


def _mean(values):
    """Mean over problems and its standard error."""
    return values.mean(axis=0), values.std(axis=0, ddof=1) / len(values) ** 0.5


def _beside_theory(rho, models, single, averaged, betas):
    """Print errors (problems, steps) at some temperatures, and by how much they exceed the theory."""
    for beta in BETAS:
        t = int(np.abs(np.log(betas[1:] / beta)).argmin()) + 1
        states = [theory.solve(float(betas[t]), rho, model) for model in models]
        one = np.array([state.epsilon_g for state in states])
        # Of the variance V / (alpha - rho) of single supports, the mean of C independent ones keeps a C-th.
        many = np.array(
            [0.5 * m.alpha * (s.tau2 + s.V / (CHAINS * (m.alpha - rho))) for s, m in zip(states, models, strict=True)]
        )
        above = sum(state.stable for state in states)
        line = f"  beta {betas[t]:7.2f} (above AT in {above} of {len(models)}):"
        for name, errors, told in (("epsilon_g", single, one), (f"mean of {CHAINS}", averaged, many)):
            (mean, mean_se), (off, off_se) = _mean(errors[:, t]), _mean(errors[:, t] - told)
            line += f" {name} {mean:.4f} ± {mean_se:.4f}, theory {told.mean():.4f}, off by {off:+.4f} ± {off_se:.4f};"
        print(line.rstrip(";"))


def _gain(name, errors, chosen, betas):
    """Print how much lower errors (problems, steps) are at the best temperature than at the last, and of the chosen."""
    best = int(errors.mean(axis=0).argmin())
    gain, gain_se = _mean(errors[:, -1] - errors[:, best])
    energy, energy_se = _mean(chosen - errors[:, best])
    (low, low_se), (cold, cold_se) = _mean(errors[:, best]), _mean(errors[:, -1])
    print(
        f"  {name}: lowest {low:.4f} ± {low_se:.4f} at beta {betas[best]:.1f}, coldest {cold:.4f} ± {cold_se:.4f}, "
        f"coldest less lowest {gain:+.4f} ± {gain_se:.4f}; lowest energy of all chains less lowest {energy:+.4f} ± "
        f"{energy_se:.4f}"
    )
