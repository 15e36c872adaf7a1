"""What users give as limits is read, checked and turned into rules for candidates."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from pairflip.rules import NOWHERE, Limits, no_rules, read_limits

NAMES = ["a", "b", "c", "a:b", "a^2", "b c", "d"]
NONE = np.zeros(0, dtype=np.int64)


def read(names: Any = NAMES, always: Any = NONE, **given: Any) -> Limits:
    return read_limits(names, np.asarray(always, dtype=np.int64), **given)


def test_groups_come_as_a_mapping_as_labels_or_as_a_table() -> None:
    pd = pytest.importorskip("pandas")
    mapping = read(groups={"g": ["a", "b"], "h": [6]}, one_per_group=True)
    labels = read(groups=["g", "g", None, "", float("nan"), None, "h"], one_per_group=True)
    frame = read(groups=pd.DataFrame({"column": ["a", "b", "d"], "group": ["g", "g", "h"]}), one_per_group=True)
    for limits in (mapping, labels, frame):
        assert {name: each.tolist() for name, each in limits.groups.items()} == {"g": [0, 1], "h": [6]}
        assert limits.ruled
        assert not limits.whole_groups
    assert read(groups={"g": ["a"]}).whole_groups


def test_rules_of_groups_are_for_the_candidates_that_are_there() -> None:
    limits = read(groups={"g": ["a", "b"], "h": ["c", "d"]}, one_per_group=True)
    rules = limits.rules(np.array([1, 2, 3, 6]), NONE)
    assert rules.group.tolist() == [0, 1, NOWHERE, 1]
    assert rules.allow(np.array([0, 1, 2]))
    assert not rules.allow(np.array([1, 3]))


@pytest.mark.parametrize(
    ("names", "positions", "by_names"),
    [
        (["900", "902.5", "1e3"], [900, 902.5, 1000], True),
        (["nm900", "nm902", "nm1000"], [900, 902, 1000], True),
        (["x_001", "x_002", "x_100"], [1, 2, 100], True),
        (["900 nm", "902 nm", " 1000 nm "], [900, 902, 1000], True),
        (["-0.5", "0.25", "1"], [-0.5, 0.25, 1], True),
        (["nm900", "cm902", "nm1000"], [0, 1, 2], False),
        (["a", "b2", "b3"], [0, 1, 2], False),
        (["2019-01", "2019-02", "2019-03"], [0, 1, 2], False),
        (["nan", "inf", "1"], [0, 1, 2], False),
    ],
)
def test_positions_are_the_numbers_in_the_names_or_the_places(names: Any, positions: Any, by_names: bool) -> None:
    limits = read(names, min_distance=1)
    assert limits.positions.tolist() == positions
    assert limits.by_names == by_names


def test_a_column_that_is_always_in_need_not_have_a_number() -> None:
    limits = read(["nm900", "nm910", "temperature"], [2], min_distance=5)
    assert limits.by_names
    assert limits.positions[:2].tolist() == [900, 910]


def test_a_distance_is_not_missed_by_rounding() -> None:
    rules = read(["0.1", "0.2", "0.3", "0.35"], min_distance=0.1).rules(np.arange(4), NONE)
    assert rules.allow(np.array([0, 1, 2]))
    assert not rules.allow(np.array([2, 3]))


def test_products_are_known_by_their_names() -> None:
    names = ["a", "b", "a:b", "a*b", "a b", "a × b", "a^2", "a^2 b", "I(a ** 2)", "I(a * b)", "a.b", "a:z", "ab", "a_b"]
    needs = {names[j]: [names[i] for i in each] for j, each in read(names, hierarchy=True).needs.items()}
    both, one = ["a", "b"], ["a"]
    assert needs == {
        "a:b": both, "a*b": both, "a b": both, "a × b": both, "a^2": one, "a^2 b": both, "I(a ** 2)": one,
        "I(a * b)": both,
    }  # fmt: skip


def test_a_forced_factor_is_there_and_a_missing_one_is_not() -> None:
    limits = read(hierarchy=True)
    rules = limits.rules(np.array([1, 2, 3, 4, 5]), np.array([0]))  # a is always in
    assert rules.allow(np.array([0, 2]))  # b, a:b
    assert not rules.allow(np.array([2]))
    assert rules.allow(np.array([3]))  # a^2 needs a only
    rules = limits.rules(np.array([1, 2, 3, 4, 5]), NONE)  # a is constant
    assert NOWHERE in rules.need
    assert not rules.allow(np.array([0, 2]))
    assert not rules.allow(np.array([3]))
    assert rules.allow(np.array([0, 1, 4]))


def test_nothing_is_forbidden_without_limits() -> None:
    assert read().asked == []
    rules = no_rules(5)
    assert not rules.any
    assert rules.allow(np.arange(5))
    assert read(min_distance=0).asked == []


def test_limits_come_back_from_what_they_say_of_themselves() -> None:
    given: dict[str, Any] = {
        "groups": {"g": ["a", "b"]}, "one_per_group": True, "min_distance": 1.5, "hierarchy": {"d": ["c"]},
    }  # fmt: skip
    limits = read(**given)
    again = read(**limits.arguments())
    assert again.settings(NAMES) == limits.settings(NAMES)
    assert limits.settings(NAMES)["distance_by"] == "places"
    assert limits.asked == ["groups", "one_per_group", "min_distance", "hierarchy"]
    np.testing.assert_array_equal(again.rules(np.arange(7), NONE).group, limits.rules(np.arange(7), NONE).group)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"groups": {"g": ["a", "z"]}, "one_per_group": True}, "group 'g' names the column 'z', which X does not have"),
        ({"groups": {"g": ["a"], "h": ["a", "b"]}}, "'a' is in the group 'h' and in the group 'g'"),
        ({"groups": {"g": ["d"]}, "always": [6]}, "'d' is in the group 'g' and in what is always in the model"),
        ({"groups": {"g": []}}, "the group 'g' has no columns"),
        ({"groups": ["g", "h"]}, "2 labels for 7 columns"),
        ({"one_per_group": True}, "one_per_group is True without groups"),
        ({"min_distance": -1}, "min_distance is -1; expected a number >= 0"),
        ({"min_distance": "20"}, "min_distance is '20'"),
        ({"hierarchy": True, "names": ["a", "b", "c"]}, "no name of a column is a product of others"),
        ({"hierarchy": {"a": ["a"]}}, "'a' needs itself"),
        ({"hierarchy": {"z": ["a"]}}, "hierarchy names the column 'z', which X does not have"),
        ({"hierarchy": ["a:b"]}, "hierarchy is a list"),
    ],
)
def test_bad_limits_are_refused_in_one_sentence(given: dict[str, Any], says: str) -> None:
    with pytest.raises((ValueError, TypeError), match=re.escape(says)) as caught:
        read(**given)
    assert str(caught.value).count(". ") == 0
