"""The default search of folds (paths, descents, kicks) on a device, and on all cores for a few of the same folds.

`python -m benchmarks gpu-searches` takes some minutes, and needs a CUDA device. Folds of leave-one-out are searched
alone first, without final fits and what a curve says beside its errors; then comes a whole `select_size`.
"""

import time

import numpy as np

from pairflip import Selection, SubsetProblem, select_size
from pairflip.engines.cuda import device_name, why_unavailable
from pairflip.selection.hands import Workers, choose_hands
from pairflip.selection.tasks import Task, plan_work

SHAPES = ((300, 2000, 30), (1000, 5000, 50))  # rows, columns, largest size
CPU_FOLDS = 16


def planted(rows, n_columns, seed=0):
    """Columns correlated with their neighbours, every 250th of which counts."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, n_columns))
    X[:, 1:] = 0.6 * X[:, :-1] + 0.8 * X[:, 1:]
    causes = X[:, ::250]
    return SubsetProblem(X, causes @ rng.normal(size=causes.shape[1]) + rng.normal(size=rows))


def search(work, folds, hands):
    """Seconds that hands take for all sizes of some folds, and what they found: {(size, fold): supports}."""
    tasks = [Task(size, fold, 0, work.chains) for fold in folds for size in work.sizes]
    began, found = time.perf_counter(), {}
    for _, outcomes in hands.outcomes([(work, tasks)], None):
        for outcome in outcomes:
            found.update((each.task[:2], each.supports) for each in outcome.by_fold())
    return time.perf_counter() - began, found


def report(engine="cuda", shapes=SHAPES):
    """Seconds of folds and of whole curves; how many cells differ."""
    if engine == "cuda" and why_unavailable() is not None:
        print(f"searches on a GPU: not measured, {why_unavailable()}")
        return
    print(f"default searches of leave-one-out folds on {device_name() if engine == 'cuda' else engine}")
    for rows, n_columns, largest in shapes:
        problem = planted(rows, n_columns)
        work = plan_work(problem, Selection(sizes=range(1, largest + 1), cv="loo"), engine, None)
        hands, everything = choose_hands([work], -1), range(len(work.folds))
        some = everything[:: max(1, len(everything) // CPU_FOLDS)]
        search(work, everything[:1], hands)  # compiles
        search(work, everything[:1], Workers("numba", -1))
        seconds, found = search(work, everything, hands)
        on_cpu, expected = search(work, some, Workers("numba", -1))
        differ = sum(not np.array_equal(found[cell], supports) for cell, supports in expected.items())
        whole = on_cpu * len(everything) / len(some)
        print(f"  {rows} x {n_columns}, sizes 1 to {largest}")
        print(f"    {hands.name}: {len(everything)} folds in {seconds:.1f} s")
        print(f"    all cores: {len(some)} folds in {on_cpu:.1f} s, so all in {whole:.0f} s")
        print(f"    {differ} of {len(expected)} cells differ", flush=True)
        began = time.perf_counter()
        curve = select_size(problem, range(1, largest + 1), cv="loo", engine=engine, n_jobs=-1)
        seconds = time.perf_counter() - began
        print(f"    select_size: {seconds:.1f} s, {curve.best_size} columns {curve.notes}", flush=True)
