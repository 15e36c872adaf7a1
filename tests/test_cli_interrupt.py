"""Ctrl-C during `select`: exit code 130, the command that resumes, and it does resume."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
import typer

from _cli import invoke, small_table, tree, without_figures
from pairflip.cli.errors import plain_errors
from pairflip.selection import SizeCurve
from pairflip.selection.journal import JournalWarning
from test_interrupt import interrupt as interrupt_code

pytestmark = [pytest.mark.alone, pytest.mark.skipif(os.name != "posix", reason="sends SIGINT to a process")]

ARGUMENTS = ["select", "a table.csv", "--target", "y", "--sizes", "1-3", "--chains", "30", "--jobs", "2"]


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
    assert err.count("interrupted") == 1
    last = err.splitlines()[-1]
    assert last.startswith("pairflip: interrupted; finished work is kept in 'my journal'. ")
    resume = shlex.split(last.partition("Resume with: ")[2])
    assert resume == ["pairflip", *ARGUMENTS, "--journal", journal.name]
    assert sorted(path.name for path in folder.iterdir()) == ["a table.csv", "my journal"]
    kept = lines(journal)
    total = 3 * 50 * 30 + 3 * 30
    assert 200 < kept < total
    without_figures(monkeypatch)
    monkeypatch.chdir(folder)
    done = invoke(*resume[1:])
    assert done.exit_code == 0, done.stderr
    assert f"resumed: {kept} chains were in the journal" in done.stderr
    assert lines(journal) == total
    whole = invoke(*ARGUMENTS, "--out", "whole", "--quiet")
    assert whole.exit_code == 0, whole.stderr
    one, other = (SizeCurve.load(folder / name / "result.json") for name in ("a table-pairflip", "whole"))
    np.testing.assert_array_equal(one.cv_error, other.cv_error)
    np.testing.assert_array_equal(one.selection_counts, other.selection_counts)


AT_WORK = """
import sys
import pairflip.selection.run as running
from pairflip.__main__ import main

walk_jobs = running.walk_jobs

def announced(*jobs, **options):
    print("ready", flush=True)
    return walk_jobs(*jobs, **options)

running.walk_jobs = announced
sys.argv = ["pairflip", *sys.argv[1:]]
sys.exit(main())
"""


def test_without_a_journal_nothing_is_kept(folder, monkeypatch):
    monkeypatch.chdir(folder)
    code, out, err, _ = interrupt_code(AT_WORK, *ARGUMENTS, "--quiet")
    assert code == 130
    assert out == ""
    assert err == ("pairflip: interrupted; nothing was kept and nothing was written (a journal keeps finished work).\n")
    assert tree(folder) == ["a table.csv"]


START = """
import sys
from pairflip.__main__ import main

sys.argv = ["pairflip", *sys.argv[1:]]
print("ready", flush=True)
sys.exit(main())
"""
EARLY = r"pairflip: interrupted; nothing was kept and nothing was written( \(a journal keeps finished work\))?\.\n"


def early(folder, seconds):
    """Ctrl-C so long after the first line of ours: (exit code, err)."""
    process = subprocess.Popen(
        [sys.executable, "-c", START, *ARGUMENTS],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        assert process.stdout.readline() == "ready\n"
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        return process.returncode, err
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("count", [9, pytest.param(31, marks=pytest.mark.slow)])
def test_from_the_first_moment_on_it_is_one_line(folder, count):
    for seconds in np.linspace(0.0, 0.3, count).tolist():
        code, err = early(folder, seconds)
        assert (code, bool(re.fullmatch(EARLY, err))) == (130, True), (seconds, err)
    assert tree(folder) == ["a table.csv"]


def press():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(1)


def test_an_error_that_ctrl_c_causes_is_still_ctrl_c(capfd):
    """Modules that are being loaded turn it into errors of their own."""

    def load():
        try:
            press()
        except KeyboardInterrupt:
            raise ImportError("half a module") from None

    with pytest.raises(typer.Exit) as caught, plain_errors():
        load()
    assert caught.value.exit_code == 130
    assert capfd.readouterr().err == "pairflip: interrupted; nothing was kept and nothing was written.\n"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


class Freed:
    """Ctrl-C while it is being freed, where Python drops every exception; loading modules frees objects, too."""

    def __del__(self):
        press()


def test_a_ctrl_c_that_python_drops_is_raised_again(capfd):
    def work():
        Freed()
        threading.Event().wait(20)

    hook, began = sys.unraisablehook, time.monotonic()
    with pytest.raises(typer.Exit) as caught, plain_errors():
        work()
    assert caught.value.exit_code == 130
    assert time.monotonic() - began < 10
    assert capfd.readouterr().err == "pairflip: interrupted; nothing was kept and nothing was written.\n"
    assert sys.unraisablehook is hook


def test_one_that_it_drops_at_the_end_of_the_work_comes_too_late(capfd):
    with plain_errors():
        Freed()
    time.sleep(0.1)  # it would be raised here
    assert capfd.readouterr().err == ""


def test_a_second_ctrl_c_does_not_wait(capfd, monkeypatch):
    class Left(BaseException):
        pass

    def leave(code):
        raise Left(code)

    def tidy_up():
        try:
            press()
        finally:
            with pytest.raises(Left, match="130"):
                press()

    monkeypatch.setattr(os, "_exit", leave)
    with pytest.raises(typer.Exit), plain_errors(lambda: "interrupted."):
        tidy_up()
    assert capfd.readouterr().err.startswith("pairflip: interrupted.\n")


def test_where_ctrl_c_is_ignored_it_stays_so(monkeypatch):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with plain_errors():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_our_warnings_are_one_line(capfd):
    with plain_errors():
        warnings.warn("journal 'j' was removed.", JournalWarning, stacklevel=1)
    assert capfd.readouterr().err == "pairflip: journal 'j' was removed.\n"


def test_a_run_that_ended_is_not_done_again(folder, monkeypatch):
    without_figures(monkeypatch)
    monkeypatch.chdir(folder)
    arguments = ["select", "a table.csv", "-t", "y", "--sizes", "1", "--chains", "2", "--journal", "j", "--json"]
    first = json.loads(invoke(*arguments).stdout)
    again = invoke(*arguments, "--force")
    assert "0 remain" in again.stderr
    assert json.loads(again.stdout)["cv_error"] == first["cv_error"]
