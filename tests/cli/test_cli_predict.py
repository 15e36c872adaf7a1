"""`pairflip predict`: new rows from a result folder alone, whatever the new table looks like."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_array, save_npz

from _cli import assert_refused, invoke, plain, planted, tree, without_figures, write_csv
from conftest import ROOT
from pairflip import SizeCurve

NAMES = list("abcdef")
OUTSIDE = "outside_training_range"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with a result: y = 2 a - d, rows called r0 to r23."""
    folder = tmp_path_factory.mktemp("predict")
    y, X = planted()
    rows = [[f"r{i}", *line] for i, line in enumerate(np.column_stack([y, X]).tolist())]
    write_csv(folder / "t.csv", ["id", "y", *NAMES], rows)
    with pytest.MonkeyPatch.context() as patch:
        without_figures(patch)
        done = invoke(
            "select", folder / "t.csv", "-t", "y", "--index", "id", "--sizes", "1-3", "--effort", "quick",
            "--cv", "2x10", "--stability", "1", "--predict-with", "subset", "--out", folder / "result", "--quiet",
        )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    (folder / "t.csv").unlink()  # the training table is not needed
    return folder


def new_rows(folder, name="new.csv", columns=("id", "y", *NAMES), **changes):
    y, X = planted(rows=5, seed=3)
    frame = pd.DataFrame(X, columns=NAMES).assign(y=y, id=[f"n{i}" for i in range(5)])
    frame = frame.assign(**changes)
    frame[[*columns, *(key for key in changes if key not in columns)]].to_csv(folder / name, index=False)
    return folder / name


def predicted(*arguments):
    done = invoke("predict", *arguments)
    assert done.exit_code == 0, done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout))), plain(done.stderr)


def numbers(lines, column="prediction"):
    return [float(line[column]) for line in lines]


def test_points_and_intervals_are_those_of_the_curve(home):
    lines, remarks = predicted(home / "result", new_rows(home))
    told = SizeCurve.load(home / "result" / "result.json").predict(planted(rows=5, seed=3)[1], interval=0.9)
    assert [line["row"] for line in lines] == [f"n{i}" for i in range(5)]
    for column in ("prediction", "lower", "upper"):
        np.testing.assert_allclose(numbers(lines, column), getattr(told, column), rtol=1e-12)
    assert "5 rows predicted with 2 columns, 'a', 'd'; the intervals are made to cover 90 % of new rows." in remarks
    assert "compared with 'y' in 5 rows: RMSE " in remarks
    assert "are inside their intervals." in remarks
    assert predicted(home / "result" / "result.json", home / "new.csv") == (lines, remarks)
    (home / "p.toml").write_text('result = "result"\ndata = "new.csv"\ninterval = 0.8\nsize = 1\n')
    typed = invoke("predict", home / "result", home / "new.csv", "--interval", "0.8", "--size", "1")
    assert invoke("predict", "--config", home / "p.toml").stdout == typed.stdout


def test_arguments_the_other_way_round_are_named(home):
    new_rows(home)
    before = tree(home)
    result, table = home / "result", home / "new.csv"
    swapped = invoke("predict", table, result)
    assert_refused(swapped, "is a result and was given as the table; expected the result first: pairflip predict ")
    assert f"pairflip predict {result} {table}." in swapped.stderr
    assert_refused(invoke("predict", result, result / "result.json"), "given as the table; expected a table of new")
    for words in (("predict", table, table), ("report", table)):
        assert_refused(invoke(*words), "new.csv' is a table; expected a result folder of pairflip select.")
    assert tree(home) == before


def test_the_rows_that_the_result_was_made_from_are_recognized(home):
    says = "the result was made from these very rows, so these errors are too low for new rows."
    y, X = planted()
    table = pd.DataFrame(X, columns=NAMES).assign(y=y)
    table[::-1].to_csv(home / "again.csv", index=False)
    table[1:].to_csv(home / "most.csv", index=False)
    table.assign(a=table["a"] + 0.01).to_csv(home / "moved.csv", index=False)
    assert says in predicted(home / "result", home / "again.csv")[1]
    assert says in predicted(home / "result", home / "again.csv", "--size", "0")[1]
    pd.concat([table, table[:3] + 0.5]).to_csv(home / "more.csv", index=False)
    assert says.replace("these very", "24 of these") in predicted(home / "result", home / "more.csv")[1]
    for name in ("most.csv", "moved.csv"):
        assert says not in predicted(home / "result", home / name)[1]


def test_predictions_as_parquet(home, tmp_path):
    pytest.importorskip("pyarrow")
    done = invoke(
        "predict", home / "result", new_rows(home, a=[1.0, None, 2.0, 3.0, 4.0]), "--out", tmp_path / "p.parquet"
    )
    assert done.exit_code == 0, done.stderr
    frame = pd.read_parquet(tmp_path / "p.parquet")
    lines, _ = predicted(home / "result", home / "new.csv")
    assert list(frame) == list(lines[0])
    assert frame["row"].tolist() == [line["row"] for line in lines]
    np.testing.assert_array_equal(frame["prediction"], [float(line["prediction"] or "nan") for line in lines])
    assert frame["prediction"].isna().tolist() == [False, True, False, False, False]


@pytest.mark.parametrize(("noise", "words"), [(3.0, "less"), (0.0, "more"), (None, "")])
def test_intervals_that_cover_another_share_than_asked_for_are_remarked_on(home, noise, words):
    y, X = planted(rows=150, seed=4)
    y = y if noise is None else 2.0 * X[:, 0] - X[:, 3] + noise * np.random.default_rng(0).normal(size=150)
    write_csv(home / "many.csv", ["y", *NAMES], np.column_stack([y, X]).tolist())
    remarks = predicted(home / "result", home / "many.csv", "--interval", "0.8")[1]
    assert (f"inside is {words} than the 80 % asked for, by more than chance (p = " in remarks) == bool(words)
    assert ("belong together (select with --groups)" in remarks) == (words == "less")


WRONG = ("text", None, True, -5, 10**30, 0.5, [], {"a": 1}, [[1], "a"], float("nan"))


def places(value, at=()):
    """Where the parts of a record are; of a list, the first one."""
    yield at
    for key, part in value.items() if isinstance(value, dict) else enumerate(value[:1] if at else ()):
        if isinstance(part, (dict, list)):
            yield from places(part, (*at, key))
        else:
            yield (*at, key)


def test_no_damaged_result_is_a_bug(home, tmp_path):
    """Each part of another kind, and each list too short."""
    table, file = new_rows(home), tmp_path / "result.json"
    whole = json.loads((home / "result" / "result.json").read_text())
    unread = ("verdict", "stability_shown", "command", "run", "settings")
    text, outcomes = json.dumps(whole), []
    for number, (*before, last) in enumerate([at for at in places(whole) if at and at[0] not in unread]):
        for shorter in (False, True):
            record = part = json.loads(text)
            for key in before:
                part = part[key]
            if shorter and not isinstance(part[last], list):
                continue
            part[last] = part[last][:-1] if shorter else WRONG[number % len(WRONG)]
            file.write_text(json.dumps(record))
            try:
                SizeCurve.load(file)
            except ValueError:
                outcomes.append("refused")
            else:
                done = invoke("predict", file, table)
                assert done.exit_code in (0, 2), (before, last, shorter, done.stderr, done.exception)
                outcomes.append(done.exit_code)
    assert min(map(outcomes.count, ("refused", 0, 2))) > 0
    assert outcomes.count("refused") > 100
    file.write_text(json.dumps({**whole, "n_rows": 10**30}))
    refused = invoke("predict", file, table)
    assert_refused(refused, "is not a complete size curve (training_ranges leverages: expected length 10")


def test_extra_and_reordered_columns_are_found_by_name_and_reported(home):
    plain_lines, quiet = predicted(home / "result", new_rows(home))
    assert "order" not in quiet
    assert "ignored" not in quiet
    odd = new_rows(home, "odd.csv", columns=[*NAMES[::-1], "id"], note="text", day=7)
    lines, remarks = predicted(home / "result", odd)
    assert lines == plain_lines
    assert "2 columns that the result was not chosen from, ignored: 'note', 'day'." in remarks
    assert "the columns stand in another order than in the table of the result; they were found by name." in remarks
    assert "compared" not in remarks
    assert predicted(home / "result", odd, "--quiet")[1] == ""


def test_columns_that_only_folds_chose_are_needed_for_intervals(home):
    few = new_rows(home, "few.csv", columns=["a", "d"])
    args = home / "result", few, "--size", "3"
    curve = SizeCurve.load(home / "result" / "result.json")
    model = set(curve.columns(3))
    assert not {curve.names[j] for j in np.unique(curve.fold_supports[3])} <= model
    some = new_rows(home, "some.csv", columns=sorted(model))
    lines, remarks = predicted(home / "result", some, "--size", "3")
    assert list(lines[0]) == ["row", "prediction", "outside_training_range"]
    assert "there are no intervals: intervals also need " in remarks
    refused = invoke("predict", home / "result", some, "--size", "3", "--interval", "0.8")
    assert_refused(refused, "--interval is 0.8, but intervals also need", "give --no-interval")
    assert_refused(invoke("predict", *args), "'few.csv' lacks 1 column that the model needs")


def test_missing_values_leave_a_prediction_empty_and_say_so(home):
    hole = new_rows(home, "hole.csv", a=["1", "", "NA", "inf", "2"])
    lines, remarks = predicted(home / "result", hole)
    assert [line["prediction"] == "" for line in lines] == [False, True, True, True, False]
    assert [line["upper"] == "" for line in lines] == [False, True, True, True, False]
    assert "nan" not in invoke("predict", home / "result", hole).stdout.lower()
    assert "2 rows predicted" in remarks
    assert "3 rows without prediction, since values are missing in columns that it needs: 'n1', 'n2', 'n3'." in remarks
    assert "compared with 'y' in 2 rows" in remarks
    record = json.loads(invoke("predict", home / "result", hole, "--json").stdout)
    assert record["rows"][1] == {"row": "n1", "prediction": None, "lower": None, "upper": None} | {OUTSIDE: None}


def test_rows_outside_the_range_of_the_training_rows_are_marked_and_named(home):
    near = {"a": ["1", "1", "0", "-1", "0"], "d": [0.5] * 5}
    lines, remarks = predicted(home / "result", new_rows(home, **near))
    assert [line[OUTSIDE] for line in lines] == ["false"] * 5
    assert "outside" not in remarks
    far = new_rows(home, "far.csv", **{**near, "a": ["1", "50", "", "-1", "0"]})
    lines, remarks = predicted(home / "result", far)
    assert [line[OUTSIDE] for line in lines] == ["false", "true", "", "false", "false"]
    assert "1 of 5 rows lies outside the range of the training rows (leverage above 1.5 times the largest" in remarks
    assert "its prediction is an extrapolation ('n1')." in remarks


def test_json_and_names_of_rows(home):
    odd = ['say "a, b"', "two\nlines", "007", "", "é"]
    lines, _ = predicted(home / "result", new_rows(home, "odd.csv", id=odd))
    assert [line["row"] for line in lines] == odd
    done = invoke("predict", home / "result", new_rows(home), "--json", "--interval", "0.8")
    record = json.loads(done.stdout)
    assert (record["size"], record["columns"], record["interval"], record["target"]) == (2, ["a", "d"], 0.8, "y")
    assert record["comparison"]["n_rows"] == 5
    assert len(record["rows"]) == 5
    assert set(record["rows"][0]) == {"row", "prediction", "lower", "upper", OUTSIDE}
    assert [f"pairflip: {text}" for text in record["remarks"]] == plain(done.stderr).splitlines()


@pytest.mark.parametrize(("name", "mark"), [("p.csv", ","), ("p.tsv", "\t")])
def test_a_file_is_written_whole_and_never_over_another(home, tmp_path, monkeypatch, name, mark):
    table = new_rows(home)
    monkeypatch.chdir(tmp_path)
    done = invoke("predict", home / "result", table, "--out", name)
    assert done.stdout == f"Predictions: {name}\n"
    shown = invoke("predict", home / "result", table).stdout
    assert (tmp_path / name).read_text() == shown.replace(",", mark)
    assert_refused(invoke("predict", home / "result", table, "--out", name), "exists; add --force")
    assert invoke("predict", home / "result", table, "--out", name, "--force").exit_code == 0
    assert tree(tmp_path) == [name]


def test_inputs_are_never_written_over(home):
    table, result = new_rows(home), home / "result"
    before, file = table.read_bytes(), result / "result.json"
    for saved, out, words in [
        (result, table, "is the table itself"),
        (result, result / "predictions.csv", "is in the result folder"),
        (file, file, "is the saved result itself"),
    ]:
        for force in ((), ("--force",)):
            assert_refused(invoke("predict", saved, table, "--out", out, *force), words)
    assert table.read_bytes() == before


LACKS = "'x.csv' lacks 1 column that the model needs, 'd'; expected all 2:"
HOLDS = "The column 'a', which the model needs, holds"
BAD_TABLES = [
    ({"columns": ["a", "b"], "d2": 0.0}, (), LACKS),
    ({"a": ["1", "2", "low", "4", "5"]}, (), f"{HOLDS} text (row 3: 'low'); expected numbers: correct these values"),
    ({"a": ["1,5"] * 5}, (), f"{HOLDS} decimal commas (row 1: '1,5'); expected numbers: read the table"),
    ({}, ("--index", "nope"), "--index 'nope' is not a column of the table"),
    ({}, ("--out", "p.txt"), "--out 'p.txt' has the suffix .txt; expected a .csv, .tsv or"),
    ({}, ("--interval", "90"), "--interval is 90.0; expected the fraction to cover"),
    ({}, ("--interval", "0.99"), "--interval is 0.99, but 24 held-out rows"),
    ({}, ("--interval", "many"), "--interval is 'many'; expected a number."),
    ({}, ("--size", "8"), "size is 8; expected one of 0, 1, 2, 3."),
    ({}, ("--interval", "0.9", "--no-interval"), "expected one or the other"),
]


@pytest.mark.parametrize(("changes", "options", "words"), BAD_TABLES)
def test_refused_tables_and_options(home, changes, options, words):
    assert_refused(invoke("predict", home / "result", new_rows(home, "x.csv", **changes), *options), words)


def test_refused_results(home, tmp_path):
    table, result = new_rows(home), home / "result"
    for arguments, words in [
        ((result, home / "no.csv"), "does not exist; expected the file of a table"),
        ((), "no result was named"),
        ((result,), "no table of new rows was named"),
        ((tmp_path, table), "holds no result.json; expected a result folder"),
        ((table, table), "is a table; expected a result folder of pairflip select"),
        ((tmp_path / "no", table), "cannot be read"),
    ]:
        assert_refused(invoke("predict", *arguments), words)


def test_one_row_and_a_target_of_text(home):
    table = new_rows(home, "one.csv", y="good")
    lines, remarks = predicted(home / "result", table)
    assert len(lines) == 5
    assert "the target 'y' of the table does not hold numbers, so predictions are not compared with it." in remarks
    pd.read_csv(table).head(1).to_csv(table, index=False)
    assert len(predicted(home / "result", table)[0]) == 1


def test_older_results_give_points_and_say_what_is_missing(home):
    """result.json of version 0.2, without the fits of the folds."""
    record = json.loads((ROOT / "tests" / "golden" / "result-2.json").read_text())
    old = home / "old.json"
    old.write_text(json.dumps(record | {"fold_fits": None, "training_ranges": None}))
    names = SizeCurve.load(old).names
    table = write_csv(home / "old.csv", names, np.ones((2, len(names))).tolist())
    lines, remarks = predicted(old, table)
    assert list(lines[0]) == ["row", "prediction"]
    assert "there are no intervals: the result was saved by an older version and lacks the fits of its folds" in remarks
    assert_refused(invoke("predict", old, table, "--interval", "0.9"), "lacks the fits of its folds", "select again")


def test_where_nothing_predicts_the_remark_says_so(home, monkeypatch):
    without_figures(monkeypatch)
    rng = np.random.default_rng(8)
    table = write_csv(home / "noise.csv", ["y", *NAMES], rng.normal(size=(24, 7)).tolist())
    done = invoke("select", table, "-t", "y", "--sizes", "1", "--cv", "4", "--out", home / "noise", "--quiet")
    assert "No set of columns predicts the target better" in done.stdout
    lines, remarks = predicted(home / "noise", table)
    assert len({line["prediction"] for line in lines}) == 1
    assert "every row gets the same number, since nothing in the result predicts better (--size K" in remarks
    assert "without columns: every row gets the same number;" in predicted(home / "noise", table, "--size", "0")[1]


def test_numpy_arrays_are_found_by_their_numbers(home, tmp_path, monkeypatch):
    without_figures(monkeypatch)
    y, X = planted(columns=1001, rows=30)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    np.savez(tmp_path / "wide.npz", X=X, y=y)
    done = invoke(
        "select", tmp_path / "X.npy", "-t", tmp_path / "y.npy", "--sizes", "2", "--cv", "5", "--effort", "quick",
        "--stability", "0", "--out", tmp_path / "r", "-q",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    lines, _ = predicted(tmp_path / "r", tmp_path / "X.npy")
    curve = SizeCurve.load(tmp_path / "r" / "result.json")
    np.testing.assert_allclose(numbers(lines), curve.predict(X), rtol=1e-12)
    wide, remarks = predicted(tmp_path / "r", tmp_path / "wide.npz")
    assert wide == lines
    assert "compared with 'y' in 30 rows" in remarks
    save_npz(tmp_path / "sparse.npz", coo_array(X))
    assert predicted(tmp_path / "r", tmp_path / "sparse.npz")[0] == lines


def test_the_column_that_named_the_rows_names_new_ones(tmp_path, monkeypatch):
    """It need not begin with 1 there."""
    without_figures(monkeypatch)
    y, X = planted()
    rows = [[i, *line] for i, line in enumerate(np.column_stack([y, X]).tolist())]
    table = write_csv(tmp_path / "t.csv", ["sample", "y", *NAMES], rows)
    quick = ["--sizes", "2", "--stability", "0", "--effort", "quick", "--out", tmp_path / "out"]
    done = invoke("select", table, "-t", "y", *quick)
    assert "the first column, 'sample', numbers the rows and was taken as their names" in plain(done.stderr)
    record = json.loads((tmp_path / "out" / "result.json").read_text())
    assert (record["names"], record["table"]["index"]) == (NAMES, "sample")
    some = write_csv(tmp_path / "new.csv", ["sample", *NAMES], [[row[0], *row[2:]] for row in rows[7:10]])
    lines, remarks = predicted(tmp_path / "out", some)
    assert [line["row"] for line in lines] == ["7", "8", "9"]
    assert "ignored" not in remarks


def test_by_the_average(home):
    lines, remarks = predicted(home / "result", new_rows(home), "--predict-with", "average")
    curve, rows = SizeCurve.load(home / "result" / "result.json"), planted(rows=5, seed=3)[1]
    told = curve.predict(rows, interval=0.9, predict_with="average")
    for column in ("prediction", "lower", "upper"):
        np.testing.assert_allclose(numbers(lines, column), getattr(told, column), rtol=1e-12)
    assert f"predicted by the weighted average of models with {curve.average.columns.size} columns" in remarks
    done = invoke("predict", home / "result", new_rows(home), "--predict-with", "average", "--size", "2")
    assert_refused(done, "size is 2 and predict_with is 'average'")


def test_a_table_of_the_recommended_columns_is_predicted_by_these(home, tmp_path):
    record = json.loads((home / "result" / "result.json").read_text())
    record["settings"]["predict_with"] = "average"  # as the answer of many tables
    (tmp_path / "result.json").write_text(json.dumps(record))
    few = new_rows(home, "few.csv", columns=("a", "d"))
    lines, remarks = predicted(tmp_path / "result.json", few)
    assert "few.csv lacks columns of the average: the recommended columns predict in its place." in remarks
    assert lines == predicted(home / "result", few)[0]
    curve, frame = SizeCurve.load(tmp_path / "result.json"), pd.read_csv(few)
    assert curve.answer.predictor == "average"
    with pytest.warns(UserWarning, match="X lacks columns of the average: the recommended columns predict"):
        np.testing.assert_allclose(curve.predict(frame), numbers(lines))
    asked = ("predict", tmp_path / "result.json", few, "--predict-with", "average")
    assert_refused(invoke(*asked), "that the model needs, ")
