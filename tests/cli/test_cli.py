"""The command line: data on standard output, the rest on standard error, exit codes that mean something."""

import json
import resource
import subprocess
import sys

import pytest
from typer.main import get_command

import pairflip
from _cli import FILES, invoke, plain, run, small_table, without_figures
from pairflip.cli import app
from pairflip.selection import SizeCurve

DEMO = ["demo", "--sizes", "1,3", "--jobs", "2"]


def test_demo_answers_first_then_shows_the_table_then_the_files_and_gives_the_same_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    without_figures(monkeypatch)
    done = invoke(*DEMO)
    assert done.exit_code == 0, done.stderr
    texts = ("Keep 3 columns: “bmi”, “bp” and “ltg”", "size  ", "Report: pairflip-demo")
    places = [done.stdout.index(text) for text in texts]
    assert places == sorted(places)
    table = done.stdout[done.stdout.index(texts[1]) :].split("\n\n")[0]
    rows = [line.split() for line in table.splitlines() if line.strip()[:1].isdigit()]
    assert [(row[0].rstrip("*+"), row[-1]) for row in rows] == [("0", "alone)"), ("1", "bmi"), ("3", "ltg")]
    assert not {"\x1b", "\r"} & set(done.stdout)  # plain without a terminal
    assert all(line == line.rstrip() for line in done.stdout.splitlines())
    assert {path.name for path in (tmp_path / "pairflip-demo").iterdir()} == FILES - {"run.toml", "figures"}
    before = SizeCurve.load(tmp_path / "pairflip-demo" / "result.json")
    printed = json.loads(invoke("demo", "--sizes", "1,3", "--jobs", "1", "--json").stdout)
    after = SizeCurve.load(tmp_path / "pairflip-demo" / "result.json")
    assert printed["cv_error"] == before.cv_error.tolist() == after.cv_error.tolist()
    assert [path.name for path in tmp_path.iterdir()] == ["pairflip-demo"]


def test_in_a_shell_it_is_silent_and_plain(tmp_path):
    small_table(tmp_path / "small.csv")
    done = run("fit", "small.csv", "-t", "y", "-k", "2", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("The best 2 columns for y: R^2 0.99")
    assert not {"\x1b", "\r"} & set(done.stdout + done.stderr)
    assert [path.name for path in tmp_path.iterdir()] == ["small.csv"]


@pytest.mark.alone
@pytest.mark.slow
def test_the_whole_demo_ends_within_a_minute(tmp_path):
    done = run("demo", folder=tmp_path, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "Prediction is best with 11 columns" in done.stdout


def test_version():
    assert invoke("--version").stdout == run("--version").stdout == f"pairflip {pairflip.__version__}\n"


def test_help():
    shown, bare = invoke("--help").stdout, run()
    assert "Usage:" in bare.stdout + bare.stderr
    assert "Traceback" not in bare.stderr
    for name in get_command(app).commands:
        assert name in shown
        assert f"Usage: root {name}" in plain(invoke(name, "--help").stdout)


@pytest.mark.alone
def test_help_is_quick():
    """At most three times the CPU time of two empty commands: what typer itself costs depends on the machine."""

    def seconds(program):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, *program, "--help"], capture_output=True, text=True, timeout=60)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.returncode == 0, done.stderr
        assert "Usage" in done.stdout
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    empty = "import typer\napp = typer.Typer()\nfor name in 'ab': app.command(name)(lambda: None)\napp()"
    ours, smallest = (min(seconds(program) for _ in range(3)) for program in (["-m", "pairflip"], ["-c", empty]))
    assert ours < 3 * smallest


def broken(*_, **__):
    return {}["missing"]


def test_a_bug_is_called_a_bug(monkeypatch, tmp_path):
    """One sentence is for bad input; a bug must not hide behind it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pairflip.selection.select_size", broken)
    result = invoke(*DEMO)
    assert result.exit_code == 1
    assert plain(result.stderr).startswith("pairflip: this is a bug: KeyError: 'missing'.")
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("PAIRFLIP_DEBUG", "1")
    assert "Traceback" in invoke(*DEMO).stderr


def test_a_reader_that_closes_the_pipe_ends_the_command_quietly(tmp_path):
    code = f"{sys.executable} -m pairflip theory --help | head -c 10"
    done = subprocess.run(code, shell=True, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert "Traceback" not in done.stderr
    assert len(done.stdout) == 10
