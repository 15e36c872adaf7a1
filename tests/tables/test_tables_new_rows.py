"""Columns that a model needs, found by name in files of new rows."""

import numpy as np
import pytest

from _errors import sentence_of
from pairflip.tables import TableError
from pairflip.tables.new_rows import read_new_rows

KNOWN = ["a", "b", "c"]


def said(rows):
    return [str(note) for note in rows.notes]


def test_columns_come_in_the_order_asked_for(write):
    rows = read_new_rows(write("c,b,y,a\n1,2,9,3\n4,5,,6\n"), ["a"], ["c"], known=KNOWN, target="y")
    np.testing.assert_array_equal(rows.X, [[3, 1], [6, 4]])
    np.testing.assert_array_equal(rows.y, [9, np.nan])
    assert rows.row_names == ["1", "2"]
    assert (rows.absent, rows.source) == ([], "data.csv")
    assert said(rows) == ["the columns stand in another order than in the table of the result; they were found by name"]


def test_wished_columns_may_be_absent(write):
    rows = read_new_rows(write("a\n1\n"), ["a"], ["b", "c"], known=KNOWN)
    assert rows.absent == ["b", "c"]
    assert np.isnan(rows.X[:, 1:]).all()
    assert rows.notes == []


def test_spaces_around_names_do_not_count(write):
    assert read_new_rows(write('" a ",b\n1,2\n'), ["a"], known=["a", "b"]).X.tolist() == [[1.0]]


def test_missing_and_infinite_values_are_not_numbers(write):
    rows = read_new_rows(write("a,b\n,1\nNA,1\ninf,1\n7,1\n"), ["a"])
    assert np.isfinite(rows.X[:, 0]).tolist() == [False, False, False, True]


@pytest.mark.parametrize(
    ("text", "index", "usual", "names"),
    [
        ("id,a\n007,1\nx,2\n", "id", None, ["007", "x"]),
        ("id,a\n007,1\nx,2\n", None, "id", ["007", "x"]),
        ("a,b\n1,2\n3,4\n", None, "id", ["1", "2"]),
        (",a\nr1,1\nr2,2\n", None, "id", ["r1", "r2"]),
        ("id,pid,a\n1,u,1\n2,v,2\n", "pid", "id", ["u", "v"]),
    ],
)
def test_names_of_rows(write, text, index, usual, names):
    assert read_new_rows(write(text), ["a"], index=index, usual_index=usual).row_names == names


def test_two_columns_of_one_name_are_taken_in_their_order_if_the_model_knows_both(write):
    path = write("a,b,a\n1,2,3\n")
    rows = read_new_rows(path, ["a", "a (2)"], known=["a", "b", "a (2)"])
    assert rows.X.tolist() == [[1.0, 3.0]]
    assert said(rows) == ["1 column renamed, since another one has the same name: 'a (2)'"]
    message = sentence_of(TableError, lambda: read_new_rows(path, ["a"], known=["a", "b"]))
    assert message.startswith("2 columns of the table are called 'a', which the model needs; expected one:")
    assert read_new_rows(path, ["b"], known=["a", "b"]).X.tolist() == [[2.0]]


def test_separators_at_the_end_of_lines_are_no_column(write):
    rows = read_new_rows(write("a,b,\n1,2,\n3,4,\n"), ["a"], known=["a", "b"])
    assert said(rows) == ["1 column with neither name nor values dropped: 'column 3'"]


def test_columns_that_nobody_knows_are_named(write):
    rows = read_new_rows(write("a,day,note,y\n1,2,x,5\n"), ["a"], known=["a", "b"], target="y")
    assert said(rows) == ["2 columns that the result was not chosen from, ignored: 'day', 'note'"]


def test_decimal_commas(write):
    path = write("a;b\n1,5;2,5\n3,25;4,5\n")
    assert read_new_rows(path, ["a"], decimal=",").X.tolist() == [[1.5], [3.25]]
    message = sentence_of(TableError, lambda: read_new_rows(path, ["a"]))
    assert "read the table with --decimal ,." in message


def test_what_is_missing_and_what_was_perhaps_meant(write):
    message = sentence_of(TableError, lambda: read_new_rows(write("gene1,b\n1,2\n"), ["gene 1"]))
    assert message == (
        "'data.csv' lacks 1 column that the model needs, 'gene 1'; expected it: perhaps 'gene1' is meant as 'gene 1'."
    )
    message = sentence_of(TableError, lambda: read_new_rows(write("b\n1\n"), ["x", "yy", "zzz", "wwww"]))
    assert message == (
        "'data.csv' lacks 4 columns that the model needs, 'x', 'yy', 'zzz' and 1 more; expected all 4: add them to the "
        "table."
    )
