"""Tables that are read once: time and memory beside the roofline, and what people would use instead.

`python -m benchmarks streams` writes Parquet files of random float32 numbers (PAIRFLIP_STREAM_ROWS, 20,000,000 x 50 and
a fifth of that x 200, unless told otherwise; 4 GB each) to a temporary folder and removes them. The roofline is
reading the columns with pyarrow alone, plus the inner products of so many rows alone, in the same run; ours is
`from_blocks` and `select_size` with ten folds, sizes 1 to 8. Every measurement has a process of its own, which says
what memory it took at most; times are of the clock, on all cores.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

ROWS = int(float(os.environ.get("PAIRFLIP_STREAM_ROWS", "2e7")))
FOLDS, LARGEST = 10, 8
CHUNK = 250_000


def write(path, n_rows, n_columns):
    """A Parquet file of normal columns and a target of five of them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, names = np.random.default_rng(0), [f"x{j}" for j in range(n_columns)]
    schema = pa.schema([*((name, pa.float32()) for name in names), ("y", pa.float32())])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as file:
        for first in range(0, n_rows, CHUNK):
            X = rng.standard_normal((n_columns, min(CHUNK, n_rows - first)), dtype=np.float32)
            y = 0.3 * X[:5].sum(axis=0) + rng.standard_normal(X.shape[1], dtype=np.float32)
            file.write_table(pa.table([*X, y], schema=schema))


def batches(path):
    """Rows of a Parquet file, a row group at a time, so that the file does not stay in memory."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path, pre_buffer=False)
    for group in range(file.num_row_groups):
        yield from file.iter_batches(batch_size=2**17, row_groups=[group])


def read(path):
    """Reading all columns with pyarrow alone."""
    return sum(batch.num_rows for batch in batches(path))


def products(path):
    """The inner products of so many rows alone, of numbers that are in the cache of the processor or near it."""
    import pyarrow.parquet as pq

    meta = pq.ParquetFile(path).metadata
    X = np.random.default_rng(0).standard_normal((meta.num_columns + 1, 2**14))
    for _ in range(-(-meta.num_rows // X.shape[1])):
        total = X @ X.T
    return float(total[0, 0])


def ours(path):
    """The size by ten folds, from the file."""
    from pairflip import SubsetProblem, select_size
    from pairflip.tables.parts import open_stream

    stream = open_stream([Path(path)], "y")
    problem = SubsetProblem.from_blocks(
        stream.batches(), names=stream.names, target_names=stream.targets, in_memory=0, n_jobs=-1
    )
    summed = time.perf_counter()
    curve = select_size(problem, range(1, LARGEST + 1), cv=FOLDS, n_jobs=-1, effort="quick")
    return {"selecting": time.perf_counter() - summed, "size": int(curve.best_size)}


def in_memory(path):
    """The same of a table in memory."""
    import pandas as pd

    from pairflip import SubsetProblem, select_size

    frame = pd.read_parquet(path)
    problem = SubsetProblem(frame.drop(columns="y"), frame["y"])
    return int(select_size(problem, range(1, LARGEST + 1), cv=FOLDS, n_jobs=-1, effort="quick").best_size)


def lasso(path):
    """LassoCV of scikit-learn, in memory."""
    import pandas as pd
    from sklearn.linear_model import LassoCV

    frame = pd.read_parquet(path)
    fit = LassoCV(cv=FOLDS, n_jobs=-1).fit(frame.drop(columns="y").to_numpy(), frame["y"].to_numpy())
    return int(np.count_nonzero(fit.coef_))


def stochastic(path):
    """SGDRegressor with an l1 penalty by partial_fit, one penalty and one pass, without folds."""
    from sklearn.linear_model import SGDRegressor

    model = SGDRegressor(penalty="l1", alpha=1e-3, random_state=0)
    for batch in batches(path):
        values = np.column_stack([column.to_numpy() for column in batch.columns])
        model.partial_fit(values[:, :-1], values[:, -1])
    return int(np.count_nonzero(np.abs(model.coef_) > 1e-3))


def dask(path, workers=1):
    """Moments by Dask, in processes of one thread each; without the time in which they start."""
    import dask.dataframe as dd
    from distributed import Client

    from pairflip import SubsetProblem

    with Client(n_workers=int(workers), threads_per_worker=1, dashboard_address=None, processes=True) as client:
        frame = dd.read_parquet(path, split_row_groups=True)
        small = dd.read_parquet(path, split_row_groups=True).partitions[:2]
        SubsetProblem.from_blocks(small, y="y", in_memory=0)  # compiled kernels are loaded
        client.wait_for_workers(int(workers))
        began = time.perf_counter()
        SubsetProblem.from_blocks(frame, y="y", in_memory=0)
        return {"summing": time.perf_counter() - began}


def measured(what, path, *more, threads=None):
    """Seconds of the clock, peak memory in GB, and what was returned, in a process of its own."""
    environment = dict(os.environ)
    if threads:
        environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    command = [sys.executable, "-m", "benchmarks.streams", what, str(path), *map(str, more)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        return {"failed": said[-1][:100] if said else f"exit {done.returncode}"}
    return json.loads(done.stdout.splitlines()[-1])


def report_intervals(n_rows=ROWS // 4, n_new=200_000):
    """Coverage of intervals of a table that is read once, by its sample of rows, for three kinds of noise."""
    from pairflip import SubsetProblem, select_size

    kinds = {
        "normal": lambda rng, n: rng.normal(size=n),
        "t, 3 degrees of freedom": lambda rng, n: rng.standard_t(3, n),
        "exponential": lambda rng, n: rng.exponential(size=n),
    }
    print(f"{n_rows:,} rows x 10, cv 10; per cent of {n_new:,} new rows inside (half width)")
    for name, noise in kinds.items():

        def rows(seed, n, noise=noise):
            rng = np.random.default_rng([seed, n])
            X = rng.normal(size=(n, 10))
            return X, X[:, 1] - X[:, 4] + noise(rng, n)

        problem = SubsetProblem.from_blocks((rows(at, CHUNK) for at in range(n_rows // CHUNK)), in_memory=0, n_jobs=-1)
        curve = select_size(problem, range(1, 4), cv=10, effort="quick")
        new, y = rows(-1 % 2**32, n_new)
        texts = []
        for asked in (0.5, 0.8, 0.9, 0.95, 0.99):
            told = curve.predict(new, interval=asked)
            inside = 100 * np.mean((told.lower <= y) & (y <= told.upper))
            texts.append(f"{asked:g}: {inside:.1f} ({np.mean(told.upper - told.lower) / 2:.3f})")
        print(f"{name:25} {', '.join(texts)}", flush=True)


def _line(name, result):
    if "failed" in result:
        return f"| {name} | {result['failed']} | | |"
    return f"| {name} | {result['seconds']:.1f} | {result['peak_gb']:.2f} | {result['result']} |"


def report():
    """Tables against the roofline, growth with the rows, Dask."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("PAIRFLIP_STREAM_DIR")) as folder:
        path = Path(folder) / "table.parquet"
        for n_rows, n_columns in ((ROWS, 50), (ROWS // 5, 200)):
            write(path, n_rows, n_columns)
            print(f"\n{n_rows:,} x {n_columns}, {path.stat().st_size / 1e9:.2f} GB", flush=True)
            print("| what | s | peak GB | result |\n| --- | --- | --- | --- |")
            every = {}
            for name, function in (("read", read), ("products", products), ("ours", ours), ("stochastic", stochastic)):
                every[name] = measured(function.__name__, path)
                print(_line(function.__doc__.split(",")[0].rstrip("."), every[name]), flush=True)
            roofline = every["read"]["seconds"] + every["products"]["seconds"]
            print(f"ours / (reading + products): {every['ours']['seconds'] / roofline:.2f}", flush=True)
            if n_columns == 50:
                for workers in (1, 2):
                    print(_line(f"Dask, {workers} workers", measured("dask", path, workers, threads=1)), flush=True)
        for n_rows in (10**5, 10**6, 4 * 10**6):
            if n_rows > ROWS:
                break
            write(path, n_rows, 50)
            print(f"\n{n_rows:,} x 50\n| what | s | peak GB | result |\n| --- | --- | --- | --- |")
            for function in (ours, in_memory, lasso):
                print(_line(function.__doc__.split(",")[0].rstrip("."), measured(function.__name__, path)), flush=True)


if __name__ == "__main__":
    began = time.perf_counter()
    result = globals()[sys.argv[1]](*sys.argv[2:])
    seconds, peak = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    with suppress(BrokenPipeError):
        print(json.dumps({"seconds": seconds, "peak_gb": peak / 1e9, "result": result}))
