"""Drawing: on given axes or own ones, names as text, the same bytes each time, no state left behind."""

import dataclasses
import re
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from matplotlib.figure import Figure

from _curves import make_curve, plain_names, unannealed
from _errors import sentence_of
from conftest import ROOT
from pairflip import SubsetProblem, anneal, figures, theory
from pairflip.report import FigureTable, FigureWords, PageFigure, register
from pairflip.report.page import render
from pairflip.report.registry import FIGURES, figures_of
from pairflip.report.style import COLOURS, tell

CURVE, SMALL = make_curve(), make_curve(sizes=range(1, 5))
MODEL = theory.Planted()
PLOTS = ["plot_size_curve", "plot_selection_counts", "plot_paths", "plot_anneal", "plot_predictions"]


@pytest.fixture(scope="module")
def trace():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 8))
    return anneal(SubsetProblem(X, X[:, 0] + rng.normal(size=30)), 2, chains=3)


@pytest.mark.parametrize("name", PLOTS)
def test_draws_on_given_axes_and_on_its_own(name):
    plot, given = getattr(figures, name), Figure().add_subplot()
    assert plot(CURVE, ax=given) is given
    assert plot(CURVE).figure is not given.figure
    nothing = make_curve(rows=40, noise=8, seed=3, names=plain_names(24))
    for curve in (CURVE, nothing):
        assert plot(curve).get_xlabel()


def test_the_size_curve_shows_the_numbers():
    ax = figures.plot_size_curve(CURVE)
    drawn = next(line for line in ax.lines if line.get_marker() == "o" and len(line.get_xdata()) == 8)
    np.testing.assert_array_equal(drawn.get_xdata(), range(1, 9))
    np.testing.assert_allclose(drawn.get_ydata(), np.sqrt(2 * CURVE.cv_error[1:]))
    legend = {text.get_text() for text in ax.get_legend().get_texts()}
    assert {f"recommended: {CURVE.best_size}", "mean alone"} <= legend
    line = next(line for line in ax.lines if line.get_label() == "mean alone")
    assert line.get_ydata() == pytest.approx([np.sqrt(2 * CURVE.cv_error[0])] * 2)
    assert ax.get_yscale() == "linear"
    assert figures.plot_size_curve(make_curve(noise=0.1)).get_yscale() == "log"


def test_a_wild_prediction_is_hollow_at_the_edge():
    predictions = CURVE.predictions.copy()
    predictions[4, 7] = 1e6
    ax = figures.plot_predictions(dataclasses.replace(CURVE, predictions=predictions))
    assert ax.get_ylim()[1] < 100
    assert [len(line.get_xdata()) for line in ax.lines[1:]] == [59, 1]
    assert "1 beyond the axes" in ax.get_title(loc="left")


def test_anneal_draws_a_trace_and_both_quantities(trace):
    for quantity in ("energy", "acceptance"):
        ax = figures.plot_anneal(trace, quantity=quantity)
        assert len(ax.lines) == 3 + (quantity == "energy")  # and the line of the best energy
        assert ax.xaxis_inverted()
    assert not figures.plot_anneal(unannealed(CURVE), size=8).lines
    curve = CURVE
    for at in range(CURVE.sizes.size):
        curve = unannealed(curve, at)
    assert ["annealing" in [figure.name for figure in figures_of(each)] for each in (CURVE, curve)] == [True, False]
    for record in (CURVE, trace):
        given = Figure().add_subplot()
        assert record.plot(given) is given


def test_bad_choices_are_explained(tmp_path):
    (tmp_path / "file").write_text("")
    curve = theory.curve_over_beta([0.0], 0.1, MODEL)
    for kind, words, call in [
        (ValueError, "'energy' or 'acceptance'", lambda: figures.plot_anneal(CURVE, quantity="heat")),
        (ValueError, "residual", lambda: figures.plot_predictions(CURVE, quantity="x")),
        (ValueError, "expected one of", lambda: figures.plot_predictions(CURVE, size=99)),
        (OSError, "Cannot make the folder", lambda: figures.save_figures(CURVE, tmp_path / "file" / "x")),
        (ValueError, "another name", lambda: register(FIGURES["paths"])),
        (ValueError, "nothing of this curve", lambda: figures.plot_theory(curve)),
    ]:
        assert words in sentence_of(kind, call)


def test_files_are_whole_readable_and_the_same_each_time(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = figures.save_figures(SMALL, tmp_path / "a" / "b")
    second = figures.save_figures(SMALL, tmp_path / "c")
    stems = ("size_curve", "selection_counts", "paths", "predictions", "annealing")
    assert [p.name for p in first] == [f"{stem}.{kind}" for stem in stems for kind in ("svg", "png")]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert sorted(p.name for p in (tmp_path / "c").iterdir()) == sorted(p.name for p in second)
    for path in first[::2]:
        ET.parse(path)  # names with < & and control characters leave it readable
    text = (tmp_path / "c" / "selection_counts.svg").read_text(encoding="utf-8")
    assert "$x_1$" in text, "a name is text, not a formula"
    assert "<script" not in text


STATE = """
import sys
import pairflip, pairflip.search.best_subset, pairflip.selection.curve
LATE = ("matplotlib", "jinja2", "markupsafe", "pairflip.report", "pairflip.figures")
print([name for name in LATE if name in sys.modules])
import pairflip.figures as f, pairflip.report
print([name for name in LATE[:2] if name in sys.modules])
import matplotlib, tempfile
before = matplotlib.rcParams.copy()
from _curves import make_curve
curve = make_curve(sizes=[1, 2])
curve._repr_html_()
f.save_figures(curve, tempfile.mkdtemp())
print("matplotlib.pyplot" in sys.modules, matplotlib.rcParams.copy() == before)
matplotlib.use("Agg")
ax = curve.plot()
import matplotlib.pyplot as plt
print(ax.get_ylabel(), plt.get_fignums() == [ax.figure.number])
"""


def test_drawing_is_loaded_late_and_leaves_no_pyplot_and_no_settings_behind():
    result = subprocess.run([sys.executable, "-c", STATE], capture_output=True, text=True, cwd=ROOT / "tests")
    assert result.stdout.splitlines() == ["[]", "[]", "False True", "RMSE True"], result.stderr


# A figure of the user's: numbers, a drawing, and one line -----------------------------------------------------------


def toy_numbers(curve, size, room):
    """Absolute residuals of a size, the largest first."""
    return size, np.sort(np.abs(curve.observed - curve.predictions[curve.at(size)]))[::-1]


def draw_toy(numbers, ax):
    (line,) = ax.plot(numbers[1], marker="o", color=COLOURS[3])
    tell(line, "{0}", [f"{v:.3f}" for v in numbers[1]])
    ax.set_xlabel("rank")


@pytest.fixture
def alone(monkeypatch):
    """Registers a figure as the only one."""

    def add(figure):
        monkeypatch.setattr("pairflip.report.registry.FIGURES", {})
        register(figure)

    return add


def svgs(page, name="toy"):
    return re.findall(rf'<svg[^>]*data-role="{name}-0".*?</svg>', page, re.DOTALL)


def test_a_registered_figure_is_in_the_page_and_among_the_files(alone, tmp_path):
    alone(PageFigure("toy", "A toy", toy_numbers, (draw_toy,)))
    page = render(SMALL)
    assert '<h2 id="h-toy">A toy</h2>' in page
    wide, narrow = (ET.fromstring(svg) for svg in svgs(page))
    for svg in (wide, narrow):
        assert svg.get("aria-label") == "A toy."
        assert "rank" in [e.text for e in svg.iter("text")]
        (dots,) = [e for e in svg.iter("path") if "data-tips" in e.attrib]
        assert dots.get("d").count("M") == 60
        assert "s-c3" in dots.get("class")
    assert [path.name for path in figures.save_figures(SMALL, tmp_path)] == ["toy.svg", "toy.png"]
    assert "rank" in (tmp_path / "toy.svg").read_text(encoding="utf-8")


def test_a_figure_that_follows_the_slider_has_a_panel_and_a_table_for_each_size(alone):
    def words(curve, numbers, room):
        table = FigureTable("Numbers", ["Rank", "Residual"], [["1", f"{numbers[1][0]:.3f}"]], "About them")
        return FigureWords(["A toy"], table=table)

    alone(PageFigure("toy", "A toy", toy_numbers, (draw_toy,), words=words, follows=True))
    page = render(SMALL)
    assert len(svgs(page)) == len(set(svgs(page))) == SMALL.sizes.size
    assert '<table id="t-toy"' in page
    for size in SMALL.sizes.tolist():
        assert f'"toy":[["1","{toy_numbers(SMALL, size, None)[1][0]:.3f}"]]' in page


# Curves of the theory: what is solid, what is dashed, where a line must break ---------------------------------------


def pieces(ax, style):
    return [line for line in ax.lines if line.get_linestyle() == style and len(line.get_xdata()) > 1]


def test_values_below_the_at_temperature_are_dashed():
    given = Figure().add_subplot()
    ax = figures.plot_theory(theory.curve_over_beta(np.geomspace(0.1, 1e3, 30), 0.1, MODEL), given)
    assert ax is given
    at, solid = theory.at_point(0.1, MODEL).temperature, pieces(ax, "-")
    assert len(solid) == len(pieces(ax, "--")) == 2
    assert all(line.get_xdata().min() > at for line in solid)
    assert np.isclose(pieces(ax, ":")[0].get_xdata()[0], at)
    assert any("AT line" in text.get_text() for text in ax.texts)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(labels) == 3
    assert "formal value" in labels[2]
