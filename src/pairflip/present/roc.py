"""How well two classes are told apart: the ROC curve, predicted probabilities by class, and the table of confusions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pairflip.least_squares import Floats
from pairflip.present.registry import FigureTable, PageFigure, Room
from pairflip.present.style import COLOURS, QUIET, grid, label_axes, legend_above, new_axes, set_title, tell
from pairflip.selection.class_errors import HALF, confusion, roc
from pairflip.selection.verdict import size_to_show
from pairflip.text import clean, number, percent, plural, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairflip.selection.curve import SizeCurve

_POINTS = 150  # of a curve; more cannot be seen
_BINS = 10


@dataclass(frozen=True)
class Apart:
    """Held-out predictions at a size: the ROC curve, and how the probabilities of each class are distributed.

    `false`, `true` (T,): false alarms and hits; `edges` (B + 1,), `shares` (2, B): fractions of the rows of each class
    by predicted probability; `table` (2, 2): rows of each class by predicted class, by weight.
    """

    size: int
    labels: list[str]
    false: Floats
    true: Floats
    auc: float
    wrong: float
    edges: Floats
    shares: Floats
    table: Floats


def apart(curve: SizeCurve, size: int | None = None) -> Apart:
    """The numbers of both panels and of the table (None: the size to show)."""
    assert curve.classes is not None
    size = size_to_show(curve) if size is None else int(size)
    at = curve.at(size)
    y, p, w = curve.observed, curve.predictions[at], curve.weights
    false, true = roc(y, p, w)
    if size == 0 and curve.always.size == 0:  # shares alone rank nothing
        false = true = np.array([0.0, 1.0])
    keep = np.unique(np.linspace(0, false.size - 1, min(false.size, _POINTS)).astype(int))
    edges = np.linspace(0.0, 1.0, _BINS + 1)
    counts = [np.histogram(p[y == kind], edges, weights=w[y == kind])[0] for kind in (0.0, 1.0)]
    return Apart(
        size=size,
        labels=[clean(label) for label in curve.classes.labels],
        false=false[keep],
        true=true[keep],
        auc=float(curve.classes.auc[at]),
        wrong=float(curve.classes.misclassified[at]),
        edges=edges,
        shares=np.stack([each / max(each.sum(), 1e-300) for each in counts]),
        table=confusion(y, p, w),
    )


def plot_roc(curve: SizeCurve, ax: Axes | None = None, size: int | None = None) -> Axes:
    """Draw the ROC curve of held-out predictions.

    Parameters
    ----------
    curve
        What `select_size` returned for two classes.
    ax
        Where to draw; a new figure if absent.
    size
        Number of columns; None: the recommended one.
    """
    if curve.classes is None:
        raise ValueError("the target of this curve has no classes; expected a result with loss='logistic'.")
    ax = new_axes(ax, width=4.2, height=4.0)
    found = apart(curve, size)
    draw_roc(found, ax)
    set_title(ax, _titles(found)[0])
    return ax


def draw_roc(found: Apart, ax: Axes) -> None:
    """True positive rate against false positive rate; on the diagonal, chance."""
    grid(ax)
    ax.axline((0.0, 0.0), slope=1, color=QUIET, linewidth=1)
    (line,) = ax.plot(found.false, found.true, color=COLOURS[0], linewidth=1.6, marker="o", markersize=2)
    tell(
        line,
        "{0} of the event found, {1} of the others called so, too",
        [percent(t) for t in found.true],
        [percent(f) for f in found.false],
    )
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.02)
    label_axes(ax, "false positive rate", "true positive rate")


def draw_probabilities(found: Apart, ax: Axes) -> None:
    """Fractions of each class by predicted probability."""
    grid(ax)
    for kind in (0, 1):
        label = shorten(found.labels[kind], 20)
        ax.stairs(found.shares[kind], found.edges, color=COLOURS[kind], linewidth=1.6, label=label)
    ax.axvline(HALF, color=QUIET, linewidth=1, linestyle="--")
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(0.0, max(0.1, 1.08 * float(found.shares.max())))
    label_axes(ax, f"probability of {shorten(found.labels[1], 20)}", "fraction of the class")
    legend_above(ax)


def _titles(found: Apart) -> list[str]:
    what = f"{plural(found.size, 'column')}, AUC {found.auc:.3f}"
    return [what, f"{plural(found.size, 'column')}, {percent(found.wrong)} wrong"]


def _labels(found: Apart) -> list[str]:
    return [
        f"ROC curve of held-out predictions with {plural(found.size, 'column')}: area {found.auc:.3f}.",
        f"Predicted probabilities of held-out rows by class: {percent(found.wrong)} on the wrong side of one half.",
    ]


def _caption(curve: SizeCurve, found: Apart) -> str:
    assert curve.classes is not None
    event, on_new_rows = found.labels[1], ""
    if curve.chosen is not None and curve.chosen.auc is not None and curve.chosen.size == found.size:
        area, low, high = (f"{value:.2f}" for value in curve.chosen.auc)
        on_new_rows = (
            f"On new rows, allowing for the number of columns having been chosen, it is about {area} ({low} to {high}, "
            f"a {percent(curve.chosen.level)} interval). "
        )
    return (
        "Each row was predicted by columns and coefficients chosen without it. Left: the fraction of "
        f"“{event}” that is found (true positive rate) against the fraction of the others that is called so, too "
        f"(false positive rate), as the threshold falls; the area is {found.auc:.3f}, on the diagonal it is 0.5. "
        f"{on_new_rows}"
        f"Right: predicted probabilities of “{event}” by class; with the threshold at one half, "
        f"{percent(found.wrong)} of the rows are wrong, and "
        f"{percent(curve.classes.majority)} if all are called the more frequent class."
    )


def _table(curve: SizeCurve, found: Apart, room: Room) -> FigureTable:
    total = found.table.sum(axis=1, keepdims=True)
    shares = found.table / np.where(total > 0, total, 1.0)
    weights = curve.held_out_rows.size / float(curve.weights.sum())  # in rows
    rows = [
        [
            found.labels[kind],
            *(f"{number(weights * found.table[kind, told], 4)} ({percent(shares[kind, told])})" for told in (0, 1)),
        ]
        for kind in (0, 1)
    ]
    heads = ["Observed", *(f"Called {label}" for label in found.labels)]
    return FigureTable("Table: who is called what", heads, rows, "Held-out predictions by observed and predicted class")


ROC = PageFigure(
    "classes",
    "Telling the classes apart",
    lambda curve, size, room: apart(curve, size),
    (draw_roc, draw_probabilities),
    labels=_labels,
    titles=_titles,
    caption=_caption,
    table=_table,
    shape=lambda found, wide: (400.0, 330.0),
    follows=True,
    applies=lambda curve: curve.classes is not None,
)
