"""Classes and counts on the command line: labels in words, the result folder, predictions, and bad input."""

import json

import numpy as np
import pandas as pd
import pytest

from _cli import invoke, without_figures
from pairflip import SizeCurve

QUICK = ["--sizes", "1-2", "--cv", "4", "--effort", "quick", "--stability", "0"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """patients.csv, new.csv and the result of a selection in it."""
    place = tmp_path_factory.mktemp("classes")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 5)).round(3)
    table = pd.DataFrame(X, columns=[f"gene {j}" for j in range(5)])
    table["sick"] = np.where(rng.random(100) < 1 / (1 + np.exp(-2 * X[:, 1] + 2 * X[:, 3])), "yes", "no")
    table["visits"] = rng.poisson(np.exp(0.5 * X[:, 2]))
    table["log_time"] = rng.normal(size=100).round(2) * 0.1
    table[:80].to_csv(place / "patients.csv", index=False)
    table[80:].to_csv(place / "new.csv", index=False)
    options = ["--target", "sick", "--drop", "visits", "--drop", "log_time", "--loss", "logistic", *QUICK]
    done = invoke("select", str(place / "patients.csv"), *options, "--out", str(place / "result"))
    assert done.exit_code == 0, done.stderr
    (place / "said.txt").write_text(done.stdout, encoding="utf-8")
    return place


def test_labels_in_words_give_an_answer_about_classes(folder):
    said = (folder / "said.txt").read_text(encoding="utf-8")
    assert "Keep 2 columns: “gene 1” and “gene 3”." in said
    assert "are put into the wrong class" in said
    assert "AUC" in said
    assert "RMSE" not in said
    record = json.loads((folder / "result" / "result.json").read_text(encoding="utf-8"))
    assert record["verdict"]["classes"] == ["no", "yes"]
    assert record["settings"]["loss"] == "logistic"
    page = (folder / "result" / "report.html").read_text(encoding="utf-8")
    assert "Telling the classes apart" in page
    assert "Called yes" in page
    assert "RMSE" not in page
    assert (folder / "result" / "figures" / "classes.svg").is_file()
    assert not (folder / "result" / "figures" / "predictions.svg").exists()


def test_the_settings_give_the_same_result_again(folder, monkeypatch):
    without_figures(monkeypatch)
    again = invoke("select", "--config", str(folder / "result" / "run.toml"), "--out", str(folder / "again"))
    assert again.exit_code == 0, again.stderr
    one, two = (SizeCurve.load(folder / name / "result.json") for name in ("result", "again"))
    np.testing.assert_array_equal(one.predictions, two.predictions)


def test_new_rows_get_a_probability_and_a_class(folder):
    done = invoke("predict", str(folder / "result"), str(folder / "new.csv"), "--json")
    assert done.exit_code == 0, done.stderr
    record = json.loads(done.stdout)
    new = pd.read_csv(folder / "new.csv")
    curve = SizeCurve.load(folder / "result" / "result.json")
    np.testing.assert_allclose([row["prediction"] for row in record["rows"]], curve.predict(new))
    called = np.array([row["class"] for row in record["rows"]])
    np.testing.assert_array_equal(called, np.where(curve.predict(new) > 0.5, "yes", "no"))
    assert record["comparison"]["wrong"] == pytest.approx(np.mean(called != new["sick"]))
    assert "probabilities of 'yes'" in record["remarks"][1]


def test_fit_and_counts_with_an_offset(folder):
    data = str(folder / "patients.csv")
    classes = invoke("fit", data, "-t", "sick", "-k", "2", "--loss", "logistic", "--drop", "visits", "--json")
    record = json.loads(classes.stdout)
    assert record["columns"] == ["gene 1", "gene 3"]
    assert 0 < record["explained_deviance"] < 1
    counts = ["fit", data, "-t", "visits", "-k", "1", "--loss", "poisson", "--drop", "sick", "--offset", "log_time"]
    done = invoke(*counts)
    assert done.exit_code == 0, done.stderr
    assert "of the deviance" in done.stdout
    assert "gene 2" in done.stdout


BAD = {
    "many values": (["-t", "gene 1", "--drop", "sick", "--loss", "logistic"], "expected two classes"),
    "two of many classes": (["-t", "sick", "--loss", "multinomial"], "expected more: --loss logistic takes two"),
    "fractions": (["-t", "gene 1", "--drop", "sick", "--loss", "poisson"], "expected counts"),
    "an offset of numbers": (["-t", "gene 1", "--drop", "sick", "--offset", "log_time"], "--loss poisson only"),
    "no such offset": (["-t", "visits", "--drop", "sick", "--loss", "poisson", "--offset", "time"], "--offset 'time'"),
    "no ridge": (["-t", "sick", "--loss", "logistic", "--ridge", "0"], "ridge is 0 with loss='logistic'"),
    "annealing": (["-t", "sick", "--loss", "logistic", "--method", "anneal"], "method asks"),
    "shuffled targets": (["-t", "sick", "--loss", "logistic", "--null", "3"], "null (--null) is 3"),
}


@pytest.mark.parametrize(("options", "words"), BAD.values(), ids=BAD)
def test_bad_input_gets_one_sentence_and_exit_code_2(folder, options, words, tmp_path):
    done = invoke("select", str(folder / "patients.csv"), *options, *QUICK, "-q", "--out", str(tmp_path / "x"))
    assert done.exit_code == 2
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("command", ["posterior", "compare"])
def test_commands_without_a_loss_advise_what_they_have(folder, command, tmp_path):
    done = invoke(command, str(folder / "patients.csv"), "-t", "sick", "--out", str(tmp_path / "x"))
    assert done.exit_code == 2
    assert done.stderr.endswith(
        "expected numbers: select and fit take classes (--loss logistic or multinomial), other commands numbers such "
        "as 0 and 1.\n"
    )


def test_numbers_are_classes_in_their_order(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3))
    table = pd.DataFrame(X, columns=list("abc")).assign(y=np.where(X[:, 0] + rng.normal(size=40) > 0, 10, 9))
    table.to_csv(tmp_path / "data.csv", index=False)
    np.save(tmp_path / "data.npy", table.to_numpy())
    for name, target in (("data.csv", "y"), ("data.npy", "x3")):
        done = invoke("fit", str(tmp_path / name), "-t", target, "-k", "1", "--loss", "logistic", "--json")
        record = json.loads(done.stdout)
        assert record["classes"] == ["9", "10"]
        assert record["coefficients"][0] > 0
