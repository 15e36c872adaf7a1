"""Probabilities as figures, on the page, in notebooks and in files."""

import dataclasses
import json

import numpy as np
import pytest

from _cli import assert_refused, invoke, planted, without_figures, write_csv
from _curves import make_curve
from _curves import odd_problem as problem
from _errors import sentence_of
from _page import Outline
from pairflip import (
    Posterior,
    SizeCurve,
    SubsetProblem,
    figures,
    posterior,
    sample,
    select_size,
    temper,
    write_report,
)
from pairflip.report.figures_by_column import disagreement
from pairflip.report.numbers import inclusion_bars, probability_bars
from pairflip.report.page import render
from pairflip.selection import with_posterior


@pytest.fixture(scope="module")
def drawn():
    return sample(problem(), 3, sweeps=200)


@pytest.fixture(scope="module")
def weighed():
    return posterior(problem(always=[1]))


@pytest.fixture(scope="module")
def curve(weighed):
    found = select_size(problem(always=[1]), [1, 2, 3], 5, effort="quick", stability=5)
    return with_posterior(found, weighed)


# Numbers --------------------------------------------------------------------------------------------------------------


def test_the_most_probable_columns_come_first_and_the_prior_is_that_of_the_question(drawn, weighed):
    bars = inclusion_bars(drawn, limit=5)
    order = np.argsort(-drawn.inclusion_probability, kind="stable")[:5]
    np.testing.assert_array_equal(bars.columns, order)
    np.testing.assert_array_equal(bars.probability, drawn.inclusion_probability[order])
    assert bars.prior == 3 / 13
    assert bars.cut == "5 of 13 columns"
    bars = inclusion_bars(weighed)
    assert 1 not in bars.columns  # always in: nothing is asked of it
    assert bars.prior == pytest.approx(0.5)  # all sizes alike
    assert bars.cut == "all 12 columns"


@pytest.mark.parametrize(
    ("prior", "sizes", "expected"),
    [("uniform", None, 0.5), (0.2, None, 0.2), ((1.0, 4.0), None, 0.2), ("beta-binomial", range(3), 1 / 12)],
)
def test_the_prior_probability_of_a_column(prior, sizes, expected):
    assert posterior(problem(12), prior=prior, sizes=sizes).prior.inclusion == pytest.approx(expected, rel=1e-3)


# Drawings -------------------------------------------------------------------------------------------------------------


def test_figures_of_records(drawn, weighed):
    from matplotlib.figure import Figure

    given = Figure().add_subplot()
    assert figures.plot_inclusion(drawn, given, limit=4) is given
    labels = [text.get_text() for text in given.get_legend().get_texts()]
    assert "before the data: 23 %" in labels
    assert "± Monte Carlo error" in labels
    ax = weighed.plot(Figure().add_subplot())
    assert "± Monte Carlo error" not in [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(ax.get_yticklabels()) == 12


@pytest.mark.parametrize("record", ["drawn", "weighed"])
def test_records_in_a_notebook_escape_names(record, request):
    html = request.getfixturevalue(record)._repr_html_()
    outline = Outline(html)
    assert not outline.open
    assert "<script>" not in html
    assert not outline.all("script")
    assert "".join(outline.text).count("same name [6]") >= 1


# The page and the files -----------------------------------------------------------------------------------------------


def test_the_page_has_both_numbers_and_what_they_are_conditional_on(curve, weighed):
    outline = Outline(render(curve))
    text = " ".join(" ".join(outline.text).split())
    assert "How probable it is that a column belongs in the model" in text
    assert weighed.assumptions in text
    assert "how often this procedure would choose it again" in text
    bars = probability_bars(curve, 2)
    assert bars.trials == "10 half-samples"
    for column in curve.supports[curve.at(2)]:
        assert column in bars.columns
    assert "Selected in half-samples" in text


def test_strong_disagreement_is_said(curve):
    bars = probability_bars(curve, 2)
    high = dataclasses.replace(bars, probability=np.full(12, 0.1), frequency=np.where(np.arange(12) == 0, 0.9, 0.0))
    assert "Often selected, and yet not probable: “" in disagreement(curve, high)
    assert "(selected in 90 %, probability 10 %)" in disagreement(curve, high)
    low = dataclasses.replace(bars, probability=np.full(12, 0.95), frequency=np.full(12, 0.1))
    told = disagreement(curve, low)
    assert "seldom selected" in told
    assert "and 7 more" in told
    assert disagreement(curve, dataclasses.replace(bars, frequency=bars.probability)) == ""


def test_without_half_samples_folds_are_shown(curve):
    bars = probability_bars(dataclasses.replace(curve, stability=None), 3)
    assert bars.trials == "5 folds"
    np.testing.assert_array_equal(bars.frequency, curve.selection_counts[curve.at(3), bars.columns] / 5)


def test_a_saved_curve_keeps_them(curve, tmp_path):
    curve.save(tmp_path / "curve.json")
    again = SizeCurve.load(tmp_path / "curve.json")
    for name, value in vars(curve.inclusion).items():
        np.testing.assert_array_equal(getattr(again.inclusion, name), value)
    assert again.inclusion.columns.dtype == np.int64
    assert probability_bars(again, 2).labels == probability_bars(curve, 2).labels


def test_a_posterior_of_other_data_is_refused(curve, tmp_path):
    other = posterior(problem(always=[1], m=39))
    told = sentence_of(ValueError, lambda: write_report(curve, tmp_path / "r.html", posterior=other))
    assert "other data, forced columns or centring than the curve" in told
    assert sentence_of(ValueError, lambda: with_posterior(curve, posterior(problem(always=[2])))) == told
    assert not list(tmp_path.iterdir())
    assert "no probabilities" in sentence_of(ValueError, lambda: probability_bars(make_curve(), 3))
    assert isinstance(other, Posterior)


def test_select_shows_and_keeps_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    without_figures(monkeypatch)
    y, X = planted()
    write_csv("t.csv", ["y", *"abcdef"], np.column_stack([y, X]).tolist())
    words = ["select", "t.csv", "--target", "y", "--sizes", "1-2", "--effort", "quick", "--stability", "2", "--cv", "5"]
    done = invoke(*words, "--posterior", "--out", "o")
    assert done.exit_code == 0, done.stderr
    page = (tmp_path / "o" / "report.html").read_text()
    assert "Table: probabilities and selection" in page
    lines = (tmp_path / "o" / "inclusion.csv").read_text().splitlines()
    assert len(lines) == 7
    expected = posterior(SubsetProblem(X, y, names=list("abcdef"))).inclusion_probability
    found = json.loads((tmp_path / "o" / "result.json").read_text())["inclusion"]
    np.testing.assert_allclose(found["probability"], expected, rtol=1e-12)
    assert "posterior = true" in (tmp_path / "o" / "run.toml").read_text()
    assert invoke("report", "o", "--out", "again.html").exit_code == 0
    assert (tmp_path / "again.html").read_text() == page
    assert_refused(invoke(*words, "--posterior", "--ridge", "1", "--out", "p"), "the problem has a ridge")
    assert not (tmp_path / "p").exists()


# ArviZ ----------------------------------------------------------------------------------------------------------------


def test_arviz_reads_the_draws():
    arviz = pytest.importorskip("arviz", reason="arviz is not installed")
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 30))
    given = SubsetProblem(X, X[:, 0] - X[:, 1] + rng.normal(size=60), names=["a", "a", *(f"x{j}" for j in range(28))])
    for found in (
        sample(given, 3, sweeps=300, chains=4, first_chain=2),
        temper(given, 3, sweeps=300, chains=4),
        posterior(given, method="sample", sweeps=300, chains=4),
    ):
        tree = found.to_datatree()
        # ArviZ 0 has a tree of its own.
        data = arviz.InferenceData.from_datatree(tree) if hasattr(arviz, "InferenceData") else tree
        rhat, ess = arviz.rhat(data), arviz.ess(data)
        assert float(rhat["energy"]) < 1.1
        assert 100 < float(ess["energy"]) <= 2000
        assert 100 < float(ess["included"].sel(column="x26")) <= 2000
        table = arviz.summary(data)
        indicators = [name for name in table.index if name.startswith("included[")]
        assert indicators[:2] == ["included[a [0]]", "included[a [1]]"]
        assert len(indicators) == 20
        means = tree["posterior"]["included"].mean(("chain", "draw")).values
        np.testing.assert_allclose(means, np.sort(found.inclusion_probability)[::-1][:20], atol=1e-12)
    assert sample(given, 3, sweeps=20, first_chain=2).to_datatree()["posterior"]["chain"].values.tolist() == [
        2,
        3,
        4,
        5,
    ]
