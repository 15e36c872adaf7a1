"""Methods that predict by themselves, without sizes: LassoCV, the relaxed LASSO and partial least squares."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from pairflip.comparison.registry import Model, Peer, PeerFailed, Training
from pairflip.least_squares import Floats
from pairflip.text import plural

MOST_COMPONENTS = 20
RELAXATIONS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Parts of the LASSO's own coefficients in the relaxed LASSO; the rest are those of least squares."""
_PENALTIES = 50


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


def relaxed_lasso(training: Training) -> Model:
    """Penalty and relaxation with the lowest error in ten inner folds."""
    alphas = float(np.max(np.abs(training.columns.T @ training.target))) * np.geomspace(1.0, 1e-3, _PENALTIES)
    if alphas[0] == 0.0:
        raise PeerFailed("nothing of the target is related to any column")
    errors = np.zeros((len(RELAXATIONS), _PENALTIES))
    for inside, outside in training.splits():
        paths = relaxed_paths(training.columns[inside], training.target[inside], alphas)
        residuals = training.target[outside] - paths @ training.columns[outside].T
        errors += np.sum(residuals**2, axis=-1)
    relaxation, at = np.unravel_index(int(np.argmin(errors)), errors.shape)
    chosen = relaxed_paths(training.columns, training.target, alphas[: at + 1])[relaxation, at]
    return replace(training.linear(chosen), detail=f"{RELAXATIONS[relaxation]:g} of the shrinkage")


def relaxed_paths(columns: Floats, target: Floats, alphas: Floats) -> Floats:
    r"""Coefficients (relaxations, alphas, n): :math:`\phi x_\text{LASSO} + (1 - \phi) x_\text{least squares}`.

    Least squares are those of the columns that the LASSO chose (Meinshausen, CSDA 52, 374, 2007, as in R's glmnet).
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import lasso_path

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        # In units in which a column has variance about one, as scikit-learn's tolerance expects.
        root = np.sqrt(target.size)
        shrunken = root * lasso_path(columns * root, target, alphas=alphas / root, max_iter=5000)[1].T
    free = np.zeros(shrunken.shape)
    for coef, lasso in zip(free, shrunken, strict=True):
        support = np.flatnonzero(lasso)
        coef[support] = np.linalg.lstsq(columns[:, support], target, rcond=None)[0]
    return np.stack([part * shrunken + (1.0 - part) * free for part in RELAXATIONS])


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
    return Model(training.linear(paths[-1]).predict, detail=plural(len(paths), "component"))


LASSO_CV = Peer(
    "lassocv", "LassoCV", "The LASSO with its penalty chosen by ten inner folds, coefficients shrunken.", fit=lasso_cv
)
RELAXED = Peer(
    "relaxed",
    "relaxed LASSO",
    "The LASSO's columns, coefficients between its own and least squares; both parameters by ten inner folds.",
    fit=relaxed_lasso,
)
PLS = Peer(
    "pls",
    "PLS",
    f"Partial least squares on all columns, 1 to {MOST_COMPONENTS} components by ten inner folds.",
    fit=pls,
)
