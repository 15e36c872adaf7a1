"""Exact answers for small problems, and the checks every engine must pass (for tests; needs no pytest)."""

from __future__ import annotations

from pairflip.testing.cases import Case, delicate_cases, enumerated_cases, random_cases
from pairflip.testing.conformance import (
    EngineConformance,
    check_acceptance,
    check_decisions,
    check_detailed_balance,
    check_flip_energies,
    check_irreducible,
    check_long_walks,
    check_many,
    check_protocol,
    check_rank,
    check_stationarity,
    check_tick,
    check_visits,
    check_workers,
    make_plan,
    walk_one,
)
from pairflip.testing.exact import (
    all_supports,
    balance_error,
    best_support,
    boltzmann,
    enumerate_energies,
    states,
    stationarity_error,
    transition_matrix,
)

__all__ = [
    "Case", "EngineConformance", "all_supports", "balance_error", "best_support", "boltzmann", "check_acceptance",
    "check_decisions", "check_detailed_balance", "check_flip_energies", "check_irreducible", "check_long_walks",
    "check_many", "check_protocol", "check_rank", "check_stationarity", "check_tick", "check_visits", "check_workers",
    "delicate_cases", "enumerate_energies", "enumerated_cases", "make_plan", "random_cases", "states",
    "stationarity_error", "transition_matrix", "walk_one",
]  # fmt: skip
