"""Bad data and bad places: one sentence, exit code 2, no traceback, nothing half-written."""

import importlib.util
import json
import os
import resource
import shutil
from typing import Literal, get_origin

import numpy as np
import pytest
from typer.main import get_command

from _cli import QUICK, assert_refused, invoke, planted, run, small_table, tree, without_figures, write_csv
from pairflip.cli import app
from pairflip.cli.errors import annotation, option_name

COMMANDS = {
    "select": ["small.csv", "-t", "y"],
    "fit": ["small.csv", "-t", "y"],
    "prove": ["small.csv", "-t", "y"],
    "theory": [],
    "demo": [],
    "reproduce": ["fig1", "--out", "results"],
}


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
    "wrong target": (lambda _: "small.csv", ["-t", "Y2"], ["--target 'Y2' is not a column"]),
    "no target": (lambda _: "small.csv", ["-t", None], ["No target is given", "--target"]),
    "all-missing column": (column(b=""), [], ["'b'", "--missing"]),
    "text column": (column(b="red"), [], ["'b'", "--drop-text"]),
    "text target": (column(y="red"), [], ["'y'"]),
    "constant target": (column(y="1"), [], ["'y'", "every row"]),
    "no numeric column": (column(**dict.fromkeys("abcdef", "red")), ["--drop-text"], ["expected"]),
    "nothing varies": (column(**dict.fromkeys("abcdef", 1)), [], ["none of the 6 columns"]),
    "sizes beyond the columns": (lambda _: "small.csv", ["--sizes", "1-7"], ["(--sizes) holds 7", "from 1 to 6."]),
    "sizes far beyond the columns": (
        lambda _: "small.csv",
        ["--sizes", "1-1000"],
        ["sizes (--sizes) holds 1000, but the table has 6 candidate columns that vary; expected sizes from 1 to 6."],
    ),
    "sizes beyond the rows": (
        text("t.csv", "y,a,b,c,d,e\n1,2,3,5,6,2\n2,1,5,1,9,1\n4,4,1,2,1,1\n"),
        ["--sizes", "4"],
        ["4"],
    ),
    "unreadable Parquet": (unreadable_parquet, [], ["t.parquet"]),
    "unknown kind of file": (text("t.doc", "x"), [], ["'t.doc' has the suffix .doc"]),
    "not text": (lambda folder: (folder / "t.csv").write_bytes(b"y,\xff\xfe\n1,2\n3,4\n") and "t.csv", [], ["'t.csv'"]),
    "thousands mark": (lambda _: "small.csv", ["--thousands", "x"], ["--thousands is 'x'; expected '.' or ','."]),
    "one mark for both": (
        lambda _: "small.csv",
        ["--thousands", "."],
        ["--thousands and the decimal mark are both '.'"],
    ),
    "commas of two meanings": (
        text("t.csv", "y;a\n1;1,499\n2;2,500\n"),
        [],
        ["1 column of the table holds commas in numbers: 'a'", "1499 with --thousands , or as 1.499 with --decimal ,."],
    ),
    "decimal mark": (lambda _: "small.csv", ["--decimal", ";"], ["--decimal is ';'"]),
    "a sheet of no workbook": (lambda _: "small.csv", ["--sheet", "one"], ["--sheet"]),
    "wrong folds": (lambda _: "small.csv", ["--cv", "many"], ["--cv is 'many'"]),
    "too many folds": (lambda _: "small.csv", ["--cv", "99"], ["cv is 99 folds"]),
    "wrong engine": (lambda _: "small.csv", ["--engine", "steam"], ["engine is 'steam'"]),
    "wrong always": (lambda _: "small.csv", ["--always", "aa"], ["--always 'aa'", "perhaps 'a'"]),
    "wrong weights": (lambda _: "small.csv", ["--weights", "w"], ["--weights 'w'"]),
    "negative weights": (column(b="-1"), ["--weights", "b"], ["sample_weight"]),
    "wrong groups": (lambda _: "small.csv", ["--groups", "site"], ["--groups 'site' is not a column"]),
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
    "wrong center": (
        lambda _: "small.csv",
        ["--center", "left"],
        ["--center is 'left'; expected 'fold', 'global' or 'none'."],
    ),
    "wrong missing": (
        lambda _: "small.csv",
        ["--missing", "guess"],
        ["--missing is 'guess'; expected 'drop-rows' or 'drop-columns'."],
    ),
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
    "a file": ("small.csv", "is not a folder"),
    "a device": ("/dev/null/out", "cannot be written"),
    "the folder itself": (".", "exists"),
    "a name far too long": ("x" * 300, "cannot be written"),
}


@pytest.mark.parametrize(("out", "expected"), BAD_PLACES.values(), ids=BAD_PLACES)
def test_the_result_cannot_be_put_there(folder, out, expected, monkeypatch):
    before = tree(folder)
    monkeypatch.setattr("pairflip.selection.select_size", None)  # it is found out before the work, not after
    assert_refused(invoke("select", "small.csv", "-t", "y", *QUICK, "--out", out), expected)
    assert tree(folder) == before


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_that_may_not_be_written(folder):
    (folder / "closed").mkdir(mode=0o500)
    assert_refused(invoke("select", "small.csv", "-t", "y", *QUICK, "--out", "closed/out"), "Permission denied")


@pytest.mark.parametrize("limit", [*(pytest.param(limit, marks=pytest.mark.slow) for limit in (100, 3_000)), 40_000])
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


def wrong_values():
    """(command, option) for every option that takes a number or one of some words."""
    commands = get_command(app).commands
    for command in COMMANDS:
        for parameter in commands[command].params:
            kind, _ = annotation(commands[command], parameter)
            if parameter.name != "config" and (kind in (int, float) or get_origin(kind) is Literal):
                yield pytest.param(command, option_name(parameter), id=f"{command} {option_name(parameter)}")


@pytest.mark.parametrize(("command", "option"), list(wrong_values()))
def test_wrong_values_of_options_in_our_own_words(folder, command, option):
    arguments = [*COMMANDS[command], option, "wrong"]
    result = invoke(command, *arguments)
    assert_refused(result, f"{option} is 'wrong'; expected ")
    assert_own_words(result)
    assert tree(folder) == ["small.csv"]


def assert_own_words(result):
    for phrase in ("Invalid value", "Value error", "Input should", "unable to parse", "<class", "valid path"):
        assert phrase not in result.stderr


BAD_USAGE = {
    "below the least": (
        ["select", "small.csv", "--chains", "0"],
        "--chains is 0; expected a whole number, at least 1.",
    ),
    "no size": (["fit", "small.csv"], "--k is missing; expected a whole number, at least 1."),
    "no result": (["report"], "SAVED is missing; expected a result folder, its result.json, or a file of"),
    "nothing to reproduce": (["reproduce"], "WHAT is missing; expected fig1, fig2"),
    "spaces": (
        ["select", "small.csv", "-t", "gene", "1"],
        "'1' was not expected here; put names with spaces in quotes",
    ),
    "too many": (["doctor", "now"], "'now' was not expected here."),
}


@pytest.mark.parametrize(("arguments", "expected"), BAD_USAGE.values(), ids=BAD_USAGE)
def test_bad_usage_in_our_own_words(folder, arguments, expected):
    result = invoke(*arguments)
    assert_refused(result, expected)
    assert_own_words(result)


BAD_CONFIG = {
    "a text for a number": ('seed = "x"', "--seed is 'x' in 'c.toml'; expected a whole number, at least 0."),
    "a fraction": ("seed = 1.5", "has seed = 1.5; expected a whole number, at least 0."),
    "too small": ("chains = 0", "--chains is 0 in 'c.toml'; expected a whole number, at least 1."),
    "truth": ("ridge = true", "has ridge = true; expected a text or a number."),
    "not a number": ("seed = nan", "expected a whole number"),
    "infinite": ("jobs = inf", "expected a whole number"),
    "no word of them": ("missing = 3", "--missing is 3 in 'c.toml'; expected 'drop-rows' or 'drop-columns'."),
    "no name of a folder": ("journal = 3", "has journal = 3; expected the name of a file or folder in quotes."),
    "no sizes": ("sizes = []", "has sizes = []; expected numbers of columns."),
    "sizes of text": ('sizes = [1, "x"]', 'has sizes = [1, "x"]; expected numbers of columns.'),
    "a date": ("seed = 2020-01-01", "expected a whole number, at least 0."),
    "thousands": ('thousands = "x"', "--thousands is 'x'; expected '.' or ','."),
}


@pytest.mark.parametrize(("line", "expected"), BAD_CONFIG.values(), ids=BAD_CONFIG)
def test_wrong_values_in_a_file_of_options(folder, line, expected):
    (folder / "c.toml").write_text(line + "\n")
    result = invoke("select", "small.csv", "-t", "y", "--config", "c.toml")
    assert_refused(result, expected)
    assert_own_words(result)


def thousands(folder):
    """A table of whole numbers from 1,000 to 9,999 and a target of 0 and 1."""
    rng = np.random.default_rng(0)
    rows = [[int(a > 5000), f"{a:,}", b] for a, b in rng.integers(1000, 10000, size=(24, 2)).tolist()]
    write_csv(folder / "t.csv", ["y", "a", "b"], rows)
    return ["t.csv", "-t", "y", *QUICK]


def test_thousands_through_select_fit_and_run_toml(folder):
    table = thousands(folder)
    assert_refused(invoke("select", *table), "reads as", "with --thousands , or as", "with --decimal ,.")
    result = invoke("select", *table, "--sizes", "1", "--thousands", ",", "--out", "one")
    assert result.exit_code == 0, result.stderr
    assert 'thousands = ","' in (folder / "one" / "run.toml").read_text()
    again = invoke("select", "--config", "one/run.toml", "--out", "two", "--json")
    assert again.exit_code == 0, again.stderr
    ours, theirs = (json.loads((folder / name / "result.json").read_text()) for name in ("one", "two"))
    assert ours["data_hash"] == theirs["data_hash"]
    fitted = json.loads(invoke("fit", *table, "--k", "1", "--thousands", ",", "--json").stdout)
    assert fitted["columns"] == ["a"]
    assert 0 < fitted["coefficients"][0] < 1e-3  # for each of thousands, not for each thousand


def test_what_was_read_in_one_of_two_ways_is_said(folder):
    result = invoke("select", *thousands(folder), "--sizes", "1", "--decimal", ",", "--out", "one")
    page = (folder / "one" / "report.html").read_text()
    for remark in (
        "with commas that may mark thousands (as in 1,499), read as decimal commas",
        "has two values only, 0 and 1",
    ):
        assert remark in result.stderr
        assert remark in page
    assert invoke("report", "one").exit_code == 0
    assert "may mark thousands" in (folder / "one" / "report.html").read_text()


def test_a_row_without_a_group_is_named_as_in_the_file(folder):
    rows = [[y, a, g] for y, a, g in zip(range(12), [1, "", 3, 5, 4, 7, 8, 6, 9, 2, 1, 3], "uvwu vwuvwuv", strict=True)]
    write_csv(folder / "t.csv", ["y", "a", "g"], [[y, a, g.strip()] for y, a, g in rows])
    result = invoke("select", "t.csv", "-t", "y", "--groups", "g", "--missing", "drop-rows", *QUICK)
    assert_refused(result, "--groups 'g' has no value in row '5'; expected a group for every row.")
