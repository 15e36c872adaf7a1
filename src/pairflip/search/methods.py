"""Which methods and engines there are where the energy is not that of plain least squares of one target."""

from __future__ import annotations

from typing import Any

from pairflip.engines import Engine
from pairflip.problem import SubsetProblem
from pairflip.search.effort import Method, as_method


def as_descent(problem: SubsetProblem, method: Any, schedule: Any = "auto", chains: Any = None) -> Method:
    """The method: descents, unless annealing is asked for (squared error without groups or signs)."""
    asked = {
        "method": method == "anneal",
        "schedule": schedule != "auto",
        "chains": chains is not None,
    }
    given = problem.energy_words
    for name in (name for name, is_given in asked.items() if is_given):
        raise ValueError(
            f"{name} asks for annealing, which there is for squared error without groups and signs, and {given}; "
            "expected method='descend' (--method descend), which is the default here."
        )
    if method is None:
        return "anneal" if asked["schedule"] or asked["chains"] else "descend"
    named = as_method(method)
    return "descend" if named == "auto" else named


def check_engine(problem: SubsetProblem, engine: str | Engine) -> str | Engine:
    """The engine: "numba", also where "auto" would be a device; for squared error also the reference engine."""
    name = engine if isinstance(engine, str) else engine.name
    if name == "reference" and problem.loss.squared:
        return engine
    if name not in ("auto", "numba"):
        if problem.limits.any:
            raise ValueError(f"engine is {name!r} and {problem.limits.asked[-1]} is given; expected 'auto' or 'numba'.")
        if problem.target_names:
            raise ValueError(f"engine is {name!r} and y has several targets; expected 'auto' or 'numba'.")
        raise ValueError(f"engine is {name!r} and loss is {problem.loss.name!r}; expected 'auto' or 'numba'.")
    return "numba" if isinstance(engine, str) else engine
