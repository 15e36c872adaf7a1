"""Where, on cooling, replica symmetry breaks or the entropy vanishes; curves over beta and size; the best size."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from pairflip.paper.theory.chart import Line, SolutionChart, crossing, draw_chart
from pairflip.paper.theory.equations import (
    Floats,
    Points,
    at_temperature,
    between,
    joined,
    onto_curve,
    points,
)
from pairflip.paper.theory.ground import root_between
from pairflip.paper.theory.model import Planted, check_beta, check_model, check_rho
from pairflip.paper.theory.states import FORMAL, State, exact_fit, observe, pick, solve, solve_many

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["at", "zero entropy"]

_NAMES = {"at": "the AT instability", "zero entropy": "vanishing entropy"}


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
    observed = observe(chart.rho, chart.model, at, a)
    return 1.0 - observed["at_stability"] if kind == "at" else observed["entropy"]


def _extended(chart: SolutionChart, line: Line) -> tuple[Points, Floats]:
    """Points of the line with a temperature, up to its first fold in T; a cold line is prolonged to u = 1e15."""
    at, a = line.at, line.a
    if line.cold and a[-1] > 0:
        U = at.U[-1] + np.arange(1.0, 22.0)
        start = points(at.kappa[-1] * np.exp(U - at.U[-1]), U, at.G[-1])
        more = onto_curve(chart.rho, chart.model, start, np.tile([1.0, 0.0], (U.size, 1)))
        more = more[more.converged]
        at, a = joined([at, more]), np.concatenate([a, chart.a(more)])
    return at, a


@lru_cache(maxsize=1024)
def _first(kind: Kind, rho: float, model: Planted) -> LinePoint:
    if rho >= model.alpha:
        return _absent(kind, rho, model, exact_fit(math.nan, rho, model).note)
    chart = draw_chart(rho, model)
    line = next((line for line in chart.lines if line.hot), None)
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
        note = f"the branch from beta = 0 ends near beta = {beta:.2g} (a first-order jump) before {_NAMES[kind]}"
        return _absent(kind, rho, model, note, first_order=True)
    if stop.size:  # a reaches zero between two points: the last stretch may hold the crossing
        last = _before_zero_energy(kind, chart, at[end - 1 : end + 1], float(temperature[end - 1]))
        if last is not None:
            return _described(kind, chart, *last)
    return _absent(kind, rho, model, f"the branch from beta = 0 never meets {_NAMES[kind]}, down to T = 0")


def _before_zero_energy(kind: Kind, chart: SolutionChart, pair: Points, hottest: float) -> tuple[Points, float] | None:
    r"""The crossing on the last stretch, where a falls to zero with T: by T, since :math:`a = T u g / \sigma_x^2`."""
    last = at_temperature(chart.rho, chart.model, between(pair[:1], pair[1:], 0.5), np.zeros(1))
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
    at = crossing(chart, pair[:1], pair[1:], lambda at, a: _margin(kind, chart, at, np.maximum(a, 1e-300)))
    return _described(kind, chart, at, float((chart.a(at) * chart.model.var_x * np.exp(-at.U - at.G))[0]))


def _described(kind: Kind, chart: SolutionChart, at: Points, temperature: float) -> LinePoint:
    """The record of a crossing, with whether another solution came first."""
    rho, model, beta = chart.rho, chart.model, 1.0 / temperature
    solutions = solve_many(np.array([beta]), rho, model)[0]
    near = [each for each in solutions if abs(each._place[0] - at.U[0]) + abs(each._place[1] - at.G[0]) < 1e-6]
    if not near:
        return _absent(
            kind, rho, model, f"{_NAMES[kind]} is met near beta = {beta:.6g}, but no solution converged there"
        )
    state = near[0]
    if kind == "at":  # the border itself: neither side, whatever the last digit of the stability says
        remarks = [each for each in state.note.split("; ") if each and each != FORMAL]
        state = replace(state, stable=True, note="; ".join(remarks))
    if state.dominant:
        return LinePoint(kind, rho, model, True, beta, temperature, state)
    note = f"another solution has the larger free entropy at beta = {beta:.4g}: a first-order transition comes before"
    return LinePoint(kind, rho, model, True, beta, temperature, state, True, note)


_NUMBERS = (
    "beta", "temperature", "rho", "epsilon", "epsilon_g", "entropy", "free_entropy", "true_positive_rate", "precision",
    "at_stability",
)  # fmt: skip
_FLAGS = ("exists", "stable", "zero_energy", "dominant")


@dataclass(frozen=True)
class TheoryCurve:
    """States along a curve, as arrays; NaN only where `exists` is false.

    Attributes
    ----------
    over
        ``"beta"`` or ``"rho"``: what varies.
    at
        What is fixed: the rho, or the temperature (a beta, ``"inf"``, ``"at"`` or ``"zero entropy"``).
    model
        Parameters of the planted model.
    at_beta
        Inverse temperature of the AT point at each place of the curve, NaN where there is none.
    others
        Number of other solutions at each place.
    note
        One remark per place, mostly empty.
    """

    over: Literal["beta", "rho"]
    at: float | str
    model: Planted
    beta: Floats
    temperature: Floats
    rho: Floats
    exists: NDArray[np.bool_]
    epsilon: Floats
    epsilon_g: Floats
    entropy: Floats
    free_entropy: Floats
    true_positive_rate: Floats
    precision: Floats
    at_stability: Floats
    stable: NDArray[np.bool_]
    zero_energy: NDArray[np.bool_]
    dominant: NDArray[np.bool_]
    at_beta: Floats
    others: NDArray[np.int64]
    note: tuple[str, ...]

    def __len__(self) -> int:
        return int(self.beta.size)

    def to_pandas(self) -> pd.DataFrame:
        """A data frame with one row per place of the curve."""
        import pandas as pd

        names = (*_NUMBERS, *_FLAGS, "at_beta", "others", "note")
        return pd.DataFrame({name: list(getattr(self, name)) for name in names})


def _curve(
    over: Literal["beta", "rho"], at: float | str, model: Planted, states: list[State], at_beta: Iterable[float]
) -> TheoryCurve:
    arrays: dict[str, Any] = {name: np.array([getattr(s, name) for s in states], dtype=float) for name in _NUMBERS}
    arrays |= {name: np.array([getattr(s, name) for s in states], dtype=bool) for name in _FLAGS}
    return TheoryCurve(
        over, at, model, at_beta=np.array(list(at_beta), dtype=float),
        others=np.array([s.others for s in states], dtype=np.int64), note=tuple(s.note for s in states), **arrays,
    )  # fmt: skip


def _values(given: Any, name: str) -> list[Any]:
    try:
        values = [given] if isinstance(given, str) else list(given)
    except TypeError:
        values = [given]
    if not values:
        raise ValueError(f"{name} is empty; expected at least one number.")
    return values


def curve_over_beta(betas: Any, rho: Any, model: Planted) -> TheoryCurve:
    """Solutions over the temperature at one size, the dominant one where there are several.

    Parameters
    ----------
    betas : sequence of float
        Inverse temperatures, 0 to infinity.
    rho : float
        Size k / N.
    model : Planted
        Parameters of the planted model.

    Examples
    --------
    >>> from pairflip import theory
    >>> curve = theory.curve_over_beta([0.0, 1.0, 10.0], 0.1, theory.Planted())
    >>> curve.epsilon.round(4).tolist()
    [0.4, 0.1373, 0.0396]
    """
    values = np.array([check_beta(beta) for beta in _values(betas, "betas")])
    rho, model = check_rho(rho), check_model(model)
    many = solve_many(values, rho, model)
    states = [pick(float(beta), rho, model, each) for beta, each in zip(values, many, strict=True)]
    return _curve("beta", rho, model, states, [at_point(rho, model).beta] * values.size)


def curve_over_rho(rhos: Any, model: Planted, at: Any = "inf") -> TheoryCurve:
    r"""Solutions at each of `rhos`, at one temperature or along a line.

    Parameters
    ----------
    rhos
        Sizes, k / N.
    model
        Parameters of the planted model.
    at
        A beta; ``"inf"``, temperature zero; ``"at"``, where replica symmetry breaks at each rho; or
        ``"zero entropy"``.

    Examples
    --------
    >>> from pairflip import theory
    >>> theory.curve_over_rho([0.05, 0.1], theory.Planted(), at="at").epsilon_g.round(4).tolist()
    [0.1093, 0.1198]
    """
    sizes = [check_rho(rho) for rho in _values(rhos, "rhos")]
    model = check_model(model)
    where = _check_at(at)
    lines = [at_point(rho, model) for rho in sizes]
    if where == "at":
        states = [point.state for point in lines]
    elif where == "zero entropy":
        states = [zero_entropy_point(rho, model).state for rho in sizes]
    else:
        states = [solve(where, rho, model) for rho in sizes]
    return _curve("rho", where, model, states, [point.beta for point in lines])


def _check_at(at: Any) -> float | str:
    if isinstance(at, str) and at in ("inf", "at", "zero entropy"):
        return at
    try:
        return check_beta(at)
    except (TypeError, ValueError):
        raise ValueError(f"at is {at!r}; expected a beta >= 0, 'inf', 'at' or 'zero entropy'.") from None


@dataclass(frozen=True)
class OptimalRho:
    r"""The size of least generalisation error.

    Attributes
    ----------
    rho
        :math:`\rho_*`; NaN where there is none.
    epsilon_g
        The generalisation error there.
    state
        The solution there.
    exists
        Whether a minimum inside the range of sizes was found.
    note
        Why not, or nothing.
    """

    at: str
    rho: float
    epsilon_g: float
    state: State
    exists: bool
    note: str = ""


def optimal_rho(model: Planted, at: Literal["inf", "at"] = "inf") -> OptimalRho:
    """The size at which the generalisation error is least, at temperature zero or along the AT line.

    Zero-energy phases and points behind a first-order transition do not count.

    Examples
    --------
    >>> from pairflip import theory
    >>> round(theory.optimal_rho(theory.Planted(), at="inf").rho, 4)
    0.0622
    """
    model = check_model(model)
    if at not in ("inf", "at"):
        raise ValueError(f"at is {at!r}; expected 'inf' or 'at'.")
    if at == "inf" and model.var_noise == 0 and model.rho0 < min(model.alpha, 1.0):
        state = solve(math.inf, model.rho0, model)
        if state.exists and state.epsilon_g == 0:
            note = "without noise every rho from rho0 to alpha recovers the signal exactly; the smallest is given"
            return OptimalRho(at, model.rho0, 0.0, state, True, note)

    def state_at(rho: float) -> State:
        if at == "inf":
            state = solve(math.inf, rho, model)
            return state if not state.zero_energy else State(math.inf, rho, model, note=state.note)
        point = at_point(rho, model)
        return point.state if not point.first_order else State(math.nan, rho, model, note=point.note)

    def error(rho: float) -> float:
        state = state_at(float(rho))
        return state.epsilon_g if state.exists else math.inf

    top = 0.98 * min(model.alpha, 1.0)
    grid = np.unique(
        np.concatenate([np.geomspace(0.15, 2.5, 16) * min(model.rho0, top / 2.5), np.linspace(0.08, 1.0, 10) * top])
    )
    errors = np.array([error(rho) for rho in grid])
    best = int(np.argmin(errors))
    if not np.isfinite(errors[best]):
        nothing = State(math.nan, math.nan, model, note="no size has a solution here")
        return OptimalRho(at, math.nan, math.nan, nothing, False, nothing.note)
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]
    from scipy.optimize import minimize_scalar  # which takes a third of a second to load

    answer = minimize_scalar(error, bounds=(low, high), method="bounded", options={"xatol": 1e-7, "maxiter": 60})
    rho = float(answer.x)
    # Half a step away on both sides there must be solutions, and worse ones: else the range ended, not the error.
    inside = 0 < best < grid.size - 1 and all(error(rho + d) >= error(rho) for d in (-1e-4 * rho, 1e-4 * rho))
    inside = inside and all(math.isfinite(error(rho + d)) for d in (-1e-3 * rho, 1e-3 * rho))
    state = state_at(rho)
    if inside:
        return OptimalRho(at, rho, state.epsilon_g, state, True)
    note = f"no minimum inside the range of sizes with a solution; the least error is at its end, near rho = {rho:.4g}"
    return OptimalRho(at, rho, state.epsilon_g, state, False, note)
