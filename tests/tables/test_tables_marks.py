"""Commas and points in numbers: read as asked, checked, and where they have two meanings, both are named."""

import numpy as np
import pandas as pd
import pytest

from _errors import sentence_of
from pairflip.tables import TableError, read_table


@pytest.fixture
def read(write):
    """Read a table with semicolons of the columns a, b and the target y, from the texts of a and b."""

    def reading(a, b="12345678", **options):
        rows = "".join(f"{one};{two};{at * at}\n" for at, (one, two) in enumerate(zip(a, b, strict=False)))
        return read_table(write("a;b;y\n" + rows), **({"target": "y"} | options))

    return reading


@pytest.fixture
def refusal(read):
    return lambda a, *rest, **options: sentence_of(TableError, lambda: read(a, *rest, **options))


def test_thousands_are_read_when_asked_for(read):
    table = read(["1,499", "12", "1,234,567", "-1,000.5", ""], thousands=",", missing="drop-rows")
    np.testing.assert_array_equal(table.X[:, 0], [1499, 12, 1234567, -1000.5])
    assert table.notes == []
    np.testing.assert_array_equal(read(["1.499,5", "0,5"], decimal=",", thousands=".").X[:, 0], [1499.5, 0.5])
    np.testing.assert_array_equal(read(["1.499", "2.500"], decimal=",", thousands=".").X[:, 0], [1499, 2500])
    np.testing.assert_array_equal(read(["1,499", "2,500", "9,001"], target="a", thousands=",").y, [1499, 2500, 9001])
    long = ["1", "123456789012345678901234567890"]
    np.testing.assert_array_equal(read(long).X[:, 0], [float(each) for each in long])


@pytest.mark.parametrize(
    "text", ['a,y\n"1,499",1\n"2,500",2\n', " a     y\n 1,499 1\n 2,500 2\n", "a|y\n1,499|1\n2,500|2\n"]
)
def test_thousands_in_every_kind_of_text_table(write, text):
    assert read_table(write(text), "y", thousands=",").X[:, 0].tolist() == [1499, 2500]


GROUP = {"thousands": ","}
COMMAS = {"decimal": ","}
REFUSED = [
    (["1,499", "2,500"], "12", {}, "'1,499' reads as 1499 with --thousands , or as 1.499 with --decimal ,."),
    (["1,499", "2,500"], "12", {"target": "a"}, "reads as 1499 with --thousands , or as 1.499 with --decimal ,."),
    (["7", "-1,499"], "12", {}, "'-1,499' reads as -1499 with --thousands , or as -1.499 with --decimal ,."),
    (["1.499", "2"], "12", COMMAS, "'1.499' reads as 1.499 without --decimal , or as 1499 with --thousands '.'."),
    # the rest of the table settles what commas mean
    (["1,499", "12,5"], "12", {}, "(row 2: '12,5'); expected numbers: read the table with --decimal ,."),
    (["1,499", "0,499"], "12", {}, "(row 2: '0,499'); expected numbers: read the table with --decimal ,."),
    (["1,499", "1,234,567"], "12", {}, "(row 2: '1,234,567'); expected numbers: read the table with --thousands ,."),
    (["1,499", "12.5"], "12", {}, "; expected numbers: read the table with --thousands ,."),
    (["1,499", "2,500"], ["0.25", "1"], {}, "; expected numbers: read the table with --thousands ,."),
    (["1,499", "2,500"], ["0,25", "1"], {}, "; expected numbers: read the table with --decimal ,."),
    (["1,499", "2,500"], ["1,000,000", "1"], {}, "; expected numbers: read the table with --thousands ,."),
    (["1.499,5", "2"], "12", {}, "; expected numbers: read the table with --decimal , --thousands '.'."),
    (["0,5", "0,7"], ["1.499,5", "2"], {}, "; expected numbers: read the table with --decimal , --thousands '.'."),
    (["1,499"] * 60 + ["12,5"], "1" * 61, {}, "; expected numbers: read the table with --decimal ,."),
    # thousands are groups of three
    (["1,499", "1,49"], "12", GROUP, "with --decimal , and without --thousands ,."),
    (["1,499,000", "1,49"], "12", GROUP, "of three digits after each ',', as in 1,490, or correct '1,49'."),
    (["1,234,567", "2"], "12", COMMAS, "without --decimal ,."),
    (["12.5", "2"], "12", COMMAS, "without --decimal ,."),
    (["1", "2"], "12", {"thousands": " "}, "--thousands is ' '; expected '.' or ','."),
]


@pytest.mark.parametrize(("a", "b", "options", "end"), REFUSED)
def test_refused(refusal, a, b, options, end):
    assert refusal(a, b, **options).endswith(end)


def test_marks_that_cannot_be(refusal):
    for options in ({"thousands": "."}, {"thousands": ",", "decimal": ","}, {"thousands": ".", "decimal": "."}):
        assert "are both" in refusal(["1", "2"], **options)
    assert "(row 1: '1,234,567')" in refusal(["1,234,567", "2"], decimal=",")


def notes(table):
    return [str(each) for each in table.notes]


def test_decimal_commas_that_may_mark_thousands_are_noted(read):
    noted = "1 column with commas that may mark thousands (as in 1,499), read as decimal commas: 'a'"
    for a in (["1,499", "2,500", "9,001"], ["7", "2,000", ""], ["-1,499", "1,490", "1500"]):
        table = read(a, decimal=",", missing="drop-rows")
        assert notes(table) == [noted]
    assert table.X[:2, 0].tolist() == [-1.499, 1.49]
    assert noted in notes(read(["1,499", "2,500", "9,001"], target="a", decimal=","))
    for a in (["1,499", "2,5", "9"], ["0,499", "2,500"], ["1234,567", "1"], ["1", "2"], ["1,4999", "2"]):
        assert notes(read(a, decimal=",")) == []
    assert notes(read(["1,499", "2,500"], decimal=",", drop=["a"])) == []
    late = ["1,499"] * 100  # beyond the lines that are looked at first, only the text tells 2,500 from 2,5
    assert len(notes(read([*late, "2,500"], "1" * 101, decimal=",", drop=["b"]))) == 1
    assert notes(read([*late, "2,5"], "1" * 101, decimal=",", drop=["b"])) == []


def test_notes_beside_names_of_rows_and_blank_columns(tmp_path):
    (tmp_path / "data.csv").write_text(";a;;b;y\nr;1;;1,499;1\ns;2;;2,500;5\n")
    table = read_table(tmp_path / "data.csv", "y", decimal=",")
    assert table.names == ["a", "b"]
    assert notes(table)[-1].endswith("read as decimal commas: 'b'")


def test_commas_in_a_workbook_are_no_matter_of_options(tmp_path):
    pytest.importorskip("openpyxl")
    pd.DataFrame({"a": ["1,499", "2,500"], "y": [1, 2]}).to_excel(tmp_path / "data.xlsx", index=False)
    message = sentence_of(TableError, lambda: read_table(tmp_path / "data.xlsx", "y"))
    assert "holds commas in numbers: 'a'" in message
    assert message.endswith("store them as numbers in the file.")
