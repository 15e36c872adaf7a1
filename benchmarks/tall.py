"""Tables with many rows: cross validation of all sizes beside LassoCV and OMP-CV, one thread each.

`python -m benchmarks tall` takes some minutes and 4 GB. Seconds are CPU seconds of one run of each, kernels compiled;
memory is the peak of a process of its own above what it held when the table was made, in units of the table.
"""

import resource

import numpy as np

from benchmarks.common import alone, cpu_timed

CASES = (
    (10_000, 50, 8, "quick"),
    (20_000, 50, 8, "quick"),
    (20_000, 50, 8, "normal"),
    (40_000, 50, 8, "quick"),
    (10_000, 500, 10, "estimator"),
    (1_000_000, 100, 8, "quick"),
)


def table(rows, columns):
    """Five columns predict the target a little."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns))
    return X, X[:, :5] @ np.arange(1, 6) * 0.1 + rng.standard_normal(rows)


def ours(X, y, largest, effort):
    """Ten folds, or what the estimator does by default: five times ten folds, normal effort, half-samples."""
    from pairflip import SubsetProblem, SubsetRegressorCV, select_size

    if effort == "estimator":
        return SubsetRegressorCV(sizes=range(1, largest + 1), random_state=0).fit(X, y)
    return select_size(SubsetProblem(X, y), range(1, largest + 1), 10, effort=effort, n_jobs=1, progress=False)


def measure(rows, columns, largest, effort):
    """Seconds of ours, LassoCV and OMP-CV, and our peak of memory over the size of the table."""
    from sklearn.linear_model import LassoCV, OrthogonalMatchingPursuitCV

    ours(*table(300, 12), 4, effort)  # compiles
    X, y = table(rows, columns)
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    own, _ = cpu_timed(lambda: ours(X, y, largest, effort))
    above = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held) / X.nbytes
    lasso, _ = cpu_timed(lambda: LassoCV(cv=10).fit(X, y))
    omp, _ = cpu_timed(lambda: OrthogonalMatchingPursuitCV(cv=10, max_iter=largest).fit(X, y))
    return own, lasso, omp, above


def report():
    print("\nMany rows, ten folds: CPU seconds of the whole, one thread")
    print(
        f"{'table':>17}{'K':>4}{'effort':>11}{'ours':>9}{'LassoCV':>9}{'OMP-CV':>9}{'ours/LassoCV':>14}{'memory/table':>14}"
    )
    for case in CASES:
        own, lasso, omp, above = alone("benchmarks.tall", *case)
        rows, columns, largest, effort = case
        print(
            f"{f'{rows:,} x {columns}':>17}{largest:>4}{effort:>11}{own:>9.2f}{lasso:>9.2f}{omp:>9.2f}"
            f"{own / lasso:>14.2f}{above:>14.2f}",
            flush=True,
        )
