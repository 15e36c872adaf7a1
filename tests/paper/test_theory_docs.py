"""What docs/theory.md and the docstrings of the theory show, runs."""

import doctest
import importlib

import pytest

from _markdown import fenced_blocks
from conftest import ROOT

pytestmark = pytest.mark.docs

BLOCKS = [b for b in fenced_blocks((ROOT / "docs" / "theory.md").read_text(encoding="utf-8")) if b.language == "python"]
assert BLOCKS


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"line-{block.line}")
def test_page(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(block.text, "theory.md", "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("name", ["states", "curves"])
def test_docstrings(name):
    result = doctest.testmod(importlib.import_module(f"pairflip.paper.theory.{name}"))
    assert result.attempted > 0
    assert result.failed == 0
