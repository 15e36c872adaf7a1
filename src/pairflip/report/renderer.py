"""Figures inside HTML, one ``<svg>`` for each panel: few and short elements, colours as roles, texts as text.

matplotlib's own SVG writes a style attribute and an id for everything, which a page with a strict security policy and a
dark mode cannot use. Here a colour of the style becomes a class of the style sheet (or, in a notebook, an attribute),
and all marks of a series are one path. Each subpath of it starts at the centre of its mark with the only capital M, so
that the page's script finds the mark under the pointer. Areas with texts are the children of one group, in the order of
the texts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup
from matplotlib.backend_bases import GraphicsContextBase, RendererBase
from matplotlib.colors import to_hex
from matplotlib.path import Path

from pairflip.report.registry import PageFigure
from pairflip.report.style import ROLES, TEXT, TIPS, TipBook, Tips, any_glyph, figure_of, page_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Paint = Callable[[str, str], dict[str, str]]
"""(``stroke``, ``fill`` or ``text``, colour) to the attributes that give an element that colour."""
_LETTERS = {Path.MOVETO: "M", Path.LINETO: "l", Path.CURVE3: "q", Path.CURVE4: "c"}
_ANCHORS = {"left": "start", "right": "end", "center": "middle"}
_PANEL = (400.0, 330.0)


def page_svgs(
    figure: PageFigure, numbers: Sequence[Any], labels: Sequence[Sequence[str]], book: TipBook | None = None
) -> list[list[Markup]]:
    """Panels of a figure for each of `numbers`, with text alternatives; of a single panel, a wide and a narrow one."""
    side_by_side = figure.follows or len(figure.draw) > 1
    kinds = [("panel", i) for i in range(len(figure.draw))] if side_by_side else [("wide", 0), ("narrow", 0)]
    svgs: list[list[Markup]] = [[] for _ in numbers]
    for kind, panel in kinds:
        ax = None
        for at, each in enumerate(numbers):
            if ax is None or not figure.follows:
                shape = figure.shape(each, kind != "narrow") if figure.follows or not side_by_side else _PANEL
                ax = page_axes(*shape, fixed=figure.follows)
            else:  # remove what was drawn, with ticks and limits: making new axes takes longer
                for artist in (*ax.lines, *ax.collections, *ax.patches, *ax.texts):
                    artist.remove()
                ax.set(xscale="linear", yscale="linear")
                ax.relim()
                ax.autoscale(True)
            look = {"class": f"chart {kind}"} | ({} if book is None else {"data-role": f"{figure.name}-{panel}"})
            svgs[at].append(drawn(figure.draw[panel], each, ax, labels[at][panel], look, book=book))
    return svgs


def drawn(
    draw: Callable[[Any, Axes], None],
    numbers: Any,
    ax: Axes,
    label: str,
    attributes: dict[str, str],
    paint: Paint | None = None,
    book: TipBook | None = None,
) -> Markup:
    """One panel as SVG; texts of marks go into the book, or, without one, are their titles."""
    draw(numbers, ax)
    figure = figure_of(ax)
    tips: dict[str, Tips] = {}
    for artist in (*ax.lines, *ax.collections, *ax.patches):
        if artist in TIPS:
            artist.set_gid(f"tips-{len(tips)}")  # the id of the group that the renderer is told of
            tips[f"tips-{len(tips)}"] = TIPS[artist]
    width, height = figure.get_size_inches() * figure.dpi
    renderer = PageRenderer(width, height, figure.dpi, paint or page_paint, tips, book)
    with any_glyph():
        figure.draw(renderer)
    box = f"0 0 {renderer.width:g} {renderer.height:g}"
    head = {"viewBox": box, "role": "img", "aria-label": label, "font-size": renderer.font_size, **attributes}
    return tag("svg", Markup("".join(renderer.elements)), **head)


def page_paint(kind: str, colour: str) -> dict[str, str]:
    """A class of the style sheet; colours that the style does not know stay what they are."""
    role = ROLES.get(colour)
    if kind == "text":  # the style sheet gives all texts the colour of ink
        return {} if role == "ink" else page_paint("fill", colour)
    return {"class": f"{kind[0]}-{role}"} if role else {kind: colour}


class PageRenderer(RendererBase):
    """Collects SVG elements in the pixels of a page."""

    def __init__(
        self, width: float, height: float, dpi: float, paint: Paint, tips: Mapping[str, Tips], book: TipBook | None
    ) -> None:
        super().__init__()
        self.width, self.height, self.dpi = float(width), float(height), dpi
        self.elements: list[str] = []
        self.font_size = _short(self.points_to_pixels(TEXT))  # of most texts
        self._paint, self._book = paint, book
        self._tips = tips  # by the id of a group
        self._open: list[Tips | None] = []
        self._drawn = 0  # paths of the open group
        self._grouped = False  # whether they are children of an element
        self._axis: dict[tuple[tuple[str, str], ...], list[str]] | None = None  # ticks and grid of an axis, by look

    def open_group(self, s: str, gid: str | None = None) -> None:
        """Begin a group: an artist with texts, one without, or an axis."""
        self._open.append(self._tips.get(gid or ""))
        self._drawn = 0
        if s.startswith("matplotlib.axis"):
            self._axis = {}

    def close_group(self, s: str) -> None:
        """End the group: write what was collected for it."""
        if self._open.pop() is not None and self._grouped:
            self.elements.append("</g>")
            self._grouped = False
        if s.startswith("matplotlib.axis") and self._axis is not None:
            lines, self._axis = self._axis, None
            for look, parts in lines.items():
                self._add_path(parts, dict(look))

    def get_canvas_width_height(self) -> tuple[float, float]:
        """Size of the figure in pixels."""
        return self.width, self.height

    def points_to_pixels(self, points: Any) -> Any:
        """Lengths of matplotlib in pixels."""
        return points * self.dpi / 72

    def draw_path(self, gc: GraphicsContextBase, path: Path, transform: Any, rgbFace: Any = None) -> None:
        """A line, or an area if it has a colour to fill it."""
        box = gc.get_clip_rectangle() if rgbFace is None else None
        d = _commands(path.transformed(transform), self.height, None if box is None else tuple(box.extents))
        look = self._look(gc, rgbFace)
        tips, title = self._open[-1] if self._open and rgbFace is not None else None, ""
        if tips is not None and self._book is None:
            title = tips.text(self._drawn)
        elif tips is not None and self._book is not None and not self._grouped:
            self.elements.append(f'<g data-tips="{self._book.place(tips)}">')
            self._grouped = True
        self._drawn += 1
        if d and look:
            self._add_path([d], look, title)

    def draw_markers(
        self, gc: GraphicsContextBase, marker_path: Path, marker_trans: Any, path: Path, trans: Any, rgbFace: Any = None
    ) -> None:
        """All marks of a series as one path; as one path each where texts are titles."""
        mark = marker_path.transformed(marker_trans)
        centres = [v[-2:] for v, _ in path.transformed(trans).iter_segments(simplify=False)]
        if not centres:
            return
        look = self._look(gc, rgbFace)
        corners = np.asarray(mark.vertices)
        edge = rgbFace is None or (gc.get_linewidth() > 0 and to_hex(gc.get_rgb()[:3]) != to_hex(rgbFace[:3]))
        # 26 vertices: matplotlib's circle, made of eight curves where SVG has arcs.
        if marker_path.codes is None or len(corners) != 26:
            shape = _commands(mark, 0.0, from_centre=True)
        elif edge:
            r = _short(float(np.ptp(corners[:, 0])) / 2, 2)
            across = _short(2 * float(r), 2)
            shape = f"m-{r} 0a{r} {r} 0 1 0 {across} 0a{r} {r} 0 1 0-{across} 0z"
        else:  # the round end of a line of no length
            shape = "h0"
            look = {key.replace("fill", "stroke"): text for key, text in look.items() if not key.startswith("stroke")}
            if "class" in look:
                look["class"] = f"s-{look['class'].split()[0][2:]} dot"
            look |= {"stroke-width": _short(float(np.ptp(corners[:, 0])), 2), "stroke-linecap": "round"}
        places = [f"M{_short(x)} {_short(self.height - y)}{shape}" for x, y in centres]
        tips = self._open[-1] if self._open else None
        if tips is not None and self._book is None:
            for i, place in enumerate(places):
                self._add_path([place], look, tips.text(i))
            return
        if tips is not None and self._book is not None:
            look |= {"data-tips": str(self._book.place(tips))}
        self._add_path(places, look)

    def draw_text(
        self,
        gc: GraphicsContextBase,
        x: float,
        y: float,
        s: str,
        prop: Any,
        angle: float,
        ismath: Any = False,
        mtext: Any = None,
    ) -> None:
        """A text at its anchor: a page's font has other widths than the one that was measured."""
        anchor = "start"
        if mtext is not None and (angle == 0 or mtext.get_rotation_mode() == "anchor"):
            at = mtext.get_transform().transform(mtext.get_unitless_position())
            left, top = float(at[0]), self.height - float(at[1])
            turn = math.radians(angle)
            # Matplotlib's place across the line of text is kept; along it, the page's font and the anchor decide.
            along = math.sin(turn) * (x - left) + math.cos(turn) * (y - top)
            x, y = left + along * math.sin(turn), top + along * math.cos(turn)
            anchor = _ANCHORS[mtext.get_ha()]
        look = {"x": _short(x), "y": _short(y)}
        size = _short(self.points_to_pixels(prop.get_size_in_points()))
        if size != self.font_size:
            look["font-size"] = size
        if anchor != "start":
            look["text-anchor"] = anchor
        if angle:
            look["transform"] = f"rotate({_short(-angle)} {look['x']} {look['y']})"
        look |= self._paint("text", to_hex(gc.get_rgb()[:3]))
        self.elements.append(tag("text", s, **look))

    def _add_path(self, parts: list[str], look: dict[str, str], title: str = "") -> None:
        """A path; parts of an axis that look the same wait until they are one path."""
        if self._axis is not None:
            self._axis.setdefault(tuple(look.items()), []).extend(parts)
        else:
            inner = tag("title", title) if title else ""
            self.elements.append(tag("path", inner, d="".join(parts), **look))

    def _look(self, gc: GraphicsContextBase, face: Any) -> dict[str, str]:
        """Colours, opacities, width and dashes; empty if nothing of it can be seen."""
        look: dict[str, str] = {}
        edge, width = gc.get_rgb(), self.points_to_pixels(gc.get_linewidth())
        forced = gc.get_alpha() if gc.get_forced_alpha() else None
        for kind, colour in (("fill", face), ("stroke", edge if width > 0 else None)):
            if colour is None:
                continue
            alpha = forced if forced is not None else (colour[3] if len(colour) > 3 else 1.0)
            if alpha == 0:
                continue
            paint = self._paint(kind, to_hex(colour[:3]))
            if "class" in look and "class" in paint:
                paint["class"] = f"{look['class']} {paint['class']}"
            look |= paint
            if alpha < 1:
                look[f"{kind}-opacity"] = _short(alpha, 2)
            if kind == "stroke":
                look["stroke-width"] = _short(width, 2)
                dashes = gc.get_dashes()[1]
                if dashes is not None:
                    lengths = self.points_to_pixels(np.asarray(dashes, dtype=float))
                    look["stroke-dasharray"] = " ".join(map(_short, lengths.tolist()))
        return look


def tag(element: str, inner: str | Markup = "", **attributes: str) -> Markup:
    """An element; a text inside and attributes are escaped."""
    head = Markup("").join(Markup(' {}="{}"').format(key, value) for key, value in attributes.items())
    if element == "path" and not inner:
        return Markup("<path{}/>").format(head)
    return Markup("<{0}{1}>{2}</{0}>").format(element, head, inner)


def _commands(path: Path, height: float, clip: Any = None, from_centre: bool = False) -> str:
    """The commands of a path: relative ones are shorter, and start from rounded places so that nothing drifts."""
    d, last, before = "", (0.0, 0.0), ""
    for vertices, code in path.iter_segments(simplify=False, clip=clip, curves=True):
        if code == Path.CLOSEPOLY:
            d, before = f"{d}z", "z"
            continue
        corners = [(round(x, 1), round(height - y, 1)) for x, y in np.reshape(vertices, (-1, 2)).tolist()]
        letter = _LETTERS[code]
        steps = [_short(v - w) for corner in corners for v, w in zip(corner, last, strict=True)]
        if letter == "M" and from_centre:
            letter = "m"
        if letter == "M":
            d += f"M{_short(corners[0][0])} {_short(corners[0][1])}"
        elif letter == "l" and "0" in steps:
            letter, step = ("h", steps[0]) if steps[1] == "0" else ("v", steps[1])
            d += f"{letter}{step}"
        else:
            text = " ".join(steps).replace(" -", "-")  # a sign separates numbers, too
            d += text if letter == before and text.startswith("-") else f"{' ' if letter == before else letter}{text}"
        last, before = corners[-1], letter
    return d


def _short(value: float, digits: int = 1) -> str:
    """A length, rounded, in as few characters as possible."""
    text = f"{value:.{digits}f}".rstrip("0").rstrip(".")
    if text.startswith(("0.", "-0.")):
        text = text.replace("0.", ".", 1)
    return "0" if text == "-0" else text
