"""How many columns rules let stand together, against all sets; and that sets of so many are found."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from _ruled import KINDS, limits
from pairflip.rules import Rules, capacity, choosable, largest_size, packed, read_limits

NONE = np.zeros(0, dtype=np.int64)


def rules_of(n: int, names: Any = None, **given: Any) -> Rules:
    return read_limits(names or [f"x{j}" for j in range(n)], NONE, **given).rules(np.arange(n), NONE)


def most_of_all(rules: Rules, n: int) -> int:
    return max(k for k in range(n + 1) if any(rules.allow(np.array(S, dtype=int)) for S in combinations(range(n), k)))


@pytest.mark.parametrize("kinds", [(kind,) for kind in KINDS] + [KINDS[:2], KINDS[1:], KINDS])
def test_as_many_as_there_can_be(kinds: tuple[str, ...]) -> None:
    rng = np.random.default_rng(len(kinds))
    for _ in range(25):
        n = int(rng.integers(6, 11))
        given: dict[str, Any] = {}
        for kind in kinds:
            given |= limits(rng, kind, n)
        rules = rules_of(n, **given)
        most = most_of_all(rules, n)
        assert largest_size(rules) == most
        assert capacity(rules) >= most
        if len(kinds) == 1:
            assert capacity(rules) == most
        for k in range(1, most + 1):
            found = packed(rules, k, rng.permutation(n))
            assert found is not None
            assert found.size == k
            assert rules.allow(found)
        assert packed(rules, most + 1, np.arange(n)) is None


def test_uneven_positions_are_packed_from_the_left() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        names = [f"{place:.6f}" for place in rng.permutation(np.sort(rng.uniform(0, 10, size=10)))]
        rules = rules_of(10, names, min_distance=float(rng.uniform(0.5, 4)))
        assert capacity(rules) == largest_size(rules) == most_of_all(rules, 10)


def test_the_first_in_the_order_are_preferred() -> None:
    rules, order = rules_of(8, min_distance=3), np.array([2, 4, 7, 0, 1, 3, 5, 6])
    two, three = packed(rules, 2, order), packed(rules, 3, order)
    assert two is not None
    assert three is not None
    assert two.tolist() == [2, 7]
    assert three.tolist() == [0, 4, 7]  # 2 leaves no place for three


def test_what_needs_columns_that_clash_cannot_be_chosen() -> None:
    rules = rules_of(5, groups={"g": [0, 1]}, one_per_group=True, hierarchy={4: [0, 1], 3: [2]})
    assert choosable(rules).tolist() == [True, True, True, True, False]
    assert largest_size(rules) == 3
