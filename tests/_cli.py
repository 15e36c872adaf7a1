"""Running the command line: in this process, or as people type it; and small tables to run it on."""

import csv
import os
import re
import subprocess
import sys

import numpy as np
from typer.testing import CliRunner

from _page_figures import without_drawings
from pairflip.cli import app

FILES = {
    "coefficients.csv",
    "curve.csv",
    "figures",
    "half_samples.csv",
    "predictions.csv",
    "report.html",
    "result.json",
    "run.toml",
    "selection_counts.csv",
}
QUICK = ["--chains", "2", "--jobs", "1"]


def invoke(*arguments):
    """In this process."""
    return CliRunner().invoke(app, [str(a) for a in arguments])


def run(*arguments, folder=None, timeout=120, **options):
    """As people type it, with no terminal anywhere."""
    return subprocess.run(
        [sys.executable, "-m", "pairflip", *map(str, arguments)],
        env=os.environ | {"COLUMNS": "80"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=timeout,
        **options,
    )


def without_figures(monkeypatch):
    """Leave out what takes most of the time of a small run, all drawing; other tests look at the figures."""
    monkeypatch.setattr("pairflip.figures.save_figures", lambda curve, folder: [])
    without_drawings(monkeypatch)


def plain(text):
    """Without colours, which some build servers force."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def write_csv(path, names, rows, delimiter=","):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(names)
        writer.writerows(rows)
    return path


def planted(rows=24, columns=6, seed=0):
    """y, X with y = 2 x_0 - x_3 and a little noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    return (2 * X[:, 0] - X[:, 3] + 0.1 * rng.normal(size=rows)).round(5), X.round(5)


def small_table(path, names=tuple("abcdef"), target="y", **options):
    """A CSV file of which columns 0 and 3 predict the target."""
    y, X = planted(columns=len(names), **options)
    return write_csv(path, [target, *names], np.column_stack([y, X]).tolist())


def tree(folder):
    """Every file below a folder, hidden ones included."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def assert_refused(result, *expected):
    """One sentence on standard error, exit code 2, nothing else (but that kernels are compiled, the first time)."""
    lines = plain(result.stderr).splitlines(keepends=True)
    error = "".join(line for line in lines if not line.startswith("pairflip: compiling "))
    code = result.exit_code if hasattr(result, "exit_code") else result.returncode
    assert code == 2, error
    assert result.stdout == ""
    assert "Traceback" not in error
    assert error.startswith("pairflip: ")
    assert error.count("\n") == 1, error
    assert error.rstrip().endswith((".", ")"))
    assert len(error) < 400
    for text in expected:
        assert text in error, error
