"""Ctrl-C and SIGTERM end a run at once: exit codes 130 and 143, one sentence, the command that resumes."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest

from _cli import invoke, small_table, tree, without_figures
from _interrupt import LIMIT, interrupt
from pairflip.cli.errors import plain_errors
from pairflip.journal_file import JournalWarning
from pairflip.search import best_subset
from pairflip.selection import SizeCurve
from pairflip.selection.journal import Journal

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends SIGINT to a process")
alone = pytest.mark.alone  # those that are timed

ARGUMENTS = ["select", "a table.csv", "-t", "y", "--sizes", "1-3", "--cv", "10", "--chains", "30", "--jobs", "2"]
ARGUMENTS += ["--stability", "0"]
NOTHING_KEPT = "pairflip: interrupted; nothing was kept and nothing was written (a journal keeps finished work).\n"


@pytest.fixture
def folder(tmp_path):
    small_table(tmp_path / "a table.csv", names=tuple("abcdefghijklmnop"))
    return tmp_path


def lines(journal):
    return sum(path.read_bytes().count(b"\n") for path in journal.glob("tasks-*.jsonl"))


@alone
def test_with_a_journal_it_resumes(folder, monkeypatch):
    journal = folder / "my journal"
    total = 3 * 10 * 30 + 3 * 30
    for number, least in ((signal.SIGTERM, 50), (signal.SIGINT, 200)):
        arguments = [*ARGUMENTS, "--journal", journal.name]
        ready = {"ready": lambda least=least: lines(journal) > least, "number": number, "folder": folder}
        code, out, err, _ = interrupt("import pairflip.__main__ as run; run.main()", *arguments, **ready)
        assert (code, out, err.count("interrupted"), "Traceback" in err) == (128 + number, "", 1, False), err
        kept_in, _, command = err.splitlines()[-1].partition("Resume with: ")
        assert kept_in == "pairflip: interrupted; finished work is kept in 'my journal'. "
        resume = shlex.split(command)
        assert resume == ["pairflip", *arguments]
        assert sorted(path.name for path in folder.iterdir()) == ["a table.csv", "my journal"]
        assert least < lines(journal) < total
    kept = lines(journal)
    without_figures(monkeypatch)
    monkeypatch.chdir(folder)
    done = invoke(*resume[1:])
    assert done.exit_code == 0, done.stderr
    assert f"resumed: {kept} chains were in the journal" in done.stderr
    assert lines(journal) == total
    again = invoke(*resume[1:], "--force")
    assert (again.exit_code, "0 remain" in again.stderr) == (0, True)
    whole = invoke(*ARGUMENTS, "--out", "whole", "--quiet")
    assert whole.exit_code == 0, whole.stderr
    one, other = (SizeCurve.load(folder / name / "result.json") for name in ("a table-pairflip", "whole"))
    np.testing.assert_array_equal(one.cv_error, other.cv_error)
    np.testing.assert_array_equal(one.selection_counts, other.selection_counts)


def test_a_journal_says_what_it_holds(folder, monkeypatch):
    """One with its head only keeps nothing; one of a finished run may be deleted."""
    without_figures(monkeypatch)
    monkeypatch.chdir(folder)
    words = ["select", "a table.csv", "-t", "y", "--sizes", "1", "--cv", "3", "--effort", "quick", "--stability", "0"]
    words += ["--jobs", "1", "--journal", "J2"]

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "write", stop)
        done = invoke(*words)
    assert [path.name for path in (folder / "J2").iterdir()] == ["manifest.json"]
    assert done.exit_code == 130
    assert "interrupted; no work was finished yet, so 'J2' holds none. Start again with: pairflip select" in done.stderr
    with monkeypatch.context() as patch:
        patch.setattr("pairflip.cli.results.write_folder", stop)
        done = invoke(*words)
    assert "interrupted; finished work is kept in 'J2'. Resume with: pairflip select" in done.stderr
    monkeypatch.setattr("pairflip.cli.results.write_folder", lambda *_, **__: None)
    assert invoke(*words).stdout.endswith("Journal: J2 (the run is finished; it may be deleted)\n")


START = """
import sys
from pairflip.__main__ import main

sys.argv = ["pairflip", *sys.argv[1:]]
print("ready", flush=True)
sys.exit(main())
"""
EARLY = r"pairflip: interrupted; nothing was kept and nothing was written( \(a journal keeps finished work\))?\.\n"


@pytest.mark.parametrize("count", [5, pytest.param(60, marks=[pytest.mark.slow, pytest.mark.timeout(0)])])
def test_from_the_first_moment_on_it_is_one_line(folder, count):
    for seconds in np.geomspace(0.001, 3.0, count).tolist():
        code, _, err, _ = interrupt(START, *ARGUMENTS, "--chains", "3000", after=seconds, folder=folder)
        assert (code, bool(re.search(EARLY, err)), err.count("interrupted")) == (130, True, 1), (seconds, err)
    assert tree(folder) == ["a table.csv"]


def test_nothing_is_loaded_before_the_handler_is_set():
    code = "import sys; before = set(sys.modules); import pairflip.__main__; print(*sorted({*sys.modules} - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["pairflip", "pairflip.__main__", "pairflip.interrupt"]


PRESSED = """
import os, signal, sys, time
import pairflip.selection.run as running
from pairflip.__main__ import main

def press(number=signal.SIGINT):
    os.kill(os.getpid(), number)
    time.sleep(1)

class Freed:
    def __del__(self):
        press()

def catch():
    try:
        press()
    except KeyboardInterrupt:
        raise ImportError("half a module")

def work(*grids, **options):
    WORK
    print("went on")
    sys.exit(0)

running.search_grids = work
sys.argv = ["pairflip", *sys.argv[1:]]
sys.exit(main())
"""
CATCHING = "import __main__\ntry: __main__.press()\nexcept KeyboardInterrupt: pass\n"
WORK = {
    "Ctrl-C": "press()",
    "SIGTERM": "press(signal.SIGTERM)",
    "an import that catches it": "import catching",
    "Python drops it": "Freed()",
    "another error": "catch()",
    "twice": "try: press()\n    finally: press()",
}


@pytest.mark.parametrize("case", WORK)
def test_it_ends_the_command_wherever_it_comes(folder, case):
    (folder / "catching.py").write_text(CATCHING)
    code = PRESSED.replace("WORK", WORK[case])
    arguments = [sys.executable, "-c", code, *ARGUMENTS, "--quiet"]
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.stdout == ""
    assert (done.stderr, done.returncode) == (NOTHING_KEPT, 143 if case == "SIGTERM" else 130)
    assert [name for name in tree(folder) if "__pycache__" not in name] == ["a table.csv", "catching.py"]


WRITING = """
import os, signal, time
from pathlib import Path
from pairflip.cli.errors import plain_errors
from pairflip.cli.results import FOLDERS, new_folder
from pairflip.interrupt import listen

def press():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(1)

listen()
with plain_errors(), new_folder(Path("new/found"), False, FOLDERS["select"]) as part:
    (part / "half.csv").write_text("")
    import catching
"""


def test_an_import_while_results_are_written_leaves_nothing(tmp_path):
    (tmp_path / "catching.py").write_text(CATCHING)
    done = subprocess.run([sys.executable, "-c", WRITING], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (130, "pairflip: interrupted; nothing was kept and nothing was written.\n")
    assert [name for name in os.listdir(tmp_path) if name != "__pycache__"] == ["catching.py"]


def test_where_ctrl_c_is_ignored_it_stays_so():
    code = "import signal; from pairflip.interrupt import listen; listen(); print(signal.getsignal(signal.SIGINT).name)"
    ignored = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, **ignored)
    assert done.stdout == "SIG_IGN\n"


def test_fit_shows_the_best_so_far_and_says_that_it_was_interrupted(folder, monkeypatch):
    portfolio = best_subset.portfolio

    def stopped(*arguments, **options):
        yield from portfolio(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(best_subset, "portfolio", stopped)
    monkeypatch.setattr("pairflip.search.prove.solved", lambda *_: None)  # else nothing is searched
    done = invoke("fit", folder / "a table.csv", "-t", "y", "--k", "2", "--quiet")
    assert "interrupted; this is the best found so far." in done.stderr
    assert done.stdout.startswith("The best 2 columns for y: ")
    assert done.exit_code == 130


def test_when_the_results_are_written_it_says_where_they_are(folder, monkeypatch):
    def stopped(*shown):
        raise KeyboardInterrupt

    without_figures(monkeypatch)
    monkeypatch.chdir(folder)
    monkeypatch.setattr("pairflip.cli.printing.print_curve", stopped)
    done = invoke("select", "a table.csv", "-t", "y", "--sizes", "1", "--chains", "2", "--out", "found", "--quiet")
    assert (done.exit_code, done.stderr) == (130, "pairflip: interrupted; the results are in 'found'.\n")


def test_our_warnings_are_one_line(capfd):
    with plain_errors():
        warnings.warn("journal 'j' was removed.", JournalWarning, stacklevel=1)
    assert capfd.readouterr().err == "pairflip: journal 'j' was removed.\n"


ANNEAL = """
import json, sys, threading
import numpy as np
from pairflip import Schedule, SubsetProblem
from pairflip.search.best_subset import anneal

options = json.loads(sys.argv[1])
shape, budget = options.pop("shape"), options.pop("memory_budget")
rng = np.random.default_rng(0)
problem = SubsetProblem(rng.normal(size=shape), rng.normal(size=shape[0]), memory_budget=budget)
anneal(problem, 5, Schedule.geometric(1.0, 1e6, steps=5, unit="greedy"), chains=2, n_jobs=options["n_jobs"])
print("ready", flush=True)
hours = Schedule.geometric(options.pop("beta"), 1e6, steps=20, sweeps=20_000, unit="greedy")
try:
    anneal(problem, 5, hours, **options)
except KeyboardInterrupt:
    for thread in threading.enumerate():
        if thread is not threading.main_thread():
            thread.join(0.2)  # that of the progress bar has been told to end, not waited for
    print(json.dumps([thread.name for thread in threading.enumerate()]))
else:
    print("finished")
"""

DEMO = """
import pairflip.cli
from pairflip import SubsetProblem, selection
from pairflip.datasets import load_diabetes_products

select_size, data = selection.select_size, load_diabetes_products()
select_size(SubsetProblem(data.X, data.y), [1], stability=1, progress=False)

def announced(*args, **options):
    print("ready", flush=True)
    return select_size(*args, **options)

selection.select_size = announced
pairflip.cli.app(["demo", "--sizes", "1-60", "--quiet"], prog_name="pairflip")
"""


SMALL, LARGE = (100, 60), (80, 3000)
CASES = {
    "cold": {"shape": SMALL, "chains": 2000, "n_jobs": 1, "beta": 300.0},
    "columns, two threads": {"shape": LARGE, "chains": 500, "n_jobs": 2, "memory_budget": 0},
    "progress bar": {"shape": SMALL, "chains": 2000, "n_jobs": 2, "progress": True},
    "reference": {"shape": SMALL, "chains": 2, "n_jobs": 1, "engine": "reference"},
}


@alone
@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_anneal(options):
    options = {"memory_budget": 2**28, "beta": 1.0, **options}
    code, out, err, seconds = interrupt(ANNEAL, json.dumps(options))
    assert code == 0, err
    assert json.loads(out) == ["MainThread"]
    assert "Traceback" not in err
    assert seconds < LIMIT


@alone
def test_demo_exits_130_with_one_sentence():
    code, out, err, seconds = interrupt(DEMO)
    assert (code, out, err) == (130, "", "pairflip: interrupted; nothing was kept and nothing was written.\n")
    assert seconds < LIMIT
