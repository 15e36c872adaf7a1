"""How well survival times are told apart: the fraction without the event, by thirds of the predicted risk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pairflip.least_squares import Floats
from pairflip.report.registry import PageFigure
from pairflip.report.style import COLOURS, grid, label_axes, legend_above, new_axes, set_title, tell
from pairflip.selection.verdict import size_to_show
from pairflip.text import number, percent, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairflip.selection.curve import SizeCurve

_POINTS = 150  # of a curve; more cannot be seen
_GROUPS = ("lowest risk", "middle", "highest risk")


@dataclass(frozen=True)
class RiskGroups:
    """Held-out rows at a size: for each third by risk, times (T,) and the fractions (T,) without the event."""

    size: int
    lines: list[tuple[Floats, Floats]]
    rows: list[int]
    concordance: float


def risk_groups(curve: SizeCurve, size: int | None = None) -> RiskGroups:
    """The numbers of the figure (None: the size to show); a row that was predicted several times has its mean risk."""
    assert curve.survival is not None
    size = size_to_show(curve) if size is None else int(size)
    at, row = curve.at(size), curve.held_out_rows
    times = np.bincount(row, minlength=curve.n_rows)
    risk = np.bincount(row, curve.survival.risks[at], curve.n_rows)[times > 0] / times[times > 0]
    first = np.unique(row, return_index=True)[1]
    time, event, weight = curve.survival.times[first], curve.observed[first], curve.weights[first]
    group = (
        np.searchsorted(np.quantile(risk, [1 / 3, 2 / 3]), risk, side="left") if np.ptp(risk) else np.ones(risk.size)
    )
    lines = [kaplan_meier(time[group == g], event[group == g], weight[group == g]) for g in range(len(_GROUPS))]
    counts = [int(np.count_nonzero(group == g)) for g in range(len(_GROUPS))]
    return RiskGroups(size, lines, counts, float(curve.survival.concordance[at]))


def kaplan_meier(time: Floats, event: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Times (T,), from 0, and Kaplan and Meier's estimate (T,) of the fraction without the event after each."""
    at = np.unique(time[event > 0])
    happened = np.array([weight[(time == t) & (event > 0)].sum() for t in at])
    at_risk = np.array([weight[time >= t].sum() for t in at])
    last = time.max(initial=0.0)
    left = np.cumprod(np.append(1.0, 1.0 - happened / np.maximum(at_risk, 1e-300)))
    return np.concatenate([[0.0], at, [last]]), np.append(left, left[-1])


def plot_survival(curve: SizeCurve, ax: Axes | None = None, size: int | None = None) -> Axes:
    """Draw the fraction of held-out rows without the event against time, by thirds of the predicted risk.

    Parameters
    ----------
    curve
        What `select_size` returned for survival times.
    ax
        Where to draw; a new figure if absent.
    size
        Number of columns; None: the recommended one.
    """
    if curve.survival is None:
        raise ValueError("the target of this curve is no survival time; expected a result with loss='cox'.")
    ax = new_axes(ax, width=5.0, height=4.0)
    found = risk_groups(curve, size)
    draw_survival(found, ax)
    set_title(ax, _titles(found)[0])
    return ax


def draw_survival(found: RiskGroups, ax: Axes) -> None:
    """A step for each event, a line for each third."""
    grid(ax)
    for at, (name, (time, left), rows) in enumerate(zip(_GROUPS, found.lines, found.rows, strict=True)):
        if not rows:
            continue
        keep = np.unique(np.linspace(0, time.size - 1, min(time.size, _POINTS)).astype(int))
        label = f"{name} ({plural(rows, 'row')})"
        (line,) = ax.plot(time[keep], left[keep], color=COLOURS[at], linewidth=1.6, drawstyle="steps-post", label=label)
        texts = [number(t, 3) for t in time[keep]], [percent(s) for s in left[keep]]
        tell(line, "{0}: {2} without the event at {1}", [name] * keep.size, *texts)
    ax.set_ylim(-0.02, 1.02)
    label_axes(ax, "time", "fraction without the event")
    legend_above(ax)


def _titles(found: RiskGroups) -> list[str]:
    return [f"{plural(found.size, 'column')}, concordance {found.concordance:.3f}"]


def _labels(found: RiskGroups) -> list[str]:
    what = f"with {plural(found.size, 'column')}: concordance {found.concordance:.3f}"
    return [f"Fraction of held-out rows without the event against time, by thirds of the predicted risk, {what}."]


def _caption(curve: SizeCurve, found: RiskGroups) -> str:
    return (
        "Each row was predicted by columns and coefficients chosen without it; rows are put into thirds by this risk. "
        "The lines are Kaplan and Meier's estimates from the observed times: the further apart, the better. The "
        f"concordance of held-out rows is {found.concordance:.3f}; 0.5 is chance."
    )


SURVIVAL = PageFigure(
    "survival",
    "Telling the times apart",
    lambda curve, size, room: risk_groups(curve, size),
    (draw_survival,),
    labels=_labels,
    titles=_titles,
    caption=_caption,
    shape=lambda found, wide: (520.0, 340.0) if wide else (350.0, 320.0),
    follows=True,
    applies=lambda curve: curve.survival is not None,
)
