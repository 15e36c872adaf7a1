"""What the README shows, runs: each Python block and each pairflip command, in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from _markdown import Block, fenced_blocks
from conftest import ROOT

README = ROOT / "README.md"
BLOCKS = fenced_blocks(README.read_text(encoding="utf-8")) if README.is_file() else []
PYTHON_BLOCKS = [block for block in BLOCKS if block.language == "python"]

# `pairflip` in a README line means the one beside this interpreter.
SHELL_PRELUDE = 'set -euo pipefail\npairflip() { "$PAIRFLIP_PYTHON" -m pairflip "$@"; }\n'


def commands(block: Block) -> str:
    """The `pairflip ...` lines of a shell block, prompts stripped, continuation lines kept together."""
    joined = re.sub(r"\\\n\s*", " ", block.text)
    lines = [line.strip().removeprefix("$ ") for line in joined.splitlines()]
    return "\n".join(line for line in lines if line.split()[:1] == ["pairflip"])


SHELL_BLOCKS = [block for block in BLOCKS if block.language in {"console", "bash"} and commands(block)]


def run(command: list[str], folder: Path) -> None:
    env = os.environ | {"MPLBACKEND": "Agg", "PAIRFLIP_PYTHON": sys.executable}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"


def skip_if_marked(block: Block) -> None:
    if block.no_run is not None:
        pytest.skip(f"README.md line {block.line}: {block.no_run}")


def by_line(block: Block) -> str:
    return f"line-{block.line}"


def test_readme_shows_python():
    assert PYTHON_BLOCKS, "README.md has no ```python block"
    assert any(block.no_run is None for block in PYTHON_BLOCKS), "no ```python block of README.md is run"


@pytest.mark.parametrize("block", PYTHON_BLOCKS, ids=by_line)
def test_python_block_runs(block, tmp_path):
    skip_if_marked(block)
    snippet = tmp_path / "snippet.py"
    snippet.write_text(block.text, encoding="utf-8")
    run([sys.executable, snippet.name], tmp_path)


@pytest.mark.parametrize("block", SHELL_BLOCKS, ids=by_line)
def test_shell_block_runs(block, tmp_path):
    skip_if_marked(block)
    run(["bash", "-c", SHELL_PRELUDE + commands(block)], tmp_path)
