"""Methods compared on the same folds: the sentence, cautions, tables of texts, both figures, and the page."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pairflip.comparison.record import Comparison, MethodResult, MethodSize
from pairflip.least_squares import Floats
from pairflip.report.figures_by_size import needs_log
from pairflip.report.page import About, Page, Section, drawing
from pairflip.report.registry import FigureTable, PageFigure
from pairflip.report.save import save_all
from pairflip.report.style import (
    COLOURS,
    INK,
    MARKERS,
    QUIET,
    figure_of,
    label_axes,
    legend_above,
    plain_log,
    size_axis,
    tell,
)
from pairflip.text import (
    NOTHING,
    aligned,
    aligned_plus_minus,
    clean,
    lower_heads,
    number,
    percent,
    plural,
    plus_minus,
    r2_text,
    table_lines,
    text_width,
    wrapped,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CLEAR = 2.0
"""A difference of more than so many standard errors is called clear."""
OURS_LOOK = {"normal": ("o", "-"), "quick": ("v", ":"), "thorough": ("X", "--")}
"""Marker and line of ours, all of them in one colour and filled."""
_LEAST_RANGE = 4.0  # of CPU seconds
_ROOM = 1.5  # above the error without columns, or above the lowest
_METHODS = (
    "Every method got the training rows of each fold, and nothing of the others. Supports were fitted by least squares "
    "on the training rows; methods without sizes predict by themselves."
)
_ERRORS = (
    "Error on held-out rows against the number of columns; bars are one standard error of {reference}. Straight "
    "lines across: methods without sizes, and the error without columns. Errors far above that are beyond the axis."
)
_SECONDS = (
    "How much higher the training energies on all rows are than the lowest that any method found, on average over "
    "sizes, against CPU seconds of the whole search on one thread. Further down is better, further left is faster."
)
_MATRICES = {
    "cv_error": ("error", "RMSE of held-out rows, of every method at every size."),
    "energy": ("training energy", "Training energy on all rows, divided by the lowest that any method found."),
    "overlap": (
        "shared columns",
        "How much of the support of {reference} of that size, on all rows, a method has, too.",
    ),
}


def rmse(cv_error: Any) -> Any:
    """Root mean square errors of values of cv_error, numbers or arrays."""
    return np.sqrt(2.0 * np.maximum(cv_error, 0.0))


def rmse_se(cv_error: Any, spread: Any, other: Any = None) -> Any:
    """A standard error of cv_error as one of the RMSE; with `other`, of the difference from that of another method."""
    # Half the difference of two squares is that of their roots times the mean of these.
    middle = (rmse(cv_error) + rmse(cv_error if other is None else other)) / 2.0
    return spread / np.maximum(middle, 1e-300)


def _error_text(method: MethodResult, other: MethodResult) -> str:
    error, spread = rmse(method.cv_error), rmse_se(method.cv_error, method.cv_error_se)
    return f"RMSE {plus_minus(error, spread, rmse(other.cv_error))}"


def size_words(method: MethodResult) -> str:
    """``5 columns``, ``no columns``, ``all columns``."""
    if method.chosen is not None:
        return plural(method.chosen, "column") if method.chosen else "no columns"
    used = len(method.rows[0].columns) if method.rows else 0
    return plural(used, "column") if used else "all columns"


def shown_row(method: MethodResult) -> MethodSize | None:
    """The row of the size that a method would choose, or its only one."""
    if not method.rows or method.note:
        return None
    return method.rows[0] if not method.sized else method.at(method.chosen or 0)


def _titles(methods: Iterable[MethodResult]) -> str:
    """Methods by name; some have a comma in theirs."""
    return "; ".join(clean(method.title) for method in methods)


def sentence(comparison: Comparison) -> str:
    """Who has the lowest error, where the reference stands, and which differences are clear."""
    finished = comparison.finished
    if not finished:
        return "No method has a result."
    best = min(finished, key=lambda method: method.cv_error)
    reference = comparison[comparison.reference] if comparison.reference else best
    parts = [
        f"Lowest error on held-out rows: {clean(best.title)} with {size_words(best)}, "
        f"{_error_text(best, reference)}; without columns it is {number(rmse(comparison.without))}."
    ]
    same = _titles(m for m in finished if m is not best and np.isclose(m.cv_error, best.cv_error, rtol=1e-9, atol=0.0))
    if same:
        parts.append(f"As low: {same}.")
    if comparison.reference:
        name = reference_title(comparison)
        if best.name != reference.name:
            parts.append(f"{name}: {size_words(reference)}, {_error_text(reference, best)}.")
        others = [m for m in finished if m.name not in ("quick", "normal", "thorough")]
        better = _titles(m for m in others if m.difference < -CLEAR * m.difference_se)
        worse = _titles(m for m in others if m.difference > CLEAR * m.difference_se)
        if others:
            how = "by more than two standard errors of the difference, row by row"
            than = f"lower than {name} ({how})"
            parts.append(f"Clearly {than}: {better}." if better else f"None is clearly {than}.")
            parts.append(f"Clearly higher: {worse}." if worse else "None is clearly higher.")
    missing = _titles(method for method in comparison.methods if method not in finished)
    if missing:
        parts.append(f"Without a result: {missing}.")
    if comparison.interrupted:
        parts.append("The comparison was interrupted.")
    return " ".join(parts)


def cautions(comparison: Comparison) -> list[str]:
    """What to keep in mind."""
    texts = [
        "A method with sizes is shown at the size with its lowest error. The lowest of several errors is a little too "
        "good, for every such method alike; methods without sizes chose their penalty or components inside the folds, "
        "so theirs is not."
    ]
    if comparison.reference:
        texts.append(
            "Two methods with different columns can predict equally well: shared columns say how much they resemble "
            "each other, not who is right."
        )
    return texts


def method_table(comparison: Comparison) -> FigureTable:
    """One line for each method, at the size it would choose."""
    methods = comparison.methods
    shown = [shown_row(method) for method in methods]
    error, spread = (np.array([getattr(m, of) for m in methods]) for of in ("cv_error", "cv_error_se"))
    ours = comparison[comparison.reference].cv_error if comparison.reference else np.nan
    apart = rmse_se(error, np.array([m.difference_se for m in methods]), ours)
    beside = aligned_plus_minus((rmse(error) - rmse(ours)).tolist(), apart.tolist())
    remarks = [clean(method.note) if method.note else "" for method in methods]
    for at, method in enumerate(methods):
        notes = [row.note for row in method.rows if row.note]
        if notes and not remarks[at]:
            remarks[at] = f"{plural(len(notes), 'size')} without a result: {clean(notes[0])}"
        remarks[at] = remarks[at] or "; ".join(row.detail for row in method.rows if row.detail)
    sizes = [size_words(m).partition(" column")[0] if m in comparison.finished else NOTHING for m in methods]
    differences = [
        NOTHING if method.name == comparison.reference else f"+{cell}" if method.difference > 0 else cell
        for method, cell in zip(methods, beside, strict=True)
    ]
    columns = {
        "Method": [clean(method.title) for method in methods],
        "Columns": sizes,
        "RMSE ± SE": aligned_plus_minus(rmse(error).tolist(), rmse_se(error, spread).tolist()),
        "R2": [r2_text(comparison.rmse_and_r2(method.cv_error)["r2"]) for method in methods],
        "Difference": differences,
        "Train": aligned((np.nan if row is None else float(rmse(row.energy_per_row)) for row in shown), 3),
        "Shared": [_shared(comparison, method, row) for method, row in zip(methods, shown, strict=True)],
        "CPU s": [number(method.seconds, 2) for method in methods],
        "Remarks": remarks,
    }
    return FigureTable.of(columns, explanation(comparison))


def _shared(comparison: Comparison, method: MethodResult, row: MethodSize | None) -> str:
    if row is None or not np.isfinite(row.overlap) or method.name == comparison.reference:
        return NOTHING
    ours = comparison[comparison.reference]
    same = ours.at(row.size if row.size is not None else ours.chosen or 0)
    count = len(same.columns) if same is not None else 0
    return f"{round(row.overlap * count)} of {count}"


def matrix(comparison: Comparison, what: str) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of a table with a line for each size and a column for each method that has sizes.

    `what` is ``"cv_error"`` (as RMSE), ``"energy"`` (over the lowest of all methods at that size) or ``"overlap"``.
    """
    methods = [method for method in comparison.finished if method.sized]
    rows = [[method.at(size) for method in methods] for size in comparison.sizes]
    values = np.array([[np.nan if row is None else float(getattr(row, what)) for row in line] for line in rows])
    if what == "energy":
        lowest = lowest_energies(comparison)[:, None]
        values = np.where(lowest > 0, values / np.where(lowest > 0, lowest, 1.0), np.nan)
    values = rmse(values) if what == "cv_error" else values
    text = percent if what == "overlap" else number
    lines = [[str(size), *map(text, line)] for size, line in zip(comparison.sizes, values.tolist(), strict=True)]
    return ["Size", *(clean(method.title) for method in methods)], lines


def lowest_energies(comparison: Comparison) -> Floats:
    """The lowest training energy (S,) that any method found on all rows at each size."""
    rows = [[method.at(size) for size in comparison.sizes] for method in comparison.finished if method.sized]
    values = [[np.inf if row is None or np.isnan(row.energy) else row.energy for row in line] for line in rows]
    return np.asarray(np.min(np.array(values).reshape(-1, len(comparison.sizes)), axis=0, initial=np.inf))


def reference_title(comparison: Comparison) -> str:
    """What the method that others are compared with is called; where none of ours was run, what it would be."""
    return clean(comparison[comparison.reference].title) if comparison.reference else "pairflip"


def explanation(comparison: Comparison) -> str:
    """What the columns of the table of methods mean."""
    reference = reference_title(comparison)
    return (
        "Columns: the size with the lowest error; methods without sizes: the columns they use. RMSE (root mean square "
        "error ± one standard error), R2: of held-out rows. Difference: how much higher the RMSE is than that of "
        f"{reference}, rows compared with themselves. Train: RMSE of the training rows of the folds. Shared: how many "
        f"of the columns of {reference}, on all rows, it chose, too. CPU s: the search in all folds and on all rows, "
        "all sizes, one thread."
    )


def summary(comparison: Comparison) -> str:
    """The sentence, then one line for each method."""
    width, table = text_width(), method_table(comparison)
    parts = [*wrapped(sentence(comparison), width), ""]
    parts += table_lines([lower_heads(table.heads), *table.rows], names=1, width=width)
    for text in (table.caption, *cautions(comparison)):
        parts += ["", *wrapped(text, width)]
    return "\n".join(parts)


# Figures --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MethodPoint:
    """Seconds of a method, and how much higher its energies are than the lowest found, in per cent, on average."""

    title: str
    name: str
    seconds: float
    excess: float


def energy_points(found: Comparison) -> list[MethodPoint]:
    """Numbers of the figure of energies: methods that have sizes."""
    lowest = lowest_energies(found)
    points = []
    for method in found.finished:
        if not method.sized:
            continue
        rows = [(method.at(size), low) for size, low in zip(found.sizes, lowest, strict=True)]
        over = [row.energy / low - 1.0 for row, low in rows if row is not None and np.isfinite(row.energy) and low > 0]
        if over:
            points.append(MethodPoint(clean(method.title), method.name, method.seconds, 100.0 * float(np.mean(over))))
    return points


def compares_energies(found: Comparison) -> bool:
    """Whether at least two methods have energies, so that a figure of them shows something."""
    return len(energy_points(found)) > 1


def looks(names: list[str]) -> dict[str, dict[str, Any]]:
    """Colour, marker and line of each method: ours in one colour, the others in turn."""
    styles = {name: {"color": COLOURS[0], "marker": m, "linestyle": line} for name, (m, line) in OURS_LOOK.items()}
    palette, lines = [*COLOURS[1:6], INK, QUIET], ("-", "--", ":")
    for at, name in enumerate(name for name in names if name not in OURS_LOOK):
        styles[name] = {"color": palette[at % 7], "marker": MARKERS[1 + at % 6], "linestyle": lines[at // 7 % 3]}
    return styles


def draw_compared_errors(comparison: Comparison, ax: Axes) -> None:
    """RMSE of every method against size; errors far above that without columns are beyond the axis."""
    methods, without = comparison.finished, float(rmse(comparison.without))
    rows = {method.name: [row for row in method.rows if np.isfinite(row.cv_error)] for method in methods}
    errors = [float(rmse(row.cv_error)) for of_method in rows.values() for row in of_method] or [without]
    low = min(errors)
    top = min(max(errors), _ROOM * max(without, low))
    if low > 0 and needs_log(np.array([low, top]) ** 2):
        plain_log(ax, "y", low, top)
        ax.set_ylim(low / 1.2, top * 1.2)
    else:
        ax.set_ylim(0.9 * low, 1.05 * top)
    styles = looks([method.name for method in methods])
    for method in methods:
        style, title = styles[method.name], clean(method.title)
        each, spread = (np.array([getattr(r, of) for r in rows[method.name]]) for of in ("cv_error", "cv_error_se"))
        error, spread = rmse(each), rmse_se(each, spread)
        if not method.sized:
            across = {"color": style["color"], "linestyle": "-."}
            ax.axhline(float(error[0]), linewidth=1.2, zorder=1, label=f"{title} (no sizes)", **across)
            continue
        sizes = [row.size or 0 for row in rows[method.name]]
        if method.name == "normal":
            ax.vlines(sizes, error - spread, error + spread, color=style["color"], linewidth=0.8)
        (line,) = ax.plot(sizes, error, markersize=4, linewidth=1.3, label=title, **style)
        texts = [plus_minus(e, s) for e, s in zip(error, spread, strict=True)]
        tell(line, "{0}, {1}: RMSE {2}", title, [plural(k, "column") for k in sizes], texts)
    if without <= ax.get_ylim()[1]:
        ax.axhline(without, color=INK, linewidth=1, zorder=1, label="no columns")
    size_axis(ax, "column", "RMSE")
    legend_above(ax)


def draw_energy_points(points: list[MethodPoint], ax: Axes) -> None:
    """The drawing of `energy_points`; 0.01 is added, so that those with the lowest energies have a place."""
    styles = looks([point.name for point in points])
    x = [max(point.seconds, 1e-3) for point in points]
    y = [point.excess + 0.01 for point in points]
    if points:
        low, high = min(x), max(x)
        middle = (low * high) ** 0.5
        # An order of magnitude at least, so that there is room for the numbers below.
        limits = min(low / 1.3, middle / 4), max(high * 1.3, middle * 4)
        if high < _LEAST_RANGE * low:  # so that ticks are not a few per cent apart
            low, high = middle / _LEAST_RANGE**0.5, middle * _LEAST_RANGE**0.5
        plain_log(ax, "x", low, high)
        plain_log(ax, "y", min(y), max(y))
    for point, seconds, excess in zip(points, x, y, strict=True):
        style = styles[point.name] | {"linestyle": "none", "markersize": 7}
        face = style["color"] if point.name in OURS_LOOK else "none"
        (mark,) = ax.plot([seconds], [excess], markerfacecolor=face, label=point.title, **style)
        texts = [number(point.seconds, 3)], [number(point.excess, 3)]
        tell(mark, "{0}: {1} s, {2} % above the lowest", point.title, *texts)
    if points:
        ax.set_xlim(*limits)
    label_axes(ax, "CPU seconds", "training energy above the lowest, % (+ 0.01)")
    legend_above(ax)


def _shape(numbers: object, wide: bool) -> tuple[float, float]:
    return (820.0, 470.0) if wide else (350.0, 620.0)


ERRORS = PageFigure("errors", "Error against size", lambda found, *_: found, (draw_compared_errors,), shape=_shape)
ENERGIES = PageFigure(
    "energy_seconds",
    "Energy against seconds",
    lambda found, *_: energy_points(found),
    (draw_energy_points,),
    shape=_shape,
)


def plot_compared_errors(found: Comparison, ax: Axes | None = None) -> Axes:
    """Draw the RMSE of every method against size."""
    return ERRORS.plot(found, ax, 7.0, 4.6)


def plot_energy_seconds(found: Comparison, ax: Axes | None = None) -> Axes:
    """Draw how far above the lowest the training energies of every method are, against CPU seconds."""
    return ENERGIES.plot(energy_points(found), ax, 7.0, 4.6)


FIGURES = {"errors": plot_compared_errors, "energy_seconds": plot_energy_seconds}
"""Figures in a folder, by the name of the file."""


# The page -------------------------------------------------------------------------------------------------------------


def comparison_page(comparison: Comparison, about: About) -> Page:
    """The page of methods compared on the same folds."""
    sizes = f"sizes {comparison.sizes[0]}" + (f" to {comparison.sizes[-1]}" if len(comparison.sizes) > 1 else "")
    reference = reference_title(comparison)
    methods = [(clean(method.title), clean(method.about)) for method in comparison.methods]
    facts = [
        ("Version", f"pairflip {comparison.version}"),
        ("Data", f"{comparison.n_rows:,} rows, {len(comparison.names):,} columns; hash {comparison.data_hash}"),
        ("Folds", f"{comparison.n_folds:,}: {comparison.folds}"),
        ("Seed", str(comparison.seed)),
    ]
    label = "{}, a line or mark for each method. The tables below have the numbers."
    errors = drawing(ERRORS, comparison, label.format(ERRORS.title), _ERRORS.format(reference=reference))
    energies = []
    if compares_energies(comparison):
        figure = drawing(ENERGIES, energy_points(comparison), label.format(ENERGIES.title), _SECONDS)
        energies.append(Section(ENERGIES.title, [figure]))
    by_size = {
        name: FigureTable(f"Table: {title} by size", *matrix(comparison, name), text.format(reference=reference))
        for name, (title, text) in _MATRICES.items()
    }
    done = {
        "about": FigureTable("", ["Method", "What it does"], methods, _METHODS, 2),
        "facts": FigureTable("", ["What", "Value"], about.facts(facts), "Data, version, folds", 2),
    }
    return Page(
        title="Methods compared on the same folds",
        version=comparison.version,
        lead=f"{comparison.n_rows:,} rows, {len(comparison.names):,} columns, {sizes}, {comparison.n_folds:,} folds, "
        f"{len(comparison.methods)} methods, one thread each.",
        answer=sentence(comparison),
        cautions=cautions(comparison),
        sections=[
            Section("The methods", [{"methods": method_table(comparison)}]),
            Section(ERRORS.title, [errors]),
            *energies,
            Section("By size", [by_size]),
            Section("What was done", [done], closed=True),
        ],
    )


def save_comparison_figures(comparison: Comparison, folder: str | os.PathLike[str]) -> list[Path]:
    """Write the figures as SVG and PNG into `folder` (made if missing); energies where several methods have them."""
    shown = [name for name in FIGURES if name != ENERGIES.name or compares_energies(comparison)]
    return save_all({name: figure_of(FIGURES[name](comparison)) for name in shown}, folder)
