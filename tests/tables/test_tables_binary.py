"""NumPy archives, Parquet, Arrow and Excel become the same table as text, or are refused in one sentence."""

import sys
from contextlib import suppress

import numpy as np
import pytest

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


def test_bad_npz(tmp_path, write):
    path = tmp_path / "data.npz"
    for arrays, says in [
        ({"Z": X}, "holds 'Z'; expected an array X"),
        ({}, "no arrays"),
        ({"X": Y}, "shape (3,)"),
        ({"X": X, "y": Y[:2]}, "y of shape (2,)"),
        ({"X": X, "names": ["a"]}, "1 name for 2 columns"),
        ({"X": X.astype(object)}, "without Python objects"),
        ({"X": X[:1], "y": Y[:1]}, "has 1 row"),
        ({"X": X + 1j, "y": Y}, "hold text"),
    ]:
        np.savez(path, **arrays)
        assert says in refusal(path)
    for content in (b"", b"text", b"PK\x03\x04junk"):
        assert "NumPy archive" in refusal(write(content, "data.npz"))
    np.save(tmp_path / "one.npy", X)
    (tmp_path / "one.npy").rename(path)
    assert "NumPy archive" in refusal(path)


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
    path = tmp_path / "data.parquet"
    frame().to_parquet(path)
    assert_is_the_table(read_table(path, "y"))
    frame().set_index(np.array(["r", "s", "t"])).to_parquet(path)
    table = read_table(path, "y")
    assert_is_the_table(table)
    assert table.row_names == ["r", "s", "t"]
    assert len(table.notes) == 1
    frame().convert_dtypes().assign(c=np.array([1, 2, 3], "M8[s]")).to_parquet(path)
    assert "dates: 'c'" in refusal(path)
    np.testing.assert_array_equal(read_table(path, "y", drop=["c"]).X, X)
    assert "is a text file; expected a Parquet file, as its name says: rename it to .csv." in refusal(
        write(ROWS, "text.parquet")
    )
    assert "is empty" in refusal(write("", "text.parquet"))
    assert "damaged" in refusal(write(path.read_bytes()[:-20], "text.parquet"))


def test_parquet_with_two_columns_of_one_name(tmp_path):
    needs("pyarrow")
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table([[1, 2], [3, 4], [5, 7]], names=["a", "a", "y"]), tmp_path / "data.parquet")
    assert read_table(tmp_path / "data.parquet", "y").names == ["a", "a (2)"]


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


def test_excel(tmp_path, write):
    needs("openpyxl")
    import pandas as pd

    path = tmp_path / "data.xlsx"
    frame().to_excel(path, index=False)
    table = read_table(path, "y")
    assert_is_the_table(table)
    assert table.notes == []
    with pd.ExcelWriter(path) as book:
        pd.DataFrame({"remark": ["none"]}).to_excel(book, sheet_name="about", index=False)
        frame().to_excel(book, sheet_name="numbers")
        pd.DataFrame().to_excel(book, sheet_name="void", index=False)
    table = read_table(path, "y", sheet="numbers")
    assert_is_the_table(table)
    assert table.row_names == ["0", "1", "2"]
    assert "perhaps 'numbers'." in refusal(path, sheet="number")
    assert "1 row below" in refusal(path)
    assert "empty sheet 'void'" in refusal(path, sheet="void")
    assert "rename it to .csv" in refusal(write(ROWS, "text.xlsx"))
    frame().assign(when=pd.Timestamp("2020-01-01"), b=[2.5, "n/a", 9.5]).to_excel(path, index=False)
    assert "dates: 'when'" in refusal(path, most=400)
    assert "1 value missing" in refusal(path, drop_text=True)
    frame().iloc[:0].to_excel(path, index=False)
    assert "0 rows below" in refusal(path)


def test_notes_of_several_sheets(tmp_path):
    needs("openpyxl")
    import pandas as pd

    with pd.ExcelWriter(tmp_path / "data.xlsx") as book:
        frame().set_axis(["a", "a", "y"], axis=1).to_excel(book, sheet_name="one", index=False)
        frame().to_excel(book, sheet_name="two", index=False)
    table = read_table(tmp_path / "data.xlsx", "y")
    assert table.names == ["a", "a (2)"]
    assert str(table.notes[0]) == "sheet 'one' was read; the other is 'two': --sheet"
    assert table.notes[0].names == ("one",)
    assert not [note for note in read_table(tmp_path / "data.xlsx", "y", sheet="one").notes if note.what == "sheet"]


def test_errors_name_the_other_sheets(tmp_path):
    needs("openpyxl")
    import pandas as pd

    path = tmp_path / "data.xlsx"
    with pd.ExcelWriter(path) as book:
        pd.DataFrame({"a": [1, 2], "b": [3, 4]}).to_excel(book, sheet_name="about", index=False)
        frame().to_excel(book, sheet_name="numbers", index=False)
        frame().to_excel(book, sheet_name="more", index=False)
    others = "; sheet 'about' was read; the others are 'numbers', 'more': --sheet."
    for options in ({}, {"target": None}, {"target": "a", "keep": ["c"]}, {"target": "a", "drop": ["b"]}):
        assert refusal(path, **options).endswith(others)
    assert "--sheet" not in refusal(path, sheet="about")
    with pd.ExcelWriter(path) as book:
        pd.DataFrame().to_excel(book, sheet_name="void", index=False)
        frame().to_excel(book, sheet_name="numbers", index=False)
    assert "empty sheet 'void'; expected a header and rows; sheet 'void' was read; the other is 'numbers'" in refusal(
        path
    )


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
