"""The command line with three classes and with survival times: select, predict, fit, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from _cli import invoke
from pairflip import SizeCurve
from pairflip.selection.criteria import concordance

QUICK = ["--cv", "4", "--sizes", "1-2", "--effort", "quick", "--stability", "0", "--ridge", "1e-2"]
SURVIVAL = ["--loss", "cox", "--time", "weeks", "--event", "relapse"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tables that columns b (and d) tell about, and their results."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 5))
    table = pd.DataFrame(X, columns=list("abcde"))
    species = np.array(["<i>gentoo", "adelie", "chinstrap"])[
        np.searchsorted([-0.5, 0.5], X[:, 1] + 0.3 * rng.normal(size=120))
    ]
    table.assign(species=species).to_csv(folder / "penguins.csv", index=False)
    time, end = rng.exponential(np.exp(X[:, 1] - X[:, 3])), rng.exponential(3.0, 120)
    known = {"weeks": np.minimum(time, end).round(2), "relapse": (time <= end).astype(int)}
    table.assign(**known).to_csv(folder / "patients.csv", index=False)
    for name, options in (("penguins", ["-t", "species"]), ("patients", SURVIVAL)):
        done = invoke("select", str(folder / f"{name}.csv"), *options, *QUICK, "--out", str(folder / name))
        assert done.exit_code == 0, done.stderr
        if name == "penguins":
            assert "text of 3 kinds" in done.stderr
            assert "--loss multinomial" in done.stderr
    return folder


def rows_of(folder: Path, name: str) -> dict[str, Any]:
    done = invoke("predict", str(folder / name), str(folder / f"{name}.csv"), "--json")
    assert done.exit_code == 0, done.stderr
    record: dict[str, Any] = json.loads(done.stdout)
    return record


def test_three_classes_are_chosen_and_predicted(folder: Path) -> None:
    record = json.loads((folder / "penguins" / "result.json").read_text())
    assert record["settings"]["loss"] == "multinomial"
    assert record["verdict"]["columns"] == ["b"]
    assert 0 < record["verdict"]["misclassified"] < record["verdict"]["majority"]
    assert "auc" not in record["verdict"]
    told, table = rows_of(folder, "penguins"), pd.read_csv(folder / "penguins.csv")
    labels = ["<i>gentoo", "adelie", "chinstrap"]
    p = np.array([[row[label] for label in labels] for row in told["rows"]])
    np.testing.assert_allclose(p, SizeCurve.load(folder / "penguins" / "result.json").predict(table))
    called = np.array([row["class"] for row in told["rows"]])
    np.testing.assert_array_equal(called, np.array(labels)[p.argmax(axis=1)])
    assert told["comparison"]["wrong"] == pytest.approx(np.mean(called != table["species"]))
    assert "<i>gentoo" not in (folder / "penguins" / "report.html").read_text()


def test_survival_times_are_chosen_and_predicted(folder: Path) -> None:
    record = json.loads((folder / "patients" / "result.json").read_text())
    assert record["verdict"]["columns"] == ["b", "d"]
    assert 0.6 < record["verdict"]["concordance"] < 1
    told, table = rows_of(folder, "patients"), pd.read_csv(folder / "patients.csv")
    risk = np.array([row["prediction"] for row in told["rows"]])
    np.testing.assert_allclose(risk, SizeCurve.load(folder / "patients" / "result.json").predict(table))
    assert np.log(risk).mean() == pytest.approx(0.0, abs=1e-9)
    ours = concordance(table[["weeks", "relapse"]].to_numpy(float), risk, np.ones(120))
    assert told["comparison"]["concordance"] == pytest.approx(ours)


def test_fits_of_one_size(folder: Path) -> None:
    done = invoke("fit", str(folder / "penguins.csv"), "-t", "species", "-k", "1", "--json")
    record = json.loads(done.stdout)
    assert record["columns"] == ["b"]
    assert np.shape(record["coefficients"]) == (1, 3)
    done = invoke("fit", str(folder / "patients.csv"), *SURVIVAL, "-k", "2")
    assert done.exit_code == 0, done.stderr
    assert "hazard ratios" in done.stdout


BAD = {
    "no event": (["--loss", "cox", "--time", "weeks"], "expected --time NAME --event NAME"),
    "another loss": (["-t", "a", "--loss", "poisson", "--time", "weeks"], "expected it with --loss cox only"),
    "a target": (["-t", "a", *SURVIVAL], "expected --time NAME and --event NAME"),
    "no such time": (["--time", "week", "--event", "relapse"], "--time 'week' is not a column"),
    "no such event": (["--time", "weeks", "--event", "relapsed"], "perhaps 'relapse'"),
    "negative times": (["--time", "a", "--event", "relapse"], "expected times of 0 or more"),
    "events of other numbers": (["--time", "weeks", "--event", "b"], "expected 1 (it happened) or 0"),
    "one column twice": (["--time", "weeks", "--event", "weeks"], "two columns"),
    "no constant": ([*SURVIVAL, "--center", "none"], "no constant anyway"),
    "a proof of it": ([*SURVIVAL, "--method", "anneal"], "method asks"),
}


@pytest.mark.parametrize(("options", "words"), BAD.values(), ids=BAD)
def test_bad_input_gets_one_sentence_and_exit_code_2(
    folder: Path, options: list[str], words: str, tmp_path: Path
) -> None:
    done = invoke("select", str(folder / "patients.csv"), *options, *QUICK, "-q", "--out", str(tmp_path / "x"))
    assert done.exit_code == 2
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "x").exists()


def test_events_that_never_happen_are_refused(folder: Path, tmp_path: Path) -> None:
    pd.read_csv(folder / "patients.csv").assign(relapse=0).to_csv(tmp_path / "none.csv", index=False)
    done = invoke("select", str(tmp_path / "none.csv"), *SURVIVAL, *QUICK, "-q", "--out", str(tmp_path / "x"))
    assert done.exit_code == 2
    assert "is 0 in every row" in done.stderr
