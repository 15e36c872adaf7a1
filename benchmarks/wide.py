"""Wide tables: seconds and memory of a path and of kicks where a matrix of all columns would be far too large."""

import re
import time
from pathlib import Path

import numpy as np

from benchmarks.common import alone

SIZE = 10


def memory(name):
    """Bytes of this process; not by getrusage, whose peak is at first that of the process which started this one."""
    return int(re.search(name + r":\s*(\d+)", Path("/proc/self/status").read_text())[1]) * 1024


def search(X, y, budget, kicks):
    """The path's last support, the best support, and seconds of each step."""
    from pairflip import SubsetProblem
    from pairflip.blas import one_blas_thread
    from pairflip.engines.base import Descent
    from pairflip.engines.numba import NumbaEngine
    from pairflip.engines.numba.searching import Searcher
    from pairflip.philox import chain_keys

    times = [time.perf_counter()]
    problem = SubsetProblem(X, y, memory_budget=budget)
    times.append(time.perf_counter())
    path, _ = NumbaEngine().path(problem.form, SIZE)
    times.append(time.perf_counter())
    with one_blas_thread():
        key = chain_keys(0, SIZE, None, range(1))[0]
        chain = Searcher(problem.form, SIZE, lambda scans: None).chain(SIZE, key, Descent(kicks), path[-1])
    times.append(time.perf_counter())
    support = problem.fit(problem.candidates[chain.support]).support
    return support, dict(zip(("problem", "path", "kicks"), np.diff(times).tolist(), strict=True))


def measure(n_rows, n_columns, dtype, kicks):
    """Bytes of the table and of the peak, seconds, and whether the planted columns were found."""
    rng = np.random.default_rng(0)
    small = rng.standard_normal(size=(40, 1100), dtype=np.dtype(dtype))
    search(small, small[:, :3].sum(axis=1) + rng.normal(size=40), 0, kicks)  # loads everything
    before = memory("VmRSS")  # what loading took and gave back is not counted
    X = np.empty((n_rows, n_columns), dtype=dtype)
    rng.standard_normal(out=X, dtype=X.dtype)
    planted = np.sort(rng.choice(n_columns, SIZE, replace=False))
    y = X[:, planted] @ rng.choice([-1.0, 1.0], size=SIZE) + 0.1 * rng.normal(size=n_rows)
    support, seconds = search(X, y, min(2**28, n_columns), kicks)
    return X.nbytes, memory("VmHWM") - before, seconds, support.tolist() == planted.tolist()


def show(n_rows, n_columns, dtype, kicks):
    alone("benchmarks.wide", 40, 1100, dtype, 1)  # compiles, so that the compiler's memory is not counted
    table, peak, seconds, found = alone("benchmarks.wide", n_rows, n_columns, dtype, kicks)
    print(
        f"{n_rows} x {n_columns:,} {dtype}: problem {seconds['problem']:.1f} s, path to 10 {seconds['path']:.1f} s, "
        f"{kicks} kicks {seconds['kicks']:.1f} s; peak {peak / table:.2f} times the table "
        f"({(peak - table) / 2**20:.0f} MiB above it); planted columns {'found' if found else 'NOT found'}",
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
