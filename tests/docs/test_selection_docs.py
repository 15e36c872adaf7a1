"""What the documentation pages show, runs: each Python block in an empty folder, on its own."""

import os
import re
import subprocess
import sys

import pytest

from _page_figures import without_drawings
from _pages import DOCS, blocks

pytestmark = pytest.mark.docs

PAGES = [
    "choosing-the-size.md",
    "classes.md",
    "comparison.md",
    "finite-temperature.md",
    "posterior.md",
    "cluster.md",
    "groups.md",
    "how-to/laws.md",
    "limits.md",
    "predicting.md",
    "preprocessing.md",
    "proof.md",
    "publishing.md",
    "report.md",
    "searching.md",
    "several-targets.md",
    "stability.md",
    "upgrading.md",
    "explanation/numerical-safety.md",
    "how-to/correlated-columns.md",
    "how-to/dynamics.md",
    "how-to/how-sure.md",
    "how-to/large-tables.md",
    "how-to/own-loss.md",
    "how-to/runs.md",
    "how-to/scikit-learn.md",
    "reference/files.md",
]
BLOCKS = [(page, block) for page in PAGES for block in blocks(page) if block.language == "python"]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_python_that_runs(page):
    assert any(block.no_run is None for name, block in BLOCKS if name == page)


@pytest.mark.parametrize(("page", "block"), BLOCKS, ids=[f"{page}-{block.line}" for page, block in BLOCKS])
def test_python_block_runs(page, block, tmp_path, monkeypatch):
    if block.no_run is not None:
        compile(block.text, page, "exec")
        pytest.skip(f"docs/{page} line {block.line}: {block.no_run}")
    if page == "how-to/dynamics.md":
        pytest.importorskip("pysindy", reason="PySINDy is not installed: pip install 'pairflip[sindy]'")
    if page != "cluster.md" and "register(" not in block.text:  # in this process, to spare the imports
        if page != "report.md":
            without_drawings(monkeypatch)
        monkeypatch.chdir(tmp_path)
        exec(compile(block.text, page, "exec"), {"__name__": "__main__"})
        return
    snippet = tmp_path / "snippet.py"
    snippet.write_text(block.text, encoding="utf-8")
    command = [sys.executable, snippet.name]
    done = subprocess.run(command, cwd=tmp_path, env=os.environ, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)", text):
        if "://" not in target:
            assert ((DOCS / page).parent / target).is_file(), target
