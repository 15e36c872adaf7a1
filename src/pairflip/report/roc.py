"""How well classes are told apart: ROC curves, predicted probabilities by class, and the table of confusions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pairflip.least_squares import Floats
from pairflip.report.registry import FigureTable, PageFigure, Room
from pairflip.report.style import COLOURS, QUIET, grid, label_axes, legend_above, new_axes, set_title, tell
from pairflip.selection.criteria import HALF, auc, class_of, confusion, roc
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

    `lines`: false alarms and hits (T,), each, of the event; of more than two classes, of each against all others, and
    `areas` under them. `edges` (B + 1,), `shares` (c, B): fractions of the rows of each class by the predicted
    probability of the event; of more than two, of their own class. `table` (c, c): rows of each class by predicted
    class, by weight.
    """

    size: int
    labels: list[str]
    lines: list[tuple[Floats, Floats]]
    areas: list[float]
    wrong: float
    edges: Floats
    shares: Floats
    table: Floats

    @property
    def several(self) -> bool:
        """Whether there are more than two classes."""
        return len(self.labels) > 2


def apart(curve: SizeCurve, size: int | None = None) -> Apart:
    """The numbers of both panels and of the table (None: the size to show)."""
    assert curve.classes is not None
    size = size_to_show(curve) if size is None else int(size)
    at = curve.at(size)
    q, c = curve.n_outputs, len(curve.classes.labels)
    seen, told = class_of(curve.observed, q), class_of(curve.predictions[at], q)
    y, p, w = curve.observed.reshape(-1, q), curve.predictions[at].reshape(-1, q), curve.weights[::q]
    lines, areas = [], []
    for each, told_each in zip(y.T, p.T, strict=True):
        (false, true), area = roc(each, told_each, w), auc(each, told_each, w)
        if size == 0 and curve.always.size == 0:  # shares alone rank nothing
            false, true, area = np.array([0.0, 1.0]), np.array([0.0, 1.0]), 0.5
        keep = np.unique(np.linspace(0, false.size - 1, min(false.size, _POINTS)).astype(int))
        lines.append((false[keep], true[keep]))
        areas.append(area)
    edges = np.linspace(0.0, 1.0, _BINS + 1)
    own = p[:, 0] if q == 1 else np.sum(p * y, axis=1)
    counts = [np.histogram(own[seen == kind], edges, weights=w[seen == kind])[0] for kind in range(c)]
    return Apart(
        size=size,
        labels=[clean(label) for label in curve.classes.labels],
        lines=lines,
        areas=areas,
        wrong=float(curve.classes.misclassified[at]),
        edges=edges,
        shares=np.stack([each / max(each.sum(), 1e-300) for each in counts]),
        table=confusion(seen, told, w, c),
    )


def plot_roc(curve: SizeCurve, ax: Axes | None = None, size: int | None = None) -> Axes:
    """Draw the ROC curve of held-out predictions.

    Parameters
    ----------
    curve
        What `select_size` returned for classes.
    ax
        Where to draw; a new figure if absent.
    size
        Number of columns; None: the recommended one.
    """
    if curve.classes is None:
        raise ValueError("the target of this curve has no classes; expected one with loss='logistic' or 'multinomial'.")
    ax = new_axes(ax, width=4.2, height=4.0)
    found = apart(curve, size)
    draw_roc(found, ax)
    set_title(ax, _titles(found)[0])
    return ax


def draw_roc(found: Apart, ax: Axes) -> None:
    """True positive rate against false positive rate; on the diagonal, chance."""
    grid(ax)
    ax.axline((0.0, 0.0), slope=1, color=QUIET, linewidth=1)
    for at, (false, true) in enumerate(found.lines):
        what = found.labels[at] if found.several else "the event"
        colour = COLOURS[at % len(COLOURS)]
        (line,) = ax.plot(false, true, color=colour, linewidth=1.6, marker="o", markersize=2, label=shorten(what, 20))
        tell(
            line,
            "{1} of {0} found, {2} of the others called so, too",
            [what] * true.size,
            [percent(t) for t in true],
            [percent(f) for f in false],
        )
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.02)
    label_axes(ax, "false positive rate", "true positive rate")
    if found.several:
        legend_above(ax)


def draw_probabilities(found: Apart, ax: Axes) -> None:
    """Fractions of each class by predicted probability."""
    grid(ax)
    for kind, label in enumerate(found.labels):
        colour = COLOURS[kind % len(COLOURS)]
        ax.stairs(found.shares[kind], found.edges, color=colour, linewidth=1.6, label=shorten(label, 20))
    if not found.several:
        ax.axvline(HALF, color=QUIET, linewidth=1, linestyle="--")
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(0.0, max(0.1, 1.08 * float(found.shares.max())))
    what = "the own class" if found.several else shorten(found.labels[1], 20)
    label_axes(ax, f"probability of {what}", "fraction of the class")
    legend_above(ax)


def _titles(found: Apart) -> list[str]:
    area = "each class against all others" if found.several else f"AUC {found.areas[0]:.3f}"
    return [f"{plural(found.size, 'column')}, {area}", f"{plural(found.size, 'column')}, {percent(found.wrong)} wrong"]


def _labels(found: Apart) -> list[str]:
    areas = ", ".join(f"{area:.3f}" for area in found.areas)
    curves, wrong = (
        ("curves", "put into another class") if found.several else ("curve", "on the wrong side of one half")
    )
    return [
        f"ROC {curves} of held-out predictions with {plural(found.size, 'column')}: area {areas}.",
        f"Predicted probabilities of held-out rows by class: {percent(found.wrong)} {wrong}.",
    ]


def _caption(curve: SizeCurve, found: Apart) -> str:
    assert curve.classes is not None
    if found.several:
        areas = ", ".join(f"“{label}” {area:.3f}" for label, area in zip(found.labels, found.areas, strict=True))
        return (
            "Each row was predicted by columns and coefficients chosen without it. Left: of each class, the fraction "
            "that is found (true positive rate) against the fraction of all others that is called so, too (false "
            f"positive rate), as the threshold falls; the areas are: {areas}; on the diagonal they are 0.5. Right: "
            f"predicted probabilities of the class that a row has; {percent(found.wrong)} of the rows have another "
            f"most probable class, and {percent(curve.classes.majority)} if all are called the most frequent class."
        )
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
        f"(false positive rate), as the threshold falls; the area is {found.areas[0]:.3f}, on the diagonal it is 0.5. "
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
        [label, *(f"{number(weights * own, 4)} ({percent(share)})" for own, share in zip(line, part, strict=True))]
        for label, line, part in zip(found.labels, found.table, shares, strict=True)
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
