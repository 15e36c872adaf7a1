"""Which sizes a table and its folds allow: sizes that were asked for are checked, or the usual ones taken."""

from __future__ import annotations

from typing import Any

import numpy as np

from pairflip.problem import SubsetProblem
from pairflip.search.effort import check_size, no_more_than
from pairflip.text import plural

DEFAULT_LARGEST = 10


def check_sizes(problem: SubsetProblem, sizes: Any, fewest_rows: int) -> tuple[int, ...]:
    """Sizes that the table allows, sorted, each once."""
    n = problem.most_columns
    room = fewest_rows - problem.forced.shape[1]
    if problem.form.grouped:
        return _check_groups(problem, sizes, room)
    if sizes is None:
        return tuple(range(1, max(1, min(DEFAULT_LARGEST, n, room - 1)) + 1))
    ridged = problem.ridge > 0 and problem.loss.squared
    allowed = f"from 1 to {max(1, n if ridged else min(n, room))}"
    for size in sizes:
        if isinstance(size, (bool, np.bool_)) or not isinstance(size, (int, np.integer)):
            raise TypeError(f"sizes (--sizes) holds {size!r}; expected whole numbers of columns {allowed}.")
    if min(sizes) < 1:
        raise ValueError(f"sizes (--sizes) holds {min(sizes)}; expected numbers of columns {allowed}.")
    if max(sizes) > n:
        columns = "1 candidate column that varies" if n == 1 else f"{n} candidate columns that vary"
        why = no_more_than(problem) if problem.limits.ruled else f"the table has {columns}"
        raise ValueError(f"sizes (--sizes) holds {max(sizes)}, but {why}; expected sizes {allowed}.")
    wanted = [n if size == n else check_size(problem, size) for size in sizes]
    largest = max(wanted)
    if largest > room and not ridged:
        forced = problem.forced.shape[1]
        beside = f" and {forced} coefficient{'s' * (forced != 1)} fitted anyway" if forced else ""
        raise ValueError(
            f"size {largest} was asked for, but a fold has {fewest_rows} rows to learn from{beside}; "
            f"expected sizes up to {max(room, 0)}."
        )
    return tuple(sorted(set(wanted)))


def _check_groups(problem: SubsetProblem, sizes: Any, room: int) -> tuple[int, ...]:
    """The same where sizes count groups: the narrowest of them need that many rows."""
    n, most, columns = problem.form.n_columns, problem.most_columns, np.cumsum(np.sort(problem.form.widths))
    ridged = problem.ridge > 0 and problem.loss.squared
    fitting = min(most, n if ridged else int(np.count_nonzero(columns <= room)))
    if sizes is None:
        return tuple(range(1, max(1, min(DEFAULT_LARGEST, most, int(np.count_nonzero(columns <= room - 1)))) + 1))
    allowed = f"expected whole numbers of groups from 1 to {max(1, fitting)}."
    for size in sizes:
        if isinstance(size, (bool, np.bool_)) or not isinstance(size, (int, np.integer)):
            raise TypeError(f"sizes (--sizes) holds {size!r}; {allowed}")
        if not 1 <= size <= n:
            raise ValueError(
                f"sizes (--sizes) holds {size}, but the columns that vary make up {plural(n, 'group')} (columns of no "
                f"group count as one each); {allowed}"
            )
        if size > most:
            raise ValueError(f"sizes (--sizes) holds {size}, but {no_more_than(problem)}; {allowed}")
        if size > fitting:
            raise ValueError(
                f"size {size} was asked for, but even the smallest {size} groups have {columns[size - 1]} independent "
                f"columns, and a fold has {max(room, 0)} rows to learn them from; {allowed}"
            )
    return tuple(sorted({int(size) for size in sizes}))
