"""A support on some of the rows, by definition: what every fold, and every fit, is compared with."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import lsq_linear

from pairflip import SubsetProblem


class Refit(NamedTuple):
    """Forced columns (the constant among them) and chosen ones, fitted to the rows that are not left out."""

    columns: Any
    coef: Any  # (k, q)
    forced: Any  # of the constant, if it is fitted, and of the columns that are always there
    energy: float
    scale: Any  # (q,), the units of the targets; 1 for a single one
    design: Any  # columns of unit norm; dependent ones have no energy
    problem: SubsetProblem

    def predict(self, new: Any) -> Any:
        """Predictions (m, q), in the units of the targets."""
        away, level, forced = _prepared(self.problem, new)
        return level + away[:, self.columns] @ self.coef + forced @ self.forced

    def residual(self, rows: Any) -> Any:
        """Observed minus predicted (m, q) of some rows, in units of the training rows."""
        return (self.problem.targets[rows] - self.predict(self.problem.X[rows])) / self.scale


def _prepared(problem: SubsetProblem, X: Any) -> tuple[Any, Any, Any]:
    """The table less the means of all rows (if these are taken once), those of the targets, and forced columns."""
    w, level, X = problem.sample_weight, np.zeros(problem.targets.shape[1]), np.asarray(X, dtype=float)
    if problem.center == "global":
        X = X - np.average(np.asarray(problem.X, dtype=float), axis=0, weights=w)
        level = np.average(problem.targets, axis=0, weights=w)
    return X, level, np.hstack([np.ones((len(X), int(problem.center == "fold"))), X[:, problem.always]])


def refit(problem: SubsetProblem, left_out: Any, support: Any) -> Refit:
    """Least squares by np.linalg.lstsq, forced columns first; with the ridge terms and signs of the problem."""
    kept, support = np.setdiff1d(np.arange(problem.n_rows), left_out), np.asarray(support, dtype=int)
    support, w = support[support >= 0], problem.sample_weight[kept]
    X, level, forced = _prepared(problem, problem.X)
    root = np.sqrt(w)[:, None]
    F, Z, T = root * forced[kept], root * X[np.ix_(kept, support)], root * (problem.targets - level)[kept]
    norms = np.linalg.norm(F, axis=0)
    norms[norms == 0] = 1.0

    def fitted(A: Any) -> Any:
        return np.linalg.lstsq(F / norms, A, rcond=None)[0] / norms[:, None]

    Z_left, T_left = Z - F @ fitted(Z), T - F @ fitted(T)
    scale = np.ones(T.shape[1])
    if problem.target_names and problem.scale_targets:
        scale = np.sqrt(np.sum(T_left**2, axis=0) / w.sum())
    penalty = problem.ridge + problem.shrinkage * np.sum(Z_left**2, axis=0)
    design = np.vstack([Z_left, np.diag(np.sqrt(penalty))])
    lengths = np.linalg.norm(design, axis=0)
    lengths[lengths == 0] = 1.0
    design, target = design / lengths, np.vstack([T_left, np.zeros((len(support), T.shape[1]))])
    if problem.limits.signs is None or not len(support):
        coef = np.linalg.lstsq(design, target, rcond=1e-11)[0]
    else:
        sign = problem.limits.signs[support]
        bounds = np.where(sign > 0, 0.0, -np.inf), np.where(sign < 0, 0.0, np.inf)
        coef = lsq_linear(design, target[:, 0], bounds=bounds, method="bvls", tol=1e-15, max_iter=1000).x[:, None]
    energy = 0.5 * float(np.sum(((target - design @ coef) / scale) ** 2))
    coef = coef / lengths[:, None]
    return Refit(support, coef, fitted(T - Z @ coef), energy, scale, design, problem)
