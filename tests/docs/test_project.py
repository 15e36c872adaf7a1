"""The files around the code agree with it and with each other."""

import os
import re
import shlex
import shutil
import subprocess
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import pairflip
from _markdown import code
from conftest import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def requirements() -> list[Requirement]:
    """Everything pyproject.toml asks for: to build, to run, in extras and in groups."""
    project = PYPROJECT["project"]
    lists = [
        PYPROJECT["build-system"]["requires"],
        project["dependencies"],
        *project["optional-dependencies"].values(),
        *PYPROJECT["dependency-groups"].values(),
    ]
    return [Requirement(line) for lines in lists for line in lines if isinstance(line, str)]


def pins() -> dict[str, str]:
    lines = [line for line in read("constraints.txt").splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.+!]+", line) for line in lines), "constraints.txt: name==version only"
    return {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"])
def test_make_targets_that_a_page_names_exist(page):
    targets = set(re.findall(r"^([a-z][\w-]*):", read("Makefile"), flags=re.MULTILINE))
    calls = re.findall(r"(?:^|&&)[$\s]*(?:\w+=\S+\s+)*make +([^&|;#\n]+)", code(read(page)), flags=re.MULTILINE)
    words = {word for call in calls for word in shlex.split(call)}
    named = {word for word in words if "=" not in word and not word.startswith("-")}
    assert named <= targets, f"{page} names make targets that the Makefile lacks: {sorted(named - targets)}"


def test_make_help_lists_every_public_target():
    makefile = read("Makefile")
    public = set(re.search(r"^\.PHONY: (.*)", makefile, flags=re.MULTILINE)[1].split())
    assert set(re.findall(r"^([a-z-]+):.*## ", makefile, flags=re.MULTILINE)) == public


STUB = """#!/bin/sh
case " $* " in *" -m not alone "*) exit $OTHERS ;; *) exit $ALONE ;; esac
"""


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
@pytest.mark.parametrize(
    ("others", "alone", "passes"),
    [
        (0, 0, True),
        (1, 0, False),
        (0, 1, False),
        (0, 5, True),
        (5, 1, False),
    ],
)
def test_make_test_fails_if_either_part_fails(others, alone, passes, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").write_text(STUB)
    (tmp_path / "bin" / "python").chmod(0o755)
    for stamp in (".made", ".base", ".dev", ".browser"):
        (tmp_path / stamp).touch()
    env = os.environ | {"OTHERS": str(others), "ALONE": str(alone)}
    done = subprocess.run(["make", "test", f"VENV={tmp_path}"], cwd=ROOT, env=env, capture_output=True, text=True)
    assert (done.returncode == 0) == passes, done.stdout + done.stderr


def test_changelog_opens_with_this_version():
    versions = re.findall(r"^## \[(.+?)\]", read("CHANGELOG.md"), flags=re.MULTILINE)
    assert versions[:1] == [pairflip.__version__]


def test_citation_names_this_version():
    assert re.findall(r"^version: (.+)$", read("CITATION.cff"), flags=re.MULTILINE) == [pairflip.__version__]


def test_citation_has_the_date_of_the_changelog():
    date = re.search(r"^## \[.+?\] - (\d{4}-\d\d-\d\d)$", read("CHANGELOG.md"), flags=re.MULTILINE)[1]
    assert re.findall(r"^date-released: (.+)$", read("CITATION.cff"), flags=re.MULTILINE) == [date]


def test_conda_recipe_asks_for_what_pyproject_asks_for():
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    recipe, project = yaml.safe_load(read("conda/meta.yaml")), PYPROJECT["project"]
    assert recipe["package"] == {"name": "pairflip", "version": pairflip.__version__}
    assert recipe["build"]["noarch"] == "python"
    assert recipe["build"]["entry_points"] == [f"pairflip = {project['scripts']['pairflip']}"]
    wanted = {f"python {project['requires-python']}", *map(str, map(Requirement, project["dependencies"]))}
    given = {line.replace("matplotlib-base", "matplotlib") for line in recipe["requirements"]["run"]}
    assert {line.replace(" ", "") for line in given} == {line.replace(" ", "") for line in wanted}


@pytest.mark.parametrize("requirement", requirements(), ids=str)
def test_constraints_pin_what_pyproject_asks_for(requirement):
    name = canonicalize_name(requirement.name)
    assert name in pins(), f"{name} is not pinned: run make lock"
    assert requirement.specifier.contains(pins()[name]), f"{name}=={pins()[name]} does not meet {requirement}"


def test_every_runtime_dependency_has_a_written_reason():
    reasons = read("docs/decisions/003-runtime-dependencies.md")
    names = [Requirement(line).name for line in PYPROJECT["project"]["dependencies"]]
    assert [name for name in names if f"`{name}`" not in reasons] == []


HOME = ROOT / "src" / "pairflip"
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    "ARCHITECTURE.md",
    *(p.relative_to(ROOT).as_posix() for p in ROOT.glob("docs/**/*.md")),
]
SOURCES = (".py", ".cu", ".cuh")


def named_files(page: str) -> list[str]:
    """What a page names that must be a file or a folder of the project (a folder of the map ends in a slash)."""
    names = re.findall(r"`([\w./-]+)`", read(page))
    places = ("src/", "tests/", "docs/", "benchmarks/") if page != "ARCHITECTURE.md" else ("",)
    return [name for name in names if name.endswith(SOURCES) or (name.endswith("/") and name.startswith(places))]


@pytest.mark.parametrize("page", PAGES)
def test_files_that_a_page_names_exist(page):
    gone = [
        name
        for name in named_files(page)
        if not any((place / name).exists() for place in (ROOT, HOME)) and ("/" in name or not any(HOME.rglob(name)))
    ]
    assert gone == []
