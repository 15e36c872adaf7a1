"""What the README shows, runs: each Python block and each pairflip command, in an empty folder."""

import re

import pytest

from _cli import without_figures
from _markdown import Block, fenced_blocks
from _pages import output
from conftest import ROOT

pytestmark = pytest.mark.docs

README = ROOT / "README.md"
BLOCKS = fenced_blocks(README.read_text(encoding="utf-8")) if README.is_file() else []
PYTHON_BLOCKS = [block for block in BLOCKS if block.language == "python"]


def commands(block: Block) -> list[str]:
    """The `pairflip ...` lines of a shell block, prompts stripped, continuation lines kept together."""
    joined = re.sub(r"\\\n\s*", " ", block.text)
    lines = [line.strip().removeprefix("$ ") for line in joined.splitlines()]
    return [line for line in lines if line.split()[:1] == ["pairflip"]]


SHELL_BLOCKS = [block for block in BLOCKS if block.language in {"console", "bash"} and commands(block)]


def skip_if_marked(block: Block) -> None:
    if block.no_run is not None:
        pytest.skip(f"README.md line {block.line}: {block.no_run}")


def by_line(block: Block) -> str:
    return f"line-{block.line}"


def test_readme_shows_python():
    assert PYTHON_BLOCKS, "README.md has no ```python block"
    assert any(block.no_run is None for block in PYTHON_BLOCKS), "no ```python block of README.md is run"


@pytest.mark.parametrize("block", PYTHON_BLOCKS, ids=by_line)
def test_python_block_runs(block, tmp_path, monkeypatch):
    skip_if_marked(block)
    monkeypatch.chdir(tmp_path)
    exec(compile(block.text, "README.md", "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("block", SHELL_BLOCKS, ids=by_line)
def test_shell_block_runs(block, tmp_path, monkeypatch):
    """The demonstration is run with its figures, as people type it, in tests/cli/test_cli.py."""
    skip_if_marked(block)
    without_figures(monkeypatch)
    monkeypatch.chdir(tmp_path)
    for command in commands(block):
        output(command, tmp_path)
