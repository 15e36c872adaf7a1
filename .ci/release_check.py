"""Is this a release? Build twice, compare, install into empty environments, try it: ``python .ci/release_check.py``.

Wheel and sdist must be the same bytes from two builds, and the wheel must be the same when it is built from the sdist.
It is then installed with the newest versions of its dependencies for each interpreter given (``--python python3.12``,
repeated; by default the one that runs this), on the oldest Python that we support also with the oldest versions that
pyproject.toml allows (newer interpreters have no wheels of them), and a smoke test is run.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MUST_SHIP = ("pairflip/py.typed", "pairflip/report/template.html.j2", "pairflip/report/report.js")

SMOKE = """
import importlib.metadata as metadata, re, sys
import numpy as np
import pairflip
from sklearn.datasets import load_diabetes

print("Python", sys.version.split()[0], "pairflip", pairflip.__version__)
names = [re.match(r"[\\w.-]+", line)[0] for line in metadata.requires("pairflip") if "extra ==" not in line]
print(", ".join(f"{name} {metadata.version(name)}" for name in sorted(names, key=str.lower)))
X, y = load_diabetes(return_X_y=True)
model = pairflip.SubsetRegressorCV(sizes=[1, 2, 3], cv=5, random_state=0).fit(X, y)
assert model.get_support(indices=True).tolist()[:1] == [2], model.get_support(indices=True)
np.savetxt("table.csv", np.column_stack([X, y]), delimiter=",", header=",".join([*"abcdefghij", "y"]), comments="")
"""


def oldest_versions(pyproject: Path) -> list[str]:
    """``name==version`` for every lower bound of what a plain install needs.

    A bound such as >=2.0 means 2.0.0, which pip writes as ==2.0.
    """
    lines = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]["dependencies"]
    found = [re.fullmatch(r"\s*([\w.-]+)\s*>=\s*([\w.]+)\s*", line) for line in lines]
    assert all(found), f"expected name>=version in every dependency: {lines}"
    return [f"{match[1]}=={match[2]}" for match in found if match]


def oldest_python(pyproject: Path) -> str:
    """``3.11`` of ``requires-python = ">=3.11"``."""
    return str(tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]["requires-python"]).removeprefix(">=")


def version_of(python: str) -> str:
    """``3.11`` of an interpreter."""
    return run(python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()


def run(*command: str | Path, cwd: Path = ROOT, **env: str) -> str:
    """Run it; what it printed. Its output is shown if it fails."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=clean | env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        sys.exit(f"failed ({done.returncode}): {' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def digest(path: Path) -> str:
    """The first digits of its SHA-256."""
    return sha256(path.read_bytes()).hexdigest()[:16]


def build(source: Path, out: Path, epoch: str) -> tuple[Path, Path]:
    """Wheel and sdist of a source tree, in `out`.

    Parameters
    ----------
    source : Path
        Folder with a pyproject.toml.
    out : Path
        Where to put them.
    epoch : str
        Seconds since 1970 that every file in them gets.
    """
    script = (
        "import sys; from hatchling.build import build_sdist, build_wheel; "
        "print(build_sdist(sys.argv[1])); print(build_wheel(sys.argv[1]))"
    )
    out.mkdir(parents=True)
    sdist, wheel = run(sys.executable, "-c", script, out, cwd=source, SOURCE_DATE_EPOCH=epoch).split()
    return out / wheel, out / sdist


def check_builds(folder: Path) -> Path:
    """Build twice and once more from the sdist; the wheel, if all are alike."""
    epoch = run("git", "log", "-1", "--format=%ct").strip()
    first, second = (build(ROOT, folder / name, epoch) for name in ("one", "two"))
    for one, two in zip(first, second, strict=True):
        print(f"{one.name}: {digest(one)}, {one.stat().st_size / 1e6:.2f} MB")
        if digest(one) != digest(two):
            sys.exit(f"two builds of {one.name} differ: {digest(one)} and {digest(two)}")
    with tarfile.open(first[1]) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    again, _ = build(next((folder / "unpacked").iterdir()), folder / "three", epoch)
    if digest(again) != digest(first[0]):
        sys.exit(f"the wheel built from the sdist differs: {digest(again)}, expected {digest(first[0])}")
    inside = set(zipfile.ZipFile(first[0]).namelist())
    if missing := [name for name in MUST_SHIP if name not in inside]:
        sys.exit(f"the wheel lacks {', '.join(missing)}")
    print(f"the same bytes from two builds, and from the sdist (SOURCE_DATE_EPOCH={epoch})")
    return first[0]


def try_wheel(wheel: Path, python: str, folder: Path, pins: list[str]) -> None:
    """Install the wheel into an empty environment and use it.

    Parameters
    ----------
    wheel : Path
        What to install.
    python : str
        Interpreter to make the environment with.
    folder : Path
        An empty folder.
    pins : list of str
        Versions to keep to; none: the newest.
    """
    folder.mkdir(parents=True)
    run(python, "-m", "venv", folder / "venv")
    there = folder / "venv" / "bin"
    limits = folder / "constraints.txt"
    limits.write_text("\n".join(pins) + "\n")
    run(there / "python", "-m", "pip", "install", "--quiet", "--only-binary", ":all:", "--constraint", limits, wheel)
    print(run(there / "python", "-c", SMOKE, cwd=folder, MPLBACKEND="Agg").strip())
    run(there / "pairflip", "demo", "--sizes", "1-3", "--out", "demo", "--quiet", cwd=folder)
    options = ["--target", "y", "--sizes", "1-3", "--stability", "5", "--quiet"]
    said = run(there / "pairflip", "select", "table.csv", *options, cwd=folder)
    print(said.splitlines()[0][:100], "...")
    for file in ("demo/report.html", "table-pairflip/result.json"):
        if not (folder / file).is_file():
            sys.exit(f"{file} was not written")


def main() -> None:
    """Check everything; the first failure ends it with exit code 1."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", help="interpreter to try it with; repeat for more")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        wheel = check_builds(folder)
        for number, python in enumerate(given.python or [sys.executable]):
            print(f"--- {python}, newest dependencies")
            try_wheel(wheel, python, folder / f"{number}-newest", [])
            if version_of(python) == oldest_python(ROOT / "pyproject.toml"):
                print(f"--- {python}, oldest dependencies")
                try_wheel(wheel, python, folder / f"{number}-oldest", oldest_versions(ROOT / "pyproject.toml"))
    print("release check passed")


if __name__ == "__main__":
    main()
