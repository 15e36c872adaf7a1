"""skglm's minimax concave penalty (MCP), which shrinks large coefficients less than the LASSO; if it is installed."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib.util import find_spec

import numpy as np

from pairflip.comparison.peers.lasso import along_path
from pairflip.comparison.registry import Peer, Supports
from pairflip.comparison.training import Training

STEPS, SMALLEST, GAMMA = 100, 1e-3, 3.0


def no_skglm() -> str:
    """What is missing; empty if skglm is installed."""
    return "" if find_spec("skglm") else "skglm is not installed (pip install skglm)"


def _find(training: Training, sizes: Sequence[int]) -> Supports:
    """Supports along a path of penalties, until one has more columns than are asked for."""
    from skglm.datafits import Quadratic
    from skglm.penalties import MCPenalty
    from skglm.solvers import AndersonCD
    from skglm.utils.jit_compilation import compiled_clone

    rows = training.target.size
    X, y = np.asfortranarray(training.columns * np.sqrt(rows)), training.target / np.std(training.target)
    top = float(np.max(np.abs(X.T @ y))) / rows
    datafit, penalty = compiled_clone(Quadratic()), compiled_clone(MCPenalty(top, GAMMA))
    solver = AndersonCD(fit_intercept=False, ws_strategy="fixpoint", tol=1e-6)
    datafit.initialize(X, y)
    coef, fitted, path = np.zeros(X.shape[1]), np.zeros(rows), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a penalty has not converged: supports are fitted anew
        for alpha in top * np.geomspace(1.0, SMALLEST, STEPS):
            penalty.alpha = alpha
            coef = solver.solve(X, y, datafit, penalty, coef.copy(), fitted.copy())[0]
            fitted = X @ coef
            path.append(coef)
            if np.count_nonzero(coef) > max(sizes):
                break
    return along_path(training.columns, training.target, np.array(path).T, sizes)


SKGLM = Peer(
    "skglm", "skglm (MCP), refitted",
    "Supports along the path of a minimax concave penalty, fitted by least squares at each size.",
    find=_find, lacking=no_skglm,
)  # fmt: skip
