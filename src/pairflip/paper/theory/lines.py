"""Where, on cooling, replica symmetry breaks (the AT line) and where the entropy vanishes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from pairflip.paper.theory.averages import Floats
from pairflip.paper.theory.chart import Line, SolutionChart, draw_chart
from pairflip.paper.theory.equations import Points, at_temperature, onto_curve, points, residuals
from pairflip.paper.theory.ground import root_between
from pairflip.paper.theory.model import Planted, check_model, check_rho
from pairflip.paper.theory.solve import exact_fit, solve_many
from pairflip.paper.theory.state import FORMAL, State, observe

Kind = Literal["at", "zero entropy"]

_WHAT = {"at": "the AT instability", "zero entropy": "vanishing entropy"}


@dataclass(frozen=True)
class LinePoint:
    r"""The first point, met from high temperature, at which something happens.

    Attributes
    ----------
    kind
        ``"at"``: :math:`\lambda_{AT} = 1`; ``"zero entropy"``: s = 0.
    rho, model
        What was asked.
    exists
        Whether the branch that begins at infinite temperature has such a point.
    beta, temperature
        Where it is; NaN if there is none.
    state
        The solution there; `state.exists` is false if there is none.
    first_order
        Whether another solution has taken over before (larger free entropy, or the branch ends): the point is then
        met only by a system that stays behind on its branch, or not at all.
    note
        What a reader must know, or nothing.
    """

    kind: Kind
    rho: float
    model: Planted
    exists: bool
    beta: float
    temperature: float
    state: State
    first_order: bool = False
    note: str = ""


def at_point(rho: Any, model: Planted) -> LinePoint:
    r"""Where replica symmetry breaks on cooling: the first :math:`\lambda_{AT} = 1` on the branch from beta = 0.

    Examples
    --------
    >>> from pairflip import theory
    >>> round(theory.at_point(0.1, theory.Planted()).temperature, 6)
    0.041821
    """
    return _first("at", check_rho(rho), check_model(model))


def zero_entropy_point(rho: Any, model: Planted) -> LinePoint:
    """Where the entropy vanishes on cooling, on the branch from beta = 0; usually beyond the AT line, so formal.

    Examples
    --------
    >>> from pairflip import theory
    >>> round(theory.zero_entropy_point(0.1, theory.Planted()).temperature, 6)
    0.023284
    """
    return _first("zero entropy", check_rho(rho), check_model(model))


def _absent(kind: Kind, rho: float, model: Planted, note: str, first_order: bool = False) -> LinePoint:
    nothing = State(math.nan, rho, model, note=note)
    return LinePoint(kind, rho, model, False, math.nan, math.nan, nothing, first_order, note)


def _margin(kind: Kind, chart: SolutionChart, at: Points, a: Floats) -> Floats:
    """Positive as long as the thing has not happened."""
    seen = observe(chart.rho, chart.model, at, a)
    return 1.0 - seen.at_stability if kind == "at" else seen.entropy


def _extended(chart: SolutionChart, line: Line) -> tuple[Points, Floats]:
    """Points of the line with a temperature, up to its first fold in T; a cold line is prolonged to u = 1e15."""
    at, a = line.at, line.a
    if line.cold and a[-1] > 0:
        U = at.U[-1] + np.arange(1.0, 22.0)
        start = points(at.kappa[-1] * np.exp(U - at.U[-1]), U, at.G[-1])
        more = onto_curve(chart.rho, chart.model, start, np.tile([1.0, 0.0], (U.size, 1)))
        more = more[more.converged]
        a = np.concatenate([a, chart.model.alpha - chart.rho - residuals(chart.rho, chart.model, more).d])
        at = Points(*(np.concatenate([getattr(each, x) for each in (at, more)]) for x in ("kappa", "U", "G", "step")))
    return at, a


@lru_cache(maxsize=1024)
def _first(kind: Kind, rho: float, model: Planted) -> LinePoint:
    if rho >= model.alpha:
        return _absent(kind, rho, model, exact_fit(math.nan, rho, model).note)
    chart = draw_chart(rho, model)
    line = chart.hot_line()
    if line is None:
        return _absent(kind, rho, model, "the branch from beta = 0 was not found")
    at, a = _extended(chart, line)
    temperature = a * model.var_x * np.exp(-at.U - at.G)
    stop = np.flatnonzero((a[1:] <= 0) | (temperature[1:] > temperature[:-1]))
    end = int(stop[0]) + 1 if stop.size else a.size
    margin = _margin(kind, chart, at[:end], a[:end])
    after = np.flatnonzero(margin <= 0)
    if after.size:
        return _at_crossing(kind, chart, at[int(after[0]) - 1 : int(after[0]) + 1])
    if stop.size and a[end] > 0:
        beta = 1.0 / float(temperature[end - 1])
        note = f"the branch from beta = 0 ends near beta = {beta:.2g} (a first-order jump) before {_WHAT[kind]}"
        return _absent(kind, rho, model, note, first_order=True)
    if stop.size:  # a reaches zero between two points: the last stretch may hold the crossing
        last = _before_zero_energy(kind, chart, at[end - 1 : end + 1], float(temperature[end - 1]))
        if last is not None:
            return _described(kind, chart, *last)
    return _absent(kind, rho, model, f"the branch from beta = 0 never meets {_WHAT[kind]}, down to T = 0")


def _before_zero_energy(kind: Kind, chart: SolutionChart, pair: Points, hottest: float) -> tuple[Points, float] | None:
    r"""The crossing on the last stretch, where a falls to zero with T: by T, since :math:`a = T u g / \sigma_x^2`."""
    middle = points(*(getattr(pair, x).mean() for x in ("kappa", "U", "G")))
    last = at_temperature(chart.rho, chart.model, middle, np.zeros(1))
    if not last.converged[0]:
        return None

    def place(log_t: float) -> Points:
        temperature = np.exp(np.array([log_t]))
        start = pair[:1] if temperature[0] > 0.5 * hottest else last
        return at_temperature(chart.rho, chart.model, start, temperature)

    def margin(log_t: float) -> float:
        at = place(log_t)
        return float(_margin(kind, chart, at, np.exp(log_t + at.U + at.G) / chart.model.var_x)[0])

    low, high = math.log(1e-290), math.log(hottest)
    if not (margin(low) <= 0 < margin(high)):
        return None
    log_t = root_between(margin, low, high, xtol=1e-13, rtol=1e-13, maxiter=200)
    return place(log_t), math.exp(log_t)


def _at_crossing(kind: Kind, chart: SolutionChart, pair: Points) -> LinePoint:
    """The crossing between two neighbouring points of the line."""
    rho, model = chart.rho, chart.model
    chord = np.array([[pair.U[1] - pair.U[0], pair.G[1] - pair.G[0]]])
    start = np.stack([pair.kappa, pair.U, pair.G])

    def place(t: float) -> Points:
        guess = points(*((1.0 - t) * start[:, 0] + t * start[:, 1]))
        return onto_curve(rho, model, guess, chord)

    def margin(t: float) -> float:
        at = place(t)
        a = np.maximum(model.alpha - rho - residuals(rho, model, at).d, 1e-300)
        return float(_margin(kind, chart, at, a)[0])

    at = place(root_between(margin, 0.0, 1.0, xtol=1e-13, rtol=1e-13, maxiter=200))
    a = model.alpha - rho - residuals(rho, model, at).d
    return _described(kind, chart, at, float((a * model.var_x * np.exp(-at.U - at.G))[0]))


def _described(kind: Kind, chart: SolutionChart, at: Points, temperature: float) -> LinePoint:
    """The record of a crossing, with whether another solution came first."""
    rho, model, beta = chart.rho, chart.model, 1.0 / temperature
    found = solve_many(np.array([beta]), rho, model)[0]
    near = [each for each in found if abs(each._place[0] - at.U[0]) + abs(each._place[1] - at.G[0]) < 1e-6]
    if not near:
        return _absent(
            kind, rho, model, f"{_WHAT[kind]} is met near beta = {beta:.6g}, but no solution converged there"
        )
    state = near[0]
    if kind == "at":  # the border itself: neither side, whatever the last digit of the stability says
        remarks = [each for each in state.note.split("; ") if each and each != FORMAL]
        state = replace(state, stable=True, note="; ".join(remarks))
    if state.dominant:
        return LinePoint(kind, rho, model, True, beta, temperature, state)
    note = f"another solution has the larger free entropy at beta = {beta:.4g}: a first-order transition comes before"
    return LinePoint(kind, rho, model, True, beta, temperature, state, True, note)
