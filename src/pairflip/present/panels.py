"""The figures that follow the slider: held-out predictions and cooling, each size on axes of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from pairflip.least_squares import Floats
from pairflip.present.cooling_numbers import Cooling
from pairflip.present.numbers import Scatter
from pairflip.present.svg import Chart, Scale, span, tick_texts
from pairflip.text import plural

_COLD = "temperature 1/β (cooling to the right)"


@dataclass(frozen=True)
class Frame:
    """Both axes of one figure at one size, with the ticks and their texts."""

    x: Scale
    y: Scale
    x_ticks: list[float]
    y_ticks: list[float]
    y_texts: list[str]

    def record(self) -> dict[str, Any]:
        """What the page's script needs to draw this size: scales, and (value, text) of the ticks."""
        return {
            "x": self.x.record(),
            "y": self.y.record(),
            "xt": [[v, text] for v, text in zip(self.x_ticks, tick_texts(self.x_ticks), strict=True)],
            "yt": [[v, text] for v, text in zip(self.y_ticks, self.y_texts, strict=True)],
        }


def scatter_frames(points: Scatter) -> dict[str, Frame]:
    """Axes that fit this size; wild predictions are outside."""
    chart = _panel("")
    x, y = chart.x_scale(*span(points.axis)), chart.y_scale(*span(points.axis))
    v = chart.y_scale(*span([*points.residual_axis, 0.0]))
    return {"prediction": _framed(x, y), "residual": _framed(x, v)}


def cooling_frames(cold: Cooling) -> dict[str, Frame]:
    """Axes that fit this size. Energies are above the best one, by logarithm: the end of the cooling shows."""
    chart = _panel("")
    if not cold.temperature.size:
        nothing = Frame(chart.x_scale(10.0, 1.0, True), chart.y_scale(0.0, 1.0), [], [], [])
        return {"energy": nothing, "acceptance": nothing}
    hot, end = float(cold.temperature.max()), float(cold.temperature.min())
    if not hot > end:
        hot, end = hot * 2, end / 2
    x = chart.x_scale(hot, end, log=True)
    top = max(float(cold.above.max()), 10 * cold.floor)
    y = chart.y_scale(cold.floor / 1.3, top * 1.3, log=True)
    ticks = [t for t in y.ticks(5) if t > 2 * cold.floor]
    return {
        "energy": Frame(x, y, x.ticks(5), [cold.floor, *ticks], ["best", *tick_texts(ticks)]),
        "acceptance": _framed(x, chart.y_scale(*span([*cold.acceptance.ravel().tolist(), 0.0], 0.03))),
    }


def _framed(x: Scale, y: Scale) -> Frame:
    ticks = y.ticks(5)
    return Frame(x, y, x.ticks(5), ticks, tick_texts(ticks))


def scatter_charts(points: Scatter, frames: dict[str, Frame], fit: str) -> tuple[Markup, Markup]:
    """Prediction against truth and residual against prediction; `fit` says in words how good they are."""
    what = f"{plural(points.size, 'column')}, {points.cut}"
    label = f"Scatter plot of held-out predictions against observed values: {what}. "
    frame = frames["prediction"]
    left = _panel(f"{label}Fit: {fit}")
    _axes(left, frame, "observed", "predicted (held out)")
    low, high = frame.x.low, frame.x.high
    left.add("line", class_="zero", x1=frame.x(low), x2=frame.x(high), y1=frame.y(low), y2=frame.y(high))
    _dots(left, frame, points.observed, points.predicted)
    frame = frames["residual"]
    right = _panel(f"Scatter plot of residuals (observed minus predicted) against held-out predictions: {what}.")
    _axes(right, frame, "predicted (held out)", "observed - predicted")
    right.add("line", class_="zero level", x1=right.left, x2=right.right, y1=frame.y(0), y2=frame.y(0))
    _dots(right, frame, points.predicted, points.residual)
    return left.svg(role="prediction"), right.svg(role="residual")


def _dots(chart: Chart, frame: Frame, xs: Floats, ys: Floats) -> None:
    """One dot for each pair; without a place it is hidden, so that the page's script can still count it."""
    for a, b in zip(xs.tolist(), ys.tolist(), strict=True):
        if not (np.isfinite(a) and np.isfinite(b)):
            chart.add("circle", class_="point", r=3, visibility="hidden")
            continue
        x = min(max(a, frame.x.low), frame.x.high)
        y = min(max(b, frame.y.low), frame.y.high)
        chart.add("circle", class_="point" if (a, b) == (x, y) else "point beyond", cx=frame.x(x), cy=frame.y(y), r=3)


def cooling_charts(cold: Cooling, chains: int, frames: dict[str, Frame]) -> tuple[Markup, Markup]:
    """Energy and acceptance against temperature, with room for as many lines as any size has `chains`."""
    drawn = []
    for role, title, values in (
        ("energy", "energy above the best (logarithmic)", cold.above),
        ("acceptance", "accepted fraction of the flips", cold.acceptance),
    ):
        chart = _panel(
            f"Line chart of {title} against temperature while cooling, {plural(cold.size, 'column')}, {cold.cut}. "
            "The table below the figure has the numbers."
        )
        frame = frames[role]
        _axes(chart, frame, _COLD, title)
        for chain in range(chains):
            line = ""
            if chain < values.shape[0]:
                pairs = zip(cold.temperature.tolist(), values[chain].tolist(), strict=True)
                line = " ".join(f"{frame.x(t):.1f},{frame.y(v):.1f}" for t, v in pairs)
            chart.add("polyline", class_="chain", points=line)
        at = {"x": (chart.left + chart.right) / 2, "y": (chart.top + chart.bottom) / 2, "text_anchor": "middle"}
        hidden = "hidden" if cold.temperature.size else "visible"
        chart.add("text", "not annealed at this size", class_="tick none", visibility=hidden, **at)
        drawn.append(chart.svg(role=role))
    return drawn[0], drawn[1]


def _axes(chart: Chart, frame: Frame, across: str, up: str) -> None:
    chart.y_axis(frame.y, frame.y_ticks, up, frame.y_texts)
    chart.x_axis(frame.x, frame.x_ticks, across)


def _panel(label: str) -> Chart:
    """One of two charts side by side (one below the other on a narrow page)."""
    return Chart(400.0, 320.0, (30.0, 14.0, 44.0, 62.0), label, "panel")
