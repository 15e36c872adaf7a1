"""Where results may be put: never onto what they are made from, and never into a file of another kind."""

import csv
import json
import os
import shutil
from pathlib import Path

import pytest

from _cli import QUICK, assert_refused, invoke, small_table, tree, write_csv
from pairflip.cli.results import FOLDERS, new_folder

FIT = ["-t", "y", "-k", "2", *QUICK]
SELECT = ["-t", "y", "--sizes", "1", *QUICK]


@pytest.fixture
def untouched(folder):
    """Fails if a file that was there at the start of the test, or that it made, is changed by the command."""

    def check(*arguments):
        before = {name: (folder / name).read_bytes() for name in tree(folder) if (folder / name).is_file()}
        result = invoke(*arguments)
        assert {name: (folder / name).read_bytes() for name in tree(folder) if (folder / name).is_file()} == before
        return result

    return check


@pytest.mark.parametrize(("out", "delimiter"), [("coef.csv", ","), ("coef.tsv", "\t"), ("COEF.CSV", ",")])
def test_fit_writes_what_the_suffix_says(folder, out, delimiter):
    assert invoke("fit", "small.csv", *FIT, "--out", out).exit_code == 0
    with open(folder / out, newline="") as file:
        rows = list(csv.reader(file, delimiter=delimiter))
    assert rows[0] == ["column", "kind", "coefficient"]
    assert [row[:2] for row in rows[1:]] == [["", "intercept"], ["a", "selected"], ["d", "selected"]]


@pytest.mark.parametrize("out", ["small.csv", "deep/../small.csv", "link.csv", "hard.csv"])
@pytest.mark.parametrize("data", ["small.csv", "link.csv"])
def test_fit_never_replaces_its_table(folder, untouched, data, out):
    (folder / "deep").mkdir()
    (folder / "link.csv").symlink_to("small.csv")
    (folder / "hard.csv").hardlink_to(folder / "small.csv")
    assert_refused(
        untouched("fit", data, *FIT, "--out", out, "--force"), f"--out {str(Path(out))!r} is the table itself"
    )


@pytest.fixture
def result(folder):
    assert invoke("select", "small.csv", *SELECT, "--out", "old").exit_code == 0
    return folder / "old"


def test_select_never_replaces_the_folder_of_its_table(folder, untouched, result):
    """A table may have the name of one of our files."""
    shutil.copy(folder / "small.csv", result / "curve.csv")
    (folder / "link").symlink_to("old")
    for data in ("old/curve.csv", "link/curve.csv", "./old/../old/curve.csv"):
        refused = untouched("select", data, *SELECT, "--out", "old", "--force")
        assert_refused(refused, f"--out 'old' holds the table {str(Path(data))!r}, which would be lost")


@pytest.mark.parametrize("more", [[], ["--shard", "1/2"]])
def test_a_journal_is_not_put_among_the_data(folder, untouched, more):
    (folder / "data").mkdir()
    shutil.move(folder / "small.csv", folder / "data" / "small.csv")
    for journal in ("data", "./data/../data"):
        refused = untouched("select", "data/small.csv", *SELECT, "--journal", journal, *more)
        assert_refused(refused, f"--journal {str(Path(journal))!r} is the folder of the table")
    refused = untouched("select", "data/small.csv", *SELECT, "--journal", "data/small.csv", *more)
    assert_refused(refused, "--journal 'data/small.csv' is the table")
    assert sorted(tree(folder)) == ["data", "data/small.csv"]


def test_a_journal_in_the_result_through_a_link(folder, untouched, result):
    (folder / "link").symlink_to("old")
    refused = untouched("select", "small.csv", *SELECT, "--out", "old", "--force", "--journal", "link/j")
    assert_refused(refused, "--journal 'link/j' is in the result folder 'old'")


def test_report_never_replaces_what_it_reads(folder, untouched, result):
    (folder / "link.json").symlink_to("old/result.json")
    for out in ("old/result.json", "./old/result.json", "link.json"):
        refused = untouched("report", "old", "--out", out, "--force")
        assert_refused(refused, f"--out {str(Path(out))!r} is the saved result itself, which would be lost")
    shutil.copy(result / "result.json", folder / "report.html")
    assert_refused(untouched("report", "report.html"), "is the saved result itself")


def test_a_merge_of_a_wrong_journal_writes_nothing(folder, untouched):
    base = ["select", "small.csv", *SELECT]
    assert invoke(*base, "--journal", "right", "--shard", "1/2").exit_code == 0
    assert invoke(*base, "--seed", "1", "--journal", "wrong", "--shard", "2/2").exit_code == 0
    for sources in (["wrong"], ["right", "wrong"], ["wrong", "right"]):
        merge = [word for source in sources for word in ("--merge", source)]
        refused = untouched(*base, "--journal", "all", *merge, "--quiet")
        assert_refused(refused, "journal 'wrong' was made with seed = 1, but this run has seed = 0")
        assert not (folder / "all").exists()
    done = invoke(*base, "--journal", "all", "--merge", "right", "--json", "--quiet")
    assert json.loads(done.stdout)["settings"]["seed"] == 0


FORMULAS = ["=1+1", "@SUM(a)", "-x", "+x", "\t=a", "\r=a", "-5", "+1.5e3", "plain"]


def test_names_are_no_formulas_in_a_spreadsheet(folder):
    """An apostrophe stands before what a spreadsheet would compute, and not before numbers."""
    table = small_table(folder / "odd.csv", names=FORMULAS, target="=y")
    out = ["--sizes", "9", "--stability", "0", "--out", "odd", *QUICK]
    assert invoke("select", table, "-t", "=y", *out).exit_code == 0
    for name, column in (("coefficients.csv", "column"), ("selection_counts.csv", "column")):
        with open(folder / "odd" / name, newline="", encoding="utf-8") as file:
            found = {row[column] for row in csv.DictReader(file) if row["size"] == "9"} - {""}
        assert found == {*(f"'{name}" for name in FORMULAS[:6]), *FORMULAS[6:]}
    assert json.loads((folder / "odd" / "result.json").read_text())["names"] == FORMULAS
    write_csv(folder / "new.csv", ["id", *FORMULAS], [["=r", *range(9)], ["-7", *range(9)]])
    told = invoke("predict", "odd", "new.csv", "--index", "id", "--size", "9", "--quiet")
    assert [line.split(",")[0] for line in told.stdout.splitlines()] == ['"row"', '"\'=r"', '"-7"']


def test_what_killed_runs_left_behind_is_removed(folder):
    """Only what is ours, and nothing that a living run has locked."""
    fcntl = pytest.importorskip("fcntl")
    names = ["killed", "young", "foreign", "used"]
    left = {name: folder / f".new.0000000{number}.part" for number, name in enumerate(names)}
    for part in left.values():
        part.mkdir()
        (part / "curve.csv").write_text("half")
    (left["foreign"] / "mine.txt").write_text("mine")
    other = folder / ".another.00000000.part"
    other.mkdir()
    for part in (*left.values(), other):
        if part != left["young"]:
            os.utime(part, (0, 0))
    handle = os.open(left["used"], os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        assert invoke("select", "small.csv", *SELECT, "--stability", "0", "--out", "new").exit_code == 0
    finally:
        os.close(handle)
    kept = sorted(path.name for path in folder.glob(".*.part"))
    assert kept == sorted([left["young"].name, left["foreign"].name, left["used"].name, other.name])


def test_a_result_folder_of_version_0_2_is_replaced(tmp_path):
    """It may hold surface.csv, which is not written any more."""
    (tmp_path / "result.json").write_text("{}")
    (tmp_path / "surface.csv").touch()
    with new_folder(tmp_path, True, FOLDERS["select"]) as part:
        (part / "result.json").write_text("{}")
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]
