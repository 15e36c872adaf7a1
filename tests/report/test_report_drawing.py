"""Drawing: on given axes or own ones, names as text, the same bytes each time, no state left behind."""

import dataclasses
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from _curves import make_curve, plain_names, unannealed
from _errors import sentence_of
from _older_curve import without_size_0
from conftest import ROOT
from pairflip import SubsetProblem, anneal, figures
from pairflip.report.registry import figures_of

CURVE = make_curve()
PLOTS = ["plot_size_curve", "plot_selection_counts", "plot_paths", "plot_anneal", "plot_predictions"]


@pytest.mark.parametrize("name", PLOTS)
def test_draws_on_given_axes_and_on_its_own(name):
    from matplotlib.figure import Figure

    plot = getattr(figures, name)
    given = Figure().add_subplot()
    assert plot(CURVE, ax=given) is given
    own = plot(CURVE)
    assert own.figure is not given.figure
    assert own.get_xlabel()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        own.figure.canvas.draw() if hasattr(own.figure.canvas, "draw") else None


def test_the_size_curve_shows_the_numbers():
    ax = figures.plot_size_curve(CURVE)
    drawn = next(line for line in ax.lines if line.get_marker() == "o" and len(line.get_xdata()) == 8)
    np.testing.assert_array_equal(drawn.get_xdata(), range(1, 9))
    np.testing.assert_array_equal(drawn.get_ydata(), CURVE.cv_error[1:])
    legend = {text.get_text() for text in ax.get_legend().get_texts()}
    assert {f"recommended: {CURVE.best_size}", "mean alone"} <= legend
    line = next(line for line in ax.lines if line.get_label() == "mean alone")
    assert line.get_ydata() == [CURVE.cv_error[0]] * 2
    assert ax.get_yscale() == "linear"
    assert figures.plot_size_curve(make_curve(noise=0.1)).get_yscale() == "log"


@pytest.mark.parametrize("name", PLOTS)
def test_draws_curves_of_version_01_and_where_nothing_predicts(name):
    plot = getattr(figures, name)
    for curve in (without_size_0(CURVE), make_curve(rows=40, noise=8, seed=3, names=plain_names(24))):
        assert plot(curve).get_xlabel()


def test_a_wild_prediction_is_hollow_at_the_edge():
    predictions = CURVE.predictions.copy()
    predictions[4, 7] = 1e6
    ax = figures.plot_predictions(dataclasses.replace(CURVE, predictions=predictions))
    assert ax.get_ylim()[1] < 100
    assert [len(line.get_xdata()) for line in ax.lines[1:]] == [59, 1]
    assert "1 beyond the axes" in ax.get_title(loc="left")


def test_a_curve_and_a_trace_plot_themselves():
    code = (
        "import matplotlib; matplotlib.use('Agg')\nfrom _curves import make_curve\nax = make_curve().plot()\n"
        "import matplotlib.pyplot as plt\nprint(ax.get_ylabel(), plt.get_fignums() == [ax.figure.number])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT / "tests")
    assert done.stdout.split() == ["cv_error", "True"], done.stderr
    from matplotlib.figure import Figure

    given = Figure().add_subplot()
    assert CURVE.plot(given) is given
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 8))
    trace = anneal(SubsetProblem(X, X[:, 0] + rng.normal(size=30)), 2, chains=3)
    other = Figure().add_subplot()
    assert trace.plot(other) is other


def test_the_heat_map_says_what_it_leaves_out():
    wide = make_curve(columns=300, sizes=range(1, 21), names=plain_names(300))
    ax = figures.plot_selection_counts(wide)
    assert ax.get_title(loc="left").startswith("40 most selected of ")
    assert len(ax.get_yticklabels()) == 40


def test_anneal_draws_a_trace_and_both_quantities():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 8))
    trace = anneal(SubsetProblem(X, X[:, 0] + rng.normal(size=30)), 2, chains=3)
    for quantity in ("energy", "acceptance"):
        ax = figures.plot_anneal(trace, quantity=quantity)
        assert len(ax.lines) == 3 + (quantity == "energy")  # and the line of the best energy
        assert ax.xaxis_inverted()
    assert not figures.plot_anneal(unannealed(CURVE), size=8).lines


def test_bad_choices_are_explained():
    assert "'energy' or 'acceptance'" in sentence_of(ValueError, lambda: figures.plot_anneal(CURVE, quantity="heat"))
    assert "residual" in sentence_of(ValueError, lambda: figures.plot_predictions(CURVE, quantity="x"))
    assert "expected one of" in sentence_of(ValueError, lambda: figures.plot_predictions(CURVE, size=99))


def test_files_are_whole_readable_and_the_same_each_time(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = figures.save_figures(CURVE, tmp_path / "a" / "b")
    second = figures.save_figures(CURVE, tmp_path / "c")
    assert [p.name for p in first] == [
        f"{stem}.{kind}"
        for stem in ("size_curve", "selection_counts", "paths", "predictions", "annealing")
        for kind in ("svg", "png")
    ]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert sorted(p.name for p in (tmp_path / "c").iterdir()) == sorted(p.name for p in second)
    for path in first[::2]:
        ET.parse(path)  # names with < & and control characters leave it readable
    text = (tmp_path / "c" / "selection_counts.svg").read_text(encoding="utf-8")
    assert "$x_1$" in text, "a name is text, not a formula"
    assert "<script" not in text


def test_a_curve_that_was_not_annealed_has_no_figure_of_that():
    curve = CURVE
    for at in range(CURVE.sizes.size):
        curve = unannealed(curve, at)
    assert "annealing" in [figure.name for figure in figures_of(CURVE)]
    assert "annealing" not in [figure.name for figure in figures_of(curve)]


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    message = sentence_of(OSError, lambda: figures.save_figures(CURVE, tmp_path / "file" / "x"))
    assert message.startswith("Cannot make the folder")


def test_importing_the_figures_loads_no_matplotlib():
    code = (
        "import sys, pairflip.figures, pairflip.report\n"
        "print([name for name in ('matplotlib', 'jinja2') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_drawing_leaves_no_pyplot_and_no_settings_behind():
    code = (
        "import sys, matplotlib\nbefore = matplotlib.rcParams.copy()\nfrom _curves import make_curve\n"
        "import pairflip.figures as f, tempfile\nf.save_figures(make_curve(), tempfile.mkdtemp())\n"
        "print('matplotlib.pyplot' in sys.modules, matplotlib.rcParams.copy() == before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT / "tests")
    assert done.stdout.split() == ["False", "True"], done.stderr
