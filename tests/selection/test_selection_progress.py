"""What a selection shows: nothing without a terminal, lines in a log, and after Ctrl-C how to resume."""

import io
import json
import os
import sys

import numpy as np
import pytest

from _curves import assert_same_curve
from _interrupt import LIMIT, interrupt
from pairflip import Schedule, SubsetProblem, select_size
from pairflip.selection import executors, run_shard, tasks
from pairflip.selection import progress as progress_module

SCHEDULE = Schedule.geometric(1.0, 1e4, steps=10, sweeps=4, unit="greedy")
OPTIONS = {"cv": "loo", "sizes": [1, 2, 3], "schedule": SCHEDULE, "chains": 2}
CHAINS = (12 + 1) * 3 * 2


def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 7))
    return SubsetProblem(X, X[:, 1] - X[:, 4] + 0.3 * rng.normal(size=12))


@pytest.fixture
def often(monkeypatch):
    """Every chain is a batch, and every batch is shown."""
    monkeypatch.setattr(executors, "_BATCH_NS", 1.0)
    monkeypatch.setattr(progress_module, "_LOG_SECONDS", 0.0)
    monkeypatch.setattr(progress_module, "_SHOW_SECONDS", 0.0)


@pytest.mark.parametrize("show", [None, False])
def test_quiet_without_a_terminal(capfd, often, show, tmp_path):
    select_size(problem(), **OPTIONS, progress=show, journal=tmp_path)
    select_size(problem(), **OPTIONS, progress=show, journal=tmp_path)
    assert capfd.readouterr() == ("", "")


def test_lines_in_a_log(capfd, often):
    curve = select_size(problem(), **OPTIONS, progress="log")
    out, err = capfd.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert len(lines) == CHAINS
    assert_same_curve(select_size(problem(), **OPTIONS), curve)
    assert lines[0].startswith(f"pairflip: 1 of {CHAINS} chains, after ")  # perhaps it waited for a compiler
    assert " left" not in lines[0]
    assert lines[-1].startswith(f"pairflip: {CHAINS} of {CHAINS} chains, ")
    assert "/s, 0 s left; best size so far" in lines[-1]
    assert f"best size so far {curve.best_size} " in lines[-1]


def test_a_resumed_log_says_so_and_counts_what_is_there(capfd, often, tmp_path):
    run_shard(problem(), **OPTIONS, journal=tmp_path, shard="1/2")
    kept = sum(len(path.read_bytes().splitlines()) for path in tmp_path.glob("tasks-*.jsonl"))
    curve = select_size(problem(), **OPTIONS, progress="log", journal=tmp_path)
    lines = capfd.readouterr().err.splitlines()
    assert lines[0] == f"pairflip: resumed: {kept} chains were in the journal, {CHAINS - kept} remain"
    assert f"best size so far {curve.best_size} " in lines[-1]


def test_time_is_measured_before_it_is_told(monkeypatch, often, capfd):
    monkeypatch.setattr(tasks, "chain_nanoseconds", lambda *_: 60e9)  # what a cost model expects is not a measurement
    select_size(problem(), **OPTIONS, progress="log", stability=2)
    lines = capfd.readouterr().err.splitlines()
    assert all(" of " in line and " chains, " in line for line in lines)
    assert " left" not in lines[0]
    assert " left" in lines[1]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_on_a_terminal(monkeypatch, often):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    select_size(problem(), **OPTIONS)
    shown = screen.getvalue()
    assert "selecting" in shown
    assert f"/{CHAINS}" in shown
    assert "best size so far" in shown


INTERRUPTED = """
import json, sys, threading
import numpy as np
from pairflip import Schedule, SubsetProblem, select_size
from pairflip.selection.journal import Journal

options = json.loads(sys.argv[1])
long = options.pop("long", False)
rng = np.random.default_rng(0)
rows, columns = (60, 400) if long else (60, 60)
problem = SubsetProblem(rng.normal(size=(rows, columns)), rng.normal(size=rows))
quick = Schedule.geometric(1.0, 1e4, steps=2, sweeps=1, unit="greedy")
select_size(problem, [2, 3], 3, schedule=quick, chains=1)
write = Journal.write

def announced(journal, outcomes):
    write(journal, outcomes)
    Journal.write = write
    print("ready", flush=True)

if long:
    print("ready", flush=True)
else:
    Journal.write = announced
sweeps = 20_000 if long else 100
schedule = Schedule.geometric(1.0, 30.0, steps=10, sweeps=sweeps, unit="greedy")
try:
    select_size(problem, [2, 3, 5], "loo", schedule=schedule, chains=8, **options)
except KeyboardInterrupt as error:
    print(error)
    for thread in threading.enumerate():
        if thread is not threading.main_thread():
            thread.join(0.4)
    print(json.dumps([thread.name for thread in threading.enumerate()]))
else:
    print("finished")
"""
CASES = {
    "chains that take long": {"n_jobs": 2, "long": True},
    "a log": {"n_jobs": 1, "progress": "log"},
    "a bar": {"n_jobs": 2, "progress": True},
}


@pytest.mark.alone
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT to a process")
@pytest.mark.parametrize(
    "options",
    [pytest.param(case, id=name, marks=[pytest.mark.slow] * (name == "a log")) for name, case in CASES.items()],
)
def test_ctrl_c_keeps_what_is_done_and_says_how_to_resume(options, tmp_path):
    journal = str(tmp_path / "run")
    code, out, err, seconds = interrupt(INTERRUPTED, json.dumps({**options, "journal": journal}), after=0.3)
    assert code == 0, err
    words, threads = out.splitlines()
    assert json.loads(threads) == ["MainThread"]
    assert seconds < LIMIT + 0.4
    assert "Traceback" not in err
    assert "Warning" not in err
    kept = [line for path in (tmp_path / "run").glob("tasks-*") for line in path.read_bytes().splitlines()]
    assert all(json.loads(line) for line in kept)
    kept_words = f"interrupted; finished work is kept in {journal!r}. Resume with: the same call"
    none = f"interrupted; no work was finished yet, so {journal!r} holds none. Start again with: the same call"
    assert words == (kept_words if kept else none)
    if "long" not in options:
        assert kept
    assert "interrupted" not in err  # the exception says it, once
    if "progress" not in options:
        assert err == ""


@pytest.mark.filterwarnings("error")
def test_after_ctrl_c_the_rest_is_done(monkeypatch, tmp_path, often, capfd):
    from pairflip.selection.journal import Journal

    expected = select_size(problem(), **OPTIONS)
    write = Journal.write
    written = []

    def interrupted(journal, outcomes):
        write(journal, outcomes)
        written.append(1)
        if len(written) == 20:
            raise KeyboardInterrupt

    monkeypatch.setattr(Journal, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        select_size(problem(), **OPTIONS, journal=tmp_path, n_jobs=2)
    assert_same_curve(expected, select_size(problem(), **OPTIONS, journal=tmp_path))
    assert len(written) == CHAINS


def test_without_a_journal_it_says_what_to_do_next_time(monkeypatch, often, capfd):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(progress_module.SelectionProgress, "advance", stop)
    with pytest.raises(KeyboardInterrupt) as caught:
        select_size(problem(), **OPTIONS, progress="log")
    words = "interrupted; nothing was kept and nothing was written (a journal keeps finished work)."
    assert str(caught.value) == words
    assert capfd.readouterr().err == ""
