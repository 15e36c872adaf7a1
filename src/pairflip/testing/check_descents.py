"""Checks of descents, kicks and paths: supports and counts are those of the reference engine.

An engine may leave them to others, if it says so for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from pairflip.engines.base import Descent, Engine, RankTooSmall, Refused, Steps, WalkPlan, WalkResult
from pairflip.engines.reference import ReferenceEngine
from pairflip.philox import chain_keys
from pairflip.problem import SubsetProblem
from pairflip.testing.cases import Case, delicate_cases, random_cases
from pairflip.testing.walks import require, walk_one

_NOTHING = np.zeros(0), np.zeros(0, dtype=np.int64)


def descent_cases(each: int = 1) -> tuple[Case, ...]:
    """Random problems of every kind, and those on which the Gram matrix alone cannot decide."""
    return *random_cases(each), *delicate_cases(each)


def descent_plan(k: int, seed: int, kicks: int, chains: int = 2, pool: int = 3) -> WalkPlan:
    """Chains that descend from random supports and are kicked.

    Parameters
    ----------
    k : int
        Number of columns in a support.
    seed : int
        Of the chains' addresses.
    kicks, pool : int
        See `Descent`.
    chains : int
        How many.
    """
    keys = chain_keys(seed, k, None, np.arange(chains))
    return WalkPlan(k, *_NOTHING, keys, descent=Descent(kicks, pool))


def refuses_descents(engine: Engine, case: Case) -> bool:
    """Whether the engine leaves descents to others; it then leaves paths to them, too."""
    if engine.refuses(case.gram, descent_plan(case.k, 0, 0)) is None:
        return False
    try:
        engine.path(case.gram, 1)
    except Refused:
        return True
    raise AssertionError("descents are refused, paths are not")


def check_descents(engine: Engine, cases: Sequence[Case] | None = None, kicks: int = 8) -> None:
    """Chains that descend and are kicked end in the same supports, and as many of their starts reached these.

    Parameters
    ----------
    engine : Engine
        What is checked.
    cases : sequence of Case, optional
        Other problems than `descent_cases`.
    kicks : int
        Rounds after the first descent.
    """
    for case in descent_cases() if cases is None else cases:
        if refuses_descents(engine, case):
            return
        expected = _reference_chains(case, kicks)
        _same(walk_one(engine, case.gram, descent_plan(case.k, 3, kicks)), expected, case, "descents")


def check_paths(engine: Engine, cases: Sequence[Case] | None = None) -> None:
    """A path of one pass, and one that goes down and up again, has the supports of the reference engine."""
    for case in descent_cases() if cases is None else cases:
        if refuses_descents(engine, case):
            return
        largest = min(case.k + 1, case.gram.n_columns - 1)
        for passes in (1, 4):
            expected, low = _reference_path(case, largest, passes)
            given, energies = engine.path(case.gram, largest, passes=passes)
            require(len(given) == len(expected), f"{case.name}: a path of {len(given)} sizes, not {len(expected)}")
            for ours, theirs in zip(given, expected, strict=True):
                what = f"{case.name}, {passes} passes: {ours.tolist()}, not {theirs.tolist()}"
                require(np.array_equal(ours, theirs), what)
            require(bool(np.all(np.abs(energies - low) <= 1e-9 * case.gram.yy)), f"{case.name}: {energies}, not {low}")


def check_starts(engine: Engine, cases: Sequence[Case] | None = None) -> None:
    """Chains that are given where to start descend from there; what annealing found is a start, too."""
    for case in random_cases(1)[::2] if cases is None else cases:
        if refuses_descents(engine, case):
            return
        keys = chain_keys(5, case.k, None, np.arange(2))
        scale = 20.0 / case.gram.yy
        short = np.array([scale, 10.0 * scale]), np.array([30, 30])
        annealed = WalkPlan(case.k, *short, keys, None, Descent(2, 2))
        starts = np.array([ReferenceEngine().start(case.gram, case.k, key)[: case.k] for key in keys])
        started = WalkPlan(case.k, *_NOTHING, keys, starts, Descent(2, 2))
        for plan, what in ((started, "given starts"), (annealed, "annealing first")):
            _same(walk_one(engine, case.gram, plan), walk_one(ReferenceEngine(), case.gram, plan), case, what)


def check_descent_rank(engine: Engine) -> None:
    """Where fewer than k columns are independent, chains say how many there are, and paths end there."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(12, 4)), rng.normal(size=12)
    doubled = Case("doubled columns", SubsetProblem(np.hstack([X, 2.0 * X]), y).gram, 4)
    wide = Case("N > M", SubsetProblem(rng.normal(size=(6, 10)), rng.normal(size=6)).gram, 5)
    for case in (doubled, wide):
        if refuses_descents(engine, case):
            return
        sizes = [support.size for support in engine.path(case.gram, case.k + 2, passes=3)[0]]
        require(sizes == list(range(1, case.k + 1)), f"{case.name}: a path of sizes {sizes}; expected up to {case.k}")
        walk_one(engine, case.gram, descent_plan(case.k, 0, 2))
        try:
            walk_one(engine, case.gram, descent_plan(case.k + 1, 0, 2))
        except RankTooSmall as error:
            require(f"k <= {case.k}" in str(error), f"expected k <= {case.k} in the message: {error}")
        else:
            raise AssertionError(f"descended with k = {case.k + 1}, but only {case.k} columns are independent")


def _same(given: WalkResult, expected: WalkResult, case: Case, what: str) -> None:
    """Require the same supports and counts, and energies that are equal to 1e-10 y'y."""
    for field in ("support", "best_support", "reached", "accepted"):
        a, b = np.asarray(getattr(given, field)), np.asarray(getattr(expected, field))
        require(np.array_equal(a, b), f"{case.name}, {what}: {field} is {a.tolist()}, not {b.tolist()}")
    off = float(np.max(np.abs(given.final_energy - expected.final_energy))) / case.gram.yy
    require(off <= 1e-10, f"{case.name}, {what}: final_energy is off by {off} y'y; expected 1e-10")


@cache
def _reference_chains(case: Case, kicks: int) -> WalkResult:
    return walk_one(ReferenceEngine(), case.gram, descent_plan(case.k, 3, kicks))


@cache
def _reference_path(case: Case, largest: int, passes: int) -> Steps:
    return ReferenceEngine().path(case.gram, largest, passes=passes)
