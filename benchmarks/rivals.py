"""Other ways to find k columns, each from the columns alone: OMP, the LASSO path, and abess where it is installed."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lars_path, orthogonal_mp

try:
    from abess import LinearRegression
except ImportError:
    LinearRegression = None

ABESS = LinearRegression is not None
NO_ABESS = "abess is not installed (pip install abess): its lines are missing"


def omp(columns, target, k):
    """Orthogonal matching pursuit: forward selection by correlation with the residual."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # columns that depend on those chosen before
        return np.flatnonzero(orthogonal_mp(columns, target, n_nonzero_coefs=k))


def lasso(columns, target, k):
    """The supports of k columns on the LASSO path, fitted anew without the penalty: the best of them.

    Where the path jumps over k, the k largest coefficients of its first larger support.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # columns that are nearly the same
        _, _, path = lars_path(columns, target, method="lasso", max_iter=4 * k + 20)
    sizes = np.count_nonzero(path, axis=0)
    supports = [np.flatnonzero(path[:, place]) for place in np.flatnonzero(sizes == k)]
    if not supports:
        larger = np.flatnonzero(sizes > k)
        if larger.size == 0:
            return np.array([], dtype=int)
        supports = [np.sort(np.argsort(-np.abs(path[:, larger[0]]))[:k])]
    return min(supports, key=lambda support: energy(columns, target, support))


def splicing(columns, target, sizes, important_search):
    """Columns that abess ends with after `sizes`, each started from the one before; the last size counts.

    With ic_coef=0 its criterion is the training error alone, which falls with size: so it returns the last one. It
    stops splicing when the loss falls by less than a threshold that does not depend on the unit of the target, so the
    target gets a standard deviation of 1000, where the threshold does not matter; as it is, abess finds less.
    """
    model = LinearRegression(
        support_size=sizes, fit_intercept=False, ic_coef=0.0, cv=1, thread=1, important_search=important_search
    )
    return np.flatnonzero(model.fit(columns, target * (1000.0 / np.std(target))).coef_)


def energy(columns, target, support):
    """E = 1/2 |y - X_S x|^2 at its minimum over x."""
    design = columns[:, support]
    residual = target - design @ np.linalg.lstsq(design, target, rcond=None)[0]
    return 0.5 * float(residual @ residual)
