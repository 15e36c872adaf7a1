"""Target, row names, what to keep and what to drop, by name or by regular expression."""

import pytest

from _errors import sentence_of
from pairflip.tables import TableError, read_table
from pairflip.tables.columns import ChosenColumns, select, visible_names
from pairflip.tables.new_rows import read_new_rows

NAMES = ["id", "gene_1", "gene_2", "age", "Weight ", "y"]


def refusal(*arguments, names=NAMES, **options):
    return sentence_of(TableError, lambda: select(names, *arguments, **options))


def test_roles():
    assert select(NAMES, "y") == ChosenColumns(5, None, [0, 1, 2, 3, 4], [])
    assert select(NAMES, "y", index="id") == ChosenColumns(5, 0, [1, 2, 3, 4], [])
    assert select(NAMES, "Weight").target == 4  # spaces around a name may be left out


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({"keep": ["age"]}, ["age"]),
        ({"drop": ["age"], "index": "id"}, ["gene_1", "gene_2", "Weight "]),
        ({"keep": ["/^gene_/"]}, ["gene_1", "gene_2"]),
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
    assert [NAMES[j] for j in select(NAMES, "y", **options).candidates] == left


def test_what_was_left_out_is_said():
    selection = select(NAMES, "y", keep=["/_/", "age"], drop=["age"])
    assert [str(each) for each in selection.dropped] == [
        "2 columns not among those to keep (--keep): 'id', 'Weight '",
        "1 column left out as asked (--drop): 'age'",
    ]
    assert [each.count for each in selection.dropped] == [2, 1]


SPACED, LONG = [" a", "a ", "y"], [letter * 300 for letter in "abcdefgh"]


@pytest.mark.parametrize(
    ("target", "options", "says"),
    [
        (None, {}, "--target 'y': the table has 6 columns, 'id', 'gene_1', 'gene_2' and 3 more."),
        ("Y", {}, "perhaps 'y'."),
        ("gene1", {}, "perhaps 'gene_1' or 'gene_2'."),
        ("y", {"index": "y"}, "both 'y'"),
        ("y", {"index": "idd"}, "perhaps 'id'."),
        ("y", {"drop": ["agee"]}, "--drop 'agee' is not a column of the table; expected one of its columns: perh"),
        ("y", {"keep": ["/E/"]}, "matches no column"),
        ("y", {"drop": ["/(/"]}, "is not a regular expression (missing ), unterminated subpattern)"),
        ("y", {"drop": ["y"]}, "--drop names the target"),
        ("y", {"drop": ["/./"]}, "--keep and --drop leave no column"),
        ("y", {"keep": ["a,c"], "names": ["a", "b", "a,b", "y"]}, "--keep 'c' is not a column"),
        ("y", {"drop": ["a,y"], "names": ["a", "b", "a,b", "y"]}, "--drop names the target 'y'"),
        ("b", {"names": SPACED}, "is not a column"),
        ("a", {"names": SPACED}, "perhaps"),
        ("y", {"names": ["y"]}, "no other column"),
        ("y", {"names": ["1.5", "2", "-3e5"]}, "add a row of names"),
        *((target, {"names": LONG}, "expected") for target in (None, "z", "a" * 299)),
    ],
)
def test_refused(target, options, says):
    assert says in refusal(target, **options)


@pytest.mark.parametrize(
    ("names", "keep", "candidates"),
    [
        (["a", "b", "a,b", "y"], "a,b", [2]),  # a comma may belong to a name
        (["a", "b", "a,b", "y"], "b,a", [0, 1]),
        (["/a/", "a", "y"], "/a/", [0]),  # a name goes before an expression
    ],
)
def test_names_like_lists_and_expressions(names, keep, candidates):
    assert select(names, "y", keep=[keep]).candidates == candidates


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


@pytest.mark.parametrize(
    "text",
    [
        "a,b,y\n1,2,0\n2,4,3\n3,4,5\n",  # too few rows
        "a,b,y\n1,2,0\n2,4,3\n3,4,5\n4,9,1\n6,9,2\n",  # a gap
        "a,y\n" + "\n".join(f"{n},{n % 3}" for n in range(9)),  # the only column
    ],
)
def test_other_numbers_are_no_names(write, text):
    table = read_table(write(text), "y")
    assert (table.names[0], table.notes) == ("a", [])
