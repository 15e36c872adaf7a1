"""Checks of the chains that an engine walks: its protocol, and flip for flip what the reference engine decides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pairflip.engines.base import Engine, RankTooSmall, WalkPlan, WalkResult
from pairflip.problem import SubsetProblem
from pairflip.testing.cases import Case, random_cases, well_conditioned
from pairflip.testing.walks import compare, long_plan, make_plan, require, same_walk, walk_one


def check_protocol(engine: Engine) -> None:
    """The engine has every part of `Engine`, refuses in one sentence or not at all, and walks what it does not refuse.

    A plan without chains is asked about, too.
    """
    require(isinstance(engine, Engine), f"{engine!r} lacks a part of pairflip.engines.Engine")
    require(isinstance(engine.name, str) and bool(engine.name), f"name is {engine.name!r}; expected a word")
    require(isinstance(engine.prefers_many, bool), f"prefers_many is {engine.prefers_many!r}; expected True or False")
    for case in random_cases(1):
        plan = long_plan(case)
        reason = engine.refuses(case.form, plan)
        require(reason is None, f"{case.name}: a small problem is refused: {reason}")
        no_chains = WalkPlan(plan.k, np.zeros(0), plan.flips, plan.keys[:0])
        require(engine.refuses(case.form, no_chains) is None, f"{case.name}: refused without chains, not with them")


def check_many(engine: Engine) -> None:
    """Many pairs in one call give, in their order, what each gives alone; no pairs give nothing."""
    require(engine.walk([]) == [], "walking no pairs gives something")
    cases = random_cases(1)
    pairs = [
        (case.form, make_plan(case.form, case.k, [1.0, 50.0], [90, 60], 1 + n % 3)) for n, case in enumerate(cases)
    ]
    heard: list[int] = []
    together = engine.walk(pairs, tick=heard.append)
    planned = sum(plan.chains * int(plan.flips.sum()) for _, plan in pairs)
    require(sum(heard) == planned, f"tick heard of {sum(heard)} flips; expected {planned}")
    require(len(together) == len(pairs), f"{len(together)} results of {len(pairs)} pairs")
    for case, (form, plan), given in zip(cases, pairs, together, strict=True):
        same_walk(given, walk_one(engine, form, plan), form, f"{case.name}, among others")


def check_decisions(engine: Engine, cases: Sequence[Case] | None = None) -> None:
    """Flip for flip the decisions of the reference engine, on problems in which rounding decides nothing."""
    for case in well_conditioned(random_cases()) if cases is None else cases:
        compare(engine, case, "decisions")


def check_long_walks(engine: Engine, cases: Sequence[Case] | None = None) -> None:
    """Thousands of flips, freezing and warming up again, are those of the reference engine."""
    for case in well_conditioned(random_cases())[::7] if cases is None else cases:
        compare(engine, case, "long")


def check_rank(engine: Engine) -> None:
    """Asking for more columns than are independent raises RankTooSmall, which says how many there are."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(12, 4)), rng.normal(size=12)
    doubled = SubsetProblem(np.hstack([X, 2.0 * X]), y).form
    wide = SubsetProblem(rng.normal(size=(6, 10)), rng.normal(size=6)).form
    for form, rank in ((doubled, 4), (wide, 5)):
        walk_one(engine, form, make_plan(form, rank, [1.0], [20]))
        try:
            walk_one(engine, form, make_plan(form, rank + 1, [1.0], [20]))
        except RankTooSmall as error:
            require(f"k <= {rank}" in str(error), f"expected k <= {rank} in the message: {error}")
        else:
            raise AssertionError(f"walked with k = {rank + 1}, but only {rank} columns are independent")


def check_workers(engine: Engine) -> None:
    """Any number of workers gives the same chains, and so does walking them one by one."""
    for case in random_cases()[::11]:
        plan = make_plan(case.form, case.k, [1.0, 50.0], [150, 150], chains=5)
        together = walk_one(engine, case.form, plan, n_jobs=1)
        same_walk(walk_one(engine, case.form, plan, n_jobs=2), together, case.form, f"{case.name}, n_jobs=2")
        for c in range(plan.chains):
            own = WalkPlan(plan.k, plan.betas, plan.flips, plan.keys[c : c + 1])
            same_walk(
                walk_one(engine, case.form, own), _one_chain(together, c), case.form, f"{case.name}, chain {c} alone"
            )


def _one_chain(result: WalkResult, c: int) -> WalkResult:
    only = slice(c, c + 1)
    return WalkResult(
        result.energy[only],
        result.accepted[only],
        result.support[only],
        result.best_support[only],
        result.final_energy[only],
        result.refreshes[only],
    )


def check_tick(engine: Engine) -> None:
    """`tick` hears of every planned flip once, also of those a frozen chain need not try."""
    case = random_cases()[0]
    plan = make_plan(case.form, case.k, [0.0, 1.0, 1e6], [100, 300, 1500], chains=3)
    for n_jobs in (1, 2):
        heard: list[int] = []
        walk_one(engine, case.form, plan, n_jobs=n_jobs, tick=heard.append)
        total, planned = sum(heard), plan.chains * int(plan.flips.sum())
        require(total == planned, f"n_jobs={n_jobs}: tick heard of {total} flips; expected {planned}")
