"""The report as a file: self-contained, escaped, complete, small, written whole; and what it says."""

import dataclasses
import os
import re
import xml.etree.ElementTree as ET
from functools import cache
from importlib.resources import files

import numpy as np
import pytest

from _curves import ODD, make_curve, plain_names, unannealed
from _errors import sentence_of
from _page import Outline, data_of, text_of, words
from pairflip.report import write_report
from pairflip.report.answer import answer_of
from pairflip.report.page import render
from pairflip.report.vocabulary import pieces
from pairflip.selection.curve import StandIns
from pairflip.selection.decide import held_out

CURVE, SMALL = make_curve(), make_curve(sizes=(1, 4, 7))
NOISE = make_curve(rows=40, noise=8, seed=0, names=plain_names(24))


@cache
def whole_page():
    return render(CURVE, target="y", title="A title")


@cache
def outline():
    return Outline(whole_page())


def changed(**changes):
    return dataclasses.replace(CURVE, **changes)


# The file -------------------------------------------------------------------------------------------------------------


def test_every_element_closes_and_ids_are_unique():
    assert outline().open == []
    ids = [attrs["id"] for _, attrs in outline().tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    for _, attrs in outline().tags:
        for key in ("for", "aria-labelledby"):
            assert attrs.get(key) is None or attrs[key] in ids


def test_nothing_is_loaded_from_elsewhere():
    for tag, attrs in outline().tags:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base")
        assert not {"src", "srcset", "style", "onclick", "onload", "onerror"} & set(attrs), (tag, attrs)
        assert attrs.get("href", "#").startswith("#")
    assert not re.search(r"https?://|//[a-z]+\.|@import|url\(", whole_page())
    policy = next(a["content"] for a in outline().all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_odd_names_are_text():
    assert [a.get("type") for a in outline().all("script")] == ["application/json", None]
    assert whole_page().count("<script") == 2
    assert "<img" not in whole_page()
    for name in (ODD[0], ODD[1], ODD[2], "two↵lines and a tab", ODD[8], "same name [6]", "same name [7]", "(no name)"):
        assert name in text_of(whole_page()), name
    rows = [row[0] for table in data_of(whole_page())["tables"] for row in table["columns"]]
    assert {ODD[0], ODD[4]} <= set(rows)
    for character in "<>&":
        assert character not in re.search(r'id="data">(.*?)</script>', whole_page(), re.DOTALL)[1]


def test_figures_have_text_alternatives_and_tables():
    charts = [a for a in outline().all("svg") if a.get("role") == "img"]
    assert len(charts) == 6 + 4 * CURVE.sizes.size  # three in two widths, two pairs for each size
    assert all(len(a["aria-label"]) > 40 for a in charts)
    assert all(a.get("aria-hidden") == "true" for a in outline().all("svg") if a.get("role") != "img")
    assert whole_page().count("<details") == whole_page().count("<summary") == 14
    assert [a for a in outline().all("details") if "open" in a] == [{"open": None}], "only the settings are open"
    assert len(outline().all("figure")) == len(outline().all("figcaption")) == 3 + 2 * CURVE.sizes.size
    following = [a for a in outline().all("figure") if "data-follow" in a]
    assert [a["data-follow"] for a in following if "hidden" not in a] == ["4", "4"], "the size shown, and no other"
    (slider,) = outline().all("input")
    assert slider["type"] == "range"
    assert int(slider["value"]) == CURVE.sizes.tolist().index(CURVE.answer.size) == 4
    assert {"for": "size"} in outline().all("label")
    assert outline().all("output")[0]["aria-live"] == "polite"


@pytest.mark.parametrize(
    "changes",
    [
        {
            "cv_error_se": np.where(SMALL.sizes == SMALL.best_size, SMALL.cv_error_se, np.nan),
            "criteria": {"aic": np.full(4, -np.inf), "bic": np.full(4, np.nan), "ebic": SMALL.ebic},
            "agreement": np.full(4, np.nan),
            "final_agreement": np.full(4, np.nan),
            "predictions": np.where((np.arange(60) == 3) & (SMALL.sizes[:, None] == 7), np.nan, SMALL.predictions),
        },
        {"observed": np.ones(60), "predictions": np.ones((4, 60))},
    ],
    ids=["many numbers", "constant target"],
)
def test_no_nan_reaches_the_reader(changes):
    page = render(dataclasses.replace(SMALL, **changes))
    outline = Outline(page)
    attributes = " ".join(str(v) for tag, a in outline.tags for v in a.values() if tag != "meta")
    assert not re.search(r"\b(nan|inf)\b", " ".join(outline.text) + attributes, re.IGNORECASE)
    data_of(page)


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({"rows": 74, "columns": 276, "sizes": range(1, 6), "chains": 64}, 500_000),
        ({"rows": 442, "columns": 64, "sizes": range(1, 13), "chains": 64}, 1_200_000),
        ({"rows": 2000, "columns": 4000, "sizes": range(1, 51), "chains": 64, "steps": 100}, 2_000_000),
    ],
    ids=["supernova", "diabetes", "large"],
)
@pytest.mark.slow
def test_the_page_stays_small(options, limit):
    curve = make_curve(names=plain_names(options["columns"]), **options)
    assert len(render(curve).encode()) < limit


@pytest.mark.usefixtures("undrawn")
def test_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    assert write_report(CURVE, path) == path
    before = path.read_bytes()
    assert before.startswith(b"<!DOCTYPE html>")
    for nowhere in (tmp_path / "no" / "r.html", tmp_path):
        message = sentence_of(OSError, lambda nowhere=nowhere: write_report(CURVE, nowhere))
        assert message.startswith("Cannot write the report")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left" in sentence_of(OSError, lambda: write_report(CURVE, path, title="other"))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


# What it says ---------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("undrawn")
def test_the_answer_box_is_that_of_the_answer():
    cautious = changed(agreement=np.full(9, 0.1))
    for curve, mood in ((CURVE, "fairly"), (cautious, "not"), (NOISE, "nothing")):
        answer = answer_of(curve)
        box = re.search(r'<section class="answer[^>]*>.*?</section>', render(curve), re.DOTALL)[0]
        assert f'class="answer {mood}"' in box
        assert answer.mood == mood
        told = words(box).replace("\u00a0%", " %")
        for sentence in (answer.headline, *(text for _, text in answer.bullets + answer.more)):
            assert "".join(text for text, _ in pieces(sentence)) in told
        assert box.count("<li>") == len(answer.bullets) + len(answer.cautions)
        assert box.count("<dt>") == (3 if answer.predicts else 0), "error, R2 and columns; no half-samples"
        assert box.count("<strong>") == 1
    style = (files("pairflip.report") / "style.css").read_text(encoding="utf-8")
    green = re.findall(r"^(\S.*?) \{[^}]*var\(--good-edge\)", style, re.MULTILINE)
    assert green == [".answer.fairly"], "nothing is green but an answer without doubts"


@pytest.mark.usefixtures("undrawn")
def test_where_nothing_predicts_the_page_shows_the_best_columns_tried_and_recommends_none():
    page = render(NOISE)
    data = data_of(page)
    assert data["sizes"][data["shown"]] == NOISE.answer.shown > 0
    assert "recommended" not in " ".join(t["name"] for t in data["tables"])
    assert "(recommended" not in text_of(page)
    none = data["tables"][0]
    assert none["name"] == "0 columns (mean alone)"
    assert none["summary"].startswith("No columns (mean alone). Root mean square error ")
    assert "worse than the mean" not in none["summary"], "the mean is not compared with the mean"
    assert none["no_stand_ins"] == "No columns are chosen at this size."


@pytest.mark.usefixtures("undrawn")
def test_one_size_no_annealing_forced_columns_and_curves_of_version_01():
    one = make_curve(sizes=[3], columns=5, planted=3)
    curve = unannealed(dataclasses.replace(one, always=np.array([4]), always_coefs=np.array([[1.25], [1.5]])))
    page = render(curve)
    assert "No size needed annealing" in text_of(page)
    assert "Always in the model" in text_of(page)
    tables = data_of(page)["tables"]
    assert tables[0]["name"] == "0 columns (forced columns alone)"
    assert [row[2] for row in tables[0]["columns"]] == ["always in", "–"]
    assert float(tables[1]["columns"][-2][1]) == 1.5


def cells(page, table):
    body = re.search(rf'<table id="{table}".*?</table>', page, re.DOTALL)[0]
    return [
        [Outline(c).text[0] if Outline(c).text else "" for c in re.findall(r"<t[hd][^>]*>.*?</t[hd]>", row)]
        for row in re.findall(r"<tr.*?</tr>", body, re.DOTALL)
    ]


@pytest.mark.usefixtures("undrawn")
def test_the_table_of_sizes():
    head, *rows = cells(whole_page(), "t-sizes")
    assert head == ["Size", "RMSE ± SE", "R2", "Unchanged", "Chains agree", "Remarks"]
    assert [row[0] for row in rows] == ["0 (mean alone)", *map(str, range(1, 9))]
    for row, size in zip(rows, CURVE.sizes.tolist(), strict=True):
        errors = held_out(CURVE, size)
        rmse, spread = map(float, row[1].split(" ± "))
        assert rmse == pytest.approx(errors.rmse, abs=6e-4)
        assert spread == pytest.approx(CURVE.cv_error_se[CURVE.at(size)] / errors.rmse, rel=0.02)
        assert float(row[2]) == pytest.approx(errors.r2, abs=6e-3)
    assert len({len(row[1]) for row in rows}) == 1, "the same decimals down the column"
    assert rows[4][5] == "recommended; lowest error; one-SE size"
    assert whole_page().count('<tr class="marked">') == 1
    uncertain = [row[0] for row in rows if "search uncertain" in row[5]]
    assert uncertain == [str(k) for k in CURVE.sizes if k and CURVE.agreement[CURVE.at(k)] < 0.3] == ["8"]
    assert "unchanged when one row is left out" in text_of(whole_page())
    folds = render(changed(n_folds=10, held_out_fold=np.arange(60) % 10))
    assert "unchanged when a fold is left out" in folds
    lowest = re.search(r'<table id="t-criteria".*?</table>', whole_page(), re.DOTALL)[0]
    assert lowest.count("<b>") == 3, "the lowest of each criterion"


@pytest.mark.usefixtures("undrawn")
def test_tables_of_every_size_hold_the_final_fits():
    for at, table in enumerate(data_of(whole_page())["tables"]):
        rows = table["columns"]
        assert len(rows) == CURVE.sizes[at] + 1
        got = sorted(float(row[1]) for row in rows[:-1])
        np.testing.assert_allclose(got, np.sort(CURVE.coefs[at]), rtol=1e-3)
        assert rows[-1][0] == "(constant)"
        decimals = {len(row[1].split(".")[1]) for row in rows if "e" not in row[1]}
        assert len(decimals) <= 1, "numbers of a column can be compared"
    first = render(changed(supports=tuple(np.arange(k) for k in range(9))))
    assert ODD[5] in [row[0] for row in data_of(first)["tables"][-1]["columns"]], "a long name is whole"


# Figures of each size -------------------------------------------------------------------------------------------------


def panels(page, role):
    """Panels of a figure that follows the slider, one for each size."""
    return [ET.fromstring(svg) for svg in re.findall(rf'<svg[^>]*data-role="{role}".*?</svg>', page, re.DOTALL)]


def numbers_in(svg):
    texts = [e.text.replace("−", "-") for e in svg.iter("text")]
    return [float(t) for t in texts if re.fullmatch(r"-?[\d.]+(e[-+]\d+)?", t)]


def test_every_size_has_axes_of_its_own():
    wild = CURVE.predictions.copy()
    wild[8] += 500 * np.sin(np.arange(60))
    page = render(changed(predictions=wild))
    highest = [max(numbers_in(svg)) for svg in panels(page, "predictions-0")]
    assert len(highest) == 9
    assert max(highest[:8]) < 15, "a bad size does not squeeze the others"
    energies = panels(page, "annealing-0")
    assert "not annealed at this size" in [e.text for e in energies[0].iter("text")]
    for svg in energies[1:]:
        assert "best" in [e.text for e in svg.iter("text")]
        assert min(numbers_in(svg)) > 0, "logarithmic"


def test_dots_stand_where_their_numbers_say_and_tips_are_those_of_the_rows():
    """Distances on the page are in the ratio of the numbers, along both axes."""
    (dots,) = [e for e in panels(whole_page(), "predictions-0")[4].iter("path") if "data-tips" in e.attrib]
    at = np.array([list(map(float, m)) for m in re.findall(r"M(\S+) ([\d.]+)h0", dots.get("d"))])
    assert len(at) == 60
    for pixels, values in ((at[:, 0], CURVE.observed), (-at[:, 1], CURVE.predictions[4])):
        slope, start = np.polyfit(values, pixels, 1)
        assert slope > 0
        np.testing.assert_allclose(pixels, slope * values + start, atol=0.11)
    data = data_of(whole_page())
    form, columns = data["tips"][int(dots.get("data-tips"))]
    assert form == "row {0}: observed {1}, predicted {2}, residual {3}"
    names, observed, predicted, _ = (data["columns"][c] for c in columns)
    assert names == [str(row + 1) for row in range(60)]
    np.testing.assert_allclose([float(v) for v in observed], CURVE.observed, rtol=1e-3)
    np.testing.assert_allclose([float(v) for v in predicted], CURVE.predictions[4], rtol=1e-3)
    other = next(e for e in panels(whole_page(), "predictions-1")[4].iter("path") if "data-tips" in e.attrib)
    assert other.get("data-tips") == dots.get("data-tips"), "both panels share their texts"


# Stand-ins and rows ---------------------------------------------------------------------------------------------------


def stand_ins(correlation, names):
    """The texts of one chosen column, 10, whose stand-ins are 8, 9, 11, 12 and 20."""
    curve = make_curve(names=names)
    support, folds = np.array([10]), np.full((60, 1), 10)
    folds[:5], folds[5:7] = 9, 20
    page = render(
        dataclasses.replace(
            curve,
            supports=(curve.supports[0], support, *curve.supports[2:]),
            fold_supports=(curve.fold_supports[0], folds, *curve.fold_supports[2:]),
            stand_ins=StandIns(support, np.array([[9, 11, 8, 12, 20]]), np.array([correlation])),
        )
    )
    return data_of(page)["tables"][1]


@pytest.mark.usefixtures("undrawn")
def test_neighbours_in_a_spectrum_are_one_window():
    nm = [f"{2136 + 2 * j} nm" for j in range(24)]
    assert stand_ins([0.99, 0.98, 0.97, -0.91, 0.85], nm)["stand_ins"] == [
        ["2156 nm", "2152 nm to 2160 nm or wider", "-0.910", "5 of 60"],
        ["2156 nm", "2176 nm", "0.850", "2 of 60"],
    ]
    assert stand_ins([0.9996, 0.95, 0.79, 0.5, 0.81], nm)["stand_ins"] == [
        ["2156 nm", "2154 nm to 2158 nm", "0.950", "5 of 60"],
        ["2156 nm", "2176 nm", "0.810", "2 of 60"],
    ]
    words = [f"{chr(97 + j)} content" for j in range(24)]
    apart = stand_ins([0.9996, 0.95, 0.79, 0.5, 0.81], words)["stand_ins"]
    assert [row[1:3] for row in apart] == [["j content", ">0.999"], ["l content", "0.950"], ["u content", "0.810"]]
    none = stand_ins([0.8, 0.79, -0.8, 0.5, 0.1], plain_names(24))
    assert none["stand_ins"] == []
    assert none["no_stand_ins"] == "None: no other column has a correlation above 0.8 or below -0.8 with a chosen one."
    alone = changed(stand_ins=StandIns(np.arange(0), np.zeros((0, 4), int), np.zeros((0, 4))))
    assert '<div id="some-stand-ins" hidden>' in render(alone)


@pytest.mark.usefixtures("undrawn")
def test_rows_have_their_names_or_numbers_from_1():
    worst = int(np.argmax(np.abs(CURVE.observed - CURVE.predictions[4])))
    data = data_of(whole_page())
    assert data["tables"][4]["predictions"][0][0] == str(worst + 1)
    assert [str(row + 1) for row in range(60)] in data["columns"]
    assert "Row (from 1)" in text_of(whole_page())
    named = render(CURVE, row_names=[f"plant <{row}>" for row in range(60)])
    assert data_of(named)["tables"][4]["predictions"][0][0] == f"plant <{worst}>"
    assert "from 1" not in text_of(named)
    assert "59 names for a table of 60 rows" in sentence_of(ValueError, lambda: render(CURVE, row_names=["a"] * 59))


@pytest.mark.usefixtures("undrawn")
def test_a_row_predicted_several_times_is_listed_once():
    per_row = ("held_out_rows", "held_out_unit", "observed", "weights")
    twice = {name: np.tile(getattr(CURVE, name), 2) for name in per_row}
    shifted = np.hstack([CURVE.predictions, CURVE.predictions + 0.5])
    page = render(changed(predictions=shifted, held_out_fold=np.arange(120), n_folds=120, **twice))
    rows = data_of(page)["tables"][4]["predictions"]
    assert len({row[0] for row in rows}) == len(rows) == 25
    at = int(rows[0][0]) - 1
    assert float(rows[0][2]) == pytest.approx(CURVE.predictions[4, at] + 0.25, abs=6e-4)
    assert "2 times with other folds" in text_of(page)
    assert "mean of the 2 predictions of a row" in text_of(page)
