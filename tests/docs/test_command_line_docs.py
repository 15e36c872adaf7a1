"""docs/command-line.md runs as it stands, and its commands print what it says."""

import re

import pytest

from _cli import invoke, without_figures
from _markdown import fenced_blocks
from _pages import DOCS, run_from_top_to_bottom
from pairflip.cli import app

pytestmark = pytest.mark.docs

TEXT = (DOCS / "command-line.md").read_text(encoding="utf-8")


def test_the_page_runs_from_top_to_bottom(tmp_path, monkeypatch):
    without_figures(monkeypatch)
    monkeypatch.chdir(tmp_path)
    assert run_from_top_to_bottom("command-line.md", tmp_path) >= 9


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
