"""What a search for whole groups of columns is asked: sizes count groups, and there are two methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairflip.problem import SubsetProblem
from pairflip.search.effort import Method, as_method
from pairflip.text import plural


def groups_of(problem: SubsetProblem) -> Mapping[str, NDArray[np.int64]] | None:
    """The groups that are chosen as a whole, if there are any."""
    return None if problem.units is None else problem.units.groups


def check_groups(problem: SubsetProblem, k: Any) -> int:
    """Size k as an int, where sizes count groups."""
    n = problem.gram.n_columns
    allowed = f"expected a whole number of groups, at least 1 and below {n}."
    if isinstance(k, (bool, np.bool_)) or not isinstance(k, (int, np.integer)):
        raise TypeError(f"k is {k!r}; {allowed}")
    if not 1 <= k < n:
        raise ValueError(
            f"k is {k}, but the columns that vary make up {plural(n, 'group')} (columns of no group count as one "
            f"each); {allowed}"
        )
    return int(k)


def for_groups(method: Any, annealing: bool = False, objective: str = "energy") -> Method:
    """The method for whole groups of columns: descents, or annealing where that is asked for.

    Parameters
    ----------
    method, objective
        As in `anneal`.
    annealing : bool
        Whether something is given that only annealing has.
    """
    if objective != "energy":
        raise ValueError(f"objective is {objective!r} and columns are chosen in groups; expected 'energy'.")
    if method is None:
        return "anneal" if annealing else "descend"
    return "descend" if as_method(method) == "auto" else as_method(method)
