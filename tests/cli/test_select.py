"""`pairflip select` and its relatives: the answer, the files, odd names, weights, groups, shards."""

import csv
import json
import re

import numpy as np
import pandas as pd
import pytest

from _cli import (
    QUICK,
    assert_refused,
    invoke,
    plain,
    planted,
    small_table,
    tree,
    without_figures,
    write_csv,
)
from _page import Outline
from pairflip import SubsetProblem, select_size
from pairflip.selection import SizeCurve
from pairflip.tables import read_table

SIZES = ["--sizes", "1-3", *QUICK]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """One run on a small table: (folder, what it printed)."""
    folder = tmp_path_factory.mktemp("select")
    small_table(folder / "small.csv")
    with pytest.MonkeyPatch.context() as patch:
        without_figures(patch)
        result = invoke("select", folder / "small.csv", "--target", "y", *SIZES, "--out", folder / "out")
    assert result.exit_code == 0, result.stderr
    return folder, result


def test_the_answer_comes_first_then_the_table_then_the_files(done):
    folder, result = done
    lines = result.stdout.splitlines()
    assert lines[:2] == ["Keep 2 columns: “a” and “d”.", ""]
    assert lines[2].startswith("- Prediction: RMSE ")
    assert any(line.split()[:1] == ["2*"] and line.endswith("a, d") for line in lines)
    assert lines[-2:] == [
        f"Report: {folder / 'out' / 'report.html'}",
        f"Tables, figures and settings: {folder / 'out'}",
    ]
    assert result.stderr == ""


def test_the_numbers_are_those_of_select_size(done):
    folder, _ = done
    y, X = planted()
    curve = select_size(SubsetProblem(X, y, names=list("abcdef")), [1, 2, 3], cv="5x10", chains=2)
    out = folder / "out"
    saved = SizeCurve.load(out / "result.json")
    np.testing.assert_array_equal(saved.cv_error, curve.cv_error)
    frame = pd.read_csv(out / "curve.csv")
    np.testing.assert_allclose(frame["cv_error"], curve.cv_error, rtol=1e-12)
    assert json.loads(frame["columns"][2]) == ["a", "d"]
    assert frame["size"].tolist() == [0, 1, 2, 3]
    assert frame["best"].tolist() == [False, False, True, False]
    counts = pd.read_csv(out / "selection_counts.csv")
    assert counts.groupby("size")["folds"].sum().tolist() == [50, 100, 150]
    assert counts.query("size == 2")["column"].tolist()[:2] == ["a", "d"]
    coefs = pd.read_csv(out / "coefficients.csv", keep_default_na=False).query("size == 2")
    assert coefs["kind"].tolist() == ["intercept", "selected", "selected"]
    np.testing.assert_allclose(coefs["coefficient"], [curve.intercepts[2], *curve.coefs[2]], rtol=1e-12)
    held_out = pd.read_csv(out / "predictions.csv")
    assert held_out.groupby(["size", "row"]).size().tolist() == [5] * 24 * 4
    assert sorted(set(held_out["row"])) == list(range(1, 25))  # readers count from 1
    assert sorted(set(held_out["fold"])) == list(range(1, 51))
    np.testing.assert_array_equal(held_out["row"][: saved.held_out_rows.size], saved.held_out_rows + 1)
    error = held_out.assign(e=(held_out["observed"] - held_out["predicted"]) ** 2 / 2).groupby("size")["e"].mean()
    np.testing.assert_allclose(error, curve.cv_error, rtol=1e-9)


def test_result_json_and_the_page_say_where_they_come_from(done):
    folder, _ = done
    record = json.loads((folder / "out" / "result.json").read_text())
    assert record["schema"] == 4
    assert record["verdict"]["predicts"]
    assert record["verdict"]["columns"] == ["a", "d"]
    assert record["verdict"]["size"] == 2
    assert record["verdict"]["headline"] == "Keep 2 columns: “a” and “d”."
    assert 0 < record["verdict"]["rmse"] < record["verdict"]["rmse_without_columns"]
    assert record["table"]["source"] == "small.csv"
    assert record["table"]["target"] == "y"
    assert record["command"].startswith("pairflip select ")
    assert record["run"]["sizes"] == "1-3"
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert "small.csv: which columns predict y" in page
    assert "pairflip select" in page
    table = read_table(folder / "small.csv", "y")
    saved = SizeCurve.load(folder / "out" / "result.json")
    assert table.hash == saved.data_hash == SubsetProblem(table.X, table.y, names=table.names).hash
    assert page.count(table.hash) == 1
    assert len(re.findall(r"\b[0-9a-f]{64}\b", page)) == 1


def test_an_older_result_is_replaced_only_by_force(done, tmp_path, monkeypatch):
    without_figures(monkeypatch)
    folder, _ = done
    out = tmp_path / "out"
    arguments = ["select", folder / "small.csv", "--target", "y", "--sizes", "1", *QUICK, "--out", out]
    assert invoke(*arguments).exit_code == 0
    first = (out / "result.json").read_bytes()
    assert_refused(invoke(*arguments, "--seed", "5"), "exists", "--force")
    assert (out / "result.json").read_bytes() == first
    assert invoke(*arguments, "--seed", "5", "--force").exit_code == 0
    assert json.loads((out / "result.json").read_text())["settings"]["seed"] == 5
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    (out / "notes.txt").write_text("mine")
    before = tree(tmp_path)
    assert_refused(invoke(*arguments, "--force"), "'notes.txt', which pairflip did not write")
    assert tree(tmp_path) == before


def test_report_is_built_again(done, tmp_path, monkeypatch):
    without_figures(monkeypatch)
    folder, _ = done
    page = (folder / "out" / "report.html").read_bytes()
    (folder / "out" / "report.html").unlink()
    result = invoke("report", folder / "out")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == f"Report: {folder / 'out' / 'report.html'}\n"
    assert (folder / "out" / "report.html").read_bytes() == page
    assert invoke("report", folder / "out" / "result.json", "--out", tmp_path / "page.html").exit_code == 0
    assert (tmp_path / "page.html").read_bytes() == page
    assert_refused(invoke("report", folder / "out", "--out", tmp_path / "page.html"), "exists", "--force")
    SizeCurve.load(folder / "out" / "result.json").save(tmp_path / "curve.json")
    assert invoke("report", tmp_path / "curve.json").exit_code == 0
    assert "</html>" in (tmp_path / "report.html").read_text(encoding="utf-8")


ODD = [
    "<script>document.title='pwned'</script>",
    'he said "colour", & left',
    "[bold red]markup[/] :smile:",
    "two\nlines, and\ta tab",
    "température 🌡️ 漢字",
    "long " + "x" * 290 + " name",
    "\x1b]0;pwned\x07\x1b[31mred",
    "back\\slash\rreturn",
    "=1+1",
]


def test_odd_names_through_the_whole_command(tmp_path):
    y, X = planted(columns=len(ODD) + 2)
    path = tmp_path / "odd.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(["<b>target</b>", *ODD, "twice", "twice"])
        writer.writerows(np.column_stack([y, X]).tolist())
    last = str(len(ODD) + 2)
    options = ["--sizes", f"2,{last}", "--cv", "4", "--stability", "1", *QUICK, "--out", tmp_path / "out"]
    result = invoke("select", path, "--target", "<b>target</b>", *options)
    assert result.exit_code == 0, result.stderr
    shown = result.stdout + result.stderr
    assert not {"\x1b", "\x07", "\r"} & set(shown)
    assert ODD[0][:20] in shown
    assert "two\\nlines, and\\ta tab" in shown
    out = tmp_path / "out"
    names = [*ODD, "twice", "twice (2)"]
    options = {"keep_default_na": False, "encoding": "utf-8"}
    safe = ["'=1+1" if name == "=1+1" else name for name in names]  # for spreadsheets
    coefs = pd.read_csv(out / "coefficients.csv", **options)
    assert coefs[coefs["size"] == int(last)]["column"].tolist() == ["", *safe]
    counts = pd.read_csv(out / "selection_counts.csv", **options)
    assert set(counts["column"]) == set(safe)
    frame = pd.read_csv(out / "curve.csv", **options)
    assert json.loads(frame["columns"].iloc[-1]) == names
    assert json.loads((out / "result.json").read_text(encoding="utf-8"))["names"] == names
    page = Outline((out / "report.html").read_text(encoding="utf-8"))
    assert len(page.all("script")) == 2  # data and code of our own
    assert "<script>document.title" in "".join(page.text)
    stems = {"size_curve", "half_samples", "selection_counts", "paths", "predictions", "annealing"}
    assert {path.name for path in (out / "figures").iterdir()} == {
        f"{s}.{kind}" for s in stems for kind in ("svg", "png")
    }
    for svg in (out / "figures").glob("*.svg"):
        assert "<script" not in svg.read_text(encoding="utf-8")
    fitted = invoke("fit", path, "--target", "<b>target</b>", "--k", "2", *QUICK, "--out", tmp_path / "fit.csv")
    assert fitted.exit_code == 0, fitted.stderr
    assert "\x1b" not in fitted.stdout
    assert pd.read_csv(tmp_path / "fit.csv", **options)["column"].tolist() == ["", ODD[0], ODD[3]]


def test_what_was_left_out_is_said_and_kept(tmp_path, monkeypatch):
    without_figures(monkeypatch)
    y, X = planted()
    rows = [[f"s{i}", "text", *row] for i, row in enumerate(np.column_stack([y, X]).tolist())]
    rows[4][5] = ""
    path = write_csv(tmp_path / "t.csv", ["id", "colour", "y", *"abcdef"], rows)
    arguments = ["select", path, "-t", "y", "--index", "id", "--drop-text", "--missing", "drop-rows"]
    arguments += ["--drop", "/^[ef]$/"]
    result = invoke(*arguments, "--sizes", "1,2", *QUICK, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    assert "'colour'" in result.stderr
    assert "'e', 'f'" in result.stderr
    assert "'s4'" in result.stderr
    table = json.loads((tmp_path / "out" / "result.json").read_text())["table"]
    assert [name for item in table["dropped"] for name in item["names"]] == ["e", "f", "colour", "s4"]
    rows = pd.read_csv(tmp_path / "out" / "predictions.csv")["row"].unique().tolist()
    assert sorted(rows) == sorted(f"s{i}" for i in range(24) if i != 4)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "colour" in page
    assert "s4" in page
    quiet = invoke(*arguments, "--sizes", "1", *QUICK, "--out", tmp_path / "quiet", "--quiet")
    assert quiet.stderr == ""


def test_weights_and_groups_are_columns_of_the_table(tmp_path, monkeypatch):
    without_figures(monkeypatch)
    y, X = planted()
    weights = np.arange(24) % 3
    groups = [f"site {i % 4}" for i in range(24)]
    rows = [[*row, w, g] for row, w, g in zip(np.column_stack([y, X]).tolist(), weights, groups, strict=True)]
    path = write_csv(tmp_path / "t.csv", ["y", *"abcdef", "w", "site"], rows)
    options = ["--weights", "w", "--groups", "site", "--always", "b", "--ridge", "0.5", "--center", "global"]
    result = invoke("select", path, "-t", "y", "--sizes", "1,2", *QUICK, *options, "--out", tmp_path / "out", "--json")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    problem = SubsetProblem(X, y, names=list("abcdef"), sample_weight=weights, always=["b"], ridge=0.5, center="global")
    curve = select_size(problem, [1, 2], chains=2, groups=groups)
    record = json.loads(result.stdout)
    assert record["cv_error"] == curve.cv_error.tolist()
    assert record["names"] == list("abcdef")
    assert record["n_folds"] == 4
    coefs = pd.read_csv(tmp_path / "out" / "coefficients.csv", keep_default_na=False).query("size == 2")
    assert coefs["kind"].tolist() == ["intercept", "always", "selected", "selected"]


def test_shards_in_folders_of_their_own_are_merged(tmp_path, done, monkeypatch):
    without_figures(monkeypatch)
    folder, _ = done
    base = ["select", folder / "small.csv", "--target", "y", *SIZES]
    for part in (1, 2):
        result = invoke(*base, "--journal", tmp_path / f"j{part}", "--shard", f"{part}/2")
        assert result.exit_code == 0, result.stderr
        assert f"Shard {part}/2 is done" in result.stdout
        assert_refused(invoke("report", tmp_path / f"j{part}"), "is a journal", "--journal")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["j1", "j2"]
    merged = ["--journal", tmp_path / "all", "--merge", tmp_path / "j1", "--merge", tmp_path / "j2"]
    result = invoke(*base, *merged, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    assert "0 remain" in result.stderr
    there = SizeCurve.load(tmp_path / "out" / "result.json")
    here = SizeCurve.load(folder / "out" / "result.json")
    np.testing.assert_array_equal(there.cv_error, here.cv_error)


def test_fit_finds_the_columns(done, tmp_path):
    folder, _ = done
    result = invoke("fit", folder / "small.csv", "--target", "y", "--k", "2", "--jobs", "1")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("The best 2 columns for y: R^2 0.99")
    _, table, proved = result.stdout.split("\n\n")
    assert [line.split()[1] for line in table.splitlines()] == ["column", "(intercept)", "a", "d"]
    assert proved.startswith("Proved: no other 2 columns of these 6 fit better; the next best set is ")
    record = json.loads(invoke("fit", folder / "small.csv", "-t", "y", "-k", "2", "--always", "b", "--json").stdout)
    assert record["columns"] == ["a", "d"]
    assert list(record["always"]) == ["b"]
    assert (record["proof"]["proved"], record["proof"]["columns"]) == (True, ["a", "d"])
    y, X = planted()
    design = np.column_stack([np.ones(24), X[:, [1, 0, 3]]])
    x = np.linalg.lstsq(design, y, rcond=None)[0]
    np.testing.assert_allclose([record["intercept"], record["always"]["b"], *record["coefficients"]], x, rtol=1e-8)


def test_clusters_of_which_one_column_is_selected_are_no_table(tmp_path, monkeypatch):
    without_figures(monkeypatch)
    y, X = planted(columns=4)
    X = np.column_stack([X, X[:, 0] + 0.3 * np.random.default_rng(1).normal(size=24)])
    data = write_csv(tmp_path / "t.csv", [*"yabcde"], np.column_stack([y, X]).tolist())
    command = ["select", data, "--target", "y", "--sizes", "2", "--cv", "3", "--effort", "quick", "--stability", "3"]
    assert invoke(*command, "--out", tmp_path / "out").exit_code == 0
    halves = SizeCurve.load(tmp_path / "out" / "result.json").stability
    assert sorted(halves.clusters_to_pandas()["columns"]) == [1, 2]  # d, and a with e
    assert not (tmp_path / "out" / "clusters.csv").exists()


def test_rows_named_by_dates_are_warned_of(tmp_path, monkeypatch):
    without_figures(monkeypatch)
    y, X = planted()
    rows = [[f"2024-01-{i + 1:02d}", *row] for i, row in enumerate(np.column_stack([y, X]).tolist())]
    path = write_csv(tmp_path / "t.csv", ["day", "y", *"abcdef"], rows)
    options = ["--target", "y", "--index", "day", "--sizes", "1,2", *QUICK]
    result = invoke("select", path, *options, "--out", tmp_path / "out")
    assert "their names are dates" in " ".join(result.stdout.split())
    page = " ".join((tmp_path / "out" / "report.html").read_text().split())
    assert "their ranges and prediction intervals are too narrow" in page
    assert "dates" in json.loads((tmp_path / "out" / "result.json").read_text())["facts"]
    blocks = invoke("select", path, *options, "--cv", "blocks:4", "--out", tmp_path / "blocks")
    assert blocks.exit_code == 0, blocks.stderr
    assert "names are dates" not in " ".join(blocks.stdout.split())


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_column_by_whose_values_errors_are_alike_is_named_for_groups(tmp_path, monkeypatch, shuffled):
    without_figures(monkeypatch)
    rng, code = np.random.default_rng(3), np.repeat(np.arange(12), 5)
    X, of_patient = rng.normal(size=(60, 3)), rng.normal(size=12)
    y = X[:, 0] + of_patient[code] + 0.5 * rng.normal(size=60)
    order = rng.permutation(60) if shuffled else np.arange(60)
    rows = [[f"p{code[i]}", code[i] % 6, code[i] + 100, y[i], *X[i]] for i in order.tolist()]
    table = write_csv(tmp_path / "t.csv", ["patient", "site", "number", "y", "a", "b", "c"], rows)
    options = ["--target", "y", "--sizes", "1", "--stability", "0", *QUICK, "--force", "--out", tmp_path / "out"]

    def told(*more):
        done = invoke("select", table, *options, *more)
        assert done.exit_code == 0, done.stderr
        return " ".join(plain(done.stdout).split())

    said = told("--drop", "patient,site")
    assert "(12 values) have similar errors, correlation 0." in said
    assert "if they belong together, leave them out together (--groups 'number')" in said.replace("patient", "number")
    assert "the row before, autocorrelation" not in said  # the column says which rows
    assert "ranges and prediction intervals are too narrow" in told("--drop-text", "--full")
    assert "similar errors" not in told("--drop", "site", "--groups", "patient")
    write_csv(tmp_path / "t.csv", ["patient", "site", "number", "y", "a", "b", "c"], [
        [*row[:3], X[i, 0] + rng.normal(), *X[i]] for i, row in zip(order.tolist(), rows, strict=True)
    ])  # fmt: skip
    assert "similar errors" not in told("--drop-text")


def test_a_copy_of_the_target_and_a_row_that_carries_the_error_are_named(tmp_path, monkeypatch):
    without_figures(monkeypatch)
    y, X = planted(rows=40)
    y[4] += 9.0
    y[[7, 20]], X[[7, 20]] = y[2], X[2]
    rows = [[f"r{i}", *line] for i, line in enumerate(np.column_stack([y, X, -2 * y]).tolist())]
    table = write_csv(tmp_path / "t.csv", ["id", "y", *"abcdef", "twin"], rows)
    said = plain(invoke("fit", table, "-t", "y", "--index", "id", "--k", "1").stderr)
    assert "'twin' (correlation -1) looks like a copy of the target" in said
    done = invoke("select", table, "-t", "y", "--index", "id", "--drop", "twin", *QUICK, "--out", tmp_path / "o")
    told = " ".join(plain(done.stdout).split())
    assert "2 rows of the table are copies of another row (row 'r7' of 'r2', 'r20' of 'r2'), so errors are" in told
    assert " of the squared error of all held-out rows, row 'r4': look whether its values are right." in told
    assert SizeCurve.load(tmp_path / "o" / "result.json").facts["heavy_row"] == "r4"


def test_rows_are_left_out_by_name_or_number(folder):
    with open("small.csv", encoding="utf-8") as file:
        lines = file.read().splitlines()
    (folder / "named.csv").write_text(
        "\n".join([f"id,{lines[0]}", *(f"r{i},{line}" for i, line in enumerate(lines[1:]))])
    )
    how = [
        "--target",
        "y",
        "--sizes",
        "1-2",
        "--cv",
        "4",
        "--effort",
        "quick",
        "--stability",
        "0",
        "--no-prove",
        "--force",
    ]
    result = invoke("select", "named.csv", "--index", "id", *how, "--leave-out", "r3,2", "--leave-out", "r3", "--json")
    assert result.exit_code == 0, result.stderr
    assert "2 rows left out as asked: 'r1', 'r3'" in result.stderr
    (folder / "less.csv").write_text(
        "\n".join([lines[0], *(lines[1 + i] for i in range(len(lines) - 1) if i not in (1, 3))])
    )
    other = invoke("select", "less.csv", *how, "--json")
    ours, theirs = (json.loads(each.stdout)["verdict"] for each in (result, other))
    assert ours["corrected"] == theirs["corrected"]
    refused = invoke("select", "named.csv", "--index", "id", *how, "--leave-out", "r99")
    assert refused.exit_code == 2
    assert (
        "--leave-out 'r99' is no row of the table; expected names or numbers of rows, such as 'r0', 'r1'"
        in refused.stderr
    )
