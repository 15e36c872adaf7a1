"""Leave-one-out over all sizes: ours beside OMP and abess in every fold, one thread each.

`python -m benchmarks loo` takes some minutes. Seconds are CPU seconds of one run of each, kernels compiled. OMP and
abess get centred rows, the sizes as one path, and predict the row left out. A cell is one size in one fold; its
training energies are computed anew, by least squares on the rows of the fold.
"""

import numpy as np
from sklearn.linear_model import orthogonal_mp_gram
from threadpoolctl import threadpool_limits

from benchmarks.common import cells, cpu_timed
from pairflip import SubsetProblem, datasets, select_size
from pairflip.comparison.peers.supports import ABESS, splicing

SHAPES = ((78, 276, 5), (100, 200, 30), (200, 400, 60))
ABESS_FOLDS = 10


def folds(X, y):
    """(held-out row, centred training table and target, row and target to predict in their units)."""
    for left in range(len(y)):
        rows = np.delete(np.arange(len(y)), left)
        mean, middle = X[rows].mean(axis=0), y[rows].mean()
        yield left, X[rows] - mean, y[rows] - middle, X[left] - mean, y[left] - middle


def omp_loo(X, y, largest):
    """Supports (folds, sizes) by OMP's path in every fold, and held-out errors (folds, sizes)."""
    supports, errors = [], np.empty((len(y), largest))
    for left, A, b, row, value in folds(X, y):
        norm = np.linalg.norm(A, axis=0)
        A = A / norm
        path = orthogonal_mp_gram(A.T @ A, A.T @ b, n_nonzero_coefs=largest, return_path=True, copy_Gram=False)
        errors[left] = (value - (row / norm) @ path) ** 2
        supports.append([np.flatnonzero(path[:, place]) for place in range(path.shape[1])])
    return supports, 0.5 * errors.mean(axis=0)


def abess_loo(X, y, largest):
    """One call over all sizes in every fold. It keeps the coefficients of the last size only: one prediction each."""
    for _, A, b, row, value in folds(X, y):
        support = splicing(A, b, range(largest + 1), 128)
        (value - row[support] @ np.linalg.lstsq(A[:, support], b, rcond=None)[0]) ** 2


def abess_cells(X, y, largest, every):
    """Supports of every size on abess's path, {fold: [support]}: a call for each size, since it keeps only the last."""
    return {
        left: [splicing(A, b, range(size + 1), 128) for size in range(1, largest + 1)]
        for left, A, b, _, _ in folds(X, y)
        if left % every == 0
    }


def energy(columns, target, support):
    """E = 1/2 |y - X_S x|^2 at its minimum over x."""
    design = columns[:, support]
    residual = target - design @ np.linalg.lstsq(design, target, rcond=None)[0]
    return 0.5 * float(residual @ residual)


def no_higher(X, y, curve, supports):
    """Fraction of cells in which ours has no higher training energy, and in which it has a lower one."""
    kept, lower, cells = 0, 0, 0
    for left, A, b, _, _ in folds(X, y):
        if left not in supports:
            continue
        for size, theirs in enumerate(supports[left], start=1):
            if theirs.size != size:
                continue
            own = energy(A, b, curve.fold_supports[curve.at(size)][left])
            other = energy(A, b, theirs)
            cells += 1
            kept += own <= other + 1e-9
            lower += own < other - 1e-9
    return kept / cells, lower / cells, cells


def report():
    print("\nLeave-one-out over sizes 1 to K: CPU seconds of the whole, one thread")
    if ABESS.lacking():
        print(f"{ABESS.lacking()}: its lines are missing")
    head = ("quick", "normal", "OMP", "abess")
    print(f"{'table':>12}{'K':>4}" + cells(head, 9) + "   quick no higher (lower) in cells than")
    with threadpool_limits(1):
        for M, N, largest in SHAPES:
            planted = datasets.make_planted(N=N, alpha=M / N, seed=1)
            X, y = planted.X, planted.y

            def ours(effort):
                problem = SubsetProblem(X, y)  # noqa: B023
                run = {"effort": effort, "n_jobs": 1, "progress": False, "prove": False}
                return select_size(problem, range(1, largest + 1), "loo", **run)  # noqa: B023

            select_size(SubsetProblem(X[:12, :9], y[:12]), [1, 2], "loo", effort="normal", progress=False)  # compiles
            (quick, curve), (normal, _) = cpu_timed(lambda: ours("quick")), cpu_timed(lambda: ours("normal"))
            omp, (supports, _) = cpu_timed(lambda: omp_loo(X, y, largest))  # noqa: B023
            seconds = [f"{quick:.2f}", f"{normal:.2f}", f"{omp:.2f}"]
            kept, lower, count = no_higher(X, y, curve, dict(enumerate(supports)))
            words = [f"OMP: {kept:.2%} ({lower:.0%}) of {count}"]
            if not ABESS.lacking():
                abess, _ = cpu_timed(lambda: abess_loo(X, y, largest))  # noqa: B023
                every = max(1, M // ABESS_FOLDS) if largest > 5 else 1
                kept, lower, count = no_higher(X, y, curve, abess_cells(X, y, largest, every))
                words.append(f"abess: {kept:.2%} ({lower:.0%}) of {count}")
            seconds.append("-" if ABESS.lacking() else f"{abess:.2f}")
            print(f"{f'{M} x {N}':>12}{largest:>4}" + cells(seconds, 9) + "   " + "; ".join(words))
