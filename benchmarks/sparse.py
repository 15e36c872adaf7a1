"""A sparse table beside the same dense table, and LassoCV on the sparse one: peak memory and processor seconds."""

import resource
import time

import numpy as np

from benchmarks.common import alone

SHAPE, FILLED, PLANTED = (20_000, 5_000), 0.01, 8


def measure(method, shape, filled):
    """Bytes of the table, peak bytes of the process, processor seconds, and the columns that were chosen."""
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    planted = np.sort(rng.choice(shape[1], PLANTED, replace=False))
    X = sp.random_array(shape, density=filled, rng=rng, format="csr")
    y = X[:, planted].sum(axis=1) + 0.3 * rng.normal(size=shape[0])
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    if method == "dense":
        X = X.toarray()
        size = X.nbytes
    began = time.process_time()
    if method == "LassoCV":
        from sklearn.linear_model import LassoCV

        chosen = np.flatnonzero(LassoCV(cv=10, n_jobs=1).fit(X, y).coef_)
        error = None
    else:
        from pairflip import SubsetProblem, select_size

        curve = select_size(SubsetProblem(X, y), sizes=range(1, PLANTED + 1), cv=10, seed=0)
        chosen, error = curve.supports[-1], curve.cv_error.tolist()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return size, peak, time.process_time() - began, len(chosen), len(set(planted) & set(chosen.tolist())), error


def report():
    """20,000 x 5,000 with one value in a hundred."""
    print(f"\nSparse tables ({SHAPE[0]:,} x {SHAPE[1]:,}, {FILLED:.0%} filled, one core; aim: 1 GB)")
    for method in ("sparse", "dense"):
        alone("benchmarks.sparse", method, (300, 60), 0.1)  # compiles
    errors = {}
    for method in ("sparse", "dense", "LassoCV"):
        table, peak, seconds, kept, found, errors[method] = alone("benchmarks.sparse", method, SHAPE, FILLED)
        print(
            f"{method:>8}: table {table / 2**20:5.0f} MiB, peak {peak / 1e9:.2f} GB, {seconds:6.1f} s; "
            f"{kept} columns kept, {found} of {PLANTED} planted ones",
            flush=True,
        )
    apart = max(abs(a / b - 1.0) for a, b in zip(errors["sparse"], errors["dense"], strict=True))
    print(f"held-out errors of the sparse and the dense table differ by {apart:.0e} of themselves")
