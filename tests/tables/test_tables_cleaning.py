"""Text, dates, truth values and missing values are named, never guessed; what is left is finite numbers."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from _errors import sentence_of
from pairflip.tables import Change, TableError, read_table
from pairflip.tables.cleaning import as_candidates
from pairflip.tables.kinds import as_numbers, describe
from pairflip.tables.raw import Raw

GOOD = "a,b,y\n1,2,3\n4,5,7\n7,9,9\n1,1,2\n"


@pytest.fixture
def read(write):
    """Read a table from its text."""
    return lambda text, target="y", **options: read_table(write(text), target, **options)


@pytest.fixture
def refusal(read):
    return lambda text, most=250, **options: sentence_of(TableError, lambda: read(text, **options), most)


def said(changes):
    return [str(each) for each in changes]


TEXT = "a,who,when,y\n1,ann,2020-01-02,3\n2,bob,2020-01-03,4\n4,5,2020-01-04,6\n"


TWICE = "a,b,y\n1,,3\n,2,4\n,4,8\n"
EMPTY = "a,e,y\n1,,3\n2,NA,4\n4,,8\n"
NO_TARGET = GOOD.replace("4,5,7", "4,5,NA")
MIXED = 'Area,Name,Day,y,z\n"1,499",ann,2020-01-01,1,2\n"1,500",bob,2020-01-02,2,2\n"2,500",bob,2020-01-02,4,3\n'
REFUSED = [
    (TEXT, {}, "2 columns are not numbers: 'who' (text, row 1: 'ann'), 'when' (dates); expected numbers"),
    (TEXT, {}, "--drop-text"),
    (TEXT, {"drop": ["when"]}, "1 column of the table holds text: 'who'"),
    (TEXT, {"drop": ["who"]}, "1 column of the table holds dates: 'when' (row 1: '2020-01-02')"),
    (GOOD.replace("7,9", "x7,9"), {}, "(row 3: 'x7')"),
    (TEXT, {"drop": ["a"], "drop_text": True}, "No column of numbers is left"),
    (TEXT, {"drop": ["a", "who", "when"]}, "no column"),
    (TEXT, {"target": "who", "drop_text": True}, "The target 'who' holds text (row 1: 'ann')"),
    (TEXT, {"target": "when", "drop_text": True}, "'when' holds dates (row 1: '2020-01-02'); expected numbers: choose"),
    (NO_TARGET, {}, "('2'); expected numbers: remove these rows with --missing drop-rows (keeps 3 of 4)"),
    (NO_TARGET, {"missing": "drop-columns"}, "The target 'y' is missing or infinite in 1 row ('2')"),
    ("a,y\n1,\n2,\n", {"missing": "drop-rows"}, "The target 'y' has no values"),
    (
        EMPTY,
        {},
        "1 column of the table without any value: 'e'; expected numbers: leave them out with --missing",
    ),
    (EMPTY, {"missing": "drop-rows"}, "leaves 0 rows of 3"),
    (EMPTY, {"missing": "drop-rows"}, "('e', 'a')"),
    (TWICE, {"missing": "drop-columns"}, "leaves none of 2 columns"),
    (GOOD, {"missing": "impute"}, "expected 'drop-rows', 'drop-columns' or 'keep'"),
    ("a,y\n1,5\n2,5\n", {}, "is 5 in every row"),
    (
        MIXED,
        {},
        "3 columns are not numbers: 'Area' (commas in numbers, row 1: '1,499'), 'Name' (text), 'Day' (dates);",
    ),
    (MIXED, {}, "1499 with --thousands , or as 1.499 with --decimal ,; --drop-text leaves text out."),
    ("who,a,y,how\nann,1,2,x\nbob,2,4,x\ncid,5,6,z\n", {}, "names with --index 'who' and leave the others out with"),
    ('who,a,y\nann,"1,499",2\nbob,2,4\n', {}, "--index 'who' takes row names, --drop-text leaves text out."),
]


@pytest.mark.parametrize(("text", "options", "words"), REFUSED)
def test_refused(refusal, text, options, words):
    assert words in refusal(text, **options)


def test_text_is_dropped_when_asked(read):
    table = read(TEXT, drop_text=True)
    assert table.names == ["a"]
    assert said(table.dropped) == ["1 column of text dropped: 'who'", "1 column of dates dropped: 'when'"]
    assert table.dropped[0] == Change("column", "of text dropped", ("who",))
    assert read(TEXT, keep="a").dropped[0].count == read(TEXT, drop="who,when").dropped[0].count == 2


@pytest.mark.parametrize("words", [("True", "False"), ("TRUE", "FALSE"), ("true", "false")])
def test_truth_values_are_one_and_zero(read, words):
    yes, no = words
    text = f"a,b,y\n{yes},1,{no}\n{no},2,{yes}\n{yes},3,{no}\n"
    table = read(text)
    assert table.X[:, 0].tolist() == [1, 0, 1]
    assert table.y.tolist() == [0, 1, 0]
    both = [f"1 column of true and false, read as 1 and 0: '{name}'" for name in "ya"]
    assert said(table.notes)[:2] == both
    assert said(table.notes)[2].startswith("the target 'y' has two values only, 0 and 1; it is treated as a number")
    table = read(text.replace(f"{yes},3", ",3"), missing="drop-rows")
    assert table.X[:, 0].tolist() == [1, 0]
    assert len(table.notes) == 2


MISSING = "1e999 NA N/A nan NaN null NULL None ? . - na #DIV/0! inf -Inf"


@pytest.mark.parametrize("word", ["", " ", *MISSING.split()])
def test_missing_values(read, refusal, word):
    text = GOOD.replace("4,5", f"4,{word}")
    message = refusal(text)
    assert "1 value missing or infinite in 'b'" in message
    assert (
        "--missing drop-rows (keeps 3 of 4 rows), --missing drop-columns (keeps 1 of 2) or --impute median" in message
    )
    table = read(text, missing="drop-rows")
    assert (table.X.tolist(), table.y.tolist()) == ([[1, 2], [7, 9], [1, 1]], [3, 9, 2])
    assert table.row_names == ["1", "3", "4"]
    assert said(table.dropped) == ["1 row with missing or infinite values dropped: '2'"]
    table = read(text, missing="drop-columns")
    assert (table.names, table.X.tolist()) == (["a"], [[1], [4], [7], [1]])
    assert table.X.flags.c_contiguous
    assert said(table.dropped) == ["1 column with missing or infinite values dropped: 'b'"]


def test_rows_and_columns_without_values_are_left_out_as_asked(read):
    assert read(NO_TARGET, missing="drop-rows").y.tolist() == [3, 9, 2]
    assert read(EMPTY, missing="drop-columns").names == ["a"]
    assert read(EMPTY, missing="drop-rows", drop=["e"]).names == ["a"]


def test_all_problems_are_told_at_once(refusal):
    text = "t,u,v,a,b,c,void,y\np,r1,x y,1,,3,,1\nq,r2,x z,2,5,,,2\np,r1,x y,4,7,6,,x\nq,r2,x z,4,7,6,,\n"
    says = refusal(text, most=900)
    assert says.startswith("The table has 4 problems: (1) The target 'y' holds text (row 3: 'x'); expected")
    assert "(2) 3 columns of the table hold text: 't', 'u', 'v' (row 1: 'p'); expected numbers: " in says
    assert "(3) 1 column of the table without any value: 'void'; expected" in says
    assert "(4) 2 values missing or infinite in 'b', 'c'; expected numbers: --missing drop-rows (keeps 2 of 4" in says
    says = refusal(text.replace("x\nq", "3\nq"), drop_text=True, drop=["void"], most=900)
    assert says.startswith(
        "The table has 2 problems: (1) The target 'y' is missing or infinite in 1 row ('4'); expected"
    )


def test_hash_is_of_the_contents(read, tmp_path):
    one = read(GOOD)
    assert len(one.hash) == 64
    assert one.hash == read(GOOD.replace(",", ";").replace("2", "2.0")).hash
    (tmp_path / "other.csv").write_text(GOOD)
    assert one.hash == read_table(tmp_path / "other.csv", "y").hash
    changed = [GOOD.replace("4,5", "4,6"), GOOD.replace("a,", "c,"), GOOD.replace("7\n", "8\n"), GOOD + "1,1,1\n"]
    assert len({one.hash, *(read(text).hash for text in changed)}) == 5
    assert read("a,b,c,y\n1,2,3,4\n5,6,7,8\n").hash != read("ab,,c,y\n1,2,3,4\n5,6,7,8\n").hash


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        (pd.Series([1, None, 3], dtype="Int64"), [1, np.nan, 3]),
        (pd.Series([1.5, None], dtype="Float32"), [1.5, np.nan]),
        (pd.Series([True, None, False], dtype="boolean"), [1, np.nan, 0]),
        (pd.Series([True, None, False], dtype=object), [1, np.nan, 0]),
        (pd.Series([Decimal("1.5"), None], dtype=object), [1.5, np.nan]),
        (pd.Series([2**70, 1], dtype=object), [2.0**70, 1]),
        (pd.Series([1.5, 2.5, 1.5], dtype="category"), [1.5, 2.5, 1.5]),
        (pd.Series([None, None], dtype=object), [np.nan, np.nan]),
        (pd.Series(["1", "2"]), None),
        (pd.Series(["a", "b"], dtype="category"), None),
        (pd.Series([True, 2], dtype=object), None),
        (pd.Series([1 + 2j, 2]), None),
        (pd.Series([[1], [2]]), None),
        (pd.Series(np.array([1, 2], "M8[s]")), None),
        (pd.Series(np.array([1, 2], "m8[s]")), None),
        (pd.Series(np.array([1, 2], "M8[s]")).dt.tz_localize("UTC"), None),
    ],
)
def test_kinds_of_columns(values, numbers):
    found = as_numbers(values)
    if numbers is None:
        assert found is None
        call = lambda: as_candidates(Raw(pd.DataFrame({0: values}), ["a"]), [0], drop_text=False)  # noqa: E731
        assert "--drop-text" in sentence_of(TableError, call)
    else:
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, numbers)


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["1,5", "2,25", "-3,0e5"], "decimal commas"),
        (["1,5", "2"], "decimal commas"),
        (["1,5", "x"], "text"),
        (["1,234.5"], "commas in numbers"),
        (["1,234", "12,345,678"], "commas in numbers"),
        (["0,234", "1,234"], "decimal commas"),
        (["2020-01-02", "2020-01-03T10:00:00Z"], "dates"),
        (["31.12.2020"], "dates"),
        (["12/31/20 10:15"], "dates"),
        (["1.2.3"], "text"),
        (["2020-01-02", "no"], "text"),
    ],
)
def test_words_for_what_a_column_holds(words, kind):
    assert describe(pd.Series([*words, None])) == kind


def test_blocks_of_columns_keep_their_order():
    values = np.random.default_rng(0).normal(size=(5, 200))
    frame = pd.DataFrame(values)
    frame[70] = frame[70] > 0
    at = [j for j in range(200) if j % 3]
    X, names, _, notes = as_candidates(Raw(frame, [f"x{j}" for j in range(200)]), at, drop_text=False)
    values[:, 70] = values[:, 70] > 0
    np.testing.assert_array_equal(X, values[:, at])
    assert names == [f"x{j}" for j in at]
    assert said(notes) == ["1 column of true and false, read as 1 and 0: 'x70'"]


def test_many_odd_columns_are_named_with_their_kinds(refusal):
    header = ",".join([*(f"t{j}" for j in range(30)), "day", "y"])
    rows = "".join(",".join(["x"] * 30 + ["2020-01-01", str(i)]) + "\n" for i in range(3))
    message = refusal(f"{header}\n{rows}", drop=["/t[5-9]|t../"])
    assert "6 columns are not numbers: 't0' (text, row 1: 'x'), 't1' (text), 't2' (text), 't3' (text)" in message
    assert "'t4' (text), 'day' (dates); expected" in message
    assert "'t19' and 11 more (row 1: 'x'); expected" in refusal(f"{header}\n{rows}", most=900)


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("who,a,y\nann,1,2\nann,2,4\nbob,5,6\n", "who"),
        ("a,y,who\n1,2,ann\n2,4,bob\n5,6,cid\n", "who"),
        ("a,y,when\n1,2,2020-01-01\n2,4,2020-01-02\n5,6,2020-01-03\n", "when"),
    ],
)
def test_a_column_of_names_may_be_the_index(refusal, read, text, column):
    fix = f"take it as row names with --index '{column}', or leave it out with --drop-text, or encode it."
    assert refusal(text).endswith(fix)
    assert read(text, index=column).names == ["a"]


def test_the_index_is_not_suggested_in_vain(refusal):
    assert "--index" not in refusal("a,y,who\n1,2,ann\n2,4,ann\n5,6,cid\n")
    assert "--index" not in refusal("who,id,a,y\nann,7,1,2\nbob,8,2,4\n", index="id")
    assert "--index" not in refusal(",who,a,y\nr,ann,1,2\ns,bob,2,4\n")
    assert "--index" not in refusal(GOOD.replace("7,9", "x7,9"))  # a slip among numbers


def test_a_target_of_two_values_is_noted(read):
    text = "a,y\n1,0\n2,1\n5,1\n7,0\n"
    note = read(text).notes[0]
    assert (note.what, note.names) == ("target", ("y",))
    assert str(note).startswith(
        "the target 'y' has two values only, 0 and 1; it is treated as a number, so predictions "
    )
    assert "-1 and 2.5" in said(read(text.replace(",0", ",-1").replace(",1\n", ",2.5\n")).notes)[0]
    assert read(text.replace("7,0", "7,2")).notes == []
    assert read("a,y\n1,0\n2,1\n").notes == []  # two rows can have no more
    assert len(read(text.replace("7,0", ",3"), missing="drop-rows").notes) == 1


def test_a_slip_among_numbers_is_named_and_drops_no_column_unsaid(read, refusal):
    slip = GOOD.replace("7,9,9", "7,<0.1,9")
    assert "holds text: 'b' (row 3: '<0.1'); expected numbers: correct such values or leave them empty" in refusal(slip)
    table = read(slip, drop_text=True)
    assert table.names == ["a"]
    assert said(table.dropped) == ["1 column of numbers with text dropped: 'b' (row 3: '<0.1')"]


UNITS = (
    "the row below the header holds units or other words ('mg/L', '°C') and no numbers; it was left out, and rows "
    "count from the next"
)


@pytest.mark.parametrize(("units", "left_out"), [
    ("mg/L,°C,", True), ("mg/L,°C,NA", True), ("mg/L,2,mm", False), ("<0.1,<2,", False), ("mg/L,<2,", False),
], ids=["empty", "missing", "number", "limits", "limit"])  # fmt: skip
def test_a_row_of_units_is_left_out_and_said(read, refusal, units, left_out):
    head, *rows = GOOD.splitlines()
    text = "\n".join([head, units, *rows]) + "\n"
    if not left_out:
        assert "row 1: " in refusal(text, most=600)
        return
    table = read(text)
    assert (table.row_names, said(table.notes)) == (["1", "2", "3", "4"], [UNITS])
    np.testing.assert_array_equal(table.X, read(GOOD).X)
    np.testing.assert_array_equal(read(text.replace(",", "\t")).X, read(GOOD).X)


def test_kept_gaps(read):
    text = "a,b,e,w,y,k\n1,,,1,3,u\n4,inf,,2,7,v\n7,9,,,9,u\n1,1,,4,2,\n3,2,,5,,v\n6,8,,6,1,v\n"
    table = read(text, missing="keep", used=["w"], categories=["k"])
    assert table.names == ["a", "b", "w", "k=u"]
    np.testing.assert_array_equal(table.X[:, 1], [np.nan, np.nan, 1, 8])
    np.testing.assert_array_equal(table.X[:, 3:], [[1], [0], [0], [0]])  # no category: the most frequent one
    assert table.row_names == ["1", "2", "4", "6"]
    assert said(table.dropped) == [
        "1 column without any value dropped: 'e'",
        "1 row without a target dropped: '5'",
        "1 row without a weight, an event or another target dropped: '3'",
    ]
    assert said(table.notes)[0].endswith("; 1 row without one counts as 'v'")


def test_kept_gaps_leave_something(refusal):
    assert "--impute leaves 1 row" in refusal("a,y\n1,3\n2,\n3,\n", missing="keep")
    assert "no column with a value" in refusal("a,y\n,3\n,4\n5,\n", missing="keep")


def test_kept_gaps_of_arrays(tmp_path):
    X = np.array([[1.0, np.nan], [np.inf, 2.0], [3.0, 4.0], [5.0, 6.0]])
    np.savez(tmp_path / "t.npz", X=X, y=[1.0, 2.0, np.nan, 4.0])
    table = read_table(tmp_path / "t.npz", missing="keep")
    np.testing.assert_array_equal(table.X, [[1, np.nan], [np.nan, 2], [5, 6]])
