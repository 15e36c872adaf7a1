"""Importing is cheap and lazy; compiling happens once, and says so."""

import json
import os
import shutil
import subprocess
import sys

import pytest

import pairflip
from conftest import ROOT

HEAVY = ["numba", "sklearn", "matplotlib", "scipy", "pandas", "typer", "rich", "joblib"]


def python(code, **environment):
    """Run code in a fresh interpreter."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def answer(code):
    """What a fresh interpreter prints, read as JSON."""
    done = python(code)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.alone
def test_import_is_quick():
    code = "import time; t = time.perf_counter(); import pairflip; print(time.perf_counter() - t)"
    assert sorted(answer(code) for _ in range(5))[2] < 0.15


def test_a_problem_needs_numpy_only():
    code = (
        "import json, sys, pairflip; import numpy as np; X = np.eye(4)[:, :2]; "
        "pairflip.SubsetProblem(X, np.arange(4.0)).energy([0]); pairflip.Schedule.paper(); "
        "print(json.dumps(sorted(sys.modules)))"
    )
    loaded = answer(code)
    assert "numpy" in loaded
    assert [name for name in HEAVY if name in loaded] == []


def test_the_theory_keeps_its_public_name_and_needs_numpy_and_scipy_only():
    code = (
        "import json, sys, pairflip.theory; from pairflip.theory import solve; import pairflip; "
        "assert pairflip.theory.solve is solve; solve(10.0, 0.1, pairflip.theory.Planted()); "
        "print(json.dumps(sorted(sys.modules)))"
    )
    loaded = answer(code)
    assert [name for name in HEAVY if name in loaded] == ["scipy"]
    assert [name for name in loaded if name.startswith("pairflip.") and "theory" not in name] == ["pairflip.paper"]


OFTEN = {"SubsetProblem", "posterior", "theory"}  # others only if asked; a test below begins with the estimators


@pytest.mark.parametrize(
    "name", [name if name in OFTEN else pytest.param(name, marks=pytest.mark.slow) for name in pairflip.__all__]
)
def test_every_public_name_loads_on_its_own(name):
    kind = answer(f"import json, pairflip; print(json.dumps(type(pairflip.{name}).__name__))")
    assert kind in ("type", "ABCMeta", "function", "module")
    assert (kind == "module") == (name in ("datasets", "features", "figures", "preprocessing", "testing", "theory"))


def test_anneal_is_the_function_whatever_was_imported_first():
    code = "from pairflip import *\nimport json, pairflip\nfrom pairflip import anneal\n"
    assert answer(code + "print(json.dumps([callable(anneal), callable(pairflip.anneal)]))") == [True, True]


def test_unknown_names_raise_attribute_error():
    with pytest.raises(AttributeError, match="module 'pairflip' has no attribute 'AnealedSubset'"):
        _ = pairflip.AnealedSubset
    with pytest.raises(ImportError, match="cannot import name 'AnealedSubset'"):
        from pairflip import AnealedSubset  # noqa: F401
    assert not hasattr(pairflip, "__wrapped__")


def test_help_of_the_command_line_loads_nothing_heavy():
    code = (
        "import json, sys\nfrom typer.testing import CliRunner\nfrom pairflip.cli import app\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0\nprint(json.dumps(sorted(sys.modules)))"
    )
    loaded = answer(code)
    assert [name for name in ("numba", "sklearn", "matplotlib", "scipy", "pandas") if name in loaded] == []


FIT = """
import time
began = time.perf_counter()
import numpy as np
from pairflip import SubsetRegressor
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 20))
model = SubsetRegressor(3, random_state=0).fit(X, X[:, [2, 5, 11]].sum(axis=1) + 0.1 * rng.normal(size=40))
assert model.support_.tolist() == [2, 5, 11]
print(time.perf_counter() - began)
"""


@pytest.mark.alone
@pytest.mark.slow
def test_compiling_happens_once_and_says_so(tmp_path):
    first, second = (python(FIT, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert [line for line in first.stderr.splitlines() if "compiling" in line]
    assert second.stderr == ""
    assert float(first.stdout) < 20
    assert float(second.stdout) < float(first.stdout) / 4


EDITED = """
from pathlib import Path
from pairflip import SubsetProblem, anneal
import numpy as np, pairflip
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 12))
trace = anneal(SubsetProblem(X, X[:, 0] + rng.normal(size=40)), 3, "paper", chains=1, polish=False)
print(Path(pairflip.__file__).parent, trace.acceptance.sum())
"""


@pytest.mark.slow
def test_a_change_in_any_kernel_file_compiles_anew(tmp_path):
    package = tmp_path / "pairflip"
    shutil.copytree(ROOT / "src" / "pairflip", package, ignore=shutil.ignore_patterns("__pycache__"))
    before = python(EDITED, PYTHONPATH=str(tmp_path))
    draws = package / "engines" / "numba" / "draws.py"
    text = draws.read_text()
    right, wrong = "return u <= np.exp(-z)", "return True"
    assert right in text
    draws.write_text(text.replace(right, wrong))
    after = python(EDITED, PYTHONPATH=str(tmp_path))
    assert before.stdout.split()[0] == after.stdout.split()[0] == str(package), before.stderr + after.stderr
    assert float(before.stdout.split()[1]) < float(after.stdout.split()[1])
