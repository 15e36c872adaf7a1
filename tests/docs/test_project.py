"""The files around the code agree with it and with each other."""

import os
import re
import shutil
import subprocess
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import pairflip
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


def test_changelog_and_citation_name_this_version_and_its_date():
    version, date = re.search(r"^## \[(.+?)\] - (\d{4}-\d\d-\d\d)$", read("CHANGELOG.md"), flags=re.MULTILINE).groups()
    assert version == pairflip.__version__
    assert re.findall(r"^(?:version|date-released): (.+)$", read("CITATION.cff"), flags=re.MULTILINE) == [version, date]


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
