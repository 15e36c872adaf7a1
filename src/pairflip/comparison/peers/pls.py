"""Partial least squares, the usual method for spectra: a few directions of all columns, chosen by cross validation."""

from __future__ import annotations

import numpy as np

from pairflip.comparison.registry import Peer, PeerFailed
from pairflip.comparison.training import Model, Training
from pairflip.least_squares import Floats

MOST_COMPONENTS = 20


def pls_paths(columns: Floats, target: Floats, most: int) -> Floats:
    r"""Coefficients (components, n) of PLS1 with 1, 2, ... components (NIPALS).

    .. math:: w \propto X^T y, \quad t = X w, \quad p = X^T t / t^T t, \quad q = y^T t / t^T t, \quad
        X \to X - t p^T, \quad y \to y - t q; \qquad x = W (P^T W)^{-1} q .

    Columns and target are used as they are: centred by whoever calls.
    """
    X, y = columns.copy(), target.copy()
    W, P, q = np.empty((most, X.shape[1])), np.empty((most, X.shape[1])), np.empty(most)
    coefficients = []
    first = float(np.linalg.norm(X.T @ y))
    for c in range(most):
        w = X.T @ y
        size = float(np.linalg.norm(w))
        if size <= 1e-12 * first or first == 0.0:
            break
        W[c] = w / size
        t = X @ W[c]
        tt = float(t @ t)
        P[c], q[c] = X.T @ t / tt, float(y @ t) / tt
        X -= np.outer(t, P[c])
        y -= t * q[c]
        upto = slice(c + 1)
        coefficients.append(W[upto].T @ np.linalg.solve(P[upto] @ W[upto].T, q[upto]))
    return np.array(coefficients).reshape(-1, columns.shape[1])


def components_by_cv(training: Training, most: int) -> int:
    """The number of components with the lowest error in inner folds."""
    errors = np.zeros(most)
    for inside, outside in training.splits():
        paths = pls_paths(training.columns[inside], training.target[inside], most)
        if not len(paths):
            raise PeerFailed("nothing of the target is related to any column in an inner fold")
        residuals = training.target[outside] - paths @ training.columns[outside].T
        squares = np.sum(residuals**2, axis=1)
        errors += np.append(squares, np.full(most - len(paths), squares[-1]))  # more components change nothing
    return int(np.argmin(errors)) + 1


def _fit(training: Training) -> Model:
    fewest = min(inside.size for inside, _ in training.splits())
    most = max(1, min(MOST_COMPONENTS, fewest - 1, training.columns.shape[1]))
    paths = pls_paths(training.columns, training.target, components_by_cv(training, most))
    if not len(paths):
        raise PeerFailed("nothing of the target is related to any column")
    model = training.linear(paths[-1])
    return Model(model.predict)


PLS = Peer(
    "pls", "PLS", f"Partial least squares on all columns, 1 to {MOST_COMPONENTS} components by ten inner folds.",
    fit=_fit,
)  # fmt: skip
