"""The figures: they draw points and compute nothing."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pairflip.report.style import COLOURS, MARKERS, QUIET, TEXT, new_axes

Rows = Sequence[dict[str, Any]]

_KINDS: dict[str, dict[str, Any]] = {
    "svg": {"metadata": {"Date": None}},
    "png": {"dpi": 150, "metadata": {"Software": None}},
}
_SAME_BYTES: dict[Any, Any] = {"svg.hashsalt": "pairflip", "svg.fonttype": "none"}


def image(part: str, kind: str, rows: Rows, theory: Rows) -> bytes:
    """The figure of a part as "svg" or "png"; the same points give the same bytes."""
    figure = _BESIDE_THEORY[part](rows, theory) if part in _BESIDE_THEORY else _ALONE[part](rows)
    buffer = io.BytesIO()
    with matplotlib.rc_context(_SAME_BYTES):
        figure.savefig(buffer, format=kind, **_KINDS[kind])
    return buffer.getvalue()


def _axes(width: float = 6.4, height: float = 4.4) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, new_axes(figure.add_subplot())


def _values(rows: Rows, name: str) -> Any:
    return np.array([row[name] for row in rows], dtype=float)


def _labels(ax: Axes, x: str, y: str, title: str) -> None:
    ax.set_xlabel(x, fontsize=TEXT + 1)
    ax.set_ylabel(y, fontsize=TEXT + 1)
    ax.set_title(title, fontsize=TEXT + 1, loc="left")
    ax.legend(frameon=False, fontsize=TEXT)


def _symbols(ax: Axes, rows: Rows, x: str, y: str, every: int = 1) -> None:
    """Symbols with error bars, one marker for each N."""
    for at, N in enumerate(sorted({row["N"] for row in rows})):
        of = [row for row in rows if row["N"] == N][::every]
        ax.errorbar(_values(of, x), _values(of, y), _values(of, "error_bar"), fmt=MARKERS[at], markersize=4, capsize=2,
                    linewidth=0.8, color=COLOURS[at], markerfacecolor="none", label=f"annealing, N = {N}")  # fmt: skip


def draw_fig1(rows: Rows) -> Figure:
    """Epsilon over temperature: symbols of the annealing, curves of the theory, broken lines at the AT temperature."""
    figure, ax = _axes()
    largest = max(row["N"] for row in rows)
    sizes = sorted({row["rho"] for row in rows if row["N"] == largest})
    first = True
    for at, N in enumerate(sorted({row["N"] for row in rows})):
        for rho in sorted({row["rho"] for row in rows if row["N"] == N}):
            of = [row for row in rows if row["N"] == N and row["rho"] == rho and row["temperature"] < 1e3][::3]
            ax.errorbar(_values(of, "temperature"), _values(of, "epsilon"), _values(of, "error_bar"), fmt=MARKERS[at],
                        markersize=3.5, capsize=1.5, linewidth=0.7, color=COLOURS[at], markerfacecolor="none",
                        label=f"annealing, N = {N}" if rho == min(sizes) or len(sizes) == 1 else None)  # fmt: skip
    for rho in sizes:
        of = [row for row in rows if row["N"] == largest and row["rho"] == rho and row["temperature"] < 1e3]
        T, theory = _values(of, "temperature"), _values(of, "theory")
        warm = np.array([row["above_at"] for row in of])
        ax.plot(T[warm], theory[warm], color="black", linewidth=1, label="theory" if first else None)
        cold = np.flatnonzero(~warm)
        cold = cold if not warm.any() else np.append(np.flatnonzero(warm)[-1], cold)
        ax.plot(T[cold], theory[cold], color="black", linewidth=1, linestyle=":",
                label="theory, formal value" if first else None)  # fmt: skip
        at_T = of[0]["at_temperature"]
        ax.plot([at_T, at_T], [0, 1], transform=ax.get_xaxis_transform(), color=QUIET, linewidth=0.8, linestyle="--",
                label="AT temperature" if first else None)  # fmt: skip
        ax.annotate(rf"$\rho = {rho:g}$", (T[0], theory[0]), textcoords="offset points", xytext=(4, 0), fontsize=TEXT,
                    va="center")  # fmt: skip
        first = False
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_ylim(bottom=1e-3)
    _labels(ax, r"temperature $T = 1/\beta$", r"$\epsilon$", "Cooling, and the theory (figure 1)")
    return figure


def _theory(ax: Axes, rows: Rows, name: str, label: str, colour: str, style: str, broken: bool) -> None:
    """A curve of the theory over the size, not joined across the size where a zero-energy phase begins."""
    groups = [rows]
    if broken:
        groups = [[r for r in rows if not r["zero_energy"]], [r for r in rows if r["zero_energy"]]]
    shown: str | None = label
    for group in groups:
        if group:
            marker = "" if len(group) > 1 else "."
            ax.plot(_values(group, "rho"), _values(group, name), color=colour, linestyle=style, marker=marker,
                    linewidth=1.2, label=shown)  # fmt: skip
            shown = None


def draw_fig2(rows: Rows, theory: Rows) -> Figure:
    """Epsilon reached over the size."""
    figure, ax = _axes()
    _symbols(ax, rows, "rho", "epsilon")
    _theory(ax, theory, "theory_inf", r"theory, $T = 0$ (lower bound)", "black", "-", True)
    _theory(ax, theory, "theory_at", "theory, AT point", COLOURS[1], "--", False)
    _labels(ax, r"size $\rho = K / N$", r"$\epsilon$", "Energies reached (figure 2)")
    return figure


def draw_fig3(rows: Rows, theory: Rows) -> Figure:
    """LOO error over the size."""
    figure, ax = _axes()
    _symbols(ax, rows, "rho", "loo_error")
    _theory(ax, theory, "theory_g_inf", r"theory $\epsilon_g$, $T = 0$", "black", "-", True)
    _theory(ax, theory, "theory_g_at", r"theory $\epsilon_g$, AT point", COLOURS[1], "--", False)
    top = max(row["loo_error"] + row["error_bar"] for row in rows)
    ax.set_ylim(0, 1.15 * top)
    _labels(ax, r"size $\rho = K / N$", "LOO error", "Leave-one-out error (figure 3)")
    return figure


def draw_section3(rows: Rows) -> Figure:
    """The fixed-support error over the number of columns, and that of the true support."""
    figure, ax = _axes()
    for at, alpha in enumerate(sorted({row["rows_per_column"] for row in rows})):
        of = [row for row in rows if row["rows_per_column"] == alpha]
        ax.errorbar(_values(of, "k"), _values(of, "fixed_support_loo_error"), _values(of, "error_bar"),
                    fmt=MARKERS[at] + "-", markersize=4, capsize=2, linewidth=1, color=COLOURS[at],
                    label=f"annealed, M/N = {alpha:g}")  # fmt: skip
        ax.errorbar([of[0]["true_columns"]], [of[0]["at_true_support"]], [of[0]["at_true_support_bar"]], fmt="*",
                    markersize=9, color=COLOURS[at], capsize=2,
                    label="true support" if at == 0 else None)  # fmt: skip
    ax.set_yscale("log")
    _labels(ax, "columns K", r"$E_{loo} / M$", "Fixed-support leave-one-out error (section III)")
    return figure


def draw_table1(rows: Rows) -> Figure:
    """LOO errors of all seeds over the size, by the number of chains."""
    figure, ax = _axes()
    chains = sorted({row["chains"] for row in rows})
    for at, number in enumerate(chains):
        of = [row for row in rows if row["chains"] == number]
        shift = 0.12 * (at - 0.5 * (len(chains) - 1))
        ax.plot(_values(of, "k") + shift, _values(of, "loo_error"), MARKERS[at], markersize=4, color=COLOURS[at],
                markerfacecolor="none", linestyle="none",
                label=f"{number} chain{'s' * (number != 1)}, one symbol per seed")  # fmt: skip
    ax.set_ylim(bottom=0)
    ax.set_xticks(sorted({row["k"] for row in rows}))
    _labels(ax, "columns K", "LOO error", "Supernova table (table 1)")
    return figure


_ALONE = {"fig1": draw_fig1, "section3": draw_section3, "table1": draw_table1}
_BESIDE_THEORY = {"fig2": draw_fig2, "fig3": draw_fig3}
