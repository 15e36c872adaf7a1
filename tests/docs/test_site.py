"""The documentation site: every page has its place, every public name its entry, every snippet somebody who runs it.

The site itself is built by `make docs`, which needs Sphinx; these tests do not.
"""

import ast
import re
import sys

import pytest

import pairflip
from _cli import without_figures
from _pages import DOCS, blocks, run_from_top_to_bottom, run_session
from conftest import ROOT

pytestmark = pytest.mark.docs

PAGES = sorted(
    path.relative_to(DOCS).as_posix()
    for kind in ("md", "rst")
    for path in DOCS.rglob(f"*.{kind}")
    if not {"_build", "_templates", "examples", "gallery", "pictures", "api"} & set(path.relative_to(DOCS).parts)
)
WALKS = {"start.md": 4, "how-to/spectra.md": 7, "how-to/genes.md": 5, "how-to/economy.md": 6}
"""Pages whose commands are run one after the other, and how many they have."""
IN_ORDER = [*WALKS, "command-line.md"]
"""The same, and the page of tests/docs/test_command_line_docs.py."""
ELSEWHERE = {"theory.md"}
"""Pages that other test files run: tests/paper/test_theory_docs.py."""
GALLERY = sorted((DOCS / "gallery").glob("*.py"))


def linked() -> set[str]:
    """Pages that some toctree names, without their endings."""
    found = set()
    for page in PAGES:
        folder = (DOCS / page).parent
        text = (DOCS / page).read_text(encoding="utf-8")
        for listing in re.findall(r"```\{toctree\}\n(.*?)```", text, flags=re.DOTALL):
            names = [line for line in listing.split("\n") if line.strip() and not line.startswith(":")]
            found |= {place(folder, name) for name in names}
        for listing in re.findall(r"\.\. toctree::\n((?:[ \t]+.*\n|\n)+)", text):
            names = [line.strip() for line in listing.split("\n") if line.strip() and not line.strip().startswith(":")]
            found |= {place(folder, name) for name in names}
    return found


def place(folder, name):
    """The page that a line of a toctree means, perhaps under another title: ``Start <start>``."""
    name = re.sub(r".*<(.+)>", r"\1", name)
    return (DOCS / name[1:] if name.startswith("/") else folder / name).relative_to(DOCS).as_posix()


def test_every_page_has_its_place_in_the_navigation():
    names = linked()
    stems = {page.rsplit(".", 1)[0] for page in PAGES}
    missing = {stem for stem in stems - names if not any(re.fullmatch(n.replace("*", ".*"), stem) for n in names)}
    assert missing == {"index"}, "name them in a toctree: docs/more.md, docs/how-to/index.md, ..."


def test_what_the_navigation_names_exists():
    stems = {page.rsplit(".", 1)[0] for page in PAGES} | {"examples/index"}  # the gallery is made by the build
    assert {name for name in linked() if "*" not in name} <= stems


def test_every_public_name_is_in_the_reference():
    reference = (DOCS / "reference" / "api.rst").read_text(encoding="utf-8")
    listed = set(re.findall(r"^   ([\w.]+)$", reference, flags=re.MULTILINE))
    assert set(pairflip.__all__) <= listed, "list them in docs/reference/api.rst"
    homes = {name.split(".")[0] for name in listed}
    assert all(hasattr(pairflip, home) for home in homes - {"sindy", "tables", "selection"})


def test_every_snippet_is_run_by_some_test():
    from test_selection_docs import PAGES as BY_THEMSELVES

    shown = {page for page in PAGES for block in (blocks(page) if page.endswith(".md") else ())
             if block.language in ("python", "console") and block.no_run is None}  # fmt: skip
    assert shown - {"index.md"} <= {*BY_THEMSELVES, *IN_ORDER, *ELSEWHERE}, (
        "add them to tests/docs/test_selection_docs.py"
    )


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


@pytest.mark.parametrize("script", GALLERY, ids=lambda path: path.stem)
def test_an_example_is_a_script_with_a_title_and_pictures(script):
    """That it runs is for the build to see; what it imports exists."""
    tree = ast.parse(script.read_text(encoding="utf-8"))
    title, line = ast.get_docstring(tree).splitlines()[:2]
    assert len(title) == len(line)
    assert set(line) == {"="}
    assert "plt.show()" in script.read_text(encoding="utf-8")
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in ("pairflip", "pairflip.figures", "pairflip.selection"):
            home = __import__(node.module, fromlist=["_"])
            assert all(hasattr(home, alias.name) for alias in node.names)


def test_there_are_thirteen_examples():
    assert len(GALLERY) == 13


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
