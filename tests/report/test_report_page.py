"""The report as a file: self-contained, escaped, complete, small, written whole."""

import dataclasses
import os
import re

import numpy as np
import pytest

from _curves import ODD, make_curve, plain_names, unannealed
from _errors import sentence_of
from _older_curve import without_size_0
from _page import CURVE, OUTLINE, PAGE, TEXT, Outline, data_of
from pairflip.report import write_report
from pairflip.report.page import render
from pairflip.selection.verdict import recommended_size


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


@pytest.mark.usefixtures("undrawn")
def test_a_long_name_is_whole_in_the_table_of_columns():
    supports = tuple(np.arange(k) for k in range(9))
    page = render(dataclasses.replace(CURVE, supports=supports))
    rows = [row[0] for row in data_of(page)["tables"][-1]["columns"]]
    assert ODD[5] in rows


def test_the_issue_list_is_there():
    for head in (
        "The answer",
        "What this cannot tell",
        "How many columns",
        "Which columns",
        "Correlated stand-ins",
        "How often each column was selected",
        "How coefficients change with size",
        "Held-out predictions",
        "How the search went",
        "What was done",
    ):
        assert head in TEXT
    assert "does not identify the true support" in TEXT
    assert "fixed-support" not in TEXT, "the number it warned of is not on the page"
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
    assert len(charts) == 6 + 4 * CURVE.sizes.size  # three in two widths, two pairs for each size
    assert all(len(a["aria-label"]) > 40 for a in charts)
    assert all(a.get("aria-hidden") == "true" for a in OUTLINE.all("svg") if a.get("role") != "img")
    assert PAGE.count("<details") == PAGE.count("<summary") == 7
    assert [a for a in OUTLINE.all("details") if "open" in a] == [{"open": None}], "only the settings are open"
    assert len(OUTLINE.all("figure")) == len(OUTLINE.all("figcaption")) == 3 + 2 * CURVE.sizes.size
    following = [a for a in OUTLINE.all("figure") if "data-follow" in a]
    assert [a["data-follow"] for a in following if "hidden" not in a] == ["4", "4"], "the size shown, and no other"


def test_the_slider_is_a_labelled_range_with_a_live_output():
    (slider,) = OUTLINE.all("input")
    assert slider["type"] == "range"
    assert {"for": "size"} in OUTLINE.all("label")
    assert OUTLINE.all("output")[0]["aria-live"] == "polite"
    assert int(slider["value"]) == CURVE.sizes.tolist().index(recommended_size(CURVE)) == 4


def test_tables_of_every_size_hold_the_final_fits():
    for at, table in enumerate(data_of(PAGE)["tables"]):
        rows = table["columns"]
        assert len(rows) == CURVE.sizes[at] + 1
        got = sorted(float(row[1]) for row in rows[:-1])
        np.testing.assert_allclose(got, np.sort(CURVE.coefs[at]), rtol=1e-3)
        assert rows[-1][0] == "(constant)"
        decimals = {len(row[1].split(".")[1]) for row in rows if "e" not in row[1]}
        assert len(decimals) <= 1, "numbers of a column can be compared"


SMALL = make_curve(sizes=(1, 4, 7))


@pytest.mark.parametrize(
    "changes",
    [
        {"cv_error_se": np.where(SMALL.sizes == SMALL.best_size, SMALL.cv_error_se, np.nan)},
        {"criteria": {"aic": np.full(4, -np.inf), "bic": np.full(4, np.nan), "ebic": SMALL.ebic}},
        {"agreement": np.full(4, np.nan), "final_agreement": np.full(4, np.nan)},
        {"predictions": np.where((np.arange(60) == 3) & (SMALL.sizes[:, None] == 7), np.nan, SMALL.predictions)},
        {"observed": np.ones(60), "predictions": np.ones((4, 60))},
    ],
    ids=["se", "criteria", "agreement", "prediction", "constant target"],
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


def test_the_same_curve_gives_the_same_page():
    assert render(CURVE, target="y", title="A title") == PAGE


@pytest.mark.usefixtures("undrawn")
def test_one_size_no_annealing_and_forced_columns():
    one = make_curve(sizes=[3], columns=5, planted=3)
    curve = unannealed(dataclasses.replace(one, always=np.array([4]), always_coefs=np.array([[1.25], [1.5]])))
    page = render(curve)
    text = " ".join(Outline(page).text)
    assert "No size needed annealing" in text
    assert "Always in the model" in text
    tables = data_of(page)["tables"]
    assert tables[0]["name"] == "0 columns (forced columns alone)"
    assert [row[2] for row in tables[0]["columns"]] == ["always in", "–"]
    assert float(tables[1]["columns"][-2][1]) == 1.5
    assert "disabled" not in page
    assert " disabled>" in render(without_size_0(curve)), "one size: nothing to slide"


@pytest.mark.usefixtures("undrawn")
def test_what_was_dropped_and_extra_facts_are_listed():
    dropped = ["3 rows with missing values", ("a <b>", "text column"), *(f"column {j}" for j in range(400))]
    text = " ".join(
        Outline(render(CURVE, dropped=dropped, command="pairflip select 'a b.csv'", extra={"numpy": "2"})).text
    )
    for part in ("3 rows with missing values", "a <b>", "text column", "and 202 more", "pairflip select 'a b.csv'"):
        assert part in text


@pytest.mark.usefixtures("undrawn")
def test_long_settings_are_cut_and_say_so():
    long = dataclasses.replace(CURVE, settings={"betas": [3.5999999999999996 * 4**i for i in range(40)], "cv": "loo"})
    assert re.search(r"\[3\.6, 14\.4, 57\.6, …, \S+\] \(40 values\)", " ".join(Outline(render(long)).text))


@pytest.mark.usefixtures("undrawn")
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


@pytest.mark.usefixtures("undrawn")
def test_a_folder_that_is_missing_is_one_sentence(tmp_path):
    message = sentence_of(OSError, lambda: write_report(CURVE, tmp_path / "no" / "r.html"))
    assert message.startswith("Cannot write the report")
    message = sentence_of(OSError, lambda: write_report(CURVE, tmp_path))
    assert "Cannot write the report" in message
    assert list(tmp_path.iterdir()) == []
