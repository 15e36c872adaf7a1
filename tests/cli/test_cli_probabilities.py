"""The folders that `pairflip posterior` and `pairflip sample` leave, and what they refuse."""

import csv
import json

import pytest

from _cli import assert_refused, invoke, small_table, tree
from pairflip.cli.results import FOLDERS


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return small_table(tmp_path / "small.csv")


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_posterior_leaves_a_folder(data, tmp_path):
    shown = invoke("posterior", "small.csv", "-t", "y")
    assert shown.exit_code == 0, shown.stderr
    assert shown.stdout.startswith("2 of 6 columns have a probability of 50 % or more")
    assert "Report: small-posterior/report.html" in shown.stdout
    folder = tmp_path / "small-posterior"
    assert {path.name for path in folder.iterdir()} == FOLDERS["posterior"].files
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "small.csv: which columns belong in a model of y" in page
    record = json.loads((folder / "posterior.json").read_text())
    assert record["run"]["target"] == "y"
    columns, models, sizes = (rows_of(folder / f"{name}.csv") for name in ("inclusion", "models", "sizes"))
    assert [row["column"] for row in columns] == [each["column"] for each in record["columns"]]
    assert json.loads(models[0]["columns"]) == record["models"][0]["columns"] == ["a", "d"]
    assert sum(float(row["probability"]) for row in sizes) == pytest.approx(1.0)
    before = tree(tmp_path)
    assert_refused(invoke("posterior", "small.csv", "-t", "y"), "'small-posterior' exists; add --force")
    assert_refused(invoke("posterior", "small.csv", "-t", "y", "--out", "."), "--out")
    assert_refused(invoke("report", "small-posterior"), "holds no result.json")
    assert tree(tmp_path) == before


def test_sample_leaves_a_folder_that_makes_itself_again(data, tmp_path):
    words = ["sample", "small.csv", "-t", "y", "-k", "2", "--sweeps", "300", "--temper", "--always", "b"]
    shown = invoke(*words, "--out", "one", "--quiet")
    assert shown.exit_code == 0, shown.stderr
    folder = tmp_path / "one"
    names = {"figures", "inclusion.csv", "pairs.csv", "report.html", "run.toml", "sample.json", "sets.csv"}
    assert {path.name for path in folder.iterdir()} == names | {"temperatures.csv"}
    assert [row["column"] for row in rows_of(folder / "inclusion.csv")][:2] == ["a", "d"]
    assert "b" not in [row["column"] for row in rows_of(folder / "inclusion.csv")]
    again = invoke("sample", "--config", "one/run.toml", "--json", "--out", "two.csv")
    assert again.exit_code == 0, again.stderr
    assert (tmp_path / "two.csv").read_text() == (folder / "inclusion.csv").read_text()
    record = json.loads((folder / "sample.json").read_text())
    assert json.loads(again.stdout).items() <= record.items()
    assert_refused(invoke(*words, "--out", "one", "--force", "--journal", "one/work"), "is in the result folder 'one'")
    (folder / "states.csv").touch()  # a folder of version 0.2
    shown = invoke(*words, "--out", "one", "--force")
    assert shown.exit_code == 0, shown.stderr
    assert not (folder / "states.csv").exists()
