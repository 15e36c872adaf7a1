"""What the theory says at one temperature and size: one record for each solution."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pairflip.paper.theory.chart import SolutionChart, draw_chart, find_at
from pairflip.paper.theory.equations import Floats, Points, averages, both, entropy_and_response
from pairflip.paper.theory.ground import Ground, solve_ground
from pairflip.paper.theory.model import Planted, check_beta, check_model, check_rho

NAN = math.nan
FORMAL = "formal value: replica symmetry is broken here (below the AT temperature)"
ZERO_ENERGY = (
    "zero-energy phase: the energy falls to zero like T and the entropy goes to minus infinity, so replica symmetry "
    "describes no ground state here; other numbers are limits"
)


@dataclass(frozen=True)
class State:
    r"""Replica-symmetric solution at one inverse temperature and one size.

    Where `exists` is false there is no solution, the numbers are NaN, and `note` says why.

    Attributes
    ----------
    beta, rho, model
        What was asked.
    exists
        Whether there is a solution; False: no number below means anything.
    epsilon
        Training error, mean energy per row :math:`\langle E \rangle / M`.
    epsilon_g
        Generalisation error, half the mean squared error on a new row.
    entropy, free_entropy, free_energy
        Per column: s, :math:`\phi = s - \beta \alpha \epsilon`, and :math:`-\phi / \beta`.
    true_positive_rate, precision
        Fraction of the true columns that is selected; fraction of the selected columns that is true.
    at_stability
        :math:`\lambda_{AT}`; replica symmetry holds below 1.
    stable
        Whether :math:`\lambda_{AT} < 1`. If not, all numbers are formal values.
    zero_energy
        At infinite beta: the energy falls to zero with the temperature. The other numbers are limits.
    tau2, kappa, a, b, threshold, V, m, q
        Order parameters: noise of the local fields, chemical potential, effective stiffness,
        :math:`b = \beta a`, the field at which selection is even, fluctuation, overlaps with the truth
        and between replicas.
    converged, residual
        Whether Newton's method arrived, and its last relative step.
    dominant
        Whether no other solution at this beta has a larger free entropy.
    others
        Number of other solutions at this beta (`solve_all` returns them).
    note
        What a reader must know, or nothing.
    """

    beta: float
    rho: float
    model: Planted
    exists: bool = False
    epsilon: float = NAN
    epsilon_g: float = NAN
    entropy: float = NAN
    free_entropy: float = NAN
    free_energy: float = NAN
    true_positive_rate: float = NAN
    precision: float = NAN
    at_stability: float = NAN
    stable: bool = False
    zero_energy: bool = False
    tau2: float = NAN
    kappa: float = NAN
    a: float = NAN
    b: float = NAN
    threshold: float = NAN
    V: float = NAN
    m: float = NAN
    q: float = NAN
    converged: bool = False
    residual: float = NAN
    dominant: bool = False
    others: int = 0
    note: str = ""
    _place: tuple[float, float] = field(default=(NAN, NAN), repr=False, compare=False)

    @property
    def temperature(self) -> float:
        """T = 1 / beta."""
        return math.inf if self.beta == 0 else 1.0 / self.beta


def observe(rho: float, model: Planted, at: Points, a: Floats) -> dict[str, Floats]:
    """Everything that can be measured, by the names of a `State`, at points of a chart."""
    r0, slack = model.rho0, model.alpha - rho
    u, g = np.exp(at.U), np.exp(at.G)
    v, tau2 = 1.0 + g, model.var_x / g
    w, kappa = both(u, u * v), both(at.kappa, at.kappa)
    null, true = averages(w, kappa)
    (h_null, h_true), (l_null, l_true) = entropy_and_response(w, kappa)
    V = (1.0 - r0) * null.s_z2 + r0 * v * true.s_z2  # in units of tau2, like q and m below
    q = (1.0 - r0) * null.p2z2 + r0 * v * true.p2z2
    m = r0 * g * (1.0 - true.miss_z2)
    loss = u * V / slack  # 1 - a / slack without cancellation
    with np.errstate(divide="ignore"):
        log_stiffness = np.where(loss < 0.5, np.log1p(-np.minimum(loss, 0.5)), np.log(a / slack))
    entropy = (1.0 - r0) * h_null + r0 * h_true + 0.5 * slack * (log_stiffness + loss)
    return dict(
        epsilon=a * tau2 * (V + a) / (2.0 * model.alpha),
        epsilon_g=0.5 * model.alpha * tau2 * (1.0 + V / slack),
        entropy=entropy,
        free_entropy=entropy - 0.5 * u * (V + a),
        true_positive_rate=true.p,
        at_stability=((1.0 - r0) * l_null + r0 * l_true) / model.alpha,
        tau2=tau2,
        a=a,
        b=u / tau2,
        V=V * tau2,
        m=m * tau2,
        q=q * tau2,
    )


def _closed_form(beta: float, rho: float, model: Planted, **numbers: Any) -> State:
    """The record of a solution that needs no iteration."""
    precision = model.rho0 * numbers["true_positive_rate"] / rho
    return State(beta, rho, model, exists=True, converged=True, residual=0.0, precision=precision, **numbers)


def states(rho: float, model: Planted, at: Points, betas: Floats) -> list[State]:
    """Records of converged points."""
    a = np.exp(at.U + at.G) / model.var_x / betas
    observed = observe(rho, model, at, a)
    records = []
    for k, beta in enumerate(betas.tolist()):
        value: dict[str, Any] = {name: float(array[k]) for name, array in observed.items()}
        stable, zero, kappa = value["at_stability"] < 1.0, math.isinf(beta), float(at.kappa[k])
        records.append(
            State(
                beta,
                rho,
                model,
                exists=True,
                precision=model.rho0 * value["true_positive_rate"] / rho,
                free_energy=0.0 if zero else -value["free_entropy"] / beta,
                stable=stable,
                zero_energy=zero,
                kappa=kappa,
                threshold=math.sqrt(2.0 * kappa / value["b"]) if kappa > 0 else 0.0,
                converged=True,
                residual=float(at.step[k]),
                note=ZERO_ENERGY if zero else "" if stable else FORMAL,
                _place=(float(at.U[k]), float(at.G[k])),
                **value,
            )
        )
    return records


def binary_entropy(p: float) -> float:
    """Entropy of a coin, in nats."""
    return -p * math.log(p) - (1.0 - p) * math.log1p(-p) if 0 < p < 1 else 0.0


def hot_state(rho: float, model: Planted) -> State:
    """The record at beta = 0, where all supports are equally likely: elementary least squares."""
    alpha, slack = model.alpha, model.alpha - rho
    signal = model.rho0 * model.var_x
    variance = (1.0 - rho) * signal + model.var_noise
    tau2 = ((1.0 - rho) ** 2 * signal + model.var_noise) / (alpha - rho * rho)
    entropy = binary_entropy(rho)
    return _closed_form(
        0.0,
        rho,
        model,
        epsilon=slack / alpha * variance / 2.0,
        epsilon_g=variance / 2.0 * alpha / slack,
        entropy=entropy,
        free_entropy=entropy,
        free_energy=-math.inf,
        true_positive_rate=rho,
        at_stability=rho * rho / alpha,
        stable=True,
        tau2=tau2,
        kappa=math.log1p(-rho) - math.log(rho),
        a=slack,
        b=0.0,
        threshold=math.inf,
        V=rho * (1.0 - rho) * (tau2 + signal),
        m=rho * signal,
        q=rho * rho * (tau2 + signal),
        dominant=True,
    )


def ground_state(rho: float, model: Planted, ground: Ground) -> State:
    """The record at infinite beta, where it is approached with u going to infinity."""
    alpha, slack = model.alpha, model.alpha - rho
    tau2, x = model.var_x / ground.g, ground.a / slack
    c = ground.threshold / math.sqrt(1.0 + ground.g)
    tail = ground.true_positive_rate + 2.0 * c * math.exp(-0.5 * c * c) / math.sqrt(2.0 * math.pi)
    m = model.rho0 * model.var_x * tail
    epsilon = ground.a**2 * tau2 / (2.0 * alpha)
    return _closed_form(
        math.inf,
        rho,
        model,
        epsilon=epsilon,
        epsilon_g=0.5 * alpha * tau2,
        entropy=0.5 * slack * (math.log(x) + 1.0 - x),
        free_entropy=-math.inf,
        free_energy=alpha * epsilon,
        true_positive_rate=ground.true_positive_rate,
        at_stability=math.inf,
        stable=False,
        tau2=tau2,
        kappa=math.inf,
        a=ground.a,
        b=math.inf,
        threshold=ground.threshold * math.sqrt(tau2),
        V=0.0,
        m=m,
        q=alpha * tau2 - model.var_noise - model.rho0 * model.var_x + 2.0 * m,
        note=FORMAL + "; epsilon is a lower bound",
        _place=(math.inf, math.log(ground.g)),
    )


def recovered_state(rho: float, model: Planted) -> State:
    """Infinite beta without noise: every support that contains the truth, and no other."""
    extra = (rho - model.rho0) / (1.0 - model.rho0) if rho > model.rho0 else 0.0
    entropy = (1.0 - model.rho0) * binary_entropy(extra)
    response = ((1.0 - model.rho0) * extra**2 + model.rho0) / model.alpha
    signal = model.rho0 * model.var_x
    return _closed_form(
        math.inf,
        rho,
        model,
        epsilon=0.0,
        epsilon_g=0.0,
        entropy=entropy,
        free_entropy=entropy,
        free_energy=0.0,
        true_positive_rate=1.0,
        at_stability=response,
        stable=response < 1.0,
        zero_energy=True,
        tau2=0.0,
        kappa=math.inf if extra == 0.0 else math.log((1.0 - extra) / extra),
        a=model.alpha - rho,
        b=math.inf,
        threshold=0.0,
        V=0.0,
        m=signal,
        q=signal,
        note="exact recovery: without noise every support that contains all true columns has energy zero",
        _place=(-math.inf, math.inf),
    )


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
        at, where = find_at(chart, 1.0 / betas[finite])
        for index, state in zip(where.tolist(), states(rho, model, at, betas[finite][where]), strict=True):
            answer[finite[index]].append(state)
        if np.isinf(betas).any():
            ground = _at_zero_temperature(chart)
            for index in np.flatnonzero(np.isinf(betas)):
                answer[index] = list(ground)
    for index in np.flatnonzero(betas == 0):
        answer[index] = [hot_state(rho, model)]
    return [_ranked(each) for each in answer]


def _at_zero_temperature(chart: SolutionChart) -> list[State]:
    at, _ = find_at(chart, np.zeros(1))
    solutions = states(chart.rho, chart.model, at, np.full(at.U.size, np.inf))
    for line in chart.lines:
        if line.cold:
            ground = solve_ground(chart.rho, chart.model, float(line.at.G[-1]))
            if ground is not None:
                solutions.append(ground_state(chart.rho, chart.model, ground))
        if line.exact and chart.rho >= chart.model.rho0:
            solutions.append(recovered_state(chart.rho, chart.model))
    return solutions


def _ranked(solutions: list[State]) -> list[State]:
    """Each solution once: largest free entropy first; at infinite beta lowest energy first, then largest entropy."""

    def order(state: State) -> tuple[float, float]:
        return (state.epsilon, -state.entropy) if math.isinf(state.beta) else (-state.free_entropy, 0.0)

    distinct: list[State] = []
    for state in sorted(solutions, key=order):
        if not any(_same(state, other) for other in distinct):
            distinct.append(state)
    count, ranked = len(distinct), []
    for rank, state in enumerate(distinct):
        rather = "not the" if rank else "the"
        several = f"one of {count} solutions at this beta, {rather} one with the largest free entropy" * (count > 1)
        note = "; ".join(filter(None, [state.note, several]))
        ranked.append(replace(state, dominant=rank == 0, others=count - 1, note=note))
    return ranked


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


def pick(beta: float, rho: float, model: Planted, solutions: list[State]) -> State:
    """The dominant one of all solutions, or the record that there is none."""
    if solutions:
        return solutions[0]
    if rho >= model.alpha:
        return exact_fit(beta, rho, model)
    return State(beta, rho, model, note="no replica-symmetric solution was found here")
