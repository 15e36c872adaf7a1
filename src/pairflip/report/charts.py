"""The figures of the page, drawn from the numbers of `pairflip.figures.numbers`."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from pairflip.figures.numbers import Cooling, CountMap, ErrorBars, Paths, Scatter
from pairflip.labels import number, percent, plural, plus_minus
from pairflip.report.svg import Chart, Scale, span

NAMED = 7  # columns with a colour of their own in the paths
_MARK = 4.5
_CROSS = [(0, -0.4), (0.6, -1), (1, -0.6), (0.4, 0), (1, 0.6), (0.6, 1), (0, 0.4), (-0.6, 1), (-1, 0.6), (-0.4, 0)]
_CROSS += [(-1, -0.6), (-0.6, -1)]


def size_chart(bars: ErrorBars, wide: bool) -> Markup:
    """cv_error against size, with error bars and the best and one-standard-error size."""
    label = (
        f"Line chart of cv_error against size, {bars.sizes[0]} to {bars.sizes[-1]} columns. Lowest at "
        f"{plural(bars.best_size, 'column')}; smallest size within one standard error: {bars.one_se_size}."
    )
    chart = _sized(wide, 360, 300, label)
    x = chart.x_scale(*span(bars.sizes.tolist(), 0.04))
    y = chart.y_scale(*span([*bars.low, *bars.high, *bars.training, bars.limit]))
    chart.y_axis(y, y.ticks(6), "cv_error")
    sizes = x.whole_ticks(bars.sizes.tolist(), 12 if wide else 8)
    chart.x_axis(x, sizes, "size (number of columns)", [str(k) for k in sizes])
    _size_marks(chart, x, bars.best_size, bars.one_se_size)
    chart.add("line", class_="limit", x1=chart.left, x2=chart.right, y1=y(bars.limit), y2=y(bars.limit))
    chart.add("polyline", class_="training", points=_points(x, y, bars.sizes, bars.training))
    chart.add("polyline", class_="line c0", points=_points(x, y, bars.sizes, bars.error))
    for k, error, low, high, training in zip(
        bars.sizes.tolist(), bars.error, bars.low, bars.high, bars.training, strict=True
    ):
        if not np.isfinite(error):
            continue
        at = x(k)
        chart.add("path", class_="whisker c0", d=f"M{at:.2f} {y(low):.2f}V{y(high):.2f}M{at - 4:.2f} {y(low):.2f}h8")
        chart.add("path", class_="whisker c0", d=f"M{at - 4:.2f} {y(high):.2f}h8")
        tip = f"{plural(k, 'column')}: cv_error {plus_minus(error, high - error)}, training error {number(training, 3)}"
        chart.add("circle", class_="dot c0", cx=at, cy=y(error), r=4.5, data_tip=tip)
    return chart.svg()


def _size_marks(chart: Chart, x: Scale, best: int, one_se: int) -> None:
    """Thin upright lines with a text in the two rows kept free above the plot."""
    room = (
        x(best) + 140 < chart.width
    )  # else the texts stand left of their lines, and the best size takes the upper row
    marks = [(one_se, "one-SE size", "one-se", 0 if room else 1), (best, "best size", "best", 1 if room else 0)]
    if best == one_se:
        marks = [(best, "best and one-SE size", "best", 1)]
    for k, text, class_, row in marks:
        at = x(k)
        y = chart.top - 22 + 15 * row
        chart.add("line", class_=f"mark {class_}", x1=at, x2=at, y1=y + 4, y2=chart.bottom)
        to_right = at + 170 < chart.width if best == one_se else room or at < 140
        where = {"x": at - 3, "text_anchor": "start"} if to_right else {"x": at + 3, "text_anchor": "end"}
        chart.add("text", f"{text}: {k}", class_=f"tick {class_}", y=y, **where)


def counts_chart(counts: CountMap, best: int, one_se: int, wide: bool) -> Markup:
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
                fill_opacity=round(0.04 + 0.96 * float(counts.share[s, i]), 2),
                data_tip=tip,
            )
            if counts.final[s, i]:
                chart.add("circle", class_="final", cx=x(s), cy=y + (row - 1) / 2, r=min(3.2, max(1.0, cell / 5)))
    places = {int(k): s for s, k in enumerate(counts.sizes)}
    ticks = x.whole_ticks(list(places), int(max(4, (chart.right - chart.left) // 28)))
    chart.x_axis(x, [places[k] for k in ticks], "size (number of columns)", [str(k) for k in ticks])
    marks = [("best", best)] if best == one_se else [("one-se", one_se), ("best", best)]
    for class_, k in marks:
        at = x(places[k])
        text = "best, one-SE" if best == one_se else {"best": "best", "one-se": "one-SE"}[class_]
        y = 20.0 if class_ == "one-se" else 34.0
        chart.add("path", class_=f"flag {class_}", d=f"M{at - 4:.2f} {y + 1}h8l-4 6z")
        near_end = at > chart.right - 60
        chart.add(
            "text",
            text,
            class_=f"tick {class_}",
            x=at - 7 if near_end else at + 7,
            y=y + 7,
            text_anchor="end" if near_end else "start",
        )
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


def scatter_charts(points: Scatter, predictions: list[float], residuals: list[float]) -> tuple[Markup, Markup]:
    """Prediction against truth and residual against prediction; axes hold all sizes, so that the slider compares."""
    what = f"{plural(points.size, 'column')}, {points.cut}"
    low, high = span([*points.observed.tolist(), *predictions])
    label = f"Scatter plot of held-out predictions against observed values: {what}. "
    chart = _panel(label + f"Explained {percent(points.share_explained)} of the variance.")
    x, y = chart.x_scale(low, high), chart.y_scale(low, high)
    chart.y_axis(y, y.ticks(5), "predicted (held out)")
    ticks = x.ticks(5)
    chart.x_axis(x, ticks, "observed")
    chart.add("line", class_="zero", x1=x(low), x2=x(high), y1=y(low), y2=y(high))
    for a, b in zip(points.observed, points.predicted, strict=True):
        _point(chart, x, y, float(a), float(b))
    right = _panel(f"Scatter plot of residuals (observed minus predicted) against held-out predictions: {what}.")
    u, v = right.x_scale(*span(predictions)), right.y_scale(*span([*residuals, 0.0]))
    right.y_axis(v, v.ticks(5), "observed - predicted")
    right.x_axis(u, u.ticks(5), "predicted (held out)")
    right.add("line", class_="zero", x1=right.left, x2=right.right, y1=v(0), y2=v(0))
    for a, b in zip(points.predicted, points.residual, strict=True):
        _point(right, u, v, float(a), float(b))
    return (
        chart.svg(role="prediction", x=x.record(), y=y.record()),
        right.svg(role="residual", x=u.record(), y=v.record()),
    )


def _point(chart: Chart, x: Scale, y: Scale, a: float, b: float) -> None:
    """A point; without a place it is hidden, so that the page's script can still count it."""
    if np.isfinite(a) and np.isfinite(b):
        chart.add("circle", class_="point", cx=x(a), cy=y(b), r=3)
    else:
        chart.add("circle", class_="point", r=3, visibility="hidden")


def cooling_charts(curves: list[Cooling], shown: int) -> tuple[Markup, Markup]:
    """Energy and acceptance against temperature of the size in place `shown`; axes hold all sizes, one was annealed."""
    temperatures = np.concatenate([c.temperature for c in curves])
    hot, cold = temperatures.max(), temperatures.min()
    if not hot > cold:
        hot, cold = hot * 2, cold / 2
    drawn = []
    for quantity, title in (("energy", "energy"), ("acceptance", "accepted part of the flips")):
        now = curves[shown]
        label = (
            f"Line chart of {title} against temperature while cooling, {plural(now.size, 'column')}, {now.cut}. "
            "The table below the figure has the numbers."
        )
        chart = _panel(label)
        x = chart.x_scale(float(hot), float(cold), log=True)
        values = np.concatenate([getattr(c, quantity).ravel() for c in curves])
        y = chart.y_scale(*span(values.tolist() if quantity == "energy" else [*values.tolist(), 0.0], 0.03))
        chart.y_axis(y, y.ticks(5), title)
        ticks = x.ticks(5)
        chart.x_axis(x, ticks, "temperature 1/β (cooling to the right)", [f"{t:g}" for t in ticks])
        for chain in range(max(c.energy.shape[0] for c in curves)):
            points = ""
            if chain < now.energy.shape[0]:
                points = _points(x, y, now.temperature, getattr(now, quantity)[chain])
            chart.add("polyline", class_="chain", points=points)
        at = {"x": (chart.left + chart.right) / 2, "y": (chart.top + chart.bottom) / 2, "text_anchor": "middle"}
        hidden = "hidden" if now.temperature.size else "visible"
        chart.add("text", "not annealed at this size", class_="tick none", visibility=hidden, **at)
        drawn.append(chart.svg(role=quantity, x=x.record(), y=y.record()))
    return drawn[0], drawn[1]


def _variant(wide: bool) -> str:
    return "wide" if wide else "narrow"


def _sized(wide: bool, height: float, narrow_height: float, label: str, top: float = 58) -> Chart:
    """A chart for a wide or for a narrow page."""
    if wide:
        return Chart(820.0, height, (top, 16.0, 44.0, 64.0), label, "wide")
    return Chart(350.0, narrow_height, (top, 10.0, 44.0, 56.0), label, "narrow")


def _panel(label: str) -> Chart:
    """One of two charts side by side (one below the other on a narrow page)."""
    return Chart(400.0, 320.0, (30.0, 14.0, 44.0, 62.0), label, "panel")


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
