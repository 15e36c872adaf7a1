"""Flips per second of the GPU engine over the paper's whole schedule, against the Numba engine on one core."""

import time

import numpy as np

from benchmarks.common import best_time
from benchmarks.crossval import problem
from pairflip import Schedule, SubsetProblem, datasets, select_size
from pairflip.engines import WalkPlan
from pairflip.engines.cuda import CudaEngine, device_name, walks, why_unavailable
from pairflip.engines.numba import NumbaEngine
from pairflip.paper.reproduce.problems import cross_validate, draw_all
from pairflip.paper.reproduce.scales import PAPER, sizes_of
from pairflip.philox import chain_keys

CASES = ((276, 5), (400, 8), (400, 20), (400, 40), (400, 64), (400, 80))  # N, k
CHAINS = 8448


def leave_one_out(n_columns, k, chains, seed=0):
    """Walks of all leave-one-out folds of one planted problem, `chains` chains in all."""
    data = datasets.make_planted(N=n_columns, alpha=0.5, seed=seed)
    problem, schedule = SubsetProblem(data.X, data.y, center=None), Schedule.paper()
    betas, flips = np.asarray(schedule.betas), schedule.flips(n_columns)
    rows = problem.n_rows
    each = np.bincount(np.arange(chains) % rows, minlength=rows)
    return [
        (problem.held_out([fold]), WalkPlan(k, betas, flips, chain_keys(seed, k, fold, range(count))))
        for fold, count in enumerate(each)
        if count
    ]


def one_core(asked):
    """Flips per second of the Numba engine on one core, on a few of the same chains."""
    form, plan = asked[0]
    few = WalkPlan(plan.k, plan.betas, plan.flips, plan.keys[: max(2, 40 // plan.k)])
    NumbaEngine().walk([(form, few)])
    seconds, _ = best_time(lambda: NumbaEngine().walk([(form, few)]), 3)
    return few.chains * int(plan.flips.sum()) / seconds


def report():
    reason = why_unavailable()
    if reason is not None:
        print(f"GPU engine: not measured, {reason}")
        return
    engine = CudaEngine()
    print(f"GPU engine on {device_name()}: {CHAINS} leave-one-out chains, paper's schedule, transfers included")
    print("    N    k   seconds   flips/s   one core   ratio")
    for n_columns, k in CASES:
        asked = leave_one_out(n_columns, k, CHAINS)
        engine.walk(asked[:1])
        seconds, _ = best_time(lambda asked=asked: engine.walk(asked), 2)
        speed = sum(plan.chains * int(plan.flips.sum()) for _, plan in asked) / seconds
        core = one_core(asked)
        print(f"{n_columns:5d}{k:5d}{seconds:10.3f}{speed:10.2e}{core:11.2e}{speed / core:8.0f}", flush=True)
    began = time.perf_counter()
    chains = _many_small(engine)
    print(f"sizes 1 to 10 of one 74 x 276 table, all folds, 64 chains each ({chains} chains): ", end="")
    print(f"{time.perf_counter() - began:.2f} s")
    report_whole()


def busy_share(run):
    """Seconds of a run, and the part of them in which a kernel of chains was under way."""
    launch, under_way = walks._launch, []

    def timed(*arguments):
        began = time.perf_counter()
        try:
            return launch(*arguments)
        finally:
            under_way.append(time.perf_counter() - began)

    walks._launch, began = timed, time.perf_counter()
    try:
        run()
    finally:
        walks._launch = launch
    seconds = time.perf_counter() - began
    return seconds, sum(under_way) / seconds


def report_whole(counts=((100, 50), (200, 50), (400, 25))):
    """What surrounds the kernels: cross validation as in figure 3 of the paper, and one small table."""
    print("whole runs, all threads: seconds, and the share of them with kernels under way")
    for N, count in counts:
        asked = draw_all(N, count, 0), sizes_of(PAPER.loo_rhos, N)
        seconds, share = busy_share(lambda asked=asked: cross_validate(*asked, "cuda", -1))
        print(f"  N = {N}, {count} problems, 20 sizes, leave-one-out: {seconds:6.2f} s, {share:.0%}", flush=True)
    table, name = problem()
    for schedule in ("paper", "auto"):
        asked = dict(chains=64, schedule=schedule, engine="cuda", n_jobs=-1)
        select_size(table, range(1, 11), **asked)
        seconds, share = busy_share(lambda asked=asked: select_size(table, range(1, 11), **asked))
        print(
            f"  {name}, sizes 1 to 10, 64 chains a fold, schedule {schedule!r}: {seconds:.2f} s, {share:.0%}",
            flush=True,
        )


def _many_small(engine):
    """What cross validation of a small table asks for."""
    data, schedule = datasets.make_planted(N=276, alpha=74 / 276, seed=1), Schedule.paper()
    problem = SubsetProblem(data.X, data.y)
    folds = [problem.held_out([row]) for row in range(problem.n_rows)]
    betas, flips = np.asarray(schedule.betas), schedule.flips(276)
    asked = [
        (fold, WalkPlan(k, betas, flips, chain_keys(0, k, number, range(64))))
        for k in range(1, 11)
        for number, fold in enumerate(folds)
    ]
    engine.walk(asked)
    return sum(plan.chains for _, plan in asked)
