"""Ctrl-C during `select`: exit code 130, the command that resumes, and it does resume."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from _cli import invoke, run, small_table, tree, without_figures
from pairflip.crossval import SizeCurve

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends SIGINT to a process")

ARGUMENTS = ["select", "a table.csv", "--target", "y", "--sizes", "1-3", "--chains", "150", "--jobs", "2"]


@pytest.fixture
def folder(tmp_path):
    small_table(tmp_path / "a table.csv", names=tuple("abcdefghijklmnop"))
    return tmp_path


def interrupt(arguments, folder, ready):
    """Start the command, send SIGINT once `ready` says so: (exit code, out, err)."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pairflip", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        # A shell that runs the tests in the background has SIGINT ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        until = time.monotonic() + 60
        while not ready() and time.monotonic() < until:
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err
    finally:
        process.kill()
        process.wait()


def lines(journal):
    return sum(path.read_bytes().count(b"\n") for path in journal.glob("tasks-*.jsonl"))


def test_with_a_journal_it_resumes(folder, monkeypatch):
    journal = folder / "my journal"
    code, out, err = interrupt([*ARGUMENTS, "--journal", journal.name], folder, lambda: lines(journal) > 200)
    assert code == 130
    assert out == ""
    assert "Traceback" not in err
    last = err.splitlines()[-1]
    assert "finished work is kept in 'my journal'" in last
    resume = shlex.split(last.partition("Resume with: ")[2])
    assert resume == ["pairflip", *ARGUMENTS, "--journal", journal.name]
    assert sorted(path.name for path in folder.iterdir()) == ["a table.csv", "my journal"]
    kept = lines(journal)
    total = 3 * 24 * 150 + 3 * 150
    assert 200 < kept < total
    done = run(*resume[1:], folder=folder)
    assert done.returncode == 0, done.stderr
    assert f"resumed: {kept} chains were in the journal" in done.stderr
    assert lines(journal) == total
    without_figures(monkeypatch)
    monkeypatch.chdir(folder)
    whole = invoke(*ARGUMENTS, "--out", "whole", "--quiet")
    assert whole.exit_code == 0, whole.stderr
    one, other = (SizeCurve.load(folder / name / "result.json") for name in ("a table-pairflip", "whole"))
    np.testing.assert_array_equal(one.cv_error, other.cv_error)
    np.testing.assert_array_equal(one.selection_counts, other.selection_counts)


def test_without_a_journal_nothing_is_kept(folder):
    began = time.monotonic()
    code, out, err = interrupt([*ARGUMENTS, "--quiet"], folder, lambda: time.monotonic() > began + 2)
    assert code == 130
    assert out == ""
    assert err == (
        "pairflip: interrupted; nothing was kept and nothing was written (--journal DIR keeps finished work).\n"
    )
    assert tree(folder) == ["a table.csv"]


def test_a_run_that_ended_is_not_done_again(folder, monkeypatch):
    without_figures(monkeypatch)
    monkeypatch.chdir(folder)
    arguments = ["select", "a table.csv", "-t", "y", "--sizes", "1", "--chains", "2", "--journal", "j", "--json"]
    first = json.loads(invoke(*arguments).stdout)
    again = invoke(*arguments, "--force")
    assert "0 remain" in again.stderr
    assert json.loads(again.stdout)["cv_error"] == first["cv_error"]
