"""What is said about a proof: every case in words, numbers never rounded to nothing, names as text."""

import dataclasses
import json
import re
from math import comb
from types import SimpleNamespace

import numpy as np
import pytest

from _curves import ODD, make_curve, plain_names
from _page import words
from pairflip import SubsetProblem, best_subset, prove
from pairflip.report.answer import answer_of
from pairflip.report.notebook import trace_html
from pairflip.report.page import render
from pairflip.report.proof_words import (
    best_rows,
    count_words,
    next_best,
    proof_of,
    proof_record,
    proof_sentence,
    seconds_text,
    worse,
)
from pairflip.search.prove import Proof


def made(supports, energies, *, optimal=True, names=None, candidates=276, **changes):
    """A proof as `prove` returns it, with yy = 100."""
    supports = np.array(supports)
    k = supports.shape[1]
    values = {
        "k": k, "optimal": optimal, "support": supports[0], "energy": float(energies[0]), "supports": supports,
        "energies": np.array(energies, dtype=float), "lower_bound": float(energies[0]), "within": np.zeros(0),
        "counts": np.zeros(0, np.int64), "subsets": comb(candidates, k), "looked": 10, "method": "enumeration",
        "seconds": 0.1, "note": "", "names": names or [f"x{j}" for j in range(candidates)], "yy": 100.0,
    }  # fmt: skip
    return Proof(**(values | changes))


BEST = [[1, 5, 9], [1, 5, 8]]
MANY = [[*range(8)], [*range(7), 9]]
SENTENCES = {
    "the next best": (
        made(BEST, [10.0, 10.21]),
        "Proved: no other 3 columns of these 276 fit better; the next best set is 2.1 % worse: “x8” in place of “x9”.",
    ),
    "only the best was asked for": (made(BEST[:1], [10.0]), "Proved: no other 3 columns of these 276 fit better."),
    "one equal": (
        made([*BEST, [1, 2, 3]], [10.0, 10.0, 12.0]),
        "Proved: no other 3 columns of these 276 fit better; 1 other set fits exactly as well: “x8” in place of “x9”.",
    ),
    "equals, and perhaps more": (
        made([[1], [2], [3], [4], [5]], [10.0] * 5),
        "Proved: no other column of these 276 fits better; at least 4 other columns fit exactly as well: “x2”; “x3”; "
        "“x4”; and 1 more.",
    ),
    "all columns": (
        made([[0, 1, 2]], [10.0], candidates=3, method="all columns"),
        "Proved: there is no other set of 3 columns to choose.",
    ),
    "a perfect fit": (
        made(BEST, [1e-30, 3.0]),
        "Proved: these 3 columns fit the target perfectly, so that nothing can fit better; the next best set leaves an "
        "energy of 3: “x8” in place of “x9”.",
    ),
    "a bound, rounded up": (
        made(BEST, [10.0, 11.0], optimal=False, lower_bound=8.799, note="not enough time"),
        "No proof within the budget of 60 s: a better set could have an energy up to 12.1 % lower.",
    ),
    "a bound that is reached": (
        made(BEST, [10.0, 11.0], optimal=False),
        "No proof within the budget of 60 s of which sets are the best, but no set has a lower energy than the one "
        "found.",
    ),
    "no bound": (
        made(BEST, [10.0, 11.0], optimal=False, lower_bound=0.0, method="none"),
        "No proof within the budget of 60 s: better sets may exist, and no bound better than zero can be given.",
    ),
    "interrupted": (
        made(BEST, [10.0, 11.0], optimal=False, lower_bound=9.0, note="interrupted", seconds=12.3),
        "Interrupted after 12 s, before anything was proved: a better set could have an energy up to 10 % lower.",
    ),
}


@pytest.mark.parametrize(("proof", "sentence"), SENTENCES.values(), ids=SENTENCES)
def test_every_case_in_words(proof, sentence):
    assert proof_sentence(proof, 60.0) == sentence
    assert proof_record(proof, 60.0)["sentence"] == sentence


def test_without_a_budget_none_is_named_and_the_set_shown_is_no_other():
    assert proof_sentence(SENTENCES["no bound"][0]).startswith("No proof: better sets may exist")
    told = proof_sentence(SENTENCES["one equal"][0], chosen=[8, 1, 5])
    assert told.endswith("1 other set fits exactly as well: “x9” in place of “x8”.")


def test_numbers_are_never_rounded_to_nothing():
    shown = {0.0: "0 %", 1e-9: "less than 0.0001 %", 3e-6: "0.0003 %", 0.021: "2.1 %", 1.5: "150 %", np.inf: "–"}
    assert {excess: worse(excess) for excess in shown} == shown
    shown = {0.25: "0.25 s", 60.0: "60 s", 120.0: "2 min", 3600.0: "60 min", 9000.0: "2.5 h", 1e6: "12 days"}
    assert {seconds: seconds_text(seconds) for seconds in shown} == shown


def test_duplicated_columns_are_equals_and_counts_include_them():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 8))
    X[:, 7] = X[:, 2]
    y = X[:, 2] - X[:, 4] + 0.3 * rng.normal(size=40)
    proof = prove(SubsetProblem(X, y), 2, n_best=4, within=(0.0, 5.0))
    assert proof_sentence(proof) == (
        "Proved: no other 2 columns of these 8 fit better; 1 other set fits exactly as well: “x4” and “x7”."
    )
    energies = [SubsetProblem(X, y).fit([i, j]).energy for i in range(8) for j in range(i) if {i, j} != {2, 7}]
    near = int(np.sum(np.array(energies) <= 6.0 * min(energies)))
    assert count_words(proof) == (
        f"Of all 28 sets, the best one included, 2 have an energy within 0 % of the lowest, {near} within 500 %."
    )
    ranks, _, r2, excess, columns = zip(*best_rows(proof), strict=True)
    assert ranks == ("1", "2", "3", "4")
    assert excess[:2] == ("0 %", "0 %")
    assert columns[:2] == ("x2, x4", "x4, x7")
    assert r2[0] == f"{1 - 2 * min(energies) / proof.yy:.4f}"


def test_counts_that_were_not_asked_for_are_not_told():
    assert count_words(made(BEST, [10.0, 11.0])) == ""
    one = made(BEST, [10.0, 11.0], within=np.array([0.05]), counts=np.array([1]))
    assert count_words(one).endswith("sets, the best one included, 1 has an energy within 5 % of the lowest.")
    perfect = made(BEST, [0.0, 3.0])
    record = json.loads(json.dumps(proof_record(perfect), allow_nan=False))
    assert [each["excess"] for each in record["best"]] == [0.0, None], "nothing is left to compare with"
    assert [row[3] for row in best_rows(perfect)] == ["0 %", "–"]


def test_names_are_text_everywhere():
    proof = made([[0, 11], [3, 9]], [10.0, 11.0], names=[*ODD, *(f"x{j}" for j in range(263))])
    sentence, html = proof_sentence(proof), proof._repr_html_()
    assert "two↵lines and a tab" in sentence
    assert not re.search(r"[\x00-\x1f\u202e]", sentence + "".join(row[-1] for row in best_rows(proof)))
    assert "<script" not in html
    assert "<img" not in html
    assert "</script><img src=x onerror=alert(1)>" in words(html)
    assert proof_record(proof)["columns"] == [ODD[0], ODD[11]], "machines get names as they are"


def test_a_trace_says_what_is_proved_of_it():
    rng = np.random.default_rng(0)
    problem = SubsetProblem(rng.normal(size=(30, 6)), rng.normal(size=30))
    trace = best_subset(problem, 2, effort="quick")
    assert trace.proof.optimal
    said = proof_sentence(trace.proof).replace("“", "").replace("”", "")
    assert said in words(trace_html(trace))
    unproved = SimpleNamespace(**{n: getattr(trace, n) for n in dir(trace) if n[:2] != "__"} | {"proof": None})
    assert "Proved" not in words(trace_html(unproved))


def proved_curve(names=None):
    """A curve of nine sizes, of which that with four columns is proved."""
    curve = make_curve(names=names)
    at, n = curve.at(4), len(curve.names)
    best = curve.supports[at]
    others = [np.sort(np.append(best[:-1], j)) for j in np.setdiff1d(np.arange(n), best)[:3]]
    energies = curve.energies[at] * np.array([1.0, 1.02, 1.03, 1.5])
    within = {"within": np.array([0.05]), "counts": np.array([3])}
    proof = made([best, *others], energies, candidates=n, names=["other names"] * n, **within)
    proofs = tuple(proof if size == 4 else None for size in curve.sizes.tolist())
    object.__setattr__(curve, "proved", proofs)
    return curve


def test_the_answer_says_that_the_recommended_columns_are_proved():
    curve = proved_curve(plain_names(24))
    proof = proof_of(curve, 4)
    assert proof.names == curve.names
    assert answer_of(curve).size == 4
    assert f" {proof_sentence(proof)} " in f"{answer_of(curve).text} "
    said = "Proved: no other 4 columns of these 24 fit better; the next best set is 2 % worse: "
    assert said in answer_of(curve).text
    assert proof_of(curve, 3) is proof_of(curve, 0) is proof_of(make_curve(), 4) is None


def test_without_a_proof_the_answer_says_so_and_the_page_lists_no_sets():
    curve = proved_curve()
    unproved = tuple(None if p is None else dataclasses.replace(p, optimal=False) for p in curve.proved)
    object.__setattr__(curve, "proved", unproved)
    for each in (curve, make_curve()):
        assert answer_of(each).bullets[-1][0] == "Not proved"
        assert "Not proved: other sets of 4 columns may fit better." in answer_of(each).text
        assert next_best(each, 4) is None


@pytest.mark.usefixtures("undrawn")
def test_the_page_lists_the_next_best_sets():
    curve = proved_curve()
    page = render(curve)
    assert "The next best sets of 4 columns" in words(page)
    table = re.search(r'<table id="t-next_best".*?</table>', page, re.DOTALL)[0]
    assert table.count('<th scope="row" class="name">') == 4
    text = words(table)
    for cell in ("2 %", "3 %", "50 %"):
        assert f">{cell}<" in table
    assert "<script>" not in table
    assert "<script>document.title='pwned'</script>"[:20] in text
    assert "3 have an energy within 5 % of the lowest." in words(page)
