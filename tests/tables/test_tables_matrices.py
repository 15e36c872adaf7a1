"""NumPy files with many columns are used as they are."""

import numpy as np
import pytest

from _errors import sentence_of
from pairflip.tables import TableError, read_table

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
    names = [f"gene {j}" for j in range(N)]
    np.savez(tmp_path / "data.npz", X=X, y=y, names=names)
    table = read_table(tmp_path / "data.npz")
    assert table.X.dtype == np.float32
    assert (table.target, table.names) == ("y", names)
    np.testing.assert_array_equal(table.y, y)
    np.savez(tmp_path / "double.npz", X=X.astype(float), y=y, names=names)
    assert read_table(tmp_path / "double.npz").hash == table.hash
    few = read_table(tmp_path / "data.npz", keep=["/^gene 1\\d$/"], drop=["gene 12"])
    assert few.names == [f"gene {j}" for j in range(10, 20) if j != 12]
    assert few.X.dtype == np.float64
    np.testing.assert_array_equal(few.X, X[:, [10, 11, *range(13, 20)]])
    other = read_table(tmp_path / "data.npz", "gene 3", drop=["y"])
    np.testing.assert_array_equal(other.y, X[:, 3])
    np.testing.assert_array_equal(other.X, np.delete(X, 3, axis=1))


def test_a_target_apart_may_also_be_a_candidate(tmp_path, numbers):
    X, y = numbers
    np.savez(tmp_path / "data.npz", X=X, y=y)
    table = read_table(tmp_path / "data.npz", "x3")
    assert table.names[0] == "y"
    np.testing.assert_array_equal(table.X[:, 0], y)
    np.testing.assert_array_equal(table.X[:, 1:], np.delete(X, 3, axis=1))


def test_whole_numbers_and_narrow_arrays_become_float64(tmp_path):
    np.save(tmp_path / "X.npy", np.arange(24).reshape(6, 4) ** 2)
    table = read_table(tmp_path / "X.npy", "x1")
    assert table.X.dtype == np.float64
    assert table.names == ["x0", "x2", "x3"]


def test_missing_values_and_constant_columns(tmp_path, numbers):
    X, y = numbers
    X[:, 9] = 2.0
    np.savez(tmp_path / "data.npz", X=X, y=y)
    (note,) = read_table(tmp_path / "data.npz").notes
    assert str(note) == "1 column with a single value, kept: 'x9'"
    X[3, 40] = np.nan
    np.savez(tmp_path / "data.npz", X=X, y=y)
    message = sentence_of(TableError, lambda: read_table(tmp_path / "data.npz"))
    assert "1 value missing or infinite in 'x40'" in message
    assert read_table(tmp_path / "data.npz", missing="drop-columns").X.shape == (M, N - 1)
    assert read_table(tmp_path / "data.npz", missing="drop-rows").X.shape == (M - 1, N)


def test_what_is_refused(tmp_path, numbers):
    X, y = numbers
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y[:-1])
    np.save(tmp_path / "flat.npy", y)
    np.save(tmp_path / "words.npy", np.array([["a", "b"], ["c", "d"]]))
    (tmp_path / "text.npy").write_text("a,b\n1,2\n")
    np.save(tmp_path / "same.npy", np.ones(M))

    def refused(name, target):
        return sentence_of(TableError, lambda: read_table(tmp_path / name, target))

    assert "has shape (11,) for 12 rows" in refused("X.npy", str(tmp_path / "y.npy"))
    assert "does not exist" in refused("X.npy", str(tmp_path / "z.npy"))
    assert "array of shape (12,)" in refused("flat.npy", "x0")
    assert "does not hold one array of real numbers" in refused("words.npy", "x0")
    assert "cannot be read as a NumPy file" in refused("text.npy", "x0")
    assert "--target 'q' is not a column" in refused("X.npy", "q")
    assert "No target is given" in refused("X.npy", None)
    assert "is 1 in every row" in refused("X.npy", str(tmp_path / "same.npy"))
