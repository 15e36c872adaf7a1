"""Methods that find columns: each is a function of (columns, target, sizes) that returns supports by size.

Columns (m, n) have unit norm, and what is always in the model is taken out of them and of the target (m,).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence

import numpy as np

from pairflip.comparison.registry import Peer, PeerFailed
from pairflip.least_squares import SINGULAR, Floats, qr_energy
from pairflip.supports import Ints

BySize = dict[int, Ints]
_STEPS, _SMALLEST, _GAMMA = 100, 1e-3, 3.0  # penalties of the path of MCP: how many, down to what, and its shape


def omp(columns: Floats, target: Floats, sizes: Sequence[int]) -> BySize:
    """Scikit-learn's path of OMP; sizes after columns that depend on those chosen before are missing."""
    from sklearn.linear_model import orthogonal_mp

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # dependent columns end the path
        path = orthogonal_mp(columns, target, n_nonzero_coefs=max(sizes), return_path=True)
    path = path.reshape(columns.shape[1], -1)
    steps = [np.flatnonzero(path[:, k - 1]) for k in sizes if k <= path.shape[1]]
    return {support.size: support for support in steps}


def forward(columns: Floats, target: Floats, sizes: Sequence[int]) -> BySize:
    r"""Columns are added one by one: each lowers the energy most, by :math:`r_j^2 / 2 s_j`.

    With an orthonormal basis of the chosen columns, r_j is the product of what is left of column j with the target, and
    s_j its squared norm.
    """
    order: list[int] = []
    r, s, free = columns.T @ target, np.ones(columns.shape[1]), np.ones(columns.shape[1], dtype=bool)
    basis = np.empty((0, columns.shape[0]))
    while len(order) < max(sizes):
        free &= s > SINGULAR
        if not free.any():
            break
        j = int(np.argmax(np.where(free, r**2 / np.where(free, s, 1.0), -1.0)))
        q = columns[:, j]
        for _ in range(2):  # a second projection removes what rounding left of the first
            q = q - (basis @ q) @ basis
        q = q / np.linalg.norm(q)
        basis = np.vstack([basis, q])
        shared = q @ columns
        r, s = r - shared * (q @ target), s - shared**2
        free[j] = False
        order.append(j)
    return {k: np.sort(np.array(order[:k], dtype=np.int64)) for k in sizes if k <= len(order)}


def backward(columns: Floats, target: Floats, sizes: Sequence[int]) -> BySize:
    r"""Supports from all columns down: the one is removed that raises the energy least, by :math:`x_i^2 / 2 P_{ii}`.

    :math:`P = G^{-1}` comes from a QR of the columns; removing a column changes P and x by one rank-one term.
    """
    rows, count = columns.shape
    r = np.linalg.qr(columns, mode="r")
    if rows < count or np.min(np.abs(np.diag(r))) ** 2 <= SINGULAR:
        why = f"here are {count} columns and {rows} training rows" if rows < count else "here some depend on others"
        raise PeerFailed(f"starts with all columns, which must be independent: {why}")
    inverse = np.linalg.inv(r)
    P = inverse @ inverse.T
    x, support = np.linalg.lstsq(columns, target, rcond=None)[0], np.arange(count)
    supports = {count: support}
    while support.size > min(sizes):
        i = int(np.argmin(x**2 / np.diag(P)))
        others = np.delete(np.arange(support.size), i)
        p, row = P[i, i], P[i, others]
        x = x[others] - row * (x[i] / p)
        P = P[np.ix_(others, others)] - np.outer(row, row / p)
        support = support[others]
        supports[support.size] = support
    return supports


def along_path(columns: Floats, target: Floats, path: Floats, sizes: Sequence[int]) -> BySize:
    """Of all supports of a size on a path of coefficients (n, steps), the one with the lowest energy.

    Where the path jumps over a size, its first larger support gives the columns with the largest coefficients.
    """
    counts, supports = np.count_nonzero(path, axis=0), {}
    for size in sizes:
        different = {np.flatnonzero(path[:, at]).tobytes(): at for at in np.flatnonzero(counts == size)}
        of_size = [np.flatnonzero(path[:, at]) for at in different.values()]
        if not of_size:
            larger = np.flatnonzero(counts > size)
            if larger.size == 0:
                continue
            of_size = [np.sort(np.argsort(-np.abs(path[:, larger[0]]), kind="stable")[:size])]
        no_ridge = np.zeros(size)
        supports[size] = min(of_size, key=lambda support: qr_energy(columns[:, support], target, no_ridge))
    return supports


def lasso(columns: Floats, target: Floats, sizes: Sequence[int]) -> BySize:
    """Supports on the LASSO path (scikit-learn's LARS)."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import lars_path

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # columns that are nearly the same
        _, _, path = lars_path(columns, target, method="lasso", max_iter=4 * max(sizes) + 20)
    return along_path(columns, target, path, sizes)


def mcp(columns: Floats, target: Floats, sizes: Sequence[int]) -> BySize:
    """Supports along a path of skglm's minimax concave penalties, until one has more columns than are asked for."""
    from skglm.datafits import Quadratic
    from skglm.penalties import MCPenalty
    from skglm.solvers import AndersonCD
    from skglm.utils.jit_compilation import compiled_clone

    rows = target.size
    X, y = np.asfortranarray(columns * np.sqrt(rows)), target / np.std(target)
    top = float(np.max(np.abs(X.T @ y))) / rows
    datafit, penalty = compiled_clone(Quadratic()), compiled_clone(MCPenalty(top, _GAMMA))
    solver = AndersonCD(fit_intercept=False, ws_strategy="fixpoint", tol=1e-6)
    datafit.initialize(X, y)
    coef, fitted, path = np.zeros(X.shape[1]), np.zeros(rows), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a penalty has not converged: supports are fitted anew
        for alpha in top * np.geomspace(1.0, _SMALLEST, _STEPS):
            penalty.alpha = alpha
            coef = solver.solve(X, y, datafit, penalty, coef.copy(), fitted.copy())[0]
            fitted = X @ coef
            path.append(coef)
            if np.count_nonzero(coef) > max(sizes):
                break
    return along_path(columns, target, np.array(path).T, sizes)


def splicing(columns: Floats, target: Floats, sizes: int | Iterable[int], important_search: int = 128) -> Ints:
    """Columns that abess ends with after `sizes`, each started from the one before; the last size counts.

    With ic_coef=0 its criterion is the training error alone, which falls with size: so it returns the last one. It
    stops splicing when the loss falls by less than a threshold that does not depend on the unit of the target, so the
    target gets a standard deviation of 1000, where the threshold does not matter; as it is, abess finds less.
    """
    from abess import LinearRegression

    model = LinearRegression(
        support_size=sizes, fit_intercept=False, ic_coef=0.0, cv=1, thread=1, important_search=important_search
    )
    return np.flatnonzero(model.fit(columns, target * (1000.0 / np.std(target))).coef_)


def abess(columns: Floats, target: Floats, sizes: Sequence[int]) -> BySize:
    """Supports by splicing (Zhu et al. 2020), each size by itself."""
    supports = [splicing(columns, target, size) for size in sizes]
    return {support.size: support for support in supports}


OMP = Peer("omp", "OMP", "Orthogonal matching pursuit: adds the column most correlated with the residual.", find=omp)
FORWARD = Peer("forward", "forward selection", "Adds the column that lowers the energy most.", find=forward)
BACKWARD = Peer(
    "backward", "backward selection", "Starts with all columns and removes the one that is missed least.", find=backward
)
LASSO = Peer(
    "lasso", "LASSO path, refitted", "Supports along the LASSO path, fitted by least squares at each size.", find=lasso
)
ABESS = Peer("abess", "abess", "Best subsets by splicing, each size by itself.", find=abess, path=False, needs="abess")
SKGLM = Peer(
    "skglm",
    "skglm (MCP), refitted",
    "Supports along the path of a minimax concave penalty, fitted by least squares at each size.",
    find=mcp,
    needs="skglm",
)
