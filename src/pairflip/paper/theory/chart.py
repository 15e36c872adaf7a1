r"""All solutions at one rho, drawn once for every temperature.

Two of the three equations do not contain the temperature (:mod:`pairflip.paper.theory.equations`). Their solutions are
lines in the plane (ln u, ln g); a chart holds these lines as points close to each other. A temperature then picks
the points at which the third equation changes sign, and Newton's method does the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pairflip.paper.theory.equations import (
    Floats,
    Points,
    at_temperature,
    between,
    joined,
    onto_curve,
    points,
    residuals,
    solve_kappa,
)
from pairflip.paper.theory.ground import root_between
from pairflip.paper.theory.model import Planted

Edges = NDArray[np.int64]
"""(n, 3): axis, i, j of the edge of the grid from the corner (i, j) to the next one along `axis`."""

_LOOKS = 6  # nodes per panel: enough to see the signs
_U_RANGE = (np.log(1e-7), np.log(1e6))
_G_RANGE = (np.log(1e-6), np.log(1e18))
_STEP = 0.36


@dataclass(frozen=True)
class Line:
    r"""Points of one line in order, :math:`a` there, and where the line leaves the chart.

    `hot` lines begin at infinite temperature; `cold` lines end at :math:`u = \infty`, the ground states, and `exact`
    ones at :math:`g = \infty`, where no part of the signal is missed.
    """

    at: Points
    a: Floats
    hot: bool
    cold: bool
    exact: bool

    def temperature(self, model: Planted) -> Floats:
        """Temperature along the line; negative where a point has no temperature."""
        return np.asarray(self.a * model.var_x * np.exp(-self.at.U - self.at.G))


@dataclass(frozen=True)
class SolutionChart:
    """Lines of solutions at one rho."""

    rho: float
    model: Planted
    lines: tuple[Line, ...] = ()

    def a(self, at: Points) -> Floats:
        """The effective stiffness a at points of the lines."""
        return np.asarray(self.model.alpha - self.rho - residuals(self.rho, self.model, at).d)


def hot_start(rho: float, model: Planted, beta: Floats) -> Points:
    r"""The solution to first order in beta: :math:`p = \rho`, :math:`a = \alpha - \rho`."""
    g = (model.alpha - rho**2) / (model.rho0 * (1.0 - rho) ** 2 + model.var_noise / model.var_x)
    u = beta * (model.alpha - rho) * model.var_x / g
    return points(np.log1p(-rho) - np.log(rho), np.log(u), np.log(g))


def _grid(model: Planted) -> tuple[Floats, Floats]:
    """Values of U and G: narrow steps where things happen, wide ones at the far ends."""
    U = np.concatenate(
        [
            np.arange(_U_RANGE[0], np.log(1e-3), 1.0 if model.var_noise == 0 else 2.0),
            np.arange(np.log(1e-3), np.log(1e3), _STEP),
            np.linspace(np.log(1e3), _U_RANGE[1], 7),
        ]
    )
    ratio = model.var_noise / model.var_x
    # F > g ratio - alpha, so that no root lies beyond g = alpha / ratio.
    top = min(np.log(model.alpha / ratio) + 0.1, _G_RANGE[1]) if ratio > 0 else _G_RANGE[1]
    # Beyond g = 1e4 hardly anything is missed, and lines are straight.
    wide = np.arange(np.log(1e4), top, 1.0)
    narrow = np.arange(np.log(1e-2), min(top, np.log(1e4)), _STEP)
    G = np.unique(np.concatenate([np.arange(_G_RANGE[0], np.log(1e-2), 1.0), narrow, wide, [top]]))
    return U, G


def _survey(rho: float, model: Planted, U: Floats, G: Floats) -> tuple[Floats, Floats]:
    """Kappa and F on the grid, roughly; each column of the grid starts from the one before."""
    kappa, F = np.empty((U.size, G.size)), np.empty((U.size, G.size))
    guess = np.full(G.size, np.log1p(-rho) - np.log(rho))
    before = guess
    for i, each in enumerate(U):
        column = np.full(G.size, each)
        kappa[i] = solve_kappa(rho, model, column, G, guess, _LOOKS)
        F[i] = residuals(rho, model, points(kappa[i], column, G), _LOOKS).noise
        stretch = (U[i + 1] - each) / (each - U[i - 1]) if 0 < i < U.size - 1 else 0.0
        guess = np.maximum(kappa[i] + stretch * (kappa[i] - before), kappa[i])
        before = kappa[i]
    return kappa, F


def _zero_lines(F: Floats) -> list[Edges]:
    """Lines along which F (n, m) changes sign, each as the edges of the grid that it crosses, in order.

    Contours are drawn on the indices of the grid, where every point lies on an edge: one of its two coordinates is a
    whole number, up to rounding.
    """
    from contourpy import LineType, contour_generator

    lines = contour_generator(z=F.T, line_type=LineType.Separate).lines(0.0)
    chains = []
    for line in lines:
        place = np.asarray(line, dtype=np.float64)
        off = np.abs(place - np.rint(place))
        axis = (off[:, 0] <= off[:, 1]).astype(np.int64)  # the coordinate that varies along the edge
        rows = np.arange(axis.size)
        corner = np.rint(place).astype(np.int64)
        corner[rows, axis] = np.floor(place[rows, axis])
        corner = np.minimum(corner, np.array(F.shape) - 1 - np.eye(2, dtype=np.int64)[axis])
        chains.append(np.column_stack([axis, corner]))
    return chains


def _crossing(edges: Edges, U: Floats, G: Floats, kappa: Floats, F: Floats) -> tuple[Points, Floats]:
    """Where the line crosses the edges, by interpolation, and the direction that stays fixed on each edge."""
    axis, i, j = edges.T
    i1, j1 = i + (axis == 0), j + (axis == 1)
    f0, f1 = F[i, j], F[i1, j1]
    t = np.clip(f0 / (f0 - f1), 0.0, 1.0)
    start = points(
        kappa[i, j] + t * (kappa[i1, j1] - kappa[i, j]), U[i] + t * (U[i1] - U[i]), G[j] + t * (G[j1] - G[j])
    )
    return start, np.stack([axis == 1, axis == 0], axis=-1).astype(np.float64)


@lru_cache(maxsize=256)
def draw_chart(rho: float, model: Planted) -> SolutionChart:
    """All lines of solutions at `rho`, 0 < rho < alpha; the last 256 charts are remembered.

    A coarse grid in (ln u, ln g) shows where F changes sign; each place where such a line crosses the grid is then
    improved by Newton's method, so the accuracy of the result does not depend on the grid.
    """
    U, G = _grid(model)
    kappa, F = _survey(rho, model, U, G)
    chains = [chain for chain in _zero_lines(F) if len(chain) > 1]
    if not chains:
        return SolutionChart(rho, model)
    start, direction = _crossing(np.concatenate(chains), U, G, kappa, F)
    at = onto_curve(rho, model, start, direction)
    near = (np.abs(at.U - start.U) < 2.0) & (np.abs(at.G - start.G) < 2.0)
    good = at.converged & near
    a = SolutionChart(rho, model).a(at)
    g_hot = float(hot_start(rho, model, np.array([1.0])).G[0])
    hot = (np.abs(at.U - U[0]) < 1e-9) & (np.abs(at.G - g_hot) < 0.5)
    free = ((G[-1] - at.G < 1e-9) | ((np.abs(at.U - U[0]) < 1e-9) & ~hot)) & (a > 0)
    lines: list[Line] = []
    first = 0
    for chain in chains:
        index = np.arange(first, first + len(chain))
        first += len(chain)
        index = index[good[index]]
        if index.size < 2:
            continue
        ends = index[[0, -1]]
        if hot[ends[1]] or (not hot[ends[0]] and at.U[ends[0]] > at.U[ends[1]]):
            index = index[::-1]
        last = index[-1]
        lines.append(
            Line(
                at[index],
                a[index],
                hot=bool(hot[ends].any()),
                cold=bool(abs(at.U[last] - U[-1]) < 1e-9),
                exact=model.var_noise == 0 and bool(free[index[0]] or free[last]),
            )
        )
    return SolutionChart(rho, model, tuple(lines))


def find_at(chart: SolutionChart, temperature: Floats) -> tuple[Points, NDArray[np.int64]]:
    """All points of the chart at finite u that have one of the given temperatures, and the index of each one's."""
    rho, model = chart.rho, chart.model
    none = np.array([])
    parts = [(points(none, none, none), none.astype(np.int64))]
    for line in chart.lines:
        scale = np.exp(line.at.U + line.at.G) / model.var_x
        excess = temperature[:, None] * scale - line.a
        index, segment = np.nonzero((excess[:, 1:] > 0) != (excess[:, :-1] > 0))
        if index.size:
            parts.append(_between(chart, line, excess, temperature, index, segment))
        hotter = np.flatnonzero(excess[:, 0] > 0) if line.hot else np.array([], dtype=int)
        if hotter.size:
            at = at_temperature(rho, model, hot_start(rho, model, 1.0 / temperature[hotter]), temperature[hotter])
            parts.append((at[at.converged], hotter[at.converged]))
        colder = np.flatnonzero((excess[:, -1] < 0) & (temperature > 0))
        if colder.size and (line.cold or (line.exact and line.at.G[-1] > line.at.G[0])):
            at = at_temperature(rho, model, _beyond(line, model, temperature[colder]), temperature[colder])
            parts.append((at[at.converged], colder[at.converged]))
    return joined([at for at, _ in parts]), np.concatenate([index for _, index in parts])


def _beyond(line: Line, model: Planted, temperature: Floats) -> Points:
    r"""Guesses beyond the end of a line: g stays as it is, or :math:`g \propto \beta^{3/2}` where nothing is missed."""
    colder = np.log(line.temperature(model)[-1] / temperature)
    kappa, U, G = line.at.kappa[-1], line.at.U[-1], line.at.G[-1]
    if line.cold:
        return points(kappa * np.exp(colder), U + colder, G)
    return points(kappa, U - 0.5 * colder, G + 1.5 * colder)


def _between(
    chart: SolutionChart,
    line: Line,
    excess: Floats,
    temperature: Floats,
    index: NDArray[np.int64],
    segment: NDArray[np.int64],
) -> tuple[Points, NDArray[np.int64]]:
    """Solutions between neighbouring points of a line, by Newton from the chord; where it strays, along the line."""
    e0, e1 = excess[index, segment], excess[index, segment + 1]
    one, two = line.at[segment], line.at[segment + 1]
    start = between(one, two, e0 / (e0 - e1))
    at = at_temperature(chart.rho, chart.model, start, temperature[index])
    reach = np.abs(two.U - one.U) + np.abs(two.G - one.G) + 0.05
    good = at.converged & (np.abs(at.U - start.U) + np.abs(at.G - start.G) < reach)
    for k in np.flatnonzero(~good).tolist():
        exact = _along_line(chart, one[[k]], two[[k]], temperature[index[[k]]])
        if exact is not None:
            at.kappa[k], at.U[k], at.G[k], at.step[k] = exact.kappa[0], exact.U[0], exact.G[0], exact.step[0]
            good[k] = True
    return at[good], index[good]


def _along_line(chart: SolutionChart, one: Points, two: Points, temperature: Floats) -> Points | None:
    """The solution between two neighbouring points where Newton's method strays from the chord."""
    scale = temperature / chart.model.var_x
    try:
        start = crossing(chart, one, two, lambda at, a: scale * np.exp(at.U + at.G) - a)
    except (ValueError, RuntimeError):  # not on the line in between, either
        return None
    at = at_temperature(chart.rho, chart.model, start, temperature)
    return at if at.converged[0] else None


def crossing(chart: SolutionChart, one: Points, two: Points, value: Callable[[Points, Floats], Floats]) -> Points:
    """The point of a line between two neighbours at which `value` (of a point, and of a there) changes sign."""
    chord = np.stack([two.U - one.U, two.G - one.G], axis=-1)

    def place(t: float) -> Points:
        return onto_curve(chart.rho, chart.model, between(one, two, t), chord)

    def value_at(t: float) -> float:
        at = place(t)
        return float(value(at, chart.a(at))[0])

    return place(root_between(value_at, 0.0, 1.0, xtol=1e-13, rtol=1e-13, maxiter=200))
