"""The figures of the page, drawn from the numbers of `pairflip.present.numbers`."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from pairflip.present.numbers import CountMap, ErrorBars, Mark, Paths
from pairflip.present.svg import Chart, Scale, span
from pairflip.text import number, plural, plus_minus

NAMED = 7  # columns with a colour of their own in the paths
_MARK = 4.5
_CROSS = [(0, -0.4), (0.6, -1), (1, -0.6), (0.4, 0), (1, 0.6), (0.6, 1), (0, 0.4), (-0.6, 1), (-1, 0.6), (-0.4, 0)]
_CROSS += [(-1, -0.6), (-0.6, -1)]


def size_chart(bars: ErrorBars, wide: bool, of: type[Chart] = Chart) -> Markup:
    """cv_error against size, with error bars, the error without columns, and the sizes to point at.

    `of` is the kind of chart: one that carries its own colours where there is no style sheet.
    """
    ends = (
        f"{bars.sizes[0]} to {bars.sizes[-1]} columns" if bars.sizes.size > 1 else plural(int(bars.sizes[0]), "column")
    )
    label = f"Line chart of cv_error against size, {ends}. " + "".join(
        f"{mark.text.capitalize()}: {plural(mark.size, 'column')}. " for mark in bars.marks
    )
    known = np.isfinite(bars.without)
    if known:
        label += f"The error with the {bars.without_text} is {number(bars.without, 3)}. "
    chart = _sized(wide, 360, 300, label + "The table below the figure has the numbers.", of=of)
    x = chart.x_scale(*span(bars.sizes.tolist(), 0.04))
    low, high = (bars.axis[0] / 1.15, bars.axis[1] * 1.15) if bars.log else span(bars.axis)
    y = chart.y_scale(low, high, bars.log)

    def up(value: float) -> float:
        return y(max(low, value))  # a logarithmic axis ends above some training errors and whiskers

    chart.y_axis(y, y.ticks(6), "cv_error (logarithmic)" if bars.log else "cv_error")
    sizes = x.whole_ticks(bars.sizes.tolist(), 12 if wide else 8)
    chart.x_axis(x, sizes, "size (number of columns)", [str(k) for k in sizes])
    _size_marks(chart, x, bars.marks)
    chart.add("line", class_="limit", x1=chart.left, x2=chart.right, y1=up(bars.limit), y2=up(bars.limit))
    shown = np.flatnonzero(np.isfinite(bars.training) & (bars.training >= low))
    chart.add("polyline", class_="training", points=_points(x, y, bars.sizes[shown], bars.training[shown]))
    if known:
        at = up(bars.without)
        tip = f"{bars.without_text}: cv_error {number(bars.without, 3)}, RMSE {number((2 * bars.without) ** 0.5, 3)}"
        chart.add("line", class_="without", x1=chart.left, x2=chart.right, y1=at, y2=at, data_tip=tip)
        # Above the line, where most errors are not; below it only when the line is the lowest thing in the figure.
        above = bool(np.nanmin(np.append(bars.error, bars.without)) < bars.without)
        chart.add(
            "text",
            bars.without_text,
            class_="tick over",
            x=chart.right,
            y=at + (-5 if above else 15),
            text_anchor="end",
        )
    floored = np.maximum(bars.error, low)
    chart.add("polyline", class_="line c0", points=_points(x, y, bars.sizes, floored))
    for k, error, least, most, training in zip(
        bars.sizes.tolist(), bars.error, bars.low, bars.high, bars.training, strict=True
    ):
        if not np.isfinite(error):
            continue
        at = x(k)
        cap = f"M{at - 4:.2f} {up(least):.2f}h8" if least >= low else ""
        chart.add("path", class_="whisker c0", d=f"M{at:.2f} {up(least):.2f}V{up(most):.2f}{cap}")
        chart.add("path", class_="whisker c0", d=f"M{at - 4:.2f} {up(most):.2f}h8")
        tip = (
            f"{plural(k, 'column')}: cv_error {plus_minus(error, most - error)}, RMSE {number((2 * error) ** 0.5, 3)}, "
            f"training error {number(training, 3)}"
        )
        chart.add("circle", class_="dot c0", cx=at, cy=up(error), r=4.5, data_tip=tip)
    return chart.svg()


def _size_marks(chart: Chart, x: Scale, marks: list[Mark]) -> None:
    """Thin upright lines with a text in the two rows kept free above the plot.

    Texts stand right of their lines, or left of them where there is no room; the line of the upper one then never
    crosses the lower text.
    """
    texts = [f"{mark.text}: {mark.size}" for mark in marks]
    room = all(x(mark.size) + 7.6 * len(text) < chart.width for mark, text in zip(marks, texts, strict=True))
    for i, (mark, text) in enumerate(zip(marks, texts, strict=True)):
        upper = len(marks) > 1 and i == (0 if room else 1)
        at, y = x(mark.size), chart.top - (25 if upper else 10)
        look = "best" if mark.recommended else "one-se"
        chart.add("line", class_=f"mark {look}", x1=at, x2=at, y1=y + 4, y2=chart.bottom)
        to_right = room or at < 7.6 * len(text)
        where = {"x": at - 3, "text_anchor": "start"} if to_right else {"x": at + 3, "text_anchor": "end"}
        chart.add("text", text, class_=f"tick {look}", y=y, **where)


def counts_chart(counts: CountMap, marks: list[Mark], wide: bool) -> Markup:
    """Heat map: one row a column, one place a size, the darker the more folds selected it."""
    row = 19.0
    left = 236.0 if wide else 132.0
    label = (
        f"Heat map of how many of {plural(counts.n_folds, 'fold')} selected each column, by size: {counts.cut}. "
        "The table below the figure has the numbers."
    )
    height = 44.0 + row * len(counts.labels) + 44
    chart = Chart(*((820.0 if wide else 350.0), height), (44.0, 12.0, 44.0, left), label, _variant(wide))
    n = counts.sizes.size
    x = chart.x_scale(-0.5, n - 0.5)
    cell = (chart.right - chart.left) / n
    gap = 1.0 if cell > 5 else 0.0
    for i, text in enumerate(counts.labels):
        y = chart.top + row * i
        shown = text if wide else (text if len(text) <= 17 else f"{text[:10]}…{text[-6:]}")
        chart.add("text", shown, class_="tick", x=left - 7, y=y + 13.5, text_anchor="end", data_tip=text)
        chart.add("rect", class_="empty", x=chart.left, y=y, width=chart.right - chart.left, height=row - 1)
        for s in range(n):
            times = int(counts.counts[s, i])
            if not times and not counts.final[s, i]:
                continue
            here = ", in the final fit" if counts.final[s, i] else ""
            tip = (
                f"{text}, {plural(int(counts.sizes[s]), 'column')}: {times:,} of {plural(counts.n_folds, 'fold')}{here}"
            )
            chart.add(
                "rect",
                class_="cell",
                x=chart.left + s * cell,
                y=y,
                width=max(0.5, cell - gap),
                height=row - 1,
                fill_opacity=round(0.04 + 0.96 * float(counts.fraction[s, i]), 2),
                data_tip=tip,
            )
            if counts.final[s, i]:
                chart.add("circle", class_="final", cx=x(s), cy=y + (row - 1) / 2, r=min(3.2, max(1.0, cell / 5)))
    places = {int(k): s for s, k in enumerate(counts.sizes)}
    ticks = x.whole_ticks(list(places), int(max(4, (chart.right - chart.left) // 28)))
    chart.x_axis(x, [places[k] for k in ticks], "size (number of columns)", [str(k) for k in ticks])
    for i, mark in enumerate(marks):
        at, y = x(places[mark.size]), 20.0 if i + 1 < len(marks) else 34.0
        look = "best" if mark.recommended else "one-se"
        chart.add("path", class_=f"flag {look}", d=f"M{at - 4:.2f} {y + 1}h8l-4 6z")
        near_end = at + 7 + 7.4 * len(mark.text) > chart.width
        side = {"x": at - 7 if near_end else at + 7, "text_anchor": "end" if near_end else "start"}
        chart.add("text", mark.text, class_=f"tick {look}", y=y + 7, **side)
    return chart.svg()


def paths_chart(paths: Paths, wide: bool) -> Markup:
    """Coefficients against size; the first ones have colours and marks, the others are grey."""
    what = "Coefficients, each divided by its largest value," if paths.relative else "Coefficients"
    label = (
        f"Line chart: {what} of the final fits against size, {paths.cut}. The table below the figure has the numbers."
    )
    chart = _sized(wide, 360, 300, label, top=30)
    x = chart.x_scale(*span(paths.sizes.tolist(), 0.04))
    y = chart.y_scale(*span([*paths.values.ravel().tolist(), 0.0]))
    chart.y_axis(y, y.ticks(6), "coefficient / its largest" if paths.relative else "coefficient")
    ticks = x.whole_ticks(paths.sizes.tolist(), 12 if wide else 8)
    chart.x_axis(x, ticks, "size (number of columns)", [str(k) for k in ticks])
    chart.add("line", class_="zero", x1=chart.left, x2=chart.right, y1=y(0), y2=y(0))
    for i in reversed(range(len(paths.labels))):
        look = f"c{i}" if i < NAMED else "other"
        values = paths.values[:, i]
        for piece in _runs(np.isfinite(values)):
            if piece.size > 1:
                points = _points(x, y, paths.sizes[piece], values[piece])
                chart.add("polyline", class_=f"line {look}", points=points)
        for s in np.flatnonzero(np.isfinite(values)):
            k = int(paths.sizes[s])
            tip = f"{paths.labels[i]}, {plural(k, 'column')}: {number(paths.coefs[s, i])}"
            d = _shape(i if i < NAMED else 0, x(k), y(values[s]), _MARK if i < NAMED else 2.2)
            chart.add("path", class_=f"dot {look}", d=d, data_tip=tip)
    return chart.svg()


def legend_mark(i: int) -> Markup:
    """The mark of the i-th path for a legend."""
    chart = Chart(16.0, 16.0, (0.0, 0.0, 0.0, 0.0), "", "key")
    chart.add("path", class_=f"dot c{i}", d=_shape(i, 8, 8, 5))
    return Markup('<svg class="key" viewBox="0 0 16 16" aria-hidden="true">{}</svg>').format(
        Markup("").join(chart.elements)
    )


def _variant(wide: bool) -> str:
    return "wide" if wide else "narrow"


def _sized(
    wide: bool, height: float, narrow_height: float, label: str, top: float = 58, of: type[Chart] = Chart
) -> Chart:
    """A chart for a wide or for a narrow page."""
    if wide:
        return of(820.0, height, (top, 16.0, 44.0, 64.0), label, "wide")
    return of(350.0, narrow_height, (top, 10.0, 44.0, 56.0), label, "narrow")


def _points(x: Scale, y: Scale, a: np.ndarray, b: np.ndarray) -> str:
    return " ".join(f"{x(float(p)):.1f},{y(float(q)):.1f}" for p, q in zip(a, b, strict=True) if np.isfinite(q))


def _runs(mask: np.ndarray) -> list[np.ndarray]:
    """Places of each unbroken run of True."""
    at = np.flatnonzero(mask)
    return [piece for piece in np.split(at, np.flatnonzero(np.diff(at) > 1) + 1) if piece.size]


def _shape(i: int, x: float, y: float, r: float) -> str:
    """The i-th mark: circle, square, triangle, diamond, triangle down, plus, cross."""
    if i == 0:
        return f"M{x - r:.1f} {y:.1f}a{r} {r} 0 1 0 {2 * r} 0a{r} {r} 0 1 0 {-2 * r} 0z"
    t, w = r, r / 2.5
    corners: list[list[tuple[float, float]]] = [
        [(-t, -t), (t, -t), (t, t), (-t, t)],
        [(0, -t * 1.2), (t * 1.15, t * 0.9), (-t * 1.15, t * 0.9)],
        [(0, -t * 1.3), (t * 1.3, 0), (0, t * 1.3), (-t * 1.3, 0)],
        [(0, t * 1.2), (t * 1.15, -t * 0.9), (-t * 1.15, -t * 0.9)],
        [(-w, -t), (w, -t), (w, -w), (t, -w), (t, w), (w, w), (w, t), (-w, t), (-w, w), (-t, w), (-t, -w), (-w, -w)],
        [(t * a, t * b) for a, b in _CROSS],
    ]
    return "M" + "L".join(f"{x + a:.1f} {y + b:.1f}" for a, b in corners[(i - 1) % len(corners)]) + "z"
