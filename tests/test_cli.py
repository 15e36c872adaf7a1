"""The command line: data on standard output, the rest on standard error, exit codes that mean something."""

import json
import os
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import pairflip
from pairflip.cli import app

DEMO = ["demo", "--sizes", "4", "--jobs", "1"]


def invoke(*arguments):
    """In this process."""
    return CliRunner().invoke(app, list(arguments))


def run(*arguments):
    """As people type it, with no terminal anywhere."""
    return subprocess.run(
        [sys.executable, "-m", "pairflip", *arguments],
        env=os.environ | {"COLUMNS": "80"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture(scope="module")
def demo():
    """One run to compile whatever is not compiled, which may say so on standard error; then the run itself."""
    run("demo", "--sizes", "1", "--jobs", "1")
    done = run(*DEMO)
    assert done.returncode == 0, done.stderr
    return done


def plain(text):
    """Without colours, which some build servers force."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def without_seconds(rows):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


def table_rows(text):
    """Lines that start with a size: its number, energy, R^2, agreement, seconds, columns."""
    return [line.split(maxsplit=5) for line in text.splitlines() if re.match(r"\s*\d+\s", line)]


def test_demo_prints_a_table(demo):
    rows = table_rows(demo.stdout)
    assert [row[0] for row in rows] == ["1", "2", "3", "4"]
    assert [row[5].strip() for row in rows] == ["bmi", "bmi, ltg", "bmi, bp, ltg", "bmi, bp, ltg, age*sex"]
    assert rows[1][1] == "708347"
    assert "residual sum of squares" in demo.stdout


def test_demo_without_a_terminal_is_silent_and_plain(demo):
    assert demo.stderr == ""
    assert "\x1b" not in demo.stdout
    assert "\r" not in demo.stdout


def test_demo_in_this_process_prints_the_same(demo):
    result = invoke(*DEMO)
    assert result.exit_code == 0
    assert [row[:4] + row[5:] for row in table_rows(result.stdout)] == [
        row[:4] + row[5:] for row in table_rows(demo.stdout)
    ]


def test_json_is_read_by_machines(demo):
    done = run(*DEMO, "--json")
    rows = json.loads(done.stdout)
    assert done.stderr == ""
    assert [row["k"] for row in rows] == [1, 2, 3, 4]
    assert [len(row["columns"]) for row in rows] == [1, 2, 3, 4]
    assert all(0 < row["r_squared"] < 1 and 0 < row["agreement"] <= 1 for row in rows)
    assert [f"{row['energy']:.0f}" for row in rows] == [row[1] for row in table_rows(demo.stdout)]


def test_energies_fall_with_the_size():
    rows = json.loads(invoke("demo", "--sizes", "9", "--json").stdout)
    energies = [row["energy"] for row in rows]
    assert energies == sorted(energies, reverse=True)
    assert len(set(energies)) == 9
    assert [row["r_squared"] for row in rows] == sorted(row["r_squared"] for row in rows)


def test_the_same_seed_gives_the_same_output():
    first, again, threads, other = (
        without_seconds(json.loads(invoke("demo", "--sizes", "7", "--json", *options).stdout))
        for options in (
            ["--seed", "3", "--jobs", "1"],
            ["--seed", "3", "--jobs", "1"],
            ["--seed", "3", "--jobs", "2"],
            ["--seed", "4", "--jobs", "1"],
        )
    )
    assert first == again == threads
    assert first != other  # not the columns, but how many chains agree on them
    assert [row["columns"] for row in first] == [row["columns"] for row in other]


def test_version():
    assert invoke("--version").stdout == run("--version").stdout == f"pairflip {pairflip.__version__}\n"


@pytest.mark.parametrize("arguments", [["--help"], ["demo", "--help"]])
def test_help(arguments):
    result = invoke(*arguments)
    assert result.exit_code == 0
    assert "Usage:" in result.stdout
    assert "demo" in result.stdout


BAD_USAGE = {
    "unknown option": (["demo", "--size", "3"], "--size"),
    "unknown command": (["dmeo"], "dmeo"),
    "no number": (["demo", "--sizes", "many"], "'--sizes'"),
    "too small": (["demo", "--sizes", "0"], "'--sizes'"),
    "too large": (["demo", "--sizes", "64"], "'--sizes'"),
    "negative seed": (["demo", "--seed", "-1"], "'--seed'"),
    "no threads": ([*DEMO, "--jobs", "0"], "n_jobs is 0"),
    "seed too large": ([*DEMO, "--seed", str(2**64)], f"seed is {2**64}"),
}


@pytest.mark.parametrize(("arguments", "named"), BAD_USAGE.values(), ids=BAD_USAGE)
def test_bad_usage_is_exit_code_2_and_no_traceback(arguments, named):
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert named in plain(result.stderr)
    assert "Traceback" not in result.stderr


def test_bad_usage_in_a_shell():
    done = run("demo", "--size", "3")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "--size" in plain(done.stderr)
    assert "Traceback" not in done.stderr


def test_no_arguments_is_help():
    done = run()
    assert "Usage:" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_errors_that_are_not_the_users_keep_their_traceback(monkeypatch):
    """One sentence is for bad input; a bug must not hide behind it."""
    monkeypatch.setattr("pairflip.demo.run_demo", lambda *_, **__: {}["missing"])
    result = invoke(*DEMO)
    assert result.exit_code == 1
    assert isinstance(result.exception, KeyError)
