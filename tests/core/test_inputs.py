"""Bad input gets one line that says what was given, what was expected, and which column is the culprit."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_array

from _errors import sentence_of
from pairflip import SubsetProblem, SubsetRegressor, SubsetRegressorCV, best_subset
from pairflip.inputs import as_table

M, N = 10, 4
NAMES = ["age", "bmi", "height", "pressure"]
RNG = np.random.default_rng(0)
GOOD_X = RNG.normal(size=(M, N))
GOOD_Y = RNG.normal(size=M)
FRAME = pd.DataFrame(GOOD_X, columns=NAMES)


def changed(array, at, value):
    array = array.copy()
    array[at] = value
    return array


def text_in(*columns):
    frame = FRAME.astype(object)
    for name in columns:
        frame.loc[3, name] = "n/a"
    return frame


BAD_X = {
    "one NaN": (
        changed(GOOD_X, (2, 1), np.nan),
        ["X contains NaN or infinity", "'x1'", "(1 value)", "impute"],
    ),
    "NaN in a frame": (FRAME.replace(FRAME.iloc[0, 1], np.nan), ["NaN", "'bmi'"]),
    "many NaN": (np.full((M, 9), np.nan), ["'x0', 'x1', 'x2', 'x3', 'x4' and 4 more", "90 values"]),
    "text": (text_in("bmi"), ["non-numeric", "'bmi'", "drop these columns or encode them"]),
    "text and NaN": (
        text_in("bmi").replace(FRAME.iloc[0, 0], np.nan),
        ["non-numeric values in column 'bmi'", f"besides, NaN or infinity in column {FRAME.columns[0]!r}"],
    ),
    "dates": (np.array([["2020-01-01"], ["2020-01-05"]], dtype="M8[D]"), ["dates or durations in column 'x0'"]),
    "one-dimensional": (GOOD_X[:, 0], ["X has shape (10,)", "(rows, columns)", "reshape(-1, 1)"]),
    "a number": (3.0, ["X has shape ()"]),
    "no columns": (np.empty((M, 0)), ["X has no columns", "at least one"]),
    "one row": (GOOD_X[:1], ["X has 1 row;", "at least two rows"]),
    "complex": (GOOD_X * 1j, ["Complex data not supported", "X holds complex"]),
    "all constant": (np.ones((M, N)), ["none of the 4 columns of X varies", "not constant"]),
}

BAD_Y = {
    "NaN": (changed(GOOD_Y, 2, np.nan), ["y contains NaN or infinity", "(1 value)"]),
    "text": (["yes"] * M, ["y holds text"]),
    "too short": (GOOD_Y[:-1], ["y has shape (9,)", "X has 10 rows"]),
    "constant targets": (np.zeros((M, 2)), ["the target 'y0' is constant", "leave it out"]),
    "three axes": (np.zeros((M, 2, 2)), ["y has shape (10, 2, 2)", "one target value per row"]),
    "missing": (None, ["y has shape ()"]),
    "complex": (GOOD_Y * 1j, ["Complex data not supported", "y holds complex"]),
    "zero": (np.zeros(M), ["y is constant"]),
}

BAD_OPTIONS = {
    "always, unknown name": ({"always": ["weight"]}, ["always", "'weight'", "which X does not have"]),
    "always, index too large": ({"always": [1, 4]}, ["always", "column index 4 (counting from 0)", "0 to 3"]),
    "always, everything": ({"always": range(N)}, ["none of the 4 columns of X varies"]),
    "weights, too few": ({"sample_weight": np.ones(3)}, ["sample_weight has shape (3,)", "10 rows"]),
    "weights, negative": ({"sample_weight": changed(np.ones(M), 3, -1.0)}, ["sample_weight", "negative"]),
    "weights, NaN": ({"sample_weight": changed(np.ones(M), 3, np.nan)}, ["sample_weight", "non-finite"]),
    "weights, text": ({"sample_weight": ["heavy"] * M}, ["sample_weight holds text"]),
    "weights, all zero": ({"sample_weight": np.zeros(M)}, ["sample_weight", "fewer than two rows"]),
    "center": ({"center": "mean"}, ["center is 'mean'", "'fold', 'global' or None"]),
    "ridge, negative": ({"ridge": -1.0}, ["ridge is -1.0", ">= 0"]),
    "names, too few": ({"names": ["a", "b"]}, ["names has 2 entries", "4 columns"]),
}


def complaint(kind, X, y, **options):
    """The message of the error."""
    return sentence_of(kind, lambda: SubsetProblem(X, y, **options))


@pytest.mark.parametrize(("X", "words"), BAD_X.values(), ids=BAD_X)
def test_bad_tables(X, words):
    message = complaint(ValueError, X, GOOD_Y[: np.shape(X)[0]] if np.ndim(X) == 2 else GOOD_Y)
    assert [word for word in words if word not in message] == [], message


@pytest.mark.parametrize(("y", "words"), BAD_Y.values(), ids=BAD_Y)
def test_bad_targets(y, words):
    message = complaint(ValueError, GOOD_X, y)
    assert [word for word in words if word not in message] == [], message


@pytest.mark.parametrize(("options", "words"), BAD_OPTIONS.values(), ids=BAD_OPTIONS)
def test_bad_options(options, words):
    message = complaint(ValueError, FRAME.to_numpy(), GOOD_Y, **{"names": NAMES, **options})
    assert [word for word in words if word not in message] == [], message


@pytest.mark.parametrize("always", [[1.5], [True, False, False, True], [None], [("age",)]])
def test_always_takes_names_and_indices_only(always):
    message = complaint(TypeError, GOOD_X, GOOD_Y, always=always)
    assert f"always names column {always[0]!r}" in message


def test_sparse_tables_of_one_axis_are_refused():
    assert "expected a table of shape (rows, columns)" in complaint(ValueError, coo_array(GOOD_X[:, 0]), GOOD_Y)


def test_a_target_explained_by_what_is_always_there():
    y = 3.0 * GOOD_X[:, 1] + 2.0
    assert "explained by what is always in the model" in complaint(ValueError, GOOD_X, y, always=[1])


def test_names_come_from_the_frame_or_from_the_user_or_are_numbered():
    assert SubsetProblem(FRAME, GOOD_Y).names == NAMES
    assert SubsetProblem(FRAME, GOOD_Y, names=list("abcd")).names == list("abcd")
    assert SubsetProblem(GOOD_X, GOOD_Y).names == ["x0", "x1", "x2", "x3"]
    assert SubsetProblem(pd.DataFrame(GOOD_X), GOOD_Y).names == ["0", "1", "2", "3"]


@pytest.mark.parametrize(
    "X",
    [
        GOOD_X,
        GOOD_X.tolist(),
        np.asfortranarray(GOOD_X),
        GOOD_X.astype(object),
        np.repeat(GOOD_X, 2, axis=1)[:, ::2],
        FRAME,
    ],
    ids=["array", "lists", "Fortran order", "objects", "strided", "frame"],
)
def test_good_tables_of_every_form_give_the_same_problem(X):
    expected = SubsetProblem(GOOD_X, GOOD_Y).energy([0, 2])
    for y in (GOOD_Y, GOOD_Y[:, None], GOOD_Y.tolist(), pd.Series(GOOD_Y, index=range(50, 50 + M))):
        assert SubsetProblem(X, y).energy([0, 2]) == expected


@pytest.mark.parametrize("dtype", [np.float32, np.int8, bool])
def test_other_number_types_become_float64(dtype):
    table, _ = as_table((GOOD_X > 0).astype(dtype))
    assert table.dtype == np.float64
    assert (table == (GOOD_X > 0)).all()


DAYS = pd.date_range("2020-01-01", periods=M)
DATED = {
    "a column of datetime64": (FRAME.assign(day=DAYS), "column 'day'"),
    "with a time zone": (FRAME.assign(day=DAYS.tz_localize("UTC")), "column 'day'"),
    "objects": (FRAME.assign(day=pd.Series([day.date() for day in DAYS], dtype=object)), "column 'day'"),
    "one date among numbers": (FRAME.astype(object).replace(GOOD_X[3, 1], DAYS[0]), "column 'bmi'"),
    "two columns": (FRAME.assign(day=DAYS, since=DAYS - DAYS[0]), "columns 'day', 'since'"),
    "an array of objects": (FRAME.assign(day=DAYS).to_numpy(), "column 'x4'"),
    "lists": ([[1.0, day.date()] for day in DAYS], "column 'x1'"),
}
ESTIMATORS = {
    "SubsetRegressor": lambda X, y: SubsetRegressor(1, random_state=0).fit(X, y),
    "SubsetRegressorCV": lambda X, y: SubsetRegressorCV([1], cv=2, random_state=0).fit(X, y),
    "SubsetProblem": SubsetProblem,
}


@pytest.mark.parametrize("fit", ESTIMATORS.values(), ids=ESTIMATORS)
@pytest.mark.parametrize(("X", "where"), DATED.values(), ids=DATED)
def test_dates_are_not_counted_silently(X, where, fit):
    message = sentence_of(ValueError, lambda: fit(X, GOOD_Y))
    assert message.startswith(f"X holds dates or durations in {where}; expected numbers only: drop ")
    assert message.endswith("count the days since the first one.")


@pytest.mark.parametrize("fit", ESTIMATORS.values(), ids=ESTIMATORS)
@pytest.mark.parametrize(
    "y", [DAYS, DAYS - DAYS[0], [day.date() for day in DAYS]], ids=["dates", "durations", "objects"]
)
def test_a_target_of_dates_is_refused(y, fit):
    message = sentence_of(ValueError, lambda: fit(FRAME, y))
    assert message.startswith("y holds dates or durations; expected one number per row")


def test_dates_in_polars():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"a": GOOD_X[:, 0], "day": [day.date() for day in DAYS], "at": DAYS.to_pydatetime()})
    for fit in ESTIMATORS.values():
        assert "columns 'day', 'at'; expected" in sentence_of(ValueError, lambda fit=fit: fit(frame, GOOD_Y))
    assert SubsetProblem(frame.select("a"), GOOD_Y).names == ["a"]


def test_tables_of_arrow_keep_their_names():
    arrow = pytest.importorskip("pyarrow")
    frame = pd.DataFrame(GOOD_X, columns=[f"c{j}" for j in range(GOOD_X.shape[1])])
    for table in (arrow.table(dict(frame)), arrow.RecordBatch.from_pandas(frame)):
        problem = SubsetProblem(table, arrow.array(GOOD_Y))
        assert problem.names == list(frame)
        assert problem.hash == SubsetProblem(frame, GOOD_Y).hash
        model = SubsetRegressor(n_nonzero_coefs=1).fit(table, GOOD_Y)
        assert model.feature_names_in_.tolist() == list(frame)
        np.testing.assert_array_equal(model.predict(table), model.predict(frame))
        np.testing.assert_array_equal(model.transform(table), model.transform(frame))
    targets = arrow.table({"u": GOOD_Y, "v": GOOD_X[:, 0]})
    assert SubsetProblem(frame, targets).target_names == ["u", "v"]
    text = arrow.table({"a": ["u"] * len(GOOD_Y), "b": GOOD_Y})
    assert "in column 'a' ('u' in row 1); expected numbers only" in sentence_of(
        ValueError, lambda: SubsetProblem(text, GOOD_Y)
    )


def test_lazy_frames_are_refused_with_the_fix():
    lazy = pytest.importorskip("polars").DataFrame({"a": GOOD_X[:, 0], "b": GOOD_X[:, 1]}).lazy()
    says = "{0} is a lazy frame, which has no rows yet; expected a table: {0}.collect()."
    for fit in ESTIMATORS.values():
        assert sentence_of(ValueError, lambda fit=fit: fit(lazy, GOOD_Y)) == says.format("X")
        assert sentence_of(ValueError, lambda fit=fit: fit(GOOD_X, lazy.select("a"))) == says.format("y")
    assert SubsetProblem(lazy.collect(), GOOD_Y).names == ["a", "b"]


def test_one_column_leaves_nothing_to_choose():
    message = sentence_of(ValueError, lambda: best_subset(SubsetProblem(GOOD_X[:, :1], GOOD_Y), 1))
    assert message.startswith("k is 1, but X has only 1 candidate column that varies; expected at least 2")
