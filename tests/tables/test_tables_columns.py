"""Target, row names, what to keep and what to drop, by name or by regular expression."""

import pytest

from _errors import sentence_of
from pairflip.tables import TableError, read_table
from pairflip.tables.columns import ChosenColumns, select, visible_names
from pairflip.tables.new_rows import read_new_rows

NAMES = ["id", "gene_1", "gene_2", "age", "Weight ", "y"]


def chosen(*arguments, **options):
    return [NAMES[j] for j in select(NAMES, *arguments, **options).candidates]


def refusal(*arguments, names=NAMES, **options):
    return sentence_of(TableError, lambda: select(names, *arguments, **options))


def test_roles():
    assert select(NAMES, "y") == ChosenColumns(5, None, [0, 1, 2, 3, 4], [])
    assert select(NAMES, "y", index="id") == ChosenColumns(5, 0, [1, 2, 3, 4], [])
    assert "both 'y'" in refusal("y", index="y")
    assert "perhaps 'id'." in refusal("y", index="idd")


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({"keep": ["age"]}, ["age"]),
        ({"drop": ["age"], "index": "id"}, ["gene_1", "gene_2", "Weight "]),
        ({"keep": ["/^gene_/"]}, ["gene_1", "gene_2"]),
        ({"keep": ["/E/"]}, []),
        ({"keep": ["/(?i)E/"]}, ["gene_1", "gene_2", "age", "Weight "]),
        ({"keep": ["/^gene_/", "age"], "drop": ["/1$/"]}, ["gene_2", "age"]),
        ({"keep": ["age", "y"]}, ["age"]),
        ({"drop": ["/y/", "id"]}, ["gene_1", "gene_2", "age", "Weight "]),
        ({"drop": ["/[a-z]_/"], "keep": ["/./"]}, ["id", "age", "Weight "]),
        ({"keep": ["Weight"]}, ["Weight "]),
        ({"keep": ["gene_1,age, Weight"]}, ["gene_1", "age", "Weight "]),
        ({"keep": ["/^gene_/,age", "id"], "drop": ["/_1/, /_2/"]}, ["id", "age"]),
        ({"keep": ["/^gene_.{1,2}$/"]}, ["gene_1", "gene_2"]),
    ],
)
def test_keep_and_drop(options, left):
    if left:
        assert chosen("y", **options) == left
    else:
        assert "matches no column" in refusal("y", **options)


def test_commas_may_belong_to_a_name():
    names = ["a", "b", "a,b", "y"]
    assert select(names, "y", keep=["a,b"]).candidates == [2]
    assert select(names, "y", keep=["b,a"]).candidates == [0, 1]
    assert "--keep 'c' is not a column" in refusal("y", keep=["a,c"], names=names)
    assert "--drop names the target 'y'" in refusal("y", drop=["a,y"], names=names)


def test_what_was_left_out_is_said():
    selection = select(NAMES, "y", keep=["/_/", "age"], drop=["age"])
    assert [str(each) for each in selection.dropped] == [
        "2 columns not among those to keep (--keep): 'id', 'Weight '",
        "1 column left out as asked (--drop): 'age'",
    ]
    assert [each.count for each in selection.dropped] == [2, 1]


def test_spaces_around_a_name_may_be_left_out():
    assert select(NAMES, "Weight").target == 4
    assert "is not a column" in refusal("b", names=[" a", "a ", "y"])
    assert "perhaps" in refusal("a", names=[" a", "a ", "y"])


@pytest.mark.parametrize(
    ("arguments", "options", "says"),
    [
        ((None,), {}, "--target 'y': the table has 6 columns, 'id', 'gene_1', 'gene_2' and 3 more."),
        (("Y",), {}, "perhaps 'y'."),
        (("gene1",), {}, "perhaps 'gene_1' or 'gene_2'."),
        (("zzzz",), {}, "it has 'id', 'gene_1', 'gene_2' and 3 more."),
        (("",), {}, "--target '' is not a column"),
        (("y",), {"drop": ["agee"]}, "--drop 'agee' is not a column of the table; expected one of its columns: perh"),
        (("y",), {"keep": ["agee"]}, "--keep 'agee'"),
        (("y",), {"keep": ["/^x/"]}, "--keep '/^x/' matches no column"),
        (("y",), {"drop": ["/(/"]}, "is not a regular expression (missing ), unterminated subpattern)"),
        (("y",), {"drop": ["y"]}, "--drop names the target"),
        (("y",), {"drop": ["/./"]}, "--keep and --drop leave no column"),
        (("y" * 300,), {}, "is not a column"),
        (("y",), {"drop": ["/" + "z" * 300 + "/"]}, "matches no column"),
    ],
)
def test_errors(arguments, options, says):
    assert says in refusal(*arguments, **options)


def test_other_names():
    assert "no other column" in refusal("y", names=["y"])
    assert "add a row of names" in refusal("y", names=["1.5", "2", "-3e5"])
    assert select(["/a/", "a", "y"], "y", keep=["/a/"]).candidates == [0]  # a name goes before an expression
    names = [letter * 300 for letter in "abcdefgh"]
    for call in (lambda: select(names, None), lambda: select(names, "z"), lambda: select(names, "a" * 299)):
        sentence_of(TableError, call)


@pytest.mark.parametrize(
    ("names", "shown", "renamed"),
    [
        (["a", "b"], ["a", "b"], 0),
        (["a", "a", "b", "a"], ["a", "a (2)", "b", "a (3)"], 2),
        (["a", "a", "a (2)"], ["a", "a (3)", "a (2)"], 1),
        (["a (2)", "a", "a", "a (2)"], ["a (2)", "a", "a (3)", "a (2) (2)"], 2),
        (["", "a", ""], ["column 1", "a", "column 3"], 0),
        (["", "column 1"], ["column 1 (2)", "column 1"], 0),
    ],
)
def test_names_that_differ(names, shown, renamed):
    found, notes = visible_names(names)
    assert found == shown
    assert len(set(found)) == len(found)
    assert sum(note.count for note in notes if "same name" in note.why) == renamed
    assert sum(note.count for note in notes if "by position" in note.why) == names.count("")


def test_a_target_must_be_one_column():
    originals = ["y", "a", "y"]
    names, _ = visible_names(originals)
    assert "2 columns of the table are called 'y'" in refusal("y", names=names, originals=originals)
    assert "--drop 'y (2)'" in refusal("y", names=names, originals=originals)
    assert select(names, "y", drop=["y (2)"], originals=originals).candidates == [1]
    assert select(names, "a", originals=originals).candidates == [0, 2]
    assert select(names, "y (2)", drop=["y"], originals=originals).target == 2


def test_many_columns_are_matched_quickly():
    names = [f"x{j}" for j in range(100_000)]
    selection = select(names, "x7", drop=["/9$/"], keep=names[:50_000], index="x8")
    assert len(selection.candidates) == 45_000 - 2
    assert "perhaps" in refusal("x1000000", names=names[:2000])


@pytest.mark.parametrize(
    ("name", "first"),
    [("Unnamed: 0", ["7", "x", "y", "z", "w"]), ("id", list("01234")), ("nr", list("12345")), ("n", ["1.0", *"2345"])],
)
def test_running_numbers_are_names_of_the_rows(tmp_path, name, first):
    path, rows = tmp_path / "t.csv", ["3,5,1", "2,9,4", "5,5,2", "8,1,0", "4,4,4"]
    path.write_text("\n".join([f"{name},a,b,y", *(f"{n},{row}" for n, row in zip(first, rows, strict=True))]))
    table = read_table(path, "y")
    assert (table.names, table.index) == (["a", "b"], name)
    assert [float(each) if "." in each else each for each in table.row_names] in (first, [1, 2, 3, 4, 5])
    says = (
        f"the first column, {name!r}, numbers the rows and was taken as their names (--keep '/./' chooses from it, too)"
    )
    assert [str(note) for note in table.notes] == [says]
    assert read_table(path, "y", index="a").names == ["b"]
    if name != "Unnamed: 0":  # which is text here
        assert read_table(path, "y", keep=["/./"]).names == [name, "a", "b"]
        assert read_table(path, "y", used=[name]).names == [name, "a", "b"]
        assert read_table(path, name).target == name
    assert read_table(path, "y", drop=[name]).row_names == list("12345")
    rows = read_new_rows(path, ["a"], known=["a", "b"], target="y")
    assert rows.row_names == table.row_names
    assert rows.notes == []
    assert read_new_rows(path, ["b"], known=["a", "b", name]).row_names == list("12345")


def test_other_numbers_are_no_names(tmp_path):
    for text in (
        "a,b,y\n1,2,0\n2,4,3\n3,4,5\n",
        "a,b,y\n1,2,0\n2,4,3\n3,4,5\n4,9,1\n6,9,2\n",
        "a,y\n" + "\n".join(f"{n},{n % 3}" for n in range(9)),
    ):  # too few rows, a gap, the only column
        (tmp_path / "t.csv").write_text(text)
        table = read_table(tmp_path / "t.csv", "y")
        assert table.names[0] == "a"
        assert table.notes == []
