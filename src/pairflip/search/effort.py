"""Size, method, engine and effort of a search: what may be asked for, and the numbers that an effort stands for.

The effort is counted in work that a cost model foresees, not in measured time, so the same seed gives the same result
on every machine; only an effort in seconds depends on the clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from pairflip.engines import Engine
from pairflip.engines.base import Descent, flip_nanoseconds
from pairflip.moments import Form
from pairflip.problem import SubsetProblem
from pairflip.text import plural

Method = Literal["auto", "anneal", "descend"]
METHODS = ("auto", "anneal", "descend")
_WIDE = 5792  # columns whose matrix of inner products takes 256 MiB
_MOMENT = 0.3
_PATIENCE = 5.0  # seconds that a first wave may take in any case
_OF_KICKS = 8  # on a quadratic form, for one in an energy that is not quadratic
_COSTLY_NS = 1e8  # for the kicks of a normal search where energies are not quadratic
LARGE = 30
"""Columns from which on a descent from a random start costs much more than a kick."""


@dataclass(frozen=True)
class Effort:
    """How much a search may spend on one size of one problem."""

    name: str  # as the user says it
    seconds: float  # on one core, by the cost model
    passes: int  # of the path: one goes up, others down and up in turn
    chains: int  # of the first wave
    kicks: int  # of each of these
    clock: bool = False  # whether `seconds` are measured rather than foreseen
    few: int = 0  # kicks times columns that are affordable in any case
    anneals: bool = False  # whether some chains of method "auto" anneal before they descend
    # If not 0, supports of more than `LARGE` columns are searched around the path: so many kicks of the chain that
    # starts there, all from its lowest minimum, and one descent from each random start, which takes far longer.
    path_first: int = 0

    def n_chains(self, k: int, n: int) -> int:
        """Chains of size k among n columns: none from a random start where its descent takes far longer than a kick."""
        return 1 if self.path_first and (k > LARGE or n > _WIDE) else self.chains

    def costly_descent(self, k: int) -> Descent:
        """A descent with fewer kicks, for energies that are not quadratic, where each kick is slow."""
        return Descent(min(1 + self.kicks // _OF_KICKS, 2 * k) if self.kicks else 0)

    def descent(self, k: int, *, from_path: bool = False) -> Descent:
        """What a chain of size k does: at least `kicks` rounds, more where supports are small and kicks cheap."""
        if self.path_first and k > LARGE:
            return Descent(self.path_first if from_path else 0, pool=1)
        kicks = max(self.kicks, self.few // k)
        return Descent(kicks, pool=12 if kicks > 24 or k <= 6 else max(2, kicks // 4))


EFFORTS = {
    "quick": Effort("quick", 0.0, 2, 2, 6),
    "normal": Effort("normal", 2.5, 4, 4, 25),
    "thorough": Effort("thorough", 15.0, 8, 4, 100, anneals=True),
}
FOLD_EFFORTS = {
    "quick": Effort("quick", 0.0, 1, 1, 0),
    "normal": Effort("normal", 0.0, 4, 2, 2, few=40, path_first=2),
    "thorough": Effort("thorough", 0.0, 6, 6, 100, few=400),
}
"""In a fold there is one wave, the same for every size, so that folds can be compared and nothing depends on luck."""
FEW_FOLDS, MANY_FOLDS = 60, 200
FEW_FOLD_EFFORTS = FOLD_EFFORTS | {"normal": Effort("normal", 0.0, 4, 2, 25, few=300)}
"""Of so few folds each is searched longer: final fits search longer, too, and what they find beyond the folds is not in
any held-out error. Of more than `MANY_FOLDS` each gets the path alone: they average over what it misses."""
FINAL_EFFORTS = {
    "quick": Effort("quick", 0.0, 2, 2, 4, path_first=4),
    "normal": Effort("normal", 0.0, 4, 4, 60),
    "thorough": Effort("thorough", 0.0, 8, 6, 400),
}
"""On all rows: more, because nothing averages over what is missed there."""


def work_of(in_folds: Effort) -> dict[str, Any]:
    """What chains of one size do, in folds and on all rows: journals of other amounts are not mixed with these."""
    return {
        where: {name: getattr(each, name) for name in ("passes", "kicks", "few", "path_first")}
        for where, each in (("folds", in_folds), ("final", FINAL_EFFORTS[in_folds.name]))
    }


def is_whole(value: Any) -> bool:
    """Whether this is a whole number, and no truth value."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))


def is_number(value: Any) -> bool:
    """Whether this is a finite number, and no truth value."""
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and bool(np.isfinite(value))


def as_method(method: Any) -> Method:
    """A method by name."""
    if isinstance(method, str) and method in METHODS:
        return method  # type: ignore[return-value]
    raise ValueError(f"method is {method!r}; expected one of {', '.join(map(repr, METHODS))}.")


def as_effort(effort: Any) -> Effort:
    """An effort by name, or so many seconds by the clock."""
    if isinstance(effort, Effort):
        return effort
    if isinstance(effort, str) and effort in EFFORTS:
        return EFFORTS[effort]
    if is_number(effort) and effort > 0:
        passes = 4 if effort >= _MOMENT else 1  # a first answer before better ones
        return Effort(f"{float(effort):g} s", float(effort), passes, 4, 25, clock=True, anneals=True)
    raise ValueError(f"effort is {effort!r}; expected 'quick', 'normal', 'thorough' or a number of seconds above 0.")


def as_descent(problem: SubsetProblem, method: Any, schedule: Any = "auto", chains: Any = None) -> Method:
    """Check the method of a problem that cannot be annealed, and return "descend"."""
    asked = {"method": method == "anneal", "schedule": schedule != "auto", "chains": chains is not None}
    if any(asked.values()):
        name = next(name for name, is_given in asked.items() if is_given)
        raise ValueError(
            f"{name} asks for annealing, which there is for squared error without groups and signs, and "
            f"{problem.energy_words}; expected method='descend' (--method descend), which is the default here."
        )
    as_method("descend" if method is None else method)
    return "descend"


def check_engine(problem: SubsetProblem, engine: str | Engine) -> str | Engine:
    """The engine: "numba", also where "auto" would be a device; for squared error also the reference engine."""
    name = engine if isinstance(engine, str) else engine.name
    if name == "reference" and problem.loss.squared:
        return engine
    if name not in ("auto", "numba"):
        if problem.limits.asked:
            raise ValueError(f"engine is {name!r} and {problem.limits.asked[-1]} is given; expected 'auto' or 'numba'.")
        if problem.target_names:
            raise ValueError(f"engine is {name!r} and y has several targets; expected 'auto' or 'numba'.")
        raise ValueError(f"engine is {name!r} and loss is {problem.loss.name!r}; expected 'auto' or 'numba'.")
    return "numba" if isinstance(engine, str) else engine


def check_size(problem: SubsetProblem, k: Any) -> int:
    """Size k as an int with 1 <= k < number of candidate columns; of groups, where whole groups are chosen."""
    n, noun = problem.form.n_columns, problem.form.what
    if not is_whole(k):
        raise TypeError(f"k is {k!r}; expected a whole number of {noun}, at least 1 and below {n}.")
    if k < 1:
        raise ValueError(f"k is {k}; expected at least 1 {noun.removesuffix('s')}.")
    if k >= n:
        candidates = f"X has {n} candidate columns that vary" if n > 1 else "X has only 1 candidate column that varies"
        if problem.units is not None:
            candidates = f"the columns that vary make up {plural(n, 'group')} (columns of no group count as one each)"
        allowed = f"k below {n} (with all {noun} there is nothing to choose)"
        if n == 1:
            allowed = "at least 2, so that there is something to choose"
        raise ValueError(f"k is {k}, but {candidates}; expected {allowed}.")
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


def check_chains(chains: Any) -> int:
    """A number of chains as an int."""
    if not is_whole(chains) or chains < 1:
        raise ValueError(f"chains is {chains!r}; expected a whole number of at least 1.")
    return int(chains)


def count_chains(chains: int | None, form: Form, k: int, flips: int) -> int:
    """The number of chains asked for, or as many as take about a second on one core by a cost model."""
    if chains is None:
        affordable = 1e9 / (flips * flip_nanoseconds(form, k))
        return int(np.clip(affordable, 16, min(512, max(32, 2 * form.n_columns))))
    return check_chains(chains)


def kick_nanoseconds(form: Any, k: int) -> float:
    """Cost model: what one kick and the descent after it take on one core."""
    if not form.quadratic:
        return float(form.kick_nanoseconds(k))
    targets, n = (int(size) for size in form.B.shape)
    width = n / form.n_columns
    inside, rows = k * width, targets + width - 1.0
    # Passes over the table, for rows of G; counted by the width alone, so that a memory budget does not change results.
    passes = k / 3.0 + 2.0 if n > _WIDE else 0.0
    descent = n * inside * (7.0 + 0.25 * inside) * (0.7 + 0.3 * rows)
    return float(3e3 + descent + 2.0 * passes * n * min(form.n_rows, n + 1))


def costly(effort: Effort, kick_ns: float) -> Effort:
    """The effort with fewer kicks, for energies that are not quadratic, where each kick is slow."""
    if effort.name == "quick":
        return replace(effort, kicks=2)
    if effort.name == "normal":
        return replace(effort, seconds=0.0, kicks=int(np.clip(_COSTLY_NS / (effort.chains * kick_ns), 4, 50)))
    return replace(effort, kicks=effort.kicks // 2)


@dataclass(frozen=True)
class Wave:
    """Some chains that are walked together: descents with kicks, or annealing before that."""

    chains: int
    kicks: int
    anneal: bool = False


def first_wave(effort: Effort, kick_ns: float) -> Wave:
    """What a search begins with: less where tables are so wide that it would take minutes."""
    whole, most = Wave(effort.chains, effort.kicks), 1e9 * max(_PATIENCE, effort.seconds)
    if whole.chains * whole.kicks * kick_ns <= most:
        return whole
    return Wave(2, max(1, int(0.5 * most / kick_ns)))


def second_wave(effort: Effort, kick_ns: float, n_columns: int) -> Wave:
    """As many chains again, longer ones: a tenth of the effort, but no more than small tables need."""
    kicks = min(int(1e8 * effort.seconds / (effort.chains * kick_ns)), 8 * n_columns)
    return Wave(effort.chains, max(2 * effort.kicks, kicks))


def last_waves(effort: Effort, kick_ns: float, spent_ns: float, anneal_ns: float | None, hard: bool) -> Iterator[Wave]:
    """What follows, until the effort is spent; the caller asks for no more once chains agree."""
    remaining = 1e9 * effort.seconds - spent_ns
    if anneal_ns is not None and 4.0 * anneal_ns <= remaining / 4.0:
        remaining -= 4.0 * anneal_ns
        yield Wave(4, effort.kicks, anneal=True)
    chains = 1 if hard else 2
    kicks = int(remaining / (chains * kick_ns))
    while effort.clock:  # in portions, so that the clock is looked at
        yield Wave(chains, max(effort.kicks, kicks // 8))
    if kicks >= effort.kicks // 2:
        yield Wave(chains, kicks)
