"""Small problems under rules, and the lowest of all supports that keep them, by enumeration."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from pairflip import SubsetProblem

KINDS = ("groups", "bands", "hierarchy")


def table(seed: int, kind: str, most: int = 14) -> dict[str, Any]:
    """A table of one of several sorts: correlated or equal columns, weights, forced columns; and limits of a kind."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    m, n = int(rng.integers(20, 35)), int(rng.integers(8, most + 1))
    X = rng.normal(size=(m, n))
    if seed % 3 == 0:  # neighbours are alike, as in spectra
        X = np.cumsum(X, axis=1)
    if seed % 4 == 1:
        X[:, 1] = 3.0 * X[:, 0]
    if seed % 5 == 2:
        X[:, 4] = X[:, 2] - X[:, 3] + 1e-3 * X[:, 4]
    y = X @ (rng.normal(size=n) * (rng.uniform(size=n) < 0.5)) + rng.normal(size=m)
    weights = rng.integers(0, 3, size=m).astype(float) + (np.arange(m) < 15) if seed % 4 == 2 else np.ones(m)
    return {
        "X": X, "y": y, "weights": weights, "always": [n - 1] if seed % 6 == 0 else [],
        "limits": limits(rng, kind, n - 1 if seed % 6 == 0 else n),
    }  # fmt: skip


def limits(rng: np.random.Generator, kind: str, n: int) -> dict[str, Any]:
    """Random limits of a kind for the first n columns."""
    if kind == "groups":
        labels = rng.integers(0, max(3, n // 2), size=n)
        groups = {f"g{g}": np.flatnonzero(labels == g).tolist() for g in np.unique(labels) if g % 4}
        return {"groups": groups, "one_per_group": True}
    if kind == "bands":
        return {"min_distance": int(rng.integers(2, 4))}
    mains = int(rng.integers(3, n // 2 + 1))
    return {
        "hierarchy": {
            j: rng.choice(mains, size=int(rng.integers(1, 3)), replace=False).tolist() for j in range(mains, n)
        }
    }


def keeps(asked: dict[str, Any], support: Any) -> bool:
    """Whether a support keeps limits, in the words of who asked for them."""
    S = set(support)
    if "groups" in asked:
        return all(len(S & set(group)) <= 1 for group in asked["groups"].values())
    if "min_distance" in asked:
        return all(b - a >= asked["min_distance"] for a, b in combinations(sorted(S), 2))
    return all(S.issuperset(asked["hierarchy"].get(j, ())) for j in S)


def problem_of(case: dict[str, Any], **more: Any) -> SubsetProblem:
    return SubsetProblem(
        case["X"], case["y"], always=case["always"], sample_weight=case["weights"], **{**case["limits"], **more}
    )


def admissible(case: dict[str, Any], k: int) -> list[tuple[int, ...]]:
    """All supports of k columns that keep the limits."""
    free = [j for j in range(case["X"].shape[1]) if j not in case["always"]]
    return [S for S in combinations(free, k) if keeps(case["limits"], S)]
