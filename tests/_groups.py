"""Small tables with groups of columns, of every kind that matters, and their energies from the rows themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pairflip import SubsetProblem


class LiteralFit(NamedTuple):
    """Coefficients of columns, and of those that are always there, for rows less their means; (n, q) each."""

    columns: Any
    coef: Any
    always: Any
    always_coef: Any
    means: Any
    target_means: Any
    scale: Any
    energy: float
    rank: int

    def predict(self, X: Any) -> Any:
        away = X - self.means
        return self.target_means + away[:, self.columns] @ self.coef + away[:, self.always] @ self.always_coef


@dataclass(frozen=True)
class GroupCase:
    """A table, its target and the arguments of its problem."""

    X: Any
    y: Any
    given: dict[str, Any]

    shrinkage: float = 0.0

    def problem(self) -> SubsetProblem:
        return SubsetProblem(self.X, self.y, **self.given).with_shrinkage(self.shrinkage)

    def allows(self, units: Any) -> bool:
        """Whether some groups, by their names, keep the rules, column by column."""
        own = [self.given["groups"][unit] for unit in units]
        there = {column for unit in own for column in unit}
        apart = self.given.get("min_distance", 0)
        near = any(abs(a - b) < apart for i, one in enumerate(own) for other in own[:i] for a in one for b in other)
        needs = self.given.get("hierarchy") or {}
        return not near and all(there.issuperset(needs[column]) for column in there if column in needs)

    def literal_fit(self, columns: Any, kept: Any = None) -> LiteralFit:
        """The smallest coefficients that fit some rows, by a singular value decomposition in the units of the table."""
        kept = np.arange(len(self.X)) if kept is None else kept
        weight = np.asarray(self.given.get("sample_weight", np.ones(len(self.y))), dtype=float)
        always, Y = list(self.given.get("always", [])), np.reshape(self.y, (len(self.y), -1))
        middle = np.zeros(self.X.shape[1]), np.zeros(Y.shape[1])
        if self.given["center"] is not None:
            rows = kept if self.given["center"] == "fold" else np.arange(len(self.X))
            middle = tuple(np.average(A[rows], axis=0, weights=weight[rows]) for A in (self.X, Y))
        root = np.sqrt(weight[kept])[:, None]
        X, Y, F = (root * (A[kept] - m) for A, m in ((self.X, middle[0]), (Y, middle[1]), (self.X, middle[0])))
        X, F = X[:, columns], F[:, always]
        pseudo = np.linalg.pinv(F)
        X_left, Y_left = X - F @ (pseudo @ X), Y - F @ (pseudo @ Y)
        several = self.y.ndim == 2
        scale = np.sqrt((Y_left**2).sum(axis=0) / weight[kept].sum()) if several else np.ones(1)
        penalty = self.given.get("ridge", 0.0) + self.shrinkage * (X_left**2).sum(axis=0)
        tail = np.diag(np.sqrt(penalty))
        design, target = np.vstack([X_left, tail]), np.vstack([Y_left, np.zeros((len(tail), Y.shape[1]))])
        coef = np.linalg.pinv(design, rcond=1e-9) @ target
        energy = 0.5 * float((((target - design @ coef) / scale) ** 2).sum())
        norms = np.linalg.norm(design, axis=0)
        rank = int(np.linalg.matrix_rank(design / np.where(norms > 1e-9, norms, 1.0), tol=1e-3))
        return LiteralFit(columns, coef, always, pseudo @ (Y - X @ coef), *middle, scale, energy, rank)


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


def combined_case(seed: int) -> GroupCase:
    """As `group_case`, with several targets, rules between groups, and either kind of ridge, in any combination."""
    case, rng = group_case(seed), np.random.default_rng(1000 + seed)
    given, X, y, groups = dict(case.given), case.X.copy(), case.y, list(case.given["groups"].values())
    if rng.random() < 0.4:  # groups of neighbours, but for two columns
        given["min_distance"] = float(rng.choice([1.5, 2.5, 4]))
        order = np.concatenate(groups)
        swapped = rng.integers(0, order.size, 2)
        order[swapped] = order[swapped[::-1]]
        X[:, : order.size], place = X[:, order], np.argsort(order)
        groups = [place[own].tolist() for own in groups]
        given["groups"] = {f"g{i}": own for i, own in enumerate(groups)}
    if rng.random() < 0.4:
        a, b, c = rng.permutation(len(groups))[:3]
        given["hierarchy"] = {groups[a][0]: [groups[b][-1]], groups[b][0]: [groups[c][0]]}
    if rng.random() < 0.5:
        y = np.column_stack([y, X @ rng.normal(size=X.shape[1]) + rng.normal(size=len(y))])
    shrinkage = float(rng.choice([0.0, 0.1, 1.0])) if "ridge" not in given else 0.0
    return GroupCase(X, y, given, shrinkage)


def likelihood_target(loss: str, eta: Any, rng: np.random.Generator) -> Any:
    """Classes, counts or survival times that depend on eta; every kind of row is among the first ones."""
    m = len(eta)
    if loss == "logistic":
        y = rng.random(m) < 1 / (1 + np.exp(-2.0 * eta))
        y[:4] = 0, 1, 0, 1
        return y
    if loss == "poisson":
        return rng.poisson(np.exp(np.clip(eta, -3, 2)))
    if loss == "multinomial":
        codes = np.digitize(eta + 0.4 * rng.normal(size=m), [-0.5, 0.5])
        codes[:6] = 0, 1, 2, 0, 1, 2
        return codes
    times = np.column_stack([np.ceil(8 * rng.exponential(np.exp(-np.clip(eta, -3, 3)))), rng.random(m) < 0.7])
    times[:4] = [[1, 1], [50, 0], [1, 1], [50, 0]]
    return times


def likelihood_case(loss: str, seed: int) -> GroupCase:
    """As `combined_case`, with classes, counts or survival times for a target."""
    case, rng = combined_case(seed), np.random.default_rng(2000 + seed)
    given, m = {**case.given, "loss": loss}, len(case.X)
    given["center"] = None if given["center"] is None and loss != "cox" else "fold"
    given.pop("ridge", None)
    eta = np.reshape(case.y, (m, -1))[:, 0]
    y = likelihood_target(loss, (eta - np.median(eta)) / eta.std(), rng)
    if loss == "poisson":
        given["offset"] = 0.3 * rng.normal(size=m) if seed % 3 == 0 else None
    if "sample_weight" in given:
        given["sample_weight"][:6] = 1
    return GroupCase(case.X, y, given, case.shrinkage)


def people(rows: int = 60, seed: int = 0) -> tuple[Any, Any, list[str], dict[str, list[int]]]:
    """A table with the dummies of one category: the target depends on that and on two columns of one group."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 8))
    dummies = np.eye(4)[rng.integers(0, 4, rows)]
    y = X[:, 0] + X[:, 1] + 2.0 * dummies[:, 1] - dummies[:, 3] + 0.5 * rng.normal(size=rows)
    names = [*(f"x{i}" for i in range(8)), *(f"race={level}" for level in "abcd")]
    return np.hstack([X, dummies]), y, names, {"race": [8, 9, 10, 11], "pair": [0, 1], "three": [2, 3, 4]}
