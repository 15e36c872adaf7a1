"""Whether the rows of a table follow each other in time."""

import datetime

import numpy as np
import pandas as pd
import pytest

from pairflip.tables import Table, read_table
from pairflip.tables.kinds import in_order

IN_ORDER = """2020-01-30|2020-01-31|2020-02-01
2020-02-01|2020-01-31|2020-01-30
2020-01-30|2020-01-30|2020-02-01
31.1.2020|1.2.2020|2.12.2020
1/31/2020|2/1/2020|12/2/2020
31/12/98|01/01/99|02/01/00
2020-01-01 9:30|2020-01-01 10:00|2020-01-02 00:00:00.5
1/1/20 11:00 AM|1/1/20 1:00 PM|1/2/20 12:30 AM
2020-01-01T09:30:00Z|2020-01-01T09:31:00Z
2019-12|2020-01|2020-02
2019Q4|2020Q1|2020-Q2"""
NOT_IN_ORDER = """2020-01-30|2020-02-01|2020-01-31
2020-01-30|2020-01-30
2020-01-30|
2020-13-30|2020-14-01
31.1.2020|1.2.2020|12.31.2020
P001|P002
1|2|3
1998|1999|2000
1.2.3|1.2.4
2020-01-30"""


@pytest.mark.parametrize(
    ("names", "column", "ordered"),
    [
        *((row.split("|"), "", True) for row in IN_ORDER.splitlines()),
        *((row.split("|"), "", False) for row in NOT_IN_ORDER.splitlines()),
        ([], "", False),
        (["1998", "1999", "2000"], "Year", True),
        (["1998", "1999", "2000"], "date", True),
        (["1998", "1999", "2000"], "patient", False),
        (["1", "2", "3"], "year", False),
    ],
)
def test_dates_in_order(names, column, ordered):
    assert in_order(names, column) is ordered


TEXT = "{},a,y\n2020-01-30,1,3\n2020-01-31,4,7\n2020-02-01,5,1\n"


def test_a_table_says_whether_its_rows_are_dates(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(TEXT.format("day"))
    assert read_table(path, "y", index="day").row_dates
    assert not read_table(path, "y", drop=["day"]).row_dates
    path.write_text(TEXT.format(""))
    assert read_table(path, "y").row_dates
    path.write_text(TEXT.format("").replace("01-31", "03-31"))
    assert not read_table(path, "y").row_dates
    path.write_text(TEXT.format("").replace("01-31,4", "03-31,"))
    assert read_table(path, "y", missing="drop-rows").row_dates  # of the rows that are left
    assert not Table(np.eye(2), np.arange(2.0), ["a", "b"], ["1", "2"], "y", "data.csv").row_dates


def test_dates_saved_as_the_index(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": [1.0, 2, 4], "y": [1.0, 5, 2]})
    days = [datetime.date(2020, 1, day) for day in (30, 29, 3)]
    for index, expected in [
        (pd.DatetimeIndex(days), True),
        (pd.DatetimeIndex(days)[[0, 2, 1]], False),
        (pd.Index(days), True),
        (pd.RangeIndex(1998, 2001, name="year"), True),
        (pd.RangeIndex(1998, 2001), False),
        (pd.RangeIndex(3), False),
        (pd.Index(["r", "s", "t"]), False),
    ]:
        frame.set_index(index).to_parquet(tmp_path / "data.parquet")
        assert read_table(tmp_path / "data.parquet", "y").row_dates is expected
    frame.assign(day=pd.DatetimeIndex(days)).to_parquet(tmp_path / "data.parquet")
    assert read_table(tmp_path / "data.parquet", "y", index="day").row_dates
