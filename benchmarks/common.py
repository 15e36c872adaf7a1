"""What benchmarks share: real tables, time, tasks in all processes, and numbers with their standard errors.

Environment: PAIRFLIP_SHARED_DATA has real tables (default: ../shared/data), PAIRFLIP_DRAWS how many tables are
drawn from each population, PAIRFLIP_FIRST the first of them.
"""

import csv
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed, parallel_config

DATA = Path(os.environ.get("PAIRFLIP_SHARED_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
DOCS = Path(__file__).resolve().parents[1] / "docs"


def real_table(path):
    """X and y of a real table, whose target is the first column that is called so; None where it is not there."""
    if not (DATA / path).is_file():
        print(f"skipped: there is no {DATA / path} (PAIRFLIP_SHARED_DATA names the folder)")
        return None
    with (DATA / path).open(encoding="utf-8") as file:
        targets = sum(name.startswith("target_") for name in next(csv.reader(file)))
        values = np.loadtxt(file, delimiter=",")
    return values[:, targets:], values[:, 0]


def draws(default):
    """Numbers of the tables to draw."""
    first = int(os.environ.get("PAIRFLIP_FIRST", 0))
    return range(first, first + int(os.environ.get("PAIRFLIP_DRAWS", default)))


def cpu_timed(work):
    """CPU seconds of a call, and its result."""
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


def alone(module, *arguments):
    """What `module.measure(*arguments)` returns in a process of its own with one thread: peak memory never falls."""
    one_thread = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
    code = f"import json; from {module} import measure; print(json.dumps(measure(*{arguments!r})))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | one_thread)
    if ended.returncode:
        raise SystemExit(ended.stderr)
    return json.loads(ended.stdout.splitlines()[-1])


def best_time(work, repeats=5):
    """Shortest of several runs, the one least disturbed by other processes, and the last result."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - began)
    return min(times), result


def in_processes(function, tasks):
    """Results of a function by task (its arguments), one process for each core; the first task compiles."""
    function(*tasks[0])
    with parallel_config(backend="loky", inner_max_num_threads=1):
        return dict(zip(tasks, Parallel(n_jobs=-1)(delayed(function)(*task) for task in tasks), strict=True))


def mean_error(values, digits=2):
    """``1.02 +- 0.01``: the mean and its standard error."""
    return f"{np.mean(values):.{digits}f} +- {np.std(values, ddof=1) / len(values) ** 0.5:.{digits}f}"


def cells(texts, width):
    """Texts in columns of equal width."""
    return "".join(f"{text:>{width}}" for text in texts)


def save_figure(figure, path):
    """Write an SVG; the same points give the same bytes."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "pairflip"}):
        figure.savefig(path, metadata={"Date": None})
