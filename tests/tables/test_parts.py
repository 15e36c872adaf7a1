"""Tables in several files or too large for memory: what is read of them, and what is refused."""

import json

import numpy as np
import pandas as pd
import pytest

from _cli import invoke, without_figures
from pairflip.tables import TableError, parts, read_table
from pairflip.tables.files import named_files

pytest.importorskip("pyarrow")
KINDS = ("parquet", "csv", "tsv", "feather", "csv.gz")


def frame(seed, n_rows=120):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4)).astype(np.float32) + 3
    table = pd.DataFrame(X, columns=list("abcd"))
    table["colour"] = rng.choice(["red", "green", "blue"], n_rows)
    table["flag"] = rng.random(n_rows) < 0.5
    table["y"] = 2.0 * table["a"] - table["c"] + (table["colour"] == "red") + 0.1 * rng.normal(size=n_rows)
    return table


def write_parts(folder, kind, n=3, change=None):
    for i in range(n):
        table, path = frame(i), folder / f"part-{i}.{kind}"
        table = table if change is None else change(i, table)
        if kind == "parquet":
            table.to_parquet(path, row_group_size=50)
        elif kind == "feather":
            table.to_feather(path)
        else:
            table.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    return folder / f"part-*.{kind}"


@pytest.mark.parametrize("kind", KINDS)
def test_small_parts_are_one_table(tmp_path, kind):
    pattern = write_parts(tmp_path, kind)
    table = read_table(pattern, "y", categories=["colour"])
    assert table.X.shape == (360, 7)
    assert table.names == ["a", "b", "c", "d", "flag", "colour=blue", "colour=green"]
    np.testing.assert_allclose(table.X[120:240, 0], frame(1)["a"], rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_has_the_rows_of_the_table(tmp_path, kind):
    pattern = write_parts(tmp_path, kind)
    files = named_files(pattern)
    stream = parts.open_stream(files, "y", categories=["colour"])
    table = read_table(pattern, "y", categories=["colour"])
    assert stream.names == table.names
    rows = [np.column_stack(batch.columns) for batch in stream.batches()]
    np.testing.assert_allclose(np.vstack(rows), np.column_stack([table.X, table.y]), rtol=1e-6)


@pytest.fixture(autouse=True)
def undrawn_files(monkeypatch):
    without_figures(monkeypatch)
    monkeypatch.setattr("pairflip.publish.figure_bytes", lambda figure, kind: b"")


def select(data, out, *more):
    return invoke(
        "select", data, "--target", "y", "--sizes", "1-3", "--cv", "5", "--stability", "0", "--out", out, *more
    )


def test_select_of_a_stream_and_of_the_table_agree(tmp_path):
    pattern = write_parts(tmp_path, "parquet")
    told = {}
    for name, more in (("stream", ["--stream"]), ("table", [])):
        result = select(pattern, tmp_path / name, "--categories", "colour", "--quiet", *more)
        assert result.exit_code == 0, result.stderr
        told[name] = json.loads((tmp_path / name / "result.json").read_text())
    assert told["stream"]["supports"] == told["table"]["supports"]
    np.testing.assert_allclose(told["stream"]["energies"], told["table"]["energies"], rtol=1e-9)
    for ours, theirs in zip(told["stream"]["coefs"], told["table"]["coefs"], strict=True):  # of dependent columns, too
        np.testing.assert_allclose(ours, theirs, rtol=1e-7)
    assert told["stream"]["facts"]["stands_for"]["rows"] == 360
    assert "360 rows" in (tmp_path / "stream" / "report.html").read_text()
    assert not (tmp_path / "stream" / "predictions.csv").exists()
    new = tmp_path / "new.csv"
    frame(7).drop(columns="y").to_csv(new, index=False)
    predicted = [invoke("predict", tmp_path / name, new, "--out", tmp_path / f"{name}.csv") for name in told]
    assert [each.exit_code for each in predicted] == [0, 0], predicted[0].stderr
    ours, theirs = (pd.read_csv(tmp_path / f"{name}.csv") for name in told)
    np.testing.assert_allclose(ours["prediction"], theirs["prediction"], rtol=1e-6)
    published = invoke("publish", tmp_path / "stream", "--out", tmp_path / "paper")
    assert published.exit_code == 0, published.stderr
    assert "360 rows" in (tmp_path / "paper" / "methods.txt").read_text()


def test_a_folder_several_targets_weights_and_a_mapped_array(tmp_path):
    (tmp_path / "table").mkdir()
    write_parts(tmp_path / "table", "csv", change=lambda i, table: table.assign(b=table["b"] - 3))
    result = select(tmp_path / "table", tmp_path / "out", "--stream", "--drop-text", "--weights", "b")
    assert result.exit_code == 2
    assert "weights are not one finite number >= 0 for each row" in " ".join(result.stderr.split())
    result = select(tmp_path / "table", tmp_path / "out", "--stream", "--drop-text", "--weights", "flag", "--json")
    weighted = read_table(tmp_path / "table", "y", drop_text=True)
    flag = weighted.X[:, weighted.names.index("flag")]
    assert json.loads(result.stdout)["facts"]["stands_for"]["rows"] == np.count_nonzero(flag)
    both = invoke("fit", tmp_path / "table", "--target", "y,d", "-k", 2, "--stream", "--drop-text", "--json")
    assert both.exit_code == 0, both.stderr
    X = frame(0)[["a", "b", "c", "y"]].to_numpy()
    np.save(tmp_path / "x.npy", X)
    told = invoke("fit", tmp_path / "x.npy", "--target", "x3", "-k", 1, "--stream", "--json")
    assert told.exit_code == 0, told.stderr
    assert json.loads(told.stdout)["columns"] == ["x0"]


def _other_column(i, table):
    return table.rename(columns={"c": "cc"}) if i == 2 else table


def _other_order(i, table):
    return table[[*reversed(table.columns)]] if i == 2 else table


def _text(i, table):
    return table.assign(d=["oops" if r == 100 else "1.5" for r in range(len(table))]) if i == 2 else table


def _gap(i, table):
    return table.assign(d=[np.nan if r == 100 else 1.5 for r in range(len(table))]) if i == 2 else table


@pytest.mark.parametrize(("change", "words", "option"), [
    (_other_column, "'part-2.csv' lacks 'c', unlike 'part-0.csv'", "--drop-text"),
    (_other_order, "'part-2.csv' has its columns in another order", "--drop-text"),
    (_text, "'part-2.csv' cannot be read (column 'd': ", "--drop-text"),
    (_gap, "column 'd' is missing or infinite in 1 row", "--drop-text"),
    (None, "1 column of 'part-0.csv' does not hold numbers: 'colour' (text); expected numbers: leave them out", None),
    (None, "--impute cannot be used for a table that is read in batches", "--impute=median"),
    (None, "--loss cannot be used for a table that is read in batches", "--loss=poisson"),
], ids=["column", "order", "text", "gap", "categories", "impute", "loss"])  # fmt: skip
def test_what_a_stream_refuses(tmp_path, change, words, option):
    pattern = write_parts(tmp_path, "csv", change=change)
    result = select(pattern, tmp_path / "out", "--stream", *([] if option is None else [option]))
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())
    assert "oops" in result.stderr or change is not _text
    assert not (tmp_path / "out").exists()


def test_rows_with_gaps_are_left_out_and_counted(tmp_path):
    pattern = write_parts(tmp_path, "csv", change=_gap)
    result = select(pattern, tmp_path / "out", "--stream", "--drop-text", "--missing", "drop-rows", "--full")
    assert result.exit_code == 0, result.stderr
    assert "1 row with missing values was left out: 'd' (1)" in " ".join(result.stdout.split())


def test_a_damaged_file_and_patterns_without_files(tmp_path):
    pattern = write_parts(tmp_path, "parquet")
    whole = (tmp_path / "part-1.parquet").read_bytes()
    (tmp_path / "part-1.parquet").write_bytes(whole[: len(whole) // 2])
    for option in ("--stream", "--no-stream"):
        result = select(pattern, tmp_path / "out", "--drop-text", option)
        assert result.exit_code == 2
        assert "'part-1.parquet'" in result.stderr
    with pytest.raises(TableError, match="no file matches"):
        named_files(tmp_path / "other-*.parquet")
    (tmp_path / "empty").mkdir()
    with pytest.raises(TableError, match=r"folder with no \.parquet"):
        named_files(tmp_path / "empty")


def test_an_empty_part_has_no_rows(tmp_path):
    pattern = write_parts(tmp_path, "parquet", change=lambda i, table: table[:0] if i == 1 else table)
    result = select(pattern, tmp_path / "out", "--stream", "--drop-text", "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["facts"]["stands_for"]["rows"] == 240


def test_only_moments_are_kept_of_tall_tables_unless_their_rows_are_needed(tmp_path, monkeypatch):
    monkeypatch.setattr("pairflip.cli.loading.TALL", 350)
    monkeypatch.setattr("pairflip.cli.loading.TALL_PER_COLUMN", 60)
    drifting = frame(0, 400).assign(row=np.arange(400)).drop(columns="colour")
    drifting["y"] += 5.0 * np.sin(np.arange(400) / 20.0)
    drifting[["row", *"abcd", "flag", "y"]].to_csv(tmp_path / "tall.csv", index=False)
    told = select(tmp_path / "tall.csv", tmp_path / "out", "--weights", "flag")
    assert told.exit_code == 0, told.stderr
    assert "400 rows are summed up in random blocks, since the table has far more rows than columns (--no-stream" in (
        " ".join(told.stderr.split())
    )
    weighted = f"{int(drifting['flag'].sum())} rows were read once and kept as moments of "
    assert weighted in " ".join(told.stdout.split())
    record = json.loads((tmp_path / "out" / "result.json").read_text())
    assert record["names"] == ["a", "b", "c", "d"]  # the column that numbers the rows is none, as in any table
    assert record["facts"]["autocorrelation"] > 0.5  # which only rows in their order show
    assert "Nothing is said of single rows" in (tmp_path / "out" / "report.html").read_text()
    for more in (["--no-stream"], ["--cv", "blocks:5"], ["--groups", "flag"], ["--powers", "2"]):
        result = select(tmp_path / "tall.csv", tmp_path / "other", "--cv", "2", "--force", "--effort", "quick", *more)
        assert result.exit_code == 0, result.stderr
        assert "summed up" not in result.stderr


def test_large_tables_are_streams_unless_told_otherwise(tmp_path, monkeypatch):
    pattern = write_parts(tmp_path, "parquet")
    assert not parts.is_large(named_files(pattern))
    monkeypatch.setattr(parts, "LARGE", 1000)
    assert parts.is_large(named_files(pattern))
    told = select(pattern, tmp_path / "out", "--drop-text", "--json")
    assert "stands_for" in json.loads(told.stdout)["facts"]
    real = select(pattern, tmp_path / "other", "--drop-text", "--json", "--no-stream")
    assert "stands_for" not in json.loads(real.stdout)["facts"]
