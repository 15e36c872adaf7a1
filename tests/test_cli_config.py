"""`--config run.toml`: the same names, the command line first, unknown keys refused, what was used is saved."""

import json
import tomllib

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
    assert settings["cv"] == "loo"
    assert not {"config", "force", "json", "as-json", "quiet", "shard", "merge"} & settings.keys()
    again = invoke("select", "--config", saved, "--out", "again")
    assert again.exit_code == 0, again.stderr
    first, second = (json.loads((folder / name / "result.json").read_text()) for name in ("small-pairflip", "again"))
    assert first["cv_error"] == second["cv_error"]
    assert first["settings"] == second["settings"]


def test_fit_takes_a_file_too(folder):
    path = config(folder, 'data = "small.csv"\ntarget = "y"\nk = 2\n')
    assert json.loads(invoke("fit", "--config", path, "--json").stdout)["columns"] == ["a", "d"]


BAD = {
    "unknown key": ('targt = "y"', "unknown key 'targt'; perhaps target"),
    "nothing like it": ("qqqqqq = 1", "unknown key 'qqqqqq'; expected some of data, target"),
    "no TOML": ("target: y", "is not a TOML file"),
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
    assert tomllib.loads(config_text(settings, "two\nlines")) == expected


@pytest.mark.parametrize(
    ("text", "sizes"), [("1-10", range(1, 11)), ("5", [5]), ("1,2,5", [1, 2, 5]), (" 1-3, 8 ,2", [1, 2, 3, 8])]
)
def test_sizes(text, sizes):
    assert parse_sizes(text) == list(sizes)
    assert parse_sizes(written_sizes(list(sizes))) == list(sizes)
