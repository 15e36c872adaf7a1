"""The report as text: self-contained, escaped, complete, small, honest."""

import dataclasses
import json
import os
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from _curves import ODD, make_curve, plain_names, unannealed
from _errors import sentence_of
from pairflip.crossval.answer import answer_of
from pairflip.report import write_report
from pairflip.report.page import render

CURVE = make_curve()
PAGE = render(CURVE, target="y", title="A title")
VOID = {"meta", "input", "br"}


class Outline(HTMLParser):
    """Tags with attributes, text outside scripts, and whether every element that opens also closes."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text, self.open, self.scripts = [], [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        inside = self.open[-1] if self.open else ""
        (self.scripts if inside in ("script", "style") else self.text).append(data)

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


OUTLINE = Outline(PAGE)
TEXT = " ".join(" ".join(OUTLINE.text).split())


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_every_element_closes_and_ids_are_unique():
    assert OUTLINE.open == []
    ids = [attrs["id"] for _, attrs in OUTLINE.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    for _, attrs in OUTLINE.tags:
        for key in ("for", "aria-labelledby"):
            assert attrs.get(key) is None or attrs[key] in ids


def test_nothing_is_loaded_from_elsewhere():
    for tag, attrs in OUTLINE.tags:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base")
        assert not {"src", "srcset", "style", "onclick", "onload", "onerror"} & set(attrs), (tag, attrs)
        assert attrs.get("href", "#").startswith("#")
    assert not re.search(r"https?://|//[a-z]+\.|@import|url\(", PAGE)
    policy = next(a["content"] for a in OUTLINE.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_odd_names_are_text():
    assert [a.get("type") for a in OUTLINE.all("script")] == ["application/json", None]
    assert PAGE.count("<script") == 2
    assert "<img" not in PAGE
    assert "49 " not in re.findall(r"\S* \{% raw %\}", TEXT)
    for name in (ODD[0], ODD[1], ODD[2], "two↵lines and a tab", ODD[8], "same name [6]", "same name [7]", "(no name)"):
        assert name in TEXT, name
    data = data_of(PAGE)
    rows = [row[0] for table in data["tables"] for row in table["columns"]]
    assert ODD[0] in rows
    assert ODD[4] in rows
    for character in "<>&":
        assert character not in re.search(r'id="data">(.*?)</script>', PAGE, re.DOTALL)[1]


def test_a_long_name_is_whole_in_the_table_of_columns():
    supports = tuple(np.arange(k) for k in range(1, 9))
    page = render(dataclasses.replace(CURVE, supports=supports))
    rows = [row[0] for row in data_of(page)["tables"][-1]["columns"]]
    assert ODD[5] in rows


def test_the_issue_list_is_there():
    for head in (
        "The answer",
        "Two warnings",
        "How many columns",
        "Which columns",
        "Correlated stand-ins",
        "How often each column was selected",
        "How coefficients change with size",
        "Held-out predictions",
        "The search",
        "What was done",
    ):
        assert head in TEXT
    assert "does not identify the true support" in TEXT
    assert "must not be used to choose the size" in TEXT
    for fact in (
        CURVE.data_hash,
        "0.1.0",
        "numba",
        "12.3 s",
        "schedule.steps",
        "AIC",
        "EBIC",
        "worked from the columns",
    ):
        assert fact in TEXT


def test_figures_have_text_alternatives_and_tables():
    charts = [a for a in OUTLINE.all("svg") if a.get("role") == "img"]
    assert len(charts) == 10  # three in two widths, two pairs
    assert all(len(a["aria-label"]) > 40 for a in charts)
    assert all(a.get("aria-hidden") == "true" for a in OUTLINE.all("svg") if a.get("role") != "img")
    assert PAGE.count("<details") == PAGE.count("<summary") == 5
    assert len(OUTLINE.all("figure")) == len(OUTLINE.all("figcaption")) == 5


def test_the_slider_is_a_labelled_range_with_a_live_output():
    (slider,) = OUTLINE.all("input")
    assert slider["type"] == "range"
    assert {"for": "size"} in OUTLINE.all("label")
    assert OUTLINE.all("output")[0]["aria-live"] == "polite"
    assert int(slider["value"]) == CURVE.sizes.tolist().index(CURVE.best_size)


def test_tables_of_every_size_hold_the_final_fits():
    for at, table in enumerate(data_of(PAGE)["tables"]):
        rows = table["columns"]
        assert len(rows) == CURVE.sizes[at] + 1
        got = sorted(float(row[1]) for row in rows[:-1])
        np.testing.assert_allclose(got, np.sort(CURVE.coefs[at]), rtol=1e-3)
        assert rows[-1][0] == "(constant)"


@pytest.mark.parametrize(
    "changes",
    [
        {"cv_error_se": np.where(CURVE.sizes == CURVE.best_size, CURVE.cv_error_se, np.nan)},
        {"aic": np.full(8, -np.inf), "bic": np.full(8, np.nan)},
        {"agreement": np.full(8, np.nan), "final_agreement": np.full(8, np.nan)},
        {"predictions": np.where(np.arange(60) == 3, np.nan, CURVE.predictions)},
        {"observed": np.ones(60), "predictions": np.ones((8, 60))},
    ],
    ids=["se", "criteria", "agreement", "prediction", "constant target"],
)
def test_no_nan_reaches_the_reader(changes):
    page = render(dataclasses.replace(CURVE, **changes))
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
def test_the_page_stays_small(options, limit):
    curve = make_curve(names=plain_names(options["columns"]), **options)
    assert len(render(curve).encode()) < limit


def test_the_same_curve_gives_the_same_page():
    assert render(CURVE, target="y", title="A title") == PAGE


def test_one_size_no_annealing_and_forced_columns():
    one = make_curve(sizes=[3], columns=5, planted=3)
    page = render(unannealed(dataclasses.replace(one, always=np.array([4]), always_coefs=np.array([[1.5]]))))
    text = " ".join(Outline(page).text)
    assert "No size needed annealing" in text
    assert "Always in the model" in text
    assert data_of(page)["tables"][0]["columns"][-2][1:] == ["1.5", "always in"]
    assert "disabled" in page


def test_what_was_dropped_and_extra_facts_are_listed():
    dropped = ["3 rows with missing values", ("a <b>", "text column"), *(f"column {j}" for j in range(400))]
    text = " ".join(
        Outline(render(CURVE, dropped=dropped, command="pairflip select 'a b.csv'", extra={"numpy": "2"})).text
    )
    for part in ("3 rows with missing values", "a <b>", "text column", "and 202 more", "pairflip select 'a b.csv'"):
        assert part in text


def test_long_settings_are_cut_and_say_so():
    long = dataclasses.replace(CURVE, settings={"betas": [3.5999999999999996 * 4**i for i in range(40)], "cv": "loo"})
    assert re.search(r"\[3\.6, 14\.4, 57\.6, …, \S+\] \(40 values\)", " ".join(Outline(render(long)).text))


def test_the_answer_is_two_sentences_with_the_numbers():
    answer = answer_of(CURVE)
    assert answer.text.startswith("Keep 4 columns: “<script>")
    assert "87 % of the variance" in answer.text
    assert "59 of 60 folds" in answer.text
    assert answer.sure == "fairly"


def test_the_answer_names_both_sizes_when_they_differ():
    curve = make_curve(columns=60, rows=100, sizes=range(1, 9), names=plain_names(60), noise=2.5)
    assert curve.one_se_size < curve.best_size
    assert "within one standard error" in answer_of(curve).text


def test_the_answer_is_honest_when_unsure():
    nothing = answer_of(make_curve(rows=40, noise=8, seed=3))
    assert nothing.text.startswith("No set of columns predicts the target")
    assert nothing.sure == "not"
    edge = answer_of(make_curve(sizes=[1, 2]))
    assert any("largest size tried (2)" in c for c in edge.cautions)
    shaky = dataclasses.replace(CURVE, fold_supports=tuple(f * 0 for f in CURVE.fold_supports))
    assert any("0 of 60 folds" in c for c in answer_of(shaky).cautions)
    hard = dataclasses.replace(CURVE, final_agreement=np.zeros(8))
    assert any(c.startswith("The search is hard: only 0 of ") for c in answer_of(hard).cautions)


def test_many_names_are_counted_in_the_answer():
    curve = make_curve(columns=40, sizes=[12], names=plain_names(40))
    assert "and 5 more" in answer_of(curve).text


def test_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    assert write_report(CURVE, path) == path
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    message = sentence_of(OSError, lambda: write_report(CURVE, path, title="other"))
    assert "No space left" in message
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_missing_is_one_sentence(tmp_path):
    message = sentence_of(OSError, lambda: write_report(CURVE, tmp_path / "no" / "r.html"))
    assert message.startswith("Cannot write the report")
    message = sentence_of(OSError, lambda: write_report(CURVE, tmp_path))
    assert "Cannot write the report" in message
    assert list(tmp_path.iterdir()) == []
