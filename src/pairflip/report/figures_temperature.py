"""Curves against temperature: how annealing cooled, and the replica theory (which also has curves against size)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from pairflip.report.registry import BELOW, FigureLimits, FigureTable, FigureWords, PageFigure, aligned_rows, evenly
from pairflip.report.style import COLOURS, QUIET, TEXT, label_axes, new_axes, plain_log
from pairflip.text import aligned, percent, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairflip.least_squares import Floats
    from pairflip.search.best_subset import Trace
    from pairflip.selection.curve import SizeCurve
    from pairflip.theory import TheoryCurve

_ROWS = 12  # of the table
_ROUNDING = 1e-6  # of the highest energy above the best: what ends this near to it has reached it
_NEAR = 1e-3  # where the axis of energies ends if all chains reached the best
_QUANTITIES = ("energy above the best (logarithmic)", "accepted fraction of the flips")
_CHAIN: dict[str, Any] = {"color": COLOURS[0], "linewidth": 1, "alpha": 0.45}
_LOOKS = {
    "epsilon": (r"training error $\epsilon$", COLOURS[0]),
    "epsilon_g": (r"generalisation error $\epsilon_g$", COLOURS[1]),
}
_AT = {"inf": "at temperature zero", "at": "on the AT line", "zero entropy": "where the entropy vanishes"}


def plot_anneal(
    source: SizeCurve | Trace,
    ax: Axes | None = None,
    size: int | None = None,
    quantity: Literal["energy", "acceptance"] = "energy",
) -> Axes:
    """Draw energy or acceptance against temperature, hot on the left, one line for each chain.

    Energies are drawn above the best one that is known, on a logarithmic axis: chains that ended at the best energy end
    on the floor of the figure, all others above it.

    Parameters
    ----------
    source
        A `SizeCurve` (the final fit of `size`) or the `Trace` of one annealing.
    ax
        Where to draw; a new figure if absent.
    size
        Number of columns; None is the recommended one.
    quantity
        ``"energy"`` or ``"acceptance"``.
    """
    if quantity not in ("energy", "acceptance"):
        raise ValueError(f"quantity is {quantity!r}; expected 'energy' or 'acceptance'.")
    return ANNEALING.plot(Cooling(source, size), ax, 5.0, 3.6, panel=int(quantity == "acceptance"))


class Cooling:
    """Energy and acceptance (chains, steps) against `temperature` (steps,), hottest first; empty if not annealed.

    Of the final fit of a size of a curve (None: that to show), or of a `Trace`; `above` is the energy above the lowest
    one that is known, but at least `floor`, where the best chains end.
    """

    def __init__(
        self, source: SizeCurve | Trace, size: int | None = None, chains: int = 64, steps: int | None = None
    ) -> None:
        from pairflip.selection.curve import SizeCurve

        if isinstance(source, SizeCurve):
            self.size = size = source.answer.shown if size is None else int(size)
            at, course, settings = source.at(size), source.annealing, source.settings
            lowest = float(source.energies[at])
            betas, energy, acceptance = course.betas[at], course.energy[at], course.acceptance[at]
            # The course of only some chains of a final fit is recorded; the settings know how many it had.
            of_size = dict(zip(settings.get("sizes", ()), settings.get("final_chains", ()), strict=False))
            total = int(of_size.get(size, 0))
        else:
            self.size, lowest, total = source.k, source.best_energy, 0
            betas, energy, acceptance = source.betas, source.energy, source.acceptance
        step = np.flatnonzero(np.isfinite(betas) & (betas > 0))
        # No axis has room for a start at (nearly) infinite temperature; the end where nothing moves any more is cut.
        while step.size > 1 and betas[step[1]] > 100 * betas[step[0]]:
            step = step[1:]
        moving = np.flatnonzero(np.nan_to_num(acceptance[:, step]).any(axis=0))
        if moving.size:
            step = step[: moving[-1] + 4]
        if steps is not None:
            step = step[evenly(step.size, steps)]
        annealed = np.flatnonzero(np.isfinite(energy[:, step]).all(axis=1)) if step.size else np.arange(0)
        shown = annealed
        if annealed.size > chains:
            ranked = annealed[np.argsort(energy[annealed, step[-1]], kind="stable")]
            shown = np.sort(ranked[evenly(annealed.size, chains)])
        if shown.size == 0:
            step = step[:0]
        total = max(total, annealed.size)
        part = f"{shown.size} of {plural(total, 'chain')}" if shown.size < total else plural(total, "chain")
        self.cut = part if shown.size else "no annealing: nothing to choose at this size"
        self.temperature = 1.0 / betas[step]
        self.energy, self.acceptance = energy[np.ix_(shown, step)], acceptance[np.ix_(shown, step)]
        self.floor = _floor(self.energy - lowest)
        self.above = np.maximum(self.energy - lowest, self.floor)
        self.unit = "column" if source.groups is None else "group"


def _floor(above: Floats) -> float:
    """Where a logarithmic axis of energies ends: below the nearest end that is not the best one."""
    top = float(np.max(above, initial=0.0))
    if not top > 0:
        return 1.0
    ends = above[:, -1]
    apart = ends[ends > _ROUNDING * top]
    return min(_NEAR * top, float(np.min(apart, initial=top)) / 2)


def draw_energy(curves: Cooling, ax: Axes) -> None:
    """Energy above the best against temperature, both logarithmic."""
    if not _cools(curves, ax, _QUANTITIES[0]):
        return
    top = max(float(curves.above.max()), 10 * curves.floor)
    plain_log(ax, "y", curves.floor, top)
    ax.set_ylim(curves.floor / 1.3, top * 1.3)
    ax.plot(curves.temperature, curves.above.T, **_CHAIN)
    ax.axhline(curves.floor, color=QUIET, linewidth=1, linestyle="--", zorder=1)
    _remark(ax, "best", (0.01, curves.floor), ("axes fraction", "data"), (0, 2))


def draw_acceptance(curves: Cooling, ax: Axes) -> None:
    """Accepted fraction of the flips against temperature."""
    if _cools(curves, ax, _QUANTITIES[1]):
        ax.plot(curves.temperature, curves.acceptance.T, **_CHAIN)
        ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))


def _cools(curves: Cooling, ax: Axes, quantity: str) -> bool:
    """Set up axes that cool to the right; False, and a remark in the figure, where nothing was annealed."""
    label_axes(ax, "temperature 1/β (cooling to the right)", quantity)
    if not curves.temperature.size:
        ax.set_xticks([])
        ax.set_yticks([])
        ax.text(0.5, 0.5, "not annealed at this size", transform=ax.transAxes, ha="center", fontsize=TEXT, color=QUIET)
        return False
    hot, cold = float(curves.temperature.max()), float(curves.temperature.min())
    if not hot > cold:
        hot, cold = 2 * hot, cold / 2
    plain_log(ax, "x", cold, hot)
    ax.set_xlim(hot, cold)
    return True


def _remark(ax: Axes, text: str, at: tuple[float, float], units: Any, offset: tuple[int, int]) -> None:
    """A quiet text beside a line."""
    ax.annotate(
        text, at, xycoords=units, xytext=offset, textcoords="offset points", va="bottom", fontsize=TEXT, color=QUIET
    )


def _cooling_words(curve: SizeCurve, curves: Cooling, limits: FigureLimits) -> FigureWords:
    labels = [
        f"Line chart of {quantity} against temperature while cooling, {plural(curves.size, curves.unit)}, "
        f"{curves.cut}. {BELOW}"
        for quantity in _QUANTITIES
    ]
    caption = (
        "Energy above the best one that is known, and accepted fraction of the flips, while the final fit was cooled; "
        f"one line for each chain ({curves.cut}). Axes fit the size shown. Good: acceptance starts high and falls "
        "smoothly to about zero, and many chains end on the floor of the figure (“best”). A chain that ends above it "
        "was caught among other columns; what counts is the best set that it met on its way, in any of its steps. If "
        "few chains agree, use more of them or a slower schedule."
    )
    rows: list[list[str]] = []
    if curves.temperature.size:
        at = evenly(curves.temperature.size, _ROWS)
        energy, accepted = curves.energy[:, at], np.median(curves.acceptance[:, at], axis=0)
        values = np.column_stack([energy.min(axis=0), np.median(energy, axis=0), energy.max(axis=0)])
        lines = zip(aligned(curves.temperature[at], 3), aligned_rows(values, 5), accepted, strict=True)
        rows = [[temperature, *line, percent(share)] for temperature, line, share in lines]
    heads = ["Temperature", "Energy: lowest chain", "Median", "Highest", "Acceptance (median)"]
    about = "Energy and acceptance by temperature, over the chains shown"
    return FigureWords(labels, caption, FigureTable("Table: cooling", heads, rows, about))


ANNEALING = PageFigure(
    "annealing",
    "Cooling of the final fit",
    lambda curve, size, limits: Cooling(curve, size, limits.chains, limits.steps),
    (draw_energy, draw_acceptance),
    words=_cooling_words,
    titles=lambda curves: [f"{plural(curves.size, curves.unit)}, {curves.cut}"] * 2,
    shape=lambda curves, wide: (400.0, 330.0),
    follows=True,
    place="search",
    applies=lambda curve: bool(np.isfinite(curve.annealing.energy).any()),
)


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
        _remark(ax, f"AT line\nT = {at:.4g}", (at, 0.03), ("data", "axes fraction"), (4, 0))
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
