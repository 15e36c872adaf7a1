"""What the command line says about groups of columns, bands, products and signs, before anything is searched."""

import pytest

from _cli import assert_refused, invoke
from pairflip.cli.loading import limit_arguments
from pairflip.cli.options import LimitOptions
from pairflip.tables import read_table

ROWS = "y,a,b,a:b,c,odd\n" + "".join(f"{i * i % 7},{i},{i * 3 % 5},{i * i % 11},{i * 5 % 13},1\n" for i in range(12))


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(ROWS)
    return read_table(tmp_path / "t.csv", "y")


def test_nothing_asked_for_is_nothing_passed_on(table):
    assert limit_arguments(LimitOptions(), table, []) == {}


def test_groups_come_from_a_file_and_columns_that_were_left_out_are_passed_over(table, tmp_path):
    file = tmp_path / "groups.csv"
    file.write_text("group,column,why\nfirst,a,x\nfirst,b,x\n,c,x\nsecond,odd,x\n")
    without_odd = read_table(tmp_path / "t.csv", "y", drop=["odd"])
    asked = limit_arguments(LimitOptions(file, one_per_group=True), without_odd, [])
    assert asked == {"groups": {"first": ["a", "b"]}, "one_per_group": True}


def test_signs_are_named_one_by_one_by_expressions_or_for_all(table):
    asked = limit_arguments(LimitOptions(positive=["/^a/"], negative=["c"]), table, ["a"])
    assert asked["positive"] == {"a:b": 1, "c": -1}
    everything = limit_arguments(LimitOptions(negative=["all"]), table, [])
    assert everything["positive"] == dict.fromkeys(table.names, -1)


BAD = {
    "no file": (["--column-groups", "none.csv"], "cannot be read"),
    "too long": (["--column-groups", "long.csv"], "cannot be read (it is not a text table in UTF-8)"),
    "no such columns": (["--column-groups", "t.csv"], "does not have the columns column and group"),
    "unknown column": (["--column-groups", "unknown.csv"], "'zz'"),
    "overlap": (["--column-groups", "overlap.csv"], "groups that do not overlap"),
    "one per group of none": (["--one-per-group"], "one_per_group is True without groups"),
    "negative distance": (["--min-distance", "-1"], "--min-distance"),
    "both signs": (["--positive", "a", "--negative", "all"], "in --positive and in --negative"),
    "no such column": (["--positive", "zz"], "--positive"),
    "classes": (["--positive", "all", "--loss", "poisson"], "squared error"),
}


@pytest.mark.parametrize(("options", "expected"), BAD.values(), ids=BAD)
def test_bad_limits_are_one_sentence(table, tmp_path, options, expected):
    (tmp_path / "unknown.csv").write_text("column,group\na,first\nzz,first\n")
    (tmp_path / "long.csv").write_text(f"column,group\n{'a' * 140_000},first\n")
    (tmp_path / "overlap.csv").write_text("column,group\na,first\na,second\n")
    assert_refused(invoke("select", "t.csv", "--target", "y", *options), expected)
    assert not (tmp_path / "t-pairflip").exists()
