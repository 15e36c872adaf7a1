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
    assert (rows.absent, rows.notes) == (["b", "c"], [])
    assert np.isnan(rows.X[:, 1:]).all()


@pytest.mark.parametrize(
    ("text", "options", "values", "notes"),
    [
        ('" a ",b\n1,2\n', {"known": ["a", "b"]}, [1.0], None),
        ("a,b\n,1\nNA,1\n7,1\n", {}, [np.nan, np.nan, 7.0], []),
        ("a;b\n1,5;2,5\n3,25;4,5\n", {"decimal": ","}, [1.5, 3.25], []),
        (
            "a,b,\n1,2,\n3,4,\n",
            {"known": ["a", "b"]},
            [1.0, 3.0],
            ["1 column with neither name nor values dropped: 'column 3'"],
        ),
        (
            "a,day,note,y\n1,2,x,5\n",
            {"known": ["a", "b"], "target": "y"},
            [1.0],
            ["2 columns that the result was not chosen from, ignored: 'day', 'note'"],
        ),
    ],
)
def test_ways_to_write_one_column(write, text, options, values, notes):
    rows = read_new_rows(write(text), ["a"], **options)
    np.testing.assert_array_equal(rows.X, np.array(values)[:, None])
    assert notes is None or said(rows) == notes


def test_an_infinite_value_is_no_number(write):
    assert not np.isfinite(read_new_rows(write("a\ninf\n"), ["a"]).X).any()


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


@pytest.mark.parametrize(
    ("text", "columns", "words"),
    [
        (
            "gene1,b\n1,2\n",
            ["gene 1"],
            "1 column that the model needs, 'gene 1'; expected it: perhaps 'gene1' is meant",
        ),
        (
            "b\n1\n",
            ["x", "yy", "zzz", "w"],
            "4 columns that the model needs, 'x', 'yy', 'zzz' and 1 more; expected all",
        ),
    ],
)
def test_refused(write, text, columns, words):
    assert words in sentence_of(TableError, lambda: read_new_rows(write(text), columns))
