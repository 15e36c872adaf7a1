"""`--config run.toml`: the same names, the command line first, unknown keys refused, what was used is saved."""

import json
import os
import tomllib
from pathlib import Path

import pytest

from _cli import QUICK, assert_refused, invoke, small_table, without_figures
from pairflip.cli.config import config_text
from pairflip.cli.options import parse_sizes, written_sizes


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    without_figures(monkeypatch)
    small_table(tmp_path / "small.csv")
    return tmp_path


def config(folder, text):
    (folder / "run.toml").write_text(text, encoding="utf-8")
    return folder / "run.toml"


def test_options_come_from_the_file_and_the_command_line_goes_first(folder):
    lines = [
        'data = "small.csv"',
        'target = "y"',
        "sizes = [1, 2]",
        "chains = 2",
        "seed = 3",
        'drop = ["e", "/f/"]',
        "json = true",
    ]
    path = config(folder, "\n".join(lines))
    result = invoke("select", "--config", path, "--seed", "4")
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)
    assert record["settings"]["sizes"] == [1, 2]
    assert record["settings"]["seed"] == 4
    assert record["names"] == list("abcd")


def test_what_was_used_is_saved_and_gives_the_same_again(folder):
    result = invoke("select", "small.csv", "-t", "y", "--sizes", "2,1", "--drop", "f", "--ridge", "1e-5", *QUICK)
    assert result.exit_code == 0, result.stderr
    saved = folder / "small-pairflip" / "run.toml"
    settings = tomllib.loads(saved.read_text())
    assert settings["sizes"] == "1-2"
    assert settings["drop"] == ["f"]
    assert settings["ridge"] == 1e-5
    assert settings["cv"] == "5x10"
    assert not {"config", "force", "json", "as-json", "quiet", "shard", "merge"} & settings.keys()
    again = invoke("select", "--config", saved, "--out", "again")
    assert again.exit_code == 0, again.stderr
    first, second = (json.loads((folder / name / "result.json").read_text()) for name in ("small-pairflip", "again"))
    assert first["cv_error"] == second["cv_error"]
    assert first["settings"] == second["settings"]


@pytest.mark.parametrize("given", ["relative", pytest.param("absolute", marks=pytest.mark.slow)])
def test_what_was_used_gives_the_same_from_any_folder(folder, monkeypatch, given):
    (folder / "data").mkdir()
    (folder / "results").mkdir()
    (folder / "small.csv").rename(folder / "data" / "small.csv")
    root = folder if given == "absolute" else Path()
    places = [root / "data" / "small.csv", "--out", root / "results" / "first", "--journal", root / "work"]
    options = ["-t", "y", "--sizes", "1-2", *QUICK, "--quiet", "--json"]
    first = invoke("select", *places, *options)
    assert first.exit_code == 0, first.stderr
    moved = folder.with_name(folder.name + "-moved")  # data and results together
    folder.rename(moved)
    elsewhere = moved.with_name(moved.name + "-elsewhere")
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    (elsewhere / "link").symlink_to(moved / "results" / "first")
    for number, config in enumerate((moved / "results" / "first", Path("..") / moved.name / "results/first", "link")):
        again = invoke("select", "--config", Path(config) / "run.toml", "--out", f"{number}", "--json")
        assert again.exit_code == 0, again.stderr
        assert "0 remain" in again.stderr  # the journal was found
        assert json.loads(again.stdout)["cv_error"] == json.loads(first.stdout)["cv_error"]
    saved = tomllib.loads((moved / "results" / "first" / "run.toml").read_text())
    assert saved["data"] == os.path.join("..", "..", "data", "small.csv")
    assert saved["journal"] == os.path.join("..", "..", "work")
    assert "out" not in saved
    assert sorted(path.name for path in elsewhere.iterdir()) == ["0", "1", "2", "link"]


def test_paths_in_a_file_are_relative_to_it(folder, monkeypatch):
    (folder / "deep").mkdir()
    config(folder / "deep", 'data = "../small.csv"\ntarget = "y"\nsizes = "1"\nchains = 2\nout = "here"\n')
    assert invoke("select", "--config", "deep/run.toml", "--quiet").exit_code == 0
    assert (folder / "deep" / "here" / "result.json").exists()
    assert invoke("select", "small.csv", "--config", "deep/run.toml", "--out", "there", "--quiet").exit_code == 0
    assert (folder / "there" / "result.json").exists()  # what is typed is relative to where it is typed


def test_fit_takes_a_file_too(folder):
    path = config(folder, 'data = "small.csv"\ntarget = "y"\nk = 2\n')
    assert json.loads(invoke("fit", "--config", path, "--json").stdout)["columns"] == ["a", "d"]


BAD = {
    "unknown key": ('targt = "y"', "unknown key 'targt'; perhaps target"),
    "nothing like it": ("qqqqqq = 1", "unknown key 'qqqqqq'; expected some of data, target"),
    "no TOML": ("target: y", "is not a TOML file"),
    "nested": (f"drop = {'[' * 5000}", "is not a TOML file"),
    "a table": ('[select]\ntarget = "y"', "unknown key 'select'"),
    "a table of a known name": ("[sizes]\na = 1", "[sizes]"),
    "no flag": ('drop-text = "yes"', 'drop-text = "yes"; expected true or false'),
    "no list": ("drop = 5", "drop = 5; expected a list of texts"),
    "no number": ("seed = true", "seed = true; expected a whole number, at least 0"),
    "bad number": ('seed = "many"', "--seed is 'many' in 'run.toml'; expected a whole number, at least 0."),
    "bad sizes": ('sizes = [1, "two"]', "expected numbers of columns"),
    "config in config": ('config = "other.toml"', "unknown key 'config'"),
}


@pytest.mark.parametrize(("text", "expected"), BAD.values(), ids=BAD)
def test_bad_files_are_one_sentence(folder, text, expected):
    path = config(folder, text)
    assert_refused(invoke("select", "small.csv", "--config", path.name), expected)
    assert sorted(path.name for path in folder.iterdir()) == ["run.toml", "small.csv"]


def test_a_missing_file_is_one_sentence(folder):
    assert_refused(invoke("select", "small.csv", "--config", "none.toml"), "'none.toml' cannot be read")


def test_what_is_written_is_read_the_same():
    settings = {
        "target": 'a "quoted"\nname\\ \x7f\x1b 🌡️',
        "drop": ["/^x/", "b"],
        "seed": 3,
        "ridge": 1e-7,
        "drop-text": True,
        "sheet": None,
        "keep": [],
    }
    expected = {name: value for name, value in settings.items() if value not in (None, [])}
    assert tomllib.loads(config_text("select", settings)) == expected


@pytest.mark.parametrize(
    ("text", "sizes"), [("1-10", range(1, 11)), ("5", [5]), ("1,2,5", [1, 2, 5]), (" 1-3, 8 ,2", [1, 2, 3, 8])]
)
def test_sizes(text, sizes):
    assert parse_sizes(text) == list(sizes)
    assert parse_sizes(written_sizes(list(sizes))) == list(sizes)
