"""Curves of the theory: over beta at one size, over sizes at one temperature, and the best size."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from pairflip.paper.theory.averages import Floats
from pairflip.paper.theory.lines import at_point, zero_entropy_point
from pairflip.paper.theory.model import Planted, check_beta, check_model, check_rho
from pairflip.paper.theory.solve import pick, solve, solve_many
from pairflip.paper.theory.state import State

if TYPE_CHECKING:
    import pandas as pd

_NUMBERS = (
    "beta",
    "temperature",
    "rho",
    "epsilon",
    "epsilon_g",
    "entropy",
    "free_entropy",
    "true_positive_rate",
    "precision",
    "at_stability",
)
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
    over: Literal["beta", "rho"], at: float | str, model: Planted, found: list[State], at_beta: Iterable[float]
) -> TheoryCurve:
    arrays: dict[str, Any] = {name: np.array([getattr(s, name) for s in found], dtype=float) for name in _NUMBERS}
    arrays |= {name: np.array([getattr(s, name) for s in found], dtype=bool) for name in _FLAGS}
    return TheoryCurve(
        over,
        at,
        model,
        at_beta=np.array(list(at_beta), dtype=float),
        others=np.array([s.others for s in found], dtype=np.int64),
        note=tuple(s.note for s in found),
        **arrays,
    )


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
    found = [pick(float(beta), rho, model, each) for beta, each in zip(values, many, strict=True)]
    return _curve("beta", rho, model, found, [at_point(rho, model).beta] * values.size)


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
        found = [point.state for point in lines]
    elif where == "zero entropy":
        found = [zero_entropy_point(rho, model).state for rho in sizes]
    else:
        found = [solve(where, rho, model) for rho in sizes]
    return _curve("rho", where, model, found, [point.beta for point in lines])


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
