"""Transformers: values by hand and by scikit-learn, names, what files hold of them."""

import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from pairflip import SubsetProblem
from pairflip.preparation import Preparation
from pairflip.preprocessing import (
    MSC,
    SNV,
    Impute,
    Log,
    OnColumns,
    Products,
    RowCentre,
    RowScale,
    SavitzkyGolay,
    describe,
    is_row_wise,
    output_names,
    parse_steps,
    restore,
    words,
)

NAMES = [f"n{j}" for j in range(8)]
TOO_NARROW = dict.fromkeys((
    "check_estimators_overwrite_params", "check_estimators_fit_returns_self", "check_readonly_memmap_input",
    "check_fit_idempotent", "check_fit_check_is_fitted", "check_n_features_in",
), "tables of two columns are narrower than the window")  # fmt: skip


def _gaps(rows=40, share=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(3.0, 2.0, (rows, 8)) + 2.0 * rng.normal(size=(rows, 1))
    X[rng.random(X.shape) < share] = np.nan
    return X


X = np.random.default_rng(1).uniform(0.5, 3.0, (30, 8))
ALL = make_pipeline(
    Impute("knn", noise=0.5, random_state=3),
    OnColumns(make_pipeline(SNV(), SavitzkyGolay(5, 2, 1), Products(2, True)), [1, 2, 3, 4, 5]),
    MSC(),
    StandardScaler(),
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("step", [
    SNV(), RowCentre(), RowScale(), SavitzkyGolay(1, 0, 0), SavitzkyGolay(3, 2, 1), Log(), MSC(), Impute(),
    Impute("knn"), Products(2, True), OnColumns(SNV(), [0]),
], ids=repr)  # fmt: skip
def test_scikit_learn(step):
    wide = isinstance(step, SavitzkyGolay) and step.window > 2
    check_estimator(step, expected_failed_checks=TOO_NARROW if wide else {})


def test_rows():
    snv = SNV().fit_transform(X)
    np.testing.assert_allclose(snv.mean(axis=1), 0.0, atol=1e-12)
    np.testing.assert_allclose(snv.std(axis=1), 1.0)
    np.testing.assert_allclose(SNV().transform(3.0 * X - 7.0), snv)
    np.testing.assert_allclose(np.linalg.norm(RowScale().transform(X), axis=1), 1.0)
    np.testing.assert_allclose(RowCentre().transform(X), X - X.mean(axis=1, keepdims=True))
    np.testing.assert_allclose(Log(0.0).transform(X), np.log(X))
    np.testing.assert_allclose(Log().transform(X), np.log(1.0 + X))


def test_flat_rows():
    flat = np.full((3, 8), 0.1)
    for step in (SNV(), RowScale(), RowCentre(), MSC()):
        assert np.isfinite(step.fit(X).transform(flat)).all()
        assert np.isfinite(step.fit(flat).transform(X)).all()
    assert not SNV().transform(flat).any()


def test_savgol_is_exact_for_polynomials():
    t = np.arange(20.0)
    rows = np.array([[1.0], [2.0]]) * (0.3 * t**2 - t + 5.0)
    np.testing.assert_allclose(SavitzkyGolay(7, 2, 0).transform(rows), rows)
    np.testing.assert_allclose(SavitzkyGolay(7, 2, 1).transform(rows), [[1.0], [2.0]] * (0.6 * t - 1.0), atol=1e-12)


def test_msc_undoes_offset_and_slope():
    shape, rng = np.sin(np.arange(8.0)), np.random.default_rng(0)
    rows = rng.normal(size=(10, 1)) + rng.uniform(0.5, 2.0, (10, 1)) * shape
    step = MSC().fit(rows)
    np.testing.assert_allclose(step.transform(rows), np.tile(rows.mean(axis=0), (10, 1)))
    np.testing.assert_allclose(step.reference_, rows.mean(axis=0))


def test_indicators():
    table = X.copy()
    table[2:4, [1, 5]] = np.nan
    table[3, 6] = np.nan
    step = Impute().fit(table)
    assert output_names(step, NAMES) == [*NAMES, "missing(n1)", "missing(n6)"]  # n5 lacks the same rows as n1
    np.testing.assert_array_equal(step.transform(table)[:, 8:], np.isnan(table)[:, [1, 6]])


def _neighbours(training, rows, n_neighbors):
    """Missing values of rows from the nearest training rows, one by one."""
    unit, filled = np.nanstd(training, axis=0), rows.copy()
    for i, j in np.argwhere(np.isnan(rows)):
        distance = np.sqrt(np.nanmean(((training - rows[i]) / unit) ** 2, axis=1))
        distance[np.isnan(training[:, j])] = np.inf
        filled[i, j] = training[np.argsort(distance)[:n_neighbors], j].mean()
    return filled


@pytest.mark.parametrize("method", ["median", "knn"])
def test_filled_values(method):
    table = _gaps()
    filled = Impute(method, indicator=False, n_neighbors=3).fit(table[:30]).transform(table)
    medians = np.where(np.isnan(table), np.nanmedian(table[:30], axis=0), table)
    np.testing.assert_allclose(filled, medians if method == "median" else _neighbours(table[:30], table, 3))


@pytest.mark.parametrize("method", ["median", "knn"])
def test_noise(method):
    table = _gaps(400)
    lost = np.isnan(table)
    plain = Impute(method, indicator=False).fit(table).transform(table)
    first, again, other = (
        Impute(method, indicator=False, noise=1.0, random_state=seed).fit(table).transform(table) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first[~lost], table[~lost])
    assert (first != other)[lost].all()
    spread = Impute(method, noise=1.0).fit(table).spread_
    assert abs(((first - plain) / spread)[lost].std() - 1.0) < 0.15  # 320 draws: standard error .04


def test_columns_without_values():
    table = X.copy()
    table[:, 2] = np.nan
    for method in ("median", "knn"):
        filled = Impute(method, noise=1.0).fit(table).transform(X[:3] * [1, 1, np.nan, 1, 1, 1, 1, 1])
        assert not filled[:, 2].any()
        assert np.isfinite(filled).all()


def test_products_and_their_factors():
    names = ["a", "total income", "chr1:5"]
    step = Products(3, True).fit(X[:, :3])
    made = output_names(step, names)
    assert made[3:5] == ["a^2", "total income^2"]
    assert made[-3:] == ["a:total income", "a:chr1:5", "total income:chr1:5"]
    values = dict(zip(made, step.transform(X[:, :3]).T, strict=True))
    np.testing.assert_allclose(values["a^3"], X[:, 0] ** 3)
    np.testing.assert_allclose(values["total income:chr1:5"], X[:, 1] * X[:, 2])
    problem = SubsetProblem(step.transform(X[:, :3]), X[:, 5], names=made, hierarchy=True)
    needs = {made[j]: [made[c] for c in each] for j, each in problem.limits.needs.items()}
    assert needs == {
        **{f"{name}^{power}": [name] for name in names for power in (2, 3)},
        "a:total income": ["a", "total income"],
        "a:chr1:5": ["a", "chr1:5"],
        "total income:chr1:5": ["total income", "chr1:5"],
    }


def test_on_columns():
    step = OnColumns(make_pipeline(RowCentre(), Products(2)), [2, 5]).fit(X)
    centred = X[:, [2, 5]] - X[:, [2, 5]].mean(axis=1, keepdims=True)
    made = step.transform(X)
    np.testing.assert_array_equal(made[:, [0, 1, 3, 4, 6, 7]], X[:, [0, 1, 3, 4, 6, 7]])
    np.testing.assert_allclose(made[:, [2, 5, 8, 9]], np.hstack([centred, centred**2]))
    assert output_names(step, NAMES) == [*NAMES, "n2^2", "n5^2"]
    with pytest.raises(ValueError, match="keeps its columns"):
        OnColumns(PCA(1), [0, 1]).fit(X).transform(X)


@pytest.mark.parametrize(
    ("transformer", "is_it"),
    [
        (SNV(), True),
        (make_pipeline(SNV(), "passthrough", make_pipeline(SavitzkyGolay(), Products(2))), True),
        (OnColumns(SNV(), [0]), True),
        (Normalizer(), True),
        (MSC(), False),
        (make_pipeline(SNV(), Impute()), False),
        (OnColumns(MSC(), [0]), False),
        (FunctionTransformer(lambda rows: rows - rows.mean(axis=0)), False),
        (StandardScaler(), False),
    ],
)
def test_row_wise(transformer, is_it):
    assert is_row_wise(transformer) is is_it


def test_the_same_columns_in_every_fold():
    """An indicator of gaps that the fold's rows do not have is zero."""
    table = X.copy()
    table[:5, 1], table[10, 6] = np.nan, np.nan
    whole = Preparation.fit(make_pipeline(Impute(), OnColumns(Products(2), [1, 2])), table, NAMES)
    fold = Preparation.fit(whole, table[:10], NAMES)
    assert fold.names == whole.names == [*NAMES, "missing(n1)", "missing(n6)", "n1^2", "n2^2"]
    expected = whole.transform(table)
    expected[:, 9] = 0.0
    np.testing.assert_array_equal(np.isfinite(fold.transform(table)), np.isfinite(expected))
    np.testing.assert_array_equal(fold.transform(table)[:, [0, 8, 9, 11]], expected[:, [0, 8, 9, 11]])


@pytest.mark.parametrize("transformer", [ALL, Impute(), make_pipeline(Log(0.5), RowCentre(), RowScale())], ids=words)
def test_described_and_restored(transformer):
    table = X if is_row_wise(transformer) else _gaps()
    fitted = clone(transformer).fit(table)
    again = restore(json.loads(json.dumps(describe(fitted), allow_nan=False)))
    new = table[::-1][:5]
    np.testing.assert_array_equal(again.transform(new), fitted.transform(new))
    assert output_names(again, NAMES) == output_names(fitted, NAMES)
    assert words(again) == words(fitted)
    assert describe(again) == describe(fitted)


def test_scikit_learns_scaler_is_known():
    for scaler in (StandardScaler(), StandardScaler(with_mean=False), StandardScaler(with_std=False)):
        fitted = scaler.fit(X)
        np.testing.assert_allclose(restore(describe(fitted)).transform(X), fitted.transform(X))
    assert describe(make_pipeline(SNV(), PCA(2)).fit(X)) is None
    assert describe(OnColumns(PCA(2), [0, 1]).fit(X)) is None


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ([0, "step"], "pickle", "step 'pickle'"),
        ([0, "n"], 7, "has the shape"),
        ([0, "method"], "mean", "method is 'mean'"),
        ([0, "spread", 3], None, "cannot be"),
        ([0, "rows", 0, 0], "x", "could not convert"),
        ([0, "indicated"], [0, 0], "has the shape"),
        ([0, "noise"], -1, "noise is -1"),
        ([0, "other"], 1, "unexpected keyword"),
        ([1, "columns"], [99], "different indices"),
        ([1, "transformer", 1, "window"], 4, "odd number"),
        ([1, "transformer"], [], "not a list of steps"),
        ([2, "reference"], [1.0], "has the shape"),
        ([3, "scale", 0], 0.0, "cannot be"),
    ],
)
def test_restore_refuses(path, value, says):
    inner = description = json.loads(json.dumps(describe(clone(ALL).fit(_gaps()))))
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(ValueError, match=says):
        restore(description)


def test_written_steps():
    steps = parse_steps(" snv, savgol:15:3:2,log:0.5, center,scale,msc,standardize")
    kinds = [SNV, SavitzkyGolay, Log, RowCentre, RowScale, MSC, StandardScaler]
    assert [type(step) for step in steps] == kinds
    assert steps[1].get_params() == {"window": 15, "order": 3, "derivative": 2}
    assert steps[2].shift == 0.5
    assert words(parse_steps("snv,savgol:11:2:1")) == (
        "standard normal variate, then first derivative (Savitzky-Golay, 11 points, order 2)"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("snv,deriv", "'deriv' is not known; expected one of snv, savgol:"),
        ("savgol:a", "savgol:window:order:derivative, log:shift"),
        ("savgol:10", "odd number"),
        ("savgol:5:5:1", "derivative <= order < window"),
        ("log:nan", "finite number"),
    ],
)
def test_steps_that_are_refused(text, says):
    with pytest.raises(ValueError, match=says):
        parse_steps(text)


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (Products(124_997, interactions=True), "8 columns have 1,000,004 powers and products; .* choose from fewer"),
        (SavitzkyGolay(9, 2, 1), "window has 9 columns"),
        (Log(-1.0), "take a larger shift"),
        (Impute("mean"), "'median' or 'knn'"),
        (Impute(n_neighbors=0), "at least 1"),
        (OnColumns(SNV(), [0, 0]), "different indices"),
    ],
)
def test_tables_that_are_refused(step, says):
    with pytest.raises(ValueError, match=says):
        step.fit(X)
