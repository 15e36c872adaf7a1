"""Options: declared once, read from texts and from files, and written so that they give the same result again."""

import inspect
import json
import os
import tomllib
from pathlib import Path
from typing import get_args

import pytest
import typer

from _cli import QUICK, invoke
from pairflip.cli import app
from pairflip.cli.config import config_text
from pairflip.cli.loading import limit_arguments
from pairflip.cli.options import LimitOptions, parse_sizes, written_sizes
from pairflip.cli.prove import parse_distances, parse_time
from pairflip.tables import read_table


def test_an_option_whose_placeholder_is_its_name_in_capitals_is_named():
    """Typer 0.27 takes the placeholder for the name where none is given: there was no --sizes, but --SIZES."""
    options = [
        (command.callback.__name__, name, each)
        for command in app.registered_commands
        for name, parameter in inspect.signature(command.callback).parameters.items()
        for each in get_args(parameter.annotation)
        if isinstance(each, typer.models.OptionInfo)
    ]
    assert {"sizes", "cv"} <= {name for command, name, _ in options if command == "select"}
    # In an annotation the first name stands where a default would.
    unnamed = [each for each in options if not (each[2].param_decls or str(each[2].default).startswith("-"))]
    assert [(command, name) for command, name, each in unnamed if each.metavar == name.upper()] == []


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (parse_sizes, "1-10", list(range(1, 11))),
        (parse_sizes, "5", [5]),
        (parse_sizes, " 1-3, 8 ,2", [1, 2, 3, 8]),
        (lambda text: parse_sizes(text, least=0), "0-2,5", [0, 1, 2, 5]),
        (parse_time, "60", 60),
        (parse_time, "60s", 60),
        (parse_time, "2min", 120),
        (parse_time, " 1.5 H ", 5400),
        (parse_time, "1d", 86400),
        (parse_distances, None, ()),
        (parse_distances, "1%, 5 %,200%", (0.01, 0.05, 2.0)),
        (parse_distances, "0,0.05,.5", (0.0, 0.05, 0.5)),
    ],
)
def test_texts(read, text, value):
    assert read(text) == value
    if read is parse_sizes:
        assert parse_sizes(written_sizes(value)) == value


def test_limits(tmp_path):
    path, file = tmp_path / "t.csv", tmp_path / "groups.csv"
    path.write_text("y,a,b,a:b,c,odd\n" + "".join(f"{i},{i},{i * 3 % 5},{i * i},{i % 7},1\n" for i in range(4)))
    file.write_text("group,column,why\nfirst,a,x\nfirst,b,x\n,c,x\nsecond,odd,x\n")
    table = read_table(path, "y", drop=["odd"], keep=["/./"])
    assert limit_arguments(LimitOptions(), table, []) == {}
    asked = limit_arguments(LimitOptions(file, one_per_group=True), table, [])  # "odd" was left out of the table
    assert asked == {"groups": {"first": ["a", "b"]}, "one_per_group": True}
    asked = limit_arguments(LimitOptions(positive=["/^a/"], negative=["c"]), table, ["a"])
    assert asked == {"positive": {"a:b": 1, "c": -1}}
    everything = limit_arguments(LimitOptions(negative=["all"]), table, [])
    assert everything == {"positive": dict.fromkeys(table.names, -1)}


def test_options_come_from_a_file_and_the_command_line_goes_first(folder):
    (folder / "deep").mkdir()
    (folder / "deep" / "run.toml").write_text(
        'data = "../small.csv"\ntarget = "y"\nsizes = [1, 2]\nchains = 2\nseed = 3\ndrop = ["e", "/f/"]\n'
        'json = true\nout = "here"\n'
    )
    result = invoke("select", "--config", "deep/run.toml", "--seed", "4")
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)
    assert (record["settings"]["sizes"], record["settings"]["seed"], record["names"]) == ([1, 2], 4, list("abcd"))
    assert (folder / "deep" / "here" / "result.json").exists()  # relative to the file
    assert invoke("select", "small.csv", "--config", "deep/run.toml", "--out", "there", "--quiet").exit_code == 0
    assert (folder / "there" / "result.json").exists()  # relative to where it is typed
    (folder / "fit.toml").write_text('data = "small.csv"\ntarget = "y"\nk = 2\n')
    assert json.loads(invoke("fit", "--config", "fit.toml", "--json").stdout)["columns"] == ["a", "d"]
    (folder / "prove.toml").write_text((folder / "fit.toml").read_text() + 'budget = 30\nn-best = 2\nwithin = "10%"\n')
    record = json.loads(invoke("prove", "--config", "prove.toml", "--json").stdout)
    assert (record["budget"], len(record["best"]), record["within"][0]["distance"]) == (30.0, 2, 0.1)


@pytest.mark.parametrize("given", ["relative", pytest.param("absolute", marks=pytest.mark.slow)])
def test_the_settings_of_a_result_give_it_again_from_any_folder(folder, monkeypatch, given):
    (folder / "data").mkdir()
    (folder / "results").mkdir()
    (folder / "small.csv").rename(folder / "data" / "small.csv")
    root = folder if given == "absolute" else Path()
    places = [root / "data" / "small.csv", "--out", root / "results" / "first", "--journal", root / "work"]
    options = ["-t", "y", "--sizes", "2,1", "--drop", "f", "--ridge", "1e-5", *QUICK, "--quiet", "--json"]
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
        one, other = json.loads(again.stdout), json.loads(first.stdout)
        assert (one["cv_error"], one["settings"]) == (other["cv_error"], other["settings"])
    saved = tomllib.loads((moved / "results" / "first" / "run.toml").read_text())
    assert saved["data"] == os.path.join("..", "..", "data", "small.csv")
    assert saved["journal"] == os.path.join("..", "..", "work")
    assert (saved["sizes"], saved["drop"], saved["ridge"], saved["cv"]) == ("1-2", ["f"], 1e-5, "auto")
    assert not {"config", "force", "json", "as-json", "quiet", "shard", "merge", "out"} & saved.keys()
    assert sorted(path.name for path in elsewhere.iterdir()) == ["0", "1", "2", "link"]


def test_settings_are_read_as_they_were_written():
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
