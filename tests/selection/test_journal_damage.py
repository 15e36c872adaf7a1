"""A journal with damaged, changed or foreign lines: never a silently different curve."""

import json
import random
from pathlib import Path

import pytest

from _curves import assert_same_curve
from _journal import files, lines_of
from pairflip import SubsetProblem
from pairflip.journal_file import run_key, sealed, unsealed
from pairflip.selection import run_shard, select_many
from test_journal import CHAINS, OPTIONS, select, table

MANY = {name: value for name, value in OPTIONS.items() if name != "seed"} | {"seeds": [7]}


@pytest.fixture(scope="module")
def expected():
    return select(None)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


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
