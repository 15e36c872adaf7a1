"""The LASSO: supports along its path, fitted anew without the penalty; and LassoCV as people use it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pairflip.comparison.registry import Peer, Supports
from pairflip.comparison.training import Model, Training
from pairflip.least_squares import Floats, qr_energy


def along_path(columns: Floats, target: Floats, path: Floats, sizes: Sequence[int]) -> dict[int, NDArray[np.int64]]:
    """Of all supports of a size on a path of coefficients, the one with the lowest energy.

    Where the path jumps over a size, its first larger support gives the columns with the largest coefficients.
    """
    counts, found = np.count_nonzero(path, axis=0), {}
    for size in sizes:
        supports = {np.flatnonzero(path[:, at]).tobytes(): at for at in np.flatnonzero(counts == size)}
        places = [np.flatnonzero(path[:, at]) for at in supports.values()]
        if not places:
            larger = np.flatnonzero(counts > size)
            if larger.size == 0:
                continue
            places = [np.sort(np.argsort(-np.abs(path[:, larger[0]]), kind="stable")[:size])]
        free = np.zeros(size)
        found[size] = min(places, key=lambda support: qr_energy(columns[:, support], target, free))
    return found


def lasso(columns: Floats, target: Floats, sizes: Sequence[int]) -> dict[int, NDArray[np.int64]]:
    """Supports by size on the LASSO path (scikit-learn's LARS)."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import lars_path

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # columns that are nearly the same
        _, _, path = lars_path(columns, target, method="lasso", max_iter=4 * max(sizes) + 20)
    return along_path(columns, target, path, sizes)


def _find(training: Training, sizes: Sequence[int]) -> Supports:
    return lasso(training.columns, training.target, sizes)


def _fit_cv(training: Training) -> Model:
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


LASSO = Peer(
    "lasso", "LASSO path, refitted", "Supports along the LASSO path, fitted by least squares at each size.", find=_find
)
LASSO_CV = Peer(
    "lassocv", "LassoCV", "The LASSO with its penalty chosen by ten inner folds, coefficients shrunken.", fit=_fit_cv
)
