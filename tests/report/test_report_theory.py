"""Curves of the theory as figures: what is solid, what is dashed, where a line must break."""

import matplotlib as mpl
import numpy as np
import pytest

from _errors import sentence_of
from pairflip import theory
from pairflip.figures import plot_theory

mpl.use("Agg")
MODEL = theory.Planted()


@pytest.fixture(scope="module")
def over_beta():
    return theory.curve_over_beta(np.geomspace(0.1, 1e3, 30), 0.1, MODEL)


def pieces(ax, style):
    return [line for line in ax.lines if line.get_linestyle() == style and len(line.get_xdata()) > 1]


def test_values_below_the_at_temperature_are_dashed(over_beta):
    ax = plot_theory(over_beta)
    at = theory.at_point(0.1, MODEL).temperature
    solid = pieces(ax, "-")
    assert len(solid) == len(pieces(ax, "--")) == 2
    assert all(line.get_xdata().min() > at for line in solid)
    assert np.isclose(pieces(ax, ":")[0].get_xdata()[0], at)
    assert any("AT line" in text.get_text() for text in ax.texts)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(labels) == 3
    assert "formal value" in labels[2]


def test_given_axes_are_used(over_beta):
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert plot_theory(over_beta, ax) is ax


def test_curves_are_not_joined_through_the_critical_size():
    curve = theory.curve_over_rho([0.1, 0.11, 0.12, 0.13, 0.14, 0.15], MODEL, at="inf")
    ax = plot_theory(curve)
    critical = theory.critical_rho(MODEL.alpha)
    drawn = pieces(ax, "--")
    assert len(drawn) == 4
    assert all(x.max() < critical or x.min() > critical for x in (line.get_xdata() for line in drawn))
    assert any("zero-energy" in text.get_text() for text in ax.get_legend().get_texts())


def test_the_at_line_is_solid():
    ax = plot_theory(theory.curve_over_rho([0.05, 0.06, 0.07], MODEL, at="at"))
    assert len(pieces(ax, "-")) == 2
    assert not pieces(ax, "--")


def test_nothing_to_draw_is_a_sentence():
    curve = theory.curve_over_beta([0.0], 0.1, MODEL)
    assert "nothing of this curve" in sentence_of(ValueError, lambda: plot_theory(curve))
