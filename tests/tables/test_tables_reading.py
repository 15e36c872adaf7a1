"""Text files in all their ways become the same table, and every file that cannot is refused in one sentence."""

import csv
import gzip
import io
import struct
from random import Random

import numpy as np
import pytest

from _tables import ROWS, X, Y, assert_is_the_table, refusal
from pairflip.tables import read_table


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("name", ["data.csv", "data.tsv", "data.txt", "DATA.CSV"])
def test_text(write, separator, end, name):
    table = read_table(write(ROWS.replace(",", separator).replace("\n", end), name), "y")
    assert_is_the_table(table)
    assert table.notes == []
    assert table.source == name
    assert table.row_names == ["1", "2", "3"]


@pytest.mark.parametrize(
    "text",
    [
        ROWS.removesuffix("\n"),
        "\n\n" + ROWS,
        ROWS + "\n\n",
        ROWS.replace("\n4", "\n\n4"),
        ROWS.replace(",", ", "),
        ROWS.replace(",", " ,"),
        "\ufeff" + ROWS,
        "sep=,\n" + ROWS,
        '"a","b","y"\n"1","2.5","3"\n"4","5.5","7"\n"7","9.5","9"\n',
        "a,b,y\n1,2.5,3\n4,55e-1,+7\n7,9.5,0.9e1\n",
    ],
)
def test_ways_to_write_text(write, text):
    table = read_table(write(text), "y")
    assert [name.strip() for name in table.names] == ["a", "b"]
    np.testing.assert_array_equal(table.X, X)
    np.testing.assert_array_equal(table.y, Y)


@pytest.mark.parametrize("name", ["data.csv.gz", "data.CSV.GZ", "data.csv"])
def test_gzip(write, name):
    assert_is_the_table(read_table(write(gzip.compress(ROWS.encode()), name), "y"))


def test_decimal_commas(write):
    path = write("a;b;y\n1;2,5;3\n4;5,5;7\n7;9,5;9\n")
    assert_is_the_table(read_table(path, "y", decimal=","))
    assert "(row 1: '2,5'); expected numbers: read the table with --decimal ,." in refusal(path)
    assert "--decimal ," in refusal(path, target="b")
    assert "--decimal ," in refusal(path, drop_text=True, keep=["b"])
    most = write("a;y\n1,5;2,5\n3,5;4,5\n", "most.csv")
    assert "'most.csv' holds decimal commas (row 1: '1,5')" in refusal(most)
    assert "--decimal ," in refusal(most, decimal=".")
    quoted = write('a,b,y\n1,"2,5",3\n4,"5,5",7\n7,"9,5",9\n', "quoted.csv")
    assert_is_the_table(read_table(quoted, "y", decimal=","))
    assert "decimal commas, export it with semicolons" in refusal(write("a,b,y\n1,0,2,5,3,0\n4,0,5,5,7,0\n", "bad.csv"))


def test_numbers_are_exact(write):
    random = Random(0)
    written = [repr(struct.unpack("<d", random.randbytes(8))[0]) for _ in range(4000)]
    written = [each for each in written if each not in ("nan", "inf", "-inf")]
    written += [f"{random.random() * 10.0 ** random.randint(-30, 30):.25e}" for _ in range(2000)]
    written += ["0.1", "-0.0", "5e-324", "2.2250738585072011e-308", "1.7976931348623157e308", "9007199254740993.0"]
    exact = np.array([float(each) for each in written])
    for decimal, separator in ((".", ";"), (",", ";"), (".", "  ")):
        rows = (f"{each.replace('.', decimal)}{separator}{i}\n" for i, each in enumerate(written))
        table = read_table(write(f"a{separator}y\n{''.join(rows)}"), "y", decimal=decimal)
        np.testing.assert_array_equal(table.X[:, 0].view(np.int64), exact.view(np.int64))


def test_integers_beyond_64_bits(write):
    table = read_table(write("a,y\n2,1\n12345678901234567890,2\n18446744073709551615,3\n"), "y")
    np.testing.assert_array_equal(table.X[:, 0], [2.0, 12345678901234567890.0, 18446744073709551615.0])


STRANGE = ["<script>alert(1)</script>", 'say "hi"', "a,b", "two\nlines", "\N{BUG} bug", "x" * 300, "'", "ä;|\t", "=1+1"]


def test_strange_names_are_kept_letter_for_letter(write):
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*STRANGE, "y"])
    writer.writerows((np.arange(30).reshape(3, 10) ** 2).tolist())
    path = write(text.getvalue())
    table = read_table(path, "y")
    assert table.names == STRANGE
    np.testing.assert_array_equal(table.X[1], np.arange(10, 19) ** 2)
    for name in STRANGE:
        assert read_table(path, name).target == name
        assert read_table(path, "y", drop=[name]).names == [each for each in STRANGE if each != name]
    assert refusal(path, target="nowhere").isprintable()


def test_names_of_the_rows(write):
    named = "id,a,b,y\n007,1,2.5,3\nNA,4,5.5,7\nx y,7,9.5,9\n"
    table = read_table(write(named), "y", index="id")
    assert_is_the_table(table)
    assert table.row_names == ["007", "NA", "x y"]
    assert table.notes == []
    for text in (named.replace("id,", ","), named.replace("id,", "")):  # as pandas and as R write them
        table = read_table(write(text), "y")
        assert_is_the_table(table)
        assert table.row_names == ["007", "NA", "x y"]
        assert "taken as names of the rows" in str(table.notes[0])
    assert read_table(write(named.replace("id,", "")), "y", index="b").row_names == ["2.5", "5.5", "9.5"]


def test_separators_at_the_end_of_the_lines(write):
    table = read_table(write(ROWS.replace("\n", ",\n")), "y")
    np.testing.assert_array_equal(table.X, X)
    assert [str(each) for each in table.dropped] == ["1 column with neither name nor values dropped: 'column 4'"]
    assert "comma at the end" in refusal(write(ROWS.replace("\n", ",\n").replace("y,", "y")))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is empty"),
        (" \n\n", "is empty"),
        ("a,b,y\n", "no rows"),
        pytest.param(f"{'x' * 1_000_000},b,y\n1,2,3\n4,5,6\n", "a field of more than 131,072 characters", id="long"),
        pytest.param(f'a,b,y\n1,2,3\n"{"x" * 140_000}",5,\n', "a field of more than 131,072", id="long field"),
        ("a,b,y\n1,2,3\n", "has 1 row below the header"),
        ("a,b,y\n1,2,3\n1,2,3,4\n", "4 fields in row 2 but 3 columns"),
        ("a,b,y\n1,2,3\n1,2\n4,5,6\n", "2 fields in row 2 but 3 columns"),
        ('a,b,y\n1,2,3\n"1,2,3\n4,5,6\n', "never closed"),
        ("a,b,y\n1,2,3\n4,5,\xe9".encode("latin1"), "not UTF-8 text (byte 0xe9)"),
        ("a,\xe9,y\n1,2,3\n4,5,6".encode("latin1"), "not UTF-8 text (byte 0xe9)"),
        (ROWS.encode("utf-16")[:-1], "damaged UTF-16 text"),
        (ROWS.encode("utf-32"), "UTF-32"),
        (bytes(range(256)) * 20, "binary data"),
        (np.random.default_rng(0).bytes(5000), "binary data"),
        (b"PK\x03\x04abc", "rename it"),
        (gzip.compress(ROWS.encode(), mtime=0)[:-12], "cut off or damaged"),
        ("body mass y\n1 2\n4 5\n", "separate columns by commas or tabs, and quote names with spaces"),
        ("a b y\n1 2 3\n4 5\n7 8 9\n", "2 fields in row 2 but 3 columns (separated by spaces)"),
        ("a b y\n1 2 3\n4 5 6 7\n", "write NA for what is missing, and text with spaces in quotes"),
        ("# made by hand\n" + ROWS, "remove what stands above the row of column names"),
        ('"a,b,y\n1,2,3\n4,5,6\n', "never closed"),
        ('b,y,"a"\n1,2,3\n"1",2,\n4,5,6\n', "1 value missing"),  # a row that ends in an empty field is not short
        ('a,y\n"1,234",3\n"2,345",6\n', "reads as 1234 with --thousands , or as 1.234 with --decimal ,."),
    ],
)
def test_bad_text(write, content, says):
    assert says in refusal(write(content))


def test_paths(write, tmp_path):
    path = write(ROWS, "measurements.csv")
    assert read_table(str(path), "y").source == "measurements.csv"
    (tmp_path / "empty").mkdir()
    for name, words in {
        "mesurements.csv": "perhaps 'measurements.csv'.",
        "zzz.parquet": "check the name",
        "no/data.csv": "nor does its folder",
        "empty": "is a folder",
        "x" * 200 + ".csv": "does not exist",
        "x" * 300 + ".csv": "expected",  # too long a name for most file systems
    }.items():
        assert words in refusal(tmp_path / name)
    for name, words in {
        "data.doc": "the suffix .doc",
        "data": "no suffix",
        "data.xls": "save it as .xlsx",
        "data.parquet.gz": "unpack it",
    }.items():
        assert words in refusal(write("", name))


@pytest.mark.parametrize(
    ("error", "words"),
    [(PermissionError(13, "Permission denied"), "may not be read"), (OSError(5, "Broken"), "(Broken)")],
)
def test_files_that_cannot_be_opened(write, monkeypatch, error, words):
    def refuse(*_args, **_options):
        raise error

    path = write(ROWS)
    monkeypatch.setattr(type(path), "open", refuse)
    assert words in refusal(path)


def test_options_that_do_not_fit_the_file(write):
    assert "expected '.' or ','" in refusal(write(ROWS), decimal=";")
    assert "leave it out" in refusal(write(ROWS), sheet="one")
    for option in ("decimal", "thousands"):
        message = refusal(write("", "data.npz"), **{option: ","})
        assert f"--{option} is given but 'data.npz' is not a text table" in message


# UTF-16, and columns separated by spaces ------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("separator", [",", "\t", ";", " "])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_utf_16(write, order, separator, end):
    text = '\ufeffa,"größe µ",y\n1,2.5,3\n4,5.5,7\n7,9.5,9\n'
    content = text.replace(",", separator).replace("\n", end).encode(order)
    assert_is_the_table(read_table(write(content), "y"), names=["a", "größe µ"])
    assert_is_the_table(read_table(write(gzip.compress(content), "data.txt.gz"), "y"), names=["a", "größe µ"])


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
def test_spaces(write, text, name):
    table = read_table(write(text, name), "y")
    assert_is_the_table(table)
    assert table.notes == table.dropped == []
    assert_is_the_table(read_table(write(text.replace(".", ","), name), "y", decimal=","))
    assert_is_the_table(read_table(write(text.replace("\n", "\r\n"), name), "y"))


def test_tables_of_r(write):
    """As write.table writes them: quotes around texts, and a header without a name for the names of the rows."""
    text = '"a" "b c" "y"\n"first row" 1 2.5 3\n"007" 4 5.5 7\n"NA" 7 9.5 9\n'
    for written in (text, '"" ' + text):  # the second with col.names=NA
        table = read_table(write(written), "y")
        assert_is_the_table(table, names=["a", "b c"])
        assert table.row_names == ["first row", "007", "NA"]
    assert_is_the_table(read_table(write(text.replace('"a"', '"id" "a"')), "y", index="id"), names=["a", "b c"])
    for value, rows in (("5.5", ["first row", "NA"]), ("9\n", ["first row", "007"])):
        missing = text.replace(value, "NA" + value[3:] + "\n" * value.endswith("\n"))
        assert read_table(write(missing), "y", missing="drop-rows").row_names == rows
