"""Small tables with groups of columns, of every kind that matters, and their energies from the rows themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pairflip import SubsetProblem


@dataclass(frozen=True)
class GroupCase:
    """A table, its target and the arguments of its problem."""

    X: Any
    y: Any
    given: dict[str, Any]

    def problem(self) -> SubsetProblem:
        return SubsetProblem(self.X, self.y, **self.given)

    def literal(self, columns: Any) -> float:
        """E of some columns, dependent or not, by lstsq on the rows."""
        weight = np.asarray(self.given.get("sample_weight", np.ones(len(self.y))), dtype=float)
        root, forced, X, y = np.sqrt(weight), self.X[:, self.given.get("always", [])], self.X, self.y
        if self.given["center"] is not None:
            X, forced, y = (A - np.average(A, axis=0, weights=weight) for A in (X, forced, y))
        ridge = np.zeros((len(columns), len(columns) + forced.shape[1]))
        ridge[:, : len(columns)] = np.sqrt(self.given.get("ridge", 0.0)) * np.eye(len(columns))
        A = np.vstack([np.hstack([X[:, columns], forced]) * root[:, None], ridge])
        t = np.concatenate([y * root, np.zeros(len(columns))])
        norms = np.linalg.norm(A, axis=0)
        norms[norms < 1e-12] = 1.0
        x = np.linalg.lstsq(A / norms, t, rcond=1e-9)[0]
        return 0.5 * float(np.sum((t - A / norms @ x) ** 2))


def group_case(seed: int) -> GroupCase:
    """Up to ten groups of one to four columns: correlated, dependent within and between groups, weights, ridge."""
    rng = np.random.default_rng(seed)
    widths = rng.integers(1, 5, int(rng.integers(4, 11)))
    n, m = int(widths.sum()), int(rng.integers(20, 60))
    X = rng.normal(size=(m, n)) + rng.choice([0, 1, 3]) * rng.normal(size=(m, 3)) @ rng.normal(size=(3, n))
    groups = np.split(rng.permutation(n), np.cumsum(widths)[:-1])
    kind = int(rng.integers(0, 4))
    for own in groups if kind else []:
        if own.size > 1 and rng.random() < 0.5:
            X[:, own[-1]] = 2.0 * X[:, own[0]] - (X[:, own[1]] if own.size > 2 else 0.0)
        if own.size > 2 and rng.random() < 0.3:
            X[:, own[1]] = 3.0
    if kind >= 2:
        X[:, groups[0][0]] = X[:, groups[1][0]]
    if kind == 3:  # dummies of one category: with a constant there is one too many
        level = rng.integers(0, int(widths.max()) + 1, m)
        for own in groups[2:4]:
            X[:, own] = (level % own.size)[:, None] == np.arange(own.size)
    y = X @ (rng.normal(size=n) * (rng.random(n) < 0.3)) + rng.normal(size=m) * rng.choice([0.1, 1, 3])
    given: dict[str, Any] = {"groups": {f"g{i}": own.tolist() for i, own in enumerate(groups)}}
    if rng.random() < 0.4:
        given["sample_weight"] = rng.integers(0, 4, m)
    if rng.random() < 0.3:
        given["ridge"] = float(rng.choice([1e-3, 0.5, 10]))
    given["center"] = ["fold", None, "global"][rng.integers(0, 3)]
    if rng.random() < 0.4:
        X = np.hstack([X, rng.normal(size=(m, 2))])
        given["always"] = [n, n + 1]
    return GroupCase(X, y, given)


def people(rows: int = 60, seed: int = 0) -> tuple[Any, Any, list[str], dict[str, list[int]]]:
    """A table with the dummies of one category: the target depends on that and on two columns of one group."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 8))
    dummies = np.eye(4)[rng.integers(0, 4, rows)]
    y = X[:, 0] + X[:, 1] + 2.0 * dummies[:, 1] - dummies[:, 3] + 0.5 * rng.normal(size=rows)
    names = [*(f"x{i}" for i in range(8)), *(f"race={level}" for level in "abcd")]
    return np.hstack([X, dummies]), y, names, {"race": [8, 9, 10, 11], "pair": [0, 1], "three": [2, 3, 4]}
