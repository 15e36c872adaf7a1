"""What a whole command takes, from the file to the report: `python -m benchmarks commands`.

Reading, cross validation, half-samples, proofs, figures and the page, as a user runs them, on one core; kernels are
compiled by a first, small run. Tables are made from a fixed seed: spectra of four components, genes with a class that
two of them decide, and many rows of which five columns matter. PAIRFLIP_ROWS (1e6) is the number of those rows.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

ROWS = int(float(os.environ.get("PAIRFLIP_ROWS", 1e6)))


def spectra(path, n_rows=60, n_columns=400):
    """Near-infrared spectra, one concentration."""
    from pairflip import datasets

    made = datasets.make_spectra(M=n_rows, N=n_columns, seed=1)
    table = pd.DataFrame(made.X, columns=made.names)
    table.insert(0, "y", made.y)
    table.to_csv(path.with_suffix(".csv"), index=False)
    return [str(path.with_suffix(".csv")), "--preprocess", "savgol:11:2:1", "--sizes", "1-6"]


def genes(path, n_rows=80, n_columns=4000):
    """Correlated genes, two classes."""
    rng = np.random.default_rng(0)
    pathways = rng.normal(size=(n_rows, 50))
    X = pathways @ rng.normal(size=(50, n_columns)) / 7 + rng.normal(size=(n_rows, n_columns))
    table = pd.DataFrame(X, columns=[f"gene{j}" for j in range(n_columns)])
    table.insert(0, "y", np.where(X[:, 17] - X[:, -1] + 0.5 * rng.normal(size=n_rows) > 0, "tumour", "normal"))
    table.to_csv(path.with_suffix(".csv"), index=False)
    return [str(path.with_suffix(".csv")), "--sizes", "1-4", "--effort", "quick"]


def many_rows(path, n_rows=ROWS, n_columns=50):
    """Normal numbers in CSV, with five digits after the point; all options are defaults."""
    import pyarrow as pa
    from pyarrow.csv import write_csv

    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_columns, n_rows), dtype=np.float32).round(5)
    y = (X[:5].sum(axis=0) + rng.standard_normal(n_rows)).astype(np.float32).round(5)
    write_csv(pa.table({**{f"x{j}": X[j] for j in range(n_columns)}, "y": y}), path.with_suffix(".csv"))
    return [str(path.with_suffix(".csv"))]


def timed(folder, name, words):
    """Seconds of the clock and of the processor of one command."""
    command = [sys.executable, "-m", "pairflip", *words, "--quiet", "--out", str(folder / f"{name}-result")]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after, seconds = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - began
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def report():
    """One line for each command."""
    target = ("--target", "y", "--jobs", "1")  # one core
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = "1"
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        print(f"{'command':<42}{'seconds':>9}{'processor':>11}")
        cases = [("demo", ["demo"], None)]
        for make, small in ((spectra, (60, 40)), (genes, (40, 60)), (many_rows, (60_000, 10))):
            name = make.__name__
            warm = ["select", *make(folder / f"small-{name}", *small), *target, "--sizes", "1-3"]
            cases.append((name, ["select", *make(folder / name), *target], warm))
        for name, words, warm in cases:
            timed(folder, f"first-{name}", warm or words)
            seconds, processor = timed(folder, name, words)
            shown = " ".join(Path(word).name if "/" in word else word for word in words)
            print(f"{shown[:41]:<42}{seconds:>7.1f} s{processor:>9.1f} s", flush=True)
