"""Which sizes make sense: numbers of columns, or of groups where whole groups are chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.problem import SubsetProblem
from pairflip.text import plural


def check_size(problem: SubsetProblem, k: Any) -> int:
    """Size k as an int with 1 <= k < number of candidate columns."""
    n = problem.form.n_columns
    if problem.units is not None:
        return check_groups(problem, k)
    if isinstance(k, (bool, np.bool_)) or not isinstance(k, (int, np.integer)):
        raise TypeError(f"k is {k!r}; expected a whole number of columns, at least 1 and below {n}.")
    if k < 1:
        raise ValueError(f"k is {k}; expected at least 1 column.")
    if n == 1:
        raise ValueError(
            f"k is {k}, but X has only 1 candidate column that varies; expected at least 2, so that there is something "
            "to choose."
        )
    if k >= n:
        raise ValueError(
            f"k is {k}, but X has {n} candidate columns that vary; expected k below {n} (with all columns there is "
            "nothing to choose)."
        )
    if k > problem.most_columns:
        raise ValueError(f"k is {k}, but {no_more_than(problem)}; expected k up to {problem.most_columns}.")
    return int(k)


def no_more_than(problem: SubsetProblem) -> str:
    """How many columns, or groups, the rules let stand together."""
    most, asked = problem.most_columns, [name for name in problem.limits.asked if name != "groups"]
    counted = plural(most, problem.form.what.removesuffix("s"))
    if len(asked) > 1:
        return f"with {' and '.join(asked)} no more than {counted} were found that keep all of them"
    return f"with {asked[0]} at most {counted} can be chosen together"


def groups_of(problem: SubsetProblem) -> Mapping[str, NDArray[np.int64]] | None:
    """The groups that are chosen as a whole, if there are any."""
    return None if problem.units is None else problem.units.groups


def check_groups(problem: SubsetProblem, k: Any) -> int:
    """Size k as an int, where sizes count groups."""
    n = problem.form.n_columns
    allowed = f"expected a whole number of groups, at least 1 and below {n}."
    if isinstance(k, (bool, np.bool_)) or not isinstance(k, (int, np.integer)):
        raise TypeError(f"k is {k!r}; {allowed}")
    if not 1 <= k < n:
        raise ValueError(
            f"k is {k}, but the columns that vary make up {plural(n, 'group')} (columns of no group count as one "
            f"each); {allowed}"
        )
    if k > problem.most_columns:
        raise ValueError(f"k is {k}, but {no_more_than(problem)}; expected k up to {problem.most_columns}.")
    return int(k)


def check_counts(least: int = 1, **counts: Any) -> None:
    """Refuse what is not a whole number of at least so much."""
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise ValueError(f"{name} is {value!r}; expected a whole number, at least {least}.")
