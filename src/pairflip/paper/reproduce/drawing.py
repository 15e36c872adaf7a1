"""The figures: they draw points and compute nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pairflip.report.style import COLOURS, MARKERS, QUIET, TEXT, new_axes

Rows = Sequence[dict[str, Any]]
Style = dict[str, Any]


def figure_of(part: str, rows: Rows, theory: Rows) -> Figure:
    """The figure of a part."""
    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    ax = new_axes(figure.add_subplot())
    draw, x_label, y_label, title = FIGURES[part]
    draw(ax, rows, theory)
    ax.set_xlabel(x_label, fontsize=TEXT + 1)
    ax.set_ylabel(y_label, fontsize=TEXT + 1)
    ax.set_title(title, fontsize=TEXT + 1, loc="left")
    ax.legend(frameon=False, fontsize=TEXT)
    return figure


def _groups(rows: Rows, name: str) -> list[tuple[Any, list[dict[str, Any]]]]:
    """The values of a column in order, each with its rows."""
    return [(value, [row for row in rows if row[name] == value]) for value in sorted({row[name] for row in rows})]


def _values(rows: Rows, name: str) -> Any:
    return np.array([row[name] for row in rows], dtype=float)


def _points(ax: Axes, rows: Rows, x: str, y: str, at: int, fmt: str, **style: Any) -> None:
    """Symbols with error bars in colour number `at`."""
    ax.errorbar(_values(rows, x), _values(rows, y), _values(rows, "error_bar"), fmt=fmt, color=COLOURS[at], **style)


def draw_fig1(ax: Axes, rows: Rows, _: Rows) -> None:
    """Epsilon over temperature: symbols of the annealing, curves of the theory, broken lines at the AT temperature."""
    by_columns = _groups([row for row in rows if row["temperature"] < 1e3], "N")
    last = _groups(by_columns[-1][1], "rho")
    small = {"markersize": 3.5, "capsize": 1.5, "linewidth": 0.7, "markerfacecolor": "none"}
    for at, (N, same) in enumerate(by_columns):
        for rho, curve in _groups(same, "rho"):
            label = f"annealing, N = {N}" if rho == last[0][0] or len(last) == 1 else None
            _points(ax, curve[::3], "temperature", "epsilon", at, MARKERS[at], **small, label=label)
    labels: list[str | None] = ["theory", "theory, formal value", "AT temperature"]
    for rho, curve in last:
        T, theory = _values(curve, "temperature"), _values(curve, "theory")
        warm = int(np.sum([row["above_at"] for row in curve]))
        cold = slice(max(warm - 1, 0), None)
        ax.plot(T[:warm], theory[:warm], color="black", linewidth=1, label=labels[0])
        ax.plot(T[cold], theory[cold], color="black", linewidth=1, linestyle=":", label=labels[1])
        border: Style = {"color": QUIET, "linewidth": 0.8, "linestyle": "--", "label": labels[2]}
        ax.plot([curve[0]["at_temperature"]] * 2, [0, 1], transform=ax.get_xaxis_transform(), **border)
        beside: Style = {"textcoords": "offset points", "xytext": (4, 0), "fontsize": TEXT, "va": "center"}
        ax.annotate(rf"$\rho = {rho:g}$", (T[0], theory[0]), **beside)
        labels = [None] * 3
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_ylim(bottom=1e-3)


def _over_size(ax: Axes, rows: Rows, error: str, theory: Rows, curves: dict[str, str]) -> None:
    """An error over the size, and two curves of the theory: at T = 0 and at the AT point.

    The first is not joined across the size where a zero-energy phase begins.
    """
    for at, (N, same) in enumerate(_groups(rows, "N")):
        style = {"markersize": 4, "capsize": 2, "linewidth": 0.8, "markerfacecolor": "none"}
        _points(ax, same, "rho", error, at, MARKERS[at], **style, label=f"annealing, N = {N}")
    zero, border = curves
    for number, (_, phase) in enumerate(_groups(theory, "zero_energy")):
        mark: Style = {"marker": "" if len(phase) > 1 else ".", "label": None if number else curves[zero]}
        ax.plot(_values(phase, "rho"), _values(phase, zero), color="black", linestyle="-", linewidth=1.2, **mark)
    dashed: Style = {"linestyle": "--", "linewidth": 1.2, "marker": "" if len(theory) > 1 else "."}
    ax.plot(_values(theory, "rho"), _values(theory, border), color=COLOURS[1], **dashed, label=curves[border])


def draw_fig2(ax: Axes, rows: Rows, theory: Rows) -> None:
    """Epsilon reached over the size."""
    curves = {"theory_inf": r"theory, $T = 0$ (lower bound)", "theory_at": "theory, AT point"}
    _over_size(ax, rows, "epsilon", theory, curves)


def draw_fig3(ax: Axes, rows: Rows, theory: Rows) -> None:
    """LOO error over the size."""
    curves = {"theory_g_inf": r"theory $\epsilon_g$, $T = 0$", "theory_g_at": r"theory $\epsilon_g$, AT point"}
    _over_size(ax, rows, "loo_error", theory, curves)
    ax.set_ylim(0, 1.15 * max(row["loo_error"] + row["error_bar"] for row in rows))


def draw_section3(ax: Axes, rows: Rows, _: Rows) -> None:
    """The fixed-support error over the number of columns, and that of the true support."""
    for at, (alpha, same) in enumerate(_groups(rows, "rows_per_column")):
        line = {"markersize": 4, "capsize": 2, "linewidth": 1, "label": f"annealed, M/N = {alpha:g}"}
        _points(ax, same, "k", "fixed_support_loo_error", at, MARKERS[at] + "-", **line)
        truth = {**same[0], "error_bar": same[0]["at_true_support_bar"]}
        star = {"markersize": 9, "capsize": 2, "label": "true support" if at == 0 else None}
        _points(ax, [truth], "true_columns", "at_true_support", at, "*", **star)
    ax.set_yscale("log")


def draw_table1(ax: Axes, rows: Rows, _: Rows) -> None:
    """LOO errors of all seeds over the size, by the number of chains."""
    groups = _groups(rows, "chains")
    for at, (chains, same) in enumerate(groups):
        shift = 0.12 * (at - 0.5 * (len(groups) - 1))
        style: Style = {"markersize": 4, "color": COLOURS[at], "markerfacecolor": "none", "linestyle": "none"}
        label = f"{chains} chain{'s' * (chains != 1)}, one symbol per seed"
        ax.plot(_values(same, "k") + shift, _values(same, "loo_error"), MARKERS[at], **style, label=label)
    ax.set_ylim(bottom=0)
    ax.set_xticks(sorted({row["k"] for row in rows}))


_SIZE = r"size $\rho = K / N$"
FIGURES: dict[str, tuple[Callable[[Axes, Rows, Rows], None], str, str, str]] = {
    "fig1": (draw_fig1, r"temperature $T = 1/\beta$", r"$\epsilon$", "Cooling, and the theory (figure 1)"),
    "fig2": (draw_fig2, _SIZE, r"$\epsilon$", "Energies reached (figure 2)"),
    "fig3": (draw_fig3, _SIZE, "LOO error", "Leave-one-out error (figure 3)"),
    "section3": (draw_section3, "columns K", r"$E_{loo} / M$", "Fixed-support leave-one-out error (section III)"),
    "table1": (draw_table1, "columns K", "LOO error", "Supernova table (table 1)"),
}
