"""Columns of categories: what may be one, what becomes of it, and how new rows and the command line know it again."""

import csv
import json

import numpy as np
import pytest

from _cli import assert_refused, invoke, without_figures, write_csv
from _tables import refusal
from pairflip.tables import read_table
from pairflip.tables.new_rows import read_new_rows

TABLE = "race,a,site,y\nred,1,n,3\nblue,4,s,7\nred,7,n,9\nblue,8,s,1\n green ,2,s,2\ngreen,5,n,4\n"

KEPT = "Keep 2 groups (3 columns): “a” and “race” (“race=black” and “race=blue”)."


def test_categories_become_columns_of_one_group(write):
    table = read_table(write(TABLE), "y", categories=["race"], drop=["site"])
    assert table.names == ["a", "race=green", "race=red"]
    np.testing.assert_array_equal(table.X[:, 1:], np.eye(3)[[2, 0, 2, 0, 1, 1]][:, 1:])
    np.testing.assert_array_equal(table.X[:, 0], [1, 4, 7, 8, 2, 5])
    assert table.groups == {"race": ["race=green", "race=red"]}
    assert table.categories == {"race": {"race=green": "green", "race=red": "red"}}
    assert table.references == {"race": "blue"}
    assert [str(note) for note in table.notes] == [
        "the categories of 'race' were read as 2 columns of 0 and 1 ('race=green', 'race=red'), chosen together; "
        "'blue', the most frequent, is the reference"
    ]


def test_all_columns_of_text_that_can_be(write):
    head, *rows = TABLE.splitlines()
    path = write("\n".join([f"{head},id", *(f"{row},w{i}" for i, row in enumerate(rows))]))
    both = read_table(path, "y", categories=True, drop_text=True)
    assert list(both.groups) == ["race", "site"]
    assert [str(each) for each in both.dropped] == ["1 column of text dropped: 'id'"]
    assert "1 column of the table holds text: 'id'" in refusal(path, categories=True)
    assert read_table(path, "y", categories=["race,site"], drop=["id"]).categories.keys() == {"race", "site"}
    assert read_table(path, "y", categories="/r.c/", drop=["site", "id"]).groups.keys() == {"race"}
    only = read_table(path, "y", categories=["race"], keep=["race"])
    assert only.names == only.groups["race"]


def test_numbers_may_be_categories_where_they_are_named(write):
    table = read_table(write("code,a,y\n1,2,3\n2,5,1\n10,4,4\n1,1,5\n2,3,7\n10,9,9\n"), "y", categories=["code"])
    assert table.names == ["a", "code=2", "code=10"]
    assert read_table(write("code,a,y\n1,2,3\n2,5,1\n1,1,5\n2,3,7\n"), "y", categories=True).groups == {}


FEW, HOLE = "c,y\nu,1\nu,2\nv,3\n", "c,y\nu,1\nu,2\nv,3\nv,4\n,5\n"
REFUSED = [
    ("c,y\n" + "".join(f"w{i % 21},{i % 5}\n" for i in range(63)), "c", "21 different values; expected at most 20"),
    (FEW, "c", "has 'v' in one row only; expected each category in at least 2 rows: join it with"),
    ("c,y\nu,1\nu,2\n", "c", "has 1 value; expected at least two categories."),
    (HOLE, "c", "'c' has no category in 1 row; expected one in each: --missing drop-rows"),
    (TABLE, "y", "--categories names 'y', which is not among the columns to choose from"),
    (TABLE, "rice", "--categories 'rice' is not a column of the table"),
    # the sentence about text names the option; names are those that are all different
    (TABLE, "", "read categories as 0 and 1 with --categories 'race,site', or leave them out"),
    (TABLE.replace("race", '"race, of all"'), "", "--categories 'race, of all' --categories 'site',"),
    ("who,race,y\nann,u,1\nbob,u,2\ncid,v,3\ndan,v,5\n", "", "take row names with --index 'who', read categories"),
    ("race,who,y\nu,ann,1\nu,bob,2\nv,cid,3\nv,dan,5\n", "", "take row names with --index 'who', read categories"),
]


@pytest.mark.parametrize(("text", "column", "why"), REFUSED)
def test_refused(write, text, column, why):
    assert why in refusal(write(text), categories=[column] if column else [])


def test_arrays_have_no_categories(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(12.0).reshape(4, 3))
    message = refusal(tmp_path / "x.npy", target="x0", categories=["x1"])
    assert "holds numbers only, and --categories is given" in message


def test_rows_without_a_category_are_left_out_as_asked_and_names_differ(write):
    table = read_table(write(HOLE), "y", categories=["c"], missing="drop-rows")
    assert table.X.tolist() == [[0], [0], [1], [1]]
    path = write("c,a,y\nu,1,1\nu,2,2\nv,1,3\nv,1,4\n,1,5\n")
    assert read_table(path, "y", categories=["c"], missing="drop-columns").groups == {}
    table = read_table(write("c,c=u,y\nu,1,1\nu,2,2\nv,3,3\nv,7,5\n"), "y", categories=["c"])
    assert table.names == ["c=u", "c=v"]


def test_new_rows_have_the_same_columns(write):
    known = {"race": {"race=blue": "blue", "race=red": "red"}}
    path = write("race,a\nred,1\nblue,2\npink,3\n,4\n")
    names = ["a", "race=blue", "race=red"]
    rows = read_new_rows(path, names[:2], names[2:], known=names, categories=known, references={"race": "black"})
    np.testing.assert_array_equal(rows.X, [[1, 0, 1], [2, 1, 0], [3, 0, 0], [4, np.nan, np.nan]])
    assert rows.absent == []
    assert [str(note) for note in rows.notes] == [
        "1 row with a category of 'race' that the result has not seen ('pink'): all its columns are 0 there, as for "
        "'black'"
    ]
    ready = write("race=blue,a\n1,2\n", "ready.csv")  # columns that were made before
    assert read_new_rows(ready, ["a", "race=blue"], categories=known).X.tolist() == [[2.0, 1.0]]
    numbers = write("race,a\n1,2\n2,3\n", "numbers.csv")
    coded = read_new_rows(numbers, ["race=2"], categories={"race": {"race=1": "1", "race=2": "2"}})
    assert coded.X.tolist() == [[0.0], [1.0]]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A table in which y depends on a and on the race."""
    without_figures(monkeypatch)
    rng = np.random.default_rng(1)
    race, (a, b) = rng.integers(0, 3, 40), rng.normal(size=(2, 40))
    y = a + 2.0 * (race == 1) + 0.1 * rng.normal(size=40)
    rows = [[["red", "blue", "black"][r], *line] for r, line in zip(race, np.column_stack([a, b, y]), strict=True)]
    write_csv(tmp_path / "t.csv", ["race", "a", "b", "y"], rows)
    write_csv(tmp_path / "new.csv", ["a", "race"], [[1.0, "blue"], [0.0, "red"], [0.0, "pink"]])
    return tmp_path


def test_the_command_line_chooses_them_together_and_predicts(folder):
    options = ("-t", "y", "--categories", "race", "--cv", 3, "--stability", 2, "--effort", "quick", "--jobs", 1)
    done = invoke("select", folder / "t.csv", *options, "--out", folder / "out")
    assert done.exit_code == 0, done.stderr
    assert KEPT in " ".join(done.stdout.split())
    assert "the categories of 'race' were read as 2 columns of 0 and 1" in done.stderr
    record = json.loads((folder / "out" / "result.json").read_text())
    assert record["table"]["categories"]["race"]["race=blue"] == "blue"
    assert record["table"]["references"] == {"race": "red"}
    assert record["verdict"]["groups"] == {"a": ["a"], "race": ["race=black", "race=blue"]}
    assert record["settings"]["column_groups"] == {"race": ["race=black", "race=blue"]}
    assert (folder / "out" / "selection_counts.csv").read_text().splitlines()[0].count("group") == 1
    told = invoke("predict", folder / "out", folder / "new.csv", "--json", "--quiet")
    blue, red, pink = (row["prediction"] for row in json.loads(told.stdout)["rows"])
    assert blue == pytest.approx(3.0, abs=0.2)
    assert red == pytest.approx(0.0, abs=0.2)
    assert pink == pytest.approx(0.0, abs=0.2)  # that of the reference
    fitted = invoke("fit", folder / "t.csv", "-t", "y", "--categories", "race", "-k", 2, "--quiet")
    assert fitted.stdout.startswith("The best 2 groups (a, race) for y: R^2 0.99")


def test_a_column_of_categories_may_always_be_in_the_model(folder):
    options = ("-t", "y", "--categories", "race", "--always", "race", "-k", 1, "--json", "--quiet")
    record = json.loads(invoke("fit", folder / "t.csv", *options).stdout)
    assert record["columns"] == ["a"]
    assert "groups" not in record
    values = record["always"]
    assert values["race=blue"] == pytest.approx(2.0, abs=0.1)


def test_one_row_without_a_category_does_not_become_the_reference(folder):
    """Errors of categories are those of the whole table, and the reference only shifts their coefficients."""
    lines = (folder / "t.csv").read_text().splitlines()
    gone = lines[5].partition(",")[0]
    (folder / "gap.csv").write_text("\n".join([*lines[:5], lines[5].removeprefix(gone), *lines[6:]]) + "\n")
    options = ["-t", "y", "--categories", "race", "--impute", "median", "--sizes", 2, "--cv", 3, "--stability", 0]
    options += ["--effort", "quick", "--jobs", 1]
    errors, told = [], []
    for name, more in (("usual", []), ("asked", ["--reference", "race=black"])):
        done = invoke("select", folder / "gap.csv", *options, *more, "--out", folder / name)
        assert done.exit_code == 0, done.stderr
        told.append(done.stderr)
        with open(folder / name / "coefficients.csv", newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["size"] == "2"]
        robust = {row["column"]: float(row["robust_error"]) for row in rows}
        assert all(0 < error < 0.2 for error in robust.values()), robust
        errors.append(json.loads((folder / name / "result.json").read_text())["cv_error"])
    np.testing.assert_allclose(*errors, rtol=1e-9)
    assert "; 'red', the most frequent, is the reference; 1 row without one counts as 'red'." in told[0]
    assert "('race=blue', 'race=red'), chosen together; 'black', as asked, is the reference;" in told[1]
    write_csv(folder / "empty.csv", ["a", "b", "race"], [[0.0, 1.0, ""], [0.0, 1.0, "red"]])
    predicted = invoke("predict", folder / "asked", folder / "empty.csv", "--json")
    first, second = (row["prediction"] for row in json.loads(predicted.stdout)["rows"])
    assert first == second
    assert "in the column 'race', 1 row without one counts as 'red'." in predicted.stderr


@pytest.mark.parametrize(("given", "why"), [
    (["--reference", "race=pink"], "'race=pink' is not a category; expected column=category: there are 'race=black'"),
    (["--reference", "race=red,race=blue"], "--reference names two categories of 'race'; expected one of them."),
], ids=["unknown", "two"])  # fmt: skip
def test_references_that_cannot_be(folder, given, why):
    assert_refused(invoke("fit", folder / "t.csv", "-t", "y", "-k", 1, "--categories", "race", *given), why)
