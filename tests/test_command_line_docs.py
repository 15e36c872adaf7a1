"""docs/command-line.md runs as it stands, and its commands print what it says."""

import doctest
import os
import re
import shlex
import subprocess
import sys

import pytest

from _cli import invoke
from _markdown import fenced_blocks
from conftest import ROOT
from pairflip.cli import app

PAGE = ROOT / "docs" / "command-line.md"
TEXT = PAGE.read_text(encoding="utf-8")
PRELUDE = 'set -uo pipefail\npairflip() { "$PAIRFLIP_PYTHON" -m pairflip "$@"; }\n'
ALIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def sessions(block):
    """(command, what it should print) of a console block."""
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
    return [(command, expected) for command, _, expected in (part.partition("\n") for part in parts)]


def output(command, folder):
    """What a command prints: in this process, to spare the imports, unless it needs a shell."""
    words = shlex.split(command)
    if words[0] == "pairflip" and not {"|", "||", ">", "&&"} & set(words):
        result = invoke(*words[1:])
        code, out, err = result.exit_code, result.stdout, result.stderr
    else:
        done = subprocess.run(
            ["bash", "-c", PRELUDE + command],
            cwd=folder,
            env=os.environ | {"PAIRFLIP_PYTHON": sys.executable},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        code, out, err = done.returncode, done.stdout, ""
    assert code == 0, f"{command}\n{out}\n{err}"
    return out


def test_the_page_runs_from_top_to_bottom(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = 0
    for block in fenced_blocks(TEXT):
        if block.no_run is not None:
            continue
        if block.language == "python":
            subprocess.run([sys.executable, "-c", block.text], cwd=tmp_path, check=True, timeout=60)
            continue
        for command, expected in sessions(block):
            got = output(command, tmp_path)
            same = doctest.OutputChecker().check_output(expected, got, ALIKE)
            assert same, f"{command}\nexpected\n{expected}\ngot\n{got}"
            ran += 1
    assert ran >= 9


def commands():
    return {info.callback.__name__ for info in app.registered_commands}


def test_every_command_is_on_the_page():
    assert {name for name in commands() if f"`pairflip {name}`" not in TEXT} == set()


@pytest.mark.parametrize("command", sorted(commands()))
def test_every_option_on_the_page_exists(command):
    """Of the commands as shown."""
    shown = "\n".join(block.text for block in fenced_blocks(TEXT))
    lines = [line for line in shown.splitlines() if f"pairflip {command} " in line]
    help_text = invoke(command, "--help").stdout
    for line in lines:
        for option in re.findall(r"(?<!\S)--[a-z-]+", line):
            assert option in help_text
