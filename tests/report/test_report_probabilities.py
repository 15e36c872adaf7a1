"""Probabilities as figures, on pages and in files: what is said, what is doubted, and that names stay text."""

import dataclasses
import json

import numpy as np
import pytest

from _cli import assert_refused, invoke, planted, without_figures, write_csv
from _curves import make_curve
from _curves import odd_problem as problem
from _errors import sentence_of
from _page import Outline, text_of, words
from pairflip import Samples, SizeCurve, SubsetProblem, posterior, sample, select_size, temper, write_report
from pairflip.report.figures_by_column import probability_bars
from pairflip.report.page import render
from pairflip.report.probability_words import model_doubts, model_rates, set_doubts
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


# Pages of their own ---------------------------------------------------------------------------------------------------


def test_pages_have_numbers_and_conditions_and_names_as_text(drawn, weighed):
    page = render(weighed, target="y <b>", command="pairflip <posterior>", dropped=["a & b"])
    assert "onerror=alert(1)>" not in page.replace("&gt;", "")
    for text in (
        weighed.assumptions,
        "All 4,096 models were visited",
        "y <b>",
        "pairflip <posterior>",
        "a & b",
        "same name [6]",
        f"always {weighed.coef_mean[1]:.3f}",
    ):
        assert text in text_of(page)
    other = render(drawn)
    for text in (
        "proportional to exp(-beta E(S))",
        "each has the probability 23 %",  # 3 of 13
        "4 chains of 200 sweeps after 40 that do not count, a draw after every sweep",
    ):
        assert text in text_of(other)
    for each in (page, other):
        assert "<script" not in each
        assert each.count("<svg") == 2
    for record in (drawn, weighed):
        html = record._repr_html_()
        assert not Outline(html).open
        assert "<script" not in html
        assert "same name [6]" in words(html)


def test_a_report_of_every_record_and_a_refusal_of_others(drawn, weighed, tmp_path):
    for record in (drawn, weighed):
        page = write_report(record, tmp_path / "report.html", title="A title").read_text(encoding="utf-8")
        assert "<h1>A title</h1>" in page
    assert "expected a SizeCurve, Posterior, Samples" in sentence_of(TypeError, lambda: write_report(3, "x.html"))
    for name in ("row_names", "posterior"):
        told = sentence_of(TypeError, lambda name=name: write_report(drawn, "x.html", **{name: ["a"]}))
        assert f"{name} is given with a Samples" in told


# Doubts ---------------------------------------------------------------------------------------------------------------


def drawn_at(supports, betas=(1.0,), round_trips=(), exchange=()):
    """Samples of 40 draws whose chains stand at these supports (chain, k), at every temperature."""
    supports = np.asarray(supports, dtype=np.int32)
    chains, places = len(supports), len(betas)
    shape = (chains, places, 40, supports.shape[1])
    return Samples(
        k=supports.shape[1], betas=np.array(betas), energies=np.ones(shape[:3]),
        supports=np.broadcast_to(supports[:, None, None], shape), candidates=np.arange(6),
        accepted=np.zeros((chains, places), np.int64), flips=240,
        traded=np.tile(np.array([round(100 * e) for e in exchange], np.int64), (chains, 1)),
        tried=np.full(places - 1, 100), round_trips=np.array(round_trips or [0] * chains),
        chain_numbers=np.arange(chains), sweeps=40, burn_in=8, thin=1, names=list("abcdef"), engine="numba", seed=0,
        seconds=1.0, settings={"rows": 20, "columns": 6, "data": "0"},
    )  # fmt: skip


def test_chains_that_stay_where_they_began_are_doubted(drawn):
    (doubt,) = set_doubts(drawn_at([[0, 1], [0, 1], [0, 2], [0, 1]]))
    assert "“b” is in 0 % of the draws of one chain and in 100 % of another" in doubt
    assert "--temper" in doubt
    assert set_doubts(drawn_at([[0, 1]] * 4)) == set_doubts(drawn) == []
    assert "no other can be compared" in set_doubts(drawn_at([[0, 1]]))[0]
    walked = posterior(problem(), method="sample", sweeps=200)
    assert model_doubts(walked) == []
    assert "of those that flip a pair" in model_rates(walked)
    stuck = dataclasses.replace(walked, draws=np.full((2, 200, 1), -1), inclusion_se=np.full(13, 0.2))
    stuck.draws[0] = 4
    assert "errors go up to ± 20 %" in model_doubts(stuck)[0]
    assert "The chains disagree" in model_doubts(dataclasses.replace(stuck, inclusion_se=np.full(13, 0.01)))[0]


def test_a_ladder_on_which_nobody_climbs_is_doubted():
    ladder = {"supports": [[0, 1]] * 2, "betas": (0.0, 1.0, 2.0)}
    assert set_doubts(drawn_at(**ladder, round_trips=[3, 4], exchange=(0.5, 0.4))) == []
    seldom, stuck = set_doubts(drawn_at(**ladder, round_trips=[0, 4], exchange=(0.5, 0.02)))
    assert "at beta = 1 and 2: in 2 % of the attempts" in seldom
    assert "In 1 of 2 ladders no walker went" in stuck


# Beside a curve -------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("undrawn")
def test_the_page_has_both_numbers_and_what_they_are_conditional_on(curve, weighed):
    text = text_of(render(curve))
    assert "How probable it is that a column belongs in the model" in text
    assert weighed.assumptions in text
    assert "how often this procedure would choose it again" in text
    assert "Selected in half-samples" in text
    bars = probability_bars(curve, 2)
    assert bars.trials == "10 half-samples"
    assert set(curve.supports[curve.at(2)]) <= set(bars.columns)
    folds = probability_bars(dataclasses.replace(curve, stability=None), 3)
    assert folds.trials == "5 folds"
    np.testing.assert_array_equal(folds.frequency, curve.selection_counts[curve.at(3), folds.columns] / 5)


def test_a_saved_curve_keeps_them_and_others_are_refused(curve, tmp_path):
    curve.save(tmp_path / "curve.json")
    again = SizeCurve.load(tmp_path / "curve.json")
    for name, value in vars(curve.inclusion).items():
        np.testing.assert_array_equal(getattr(again.inclusion, name), value)
    assert again.inclusion.columns.dtype == np.int64
    assert probability_bars(again, 2).labels == probability_bars(curve, 2).labels
    other = posterior(problem(always=[1], m=39))
    told = sentence_of(ValueError, lambda: write_report(curve, tmp_path / "r.html", posterior=other))
    assert "other data, forced columns or centring than the curve" in told
    assert sentence_of(ValueError, lambda: with_posterior(curve, posterior(problem(always=[2])))) == told
    assert [path.name for path in tmp_path.iterdir()] == ["curve.json"]
    assert "no probabilities" in sentence_of(ValueError, lambda: probability_bars(make_curve(), 3))


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
        indicators = [name for name in arviz.summary(data).index if name.startswith("included[")]
        assert indicators[:2] == ["included[a [0]]", "included[a [1]]"]
        assert len(indicators) == 20
        means = tree["posterior"]["included"].mean(("chain", "draw")).values
        np.testing.assert_allclose(means, np.sort(found.inclusion_probability)[::-1][:20], atol=1e-12)
    chains = sample(given, 3, sweeps=20, first_chain=2).to_datatree()["posterior"]["chain"].values
    assert chains.tolist() == [2, 3, 4, 5]
