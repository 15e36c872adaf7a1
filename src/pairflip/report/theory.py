"""Curves of the replica theory: errors over temperature, or over the size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pairflip.report.style import COLOURS, QUIET, TEXT, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairflip.theory import TheoryCurve

_LOOKS = {
    "epsilon": (r"training error $\epsilon$", COLOURS[0]),
    "epsilon_g": (r"generalisation error $\epsilon_g$", COLOURS[1]),
}
_AT = {"inf": "at temperature zero", "at": "on the AT line", "zero entropy": "where the entropy vanishes"}


def _runs(kind: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Indices of neighbours of the same kind, kind -1 left out."""
    cuts = np.flatnonzero(np.diff(kind)) + 1
    return [run for run in np.split(np.arange(kind.size), cuts) if kind[run[0]] >= 0]


def plot_theory(curve: TheoryCurve, ax: Axes | None = None) -> Axes:
    """Draw epsilon and epsilon_g of a curve from `pairflip.theory`.

    Solid where replica symmetry holds, dashed below the AT temperature (formal values), and not joined across the
    size at which a zero-energy phase begins. Over beta, the axis is the temperature and the AT point is marked.

    Parameters
    ----------
    curve
        From `theory.curve_over_beta` or `theory.curve_over_rho`.
    ax
        Where to draw; a new figure if absent.
    """
    over_beta = curve.over == "beta"
    x = curve.temperature if over_beta else curve.rho
    drawn = curve.exists & np.isfinite(x) & ((x > 0) if over_beta else True)
    if not drawn.any():
        raise ValueError("nothing of this curve can be drawn; expected a place with a solution and 0 < T < infinity.")
    ax = new_axes(ax, 6.4, 4.2)
    order = np.argsort(x, kind="stable")
    kind = np.where(drawn, (~curve.stable).astype(int) + 2 * curve.zero_energy, -1)[order]
    for name, (label, color) in _LOOKS.items():
        ax.plot([], [], color=color, label=label)
        _draw(ax, x[order], getattr(curve, name)[order], kind, over_beta, color)
    at = 1.0 / curve.at_beta[0] if over_beta else np.nan
    if np.isfinite(at) and x[drawn].min() < at < x[drawn].max():
        ax.axvline(at, color=QUIET, linewidth=1, linestyle=":")
        ax.annotate(
            f"AT line\nT = {at:.4g}",
            (at, 0.03),
            xycoords=("data", "axes fraction"),
            xytext=(4, 0),
            textcoords="offset points",
            va="bottom",
            fontsize=TEXT,
            color=QUIET,
        )
    for run in _runs(np.where(drawn & curve.zero_energy, 0, -1)[order]) if not over_beta else []:
        ax.axvspan(x[order][run[0]], x[order][run[-1]], color=QUIET, alpha=0.12, linewidth=0, label="zero-energy phase")
    if (kind > 0).any():
        ax.plot([], [], color=QUIET, linestyle="--", label="formal value (replica symmetry broken)")
    if over_beta:
        ax.set_xscale("log")
    values = np.concatenate([getattr(curve, name)[drawn] for name in _LOOKS])
    if values.min() > 0 and values.max() > 8 * values.min():
        ax.set_yscale("log")
    ax.set_xlabel(r"temperature $T = 1/\beta$" if over_beta else r"size $\rho = k / N$", fontsize=TEXT + 1)
    ax.set_ylabel("error per row", fontsize=TEXT + 1)
    m = curve.model
    fixed = rf"$\rho = {curve.at:.4g}$" if over_beta else _AT.get(str(curve.at), rf"at $\beta = {curve.at}$")
    ax.set_title(
        rf"{fixed};  $\alpha = {m.alpha:g}$, $\rho_0 = {m.rho0:g}$, $\sigma_x^2 = {m.var_x:g}$, "
        rf"$\sigma_\xi^2 = {m.var_noise:g}$",
        fontsize=TEXT + 1,
        loc="left",
    )
    ax.legend(edgecolor="none", framealpha=0.9, fontsize=TEXT)
    return ax


def _draw(ax: Axes, x: NDArray[Any], y: NDArray[Any], kind: NDArray[np.int64], joined: bool, color: str) -> None:
    """One curve, solid or dashed; `joined` closes the gap between the two, which over sizes would hide a jump."""
    for run in _runs(kind):
        # A dashed piece ends where the solid one begins, so that no gap opens at the AT line.
        if joined and kind[run[0]] > 0 and run[-1] + 1 < x.size and kind[run[-1] + 1] == 0:
            run = np.append(run, run[-1] + 1)
        style: dict[str, Any] = {"color": color, "linestyle": "--" if kind[run[0]] > 0 else "-"}
        if run.size == 1:
            style["marker"] = "o"
        ax.plot(x[run], y[run], **style)
