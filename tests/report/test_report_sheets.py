"""The pages of probabilities and of sampled sets: what they say, what they doubt, and that names stay text."""

import dataclasses

import numpy as np
import pytest

from _curves import odd_problem as problem
from _errors import sentence_of
from _page import Outline
from pairflip import Samples, posterior, sample, write_report
from pairflip.report.page import render
from pairflip.report.probability_words import model_doubts, model_rates, set_doubts


@pytest.fixture(scope="module")
def weighed():
    return posterior(problem(always=[1]))


@pytest.fixture(scope="module")
def drawn():
    return sample(problem(), 3, sweeps=200)


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


def texts(page):
    return " ".join(" ".join(Outline(page).text).split())


def test_the_page_of_probabilities_has_their_numbers_and_conditions(weighed):
    page = render(weighed, target="y <b>", command="pairflip <posterior>", dropped=["a & b"])
    shown = texts(page)
    assert "<script" not in page
    assert "onerror=alert(1)>" not in page.replace("&gt;", "")
    assert page.count("<svg") == 2
    assert weighed.assumptions in shown
    assert "All 4,096 models were visited" in shown
    assert "y <b>" in shown
    assert "pairflip <posterior>" in shown
    assert "a & b" in shown
    assert "same name [6]" in shown
    assert f"always {weighed.coef_mean[1]:.3f}" in shown


def test_the_page_of_sets_has_their_numbers_and_conditions(drawn):
    page = render(drawn)
    shown = texts(page)
    assert "<script" not in page
    assert page.count("<svg") == 2
    assert "proportional to exp(-beta E(S))" in shown
    assert "each has the probability 23 %" in shown  # 3 of 13
    assert "4 chains of 200 sweeps after 40 that do not count, a draw after every sweep" in shown


def test_a_report_of_every_record_and_a_refusal_of_others(drawn, weighed, tmp_path):
    for record in (drawn, weighed):
        page = write_report(record, tmp_path / "report.html", title="A title").read_text(encoding="utf-8")
        assert "<h1>A title</h1>" in page
    assert "expected a SizeCurve, Posterior, Samples" in sentence_of(TypeError, lambda: write_report(3, "x.html"))
    assert "row_names is given with a Samples" in sentence_of(
        TypeError, lambda: write_report(drawn, "x.html", row_names=["a"])
    )


def test_chains_that_stay_where_they_began_are_doubted():
    found = drawn_at([[0, 1], [0, 1], [0, 2], [0, 1]])
    (doubt,) = set_doubts(found)
    assert "“b” is in 0 % of the draws of one chain and in 100 % of another" in doubt
    assert "--temper" in doubt
    assert set_doubts(drawn_at([[0, 1]] * 4)) == []
    assert "no other can be compared" in set_doubts(drawn_at([[0, 1]]))[0]


def test_walks_that_mix_are_not_doubted(drawn):
    assert set_doubts(drawn) == []
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
