"""Preprocessing, imputation, powers and products on the command line: what Python gives, and what is refused."""

import csv
import json

import numpy as np
import pandas as pd
import pytest

from _cli import invoke, plain, without_figures
from pairflip import SizeCurve, SubsetProblem, best_subset
from pairflip.preprocessing import MSC, Impute, Products, SavitzkyGolay

SELECT = ["--sizes", "1-3", "--cv", "3", "--stability", "0", "--effort", "quick", "--jobs", "1", "--quiet"]


@pytest.fixture(scope="module")
def economy(tmp_path_factory):
    """120 rows of six numbers with gaps, a category and groups of rows; the target has a product."""
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("economy")
    frame = pd.DataFrame(rng.normal(size=(120, 6)).round(6), columns=["a", "b", "c", "d", "total income", "f"])
    frame["kind"] = rng.choice(["u", "v", "w"], 120)
    product = 2 * frame["a"] + frame["a"] * frame["total income"]
    frame["y"] = product + 3 * (frame["kind"] == "u") + 0.5 * rng.normal(size=120)
    frame["firm"] = np.arange(120) // 2
    for column in ("a", "b", "c", "total income"):
        frame.loc[rng.random(120) < 0.08, column] = np.nan
    frame.loc[[4, 50], "kind"] = None
    frame.loc[[3, 9], "y"] = np.nan
    frame[:100].to_csv(folder / "t.csv", index=False)
    frame[100:].to_csv(folder / "new.csv", index=False)
    return folder


def test_select_and_predict(economy, tmp_path, monkeypatch):
    without_figures(monkeypatch)
    options = ["--impute", "knn", "--interactions", "--categories", "kind", "--groups", "firm"]
    result = invoke("select", economy / "t.csv", "-t", "y", *options, *SELECT, "--out", tmp_path / "out")
    assert result.exit_code == 0, plain(result.output)
    assert "of 3 imputations with noise." in " ".join(plain(result.output).split())
    curve = SizeCurve.load(tmp_path / "out" / "result.json")
    assert curve.n_rows == 98
    assert curve.raw_names == ["a", "b", "c", "d", "total income", "f", "kind=missing", "kind=u", "kind=v"]
    assert {"missing(a)", "a:total income"} <= set(curve.names)
    assert not any("kind=u:" in name or ":missing" in name for name in curve.names)
    assert curve.settings["hierarchy"]["a:total income"] == ["a", "total income"]
    assert curve.facts["imputed"]["of"] == 3

    told = invoke("predict", tmp_path / "out", economy / "new.csv")
    assert told.exit_code == 0, plain(told.output)
    assert "missing values of the new rows were filled in" in told.stderr
    rows = pd.read_csv(economy / "new.csv")
    for level in ("missing", "u", "v"):
        rows[f"kind={level}"] = 1.0 * (rows["kind"].fillna("missing") == level)
    expected = curve.predict(rows[curve.raw_names])
    given = [float(line["prediction"]) for line in csv.DictReader(told.stdout.splitlines())]
    np.testing.assert_allclose(given, expected)


def test_rows_with_gaps_are_not_predicted_without_imputation(tmp_path, monkeypatch):
    without_figures(monkeypatch)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 5)), columns=list("abcde"))
    frame["y"] = frame["a"] - frame["a"].mean() + 0.1 * rng.normal(size=40)
    frame.to_csv(tmp_path / "t.csv", index=False)
    options = ["--preprocess", "standardize", *SELECT, "--out", tmp_path / "out"]
    assert invoke("select", tmp_path / "t.csv", "-t", "y", *options).exit_code == 0
    frame.loc[1, "e"] = np.nan
    frame[:3].to_csv(tmp_path / "new.csv", index=False)
    told = invoke("predict", tmp_path / "out", tmp_path / "new.csv")
    lines = [line["prediction"] for line in csv.DictReader(told.stdout.splitlines())]
    assert [line == "" for line in lines] == [False, True, False]


@pytest.mark.parametrize(
    ("options", "transformer", "hierarchy"),
    [
        (["--preprocess", "msc,savgol:3:2:1"], [MSC(), SavitzkyGolay(3, 2, 1)], None),
        (["--powers", "2"], [Products(2)], True),
        (["--powers", "2", "--no-hierarchy"], [Products(2)], None),
    ],
)
def test_fit_is_that_of_python(options, transformer, hierarchy, tmp_path):
    from sklearn.pipeline import make_pipeline

    rng = np.random.default_rng(1)
    X = rng.uniform(1, 2, (30, 6)) * rng.uniform(0.5, 2.0, (30, 1))
    y = X[:, 1] ** 2 + 0.1 * rng.normal(size=30)
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(y=y)
    frame.to_csv(tmp_path / "t.csv", index=False)
    result = invoke("fit", tmp_path / "t.csv", "-t", "y", "-k", "2", *options, "--json", "--quiet")
    record = json.loads(result.stdout)
    steps = make_pipeline(*transformer)
    problem = SubsetProblem(frame[list("abcdef")], y, preprocess=steps, hierarchy=hierarchy)
    trace = best_subset(problem, 2)
    assert record["columns"] == trace.best_names
    np.testing.assert_allclose(record["energy"], trace.best_energy)


def test_what_is_always_there_is_left_as_it_is(tmp_path):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(30, 5)), columns=["t", *"abcd"])
    frame["y"] = frame["a"] - frame.loc[:, "a":"d"].mean(axis=1) + 5 * frame["t"]
    frame.to_csv(tmp_path / "t.csv", index=False)
    common = [tmp_path / "t.csv", "-t", "y", "-k", "1", "--always", "t", "--json", "--quiet"]
    record = json.loads(invoke("fit", *common, "--preprocess", "centre").stdout)
    assert record["columns"] == ["a"]
    np.testing.assert_allclose([record["always"]["t"], record["coefficients"][0]], [5.0, 1.0])


def test_several_targets_and_weights(tmp_path):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.normal(size=(30, 4)), columns=list("abcd"))
    frame["y"], frame["z"], frame["w"] = frame["a"] + 1, frame["a"] - frame["b"], 1.0
    frame.loc[[1, 2], "a"] = np.nan
    for row, column in enumerate(("y", "z", "w"), 5):
        frame.loc[row, column] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    result = invoke("fit", tmp_path / "t.csv", "-t", "y,z", "--weights", "w", "-k", "1", "--impute", "median", "--json")
    assert result.exit_code == 0, plain(result.output)
    assert "1 row without a target dropped: '6'" in result.stderr
    assert "2 rows without a weight, an event or another target dropped: '7', '8'" in result.stderr
    rest = frame.drop([5, 6, 7])
    problem = SubsetProblem(rest[list("abcd")], rest[["y", "z"]], preprocess=Impute())
    np.testing.assert_allclose(json.loads(result.stdout)["energy"], best_subset(problem, 1).best_energy)


def test_groups_of_columns_are_proved_as_chosen(economy):
    """A proof knows groups by their first columns, a fit has all of them."""
    options = ["--drop", "firm", "--categories", "kind", "--impute", "median", "--powers", "2", "--quiet"]
    said = plain(invoke("fit", economy / "t.csv", "-t", "y", "-k", "2", *options).output)
    assert "kind=u" in said
    assert "Proved" in said
    assert "exactly as well" not in said


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--impute", "mean"], "expected 'median' or 'knn'"),
        (["--impute", "median", "--missing", "drop-rows"], "--impute and --missing drop-rows are both given"),
        (["--impute", "median", "--preprocess", "snx"], "'snx' is not known"),
        (["--impute", "median", "--preprocess", "savgol:11"], "window has 11 columns"),
        (["--impute", "median", "--preprocess", "log:0"], "take a larger shift"),
        (["--powers", "0"], "--powers is 0"),
        ([], "or --impute median"),
        (["--impute", "median", "--powers", "2", "--keep", "a", "--always", "a"], "are for columns of numbers"),
    ],
)
def test_refused(options, says, economy):
    result = invoke("fit", economy / "t.csv", "-t", "y", "-k", "1", "--drop", "kind,firm", "--quiet", *options)
    assert result.exit_code == 2
    assert says in plain(result.output)
