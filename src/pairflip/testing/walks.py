"""Walks that engines are compared on: plans of several kinds, and when two walks count as the same."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pairflip.engines.base import Engine, WalkPlan, WalkResult
from pairflip.engines.reference import ReferenceEngine
from pairflip.moments import Form
from pairflip.philox import chain_keys
from pairflip.testing.cases import Case


def require(condition: bool, message: str) -> None:
    """Raise AssertionError with this message unless the condition holds."""
    if not condition:
        raise AssertionError(message)


def make_plan(form: Form, k: int, betas: ArrayLike, flips: ArrayLike, chains: int = 1, seed: int = 0) -> WalkPlan:
    """A plan for chains on all rows.

    Parameters
    ----------
    form : Form
        The problem.
    k : int
        Number of columns in a support.
    betas : float or (steps,)
        Inverse temperatures in units of 1 / y'y.
    flips : int or (steps,)
        Attempted flips at each beta; one number stands for every beta.
    chains, seed : int
        Number of chains, and the seed of their addresses.
    """
    scaled = np.atleast_1d(np.asarray(betas, dtype=np.float64)) / form.yy
    counts = np.broadcast_to(np.asarray(flips, dtype=np.int64), scaled.shape).copy()
    return WalkPlan(k, scaled, counts, chain_keys(seed, k, None, np.arange(chains)))


def decisions_plan(case: Case) -> WalkPlan:
    """One flip per step, so that `accepted` is the sequence of decisions, from beta = 0 to frozen."""
    betas = np.concatenate([np.zeros(20), np.geomspace(0.5, 1e4, 280)])
    return make_plan(case.form, case.k, betas, 1, chains=2)


def long_plan(case: Case) -> WalkPlan:
    """Long enough to freeze, and then warm again: engines take short cuts in chains that do not move."""
    betas, flips = [0.0, 20.0, 1e5, 5.0, 300.0, 1e7], [1500, 1000, 2500, 600, 1000, 1400]
    return make_plan(case.form, case.k, betas, flips, seed=2)


_PLANS = {"decisions": decisions_plan, "long": long_plan}


def walk_one(engine: Engine, form: Form, plan: WalkPlan, **options: Any) -> WalkResult:
    """What the engine answers when it is asked to walk one pair.

    Parameters
    ----------
    engine : Engine
        What walks.
    form, plan
        The pair.
    **options
        Those of `Engine.walk`.
    """
    (walked,) = engine.walk([(form, plan)], **options)
    return walked


@cache
def _reference_walk(case: Case, plan: str) -> WalkResult:
    return walk_one(ReferenceEngine(), case.form, _PLANS[plan](case))


def compare(engine: Engine, case: Case, plan: str) -> None:
    """Walk a case by the plan of this name, and require what the reference engine finds."""
    given, expected = walk_one(engine, case.form, _PLANS[plan](case)), _reference_walk(case, plan)
    same_walk(given, expected, case.form, f"{case.name}, {plan}")
    for c, support in enumerate(given.support):
        exact = case.form.energy(support)
        require(
            abs(float(given.final_energy[c]) - exact) <= 1e-8 * case.form.yy,
            f"{case.name}, {plan}: final_energy is {given.final_energy[c]}, but its support has {exact}",
        )


def same_walk(given: WalkResult, expected: WalkResult, form: Form, where: str) -> None:
    """Require equal decisions and supports, and energies that are equal to 1e-8 y'y."""
    for field in ("accepted", "support", "best_support"):
        a, b = getattr(given, field), getattr(expected, field)
        require(a.shape == b.shape, f"{where}: {field} has shape {a.shape}; expected {b.shape}")
        differ = np.argwhere(a != b)
        require(
            differ.size == 0,
            f"{where}: {field} differs in {len(differ)} of {a.size} entries, first at {differ[:1].tolist()}",
        )
    for field in ("energy", "final_energy"):
        a, b = getattr(given, field), getattr(expected, field)
        require(a.shape == b.shape, f"{where}: {field} has shape {a.shape}; expected {b.shape}")
        error = float(np.max(np.abs(a - b))) / form.yy
        require(error <= 1e-8, f"{where}: {field} is off by {error} y'y; expected 1e-8")
