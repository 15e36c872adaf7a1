"""Find the few columns of a table that predict a target, how many to keep, and how sure that is.

A Monte Carlo walk over supports (sets of k columns) flips a pair of columns at a time and is cooled
down (Obuchi & Kabashima 2016). Importing this package loads numpy only; everything else loads on
first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "AnnealedSubset": "estimators",
    "Schedule": "schedule",
    "SubsetProblem": "problem",
    "Trace": "annealing",
    "anneal": "annealing",
}
_MODULES = ("datasets", "testing")

__all__ = ["AnnealedSubset", "Schedule", "SubsetProblem", "Trace", "anneal", "datasets", "testing"]

if TYPE_CHECKING:
    from pairflip import datasets, testing
    from pairflip.annealing import Trace, anneal
    from pairflip.estimators import AnnealedSubset
    from pairflip.problem import SubsetProblem
    from pairflip.schedule import Schedule


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(f"pairflip.{_HOME[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"pairflip.{name}")
    else:
        raise AttributeError(f"module 'pairflip' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
