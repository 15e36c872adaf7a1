"""Replica-symmetric theory of the planted model: what the sampler should find, computed.

For tables of the planted model (`Planted`) with many columns it gives the training and generalisation errors, the
entropy and the overlap with the truth of supports drawn at inverse temperature beta, without drawing any. Below the
temperature of the AT line (`at_point`) replica symmetry is broken and the numbers are formal values.

Imports numpy and scipy only. Derivation and plain words: ``docs/theory.md``.
"""

from pairflip.paper.theory.curves import OptimalRho, TheoryCurve, curve_over_beta, curve_over_rho, optimal_rho
from pairflip.paper.theory.ground import critical_rho
from pairflip.paper.theory.lines import LinePoint, at_point, zero_entropy_point
from pairflip.paper.theory.model import Planted
from pairflip.paper.theory.solve import solve, solve_all
from pairflip.paper.theory.state import State

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
