"""Bad data and bad places: one sentence, exit code 2, no traceback, nothing half-written."""

import importlib.util
import json
import os
import resource
import shutil

import numpy as np
import pytest

from _cli import QUICK, assert_refused, invoke, planted, run, small_table, tree, without_figures, write_csv


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    without_figures(monkeypatch)
    small_table(tmp_path / "small.csv")
    return tmp_path


def text(name, content):
    def make(folder):
        (folder / name).write_text(content, encoding="utf-8")
        return name

    return make


def column(**changes):
    """A table with some columns replaced."""

    def make(folder):
        y, X = planted()
        columns = {"y": y.tolist(), **{name: X[:, j].tolist() for j, name in enumerate("abcdef")}}
        columns |= {name: [value] * 24 for name, value in changes.items()}
        write_csv(folder / "t.csv", list(columns), zip(*columns.values(), strict=True))
        return "t.csv"

    return make


def unreadable_parquet(folder):
    (folder / "t.parquet").write_bytes(b"PAR1 no PAR1")
    return "t.parquet"


def decimal_commas(folder):
    y, X = planted()
    rows = [[str(value).replace(".", ",") for value in row] for row in np.column_stack([y, X]).tolist()]
    write_csv(folder / "t.csv", ["y", *"abcdef"], rows, delimiter=";")
    return "t.csv"


HEAVY = "y,a\n1,2\n"
BAD_DATA = {
    "missing file": (lambda _: "smal.csv", [], ["'smal.csv' does not exist", "'small.csv'"]),
    "no file": (lambda _: "", [], ["folder"]),
    "a folder": (lambda _: ".", [], ["is a folder"]),
    "empty file": (text("t.csv", ""), [], ["'t.csv'", "empty"]),
    "header only": (text("t.csv", "y,a,b\n"), [], ["no rows"]),
    "one row": (text("t.csv", HEAVY), [], ["1 row", "at least two"]),
    "wrong target": (lambda _: "small.csv", ["-t", "Y2"], ["--target 'Y2' is no column"]),
    "no target": (lambda _: "small.csv", ["-t", None], ["No target is given", "--target"]),
    "all-missing column": (column(b=""), [], ["'b'", "--missing"]),
    "text column": (column(b="red"), [], ["'b'", "--drop-text"]),
    "text target": (column(y="red"), [], ["'y'"]),
    "constant target": (column(y="1"), [], ["'y'", "every row"]),
    "no numeric column": (column(**dict.fromkeys("abcdef", "red")), ["--drop-text"], ["expected"]),
    "nothing varies": (column(**dict.fromkeys("abcdef", 1)), [], ["none of the 6 columns"]),
    "sizes beyond the columns": (lambda _: "small.csv", ["--sizes", "1-7"], ["7", "6"]),
    "sizes beyond the rows": (
        text("t.csv", "y,a,b,c,d,e\n1,2,3,5,6,2\n2,1,5,1,9,1\n4,4,1,2,1,1\n"),
        ["--sizes", "4"],
        ["4"],
    ),
    "unreadable Parquet": (unreadable_parquet, [], ["t.parquet"]),
    "unknown kind of file": (text("t.doc", "x"), [], ["'t.doc' has the suffix .doc"]),
    "not text": (lambda folder: (folder / "t.csv").write_bytes(b"y,\xff\xfe\n1,2\n3,4\n") and "t.csv", [], ["'t.csv'"]),
    "decimal mark": (lambda _: "small.csv", ["--decimal", ";"], ["--decimal is ';'"]),
    "a sheet of no workbook": (lambda _: "small.csv", ["--sheet", "one"], ["--sheet"]),
    "wrong folds": (lambda _: "small.csv", ["--cv", "many"], ["--cv is 'many'"]),
    "too many folds": (lambda _: "small.csv", ["--cv", "99"], ["cv is 99 folds"]),
    "wrong engine": (lambda _: "small.csv", ["--engine", "steam"], ["engine is 'steam'"]),
    "wrong always": (lambda _: "small.csv", ["--always", "aa"], ["--always 'aa'", "perhaps 'a'"]),
    "wrong weights": (lambda _: "small.csv", ["--weights", "w"], ["--weights 'w'"]),
    "negative weights": (column(b="-1"), ["--weights", "b"], ["sample_weight"]),
    "wrong groups": (lambda _: "small.csv", ["--groups", "site"], ["--groups 'site' is no column"]),
    "groups are the target": (lambda _: "small.csv", ["--groups", "y"], ["--groups and --target"]),
    "negative ridge": (lambda _: "small.csv", ["--ridge", "-1"], ["ridge is -1"]),
    "shard without journal": (lambda _: "small.csv", ["--shard", "1/2"], ["--shard", "--journal"]),
    "wrong shard": (lambda _: "small.csv", ["--shard", "3/2", "--journal", "j"], ["3/2"]),
    "merge without journal": (lambda _: "small.csv", ["--merge", "j"], ["--merge", "--journal"]),
    "merge of no journal": (
        lambda _: "small.csv",
        ["--merge", "nothing", "--journal", "j"],
        ["'nothing' is not a journal"],
    ),
    "journal in the result": (lambda _: "small.csv", ["--journal", "o/j", "--out", "o"], ["result folder"]),
    "wrong center": (lambda _: "small.csv", ["--center", "left"], ["'--center'", "fold"]),
    "wrong missing": (lambda _: "small.csv", ["--missing", "guess"], ["'--missing'", "drop-rows"]),
    "no drop": (lambda _: "small.csv", ["--drop", "/(/"], ["--drop '/(/'"]),
}


@pytest.mark.parametrize(("make", "options", "expected"), BAD_DATA.values(), ids=BAD_DATA)
def test_bad_data(folder, make, options, expected):
    data = make(folder)
    before = tree(folder)
    target = [] if options == ["-t", None] else ["-t", "y"]
    options = [] if options == ["-t", None] else options
    assert_refused(invoke("select", data, *target, *QUICK, *options), *expected)
    assert [name for name in tree(folder) if name != "j"] == before


def test_sizes_beyond_the_rank(folder):
    y, X = planted()
    twin = np.column_stack([y, X[:, 0], 2 * X[:, 0], -X[:, 0], X[:, 3], X[:, 3] / 2, X[:, 0] + X[:, 3]])
    write_csv(folder / "t.csv", ["y", *"abcdef"], twin.tolist())
    before = tree(folder)
    assert_refused(invoke("select", "t.csv", "-t", "y", "--sizes", "1-4", *QUICK), "expected")
    assert_refused(invoke("fit", "t.csv", "-t", "y", "--k", "4", *QUICK), "expected")
    assert tree(folder) == before


def test_decimal_commas_are_read_when_asked_for(folder):
    name = decimal_commas(folder)
    result = invoke("select", name, "-t", "y", "--decimal", ",", "--sizes", "2", *QUICK, "--json")
    assert result.exit_code == 0, result.stderr
    plain = invoke("select", "small.csv", "-t", "y", "--sizes", "2", *QUICK, "--json")
    assert json.loads(result.stdout)["cv_error"] == json.loads(plain.stdout)["cv_error"]


def test_decimal_commas_are_never_guessed_silently(folder):
    result = invoke("select", decimal_commas(folder), "-t", "y", "--sizes", "2", *QUICK)
    if result.exit_code == 0:
        assert "comma" in result.stderr
    else:
        assert_refused(result, "--decimal")


BAD_PLACES = {
    "its folder is a file": ("small.csv/out", "cannot be written"),
    "a file": ("small.csv", "is no folder"),
    "a device": ("/dev/null/out", "cannot be written"),
    "the folder itself": (".", "exists"),
    "a name far too long": ("x" * 300, "cannot be written"),
}


@pytest.mark.parametrize(("out", "expected"), BAD_PLACES.values(), ids=BAD_PLACES)
def test_the_result_cannot_be_put_there(folder, out, expected, monkeypatch):
    before = tree(folder)
    monkeypatch.setattr("pairflip.crossval.select_size", None)  # it is found out before the work, not after
    assert_refused(invoke("select", "small.csv", "-t", "y", *QUICK, "--out", out), expected)
    assert tree(folder) == before


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_that_may_not_be_written(folder):
    (folder / "closed").mkdir(mode=0o500)
    assert_refused(invoke("select", "small.csv", "-t", "y", *QUICK, "--out", "closed/out"), "Permission denied")


@pytest.mark.parametrize("limit", [100, 3_000, 40_000])
def test_a_full_disk_leaves_nothing(folder, limit):
    """Files may not grow beyond a limit, as on a disk that is full."""
    before = tree(folder)
    result = run(
        *["select", "small.csv", "-t", "y", "--sizes", "1-3", *QUICK, "--out", "deep/er/out"],
        folder=folder,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert_refused(result, "'deep/er/out' cannot be written", "too large")
    assert tree(folder) == before


def test_a_full_disk_leaves_the_older_result(folder):
    arguments = ["select", "small.csv", "-t", "y", "--sizes", "1", *QUICK, "--out", "out"]
    assert invoke(*arguments).exit_code == 0
    before = {name: (folder / name).read_bytes() for name in tree(folder) if (folder / name).is_file()}
    result = run(
        *[*arguments, "--force", "--seed", "2"],
        folder=folder,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3_000, 3_000)),
    )
    assert_refused(result, "cannot be written")
    assert {name: (folder / name).read_bytes() for name in tree(folder) if (folder / name).is_file()} == before


def test_a_journal_that_cannot_be_written(folder):
    result = invoke("select", "small.csv", "-t", "y", *QUICK, "--journal", "small.csv/j")
    assert_refused(result, "journal 'small.csv/j' is below 'small.csv', which is a file")


def test_a_journal_of_other_settings(folder):
    arguments = ["select", "small.csv", "-t", "y", "--sizes", "1", *QUICK, "--journal", "j", "--quiet"]
    assert invoke(*arguments, "--out", "one").exit_code == 0
    assert_refused(invoke(*arguments, "--out", "two", "--seed", "5"), "seed = 0", "seed = 5")
    assert not (folder / "two").exists()


BAD_RESULTS = {
    "nothing there": ("none", "cannot be read"),
    "no result": ("empty", "holds no result.json"),
    "no JSON": ("small.csv", "is not JSON"),
    "other JSON": ("other.json", "not a pairflip size curve"),
}


@pytest.mark.parametrize(("saved", "expected"), BAD_RESULTS.values(), ids=BAD_RESULTS)
def test_bad_results_for_report(folder, saved, expected):
    (folder / "empty").mkdir()
    (folder / "other.json").write_text("{}")
    assert_refused(invoke("report", saved), expected)
    assert not (folder / "report.html").exists()


def test_fit_writes_its_file_whole_or_not(folder):
    arguments = ["fit", "small.csv", "-t", "y", "--k", "2", *QUICK]
    shutil.copy("small.csv", "other.csv")
    assert_refused(invoke(*arguments, "--out", "other.csv"), "exists", "--force")
    assert_refused(invoke(*arguments, "--out", "small.csv/x.csv"), "Cannot write the coefficients")
    assert_refused(invoke("fit", "small.csv", "-t", "y", "--k", "6"), "k is 6")
    assert tree(folder) == ["other.csv", "small.csv"]
    assert (folder / "other.csv").read_bytes() == (folder / "small.csv").read_bytes()


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="needs pyarrow")
def test_parquet_is_read(folder):
    import pandas as pd

    pd.read_csv("small.csv").to_parquet("t.parquet")
    result = invoke("select", "t.parquet", "-t", "y", "--sizes", "2", *QUICK)
    assert result.exit_code == 0, result.stderr


def test_names_reach_the_terminal_as_text_in_errors_too(folder):
    result = invoke("select", "small.csv", "-t", "\x1b[31my\n\x07")
    assert_refused(result, "\\x1b[31my")
    assert "\x1b" not in result.stderr
    assert "\x07" not in result.stderr
    shutil.copy("small.csv", "\x1b[31m.csv")
    assert "\x1b" not in invoke("select", "\x1b[31m.csv", "-t", "z").stderr
