"""What the theory says at one temperature, as one record."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pairflip.paper.theory.averages import Floats, both, entropy_and_response, moments
from pairflip.paper.theory.equations import Points
from pairflip.paper.theory.ground import Ground
from pairflip.paper.theory.model import Planted

NAN = math.nan
FORMAL = "formal value: replica symmetry is broken here (below the AT temperature)"


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

    def with_note(self, note: str) -> State:
        """The same with one more remark."""
        return replace(self, note="; ".join(each for each in (self.note, note) if each))


@dataclass(frozen=True)
class Observables:
    """Arrays of everything a `State` holds, at points of a chart."""

    epsilon: Floats
    epsilon_g: Floats
    entropy: Floats
    free_entropy: Floats
    true_positive_rate: Floats
    at_stability: Floats
    tau2: Floats
    a: Floats
    b: Floats
    V: Floats
    m: Floats
    q: Floats


def observe(rho: float, model: Planted, at: Points, a: Floats) -> Observables:
    r"""Everything that can be measured, at points of a chart."""
    r0, slack = model.rho0, model.alpha - rho
    u, g = np.exp(at.U), np.exp(at.G)
    v, tau2 = 1.0 + g, model.var_x / g
    w, kappa = both(u, u * v), both(at.kappa, at.kappa)
    mean = moments(w, kappa)
    null, true = mean.part(0), mean.part(1)
    (h_null, h_true), (l_null, l_true) = entropy_and_response(w, kappa)
    V = (1.0 - r0) * null.s_z2 + r0 * v * true.s_z2  # in units of tau2, like q and m below
    q = (1.0 - r0) * null.p2z2 + r0 * v * true.p2z2
    m = r0 * g * (1.0 - true.miss_z2)
    loss = u * V / slack  # 1 - a / slack without cancellation
    with np.errstate(divide="ignore"):
        log_stiffness = np.where(loss < 0.5, np.log1p(-np.minimum(loss, 0.5)), np.log(a / slack))
    entropy = (1.0 - r0) * h_null + r0 * h_true + 0.5 * slack * (log_stiffness + loss)
    return Observables(
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


def states(rho: float, model: Planted, at: Points, betas: Floats) -> list[State]:
    """Records of converged points."""
    a = np.exp(at.U + at.G) / model.var_x / betas
    seen = observe(rho, model, at, a)
    records = []
    for k, beta in enumerate(betas.tolist()):
        value: dict[str, Any] = {name: float(getattr(seen, name)[k]) for name in Observables.__dataclass_fields__}
        stable, zero = value["at_stability"] < 1.0, math.isinf(beta)
        note = "" if stable else FORMAL
        if zero:
            note = (
                "zero-energy phase: the energy falls to zero like T and the entropy goes to minus infinity, so "
                "replica symmetry describes no ground state here; other numbers are limits"
            )
        free_energy = -value["free_entropy"] / beta if not zero else 0.0
        kappa = float(at.kappa[k])
        records.append(
            State(
                beta,
                rho,
                model,
                exists=True,
                precision=model.rho0 * value["true_positive_rate"] / rho,
                free_energy=free_energy,
                stable=stable,
                zero_energy=zero,
                kappa=kappa,
                threshold=math.sqrt(2.0 * kappa / value["b"]) if kappa > 0 else 0.0,
                converged=True,
                residual=float(at.step[k]),
                note=note,
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
    return State(
        0.0,
        rho,
        model,
        exists=True,
        epsilon=slack / alpha * variance / 2.0,
        epsilon_g=variance / 2.0 * alpha / slack,
        entropy=entropy,
        free_entropy=entropy,
        free_energy=-math.inf,
        true_positive_rate=rho,
        precision=model.rho0,
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
        converged=True,
        residual=0.0,
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
    return State(
        math.inf,
        rho,
        model,
        exists=True,
        epsilon=epsilon,
        epsilon_g=0.5 * alpha * tau2,
        entropy=0.5 * slack * (math.log(x) + 1.0 - x),
        free_entropy=-math.inf,
        free_energy=alpha * epsilon,
        true_positive_rate=ground.true_positive_rate,
        precision=model.rho0 * ground.true_positive_rate / rho,
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
        converged=True,
        residual=0.0,
        note=FORMAL + "; epsilon is a lower bound",
        _place=(math.inf, math.log(ground.g)),
    )


def recovered_state(rho: float, model: Planted) -> State:
    """Infinite beta without noise: every support that contains the truth, and no other."""
    extra = (rho - model.rho0) / (1.0 - model.rho0) if rho > model.rho0 else 0.0
    entropy = (1.0 - model.rho0) * binary_entropy(extra)
    response = ((1.0 - model.rho0) * extra**2 + model.rho0) / model.alpha
    signal = model.rho0 * model.var_x
    return State(
        math.inf,
        rho,
        model,
        exists=True,
        epsilon=0.0,
        epsilon_g=0.0,
        entropy=entropy,
        free_entropy=entropy,
        free_energy=0.0,
        true_positive_rate=1.0,
        precision=model.rho0 / rho,
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
        converged=True,
        residual=0.0,
        note="exact recovery: without noise every support that contains all true columns has energy zero",
        _place=(-math.inf, math.inf),
    )
