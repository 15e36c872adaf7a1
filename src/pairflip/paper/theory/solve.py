"""The solution at a temperature and a size, and all solutions where there are several."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from pairflip.paper.theory.averages import Floats
from pairflip.paper.theory.chart import SolutionChart, draw_chart, find_at
from pairflip.paper.theory.ground import solve_ground
from pairflip.paper.theory.model import Planted, check_beta, check_model, check_rho
from pairflip.paper.theory.state import State, ground_state, hot_state, recovered_state, states


def exact_fit(beta: float, rho: float, model: Planted) -> State:
    """The record of a place where a support has at least as many columns as the table has rows."""
    return State(
        beta,
        rho,
        model,
        note=f"no solution: with rho = {rho:g} >= alpha = {model.alpha:g} every support fits all rows exactly",
    )


def solve_many(betas: Floats, rho: float, model: Planted) -> list[list[State]]:
    """All solutions at many temperatures; the chart of this rho is drawn once."""
    answer: list[list[State]] = [[] for _ in betas]
    if rho >= model.alpha:
        return answer
    finite = np.flatnonzero((betas > 0) & np.isfinite(betas))
    if finite.size or np.isinf(betas).any():
        chart = draw_chart(rho, model)
        at, which, _ = find_at(chart, 1.0 / betas[finite])
        if which.size:
            for index, state in zip(which.tolist(), states(rho, model, at, betas[finite][which]), strict=True):
                answer[finite[index]].append(state)
        if np.isinf(betas).any():
            ground = _at_zero_temperature(chart)
            for index in np.flatnonzero(np.isinf(betas)):
                answer[index] = list(ground)
    for index in np.flatnonzero(betas == 0):
        answer[index] = [hot_state(rho, model)]
    return [_ranked(each) for each in answer]


def _at_zero_temperature(chart: SolutionChart) -> list[State]:
    found: list[State] = []
    at, which, _ = find_at(chart, np.zeros(1))
    if which.size:
        found += states(chart.rho, chart.model, at, np.full(which.size, np.inf))
    for line in chart.lines:
        if line.cold:
            ground = solve_ground(chart.rho, chart.model, float(line.at.G[-1]))
            if ground is not None:
                found.append(ground_state(chart.rho, chart.model, ground))
        if line.exact and chart.rho >= chart.model.rho0:
            found.append(recovered_state(chart.rho, chart.model))
    return found


def _order(state: State) -> tuple[float, float]:
    """Largest free entropy first; at infinite beta lowest energy first, then largest entropy."""
    if math.isinf(state.beta):
        return state.epsilon, -state.entropy
    return -state.free_entropy, 0.0


def _ranked(found: list[State]) -> list[State]:
    distinct: list[State] = []
    for state in sorted(found, key=_order):
        if not any(_same(state, other) for other in distinct):
            distinct.append(state)
    return [
        replace(state, dominant=rank == 0, others=len(distinct) - 1)
        if len(distinct) == 1
        else replace(state, dominant=rank == 0, others=len(distinct) - 1).with_note(
            f"one of {len(distinct)} solutions at this beta, "
            + ("the one with the largest free entropy" if rank == 0 else "not the one with the largest free entropy")
        )
        for rank, state in enumerate(distinct)
    ]


def _same(one: State, other: State) -> bool:
    return one.zero_energy == other.zero_energy and all(
        a == b or abs(a - b) < 1e-8 for a, b in zip(one._place, other._place, strict=True)
    )


def solve_all(beta: Any, rho: Any, model: Planted) -> list[State]:
    """All solutions at one temperature and size, the one with the largest free entropy first.

    Parameters
    ----------
    beta : float
        Inverse temperature, 0 to infinity.
    rho : float
        Size k / N, the fraction of the columns that is selected.
    model : Planted
        Parameters of the planted model.

    Returns
    -------
    list of State
        Empty where there is no solution.

    Examples
    --------
    >>> from pairflip import theory
    >>> [state.dominant for state in theory.solve_all(1e4, 0.15, theory.Planted(var_noise=1e-3))]
    [True, False, False]
    """
    return solve_many(np.array([check_beta(beta)]), check_rho(rho), check_model(model))[0]


def solve(beta: Any, rho: Any, model: Planted) -> State:
    """The replica-symmetric solution at one temperature and size.

    Parameters
    ----------
    beta : float
        Inverse temperature, 0 to infinity.
    rho : float
        Size k / N, the fraction of the columns that is selected.
    model : Planted
        Parameters of the planted model.

    Returns
    -------
    State
        Where several solutions exist, the one with the largest free entropy; `others` is then not zero. Where none
        exists, `exists` is false and `note` says why.

    Examples
    --------
    >>> from pairflip import theory
    >>> state = theory.solve(10.0, 0.1, theory.Planted())
    >>> round(state.epsilon, 4), round(state.epsilon_g, 4), state.stable
    (0.0396, 0.1062, True)
    """
    beta, rho = check_beta(beta), check_rho(rho)
    return pick(beta, rho, check_model(model), solve_all(beta, rho, model))


def pick(beta: float, rho: float, model: Planted, found: list[State]) -> State:
    """The dominant one of all solutions, or the record that there is none."""
    if found:
        return found[0]
    if rho >= model.alpha:
        return exact_fit(beta, rho, model)
    return State(beta, rho, model, note="no replica-symmetric solution was found here")
