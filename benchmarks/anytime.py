"""How good is the answer after so many seconds? Ours, OMP, the LASSO path and abess on the same tables, one core.

`python -m benchmarks anytime` takes the better part of an hour on one core; `python -m benchmarks anytime quick` has
fewer cases and stops at 1 s, and `anytime again` shows the last full run. PAIRFLIP_JOBS=2 does two cases at a time.

Seconds are CPU seconds of the process (everything is single-threaded), also where `anneal` is given an effort in
seconds, so that other work on the machine does not count. They include everything from the table to the columns,
compilation excluded. An effort in seconds is where `anneal` stops looking, not a limit: what counts here is the time
that it took.
"""

import csv
import os
import time
from dataclasses import astuple, dataclass, fields
from types import SimpleNamespace
from unittest import mock

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from benchmarks.common import DOCS, cells, cpu_timed, real_table, save_figure
from pairflip import SubsetProblem, best_subset, datasets
from pairflip.comparison.peers.supports import ABESS, lasso, omp, splicing

TIMES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
TOLERANCE = 1.005
RESULTS = DOCS / "results"
TABLES = {
    "riboflavin": ("riboflavin/riboflavin.csv", (4, 10)),
    "supernova": ("supernova_bsnip/snia_101x276.csv", (6, 20)),
    "eyedata": ("eyedata/eyedata.csv", (10, 40)),
    "aquatictox": ("aquatictox/aquatictox.csv", (10,)),
    "gasoline": ("gasoline/gasoline.csv", (6, 10)),
    "communities": ("communities_crime/communities_crime.csv", (10,)),
    "diabetes": ("diabetes/diabetes_64.csv", (8,)),
    "solubility": ("solubility/solubility_train.csv", (10, 20)),
    "tecator": ("tecator/tecator.csv", (6, 10)),
}
OURS = ("auto", "descend", "anneal", "anneal, paper")
RIVALS = ("OMP", "LASSO", "abess", "abess, full", "abess path", "abess path, full")


@dataclass(frozen=True)
class Case:
    """A table, a target and a size; `center` as in `SubsetProblem`."""

    name: str
    X: np.ndarray
    y: np.ndarray
    k: int
    center: str | None = "fold"


@dataclass(frozen=True)
class Run:
    """What one call found: setting, CPU seconds, energy."""

    case: str
    rows: int
    columns: int
    k: int
    method: str
    setting: str
    seconds: float
    energy: float


def cases(quick):
    """The planted model of the paper (a tenth of the coefficients is not zero), neighbours correlated, real tables."""
    chain = datasets.make_correlated(M=200, N=1000, k=20, correlation=0.9, seed=1)
    yield Case("neighbours 200 x 1000", chain.X, chain.y, 20)
    for name, (path, sizes) in TABLES.items():
        table = None if quick and name in ("riboflavin", "solubility") else real_table(path)
        for k in () if table is None else sizes[:1] if quick else sizes:
            yield Case(f"{name} {len(table[1])} x {table[0].shape[1]}", *table, k)
    for N in (100, 200) if quick else (100, 200, 400, 1000):
        planted = datasets.make_planted(N=N, seed=N)
        for rho in (0.05, 0.1, 0.15) if N < 1000 else (0.05,):
            yield Case(f"planted {N // 2} x {N}", planted.X, planted.y, round(rho * N), None)


class Lap:
    """Runs calls on one case and notes what they found, in `runs`."""

    def __init__(self, case):
        self.case, self.runs = case, []
        self.problem = SubsetProblem(case.X, case.y, center=case.center)

    def __call__(self, method, setting, search, /, *args, **settings):
        case = self.case
        seconds, support = cpu_timed(lambda: np.asarray(search(*args, **settings)))
        low = self.problem.fit(support).energy if support.size == case.k else np.inf
        self.runs.append(Run(case.name, *case.X.shape, case.k, method, setting, seconds, low))
        return seconds

    def ours(self, **settings):
        fresh = SubsetProblem(self.case.X, self.case.y, center=self.case.center)
        return best_subset(fresh, self.case.k, **settings, prove=False).best_support

    def theirs(self, search, *args):
        X, y = self.case.X, self.case.y
        if self.case.center is not None:
            X, y = X - X.mean(axis=0), y - y.mean()
        norm = np.linalg.norm(X, axis=0)
        return search(X / np.where(norm > 0, norm, 1.0), y, *args)


def race_rivals(case):
    """OMP, LASSO and abess: for k alone or over all sizes up to k, looking at 128 important columns or at all."""
    timed = Lap(case)
    for name, search in (("OMP", omp), ("LASSO", lasso)):
        timed(name, "", timed.theirs, lambda X, y, k, search=search: search(X, y, [k]).get(k, []), case.k)
    if not ABESS.lacking():
        for name, sizes in (("abess", case.k), ("abess path", range(case.k + 1))):
            timed(name, "", timed.theirs, splicing, sizes, 128)
            timed(f"{name}, full", "", timed.theirs, splicing, sizes, 0)
    return timed.runs


def race(case, times):
    """All runs on one case, a thorough search with another seed among them."""
    timed = Lap(case)
    timed.runs += race_rivals(case)
    for method in ("auto", "descend"):
        took = 0.0
        for effort in times:
            if took <= effort:  # else the effort before took longer than this one may
                took = timed(method, f"{effort:g} s", timed.ours, method=method, effort=effort)
    timed("thorough", "seed 1", timed.ours, effort="thorough" if times[-1] > 1 else "normal", seed=1)
    lowest = min(run.energy for run in timed.runs)
    for method, schedule in (("anneal", "auto"), ("anneal, paper", "paper")):
        took = 0.0
        for chains in (1, 4, 16, 64, 256, 1024):
            # More chains begin with the same ones, so nothing is left to see once the lowest energy is reached.
            if 4.0 * took <= times[-1] and (chains == 1 or timed.runs[-1].energy > lowest * (1 + 1e-9)):
                how = {"method": "anneal", "schedule": schedule, "chains": chains}
                took = timed(method, f"{chains} chains", timed.ours, **how)
    return timed.runs


def alone(case, times):
    """`race` in a worker: one thread, kernels loaded, seconds of `anneal` counted as CPU time."""
    clock = SimpleNamespace(perf_counter=time.process_time)
    with threadpool_limits(1), mock.patch("pairflip.search.portfolio.time", clock):
        rng = np.random.default_rng(0)
        race(Case("", rng.normal(size=(30, 20)), rng.normal(size=30), 4), (0.01,))
        return race(case, times)


def standing(runs, method, seconds):
    """Energy of the longest run of a method that ended within `seconds`; None if none did."""
    ended = [run for run in runs if run.method == method and run.seconds <= seconds]
    return max(ended, key=lambda run: run.seconds).energy if ended else None


def report(how=""):
    """Run the races, or with how="again" read those of the last full run."""
    times = tuple(t for t in TIMES if t <= 1.0) if how == "quick" else TIMES
    if ABESS.lacking() and how != "again":
        print(f"{ABESS.lacking()}: its lines are missing")
    jobs = Parallel(n_jobs=int(os.environ.get("PAIRFLIP_JOBS", "1")), return_as="generator_unordered")
    races = []
    print(f"\nEnergy over the best known, by CPU seconds ({', '.join(f'{t:g}' for t in times)}); - : nothing yet")
    for runs in read() if how == "again" else jobs(delayed(alone)(case, times) for case in cases(how == "quick")):
        races.append(runs)
        show(runs, times)
        if not how:
            save(races)
    summary(races, times)
    if how != "quick":
        draw(races, times, RESULTS / "anytime.svg")


def ratio(runs, method, seconds):
    low, best = standing(runs, method, seconds), min(run.energy for run in runs)
    return np.inf if low is None else low / best


def methods_of(races):
    found = {run.method for runs in races for run in runs}
    return [method for method in (*OURS, *RIVALS) if method in found]


def show(runs, times):
    first = runs[0]
    print(f"\n{first.case}, k = {first.k}")
    for method in methods_of([runs]):
        over = [ratio(runs, method, t) for t in times]
        print(f"{method:>17}" + cells(["-" if np.isinf(r) else f"{r:.4f}" for r in over], 9), flush=True)


def summary(races, times):
    """How auto stands beside the best of the others at the same time, and every case in which it does not."""
    groups = {"OMP, LASSO, abess": RIVALS, "annealing alone": OURS[2:], "all of these": (*OURS[2:], *RIVALS)}
    moments = [t for t in (0.1, 1.0, 10.0) if t in times]
    print(f"\nCases of {len(races)} in which auto is at most 0.5 % worse than the best of the others at that time")
    print(f"{'':>20}" + cells([f"{t:g} s" for t in moments], 9))
    lost = []
    for name, others in groups.items():
        told = []
        for t in moments:
            won = 0
            for runs in races:
                auto, best = ratio(runs, "auto", t), min(ratio(runs, other, t) for other in others)
                won += bool(auto <= TOLERANCE * best)
                if auto > TOLERANCE * best and name == "all of these":
                    who = min(others, key=lambda other: ratio(runs, other, t))
                    lost.append(f"{t:>5g} s  {runs[0].case}, k = {runs[0].k}: auto {auto:.4f}, {who} {best:.4f}")
            told.append(f"{won}/{len(races)}")
        print(f"{name:>20}" + cells(told, 9))
    print("\nMedian and worst ratio to the best known over cases, and cases without a result yet")
    for method in methods_of(races):
        told = []
        for t in moments:
            over = np.array([ratio(runs, method, t) for runs in races])
            ended = over[np.isfinite(over)]
            late = f" ({over.size - ended.size} late)" if ended.size < over.size else ""
            told.append(f"{np.median(ended):.3f} {ended.max():.3f}{late}" if ended.size else "-")
        print(f"{method:>17}" + cells(told, 24))
    print("\nWhere auto is behind:" + "".join(f"\n  {line}" for line in lost))


def save(races):
    RESULTS.mkdir(exist_ok=True)
    with open(RESULTS / "anytime.csv", "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow([*(field.name for field in fields(Run)), "over_best_known"])
        for runs in races:
            best = min(run.energy for run in runs)
            for run in runs:
                shown = (*astuple(run)[:-2], f"{run.seconds:.4f}", f"{run.energy:.12g}", f"{run.energy / best:.6f}")
                table.writerow(shown)


def read():
    races = {}
    with open(RESULTS / "anytime.csv", newline="") as file:
        for row in csv.DictReader(file):
            del row["over_best_known"]
            values = {field.name: {"int": int, "float": float}.get(field.type.__name__, str) for field in fields(Run)}
            run = Run(**{name: values[name](text) for name, text in row.items()})
            races.setdefault((run.case, run.k), []).append(run)
    return list(races.values())


def draw(races, times, path):
    """Median and worst excess over the best known, by method; lines begin where every case has a result."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.8), layout="constrained")
    axes = figure.subplots(1, 2, sharex=True)
    styles = dict(zip(OURS, ("C0o-", "C9s-", "C3v-", "C1^-"), strict=True))
    styles |= dict(zip(RIVALS, ("C7x--", "C5+--", "C2d--", "C6.--", "C8*--", "C4p--"), strict=True))
    fine = np.geomspace(times[0], times[-1], 31)
    for ax, statistic, title in zip(axes, (np.median, np.max), ("median case", "worst case"), strict=True):
        for method in methods_of(races):
            over = np.array([[ratio(runs, method, t) for t in fine] for runs in races])
            line = statistic(over, axis=0)
            seen = np.isfinite(line)
            ax.plot(fine[seen], 100 * (line[seen] - 1) + 1e-2, styles[method], label=method, ms=4, lw=1.2, markevery=5)
        ax.set(xscale="log", yscale="log", title=title, xlabel="CPU seconds")
    axes[0].set_ylabel("energy above the best known, % (+ 0.01)")
    axes[1].legend(fontsize=7, ncols=2)
    save_figure(figure, path)
