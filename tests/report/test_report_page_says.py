"""What the report says: the answer, the tables, the figures of each size, stand-ins and rows."""

import dataclasses
import re
import xml.etree.ElementTree as ET
from importlib.resources import files

import numpy as np
import pytest

from _curves import make_curve, plain_names
from _errors import sentence_of
from _older_curve import without_size_0
from _page import CURVE, NOISE, PAGE, TEXT, Outline, data_of
from pairflip.report.answer import answer_of
from pairflip.report.page import render
from pairflip.selection.curve import StandIns
from pairflip.selection.verdict import held_out, size_to_show


def section(page, class_):
    return re.search(rf'<section class="{class_}[^>]*>.*?</section>', page, re.DOTALL)[0]


@pytest.mark.usefixtures("undrawn")
def test_the_answer_box_is_that_of_the_answer():
    cautious = dataclasses.replace(CURVE, agreement=np.full(9, 0.1))
    for curve, mood in ((CURVE, "fairly"), (cautious, "not"), (NOISE, "nothing")):
        answer = answer_of(curve)
        box = section(render(curve), "answer")
        assert f'class="answer {mood}"' in box
        assert answer.mood == mood
        words = "".join(Outline(box).text)
        for pieces in (answer.headline, answer.details):
            assert "".join(text for text, _ in pieces) in words
        assert box.count("<li>") == len(answer.cautions)
        assert box.index("<strong>") < box.index("</strong>")
    style = (files("pairflip.report") / "style.css").read_text(encoding="utf-8")
    green = re.findall(r"^(\S.*?) \{[^}]*var\(--good-edge\)", style, re.MULTILINE)
    assert green == [".answer.fairly"], "nothing is green but an answer without doubts"


@pytest.mark.usefixtures("undrawn")
def test_where_nothing_predicts_the_page_shows_the_best_columns_tried_and_recommends_none():
    page = render(NOISE)
    data = data_of(page)
    assert data["sizes"][data["shown"]] == size_to_show(NOISE) > 0
    assert "recommended" not in " ".join(t["name"] for t in data["tables"])
    assert "(recommended" not in " ".join(Outline(page).text)
    assert data["tables"][0]["name"] == "0 columns (mean alone)"
    assert data["tables"][0]["summary"].startswith("No columns (mean alone). Root mean square error ")
    assert "worse than the mean" not in data["tables"][0]["summary"], "the mean is not compared with the mean"
    assert data["tables"][0]["no_stand_ins"] == "No columns are chosen at this size."


@pytest.mark.usefixtures("undrawn")
def test_a_curve_of_version_01_still_has_a_page():
    page = render(without_size_0(CURVE))
    data = data_of(page)
    assert data["sizes"] == list(range(1, 9))
    assert "mean alone" not in " ".join(Outline(page).text)


def cells(page, table):
    body = re.search(rf'<table id="{table}".*?</table>', page, re.DOTALL)[0]
    return [
        [Outline(c).text[0] if Outline(c).text else "" for c in re.findall(r"<t[hd][^>]*>.*?</t[hd]>", row)]
        for row in re.findall(r"<tr.*?</tr>", body, re.DOTALL)
    ]


@pytest.mark.usefixtures("undrawn")
def test_the_table_of_sizes_has_few_columns_and_says_where_the_search_is_uncertain():
    head, *rows = cells(PAGE, "t-sizes")
    assert head == ["Size", "RMSE", "R2", "cv_error ± SE", "Unchanged", "Chains agree", "Remarks"]
    assert [row[0] for row in rows] == ["0 (mean alone)", *map(str, range(1, 9))]
    for row, size in zip(rows, CURVE.sizes.tolist(), strict=True):
        now = held_out(CURVE, size)
        assert float(row[1]) == pytest.approx(now.rmse, abs=6e-4)
        assert float(row[2]) == pytest.approx(now.r2, abs=6e-3)
        assert float(row[3].split(" ± ")[0]) == pytest.approx(CURVE.cv_error[CURVE.at(size)], abs=6e-4)
    assert len({len(row[3]) for row in rows}) == 1, "the same decimals down the column"
    assert rows[4][6] == "recommended; lowest error; one-SE size"
    uncertain = [row[0] for row in rows if "search uncertain" in row[6]]
    assert uncertain == [str(k) for k in CURVE.sizes if k and CURVE.agreement[CURVE.at(k)] < 0.3] == ["8"]
    assert "unchanged when one row is left out" in TEXT
    assert "trustworthy" not in TEXT
    assert "Stability" not in TEXT
    folds = render(dataclasses.replace(CURVE, n_folds=10, held_out_fold=np.arange(60) % 10))
    assert "unchanged when a fold is left out" in folds


def test_diagnostics_of_the_search_are_in_one_closed_section():
    inside = re.search(r'<details class="search">.*?<table id="t-annealing".*?</table>', PAGE, re.DOTALL)[0]
    for word in ("Run-to-run SD", "Energy", "accepted fraction"):
        assert word in inside
        assert word not in PAGE.replace(inside, "").split("<script")[0]


def panels(page, role):
    """Panels of a figure that follows the slider, one for each size."""
    return [ET.fromstring(svg) for svg in re.findall(rf'<svg[^>]*data-role="{role}".*?</svg>', page, re.DOTALL)]


def numbers_in(svg):
    texts = [e.text.replace("−", "-") for e in svg.iter("text")]
    return [float(t) for t in texts if re.fullmatch(r"-?[\d.]+(e[-+]\d+)?", t)]


def test_every_size_has_axes_of_its_own():
    wild = CURVE.predictions.copy()
    wild[8] += 500 * np.sin(np.arange(60))
    page = render(dataclasses.replace(CURVE, predictions=wild))
    highest = [max(numbers_in(svg)) for svg in panels(page, "predictions-0")]
    assert len(highest) == 9
    assert max(highest[:8]) < 15, "a bad size does not squeeze the others"
    energies = panels(page, "annealing-0")
    assert "not annealed at this size" in [e.text for e in energies[0].iter("text")]
    for svg in energies[1:]:
        assert "best" in [e.text for e in svg.iter("text")]
        assert min(numbers_in(svg)) > 0, "logarithmic"


def test_dots_stand_where_their_numbers_say():
    """Distances on the page are in the ratio of the numbers, along both axes."""
    svg = panels(PAGE, "predictions-0")[4]
    (dots,) = [e for e in svg.iter("path") if "data-tips" in e.attrib]
    at = np.array([list(map(float, m)) for m in re.findall(r"M(\S+) ([\d.]+)h0", dots.get("d"))])
    assert len(at) == 60
    for pixels, values in ((at[:, 0], CURVE.observed), (-at[:, 1], CURVE.predictions[4])):
        slope, start = np.polyfit(values, pixels, 1)
        assert slope > 0
        np.testing.assert_allclose(pixels, slope * values + start, atol=0.11)


def test_texts_under_the_pointer_are_those_of_the_rows():
    data = data_of(PAGE)
    dots = next(e for e in panels(PAGE, "predictions-0")[4].iter("path") if "data-tips" in e.attrib)
    form, columns = data["tips"][int(dots.get("data-tips"))]
    assert form == "row {0}: observed {1}, predicted {2}, residual {3}"
    names, observed, predicted, _ = (data["columns"][c] for c in columns)
    assert names == [str(row + 1) for row in range(60)]
    np.testing.assert_allclose([float(v) for v in observed], CURVE.observed, rtol=1e-3)
    np.testing.assert_allclose([float(v) for v in predicted], CURVE.predictions[4], rtol=1e-3)
    other = next(e for e in panels(PAGE, "predictions-1")[4].iter("path") if "data-tips" in e.attrib)
    assert other.get("data-tips") == dots.get("data-tips"), "both panels share their texts"


def spectrum_curve(correlation, names):
    """Column 10 is chosen; its stand-ins are 8, 9, 11, 12 and 20."""
    curve = make_curve(names=names)
    support, folds = np.array([10]), np.full((60, 1), 10)
    folds[:5], folds[5:7] = 9, 20
    known = StandIns(support, np.array([[9, 11, 8, 12, 20]]), np.array([correlation]))
    supports = (curve.supports[0], support, *curve.supports[2:])
    return dataclasses.replace(
        curve,
        supports=supports,
        fold_supports=(curve.fold_supports[0], folds, *curve.fold_supports[2:]),
        stand_ins=known,
    )


def stand_in_rows(curve):
    return data_of(render(curve))["tables"][1]["stand_ins"]


@pytest.mark.usefixtures("undrawn")
def test_neighbours_in_a_spectrum_are_one_window():
    nm = [f"{2136 + 2 * j} nm" for j in range(24)]
    curve = spectrum_curve([0.99, 0.98, 0.97, -0.91, 0.85], nm)
    assert stand_in_rows(curve) == [
        ["2156 nm", "2152 nm to 2160 nm or wider", "-0.910", "5 of 60"],
        ["2156 nm", "2176 nm", "0.850", "2 of 60"],
    ]
    weak = spectrum_curve([0.9996, 0.95, 0.79, 0.5, 0.81], nm)
    assert stand_in_rows(weak) == [
        ["2156 nm", "2154 nm to 2158 nm", "0.950", "5 of 60"],
        ["2156 nm", "2176 nm", "0.810", "2 of 60"],
    ]
    words = [f"{chr(97 + j)} content" for j in range(24)]
    apart = stand_in_rows(spectrum_curve([0.9996, 0.95, 0.79, 0.5, 0.81], words))
    assert [row[1:3] for row in apart] == [["j content", ">0.999"], ["l content", "0.950"], ["u content", "0.810"]]


@pytest.mark.usefixtures("undrawn")
def test_no_stand_ins_is_one_line_and_no_table():
    curve = spectrum_curve([0.8, 0.79, -0.8, 0.5, 0.1], plain_names(24))
    table = data_of(render(curve))["tables"][1]
    assert table["stand_ins"] == []
    assert table["no_stand_ins"] == "None: no other column has a correlation above 0.8 or below -0.8 with a chosen one."
    alone = dataclasses.replace(CURVE, stand_ins=StandIns(np.arange(0), np.zeros((0, 4), int), np.zeros((0, 4))))
    assert '<div id="some-stand-ins" hidden>' in render(alone)


@pytest.mark.usefixtures("undrawn")
def test_rows_have_their_names_or_numbers_from_1():
    worst = int(np.argmax(np.abs(CURVE.observed - CURVE.predictions[4])))
    data = data_of(PAGE)
    assert data["tables"][4]["predictions"][0][0] == str(worst + 1)
    assert [str(row + 1) for row in range(60)] in data["columns"]
    assert "Row (from 1)" in TEXT
    named = render(CURVE, row_names=[f"plant <{row}>" for row in range(60)])
    assert data_of(named)["tables"][4]["predictions"][0][0] == f"plant <{worst}>"
    assert "from 1" not in " ".join(Outline(named).text)
    assert "59 names for a table of 60 rows" in sentence_of(ValueError, lambda: render(CURVE, row_names=["a"] * 59))


@pytest.mark.usefixtures("undrawn")
def test_a_row_predicted_several_times_is_listed_once():
    twice = {
        name: np.tile(getattr(CURVE, name), 2) for name in ("held_out_rows", "held_out_unit", "observed", "weights")
    }
    shifted = np.hstack([CURVE.predictions, CURVE.predictions + 0.5])
    fold = np.concatenate([np.arange(60), 60 + np.arange(60)])
    page = render(dataclasses.replace(CURVE, predictions=shifted, held_out_fold=fold, n_folds=120, **twice))
    rows = data_of(page)["tables"][4]["predictions"]
    assert len({row[0] for row in rows}) == len(rows) == 25
    at = int(rows[0][0]) - 1
    assert float(rows[0][2]) == pytest.approx(CURVE.predictions[4, at] + 0.25, abs=6e-4)
    text = " ".join(" ".join(Outline(page).text).split())
    assert "2 times with other folds" in text
    assert "mean of the 2 predictions of a row" in text
