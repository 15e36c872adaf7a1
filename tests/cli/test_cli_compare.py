"""`pairflip compare`: what it prints, what it writes, and what it refuses."""

import json

import pytest

from _cli import assert_refused, invoke, small_table, without_figures
from pairflip import Comparison
from pairflip.cli.results import FOLDERS
from pairflip.comparison.registry import PEERS

QUICK = ["--target", "y", "--sizes", "1-3", "--cv", "4", "--methods", "quick,omp,pls,amp"]


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return small_table(tmp_path / "data.csv")


def test_it_prints_the_answer_and_writes_a_folder(data, tmp_path, monkeypatch):
    result = invoke("compare", data, *QUICK)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("Lowest error on held-out rows: ")
    assert "pairflip, quick" in result.stdout
    assert "Page: data-compared/compare.html" in result.stdout
    folder = tmp_path / "data-compared"
    assert {path.name for path in folder.iterdir()} == FOLDERS["compare"].files
    found = Comparison.load(folder / "comparison.json")
    assert found["quick"].chosen == 2
    assert "<h2>Error against size</h2>" in (folder / "compare.html").read_text()
    assert_refused(invoke("compare", data, *QUICK), "data-compared", "--force")
    monkeypatch.setattr("pairflip.report.compared.FIGURES", {})  # to spare the time
    again = invoke("compare", data, *QUICK, "--force", "--json")
    assert json.loads(again.stdout)["kind"] == "pairflip comparison"


def test_energies_of_one_method_alone_are_not_drawn(data, tmp_path, monkeypatch):
    without_figures(monkeypatch)
    assert invoke("compare", data, *QUICK[:-1], "quick").exit_code == 0
    folder = tmp_path / "data-compared"
    assert {path.name for path in (folder / "figures").iterdir()} == {"errors.svg", "errors.png"}
    assert "Energy against seconds" not in (folder / "compare.html").read_text()


def test_ctrl_c_shows_what_is_finished(data, monkeypatch):
    def stop(columns, target, sizes):
        raise KeyboardInterrupt

    monkeypatch.setattr("pairflip.report.compared.FIGURES", {})
    monkeypatch.setitem(PEERS, "pls", type(PEERS["omp"])("pls", "PLS", "", find=stop))
    result = invoke("compare", data, *QUICK)
    assert result.exit_code == 130
    assert "not run: interrupted" in result.stdout
    assert "interrupted; the methods that were finished are shown." in result.stderr
