"""The journal: nothing finished is lost, nothing foreign or damaged is taken, and every refusal is one sentence."""

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from _curves import assert_same_curve
from _errors import sentence_of
from _journal import files, lines_of
from pairflip import Schedule, SubsetProblem, journal_file, select_size
from pairflip.journal_file import JournalWarning, read_manifest, run_key, sealed, unsealed
from pairflip.selection import JournalError, executors, merge_journals, run_shard, select_many
from pairflip.selection.journal import Journal
from pairflip.selection.run import identify

TESTS = Path(__file__).parents[1]
SCHEDULE = Schedule.geometric(1.0, 1e4, steps=4, sweeps=2, unit="greedy")
OPTIONS = {"sizes": [1, 2], "schedule": SCHEDULE, "chains": 2, "seed": 7}
CHAINS = (9 + 1) * 2 * 2


def table(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(9, 5))
    return X, X[:, 0] + X[:, 3] * 0.5 + rng.normal(size=9)


def select(journal, problem=None, **options):
    return select_size(problem or SubsetProblem(*table()), **{**OPTIONS, **options}, journal=journal)


@pytest.fixture(scope="module")
def expected():
    return select(None)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder with a short name, so that messages are as long as their words."""
    monkeypatch.chdir(tmp_path)
    return Path()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks and kills processes")
@pytest.mark.parametrize("kills", [5, pytest.param(200, marks=pytest.mark.slow)])
def test_kill_points_lose_nothing(tmp_path, kills):
    command = [sys.executable, str(TESTS / "_kill_points.py"), str(tmp_path), str(kills), "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["killed"] == kills
    assert seen["kept"] > 0


@pytest.mark.parametrize(
    ("changes", "chains"),
    [
        ({"sizes": [1, 2, 3]}, (9 + 1) * 3 * 2),
        ({"sizes": [3]}, (9 + 1) * 3 * 2),
        ({"chains": 3}, (9 + 1) * 2 * 3),
        ({"sizes": [2]}, CHAINS),
        ({"chains": 1}, CHAINS),
    ],
    ids=["more sizes", "another size", "more chains", "fewer sizes", "fewer chains"],
)
def test_a_journal_can_be_extended_and_used_in_part(here, changes, chains):
    select("run")
    before = set(lines_of("run"))
    alone = select(None, **changes)
    assert_same_curve(alone, select("run", **changes))
    assert before <= set(lines_of("run"))
    assert len(lines_of("run")) == len(set(lines_of("run"))) == chains  # nothing was walked twice
    assert_same_curve(select(None), select("run"))  # what was added is ignored, not damage


@pytest.mark.skipif(os.name != "posix", reason="removes a file that is open")
@pytest.mark.parametrize("after", [0, 3, CHAINS])
@pytest.mark.parametrize("seconds", [0.0, 1e9])
def test_a_run_whose_journal_is_removed_goes_on_and_says_so_once(expected, here, monkeypatch, after, seconds):
    monkeypatch.setattr(journal_file, "_SYNC_SECONDS", seconds)
    monkeypatch.setattr(executors, "_BATCH_NS", 1.0)
    write, written = Journal.write, []

    def removed(journal, outcomes):
        if len(written) == after:
            shutil.rmtree("run")
        write(journal, outcomes)
        written.append(1)
        if len(written) == after == CHAINS:
            shutil.rmtree("run")

    monkeypatch.setattr(Journal, "write", removed)
    with pytest.warns(JournalWarning) as warned:
        curve = select("run")
    assert [str(w.message) for w in warned] == [
        "journal 'run' was removed or renamed during the run; the run goes on, but it cannot be resumed."
    ]
    assert_same_curve(expected, curve, but=("seconds", "notes"))
    assert curve.notes == ("the journal was removed during the run, which cannot be resumed",)
    assert not Path("run").exists()


def test_another_current_folder_is_not_a_lost_journal(expected, here, monkeypatch):
    write = Journal.write
    Path("elsewhere").mkdir()

    def moved(journal, outcomes):
        write(journal, outcomes)
        if Path("elsewhere").exists():
            os.chdir("elsewhere")

    monkeypatch.setattr(Journal, "write", moved)
    assert_same_curve(expected, select("run"))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks at open files")
def test_the_manifest_is_on_the_disk_before_any_chain(here, monkeypatch):
    fsync, synced = os.fsync, []

    def spy(handle):
        synced.append(Path(os.readlink(f"/proc/self/fd/{handle}")).name)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", spy)
    select("run")
    assert synced[0].startswith(".manifest.json.")
    assert synced[1:3] == ["run", here.absolute().name]
    assert synced[3] == "run"  # the name of the file of chains
    assert synced[4].startswith("tasks-")


def test_other_files_in_the_folder_do_no_harm(expected, tmp_path):
    for name in ("tasks-old.jsonl.part", "notes.txt", ".manifest.json.abc"):
        (tmp_path / name).write_text("{")
    assert_same_curve(expected, select(tmp_path))


FULL = """
import resource, sys
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/selection"]
import test_journal
from pairflip.selection import JournalError
test_journal.select(None)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    test_journal.select("run", n_jobs=int(sys.argv[3]))
except JournalError as error:
    print(error)
    sys.exit(3)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits the size of files")
@pytest.mark.parametrize(("room", "n_jobs"), [pytest.param(2500, 1, marks=pytest.mark.slow), (2500, 2), (1500, 1)])
def test_a_full_disk_is_a_clear_error_and_loses_nothing(expected, here, room, n_jobs):
    command = [sys.executable, "-c", FULL, str(TESTS), str(room), str(n_jobs)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 3, done.stderr
    assert done.stdout == (
        "journal 'run' cannot be written (File too large); finished work is kept: make room or name a folder "
        "that can be used, and run the same again to resume.\n"
    )
    assert done.stderr == ""
    assert files("run")[0].stat().st_size == room
    whole = files("run")[0].read_bytes().split(b"\n")[:-1]
    assert_same_curve(expected, select("run"), but=("seconds", "notes"))
    assert len(lines_of("run")) == CHAINS + 1  # the rest, and the broken line
    assert len({line for line in lines_of("run") if line in whole}) == len(whole)


def test_a_file_in_the_place_of_the_folder(here):
    Path("file").write_text("mine")
    message = sentence_of(JournalError, lambda: select("file"))
    assert message == "journal 'file' is a file; expected a folder, or the name of a new one."
    message = sentence_of(JournalError, lambda: select("file/run"))
    expected = "a folder, or the name of a new one."
    assert message == f"journal 'file/run' is below 'file', which is a file; expected {expected}"
    assert Path("file").read_text() == "mine"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="a folder that root may not write")
def test_a_folder_that_cannot_be_written(here):
    Path("locked").mkdir(mode=0o500)
    assert "'locked/run' cannot be written" in sentence_of(JournalError, lambda: select("locked/run"))


def other_table():
    X, y = table()
    X[3, 2] += 1e-9
    return SubsetProblem(X, y)


SWEEPS = Schedule(SCHEDULE.betas, (2, 2, 2, 3), "greedy", name="geometric")
LATE = Schedule((*SCHEDULE.betas, 1e5), (2,) * 5, "greedy", name="geometric")
FOREIGN = {
    "data": ({"problem": other_table()}, "data = ", "data = "),
    "names": ({"problem": SubsetProblem(*table(), names=list("abcde"))}, "data = ", "data = "),
    "weights": ({"problem": SubsetProblem(*table(), sample_weight=np.arange(1.0, 10))}, "data = ", "data = "),
    "seed": ({"seed": 8}, "seed = 7", "seed = 8"),
    "folds": ({"cv": 3}, 'cv = "loo"', 'cv = "3 folds"'),
    "center": ({"problem": SubsetProblem(*table(), center=None)}, 'center = "fold"', "center = null"),
    "always": ({"problem": SubsetProblem(*table(), always=["x4"])}, "always = []", 'always = ["x4"]'),
    "ridge": ({"problem": SubsetProblem(*table(), ridge=0.5)}, "ridge = 0.0", "ridge = 0.5"),
    "schedule": ({"schedule": "paper"}, 'schedule name = "geometric"', 'schedule name = "paper"'),
    "sweeps": ({"schedule": SWEEPS}, "schedule sweeps = [2, 2, 2, 2]", "schedule sweeps = [2, 2, 2, 3]"),
    "steps": ({"schedule": LATE}, "schedule betas count = 4", "schedule betas count = 5"),
}


@pytest.mark.parametrize(("changes", "theirs", "ours"), FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_journal_is_refused_with_both_named(here, changes, theirs, ours):
    select("run")
    before = {path.name: path.read_bytes() for path in Path("run").iterdir()}
    message = sentence_of(JournalError, lambda: select("run", **changes))
    assert message.startswith(f"journal 'run' was made with {theirs}")
    assert f"but this run has {ours}" in message
    made, run = message.split(", but this run has ")
    assert made.removeprefix("journal 'run' was made with ") != run.split("; use")[0]
    assert {path.name: path.read_bytes() for path in Path("run").iterdir()} == before


def test_splits_that_differ_only_in_their_rows(here):
    def halves(shift):
        return [(np.roll(np.arange(9), shift)[:6], np.roll(np.arange(9), shift)[6:]) for shift in (shift, shift + 3)]

    select("run", cv=halves(0))
    assert "folds = " in sentence_of(JournalError, lambda: select("run", cv=halves(1)))


def test_a_manifest_that_cannot_be_understood(here):
    for text in ("", "{", "[]", "7", "{}", '{"schema":1,"identity":3}', "[" * 100_000):
        Path("run").mkdir(exist_ok=True)
        Path("run/manifest.json").write_text(text)
        message = sentence_of(JournalError, lambda: select("run"))
        assert "manifest.json' cannot be understood" in message


@pytest.mark.parametrize("schema", [1, 3])
def test_another_schema_is_refused(here, schema):
    select("run")
    manifest = json.loads(Path("run/manifest.json").read_text())
    manifest["schema"] = schema
    Path("run/manifest.json").write_text(json.dumps(manifest))
    message = sentence_of(JournalError, lambda: select("run"))
    assert message == (
        f"journal 'run' has schema {schema}, but this version of pairflip reads schema 2; name another folder to start "
        "again."
    )


def test_a_task_file_that_cannot_be_read(here):
    select("run")
    Path("run/tasks-folder.jsonl").mkdir()
    assert "cannot be read" in sentence_of(JournalError, lambda: select("run"))


WRITER = """
import sys
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/selection"]
import test_journal as t
from pairflip.selection import executors
executors._BATCH_NS = 1.0
problem = t.SubsetProblem(*t.table())
t.select(None)
print("ready", flush=True)
sys.stdin.readline()
t.run_shard(problem, **t.OPTIONS, journal="run", shard=sys.argv[2])
"""


@pytest.mark.parametrize("shards", [pytest.param(("1/2", "2/2"), marks=pytest.mark.slow), ("1/1", "1/1")])
def test_two_processes_write_at_once(expected, here, shards):
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(TESTS), shard], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for shard in shards
    ]
    try:
        for writer in writers:
            assert writer.stdout.readline() == "ready\n"
        for writer in writers:
            writer.stdin.write("go\n")
            writer.stdin.flush()
        assert [writer.wait(timeout=60) for writer in writers] == [0, 0]
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()
    assert len(files("run")) == 2
    assert len(set(lines_of("run"))) == CHAINS
    assert_same_curve(expected, select("run"))
    assert len(files("run")) == 2


def test_journals_of_other_runs_are_not_merged(here):
    run_shard(SubsetProblem(*table()), **OPTIONS, journal="a", shard="1/2")
    run_shard(SubsetProblem(*table()), **{**OPTIONS, "seed": 9}, journal="b", shard="2/2")
    message = sentence_of(JournalError, lambda: merge_journals("all", ["a", "b"]))
    assert message.startswith("journal 'b' was made with seed = 9, but journal 'a' has seed = 7")
    assert "'c' is not a journal" in sentence_of(JournalError, lambda: merge_journals("all", ["a", "c"]))
    run = identify(SubsetProblem(*table()), **{**OPTIONS, "seed": 9})
    message = sentence_of(JournalError, lambda: merge_journals("all", ["b", "a"], run))
    assert message.startswith("journal 'a' was made with seed = 7, but this run has seed = 9")
    assert not Path("all").exists()
    Path("file").write_text("")
    assert "'file' is a file" in sentence_of(JournalError, lambda: merge_journals("file", ["a"]))
    select("all")
    before = lines_of("all")
    message = sentence_of(JournalError, lambda: merge_journals("all", ["b"]))
    assert message.startswith("journal 'all' was made with seed = 7, but journal 'b' has seed = 9")
    assert lines_of("all") == before


def test_merging_again_takes_what_was_added(here, expected):
    run_shard(SubsetProblem(*table()), **OPTIONS, journal="a", shard="1/2")
    assert merge_journals("all", "a") == 1
    run_shard(SubsetProblem(*table()), **OPTIONS, journal="a", shard="2/2")
    assert merge_journals("all", "a") == 1
    assert_same_curve(expected, select("all"))


def test_lone_surrogates_in_names_do_no_harm(here):
    problem = SubsetProblem(*table(), names=["a\ud800", "b", "c", "d", "e"])
    assert_same_curve(select("run", problem), select("run", problem))


def test_a_journal_says_what_its_effort_stood_for(tmp_path, monkeypatch):
    from pairflip.search import effort

    problem = SubsetProblem(*table())
    select_size(problem, [1, 2], 3, journal=tmp_path, effort="quick", progress=False)
    assert read_manifest(tmp_path)["work"]["folds"]["passes"] == effort.FEW_FOLD_EFFORTS["quick"].passes
    monkeypatch.setitem(effort.FEW_FOLD_EFFORTS, "quick", effort.Effort("quick", 0.0, 3, 1, 0))
    with pytest.raises(JournalError, match="work folds passes = 1"):
        select_size(problem, [1, 2], 3, journal=tmp_path, effort="quick", progress=False)


# Damaged, changed or foreign lines: never a silently different curve -------------------------------------------------


MANY = {name: value for name, value in OPTIONS.items() if name != "seed"} | {"seeds": [7]}
ONE_DROPPED = ("1 line of the journal dropped (damaged, or from another run), and these chains walked again",)


def test_a_line_cut_off_anywhere_is_dropped_and_redone(expected, here):
    select("run")
    (path,) = files("run")
    lines = path.read_bytes().splitlines(keepends=True)
    ordinary = next(line for line in lines if b"steps" not in line)
    others = b"".join(line for line in lines if line is not ordinary)
    for length in {*range(0, len(ordinary), 5), 1, len(ordinary) - 2, len(ordinary) - 1}:
        for extra in files("run"):
            extra.unlink()
        path.write_bytes(others + ordinary[:length])
        curve = select("run")
        assert_same_curve(expected, curve, but=("seconds", "notes"))
        whole = length == len(ordinary) - 1  # only the newline is missing
        assert len(curve.notes) == (0 < length < len(ordinary) - 1)
        assert len(lines_of("run")) == CHAINS + (length > 0) - whole
        assert path.read_bytes() == others + ordinary[:length]  # another writer's file is never touched


def changed(line, part, rng):
    """A line with another digit somewhere in one of its entries; where there is none, with another byte."""
    first = line.index(b'"' + part.encode() + b'":') + len(part) + 3
    digits = [i for i in range(first, line.index(b',"', first)) if line[i] in b"0123456789"]
    at = rng.choice(digits) if digits else first
    other = rng.choice([d for d in b"0123456789" if d != line[at]])
    return line[:at] + bytes([other]) + line[at + 1 :]


@pytest.mark.parametrize("part", ["size", "fold", "chain", "support", "energy"])
def test_a_changed_digit_never_changes_the_curve(expected, here, part):
    rng = random.Random(part)
    select("run")
    (path,) = files("run")
    lines = path.read_bytes().splitlines()
    for at in rng.sample(range(len(lines)), 8):
        for extra in files("run"):
            extra.unlink()
        path.write_bytes(b"\n".join([*lines[:at], changed(lines[at], part, rng), *lines[at + 1 :]]) + b"\n")
        curve = select("run")
        assert_same_curve(expected, curve, but=("seconds", "notes"))
        assert curve.notes == ONE_DROPPED


def test_a_changed_byte_never_changes_the_curve(expected, here):
    rng = random.Random(0)
    select("run")
    (path,) = files("run")
    whole = path.read_bytes()
    for _ in range(40):
        for extra in files("run"):
            extra.unlink()
        at = rng.randrange(len(whole) - 1)  # the last one is a line end
        other = rng.choice([b for b in range(256) if b != whole[at]])
        path.write_bytes(whole[:at] + bytes([other]) + whole[at + 1 :])
        curve = select("run")
        assert_same_curve(expected, curve, but=("seconds", "notes"))
        assert len(curve.notes) == 1, (at, other)


def resealed(folder, **changes):
    """The line of the first ordinary chain with some entries replaced, sealed as if it had been written so."""
    key = run_key(json.loads((Path(folder) / "manifest.json").read_text())["identity"])
    line = next(line for line in lines_of(folder) if b'"fold":0' in line and b'"size":2' in line)
    return line, sealed(unsealed(line, key) | changes, key)


WRONG = {
    "energy": {"energy": 1e-3},
    "support": {"support": [1, 2]},
    "fold": {"fold": 1},
    "a column twice": {"support": [0, 0]},
    "no column": {"support": [0, 99]},
    "too few columns": {"support": [0]},
}


@pytest.mark.parametrize("changes", WRONG.values(), ids=WRONG)
def test_an_energy_that_is_not_that_of_the_support_is_not_believed(expected, here, changes):
    select("run")
    (path,) = files("run")
    right, wrong = resealed("run", **changes)
    lines = [line for line in lines_of("run") if line != right]
    path.write_bytes(b"\n".join([*lines, wrong]) + b"\n")
    curve = select("run")
    assert_same_curve(expected, curve, but=("seconds", "notes"))
    assert curve.notes == ONE_DROPPED


def test_rounding_is_believed(expected, here):
    """Another machine may round an energy differently; that is not damage."""
    select("run")
    (path,) = files("run")
    right, _ = resealed("run")
    _, near = resealed("run", energy=json.loads(right)["energy"] * (1 + 1e-13))
    assert near != right
    path.write_bytes(b"\n".join(near if line == right else line for line in lines_of("run")) + b"\n")
    assert select("run").notes == ()


def test_chains_of_another_target_are_not_taken_when_the_manifest_is_lost(expected, here):
    X, y = table()
    select("run", SubsetProblem(X, y[::-1]))
    Path("run/manifest.json").unlink()
    curve = select("run")
    assert_same_curve(expected, curve, but=("seconds", "notes"))
    assert curve.notes == (f"{CHAINS} lines{ONE_DROPPED[0].removeprefix('1 line')}",)


def test_a_lost_manifest_loses_nothing(expected, here):
    select("run")
    Path("run/manifest.json").unlink()
    assert_same_curve(expected, select("run"))
    assert len(lines_of("run")) == CHAINS


def test_damage_is_told_of_each_of_many_problems(here):
    problems = [SubsetProblem(*table()), SubsetProblem(*table(1))]
    first = dict(select_many(problems, **MANY, journal="run"))
    with files("run/0001")[0].open("ab") as file:
        file.write(b'{"size":1,"fold":0,"chain":0,"support":[0],"energy":1.0}\n')
    again = dict(select_many(problems, **MANY, journal="run"))
    assert (again[0].notes, again[1].notes) == ((), ONE_DROPPED)
    for index, curve in first.items():
        assert_same_curve(curve, again[index], but=("seconds", "notes"))


GARBAGE = [
    b"\x00\x00\x00\x00",
    b"\xff\xfe\xfa garbage \x80",
    b"[" * 5000,
    b"7",
    b"{}",
    b'{"size":1,"fold":0,"chain":0,"support":[0],"energy":1.0}',
    b'{"size":1,"fold":0,"chain":0,"support":[0],"energy":1.0,"check":"0123456789ab"}',
    b'"check":"0123456789ab"}',
    b',"check":"0123456789ab"}',
]


@pytest.mark.parametrize("line", GARBAGE, ids=range(len(GARBAGE)))
def test_a_line_of_garbage_is_dropped(expected, tmp_path, line):
    run_shard(SubsetProblem(*table()), **OPTIONS, journal=tmp_path, shard="1/2")
    with files(tmp_path)[0].open("ab") as file:
        file.write(line + b"\n")
    curve = select(tmp_path)
    assert_same_curve(expected, curve, but=("seconds", "notes"))
    assert curve.notes == ONE_DROPPED
