"""Text tables in UTF-16, and tables whose columns are separated by spaces."""

import gzip

import numpy as np
import pytest

from _errors import sentence_of
from _tables import assert_is_the_table
from pairflip.tables import TableError, read_table
from pairflip.tables.text_files import SPACES, find_layout


@pytest.fixture
def read(tmp_path):
    """Read a table from its bytes or text."""

    def reading(content, name="data.txt", **options):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_table(tmp_path / name, **({"target": "y"} | options))

    return reading


@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("separator", [",", "\t", ";", " "])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_utf_16(read, order, separator, end):
    text = "\ufeffa,größe µ,y\n1,2.5,3\n4,5.5,7\n7,9.5,9\n".replace("größe µ", '"größe µ"')
    content = text.replace(",", separator).replace("\n", end).encode(order)
    assert_is_the_table(read(content), names=["a", "größe µ"])
    assert_is_the_table(read(gzip.compress(content), "data.txt.gz"), names=["a", "größe µ"])


def test_unicode_text_of_a_spreadsheet(read):
    text = "Name\ta\tb\ty\r\nGöran\t1\t2,5\t3\r\nЖ\t4\t5,5\t7\r\n\N{BUG}\t7\t9,5\t9\r\n"
    table = read(text.encode("utf-16"), index="Name", decimal=",")
    assert_is_the_table(table)
    assert table.row_names == ["Göran", "Ж", "\N{BUG}"]
    short = text.replace("\t7\r\n", "\r\n").encode("utf-16")
    message = sentence_of(TableError, lambda: read(short, index="Name", decimal=","))
    assert "3 fields in row 2 but 4 columns (separated by tabs)" in message


SPACED = {
    "single spaces": "a b y\n1 2.5 3\n4 5.5 7\n7 9.5 9\n",
    "aligned": "  a     b  y\n  1   2.5  3\n  4   5.5  7\n  7  9.5  9\n",
    "at the end of the lines": "a b y  \n1 2.5 3 \n4 5.5 7\n7 9.5 9   \n",
    "tabs among spaces": "a b y\n1 2.5\t3\n4  \t5.5 7\n7 9.5 9\n",
    "blank lines": "\n\n a b y\n\n1 2.5 3\n4 5.5 7\n  \n7 9.5 9\n\n",
    "quotes": '"a" "b" "y"\n1 2.5 3\n"4" 5.5 7\n7 9.5 9\n',
}


@pytest.mark.parametrize("text", SPACED.values(), ids=SPACED)
@pytest.mark.parametrize("name", ["data.txt", "data.dat", "data.csv"])
def test_spaces(read, text, name):
    table = read(text, name)
    assert_is_the_table(table)
    assert table.notes == table.dropped == []
    assert_is_the_table(read(text.replace(".", ","), name, decimal=","))
    assert_is_the_table(read(text.replace("\n", "\r\n"), name))


def test_tables_of_r(read):
    """As write.table writes them: quotes around texts, and a header without a name for the names of the rows."""
    text = '"a" "b c" "y"\n"first row" 1 2.5 3\n"007" 4 5.5 7\n"NA" 7 9.5 9\n'
    for written in (text, '"" ' + text):  # the second with col.names=NA
        table = read(written)
        assert_is_the_table(table, names=["a", "b c"])
        assert table.row_names == ["first row", "007", "NA"]
    assert_is_the_table(read(text.replace('"a"', '"id" "a"'), index="id"), names=["a", "b c"])
    table = read(text.replace("5.5", "NA"), missing="drop-rows")
    assert table.row_names == ["first row", "NA"]
    assert read(text.replace("9\n", "NA\n"), missing="drop-rows").row_names == ["first row", "007"]


def test_numbers_between_spaces_are_exact(read):
    values = np.random.default_rng(0).normal(size=(200, 6))
    rows = "\n".join("   ".join(f"{value!r:>25}" for value in row) for row in values.tolist())
    table = read("a b c d e y\n" + rows + "\n")
    np.testing.assert_array_equal(np.column_stack([table.X, table.y]), values)


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ("a, b, y\n1, 2, 3\n4, 5, 6\n", ","),
        ("body mass, b, y\n1, 2, 3\n4, 5, 6\n", ","),
        ("a b\ty\n1\t3\n4\t6\n", "\t"),
        ("a; b c; y\n1; 2; 3\n4; 5; 6\n", ";"),
        ("when,y\n2020-01-01 10:00,3\n2020-01-01 11:00,6\n", ","),
        ("name,y\nJane Doe,3\nJohn Doe,6\n", ","),
        ("x,1 y\n1 2\n3 4\n", SPACES),
        ("a b y\n1 2 3\n", SPACES),
    ],
)
def test_spaces_separate_only_where_nothing_else_does(tmp_path, text, separator):
    (tmp_path / "data.txt").write_text(text)
    assert find_layout(tmp_path / "data.txt").separator == separator


def test_one_column_stays_one_column(tmp_path):
    (tmp_path / "data.txt").write_text("body mass\n70\n80\n")
    assert find_layout(tmp_path / "data.txt").header == ["body mass"]
