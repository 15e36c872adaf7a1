"""Sampling that resumes: the same bits after a kill, nothing foreign taken, and shards that are one run."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from _cli import assert_refused, invoke, small_table
from _errors import sentence_of
from _journal import lines_of
from pairflip import Samples, SubsetProblem, posterior, sample, select_size, temper
from pairflip.journal_file import JournalError
from pairflip.search.draws import SamplingJournal
from pairflip.selection import merge_journals

TESTS = Path(__file__).parents[1]


def table(seed=0, n=10, m=25):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n))
    return SubsetProblem(X, X[:, :3] @ [1.0, -1.0, 0.5] + rng.normal(size=m))


def draw(problem=None, **options):
    return sample(problem or table(), **{"k": 3, "sweeps": 60, "chains": 3, "seed": 5, "n_jobs": 1, **options})


def ladder(problem=None, **options):
    given = {"k": 3, "betas": [0.0, 0.2, 0.8], "sweeps": 60, "thin": 2, "chains": 3, "seed": 5, "n_jobs": 1}
    return temper(problem or table(), **{**given, **options})


def models(problem=None, **options):
    given = {"method": "sample", "sweeps": 60, "chains": 3, "seed": 5, "n_jobs": 1}
    return posterior(problem or table(), **{**given, **options})


RUNS = {"sample": draw, "temper": ladder, "posterior": models}


def assert_same(one, two, but=()):
    for field in dataclasses.fields(one):
        a, b = getattr(one, field.name), getattr(two, field.name)
        if field.name in ("seconds", "problem", *but):
            continue
        if isinstance(a, tuple):
            assert [each.tolist() for each in a] == [each.tolist() for each in b]
        elif isinstance(a, np.ndarray):
            assert a.dtype == b.dtype, field.name
            np.testing.assert_array_equal(a, b, err_msg=field.name)
        elif dataclasses.is_dataclass(a):
            assert_same(a, b)
        else:
            assert a == b, field.name


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


# Killed ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_run_that_was_stopped_resumes_with_the_same_bits(run, after, here, monkeypatch):
    write, written = SamplingJournal.write, []

    def stopped(book, chains):
        if len(written) == after:
            raise KeyboardInterrupt
        write(book, chains)
        written.extend(chains)

    with monkeypatch.context() as patched:
        patched.setattr(SamplingJournal, "write", stopped)
        with pytest.raises(KeyboardInterrupt):
            run(journal="run")
    assert len(lines_of("run")) == after
    assert_same(run(), run(journal="run"))
    assert sorted(json.loads(line)["chain"] for line in lines_of("run")) == [0, 1, 2]
    before = lines_of("run")
    assert_same(run(), run(journal="run"))
    assert lines_of("run") == before  # nothing was walked again


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kills a process")
def test_a_killed_process_loses_the_chains_that_it_was_at(tmp_path):
    code = (
        "from test_sampling_journal import draw, table\n"
        f"draw(table(n=30), k=5, sweeps=4000, chains=40, journal={str(tmp_path / 'run')!r})\n"
    )
    whole = draw(table(n=30), k=5, sweeps=4000, chains=40)
    paths = os.pathsep.join([str(TESTS), str(TESTS / "core"), os.environ.get("PYTHONPATH", "")])
    child = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": paths})
    while len(lines_of(tmp_path / "run")) < 3:
        assert child.poll() is None
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert 3 <= len(lines_of(tmp_path / "run")) < 40
    assert_same(whole, draw(table(n=30), k=5, sweeps=4000, chains=40, journal=tmp_path / "run"), but=("note",))


# What is in the folder ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_damaged_line_is_dropped_and_its_chain_walked_again(run, here):
    expected = run(journal="run")
    (path,) = Path("run").glob("tasks-*.jsonl")
    one, two, three = path.read_bytes().splitlines()
    at = two.index(b'"data":"') + 12
    changed = two[:at] + (b"A" if two[at : at + 1] != b"A" else b"B") + two[at + 1 :]
    path.write_bytes(b"\n".join([one, changed, three[: len(three) // 2]]))
    found = run(journal="run")
    assert_same(expected, found, but=("note",))
    assert found.note == (
        "2 lines of the journal dropped (damaged, or from another run), and these chains walked again"
    )


def test_other_data_and_settings_are_refused_in_one_sentence(here):
    draw(journal="run")
    told = sentence_of(JournalError, lambda: draw(table(1), journal="run"))
    assert "'run' was made with data = " in told
    for changes, words in (
        ({"seed": 6}, "seed = 5, but this run has seed = 6"),
        ({"sweeps": 61}, "sweeps = 60"),
        ({"beta": 0.5}, "betas = "),
        ({"k": 2}, "k = 3"),
        ({"engine": "reference"}, 'engine = "numba"'),
    ):
        assert words in sentence_of(JournalError, lambda changes=changes: draw(journal="run", **changes))
    assert 'run = "sample"' in sentence_of(JournalError, lambda: ladder(journal="run"))
    assert 'run = "sample"' in sentence_of(JournalError, lambda: models(journal="run"))
    models(journal="models")
    assert "prior = " in sentence_of(JournalError, lambda: models(journal="models", prior="uniform"))
    select_size(table(), [1], 3, effort="quick", journal="select")
    assert "'select' was made with run = null, but this run has run = " in sentence_of(
        JournalError, lambda: draw(journal="select")
    )
    assert len(lines_of("run")) == 3


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_journal_is_extended_by_chains_and_used_in_part(run, here):
    run(journal="run")
    assert_same(run(chains=5, n_jobs=2), run(chains=5, n_jobs=2, journal="run"))
    assert len(lines_of("run")) == 5
    assert_same(run(chains=2), run(chains=2, journal="run"))


# Shards ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", [draw, ladder])
def test_shards_together_are_one_run(run):
    whole, parts = run(), [run(chains=1, first_chain=2), run(chains=2)]
    assert_same(whole, Samples.joined(parts))
    assert parts[0].chain_numbers.tolist() == [2]
    np.testing.assert_array_equal(whole.acceptance, Samples.joined(parts).acceptance)
    assert_same(whole, Samples.joined([whole]))


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_shards_may_share_a_journal(run, here):
    for first in (1, 0, 2):
        run(chains=1, first_chain=first, journal="run")
    assert_same(run(), run(journal="run"))
    assert len(lines_of("run")) == 3


def test_journals_of_shards_can_be_merged(here):
    for first in (0, 1, 2):
        ladder(chains=1, first_chain=first, journal=f"part-{first}")
    merge_journals("all", ["part-0", "part-1", "part-2"])
    assert_same(ladder(), ladder(journal="all"))
    assert len(lines_of("all")) == 3


def test_what_does_not_belong_together_is_refused():
    one = draw()
    assert "chain 2 is there twice" in sentence_of(ValueError, lambda: Samples.joined([one, draw(first_chain=2)]))
    assert "seed = 5 and seed = 6" in sentence_of(ValueError, lambda: Samples.joined([one, draw(seed=6)]))
    other = draw(table(1), first_chain=3)
    assert "data = " in sentence_of(ValueError, lambda: Samples.joined([one, other]))
    assert 'run = "sample"' in sentence_of(ValueError, lambda: Samples.joined([one, ladder(first_chain=3)]))
    assert "no samples" in sentence_of(ValueError, lambda: Samples.joined([]))
    assert "first_chain is -1" in sentence_of(ValueError, lambda: draw(first_chain=-1))
    assert "below 1,048,576" in sentence_of(ValueError, lambda: draw(first_chain=1 << 20))


# The command line -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["sample", "posterior"])
def test_the_commands_resume(command, here):
    small_table("small.csv")
    Path("sub").mkdir()
    more = ["--k", "2"] if command == "sample" else []
    words = [command, "small.csv", "--target", "y", "--sweeps", "40", "--json", "--out", "p.csv", "--force", *more]
    plain, first, again = (invoke(*words, *own) for own in ([], ["--journal", "run"], ["--journal", "run"]))
    assert plain.exit_code == 0, plain.stderr
    assert plain.stdout == first.stdout == again.stdout
    if command == "sample":
        assert len(lines_of("run")) == 4
        assert_refused(invoke(*words, "--journal", "run", "--seed", "1"), "'run' was made with seed = 0")
    assert_refused(invoke(*words, "--journal", "."), "--journal '.' is the folder of the table")
