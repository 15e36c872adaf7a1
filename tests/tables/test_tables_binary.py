"""NumPy archives, Parquet, Arrow and Excel become the same table as text, or are refused in one sentence."""

import json
import sys
from contextlib import suppress

import numpy as np
import pytest
from scipy import sparse

from _cli import assert_refused, invoke
from _tables import ROWS, X, Y, assert_is_the_table, refusal
from pairflip.tables import TableError, read_table


def test_npz(tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, X=X, y=Y, names=["a", "b"])
    assert_is_the_table(read_table(path, "y"))
    assert_is_the_table(read_table(path))
    np.savez(path, X=X.astype(np.float32), y=Y[:, None].astype(int))
    assert read_table(path).names == ["x0", "x1"]
    np.savez(path, X=X, names=["a", "b"])
    assert read_table(path, "b").names == ["a"]
    assert "No target is given" in refusal(path, target=None)
    np.savez(path, X=X, y=Y, names=["y", "b"])
    assert "--drop 'y (2)'" in refusal(path, target=None)
    assert read_table(path, drop=["y (2)"]).names == ["b"]


def test_a_sparse_matrix_stays_sparse(tmp_path):
    rng = np.random.default_rng(0)
    X = sparse.random_array((30, 8), density=0.4, rng=rng)
    y = X.toarray()[:, 1] - 2 * X.toarray()[:, 6]
    sparse.save_npz(tmp_path / "t.npz", X)
    np.save(tmp_path / "y.npy", y)
    table = read_table(tmp_path / "t.npz", str(tmp_path / "y.npy"), drop=["x3"])
    assert (table.target, table.names) == ("y", ["x0", "x1", "x2", "x4", "x5", "x6", "x7"])
    assert sparse.issparse(table.X)
    np.testing.assert_array_equal(table.X.toarray(), np.delete(X.toarray(), 3, axis=1))
    np.testing.assert_array_equal(table.y, y)
    done = invoke("fit", tmp_path / "t.npz", "-t", tmp_path / "y.npy", "-k", 2, "--json", "--quiet")
    assert json.loads(done.stdout)["columns"] == ["x1", "x6"]
    weighted = json.loads(invoke("fit", tmp_path / "t.npz", "-t", "x1", "--weights", "x2", "-k", 1, "--json").stdout)
    assert weighted["columns"][0] not in ("x1", "x2")
    np.savez(tmp_path / "dense.npz", X=X.toarray())
    assert read_table(tmp_path / "dense.npz", str(tmp_path / "y.npy")).names == [f"x{j}" for j in range(8)]
    for values, says in ((np.nan, "missing or infinite values; expected finite"), (1j, "expected real numbers")):
        sparse.save_npz(tmp_path / "bad.npz", X * values)
        assert_refused(invoke("fit", tmp_path / "bad.npz", "-t", "x1", "-k", 1), says)


def test_whole_numbers_name_rows_in_full(tmp_path):
    days = 20200101.0 + np.arange(4)
    np.save(tmp_path / "X.npy", np.column_stack([days, np.arange(4) ** 2, [3, 1, 4, 1]]))
    assert read_table(tmp_path / "X.npy", "x2", index="x0").row_names == [f"{day:.0f}" for day in days]


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"Z": X}, "holds 'Z'; expected an array X"),
        ({}, "no arrays"),
        ({"X": Y}, "shape (3,)"),
        ({"X": X, "y": Y[:2]}, "y of shape (2,)"),
        ({"X": X, "names": ["a"]}, "1 name for 2 columns"),
        ({"X": X.astype(object)}, "without Python objects"),
        ({"X": X[:1], "y": Y[:1]}, "has 1 row"),
        ({"X": X + 1j, "y": Y}, "hold text"),
    ],
)
def test_bad_npz(tmp_path, arrays, says):
    np.savez(tmp_path / "data.npz", **arrays)
    assert says in refusal(tmp_path / "data.npz")


def test_what_is_no_archive(write, tmp_path):
    np.save(tmp_path / "one.npy", X)
    for content in (b"", b"text", b"PK\x03\x04junk", (tmp_path / "one.npy").read_bytes()):
        assert "NumPy archive" in refusal(write(content, "data.npz"))


@pytest.mark.parametrize(
    ("name", "package"), [("data.parquet", "pyarrow"), ("data.feather", "pyarrow"), ("data.xlsx", "openpyxl")]
)
def test_a_package_that_is_not_installed(write, monkeypatch, name, package):
    monkeypatch.setitem(sys.modules, package, None)
    message = refusal(write("", name))
    assert f"needs the package {package}: pip install 'pairflip[files]'." in message


def frame():
    import pandas as pd

    return pd.DataFrame({"a": [1, 4, 7], "b": X[:, 1], "y": Y})


def needs(package):
    pytest.importorskip(package, reason=f"{package} is not installed: pip install 'pairflip[files]'")


def test_parquet(tmp_path, write):
    needs("pyarrow")
    import pyarrow
    from pyarrow import parquet

    path = tmp_path / "data.parquet"
    frame().to_parquet(path)
    assert_is_the_table(read_table(path, "y"))
    frame().set_index(np.array(["r", "s", "t"])).to_parquet(path)
    table = read_table(path, "y")
    assert_is_the_table(table)
    assert (table.row_names, len(table.notes)) == (["r", "s", "t"], 1)
    frame().convert_dtypes().assign(c=np.array([1, 2, 3], "M8[s]")).to_parquet(path)
    assert "dates: 'c'" in refusal(path)
    np.testing.assert_array_equal(read_table(path, "y", drop=["c"]).X, X)
    message = "is a text file; expected a Parquet file, as its name says: rename it to .csv."
    assert message in refusal(write(ROWS, "text.parquet"))
    assert "is empty" in refusal(write("", "text.parquet"))
    assert "damaged" in refusal(write(path.read_bytes()[:-20], "text.parquet"))
    parquet.write_table(pyarrow.table([[1, 2], [3, 4], [5, 7]], names=["a", "a", "y"]), path)
    assert read_table(path, "y").names == ["a", "a (2)"]


@pytest.mark.parametrize("name", ["data.feather", "data.arrow", "stream.arrow"])
def test_arrow(tmp_path, write, name):
    needs("pyarrow")
    import pyarrow

    path = tmp_path / name
    if name == "stream.arrow":
        table = pyarrow.Table.from_pandas(frame())
        with pyarrow.ipc.new_stream(path, table.schema) as stream:
            stream.write_table(table)
    else:
        frame().to_feather(path)
    assert_is_the_table(read_table(path, "y"))
    assert "rename it to .csv" in refusal(write(ROWS, name))


@pytest.fixture
def workbook(tmp_path):
    """Write a workbook of several sheets and give its path."""
    needs("openpyxl")
    import pandas as pd

    def written(**sheets):
        with pd.ExcelWriter(tmp_path / "data.xlsx") as book:
            for name, content in sheets.items():
                pd.DataFrame(content).to_excel(book, sheet_name=name, index=name == "numbers")
        return tmp_path / "data.xlsx"

    return written


def test_excel(workbook, write):
    import pandas as pd

    table = read_table(workbook(one=frame()), "y")
    assert_is_the_table(table)
    assert table.notes == []
    path = workbook(about={"remark": ["none"]}, numbers=frame(), void=None)
    table = read_table(path, "y", sheet="numbers")
    assert_is_the_table(table)
    assert table.row_names == ["0", "1", "2"]
    assert "perhaps 'numbers'." in refusal(path, sheet="number")
    assert "1 row below" in refusal(path)
    assert "empty sheet 'void'" in refusal(path, sheet="void")
    assert "rename it to .csv" in refusal(write(ROWS, "text.xlsx"))
    path = workbook(one=frame().assign(when=pd.Timestamp("2020-01-01"), b=[2.5, "n/a", 9.5]))
    assert "dates: 'when'" in refusal(path, most=400)
    assert "1 value missing" in refusal(path, drop_text=True)
    assert "0 rows below" in refusal(workbook(one=frame().iloc[:0]))


def test_errors_name_the_other_sheets(workbook):
    path = workbook(about={"a": [1, 2], "b": [3, 4]}, two=frame(), more=frame())
    others = "; sheet 'about' was read; the others are 'two', 'more': --sheet."
    for options in ({}, {"target": None}, {"target": "a", "keep": ["c"]}, {"target": "a", "drop": ["b"]}):
        assert refusal(path, **options).endswith(others)
    assert "--sheet" not in refusal(path, sheet="about")
    message = refusal(workbook(void=None, two=frame()))
    assert "empty sheet 'void'; expected a header and rows; sheet 'void' was read; the other is 'two'" in message


@pytest.mark.parametrize("name", ["data.xlsx", "data.parquet", "data.feather", "data.npy", "data.npz", "data.csv.gz"])
def test_damaged_files_are_bad_input(tmp_path, name):
    whole, path, rng = tmp_path / f"whole-{name}", tmp_path / name, np.random.default_rng(0)
    if name.endswith((".npy", ".npz")):
        np.save(whole, X) if name.endswith(".npy") else np.savez(whole, X=X, y=Y)
    else:
        needs({"data.xlsx": "openpyxl", "data.csv.gz": "gzip"}.get(name, "pyarrow"))
        kind = {"data.csv.gz": "csv", "data.xlsx": "excel"}.get(name, name.removeprefix("data."))
        getattr(frame(), f"to_{kind}")(whole, **({"index": False} if kind in ("csv", "excel") else {}))
    data = whole.read_bytes()
    damaged = [data[: len(data) * cut // 20] for cut in range(20)]
    for _ in range(60):
        place = rng.integers(len(data))
        damaged.append(data[:place] + bytes([rng.integers(256)]) + data[place + 1 :])
    for content in damaged:
        path.write_bytes(content)
        with suppress(TableError):  # what nobody can notice is read
            read_table(path, "x0" if name.endswith(".npy") else "y", missing="drop-rows")


# NumPy files with many columns ----------------------------------------------------------------------------------------

M, N = 12, 1500


@pytest.fixture
def numbers():
    rng = np.random.default_rng(0)
    return rng.normal(size=(M, N)).astype(np.float32), rng.normal(size=M)


@pytest.mark.parametrize("order", ["C", "F"])
def test_an_array_and_a_target_in_files_of_their_own(tmp_path, numbers, order):
    X, y = numbers
    np.save(tmp_path / "X.npy", np.asarray(X, order=order))
    np.save(tmp_path / "growth.npy", y)
    table = read_table(tmp_path / "X.npy", str(tmp_path / "growth.npy"))
    assert table.X.dtype == np.float32
    assert not table.X.flags.owndata  # mapped from the file
    np.testing.assert_array_equal(table.X, X)
    np.testing.assert_array_equal(table.y, y)
    assert (table.target, table.names[:2], table.row_names[0]) == ("growth", ["x0", "x1"], "1")
    assert (table.dropped, table.notes) == ([], [])


@pytest.mark.parametrize(("target", "view"), [("x0", True), ("x1499", True), ("x7", False)])
def test_the_target_is_a_column(tmp_path, numbers, target, view):
    X, _ = numbers
    np.save(tmp_path / "X.npy", X)
    table = read_table(tmp_path / "X.npy", target)
    at = int(target[1:])
    np.testing.assert_array_equal(table.X, np.delete(X, at, axis=1))
    np.testing.assert_array_equal(table.y, X[:, at])
    assert table.y.dtype == np.float64
    assert target not in table.names
    assert (table.X.base is not None and table.X.strides == X.strides) == view


def test_an_archive(tmp_path, numbers):
    X, y = numbers
    path, names = tmp_path / "data.npz", [f"gene {j}" for j in range(N)]
    np.savez(path, X=X, y=y, names=names)
    table = read_table(path)
    assert table.X.dtype == np.float32
    assert (table.target, table.names) == ("y", names)
    np.testing.assert_array_equal(table.y, y)
    np.savez(tmp_path / "double.npz", X=X.astype(float), y=y, names=names)
    assert read_table(tmp_path / "double.npz").hash == table.hash
    few = read_table(path, keep=["/^gene 1\\d$/"], drop=["gene 12"])
    assert few.names == [f"gene {j}" for j in range(10, 20) if j != 12]
    assert few.X.dtype == np.float64
    np.testing.assert_array_equal(few.X, X[:, [10, 11, *range(13, 20)]])
    for drop in ([], ["y"]):  # a target apart may be a candidate, too
        other = read_table(path, "gene 3", drop=drop)
        np.testing.assert_array_equal(other.y, X[:, 3])
        np.testing.assert_array_equal(other.X[:, -N + 1 :], np.delete(X, 3, axis=1))
        assert other.names[0] == ("gene 0" if drop else "y")
    np.testing.assert_array_equal(read_table(path, "gene 3").X[:, 0], y)
    np.save(tmp_path / "X.npy", np.arange(24).reshape(6, 4) ** 2)
    table = read_table(tmp_path / "X.npy", "x1")  # narrow arrays of whole numbers become float64
    assert (table.X.dtype, table.names) == (np.float64, ["x0", "x2", "x3"])


def test_missing_values_and_constant_columns(tmp_path, numbers):
    X, y = numbers
    X[:, 9] = 2.0
    path = tmp_path / "data.npz"
    np.savez(path, X=X, y=y)
    (note,) = read_table(path).notes
    assert str(note) == "1 column with a single value, kept: 'x9'"
    X[3, 40] = np.nan
    np.savez(path, X=X, y=y)
    assert "1 value missing or infinite in 'x40'" in refusal(path)
    assert read_table(path, missing="drop-columns").X.shape == (M, N - 1)
    assert read_table(path, missing="drop-rows").X.shape == (M - 1, N)


def test_refused_arrays(tmp_path, numbers):
    X, y = numbers
    arrays = {"X": X, "y": y[:-1], "flat": y, "words": np.array([["a", "b"], ["c", "d"]]), "same": np.ones(M)}
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    (tmp_path / "text.npy").write_text("a,b\n1,2\n")
    for name, target, words in [
        ("X", str(tmp_path / "y.npy"), "has shape (11,) for 12 rows"),
        ("X", str(tmp_path / "z.npy"), "does not exist"),
        ("flat", "x0", "array of shape (12,)"),
        ("words", "x0", "does not hold one array of real numbers"),
        ("text", "x0", "cannot be read as a NumPy file"),
        ("X", "q", "--target 'q' is not a column"),
        ("X", None, "No target is given"),
        ("X", str(tmp_path / "same.npy"), "is 1 in every row"),
    ]:
        assert words in refusal(tmp_path / f"{name}.npy", target=target)
