"""A new figure is a function for its numbers, a function that draws them, and one line."""

import dataclasses
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from _curves import make_curve
from _errors import sentence_of
from pairflip import figures
from pairflip.report import FigureTable, FigureWords, PageFigure, register
from pairflip.report.page import render
from pairflip.report.registry import FIGURES
from pairflip.report.style import COLOURS, tell

CURVE = make_curve(sizes=range(1, 5))


def toy_numbers(curve, size, room):
    """Absolute residuals of a size, the largest first."""
    return size, np.sort(np.abs(curve.observed - curve.predictions[curve.at(size)]))[::-1]


def draw_toy(numbers, ax):
    (line,) = ax.plot(numbers[1], marker="o", color=COLOURS[3])
    tell(line, "{0}", [f"{v:.3f}" for v in numbers[1]])
    ax.set_xlabel("rank")


@pytest.fixture
def registered():
    def add(figure):
        register(figure)
        return figure

    before = set(FIGURES)
    yield add
    for name in set(FIGURES) - before:
        del FIGURES[name]


def svgs(page, name):
    return re.findall(rf'<svg[^>]*data-role="{name}-0".*?</svg>', page, re.DOTALL)


def test_a_registered_figure_is_in_the_page_and_among_the_files(registered, tmp_path):
    registered(PageFigure("toy", "A toy", toy_numbers, (draw_toy,)))
    page = render(CURVE)
    assert '<h2 id="h-toy">A toy</h2>' in page
    wide, narrow = (ET.fromstring(svg) for svg in svgs(page, "toy"))
    for svg in (wide, narrow):
        assert svg.get("aria-label") == "A toy."
        assert "rank" in [e.text for e in svg.iter("text")]
        (dots,) = [e for e in svg.iter("path") if "data-tips" in e.attrib]
        assert dots.get("d").count("M") == 60
        assert "s-c3" in dots.get("class")
    written = figures.save_figures(CURVE, tmp_path)
    assert [path.name for path in written][-2:] == ["toy.svg", "toy.png"]
    assert "rank" in (tmp_path / "toy.svg").read_text(encoding="utf-8")


def test_a_figure_that_follows_the_slider_has_a_panel_and_a_table_for_each_size(registered):
    def words(curve, numbers, room):
        table = FigureTable("Numbers", ["Rank", "Residual"], [["1", f"{numbers[1][0]:.3f}"]], "About them")
        return FigureWords(["A toy"], table=table)

    registered(PageFigure("toy", "A toy", toy_numbers, (draw_toy,), words=words, follows=True))
    page = render(CURVE)
    assert len(svgs(page, "toy")) == CURVE.sizes.size
    assert len(set(svgs(page, "toy"))) == CURVE.sizes.size
    assert '<table id="t-toy"' in page
    for size in CURVE.sizes.tolist():
        assert f'"toy":[["1","{toy_numbers(CURVE, size, None)[1][0]:.3f}"]]' in page


def test_drawing_the_same_axes_again_leaves_nothing_of_the_size_before(registered):
    """A size looks the same whether it is drawn first or after others."""
    figure = registered(dataclasses.replace(FIGURES["predictions"], name="again"))
    small = dataclasses.replace(CURVE, **_only(CURVE, [4]))
    drawn = svgs(render(small), figure.name)[0], svgs(render(CURVE), figure.name)[4]
    alone, among = (re.sub(r'data-tips="\d+"', "", svg) for svg in drawn)
    assert alone == among


def _only(curve, sizes):
    at = [curve.at(k) for k in sizes]
    kept = {}
    for field in dataclasses.fields(curve):
        value = getattr(curve, field.name)
        if field.name == "annealing":
            parts = {f.name: getattr(value, f.name)[at] for f in dataclasses.fields(value)}
            kept[field.name] = dataclasses.replace(value, **parts)
        elif isinstance(value, np.ndarray) and value.shape[:1] == curve.sizes.shape:
            kept[field.name] = value[at]
        elif isinstance(value, tuple) and len(value) == curve.sizes.size:
            kept[field.name] = tuple(value[s] for s in at)
    return kept


def test_two_figures_of_one_name_are_refused():
    assert "another name" in sentence_of(ValueError, lambda: register(FIGURES["paths"]))
