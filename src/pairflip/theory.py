"""Replica-symmetric theory of the planted model, under its public name.

The code is in :mod:`pairflip.paper.theory`, together with everything else that only the paper needs.
``docs/theory.md`` has the derivation, and what it means in plain words.

Examples
--------
>>> from pairflip.theory import Planted, solve
>>> round(solve(10.0, 0.1, Planted()).epsilon, 4)
0.0396
"""

from pairflip.paper.theory.curves import (
    LinePoint,
    OptimalRho,
    TheoryCurve,
    at_point,
    curve_over_beta,
    curve_over_rho,
    optimal_rho,
    zero_entropy_point,
)
from pairflip.paper.theory.ground import critical_rho
from pairflip.paper.theory.model import Planted
from pairflip.paper.theory.states import State, solve, solve_all

__all__ = [
    "LinePoint",
    "OptimalRho",
    "Planted",
    "State",
    "TheoryCurve",
    "at_point",
    "critical_rho",
    "curve_over_beta",
    "curve_over_rho",
    "optimal_rho",
    "solve",
    "solve_all",
    "zero_entropy_point",
]
