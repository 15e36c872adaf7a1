"""What the README and the pages of docs/ show, runs; every command and every public name has its place there.

The site itself is built by `make docs`, which needs Sphinx; these tests do not.
"""

import doctest
import importlib
import os
import re
import subprocess
import sys

import pytest

import pairflip
from _cli import without_figures
from _page_figures import without_drawings
from _pages import DOCS, blocks, output, run_from_top_to_bottom, run_session
from conftest import ROOT
from pairflip.cli import app

pytestmark = pytest.mark.docs

README = "../README.md"
WALKS = {"start.md": 4, "how-to/spectra.md": 7, "how-to/genes.md": 5, "how-to/economy.md": 6, "command-line.md": 19}
"""Pages whose commands are run one after the other, and how many they have."""
NO_PAGES = {"_build", "_templates", "examples", "gallery", "pictures", "api"}
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
SHOWN = [(page, block) for page in [README, *PAGES] if not NO_PAGES & set(page.split("/")) for block in blocks(page)]
PYTHON = [(page, block) for page, block in SHOWN if block.language == "python" and page not in WALKS]
SHELL = [block for page, block in SHOWN if page == README and block.language in ("console", "bash")]


@pytest.mark.parametrize(("page", "block"), PYTHON, ids=[f"{page}-{block.line}" for page, block in PYTHON])
def test_python_block_runs(page, block, tmp_path, monkeypatch):
    """By itself, in an empty folder."""
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


@pytest.mark.parametrize("block", SHELL, ids=lambda block: f"line-{block.line}")
def test_commands_of_the_readme_run(block, tmp_path, monkeypatch):
    if block.no_run is not None:
        pytest.skip(f"README.md line {block.line}: {block.no_run}")
    without_figures(monkeypatch)
    monkeypatch.chdir(tmp_path)
    lines = [line.strip().removeprefix("$ ") for line in re.sub(r"\\\n\s*", " ", block.text).splitlines()]
    for command in (line for line in lines if line.startswith("pairflip ")):
        output(command, tmp_path)


@pytest.mark.parametrize("page", WALKS)
def test_a_walk_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    without_figures(monkeypatch)
    monkeypatch.chdir(tmp_path)
    assert run_from_top_to_bottom(page, tmp_path) == WALKS[page]


@pytest.mark.slow
def test_the_demonstration_prints_what_the_tutorial_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (demo,) = (block for block in blocks("start.md") if block.text.startswith("$ pairflip demo"))
    run_session(demo, tmp_path)


@pytest.mark.parametrize("name", ["states", "curves"])
def test_docstrings_of_the_theory_run(name):
    result = doctest.testmod(importlib.import_module(f"pairflip.paper.theory.{name}"))
    assert result.attempted > 0
    assert result.failed == 0


def test_every_command_is_on_its_page():
    text = (DOCS / "command-line.md").read_text(encoding="utf-8")
    names = {info.callback.__name__ for info in app.registered_commands}
    assert {name for name in names if f"`pairflip {name}`" not in text} == set()


def test_every_public_name_is_in_the_reference():
    reference = (DOCS / "reference" / "api.rst").read_text(encoding="utf-8")
    listed = set(re.findall(r"^   ([\w.]+)$", reference, flags=re.MULTILINE))
    assert set(pairflip.__all__) <= listed, "list them in docs/reference/api.rst"
    homes = {name.split(".")[0] for name in listed}
    assert all(hasattr(pairflip, home) for home in homes - {"sindy", "tables", "selection"})


@pytest.fixture
def check_links(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    import check_links

    yield check_links.problems
    del sys.modules["check_links"]


def test_bad_links_and_the_network_are_noticed(check_links, tmp_path):
    (tmp_path / "good.html").write_text('<h1 id="top">x</h1><a href="good.html#top"></a><a href="https://a.b"></a>')
    assert check_links(tmp_path) == []
    (tmp_path / "bad.html").write_text(
        '<a href="gone.html"></a><a href="good.html#nowhere"></a><script src="https://cdn.example/x.js"></script>'
    )
    (tmp_path / "bad.css").write_text("@font-face { src: url('https://fonts.example/f.woff2') }")
    found = "\n".join(check_links(tmp_path))
    assert len(found.splitlines()) == 4
    for word in ("gone.html", "#nowhere", "cdn.example", "fonts.example"):
        assert word in found


def test_the_oldest_versions_are_those_of_pyproject(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / ".ci"))
    import release_check

    oldest = release_check.oldest_versions(ROOT / "pyproject.toml")
    assert "numpy==2.0" in oldest
    assert release_check.oldest_python(ROOT / "pyproject.toml") == "3.11"
    assert all("==" in pin for pin in oldest)
