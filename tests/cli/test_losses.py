"""Classes, counts and survival times on the command line: select, predict and fit."""

import json

import numpy as np
import pandas as pd
import pytest

from _cli import invoke, without_figures
from _page import data_of, text_of
from pairflip import SizeCurve
from pairflip.selection.criteria import concordance

QUICK = ["--cv", "2x4", "--sizes", "1-2", "--effort", "quick", "--stability", "0", "--ridge", "1e-2"]
QUICK += ["--keep", "/^[a-e]$/"]
TARGETS = {
    "sick": ["-t", "sick"],
    "species": ["-t", "species"],
    "weeks": ["--loss", "cox", "--time", "weeks", "--event", "relapse"],
}
SPECIES = ["<i>gentoo", "adelie", "chinstrap"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table that columns b and d tell about, and the result for each target."""
    folder = tmp_path_factory.mktemp("losses")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 5)).round(3)
    time, end = rng.exponential(np.exp(X[:, 1] - X[:, 3])), rng.exponential(3.0, 120)
    table = pd.DataFrame(X, columns=list("abcde")).assign(
        sick=np.where(rng.random(120) < 1 / (1 + np.exp(-2 * X[:, 1] + 2 * X[:, 3])), "yes", "no"),
        species=np.array(SPECIES)[np.searchsorted([-0.5, 0.5], X[:, 1] + 0.3 * rng.normal(size=120))],
        weeks=np.minimum(time, end).round(2),
        relapse=(time <= end).astype(int),
        visits=rng.poisson(np.exp(0.5 * X[:, 2])),
        log_time=rng.normal(size=120).round(2) * 0.1,
        code=np.where(X[:, 0] + rng.normal(size=120) > 0, 10, 9),
    )
    table.to_csv(folder / "t.csv", index=False)
    np.save(folder / "t.npy", table[[*"abcde", "code"]].to_numpy(float))
    with pytest.MonkeyPatch.context() as patch:
        for name, target in TARGETS.items():
            if name != "sick":
                without_figures(patch)
            done = invoke("select", folder / "t.csv", *target, *QUICK, "--out", folder / name)
            assert done.exit_code == 0, done.stderr
            (folder / f"{name}.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
    return folder


def result(folder, name):
    """(record of result.json, curve, what predict says about the same rows)."""
    file = folder / name / "result.json"
    done = invoke("predict", folder / name, folder / "t.csv", "--json")
    assert done.exit_code == 0, done.stderr
    return json.loads(file.read_text(encoding="utf-8")), SizeCurve.load(file), json.loads(done.stdout)


def test_two_classes(folder):
    record, curve, told = result(folder, "sick")
    said, page = (folder / "sick.txt").read_text(), (folder / "sick" / "report.html").read_text(encoding="utf-8")
    assert "Keep 2 columns: “b” and “d”." in said
    for words in ("Wrong class ", "AUC", "text of 2 kinds ('no', 'yes'), taken as classes"):
        assert words in said
    assert "Telling the classes apart" in page
    assert "Called yes" in page
    data = data_of(page)
    cells = [cell for _, *line in data["tables"][data["shown"]]["classes"] for cell in line]
    assert sum(float(cell.partition(" (")[0]) for cell in cells) == pytest.approx(120)  # each row once
    assert "class; numbers of rows are means over 2 predictions of each row" in text_of(page)
    assert "RMSE" not in said + page
    assert (folder / "sick" / "figures" / "classes.svg").is_file()
    assert not (folder / "sick" / "figures" / "predictions.svg").exists()
    assert (record["verdict"]["classes"], record["settings"]["loss"]) == (["no", "yes"], "logistic")
    table = pd.read_csv(folder / "t.csv")
    np.testing.assert_allclose([row["prediction"] for row in told["rows"]], curve.predict(table))
    called = np.array([row["class"] for row in told["rows"]])
    np.testing.assert_array_equal(called, np.where(curve.predict(table) > 0.5, "yes", "no"))
    assert told["comparison"]["wrong"] == pytest.approx(np.mean(called != table["sick"]))
    assert any("probabilities of 'yes'" in remark for remark in told["remarks"])


def test_the_settings_give_the_same_result_again(folder, monkeypatch):
    without_figures(monkeypatch)
    again = invoke("select", "--config", folder / "sick" / "run.toml", "--out", folder / "again")
    assert again.exit_code == 0, again.stderr
    one, two = (SizeCurve.load(folder / name / "result.json") for name in ("sick", "again"))
    np.testing.assert_array_equal(one.predictions, two.predictions)


def test_three_classes(folder):
    record, curve, told = result(folder, "species")
    assert "--loss multinomial" in (folder / "species.txt").read_text()
    assert (record["settings"]["loss"], record["verdict"]["columns"]) == ("multinomial", ["b"])
    assert 0 < record["verdict"]["misclassified"] < record["verdict"]["majority"]
    assert "auc" not in record["verdict"]
    table = pd.read_csv(folder / "t.csv")
    p = np.array([[row[label] for label in SPECIES] for row in told["rows"]])
    np.testing.assert_allclose(p, curve.predict(table))
    called = np.array([row["class"] for row in told["rows"]])
    np.testing.assert_array_equal(called, np.array(SPECIES)[p.argmax(axis=1)])
    assert told["comparison"]["wrong"] == pytest.approx(np.mean(called != table["species"]))
    assert "<i>gentoo" not in (folder / "species" / "report.html").read_text()


def test_survival_times(folder):
    record, curve, told = result(folder, "weeks")
    assert record["verdict"]["columns"] == ["b", "d"]
    assert 0.6 < record["verdict"]["concordance"] < 1
    table = pd.read_csv(folder / "t.csv")
    risk = np.array([row["prediction"] for row in told["rows"]])
    np.testing.assert_allclose(risk, curve.predict(table))
    assert np.log(risk).mean() == pytest.approx(0.0, abs=1e-9)
    ours = concordance(table[["weeks", "relapse"]].to_numpy(float), risk, np.ones(120))
    assert told["comparison"]["concordance"] == pytest.approx(ours)


@pytest.mark.parametrize(
    ("options", "columns", "shape", "words"),
    [
        ([*TARGETS["sick"], "-k", "2"], ["b", "d"], (2,), "log odds of 'yes'"),
        ([*TARGETS["species"], "-k", "1"], ["b"], (1, 3), "of the deviance"),
        ([*TARGETS["weeks"], "-k", "2"], ["b", "d"], (2,), "hazard ratios"),
        (["-t", "visits", "--loss", "poisson", "--offset", "log_time", "-k", "1"], ["c"], (1,), "of the deviance"),
    ],
)
def test_fits_of_one_size(folder, options, columns, shape, words):
    arguments = ["fit", folder / "t.csv", *options, "--keep", "/^[a-e]$/"]
    record = json.loads(invoke(*arguments, "--json").stdout)
    assert (record["columns"], np.shape(record["coefficients"])) == (columns, shape)
    assert 0 < record["explained_deviance"] < 1
    assert words in invoke(*arguments).stdout


@pytest.mark.parametrize(("name", "target"), [("t.csv", "code"), ("t.npy", "x5")])
def test_numbers_are_classes_in_their_order(folder, name, target):
    options = ["--keep", "a,b" if name == "t.csv" else "x0,x1"]
    done = invoke("fit", folder / name, "-t", target, *options, "-k", "1", "--loss", "logistic", "--json")
    record = json.loads(done.stdout)
    assert record["classes"] == ["9", "10"]
    assert record["coefficients"][0] > 0
