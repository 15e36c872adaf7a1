"""Methods that predict by themselves, without sizes: LassoCV and partial least squares."""

from __future__ import annotations

import warnings

import numpy as np

from pairflip.comparison.registry import Peer, PeerFailed
from pairflip.comparison.training import Model, Training
from pairflip.least_squares import Floats

MOST_COMPONENTS = 20


def lasso_cv(training: Training) -> Model:
    """Columns of unit norm, the penalty with the lowest error in ten inner folds, coefficients as they are."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LassoCV

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        # In units in which a column has variance one, as scikit-learn's tolerance expects.
        root = np.sqrt(training.target.size)
        model = LassoCV(cv=training.splits(), fit_intercept=False, n_jobs=1, max_iter=5000)
        model.fit(training.columns * root, training.target)
    return training.linear(model.coef_ * root)


def pls_paths(columns: Floats, target: Floats, most: int) -> Floats:
    r"""Coefficients (components, n) of PLS1 with 1, 2, ... components (NIPALS), of centred columns and target.

    .. math:: w \propto X^T y, \quad t = X w, \quad p = X^T t / t^T t, \quad q = y^T t / t^T t, \quad
        X \to X - t p^T, \quad y \to y - t q; \qquad x = W (P^T W)^{-1} q .
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


def pls(training: Training) -> Model:
    """Partial least squares with the number of components that has the lowest error in inner folds."""
    splits = training.splits()
    most = max(1, min(MOST_COMPONENTS, min(inside.size for inside, _ in splits) - 1, training.columns.shape[1]))
    errors = np.zeros(most)
    for inside, outside in splits:
        paths = pls_paths(training.columns[inside], training.target[inside], most)
        if not len(paths):
            raise PeerFailed("nothing of the target is related to any column in an inner fold")
        residuals = training.target[outside] - paths @ training.columns[outside].T
        squares = np.sum(residuals**2, axis=1)
        errors += np.append(squares, np.full(most - len(paths), squares[-1]))  # more components change nothing
    paths = pls_paths(training.columns, training.target, int(np.argmin(errors)) + 1)
    if not len(paths):
        raise PeerFailed("nothing of the target is related to any column")
    return Model(training.linear(paths[-1]).predict)


LASSO_CV = Peer(
    "lassocv", "LassoCV", "The LASSO with its penalty chosen by ten inner folds, coefficients shrunken.", fit=lasso_cv
)
PLS = Peer(
    "pls",
    "PLS",
    f"Partial least squares on all columns, 1 to {MOST_COMPONENTS} components by ten inner folds.",
    fit=pls,
)
