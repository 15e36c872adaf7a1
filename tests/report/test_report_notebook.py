"""Records in a notebook: escaped, without scripts and style sheets, readable on light and dark, loaded late."""

import dataclasses
import re
import xml.etree.ElementTree as ET
from functools import cache

import numpy as np
import pytest

from _curves import make_curve, plain_names
from _page import Outline, words
from pairflip import SubsetProblem, anneal
from pairflip.report import notebook
from pairflip.report.answer import answer_of
from pairflip.report.vocabulary import named, pieces

CURVE = make_curve()


@cache
def curve_html():
    return CURVE._repr_html_()


def test_a_curve_shows_its_answer_its_table_and_its_figure():
    answer = answer_of(CURVE)
    for sentence in (answer.headline, *(text for _, text in answer.bullets)):
        assert "".join(text for text, _ in pieces(sentence)) in words(curve_html())
    assert curve_html().count("<tr>") == 1 + CURVE.sizes.size
    (svg,) = re.findall(r"<svg.*</svg>", curve_html(), re.DOTALL)
    tips = [e.text for e in ET.fromstring(svg).iter("title")]
    assert len(tips) == 8
    assert tips[0].startswith("1 column: RMSE 0.848 ± 0.058, R2 ")
    assert "recommended: 4" in svg
    assert "mean alone" in svg
    assert "Note: worked from the columns." in words(curve_html())


def test_nothing_runs_and_nothing_is_loaded():
    for tag, attributes in Outline(curve_html()).tags:
        assert tag not in ("script", "style", "link", "img", "iframe")
        assert not {"class", "id", "src", "href"} & set(attributes), (tag, attributes)
        assert not [name for name in attributes if name.startswith("on")]
    assert "<script>document" not in curve_html()
    assert "<script>document.title='pwned'</script>" in words(curve_html()), "a name is text"
    ET.fromstring(curve_html())  # well formed


@pytest.mark.parametrize(
    "curve",
    [
        make_curve(rows=40, noise=8, seed=0),
        make_curve(sizes=[3], columns=5, planted=3),
        make_curve(noise=0.05, names=plain_names(24)),
    ],
    ids=["nothing", "one size", "log"],
)
def test_every_curve_has_a_picture(curve):
    html = curve._repr_html_()
    ET.fromstring(html)
    assert not re.search(r"\b(nan|inf)\b", html)


def test_a_trace_shows_what_it_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 9))
    names = [f"<i>{j}" for j in range(9)]
    problem = SubsetProblem(X, 2 * X[:, 1] - X[:, 4] + 0.1 * rng.normal(size=40), names=names)
    trace = anneal(problem, 2, chains=4)
    html = trace._repr_html_()
    ET.fromstring(html)
    assert words(html).startswith("The best 2 columns found. 100 % of 4 chains found these columns; energy ")
    cells = re.findall(r"<td[^>]*>(.*?)</td>", html)
    assert cells[0::2] == ["&lt;i&gt;1", "&lt;i&gt;4", "(constant)"]
    np.testing.assert_allclose([float(c) for c in cells[1::2]], [*trace.best_coef, trace.best_intercept], rtol=1e-3)
    few = dataclasses.replace(trace, energies=np.array([trace.best_energy, *[2 * trace.best_energy] * 3]))
    assert "25 % of 4 chains found these columns: more chains" in words(few._repr_html_())


def test_words_that_are_no_names_are_escaped_too():
    html = notebook._sentence("class <i>" + named(["<b>"]))
    assert words(f"<p>{html}</p>") == "class <i><b>"
