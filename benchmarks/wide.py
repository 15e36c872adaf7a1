"""Wide tables: seconds and memory of a path and of kicks where the table is far too wide for a matrix of all columns.

Each table is measured in a process of its own, on one core, since peak memory never falls again.
"""

import json
import os
import subprocess
import sys

SCRIPT = """
import json, re, sys, time
import numpy as np
from pairflip import SubsetProblem
from pairflip.engines.base import Descent
from pairflip.engines.blas import one_blas_thread
from pairflip.engines.numba import NumbaEngine
from pairflip.engines.numba.searching import Searcher
from pairflip.philox import chain_keys

def memory(what):  # not getrusage, whose peak is at first that of the process which started this one
    with open("/proc/self/status") as file:
        return int(re.search(what + r":\\s*(\\d+)", file.read())[1]) * 1024

n_rows, n_columns, dtype, kicks = json.loads(sys.argv[1])
k, engine, key = 10, NumbaEngine(), chain_keys(0, 10, None, range(1))[0]
rng = np.random.default_rng(0)

def search(X, y, budget):
    seconds, began = {}, time.perf_counter()
    def lap(what):
        nonlocal began
        seconds[what], began = time.perf_counter() - began, time.perf_counter()
    problem = SubsetProblem(X, y, memory_budget=budget)
    lap("problem")
    path, _ = engine.path(problem.form, k)
    lap("path")
    with one_blas_thread():
        chain = Searcher(problem.form, k, lambda scans: None).chain(k, key, Descent(kicks), path[-1])
    lap("kicks")
    fit = problem.fit(problem.candidates[chain.supports[0]])
    lap("fit")
    return path, chain, fit, seconds

small = rng.standard_normal(size=(40, 1100), dtype=np.dtype(dtype))
search(small, small[:, :3].sum(axis=1) + rng.normal(size=40), 0)  # loads everything
before = memory("VmRSS")  # what loading took and gave back is not counted
X = np.empty((n_rows, n_columns), dtype=dtype)
rng.standard_normal(out=X, dtype=X.dtype)
planted = np.sort(rng.choice(n_columns, k, replace=False))
y = X[:, planted] @ rng.choice([-1.0, 1.0], size=k) + 0.1 * rng.normal(size=n_rows)
path, chain, fit, seconds = search(X, y, min(2**28, n_columns))
print(json.dumps({
    "table": X.nbytes, "peak": memory("VmHWM") - before, "seconds": seconds,
    "path": path[-1].tolist() == planted.tolist(), "found": fit.support.tolist() == planted.tolist(),
}))
"""


def measure(n_rows, n_columns, dtype, kicks):
    """What `SCRIPT` found in a process with one thread."""
    one = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")}
    arguments = [sys.executable, "-c", SCRIPT, json.dumps([n_rows, n_columns, dtype, kicks])]
    done = subprocess.run(arguments, capture_output=True, text=True, env={**os.environ, **one}, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def show(n_rows, n_columns, dtype, kicks):
    measure(40, 1100, dtype, 1)  # compiles, so that the compiler's memory is not counted
    seen = measure(n_rows, n_columns, dtype, kicks)
    seconds, above = seen["seconds"], seen["peak"] - seen["table"]
    print(
        f"{n_rows} x {n_columns:,} {dtype}: problem {seconds['problem']:.1f} s, path to 10 {seconds['path']:.1f} s, "
        f"{kicks} kicks {seconds['kicks']:.1f} s; peak {seen['peak'] / seen['table']:.2f} times the table "
        f"({above / 2**20:.0f} MiB above it); planted columns {'found' if seen['found'] else 'NOT found'}",
        flush=True,
    )


def report():
    """One hundred thousand columns."""
    print("\nWide tables (one core, 10 planted columns; aims: 300 MiB above the table)")
    show(200, 100_000, "float64", 20)
    show(200, 100_000, "float32", 20)


def report_million():
    """One million columns."""
    print("\nA million columns (one core, 10 planted columns; aims: 1.3 times the table, a path within 20 s)")
    show(200, 1_000_000, "float32", 20)
