"""A small chart of inline SVG: scales, ticks, axes. Colours are classes of the style sheet, so that dark mode works."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup, escape

from pairflip.text import number


def tag(name: str, text: str | Markup | None = None, **attributes: object) -> Markup:
    """An element; attribute names write ``_`` for ``-`` (and ``class_`` for class), values and text are escaped."""
    parts = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), value if isinstance(value, str) else _short(value))
        for key, value in attributes.items()
        if value is not None
    )
    inner = Markup("") if text is None else escape(text)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), parts, inner)


def _short(value: object) -> str:
    """A coordinate with two decimals at most."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Scale:
    """Maps values (low, high) to pixels (start, end), straight or by logarithm."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Pixels of a value."""
        low, high, value = (self.low, self.high, value)
        if self.log:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        return self.start + (self.end - self.start) * (value - low) / (high - low)

    def ticks(self, count: int = 6) -> list[float]:
        """Round values inside the scale, about `count` of them."""
        low, high = min(self.low, self.high), max(self.low, self.high)
        if self.log:
            return log_ticks(low, high, count)
        return round_ticks(low, high, count)

    def whole_ticks(self, values: Sequence[int], count: int = 10) -> list[int]:
        """Those of the whole numbers `values` that are round and at most about `count`."""
        values = sorted(set(values))
        if len(values) <= count:
            return list(values)
        step = max(1, round(round_step(values[-1] - values[0], count)))
        round_ones = [v for v in values if v % step == 0]
        return round_ones if 2 * len(round_ones) >= count else list(values)[:: -(-len(values) // count)]

    def record(self) -> list[float | bool]:
        """What the page's script needs to place a value: low, high, start, end, log."""
        return [self.low, self.high, self.start, self.end, self.log]


def round_step(width: float, count: int) -> float:
    """1, 2 or 5 times a power of ten, so that about `count` steps fill the width."""
    raw = width / max(1, count)
    power = 10.0 ** math.floor(math.log10(raw))
    return next(m for m in (1, 2, 5, 10) if raw <= m * power * (1 + 1e-9)) * power


def round_ticks(low: float, high: float, count: int) -> list[float]:
    """Multiples of a round step from low to high."""
    if not high > low:
        return [low]
    step = round_step(high - low, count)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [0.0 if i == 0 else float(f"{i * step:.12g}") for i in range(first, last + 1)]


def log_ticks(low: float, high: float, count: int) -> list[float]:
    """Powers of ten from low to high; where there are fewer than three, twice and five times them as well."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
        found = [m * 10.0**d for d in decades for m in factors]
        found = [float(f"{v:.3g}") for v in found if low * (1 - 1e-9) <= v <= high * (1 + 1e-9)]
        if len(found) > 2:
            break
    return found[:: max(1, math.ceil(len(found) / count))] or [low]


def span(values: Sequence[float], margin: float = 0.05) -> tuple[float, float]:
    """Lowest and highest finite value with a margin; (0, 1) if there are none, never empty."""
    finite = [float(v) for v in values if math.isfinite(v)]
    if not finite:
        return 0.0, 1.0
    low, high = min(finite), max(finite)
    room = (high - low) * margin or abs(high) * 0.1 or 1.0
    return low - room, high + room


@dataclass
class Chart:
    """Width, height, margins (top, right, bottom, left) and the elements drawn so far."""

    width: float
    height: float
    margins: tuple[float, float, float, float]
    label: str
    class_: str = ""
    elements: list[Markup] = field(default_factory=list)

    @property
    def left(self) -> float:
        """Where the plot starts from the left."""
        return self.margins[3]

    @property
    def right(self) -> float:
        """Where it ends."""
        return self.width - self.margins[1]

    @property
    def top(self) -> float:
        """Where it starts from above."""
        return self.margins[0]

    @property
    def bottom(self) -> float:
        """Where it ends below."""
        return self.height - self.margins[2]

    def x_scale(self, low: float, high: float, log: bool = False) -> Scale:
        """A scale over the width of the plot."""
        return Scale(low, high, self.left, self.right, log)

    def y_scale(self, low: float, high: float, log: bool = False) -> Scale:
        """A scale over its height, upwards."""
        return Scale(low, high, self.bottom, self.top, log)

    def draw(self, name: str, text: str | Markup | None = None, **attributes: object) -> Markup:
        """An element of this chart; the style sheet knows what its class looks like."""
        return tag(name, text, **attributes)

    def add(self, name: str, text: str | Markup | None = None, **attributes: object) -> None:
        """Draw an element and keep it."""
        self.elements.append(self.draw(name, text, **attributes))

    def x_axis(self, scale: Scale, ticks: Sequence[float], title: str, texts: Sequence[str] | None = None) -> None:
        """Axis, ticks (a group, so that the page's script can draw them anew) and title below the plot."""
        self.add("line", class_="axis", x1=self.left, x2=self.right, y1=self.bottom, y2=self.bottom)
        drawn = Markup("")
        for value, text in zip(ticks, texts or tick_texts(ticks), strict=True):
            at = scale(value)
            drawn += self.draw("line", class_="axis", x1=at, x2=at, y1=self.bottom, y2=self.bottom + 4)
            drawn += self.draw("text", text, class_="tick", x=at, y=self.bottom + 17, text_anchor="middle")
        self.add("g", drawn, class_="x-ticks")
        middle = (self.left + self.right) / 2
        self.add("text", title, class_="title", x=middle, y=self.bottom + 36, text_anchor="middle")

    def y_axis(self, scale: Scale, ticks: Sequence[float], title: str, texts: Sequence[str] | None = None) -> None:
        """Grid lines, ticks at the left and the title above the plot, where it reads without turning the head."""
        drawn = Markup("")
        for value, text in zip(ticks, texts or tick_texts(ticks), strict=True):
            at = scale(value)
            drawn += self.draw("line", class_="grid", x1=self.left, x2=self.right, y1=at, y2=at)
            drawn += self.draw("text", text, class_="tick", x=self.left - 6, y=at + 4, text_anchor="end")
        self.add("g", drawn, class_="y-ticks")
        self.add("text", title, class_="title", x=4.0, y=14.0, text_anchor="start")

    def svg(self, **data: object) -> Markup:
        """The chart as one ``<svg role="img">``; `data` become ``data-`` attributes (JSON)."""
        extra = {f"data_{key}": json.dumps(value) for key, value in data.items()}
        return tag(
            "svg",
            Markup("").join(self.elements),
            viewBox=f"0 0 {_short(self.width)} {_short(self.height)}",
            class_=f"chart {self.class_}".strip(),
            role="img",
            aria_label=self.label,
            **extra,
        )


def tick_texts(ticks: Sequence[float]) -> list[str]:
    """Texts of ticks: as few digits as tell them apart."""
    return [number(tick, 6) if abs(tick) < 1e5 or tick == 0 else f"{tick:.3g}" for tick in ticks]
