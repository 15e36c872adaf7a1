"""One small table, and what must hold of it however it was written; and numbers of real tables."""

import numpy as np
import pandas as pd

from _errors import sentence_of
from pairflip.tables import TableError, read_table

ROWS = "a,b,y\n1,2.5,3\n4,5.5,7\n7,9.5,9\n"
X = np.array([[1, 2.5], [4, 5.5], [7, 9.5]])
Y = np.array([3.0, 7.0, 9.0])


def refusal(path, most=250, **options):
    return sentence_of(TableError, lambda: read_table(path, **({"target": "y"} | options)), most)


def assert_is_the_table(table, names=("a", "b")):
    assert table.names == list(names)
    assert table.target == "y"
    np.testing.assert_array_equal(table.X, X)
    np.testing.assert_array_equal(table.y, Y)
    assert table.X.dtype == table.y.dtype == np.float64
    assert table.X.flags.c_contiguous
    assert table.dropped == []


def numbers(path, target=None):
    """Columns of numbers that vary, and a target (by default the first)."""
    frame = pd.read_csv(path).select_dtypes("number").dropna(axis=1)
    X = frame[[name for name in frame if not name.startswith("target")]].to_numpy(float)
    target = target or next(name for name in frame if name.startswith("target"))
    return X[:, X.std(axis=0) > 0], frame[target].to_numpy(float)
