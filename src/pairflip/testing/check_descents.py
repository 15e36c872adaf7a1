"""Checks of descents, kicks and paths: supports and counts are those of the reference engine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pairflip.engines.base import Descent, Engine, WalkPlan, reaches
from pairflip.engines.reference import ReferenceEngine
from pairflip.philox import chain_keys
from pairflip.testing.cases import Case, delicate_cases, random_cases
from pairflip.testing.walks import require

_NOTHING = np.zeros(0), np.zeros(0, dtype=np.int64)


def all_cases() -> tuple[Case, ...]:
    """Random problems of every kind, and those on which the Gram matrix alone cannot decide."""
    return *random_cases(2), *delicate_cases(2)


def descent_plan(k: int, seed: int, kicks: int, chains: int = 2, pool: int = 3) -> WalkPlan:
    """Chains that descend from random supports and are kicked."""
    keys = chain_keys(seed, k, None, np.arange(chains))
    return WalkPlan(k, *_NOTHING, keys, descent=Descent(kicks, pool))


def check_descents(engine: Engine, cases: Sequence[Case] | None = None, kicks: int = 8) -> None:
    """Chains that descend and are kicked end in the same supports, and as many of their starts reached these."""
    for case in all_cases() if cases is None else cases:
        plan = descent_plan(case.k, 3, kicks)
        (expected,) = ReferenceEngine().walk([(case.gram, plan)])
        (given,) = engine.walk([(case.gram, plan)])
        same = np.array_equal(given.support, expected.support)
        require(same, f"{case.name}: descents end in {given.support.tolist()}, not in {expected.support.tolist()}")
        counts = np.asarray(given.reached), np.asarray(expected.reached)
        require(np.array_equal(counts[0], counts[1]), f"{case.name}: starts that reached it: {counts}")
        low = reaches(given.final_energy, expected.final_energy + 1e-9 * case.gram.yy, case.gram.yy)
        require(bool(low.all()), f"{case.name}: energies {given.final_energy}, not {expected.final_energy}")


def check_paths(engine: Engine, cases: Sequence[Case] | None = None) -> None:
    """A path of one pass, and one that goes down and up again, has the supports of the reference engine."""
    for case in all_cases() if cases is None else cases:
        largest = min(case.k + 1, case.gram.n_columns - 1)
        for passes in (1, 4):
            expected, low = ReferenceEngine().path(case.gram, largest, passes=passes)
            given, energies = engine.path(case.gram, largest, passes=passes)
            require(len(given) == len(expected), f"{case.name}: a path of {len(given)} sizes, not {len(expected)}")
            for ours, theirs in zip(given, expected, strict=True):
                what = f"{case.name}, {passes} passes: {ours.tolist()}, not {theirs.tolist()}"
                require(np.array_equal(np.sort(ours), np.sort(theirs)), what)
            require(bool(np.all(np.abs(energies - low) <= 1e-9 * case.gram.yy)), f"{case.name}: {energies}, not {low}")


def check_starts(engine: Engine, cases: Sequence[Case] | None = None) -> None:
    """Chains that are given where to start descend from there; what annealing found is a start, too."""
    for case in random_cases(1) if cases is None else cases:
        plan = descent_plan(case.k, 5, 3)
        (first,) = ReferenceEngine().walk([(case.gram, descent_plan(case.k, 6, 0))])
        scale = 20.0 / case.gram.yy
        short = np.array([scale, 10.0 * scale]), np.array([30, 30])
        for other in (
            WalkPlan(case.k, *_NOTHING, plan.keys, first.support, plan.descent),
            WalkPlan(case.k, *short, plan.keys, None, plan.descent),
        ):
            (expected,) = ReferenceEngine().walk([(case.gram, other)])
            (given,) = engine.walk([(case.gram, other)])
            same = np.array_equal(given.support, expected.support)
            require(same, f"{case.name}: {given.support.tolist()}, not {expected.support.tolist()}")
