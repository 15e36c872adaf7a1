"""Random rules, and which supports keep them."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

KINDS = ("groups", "bands", "hierarchy")


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
